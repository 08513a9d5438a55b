// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const (
	settingBalancerRedHat = "/etc/sysconfig/irqbalance"
	settingBalancerDebian = "/etc/default/irqbalance"
)

// onHousekeeping is when interrupt checks apply.
const onHousekeeping = "spec.interrupts.placement is Housekeeping, else for the CPUs of pods that asked for no interrupts and spec.cpus.explicit.dataPlane"

// interruptChecks ask where device interrupts are delivered.
func interruptChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "irq.default-affinity", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "New interrupts are routed to housekeeping CPUs",
			Applies: onHousekeeping,
			Why:     "A device that is plugged in or reset gets the default affinity: its interrupts then reach isolated CPUs.",
			Reads:   []string{"/proc/irq/default_smp_affinity"},
			Fix:     "Boot with irqaffinity= for the housekeeping CPUs, or write their mask to /proc/irq/default_smp_affinity.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/core-api/irq/irq-affinity.rst",
			run: where(func(s *state) bool {
				// Where pods may object, this file tells whether one did.
				return someAreQuiet(s) || !s.facts.Interrupts.DefaultAffinity.Known && !s.ownedCPUs().IsEmpty()
			}, defaultAffinityIsOff),
		},
		{
			ID: "irq.effective-affinity", Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: deJittered,
			Title:   "No device interrupt is delivered to an isolated CPU",
			Applies: onHousekeeping,
			Why:     "Each interrupt takes two to tens of microseconds from the program on that CPU.",
			Reads:   []string{"/proc/irq/*/effective_affinity_list", "/proc/irq/*/smp_affinity_list", "/proc/interrupts"},
			Fix:     "Write the housekeeping CPUs to /proc/irq/N/smp_affinity_list and restrict irqbalance. An input/output error means a managed interrupt: boot with isolcpus=managed_irq, or give the device fewer queues.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/core-api/irq/irq-affinity.rst (effective_affinity_list says where it goes, smp_affinity_list only where it may go)",
			run:     where(someAreQuiet, effectiveAffinityIsOff),
		},
		{
			ID: "irq.managed", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:  "Managed interrupts are kept off isolated CPUs where possible",
			Why:    "The kernel spreads the queues of NVMe and many NICs over all CPUs itself and refuses to move them.",
			Reads:  []string{"/proc/cmdline (isolcpus)"},
			Fix:    "Boot with isolcpus=managed_irq and the isolated CPUs.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/admin-guide/kernel-parameters.txt (isolcpus=managed_irq, best effort)",
			run:    managedInterruptsAreOff,
		},
		{
			ID: "irq.balancer", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "irqbalance does not run, or must not use isolated CPUs",
			Applies: "spec.interrupts.balancer is Restricted or Stopped",
			Why:     "irqbalance moves interrupts every ten seconds, back onto isolated CPUs unless it is configured to avoid them.",
			Reads:   []string{"/proc/*/comm", "/proc/*/environ (IRQBALANCE_*)", plan.IRQBalanceEnvironment, settingBalancerRedHat, settingBalancerDebian},
			Fix:     "Set IRQBALANCE_BANNED_CPULIST to the isolated CPUs in its environment file, take IRQBALANCE_BANNED_CPUS out, which wins over it, and restart irqbalance, or stop it.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "irqbalance: cputree.c (setup_banned_cpus); irqbalance(1): without a ban list it avoids the CPUs of isolcpus= and nohz_full=",
			owns:    []string{settingBalancerRedHat, settingBalancerDebian, plan.IRQBalanceEnvironment},
			run:     balancerIsRestricted,
		},
	}
}

// quietCPUs are the CPUs that device interrupts must leave alone: all isolated ones or, where interrupts may use every CPU
// until a pod objects, those of the pods that did and of the data plane.
func (s *state) quietCPUs() cpus.Set { return s.quiet() }

func (s *state) findQuietCPUs() cpus.Set {
	if s.plan.Interrupts.Placement != v1alpha1.InterruptsPerPod {
		return s.plan.CPUs.Isolated
	}
	quiet := s.plan.CPUs.DataPlane
	for _, o := range s.owned() {
		if o.cpus.Overlaps(s.takenFromInterrupts()) {
			quiet = quiet.Union(o.cpus.Intersection(s.plan.CPUs.Isolated))
		}
	}
	return quiet
}

// takenFromInterrupts are the CPUs that the container runtime keeps interrupts off because a pod asked for that
// (irq-load-balancing.crio.io of CRI-O): it takes them out of the default affinity, and bans irqbalance from them. Nothing
// else on a host says what a pod asked for. Where the plan bans irqbalance from all isolated CPUs, its bans tell nothing.
func (s *state) takenFromInterrupts() cpus.Set {
	var taken cpus.Set
	if standard, ok := s.facts.Interrupts.DefaultAffinity.Get(); ok {
		taken = s.plan.CPUs.Isolated.Difference(standard)
	}
	if s.plan.Interrupts.Balancer == v1alpha1.BalancerRestricted {
		return taken
	}
	for _, process := range s.facts.Processes.Value {
		if process.Name == "irqbalance" {
			banned, _ := banList(process.Environment, "")
			taken = taken.Union(banned.Value)
		}
	}
	return taken
}

// someAreQuiet reports whether there are such CPUs.
func someAreQuiet(s *state) bool { return !s.quietCPUs().IsEmpty() }

func defaultAffinityIsOff(s *state) verdict {
	return judge(s.facts.Interrupts.DefaultAffinity, "within "+s.wantedForInterrupts().String(), func(found cpus.Set) verdict {
		const path = "/proc/irq/default_smp_affinity"
		wrong := found.Intersection(s.quietCPUs())
		if wrong.IsEmpty() {
			return passed(found.String())
		}
		return failed(fmt.Sprintf("%s holds %s", path, s.quietName(wrong)), found.String(), "within "+s.wantedForInterrupts().String()).
			about(s.quietObjects(wrong), finding.OfFiles(path))
	})
}

// quietObjects are CPUs that are to be quiet, and the container that they belong to if that is why.
func (s *state) quietObjects(set cpus.Set) finding.Objects {
	objects := finding.OfCPUs(set)
	if s.plan.Interrupts.Placement == v1alpha1.InterruptsPerPod {
		return finding.Union(objects, s.ownerObjects(set.First()))
	}
	return objects
}

// quietName names CPUs that are to be quiet, and why they are.
func (s *state) quietName(set cpus.Set) string {
	if s.plan.Interrupts.Placement != v1alpha1.InterruptsPerPod {
		return "isolated " + set.Name()
	}
	for _, o := range s.owned() {
		if o.cpus.Contains(set.First()) {
			return set.Name() + " of " + o.name + ", whose pod asked for no interrupts"
		}
	}
	return set.Name() + " of the data plane"
}

// wantedForInterrupts are the CPUs that interrupts are to use.
func (s *state) wantedForInterrupts() cpus.Set {
	if s.plan.Interrupts.DefaultAffinity.IsEmpty() {
		return s.plan.CPUs.Housekeeping
	}
	return s.plan.Interrupts.DefaultAffinity.Difference(s.quietCPUs())
}

// offCPUs fails when a set of CPUs that some work may use holds CPUs that are to be quiet.
func offCPUs(path string, found, quiet, wanted cpus.Set) verdict {
	if wrong := found.Intersection(quiet); !wrong.IsEmpty() {
		return failed(fmt.Sprintf("%s holds isolated %s", path, wrong.Name()), found.String(), "within "+wanted.String()).about(finding.OfCPUs(wrong))
	}
	return passed(found.String())
}

func effectiveAffinityIsOff(s *state) verdict {
	lines := s.interruptLines()
	var verdicts []verdict
	for i := range s.facts.Interrupts.Routes {
		route := &s.facts.Interrupts.Routes[i]
		if s.isDelivered(route, lines) && !s.isBound(route) {
			verdicts = append(verdicts, s.routeIsOff(route))
		}
	}
	if len(verdicts) == 0 {
		return unsaid("/proc/irq/*/effective_affinity_list", "no interrupt is listed", "within "+s.wantedForInterrupts().String())
	}
	joined := worst(verdicts...)
	if joined.outcome == v1alpha1.OutcomePassed {
		joined.observed = fmt.Sprintf("%d interrupts keep off %s", len(verdicts), s.quietCPUs().Name())
	}
	return joined
}

// interruptLines are the numbered lines of /proc/interrupts; nil when the host does not report them.
func (s *state) interruptLines() map[int]*host.InterruptLine {
	lines, ok := s.facts.Interrupts.Lines.Get()
	if !ok {
		return nil
	}
	byNumber := make(map[int]*host.InterruptLine, len(lines))
	for i := range lines {
		if number, err := strconv.Atoi(lines[i].Name); err == nil {
			byNumber[number] = &lines[i]
		}
	}
	return byNumber
}

// isDelivered reports whether the interrupt has a handler and a route: /proc/interrupts lists those only,
// while /proc/irq has a folder for every interrupt.
func (s *state) isDelivered(route *host.InterruptRoute, lines map[int]*host.InterruptLine) bool {
	line, listed := lines[route.Number]
	if listed {
		return !isPrivate(*line)
	}
	return lines == nil || len(route.Actions) > 0
}

// isPrivate tells interrupts that each CPU has of its own, such as arm64's timer, which are no device's:
// the GIC numbers them below 32 (Arm Generic Interrupt Controller Architecture Specification, INTIDs).
func isPrivate(line host.InterruptLine) bool {
	// On hosts without one, which have thousands of interrupts, nothing is taken apart.
	if !strings.Contains(line.Description, "GIC") {
		return false
	}
	words := strings.Fields(line.Description)
	if len(words) < 2 || !strings.HasPrefix(words[0], "GIC") {
		return false
	}
	number, err := strconv.Atoi(words[1])
	return err == nil && number < 32
}

// isBound tells interrupts that nobody can move and that come only at need; whether they do, irq.delivered
// sees. They are the timer of old PCs, with which x86 boots (arch/x86/kernel/time.c), and managed interrupts
// all of whose CPUs are isolated, which come when a program on these CPUs does input or output itself
// (Documentation/admin-guide/kernel-parameters.txt, isolcpus=managed_irq). The kernel does not report which
// interrupts are managed, so the drivers that ask for them are known by the names of their queues.
func (s *state) isBound(route *host.InterruptRoute) bool {
	if route.Number == 0 && slices.Contains(route.Actions, "timer") {
		return true
	}
	allowed, ok := route.Affinity.Get()
	allowed = s.onlineOf(allowed)
	return ok && !allowed.IsEmpty() && allowed.IsSubsetOf(s.plan.CPUs.Isolated.Union(s.plan.CPUs.Offline)) &&
		slices.ContainsFunc(route.Actions, isManagedQueue)
}

// onlineOf are the online CPUs of a set, and the whole set where none is: siblings that nosmt keeps offline stay among the CPUs of a managed interrupt.
func (s *state) onlineOf(set cpus.Set) cpus.Set {
	if online, known := s.onlineCPUs().Get(); known && set.Overlaps(online) {
		return set.Intersection(online)
	}
	return set
}

// isManagedQueue knows the queues of drivers that use PCI_IRQ_AFFINITY or irq_create_affinity_masks in the
// kernel. The admin queue of NVMe is not managed.
func isManagedQueue(action string) bool {
	drivers := []string{"nvme", "megasas", "mpt3sas", "mpi3mr", "hpsa", "smartpqi", "lpfc", "qla2xxx", "hisi_sas"}
	isDriver := func(driver string) bool { return strings.HasPrefix(action, driver) }
	virtual := strings.HasPrefix(action, "virtio") && strings.Contains(action, "-req")
	return virtual || slices.ContainsFunc(drivers, isDriver) && !strings.HasSuffix(action, "q0")
}

// routeIsOff judges one interrupt by where it is delivered. Where the kernel does not report that, the
// interrupt passes only if it is not even allowed on isolated CPUs.
func (s *state) routeIsOff(route *host.InterruptRoute) verdict {
	wanted, quiet := s.wantedForInterrupts(), s.quietCPUs()
	if allowed, ok := route.Affinity.Get(); ok && !route.EffectiveAffinity.Known && !allowed.Overlaps(quiet) {
		return passed("")
	}
	return judge(route.EffectiveAffinity, wanted.String(), func(effective cpus.Set) verdict {
		wrong := effective.Intersection(quiet)
		if wrong.IsEmpty() {
			return passed("")
		}
		message := fmt.Sprintf("%s is delivered to %s; wanted %s", interruptName(route.Number, route.Actions), s.quietName(wrong), wanted)
		return failed(message, fmt.Sprintf("IRQ %d: %s", route.Number, effective), wanted.String()).
			about(s.quietObjects(wrong), s.interrupt(route.Number, route.Actions))
	})
}

// interrupt is an interrupt with the NIC that it belongs to, if it is one's.
func (s *state) interrupt(number int, actions []string) finding.Objects {
	objects := finding.Objects{Interrupts: []v1alpha1.Interrupt{{ID: strconv.Itoa(number), Handlers: strings.Join(actions, ", ")}}}
	if address, ok := s.nicOfVector()[number]; ok {
		objects.NICs = []string{address}
	}
	return objects
}

func (s *state) routesByNumber() map[int]*host.InterruptRoute {
	routes := make(map[int]*host.InterruptRoute, len(s.facts.Interrupts.Routes))
	for i := range s.facts.Interrupts.Routes {
		routes[s.facts.Interrupts.Routes[i].Number] = &s.facts.Interrupts.Routes[i]
	}
	return routes
}

// vectors maps the interrupts of NICs to their PCI addresses.
func (s *state) vectors() map[int]string {
	addresses := map[int]string{}
	for i := range s.facts.NICs {
		for _, number := range s.facts.NICs[i].Interrupts {
			addresses[number] = s.facts.NICs[i].PCIAddress
		}
	}
	return addresses
}

// interruptName is "IRQ 142 (sfc-ens2f0-3)".
func interruptName(number int, actions []string) string {
	if len(actions) == 0 {
		return fmt.Sprintf("IRQ %d", number)
	}
	return fmt.Sprintf("IRQ %d (%s)", number, strings.Join(actions, ", "))
}

func managedInterruptsAreOff(s *state) verdict {
	isolated := s.plan.CPUs.Isolated
	expected := "isolcpus=managed_irq," + isolated.String()
	return judge(s.running, expected, func(line cmdline.Line) verdict {
		value := argumentText(line, "isolcpus")
		if missing := isolated.Difference(line.Isolation(s.machine()).ManagedIRQ); !missing.IsEmpty() {
			return failed(fmt.Sprintf("the running kernel may put managed interrupts on isolated %s: it was booted %s", missing.Name(), value), value, expected).about(finding.OfCPUs(missing))
		}
		return passed(value)
	})
}

func balancerIsRestricted(s *state) verdict {
	mode := s.plan.Interrupts.Balancer
	if mode != v1alpha1.BalancerRestricted && mode != v1alpha1.BalancerStopped {
		return notApplicable()
	}
	return judge(s.facts.Processes, string(mode), func(processes []host.Process) verdict {
		for i := range processes {
			if processes[i].Name == "irqbalance" {
				return s.balancerAvoids(&processes[i])
			}
		}
		return passed("irqbalance does not run")
	})
}

// balancerAvoids judges an irqbalance that runs.
func (s *state) balancerAvoids(process *host.Process) verdict {
	runs := finding.Objects{Processes: []v1alpha1.Process{{PID: int32(process.PID), Name: process.Name}}}
	if s.plan.Interrupts.Balancer == v1alpha1.BalancerStopped {
		return failed(fmt.Sprintf("irqbalance runs as process %d", process.PID), "runs", "stopped").about(runs)
	}
	expected := "banned CPUs " + s.plan.Interrupts.Banned.String()
	bans := s.bannedCPUs(process)
	return judge(bans, expected, func(banned cpus.Set) verdict {
		if free := s.plan.Interrupts.Banned.Difference(banned); !free.IsEmpty() {
			return failed(fmt.Sprintf("irqbalance (process %d) may use isolated %s by %s", process.PID, free.Name(), bans.Source),
				"banned CPUs "+orNone(banned.String()), expected).about(finding.OfCPUs(free), runs)
		}
		return passed("banned CPUs " + banned.String())
	})
}

// bannedCPUs are the CPUs that irqbalance leaves alone: those of its environment or, where that cannot be read, of the
// files that its unit takes it from; else, as irqbalance(1) says, the isolated and tickless ones. What is in a file and not
// in the environment of the process, the process has not read.
func (s *state) bannedCPUs(process *host.Process) host.Fact[cpus.Set] {
	if process.Environment != nil {
		if banned, ok := banList(process.Environment, fmt.Sprintf("/proc/%d/environ", process.PID)); ok {
			return banned
		}
	} else if banned, ok := s.banListOfFiles(); ok {
		return banned
	}
	isolated, tickless := s.facts.CPUs.Isolated, s.facts.CPUs.NoHzFull
	if !isolated.Known {
		return isolated
	}
	return host.Known(isolated.Value.Union(tickless.Value), isolated.Source)
}

// banListOfFiles reads the file of the plan's drop-in, which comes last and so wins, else that of the distribution. Which of
// two that differ the unit reads is not known.
func (s *state) banListOfFiles() (host.Fact[cpus.Set], bool) {
	if banned, ok := s.banListOfFile(plan.IRQBalanceEnvironment); ok {
		return banned, true
	}
	redHat, isRedHat := s.banListOfFile(settingBalancerRedHat)
	debian, isDebian := s.banListOfFile(settingBalancerDebian)
	switch {
	case !isRedHat && s.facts.Setting(settingBalancerRedHat).Reason == host.ReasonNotMounted && !s.facts.Setting(settingBalancerDebian).Known:
		return host.Absent[cpus.Set](settingBalancerRedHat, host.ReasonNotMounted), true
	case !isRedHat:
		return debian, isDebian
	case isDebian && !redHat.Value.Equal(debian.Value):
		return host.Absent[cpus.Set](settingBalancerRedHat, "it does not say the same as "+settingBalancerDebian), true
	}
	return redHat, true
}

func (s *state) banListOfFile(path string) (host.Fact[cpus.Set], bool) {
	text, ok := s.facts.Setting(path).Get()
	if !ok {
		return host.Fact[cpus.Set]{}, false
	}
	return banList(environmentFile(text), path)
}

// banList reads the two variables in which irqbalance takes CPUs that it must not use. The older one, a mask, wins; if
// it is no mask, irqbalance says nothing and bans no CPU (setup_banned_cpus of cputree.c, __bitmap_parse of bitmap.c).
func banList(environment map[string]string, source string) (host.Fact[cpus.Set], bool) {
	if mask := environment["IRQBALANCE_BANNED_CPUS"]; mask != "" {
		// What is no mask is the empty set.
		banned, _ := cpus.ParseMask(mask)
		return host.Known(banned, source+" (IRQBALANCE_BANNED_CPUS="+mask+")"), true
	}
	if list := environment["IRQBALANCE_BANNED_CPULIST"]; list != "" {
		return parseSetting(host.Known(list, source), cpus.Parse), true
	}
	return host.Fact[cpus.Set]{}, false
}

// environmentFile reads NAME=value lines as systemd's EnvironmentFile= does; comments begin with # or ;.
func environmentFile(text string) map[string]string {
	environment := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found || strings.HasPrefix(name, "#") || strings.HasPrefix(name, ";") {
			continue
		}
		environment[strings.TrimSpace(name)] = strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return environment
}
