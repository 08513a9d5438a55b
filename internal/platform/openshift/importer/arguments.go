// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"regexp"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const (
	argumentsField = "spec.additionalKernelArgs"
)

// arguments converts spec.additionalKernelArgs. A PerformanceProfile appends them to the arguments that it
// computes, and the kernel obeys the last of a name; a LowLatencyNodeProfile refuses an argument that
// contradicts a computed one. So an argument that overrides a computed one takes the place of the field
// that computes it.
func (c *converter) arguments() error {
	c.hintArguments()
	line, err := cmdline.Parse(strings.Join(c.source.Spec.AdditionalKernelArgs, " "))
	if err != nil {
		return invalid(argumentsField, "%w", err)
	}
	if len(line.InitArgs()) > 0 {
		c.remark(argumentsField, "what follows -- goes to the init process and was left out.")
	}
	arguments := c.hugepageArguments(line.Args())
	c.idleArguments(arguments)
	for _, argument := range arguments {
		c.argument(argument)
	}
	if count := len(c.spec.Kernel.AdditionalArguments); count > v1alpha1.MaxKernelArguments {
		return invalid(argumentsField, "there are %d arguments; a LowLatencyNodeProfile takes at most %d", count, v1alpha1.MaxKernelArguments)
	}
	return nil
}

// hintArguments are arguments that a PerformanceProfile computes and no field stands for: the priority of
// RCU's threads, which a LowLatencyNodeProfile sets on real-time kernels only.
func (c *converter) hintArguments() {
	if realTime, _, _, _ := c.source.hints(); realTime {
		c.keepArgument("rcutree.kthread_prio=11")
	}
}

// argument converts one argument: into a field, or into a place among the additional arguments.
func (c *converter) argument(argument cmdline.Arg) {
	text := argument.Text()
	if c.partitionArgument(argument) || c.machineCheckArgument(argument) || c.refusedArgument(text) || c.driverArgument(argument) {
		return
	}
	for _, group := range argumentGroups() {
		computed := group.computed(c)
		if len(computed) == 0 || !c.overrides(argument, group.names, computed) {
			continue
		}
		if c.isAmong(argument, computed) && !c.dependsOnNode(group) {
			return
		}
		group.release(c)
		c.remark(argumentsField, "%s overrides what %s computes; the arguments are written out.", text, group.field)
		for _, other := range computed {
			c.keepArgument(other)
		}
	}
	c.keepArgument(text)
}

// driverArgument turns a mode of a frequency driver into spec.power.frequencyDriver, so that the plan and its verification
// know of it. What is no mode, such as intel_pstate=no_hwp, stays an argument.
func (c *converter) driverArgument(argument cmdline.Arg) bool {
	mode, known := map[string]v1alpha1.FrequencyDriverMode{
		"intel_pstate=active": v1alpha1.FrequencyDriverActive, "intel_pstate=passive": v1alpha1.FrequencyDriverPassive,
		"intel_pstate=disable": v1alpha1.FrequencyDriverDisabled,
		"amd_pstate=active":    v1alpha1.FrequencyDriverActive, "amd_pstate=passive": v1alpha1.FrequencyDriverPassive,
		"amd_pstate=guided": v1alpha1.FrequencyDriverGuided, "amd_pstate=disable": v1alpha1.FrequencyDriverDisabled,
	}[argument.Text()]
	if !known || c.driver != "" && c.driver != argument.Name {
		return false
	}
	c.driver, c.spec.Power.FrequencyDriver = argument.Name, mode
	c.remark(argumentsField, "%s became spec.power.frequencyDriver: %s, on processors of the other vendor, too.", argument.Text(), mode)
	return true
}

// refusedArgument leaves out an argument that every plan refuses, and remarks on one that has to be confirmed.
func (c *converter) refusedArgument(text string) bool {
	hazard, dangerous := plan.ArgumentHazard(text)
	switch {
	case !dangerous:
		return false
	case hazard.Acceptable:
		c.remark(argumentsField, "%.80s %s; nodes get no plan until spec.acceptedRisks names it.", text, hazard.Why)
		return false
	default:
		c.remark(argumentsField, "%.80s was left out: it %s.", text, hazard.Why)
		return true
	}
}

// machine is what the meaning of an argument depends on.
func (c *converter) machine() cmdline.Machine {
	if c.isARM64() {
		return cmdline.Machine{Architecture: "arm64"}
	}
	return cmdline.Machine{Architecture: "amd64"}
}

// overrides reports whether an argument has one of the names, or sets what one of the computed arguments sets.
func (c *converter) overrides(argument cmdline.Arg, names, computed []string) bool {
	return slices.Contains(names, cmdline.Machine{}.Parameter(argument)) ||
		slices.ContainsFunc(computed, func(text string) bool { return c.machine().Parameter(parsed(text)) == c.machine().Parameter(argument) })
}

// isAmong reports whether one of the texts means the same as the argument.
func (c *converter) isAmong(argument cmdline.Arg, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return c.machine().SameArgument(parsed(text), argument) })
}

// parsed is an argument that was written by this package, or kept by it: it has neither spaces nor quotes.
func parsed(text string) cmdline.Arg {
	name, value, hasValue := strings.Cut(text, "=")
	return cmdline.Arg{Name: name, Value: value, HasValue: hasValue}
}

// keepArgument puts an argument among the additional ones, in place of one that it overrides.
func (c *converter) keepArgument(text string) {
	pattern := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.,:;/@+=!&%*~-]*)?$`)
	if len(text) > v1alpha1.MaxKernelArgumentLength || !pattern.MatchString(text) {
		c.remark(argumentsField, "%.80q is not a kernel argument of letters, digits and .,:;/@+=!&%%*~_- without spaces or quotes; it was left out.", text)
		return
	}
	argument := parsed(text)
	arguments := &c.spec.Kernel.AdditionalArguments
	*arguments = slices.DeleteFunc(*arguments, func(kept v1alpha1.KernelArgument) bool {
		other := parsed(string(kept))
		return string(kept) == text || slices.Contains(overridable(), other.Name) && c.overrides(argument, []string{other.Name}, []string{string(kept)})
	})
	*arguments = append(*arguments, v1alpha1.KernelArgument(text))
}

// driverField chooses the mode of the frequency drivers.
const driverField = "spec.power.frequencyDriver"

// overridable are the arguments that this package adds by itself and of which the kernel obeys the last.
func overridable() []string {
	names := []string{"rcutree.kthread_prio", "intel_pstate", "amd_pstate"}
	for _, group := range argumentGroups() {
		names = append(names, group.names...)
	}
	return names
}

// argumentGroup are arguments that one field computes.
type argumentGroup struct {
	field string
	names []string
	// computed are the arguments that the field stands for in a PerformanceProfile; none when it computes none.
	computed func(*converter) []string
	// release makes the field compute none.
	release func(*converter)
}

// argumentGroups lists the fields whose arguments a user may override.
func argumentGroups() []argumentGroup {
	when := func(condition bool, arguments ...string) []string {
		if condition {
			return arguments
		}
		return nil
	}
	return []argumentGroup{
		{
			"spec.kernel.clocksource", []string{"tsc"},
			func(c *converter) []string {
				return when(c.spec.Kernel.Clocksource == v1alpha1.ClocksourceReliableTSC, "tsc=reliable")
			},
			func(c *converter) { c.spec.Kernel.Clocksource = v1alpha1.ClocksourceKept },
		},
		{
			"spec.kernel.watchdogs", []string{"nmi_watchdog", "nosoftlockup"},
			func(c *converter) []string {
				return when(c.spec.Kernel.Watchdogs == v1alpha1.ActivityDisabled, "nmi_watchdog=0", "nosoftlockup")
			},
			func(c *converter) { c.spec.Kernel.Watchdogs = v1alpha1.ActivityKept },
		},
		{
			"spec.kernel.iommu", []string{"intel_iommu", "iommu"},
			func(c *converter) []string { return when(c.spec.Kernel.IOMMU == "", "intel_iommu=on", "iommu=pt") },
			func(c *converter) { c.spec.Kernel.IOMMU = v1alpha1.IOMMUKept },
		},
		{
			driverField, []string{"intel_pstate", "amd_pstate"}, driverArguments,
			func(c *converter) { c.spec.Power.FrequencyDriver = v1alpha1.FrequencyDriverKept },
		},
		{
			"spec.power.idleStates", []string{"processor.max_cstate", "intel_idle.max_cstate", "idle"}, idleStateArguments,
			func(c *converter) { c.spec.Power.IdleStates = v1alpha1.IdleShallowByQoS },
		},
		{
			"spec.cpus.tick", []string{"nohz"},
			func(c *converter) []string { return when(c.spec.CPUs.Tick == v1alpha1.TickStopped, "nohz=on") },
			func(c *converter) { c.spec.CPUs.Tick = v1alpha1.TickPeriodic },
		},
	}
}

// dependsOnNode reports whether a field computes another argument on other nodes, so that no argument of a user means the
// same everywhere.
func (c *converter) dependsOnNode(group argumentGroup) bool {
	return group.field == driverField && c.spec.Power.FrequencyDriver == v1alpha1.FrequencyDriverRecommended
}

// driverArguments are what spec.power.frequencyDriver computes. Written out, Recommended is what TuneD recommends
// for processors since Ice Lake.
func driverArguments(c *converter) []string {
	modes := map[v1alpha1.FrequencyDriverMode]string{
		v1alpha1.FrequencyDriverActive: "active", v1alpha1.FrequencyDriverPassive: "passive",
	}
	if c.spec.Power.FrequencyDriver == v1alpha1.FrequencyDriverRecommended {
		return []string{"intel_pstate=active", "amd_pstate=guided"}
	}
	mode, ok := modes[c.spec.Power.FrequencyDriver]
	if !ok {
		return nil
	}
	return []string{"intel_pstate=" + mode, "amd_pstate=" + mode}
}

// idleStateArguments are what spec.power.idleStates, or the preset without it, computes.
func idleStateArguments(c *converter) []string {
	states := c.spec.Power.IdleStates
	if states == "" {
		states = map[v1alpha1.PowerPreset]v1alpha1.IdleStates{
			v1alpha1.PowerMaximumDeterminism: v1alpha1.IdlePolling,
			v1alpha1.PowerHighPerformance:    v1alpha1.IdleShallowByKernel,
		}[c.spec.Power.Preset]
	}
	switch states {
	case v1alpha1.IdlePolling:
		return []string{"processor.max_cstate=1", "intel_idle.max_cstate=0", "idle=poll"}
	case v1alpha1.IdleShallowByKernel:
		return []string{"processor.max_cstate=1", "intel_idle.max_cstate=0"}
	default:
		return nil
	}
}

// idleArguments turns arguments that amount to a mode of spec.power.idleStates into that mode, so that
// the plan and its verification know of it.
func (c *converter) idleArguments(arguments []cmdline.Arg) {
	has := func(text string) bool {
		return slices.ContainsFunc(arguments, func(a cmdline.Arg) bool { return a.Text() == text })
	}
	leavesChoice := []v1alpha1.PowerPreset{v1alpha1.PowerLowLatency, v1alpha1.PowerHighPerformance}
	if c.isARM64() || !slices.Contains(leavesChoice, c.spec.Power.Preset) {
		return
	}
	switch {
	case has("idle=poll"):
		c.spec.Power.IdleStates = v1alpha1.IdlePolling
	case has("processor.max_cstate=1") && has("intel_idle.max_cstate=0"):
		c.spec.Power.IdleStates = v1alpha1.IdleShallowByKernel
	default:
		return
	}
	c.remark(argumentsField, "the arguments that limit idle states became spec.power.idleStates: %s.", c.spec.Power.IdleStates)
}

// machineCheckArgument converts mce=off and mce=ignore_ce, and leaves out others beside mce=off, which
// are without effect.
func (c *converter) machineCheckArgument(argument cmdline.Arg) bool {
	modes := map[string]v1alpha1.MachineChecks{
		"off": v1alpha1.MachineChecksOff, "ignore_ce": v1alpha1.MachineChecksCorrectedErrorsIgnored,
	}
	if argument.Name != "mce" {
		return false
	}
	mode, ok := modes[argument.Value]
	switch {
	case c.spec.Kernel.MachineChecks == v1alpha1.MachineChecksOff:
		if mode != v1alpha1.MachineChecksOff {
			c.remark(argumentsField, "%s has no effect beside mce=off and was left out.", argument.Text())
		}
		return true
	case ok:
		c.spec.Kernel.MachineChecks = mode
		return true
	default:
		return false
	}
}

// partitionArgument deals with arguments that decide which CPUs there are and what runs on them. These
// follow from the fields of the profile, so they are left out, with a remark unless they say the same.
func (c *converter) partitionArgument(argument cmdline.Arg) bool {
	name := cmdline.Machine{}.Parameter(argument)
	explicit := c.spec.CPUs.Explicit
	isolated := union(explicit.Isolated, explicit.DataPlane)
	same := map[string][]string{
		"nosmt":                          {"nosmt"},
		"isolcpus":                       {"isolcpus=managed_irq," + isolated, "isolcpus=domain,managed_irq," + isolated},
		"nohz_full":                      {"nohz_full=" + isolated},
		"rcu_nocbs":                      {"rcu_nocbs=" + isolated},
		"systemd.cpu_affinity":           {"systemd.cpu_affinity=" + union(explicit.Housekeeping, explicit.Shared)},
		"skew_tick":                      {"skew_tick=1"},
		"rcupdate.rcu_normal_after_boot": {"rcupdate.rcu_normal_after_boot=1"},
		"transparent_hugepage":           {"transparent_hugepage=never"},
		"maxcpus":                        nil, "nr_cpus": nil, "possible_cpus": nil,
	}
	if explicit.DataPlane != "" || c.spec.Interrupts.Placement == v1alpha1.InterruptsHousekeeping {
		same["irqaffinity"] = []string{"irqaffinity=" + union(explicit.Housekeeping, explicit.Shared)}
	}
	if c.spec.Kernel.Type == v1alpha1.KernelRealTime {
		same["rcutree.kthread_prio"] = []string{"rcutree.kthread_prio=11"}
	}
	texts, ok := same[name]
	if !ok {
		return false
	}
	if name == "nosmt" {
		c.spec.CPUs.SimultaneousMultithreading = v1alpha1.SMTDisabled
	}
	switch {
	case c.isAmong(argument, texts):
	case name == "rcupdate.rcu_normal_after_boot":
		c.remark(argumentsField, "%s was left out: the plan boots with 1, because expedited RCU grace periods interrupt every CPU.", argument.Text())
	default:
		c.remark(argumentsField, "%s was left out: other fields of the profile decide it.", argument.Text())
	}
	return true
}
