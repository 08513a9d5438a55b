// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	settingBalancerRedHat = "/etc/sysconfig/irqbalance"
	settingBalancerDebian = "/etc/default/irqbalance"
)

// onHousekeeping is when interrupt checks apply.
const onHousekeeping = "spec.interrupts.placement is Housekeeping"

// interruptChecks ask where device interrupts are delivered.
func interruptChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "irq.default-affinity", Severity: v1alpha1.SeverityHigh, Conditions: deJittered,
			Title:   "New interrupts are routed to housekeeping CPUs",
			Applies: onHousekeeping,
			Why:     "A device that is plugged in or reset gets the default affinity: its interrupts then reach isolated CPUs.",
			Reads:   []string{"/proc/irq/default_smp_affinity"},
			Fix:     "Boot with irqaffinity= for the housekeeping CPUs, or write their mask to /proc/irq/default_smp_affinity.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/core-api/irq/irq-affinity.rst",
			run:     defaultAffinityIsOff,
		},
		{
			ID: "irq.effective-affinity", Severity: v1alpha1.SeverityCritical, Conditions: deJittered,
			Title:   "No device interrupt is delivered to an isolated CPU",
			Applies: onHousekeeping,
			Why:     "Each interrupt takes two to tens of microseconds from the program on that CPU.",
			Reads:   []string{"/proc/irq/*/effective_affinity_list", "/proc/irq/*/smp_affinity_list", "/proc/interrupts"},
			Fix:     "Write the housekeeping CPUs to /proc/irq/N/smp_affinity_list and restrict irqbalance. An I/O error means a managed interrupt: boot with isolcpus=managed_irq, or give the device fewer queues.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/core-api/irq/irq-affinity.rst (effective_affinity_list tells where, smp_affinity_list only where allowed)",
			run:     effectiveAffinityIsOff,
		},
		{
			ID: "irq.managed", Severity: v1alpha1.SeverityMedium, Conditions: deJittered,
			Title:   "Managed interrupts are kept off isolated CPUs where possible",
			Applies: onHousekeeping,
			Why:     "The kernel spreads the queues of NVMe and many NICs over all CPUs itself and refuses to move them.",
			Reads:   []string{"/proc/cmdline (isolcpus)"},
			Fix:     "Boot with isolcpus=managed_irq and the isolated CPUs.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/admin-guide/kernel-parameters.txt (isolcpus=managed_irq, best effort)",
			run:     managedInterruptsAreOff,
		},
		{
			ID: "irq.balancer", Severity: v1alpha1.SeverityHigh, Conditions: deJittered,
			Title:   "irqbalance does not run, or must not use isolated CPUs",
			Applies: "spec.interrupts.balancer is Restricted or Stopped",
			Why:     "irqbalance moves interrupts every ten seconds, back onto isolated CPUs if it is not told to avoid them.",
			Reads:   []string{"/proc/*/comm", "/proc/*/environ (IRQBALANCE_*)", settingBalancerRedHat, settingBalancerDebian},
			Fix:     "Set IRQBALANCE_BANNED_CPULIST to the isolated CPUs in its environment file and restart irqbalance, or stop it.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "irqbalance(1): without a ban list it avoids the CPUs of isolcpus= and nohz_full=",
			owns:    []string{settingBalancerRedHat, settingBalancerDebian},
			run:     balancerIsRestricted,
		},
	}
}

// interruptsMayRoam tells whether the plan lets interrupts use every CPU until a pod objects.
func (s *state) interruptsMayRoam() bool {
	return s.plan.Interrupts.Placement == v1alpha1.InterruptsPerPod
}

func defaultAffinityIsOff(s *state) verdict {
	if s.interruptsMayRoam() {
		return notApplicable()
	}
	expected := "within " + s.plan.CPUs.Housekeeping.String()
	return judge(s.facts.Interrupts.DefaultAffinity, expected, func(found cpus.Set) verdict {
		return s.offIsolated("/proc/irq/default_smp_affinity", found)
	})
}

// offIsolated fails when a set of CPUs that work may use holds isolated ones.
func (s *state) offIsolated(path string, found cpus.Set) verdict {
	expected := "within " + s.plan.CPUs.Housekeeping.String()
	if wrong := found.Intersection(s.plan.CPUs.Isolated); !wrong.IsEmpty() {
		return failed(fmt.Sprintf("%s holds isolated %s", path, cpuNames(wrong)), found.String(), expected)
	}
	return passed(found.String())
}

func effectiveAffinityIsOff(s *state) verdict {
	if s.interruptsMayRoam() {
		return notApplicable()
	}
	active := s.activeInterrupts()
	var verdicts []verdict
	for i := range s.facts.Interrupts.Routes {
		route := &s.facts.Interrupts.Routes[i]
		if active == nil || active[route.Number] || len(route.Actions) > 0 {
			verdicts = append(verdicts, s.routeIsOff(route))
		}
	}
	if len(verdicts) == 0 {
		return unknown("/proc/irq/*/effective_affinity_list", "no interrupt is listed", "within "+s.plan.CPUs.Housekeeping.String())
	}
	joined := worst(verdicts...)
	if joined.outcome == v1alpha1.OutcomePassed {
		joined.observed = fmt.Sprintf("%d interrupts within %s", len(verdicts), s.plan.CPUs.Housekeeping)
	}
	return joined
}

// activeInterrupts are the interrupts that have a handler: /proc/interrupts lists no others, while
// /proc/irq has folders for all. It is nil when the host does not tell.
func (s *state) activeInterrupts() map[int]bool {
	lines, ok := s.facts.Interrupts.Lines.Get()
	if !ok {
		return nil
	}
	active := map[int]bool{}
	for _, line := range lines {
		if number, err := strconv.Atoi(line.Name); err == nil {
			active[number] = true
		}
	}
	return active
}

// routeIsOff judges one interrupt by where it is delivered. Where the kernel does not tell that, the
// interrupt passes only if it is not even allowed on isolated CPUs.
func (s *state) routeIsOff(route *host.InterruptRoute) verdict {
	wanted := s.plan.Interrupts.DefaultAffinity
	if wanted.IsEmpty() {
		wanted = s.plan.CPUs.Housekeeping
	}
	if allowed, ok := route.Affinity.Get(); ok && !route.EffectiveAffinity.Known && !allowed.Overlaps(s.plan.CPUs.Isolated) {
		return passed("")
	}
	return judge(route.EffectiveAffinity, wanted.String(), func(effective cpus.Set) verdict {
		wrong := effective.Intersection(s.plan.CPUs.Isolated)
		if wrong.IsEmpty() {
			return passed("")
		}
		message := fmt.Sprintf("%s is delivered to isolated %s; wanted %s", interruptName(route.Number, route.Actions), cpuNames(wrong), wanted)
		return failed(message, fmt.Sprintf("IRQ %d: %s", route.Number, effective), wanted.String())
	})
}

// interruptName is "IRQ 142 (sfc-ens2f0-3)".
func interruptName(number int, actions []string) string {
	if len(actions) == 0 {
		return fmt.Sprintf("IRQ %d", number)
	}
	return fmt.Sprintf("IRQ %d (%s)", number, strings.Join(actions, ", "))
}

func managedInterruptsAreOff(s *state) verdict {
	if s.interruptsMayRoam() {
		return notApplicable()
	}
	isolated := s.plan.CPUs.Isolated
	expected := "isolcpus=managed_irq," + isolated.String()
	return judge(s.running, expected, func(line cmdline.Line) verdict {
		value, _ := line.Get("isolcpus")
		flags, list := splitIsolcpus(value)
		covered := cpus.Set{}
		if flags["managed_irq"] {
			covered = cpuListOf(list, s.possibleCPUs())
		}
		if missing := isolated.Difference(covered); !missing.IsEmpty() {
			return failed(fmt.Sprintf("the running kernel may put managed interrupts on isolated %s: isolcpus=%s", cpuNames(missing), value),
				"isolcpus="+value, expected)
		}
		return passed("isolcpus=" + value)
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
	if s.plan.Interrupts.Balancer == v1alpha1.BalancerStopped {
		return failed(fmt.Sprintf("irqbalance runs as process %d", process.PID), "runs", "stopped")
	}
	expected := "banned CPUs " + s.plan.Interrupts.Banned.String()
	return judge(s.bannedCPUs(process), expected, func(banned cpus.Set) verdict {
		if free := s.plan.Interrupts.Banned.Difference(banned); !free.IsEmpty() {
			return failed(fmt.Sprintf("irqbalance (process %d) may use isolated %s", process.PID, cpuNames(free)),
				"banned CPUs "+orNone(banned.String()), expected)
		}
		return passed("banned CPUs " + banned.String())
	})
}

// bannedCPUs are the CPUs that irqbalance leaves alone: those of its environment, else of the file that
// its unit reads, else, as irqbalance(1) says, the isolated and tickless ones.
func (s *state) bannedCPUs(process *host.Process) host.Fact[cpus.Set] {
	if banned, ok := banList(process.Environment, fmt.Sprintf("/proc/%d/environ", process.PID)); ok {
		return banned
	}
	for _, path := range []string{settingBalancerRedHat, settingBalancerDebian} {
		if text, ok := s.facts.Setting(path).Get(); ok {
			if banned, ok := banList(environmentFile(text), path); ok {
				return banned
			}
		}
	}
	isolated, tickless := s.facts.CPUs.Isolated, s.facts.CPUs.NoHzFull
	if !isolated.Known {
		return isolated
	}
	return host.Known(isolated.Value.Union(tickless.Value), isolated.Source)
}

// banList reads the two variables in which irqbalance takes CPUs that it must not use.
func banList(environment map[string]string, source string) (host.Fact[cpus.Set], bool) {
	if list, ok := environment["IRQBALANCE_BANNED_CPULIST"]; ok && list != "" {
		return parseSetting(host.Known(list, source), cpus.Parse), true
	}
	if mask, ok := environment["IRQBALANCE_BANNED_CPUS"]; ok && mask != "" {
		return parseSetting(host.Known(strings.TrimPrefix(mask, "0x"), source), cpus.ParseMask), true
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
