// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

// maximumCommandLine is COMMAND_LINE_SIZE of x86 and arm64 in bytes; the kernel cuts off what is beyond
// (arch/x86/include/asm/setup.h, arch/arm64/include/uapi/asm/setup.h).
const maximumCommandLine = 2048

// argumentRule is one row of the table of kernel arguments: the argument, when it is wanted, and why.
// Unless a row says otherwise, the meaning is that of Documentation/admin-guide/kernel-parameters.txt.
type argumentRule struct {
	text   string
	wanted bool
	origin Origin
}

// planKernelArguments makes the command line's planned part: the rows of the tables in a fixed order, then
// the user's own arguments in theirs.
func (p *planner) planKernelArguments() {
	rules := slices.Concat(p.isolationRules(), p.clockRules(), p.memoryRules(), p.iommuRules(), p.powerRules())
	for _, r := range rules {
		if r.wanted {
			p.plan.KernelArguments = append(p.plan.KernelArguments, Argument{Text: r.text, Origin: r.origin})
		}
	}
	p.addArguments()
	length := 0
	for _, a := range p.plan.KernelArguments {
		length += len(a.Text) + 1
	}
	if length > maximumCommandLine {
		p.critical(ruleCommandLineLength, "spec.kernel.additionalArguments",
			"Remove arguments, or choose CPU sets that are written in fewer ranges.",
			"the planned kernel arguments have %d bytes, and the kernel reads %d", length, maximumCommandLine)
	}
}

// isolationRules keep other work off isolated CPUs.
func (p *planner) isolationRules() []argumentRule {
	c := p.plan.CPUs
	isolated := c.Isolated.String()
	static := c.Isolation == v1alpha1.IsolationStatic
	stopped := c.Tick == v1alpha1.TickStopped
	housekeeping := p.spec.Interrupts.Placement == v1alpha1.InterruptsHousekeeping
	tick, isolation, interrupts := p.origin("spec.cpus.tick"), p.origin("spec.cpus.isolation"), p.origin("spec.interrupts.placement")
	return []argumentRule{
		// Ticks of different CPUs do not meet at the same locks.
		{"skew_tick=1", true, by("timer ticks of different CPUs are kept apart")},
		{"nohz=on", stopped, tick},
		{"nohz_full=" + isolated, stopped, tick},
		{"rcu_nocbs=" + isolated, true, by("RCU callbacks are offloaded from isolated CPUs")},
		{"isolcpus=domain,managed_irq," + isolated, static, isolation},
		{"isolcpus=managed_irq," + isolated, !static, isolation},
		// man kernel-command-line(7) of systemd: CPU affinity of the service manager and all it starts.
		{"systemd.cpu_affinity=" + c.Housekeeping.String(), true, c.Origin},
		{"irqaffinity=" + c.Housekeeping.String(), housekeeping, interrupts},
		{"irqaffinity=" + p.plan.Interrupts.DefaultAffinity.String(), !housekeeping && !c.DataPlane.IsEmpty(),
			p.origin("spec.cpus.explicit.dataPlane")},
		{"nosmt", c.SMT == v1alpha1.SMTDisabled, p.origin("spec.cpus.simultaneousMultithreading")},
	}
}

// clockRules stop periodic checks and grace periods that interrupt every CPU.
func (p *planner) clockRules() []argumentRule {
	k := p.spec.Kernel
	amd64 := p.topology.Architecture == architectureAMD64
	quiet := k.Watchdogs == v1alpha1.ActivityDisabled
	checks := p.origin("spec.kernel.machineChecks")
	return []argumentRule{
		{"tsc=reliable", amd64 && k.Clocksource == v1alpha1.ClocksourceReliableTSC, p.origin("spec.kernel.clocksource")},
		{"nmi_watchdog=0", quiet, p.origin("spec.kernel.watchdogs")},
		{"nosoftlockup", quiet, p.origin("spec.kernel.watchdogs")},
		// Documentation/arch/x86/x86_64/boot-options.rst.
		{"mce=ignore_ce", amd64 && k.MachineChecks == v1alpha1.MachineChecksCorrectedErrorsIgnored, checks},
		{"mce=off", amd64 && k.MachineChecks == v1alpha1.MachineChecksOff, checks},
		// Expedited grace periods interrupt all CPUs. A real-time kernel sets this by itself.
		{"rcupdate.rcu_normal_after_boot=1", true, by("expedited RCU grace periods interrupt every CPU")},
		// Since Linux 6.12: RCU leaves a CPU alone for that many milliseconds of a grace period. Older kernels pass over
		// arguments of modules that they do not know (unknown_bootoption in init/main.c), and an argument that came with
		// the kernel's upgrade would cost a second reboot.
		{"rcutree.nohz_full_patience_delay=1000", p.plan.CPUs.Tick == v1alpha1.TickStopped, p.origin("spec.cpus.tick")},
		// A busy real-time task below this priority cannot starve RCU and with it the whole kernel.
		{"rcutree.kthread_prio=11", p.isRealTime(), p.origin("spec.kernel.type")},
	}
}

// memoryRules reserve hugepages. Every size gets its pair hugepagesz and hugepages, also with 0 pages when
// units reserve them, so that kernels before 5.8 know the size at all.
func (p *planner) memoryRules() []argumentRule {
	origin := p.origin("spec.memory.hugepages")
	rules := []argumentRule{{"transparent_hugepage=never", p.stopsTransparentHugepages(), p.origin("spec.memory.transparentHugepages")}}
	if size := p.spec.Memory.DefaultHugepageSize; size != "" {
		rules = append(rules, argumentRule{"default_hugepagesz=" + kernelSize(size), true,
			p.origin("spec.memory.defaultHugepageSize")})
	}
	counts := map[v1alpha1.HugepageSize]int64{}
	var sizes []v1alpha1.HugepageSize
	for _, pages := range p.plan.Hugepages {
		if !slices.Contains(sizes, pages.Size) {
			sizes = append(sizes, pages.Size)
		}
		if pages.Method == ByKernelArgument {
			counts[pages.Size] += pages.Count
		}
	}
	for _, size := range sizes {
		rules = append(rules,
			argumentRule{"hugepagesz=" + kernelSize(size), true, origin},
			argumentRule{"hugepages=" + strconv.FormatInt(counts[size], 10), true, origin})
	}
	return rules
}

// kernelSize writes a size as the kernel does: 1G for 1Gi.
func kernelSize(size v1alpha1.HugepageSize) string { return strings.TrimSuffix(string(size), "i") }

// platform is what the vendor-dependent tables are keyed by: Intel, AMD, or else the architecture.
func (p *planner) platform() string {
	if v := p.topology.Vendor; p.topology.Architecture == architectureAMD64 && (v == vendorIntel || v == vendorAMD) {
		return v
	}
	return p.topology.Architecture
}

// iommuArguments set the IOMMU. AMD's is on by default, and arm64 has no argument that switches it off.
func iommuArguments() map[string]map[v1alpha1.IOMMUMode][]string {
	const pass, translate, disable = v1alpha1.IOMMUPassthrough, v1alpha1.IOMMUTranslated, v1alpha1.IOMMUDisabled
	return map[string]map[v1alpha1.IOMMUMode][]string{
		vendorIntel: {
			pass:      {"intel_iommu=on", "iommu=pt"},
			translate: {"intel_iommu=on", "iommu.passthrough=0"},
			disable:   {"intel_iommu=off"},
		},
		vendorAMD: {
			pass:      {"iommu=pt"},
			translate: {"iommu.passthrough=0"},
			disable:   {"amd_iommu=off"},
		},
		architectureAMD64: {
			pass:      {"iommu=pt"},
			translate: {"iommu.passthrough=0"},
			disable:   {"iommu=off"},
		},
		architectureARM64: {
			pass:      {"iommu.passthrough=1"},
			translate: {"iommu.passthrough=0"},
		},
	}
}

func (p *planner) iommuRules() []argumentRule {
	const field = "spec.kernel.iommu"
	mode := p.spec.Kernel.IOMMU
	arguments, possible := iommuArguments()[p.platform()][mode]
	if !possible && mode != v1alpha1.IOMMUKept {
		p.report(v1alpha1.SeverityHigh, ruleIOMMU, field, "Choose Passthrough, which costs DMA nothing.",
			"%s kernels have no argument for IOMMU mode %s", p.topology.Architecture, mode)
	}
	return always(arguments, p.origin(field))
}

// always are rules without a condition.
func always(arguments []string, origin Origin) []argumentRule {
	rules := make([]argumentRule, len(arguments))
	for i, text := range arguments {
		rules[i] = argumentRule{text, true, origin}
	}
	return rules
}

// idleArguments keep idle CPUs from sleeping deeply. idle=poll exists on x86 only; arm64 polls with nohlt,
// and with cpuidle.off=1 it waits in WFI, its shallowest state.
func idleArguments() map[string]map[v1alpha1.IdleStates][]string {
	const polling, shallow = v1alpha1.IdlePolling, v1alpha1.IdleShallowByKernel
	return map[string]map[v1alpha1.IdleStates][]string{
		vendorIntel: {
			polling: {"processor.max_cstate=1", "intel_idle.max_cstate=0", "idle=poll"},
			shallow: {"processor.max_cstate=1", "intel_idle.max_cstate=0"},
		},
		vendorAMD: {
			polling: {"processor.max_cstate=1", "idle=poll"},
			shallow: {"processor.max_cstate=1"},
		},
		architectureAMD64: {
			polling: {"processor.max_cstate=1", "idle=poll"},
			shallow: {"processor.max_cstate=1"},
		},
		architectureARM64: {
			polling: {"nohlt"},
			shallow: {"cpuidle.off=1"},
		},
	}
}

// powerRules set the frequency driver and idle states.
func (p *planner) powerRules() []argumentRule {
	platform, w := p.platform(), p.plan.Power
	mode, known := pstateModes()[w.FrequencyDriver]
	driver := p.origin("spec.power.frequencyDriver")
	return append([]argumentRule{
		{"intel_pstate=" + mode, known && platform == vendorIntel, driver},
		{"amd_pstate=" + mode, known && platform == vendorAMD, driver},
	}, always(idleArguments()[platform][w.IdleStates], p.origin("spec.power.idleStates"))...)
}

// pstateModes are the values of intel_pstate and amd_pstate.
func pstateModes() map[v1alpha1.FrequencyDriverMode]string {
	return map[v1alpha1.FrequencyDriverMode]string{
		v1alpha1.FrequencyDriverActive:   "active",
		v1alpha1.FrequencyDriverPassive:  "passive",
		v1alpha1.FrequencyDriverGuided:   "guided",
		v1alpha1.FrequencyDriverDisabled: "disable",
	}
}

// reservedArguments decide which CPUs exist or are isolated, so they must agree with the plan even where
// it has no such argument. The value is the field to use instead.
func reservedArguments() map[string]string {
	return map[string]string{
		"nosmt":         "spec.cpus.simultaneousMultithreading",
		"nohz_full":     "spec.cpus.tick",
		"isolcpus":      "spec.cpus",
		"rcu_nocbs":     "spec.cpus",
		"maxcpus":       "spec.cpus.explicit.offline",
		"nr_cpus":       "spec.cpus.explicit.offline",
		"possible_cpus": "spec.cpus.explicit.offline",
	}
}

// mayRepeat reports whether an argument is read every time it occurs, so that two values do not contradict
// each other.
func mayRepeat(name string) bool {
	return name == "hugepagesz" || name == "hugepages" || cmdline.IsCumulative(name)
}

// addArguments appends the user's arguments. One that the plan has already is left out; one that
// contradicts the plan or another one is refused.
func (p *planner) addArguments() {
	on := cmdline.Machine{Architecture: p.topology.Architecture}
	computed, given := byParameter{}, byParameter{}
	for _, a := range p.plan.KernelArguments {
		computed.add(on, a)
	}
	for i, wanted := range p.spec.Kernel.AdditionalArguments {
		field := element("spec.kernel.additionalArguments", i)
		argument := Argument{Text: string(wanted), Origin: Origin{Source: FromField, Detail: field}}
		if !p.acceptArgument(on, argument, computed.find(on, argument), given.find(on, argument)) {
			continue
		}
		given.add(on, argument)
		p.plan.KernelArguments = append(p.plan.KernelArguments, argument)
	}
}

// byParameter finds arguments by what they set, and by the names under which they are written.
type byParameter map[string]Argument

func (b byParameter) add(on cmdline.Machine, a Argument) {
	arg := parsed(a.Text)
	b[cmdline.Machine{}.Parameter(arg)], b[on.Parameter(arg)] = a, a
}

// find returns the argument that sets the same, else the one of the same name; else an empty one.
func (b byParameter) find(on cmdline.Machine, a Argument) Argument {
	arg := parsed(a.Text)
	if same, ok := b[on.Parameter(arg)]; ok {
		return same
	}
	return b[cmdline.Machine{}.Parameter(arg)]
}

// parsed is one argument as the kernel reads it; what is none is a name alone.
func parsed(text string) cmdline.Arg {
	line, err := cmdline.Parse(text)
	if args := line.Args(); err == nil && len(args) == 1 {
		return args[0]
	}
	return cmdline.Arg{Name: text}
}

// acceptArgument reports whether a user's argument is to be appended. Computed and earlier are the plan's
// and the user's arguments of the same name, empty when there are none. The arguments of hugepages may
// repeat, but not beside the plan's: each hugepages= belongs to the hugepagesz= before it.
func (p *planner) acceptArgument(on cmdline.Machine, argument, computed, earlier Argument) bool {
	name, field := on.Parameter(parsed(argument.Text)), argument.Origin.Detail
	ordered := name == "hugepages" || name == "hugepagesz"
	repeats := mayRepeat(name) && (!ordered || computed.Text == "")
	for _, other := range []Argument{computed, earlier} {
		if other.Text == "" || repeats {
			continue
		}
		if ordered || !on.SameArgument(parsed(argument.Text), parsed(other.Text)) {
			p.critical(ruleKernelArguments, field, fmt.Sprintf("Remove it, or change %s.", other.Origin.Detail),
				"%s cannot stand beside %s, which comes from %s", argument.Text, other.Text, other.Origin.Detail)
		}
		return false
	}
	owner, reserved := reservedArguments()[name]
	if reserved {
		p.critical(ruleKernelArguments, field, fmt.Sprintf("Use %s.", owner),
			"%s changes which CPUs there are or are isolated, behind the plan's back", argument.Text)
	}
	return !reserved
}
