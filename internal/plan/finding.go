// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// Finding says what in a profile cannot be met on one node, or what is doubtful there.
type Finding struct {
	// Rule identifies the planning rule, such as plan.cpus-exist.
	Rule string `json:"rule"`
	// Severity Critical means that there is no plan for the node.
	Severity v1alpha1.Severity `json:"severity"`
	// Field is the field of the profile, such as spec.memory.hugepages[1].
	Field string `json:"field"`
	// Message is one sentence: what is wrong, with values. It names neither the field nor the node, so that a finding
	// reads alike on all nodes that have it.
	Message string `json:"message"`
	// Objects are the CPUs, NICs and NUMA nodes of the node that it is about; none when it is about the node as a whole.
	Objects finding.Objects `json:"objects,omitzero"`
	// Remedy says what to do.
	Remedy string `json:"remedy"`
}

// FindingKey is equal for findings that read alike on all nodes that have them.
type FindingKey struct {
	Rule                   string
	Severity               v1alpha1.Severity
	Field, Message, Remedy string
}

// Key identifies what the finding says, whichever node it is about.
func (f Finding) Key() FindingKey {
	return FindingKey{Rule: f.Rule, Severity: f.Severity, Field: f.Field, Message: f.Message, Remedy: f.Remedy}
}

// Sentence says what is wrong on the node of this name, and what to do.
func (f Finding) Sentence(node string) string {
	return strings.TrimSpace(fmt.Sprintf("%s on node %s: %s %s", f.Field, node, f.Message, f.Remedy))
}

// RulePoolConflict is the rule about what a BypassNICPool claims and another one has. It changes nothing of a plan.
const RulePoolConflict = "plan.pool-conflict"

// The planning rules. Each names one thing that a profile may ask and a host may be unable to give.
const (
	ruleProfileName       = "plan.profile-name"
	ruleUnsafeText        = "plan.unsafe-text"
	ruleArchitecture      = "plan.architecture"
	ruleVendor            = "plan.vendor"
	rulePageSize          = "plan.page-size"
	ruleRealTime          = "plan.real-time-kernel"
	ruleSMT               = "plan.smt"
	ruleClock             = "plan.clock"
	ruleBootFallback      = "plan.boot-fallback"
	ruleOfflineCPUs       = "plan.offline-cpus"
	ruleCPUList           = "plan.cpu-list"
	ruleCPUsExist         = "plan.cpus-exist"
	ruleCPUsOverlap       = "plan.cpus-overlap"
	ruleCPUsCovered       = "plan.cpus-covered"
	ruleNothingIsolated   = "plan.nothing-isolated"
	ruleNoHousekeeping    = "plan.no-housekeeping"
	ruleBootCPU           = "plan.boot-cpu"
	ruleSplitSiblings     = "plan.split-siblings"
	ruleNUMAHousekeeping  = "plan.numa-housekeeping"
	ruleNUMAIsolated      = "plan.numa-isolated"
	ruleSharedCache       = "plan.shared-cache"
	ruleHousekeepingShare = "plan.housekeeping-share"
	ruleEfficiency        = "plan.efficiency-cores"
	ruleDataPlane         = "plan.data-plane"
	ruleNICSelection      = "plan.nic-selection"
	ruleNICLocality       = "plan.nic-locality"
	ruleKernelArguments   = "plan.kernel-arguments"
	ruleCommandLineLength = "plan.command-line-length"
	ruleHugepageSize      = "plan.hugepage-size"
	ruleHugepagePlace     = "plan.hugepage-place"
	ruleHugepageMemory    = "plan.hugepage-memory"
	ruleReservedMemory    = "plan.reserved-memory"
	ruleQuantity          = "plan.quantity"
	ruleKubeletExtra      = "plan.kubelet-configuration"
	ruleNUMANodeCount     = "plan.numa-node-count"
	ruleIdleStates        = "plan.idle-states"
	ruleFrequencyDriver   = "plan.frequency-driver"
	ruleFrequencyRange    = "plan.frequency-range"
	ruleTurbo             = "plan.turbo"
	ruleIOMMU             = "plan.iommu"
	ruleKernelParameters  = "plan.kernel-parameters"
	ruleStopServices      = "plan.stop-services"
	ruleHazard            = "plan.dangerous-setting"
	rulePoolNIC           = "plan.pool-nic"
	rulePoolFunctions     = "plan.pool-virtual-functions"
	rulePoolDriver        = "plan.pool-driver"
	rulePoolInterrupts    = "plan.pool-interrupts"
)

// about adds what of the node the finding is about.
func (f *Finding) about(objects ...finding.Objects) {
	f.Objects = finding.Union(append(objects, f.Objects)...)
}

// report adds a finding. The message is completed to a sentence. The finding is good for about until the next one is
// reported.
func (p *planner) report(severity v1alpha1.Severity, rule, field, remedy, format string, values ...any) *Finding {
	p.findings = append(p.findings, Finding{
		Rule:     rule,
		Severity: severity,
		Field:    field,
		Message:  fmt.Sprintf(format, values...) + ".",
		Remedy:   remedy,
	})
	return &p.findings[len(p.findings)-1]
}

// critical adds a finding that leaves the node without a plan.
func (p *planner) critical(rule, field, remedy, format string, values ...any) *Finding {
	return p.report(v1alpha1.SeverityCritical, rule, field, remedy, format, values...)
}

// blocked reports whether a finding forbids a plan.
func (p *planner) blocked() bool {
	return slices.ContainsFunc(p.findings, func(f Finding) bool { return f.Severity == v1alpha1.SeverityCritical })
}

// severityRank orders the most severe first.
func severityRank(severity v1alpha1.Severity) int {
	return slices.Index([]v1alpha1.Severity{
		v1alpha1.SeverityCritical, v1alpha1.SeverityHigh, v1alpha1.SeverityMedium, v1alpha1.SeverityLow,
	}, severity)
}

// sortFindings puts the most severe first, and otherwise keeps a fixed order.
func sortFindings(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(severityRank(a.Severity), severityRank(b.Severity)),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Field, b.Field),
			cmp.Compare(a.Message, b.Message),
		)
	})
}
