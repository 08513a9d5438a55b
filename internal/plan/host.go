// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// checkHost refuses hosts for which nothing can be planned, and kernels that do not exist for them.
func (p *planner) checkHost() {
	p.plan.CPUs.SMT = p.spec.CPUs.SimultaneousMultithreading
	p.checkArchitecture()
	p.checkSMT()
	p.checkOfflineCPUs()
	p.checkClock()
}

// checkClock speaks up where the plan relies on a time-stamp counter that is not stable. With tsc=reliable the kernel trusts
// it all the same; without, it reads a slower clock, and a CPU whose clock is not stable keeps its tick
// (TICK_DEP_BIT_CLOCK_UNSTABLE of kernel/time/tick-sched.c). Hypervisors have clocks of their own, which may be stable.
func (p *planner) checkClock() {
	const field = "spec.kernel.clocksource"
	if p.topology.TimestampCounter != v1alpha1.TimestampCounterUnstable {
		return
	}
	hypervisor := p.topology.Hypervisor
	whose, remedy := "The time-stamp counter of the processor", "Use a processor with an invariant counter, or see in the kernel's log why it was found unstable"
	if hypervisor != "" {
		whose = "The time-stamp counter of this virtual machine (hypervisor " + hypervisor + ")"
		remedy = "Let the hypervisor pass an invariant counter on (of KVM: processor model host-passthrough with the feature invtsc)"
	}
	switch {
	case p.spec.Kernel.Clocksource == v1alpha1.ClocksourceReliableTSC:
		p.report(v1alpha1.SeverityHigh, ruleClock, field, remedy+", or set "+field+" to Kept.",
			"%s is not stable, and tsc=reliable lets the kernel trust it all the same: time may jump or run at another rate", whose)
	case p.spec.CPUs.Tick == v1alpha1.TickStopped && hypervisor == "":
		p.report(v1alpha1.SeverityMedium, ruleClock, "spec.cpus.tick", remedy+".",
			"%s is not stable, so the kernel reads a slower clock, and isolated CPUs keep their tick", whose)
	}
}

func (p *planner) checkArchitecture() {
	const field = "status.inventory"
	switch p.topology.Architecture {
	case architectureAMD64:
		if v := p.topology.Vendor; v != vendorIntel && v != vendorAMD {
			p.report(v1alpha1.SeverityMedium, ruleVendor, field,
				"Set what the processor needs in spec.kernel.additionalArguments.",
				"the processor's vendor is %q, so no argument that only Intel or AMD kernels know is planned", v)
		}
	case architectureARM64:
	case "":
		p.critical(ruleArchitecture, field, "Let the agent report the node again, or take a complete snapshot.",
			"the host does not report its architecture, and kernel arguments depend on it")
	default:
		p.critical(ruleArchitecture, field, "Exclude the node by spec.nodeSelector.",
			"architecture %s is neither amd64 nor arm64", p.topology.Architecture)
	}
}

// checkSMT speaks up where nosmt may do nothing: arm64 has had SMT control since Linux 6.15
// (arch/arm64/Kconfig selects HOTPLUG_SMT).
func (p *planner) checkSMT() {
	threaded := false
	for _, c := range p.topology.Cores {
		threaded = threaded || c.CPUs.Len() > 1
	}
	if p.spec.CPUs.SimultaneousMultithreading != v1alpha1.SMTDisabled || !threaded ||
		p.topology.Architecture != architectureARM64 || p.release.AtLeast(6, 15) {
		return
	}
	p.report(v1alpha1.SeverityMedium, ruleSMT, "spec.cpus.simultaneousMultithreading",
		"Disable multithreading in the firmware, or use a kernel of at least 6.15.",
		"arm64 kernel %q may not know nosmt, which came with Linux 6.15", p.topology.KernelRelease)
}

func (p *planner) checkOfflineCPUs() {
	if p.machine.hidden.IsEmpty() {
		return
	}
	p.report(v1alpha1.SeverityMedium, ruleOfflineCPUs, "spec.cpus.simultaneousMultithreading",
		"Let the node reboot; the plan is made again, with these CPUs, when they are online.",
		"CPUs %s are offline because the running kernel was booted with nosmt, and the host does not report "+
			"which cores they belong to, so this plan does not divide them", p.machine.hidden).
		about(finding.OfCPUs(p.machine.hidden))
}

// reportByHand says what it means that a way back by hand is enough.
func (p *planner) reportByHand() {
	p.report(v1alpha1.SeverityLow, ruleBootFallback, "spec.rollout.bootFallback",
		"Have the console of such hosts at hand, or give /boot a partition of its own with ext4 there and leave the field out.",
		"on an ordinary host whose boot loader cannot take a trial back, a kernel that does not come up is started again and "+
			"again until somebody chooses the former entry at the console")
}

// planKernel decides the kernel flavour and page size. 64 KiB pages exist on arm64 only, and there is no
// real-time kernel with them.
func (p *planner) planKernel() {
	const field = "spec.memory.kernelPageSize"
	kernel, pages := p.spec.Kernel.Type, p.spec.Memory.KernelPageSize
	p.plan.Kernel = KernelPlan{Type: kernel, PageSize: pages, Origin: p.origin("spec.kernel.type")}
	if fallback := p.spec.Rollout.BootFallback; fallback == v1alpha1.BootFallbackByHandAccepted {
		p.plan.Kernel.BootFallback = fallback
		p.reportByHand()
	}
	if pages != v1alpha1.PageSize64Ki {
		return
	}
	p.plan.Kernel.Origin = p.origin(field)
	if p.topology.Architecture == architectureAMD64 {
		p.critical(rulePageSize, field, "Leave spec.memory.kernelPageSize out, or select arm64 nodes only.",
			"amd64 has no kernel with 64 KiB pages")
	}
	if kernel == v1alpha1.KernelRealTime {
		p.critical(ruleRealTime, field, "Choose either 64Ki pages or the real-time kernel.",
			"there is no real-time kernel with 64 KiB pages")
	}
}

// The patterns repeat the API's own validation, so that a profile that no API server has seen cannot put
// line breaks or quotes into a file or a command line either.
var (
	kernelArgumentPattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.,:;/@+=!&%*~-]*)?$`)
	unitNamePattern       = regexp.MustCompile(`^[A-Za-z0-9_.:@-]+[.](service|socket|timer|path|target|mount|slice)$`)
	moduleNamePattern     = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	runtimeClassPattern   = regexp.MustCompile(`^performance-[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	parameterNamePattern  = regexp.MustCompile(`^[a-z0-9_-]+([.][A-Za-z0-9_-]+)+$`)
	parameterValuePattern = regexp.MustCompile(`^[A-Za-z0-9_.,:/+ -]+$`)
)

// checkProfile refuses texts that could break out of the files and the command line they are put into.
func (p *planner) checkProfile() {
	if problems := validation.IsDNS1123Subdomain(p.input.Profile.Name); len(problems) > 0 {
		p.critical(ruleProfileName, "metadata.name", "Rename the profile.",
			"%q is not a valid name, and it becomes a part of file and object names: %s", p.input.Profile.Name, problems[0])
	}
	if name := p.spec.ContainerRuntime.RuntimeClassName; name != "" {
		p.match("spec.containerRuntime.runtimeClassName", runtimeClassPattern, name)
	}
	matchAll(p, "spec.kernel.additionalArguments", kernelArgumentPattern, p.spec.Kernel.AdditionalArguments)
	matchAll(p, "spec.system.stopServices", unitNamePattern, p.spec.System.StopServices)
	matchAll(p, "spec.system.unloadModules", moduleNamePattern, p.spec.System.UnloadModules)
	for i, parameter := range p.spec.System.KernelParameters {
		field := element("spec.system.kernelParameters", i)
		p.match(field, parameterNamePattern, parameter.Name)
		p.match(field, parameterValuePattern, parameter.Value)
	}
}

// matchAll reports the texts of a list that do not match.
func matchAll[T ~string](p *planner, field string, pattern *regexp.Regexp, texts []T) {
	for i, text := range texts {
		p.match(element(field, i), pattern, string(text))
	}
}

func (p *planner) match(field string, pattern *regexp.Regexp, text string) {
	if !pattern.MatchString(text) {
		p.critical(ruleUnsafeText, field, "Write it with the characters that the field's documentation allows.",
			"%q holds characters that are not allowed", text)
	}
}

// element is the path of a list's element.
func element(field string, index int) string { return field + "[" + strconv.Itoa(index) + "]" }
