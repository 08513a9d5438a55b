// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package verify holds the catalogue of checks that prove, from what a running kernel says about
// itself, whether a plan is in force on a host. A check has three outcomes: the kernel satisfies it,
// contradicts it, or does not give the facts. It is pure.
package verify

import (
	"cmp"
	"path"
	"sync"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Input is what the checks are evaluated on.
type Input struct {
	// Plan is what the host is to be.
	Plan *plan.NodePlan
	// Facts are what the host says now.
	Facts *host.Facts
	// Before are what the same host said earlier; nil when it was read once only. Checks that compare
	// counters of two moments are then left out of the report.
	Before *host.Facts
	// Meanwhile is what the kubelet's CPU manager kept (host.Kubelet.CPUManagerState) between Before and Facts.
	Meanwhile []host.Fact[string]
	// Holders are the containers that hold a NIC of a BypassNICPool, as the kubelet tells; nil when no pool selects
	// the node.
	Holders *host.Fact[[]allocation.Holder]
	// Containers are all containers of the node with what they hold, as the kubelet's PodResources service tells; nil
	// when nobody asked it. Without it, the state of the kubelet's CPU manager tells who owns which CPUs.
	Containers *host.Fact[[]allocation.Container]
	// Allocatable is what the kubelet may give to containers, from the same service; nil when nobody asked it.
	Allocatable *host.Fact[Allocatable]
	// Qualification is the measurement that the host has passed last, of those that its profile asks for; nil without one.
	Qualification *Qualification
	// FailOn says which failures decide conditions, in place of the plan; "" leaves it to the plan.
	FailOn v1alpha1.FailureThreshold
}

// Allocatable is what the kubelet may give to containers.
type Allocatable struct {
	// CPUs that it may give to one container alone.
	CPUs cpus.Set
	// Devices of device plugins, one entry for each resource and NUMA node.
	Devices []allocation.HeldDevices
}

// Result is the outcome of one check on one host.
type Result struct {
	Check   Check
	Outcome v1alpha1.Outcome
	// Message is one sentence that names the object: CPU, IRQ, file or NIC.
	Message string
	// Observed is what the kernel says, Expected what the plan says.
	Observed, Expected string
	// Objects are the parts of the node that the result is about, all of them; none when it is about the node as a whole,
	// and when the check passed.
	Objects finding.Objects
	// Fix is what to do; "" when the check passed.
	Fix string
	// Reboot says whether the fix takes effect only after a reboot; "" when the check passed.
	Reboot v1alpha1.RebootRequirement
	// Decides are the condition types that the result keeps from being True; none for a lesser finding, and when the
	// check passed or is waived.
	Decides []string
}

// Skip is a check that was not evaluated.
type Skip struct {
	Check v1alpha1.CheckID
	// Reason is why.
	Reason string
}

// Report is the outcome of all checks on one host.
type Report struct {
	// Results of the checks that apply to the plan, in the order of the catalogue.
	Results []Result
	// Skipped are the checks that do not apply to the plan, and those that compare the counters of two
	// moments when only one was read.
	Skipped []Skip
}

// Reasons for which a check is skipped.
const (
	skippedWithoutWindow = "it compares counters of two moments, and the host was read once only"
	skippedByPlan        = "the plan does not ask for it"
	skippedUnqualified   = "only a qualification run judges it, and there was none: no reading that leaves isolated CPUs alone can answer it"
	skippedUncounted     = "nobody counted system management interrupts during the qualification run: "
)

// Evaluate runs every check of the catalogue. It never fails: what cannot be read is Unknown.
func Evaluate(in Input) Report {
	catalogue := Catalogue()
	s := newState(in, catalogue)
	judged := in.judgement()
	var report Report
	for _, check := range catalogue {
		if reason := in.lacks(check); reason != "" {
			report.Skipped = append(report.Skipped, Skip{Check: check.ID, Reason: reason})
			continue
		}
		found := check.run(s)
		if found.outcome == "" {
			report.Skipped = append(report.Skipped, Skip{Check: check.ID, Reason: skippedByPlan})
			continue
		}
		report.Results = append(report.Results, check.result(found, judged))
	}
	return report
}

// lacks says why a check cannot be evaluated on this input; "" when it can.
func (in Input) lacks(check Check) string {
	switch {
	case check.Window && in.Before == nil:
		return skippedWithoutWindow
	case check.Qualification && in.Qualification == nil:
		return skippedUnqualified
	case check.ID == checkManagementInterrupts && !in.Qualification.ManagementInterrupts.Known:
		return skippedUncounted + in.Qualification.ManagementInterrupts.Reason
	}
	return ""
}

// judgement is what a profile makes of what its checks find.
type judgement struct {
	// waived maps the checks that it waives to the reason of each.
	waived map[v1alpha1.CheckID]string
	// failOn says which failures decide conditions.
	failOn v1alpha1.FailureThreshold
}

func (in Input) judgement() judgement {
	verification := in.Plan.Verification
	judged := judgement{waived: map[v1alpha1.CheckID]string{}, failOn: cmp.Or(in.FailOn, verification.FailOn)}
	for _, w := range verification.Waived {
		judged.waived[w.Check] = w.Reason
	}
	return judged
}

// result turns what a check found into its result.
func (c Check) result(found verdict, by judgement) Result {
	result := Result{
		Check: c, Outcome: found.outcome, Message: found.message,
		Observed: found.observed, Expected: found.expected, Objects: found.objects,
	}
	if found.outcome == v1alpha1.OutcomePassed {
		return result
	}
	result.Fix, result.Reboot = c.Fix, c.Reboot
	if found.fix != "" {
		result.Fix = found.fix
	}
	if found.reboot != "" {
		result.Reboot = found.reboot
	}
	if waiver := by.waived[c.ID]; waiver != "" {
		result.Outcome = v1alpha1.OutcomeWaived
		result.Message += " (waived: " + waiver + ")"
	}
	result.Decides = c.Decides(result.Outcome, by.failOn)
	return result
}

// state is what the checks read: the input, and what several of them derive from it.
type state struct {
	plan   *plan.NodePlan
	facts  *host.Facts
	before *host.Facts
	// meanwhile are states of the CPU manager between before and facts.
	meanwhile []host.Fact[string]
	holders   *host.Fact[[]allocation.Holder]

	containers    *host.Fact[[]allocation.Container]
	allocatable   *host.Fact[Allocatable]
	qualification *Qualification
	// owned are the containers that own CPUs; computed when first asked for.
	owned func() []owner
	// quiet are the CPUs that device interrupts must leave alone; computed when first asked for.
	quiet func() cpus.Set
	// ownersBetween are the containers that own CPUs or owned them since the reading before; computed when first asked for.
	ownersBetween func() []owner
	// running is the command line of the running kernel, planned the arguments of the plan.
	running host.Fact[cmdline.Line]
	planned cmdline.Line
	// cpuByID indexes facts.CPUs.List.
	cpuByID map[int]*host.CPU
	// judged are patterns of the settings that some check judges by itself.
	judged []string
	// routes are those of interrupts by their numbers; computed when first asked for.
	routes func() map[int]*host.InterruptRoute
	// nicOfVector is the PCI address of the NIC that an interrupt belongs to; computed when first asked for.
	nicOfVector func() map[int]string
}

func newState(in Input, catalogue []Check) *state {
	s := &state{
		plan: in.Plan, facts: in.Facts, before: in.Before, meanwhile: in.Meanwhile, holders: in.Holders,
		containers: in.Containers, allocatable: in.Allocatable, qualification: in.Qualification,
		running: runningLine(in.Facts), planned: in.Plan.ArgumentLine(),
		cpuByID: make(map[int]*host.CPU, len(in.Facts.CPUs.List)),
	}
	for i := range in.Facts.CPUs.List {
		cpu := &in.Facts.CPUs.List[i]
		s.cpuByID[cpu.ID] = cpu
	}
	for _, check := range catalogue {
		s.judged = append(s.judged, check.owns...)
	}
	s.nicOfVector = sync.OnceValue(s.vectors)
	s.routes = sync.OnceValue(s.routesByNumber)
	s.quiet = sync.OnceValue(s.findQuietCPUs)
	s.ownersBetween = sync.OnceValue(s.findOwnersBetween)
	s.owned = sync.OnceValue(func() []owner { return s.owners().Value })
	return s
}

// isOwned reports whether a check of its own judges the setting.
func (s *state) isOwned(setting string) bool {
	for _, pattern := range s.judged {
		if matched, err := path.Match(pattern, setting); err == nil && matched {
			return true
		}
	}
	return false
}
