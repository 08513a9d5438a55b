// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// Check is how one host compares with its plan now. Without a plan only Node, Profile and PlanFindings
// are set.
type Check struct {
	Node     string  `json:"node"`
	Profile  string  `json:"profile"`
	PlanHash *string `json:"planHash"`
	// WindowSeconds is the time between the two readings; null when the host was read once.
	WindowSeconds *float64             `json:"windowSeconds"`
	Counts        v1alpha1.CheckCounts `json:"counts"`
	Conditions    []Condition          `json:"conditions"`
	Findings      []finding.Finding    `json:"findings"`
	Passed        []v1alpha1.CheckID   `json:"passed"`
	Skipped       []Skip               `json:"skipped"`
	NUMANodes     []CheckNUMANode      `json:"numaNodes"`
	// Kubelet are the settings of the kubelet that align pods; null when they were not compared.
	Kubelet      []SettingState `json:"kubelet,omitempty"`
	PlanFindings []plan.Finding `json:"planFindings"`
}

// SettingState compares what was planned with what the kubelet was configured with.
type SettingState struct {
	Name string `json:"name"`
	// Planned is "" where the plan leaves the setting as it is.
	Planned string `json:"planned"`
	// Configured is null when the kubelet's configuration cannot be read.
	Configured *string `json:"configured"`
	// Text says both in a few words.
	Text string `json:"text"`
}

// Condition is a condition that the agent would report.
type Condition struct {
	Type    string                 `json:"type"`
	Status  metav1.ConditionStatus `json:"status"`
	Reason  string                 `json:"reason"`
	Message string                 `json:"message"`
}

// Skip is a check that was not evaluated, and why.
type Skip struct {
	Check  v1alpha1.CheckID `json:"check"`
	Reason string           `json:"reason"`
}

// CheckNUMANode is what a NUMA node offers to latency-critical pods.
type CheckNUMANode struct {
	ID           int             `json:"id"`
	Housekeeping cpus.Set        `json:"housekeeping"`
	Isolated     cpus.Set        `json:"isolated"`
	Hugepages    []HugepageState `json:"hugepages"`
	NICs         []string        `json:"nics"`
	// Vectors are the device interrupts that are delivered to CPUs of the NUMA node, IsolatedVectors those on isolated
	// ones; null when the host does not report, or was not asked.
	Vectors         *int `json:"vectors,omitempty"`
	IsolatedVectors *int `json:"isolatedVectors,omitempty"`
	// Reserved is what the kubelet reserves of the memory of the NUMA node.
	Reserved []SettingState `json:"reserved,omitempty"`
}

// HugepageState compares the pool of one size on one NUMA node with the plan.
type HugepageState struct {
	SizeKibibytes int64 `json:"sizeKibibytes"`
	// Promised is the number that the plan reserves on this NUMA node; null when the kernel spreads the
	// pages of this size.
	Promised *int64 `json:"promised"`
	Total    *int64 `json:"total"`
	Free     *int64 `json:"free"`
}

// Words are the numbers of a pool of hugepages.
func (s HugepageState) Words() string {
	promised := ""
	if s.Promised != nil {
		promised = fmt.Sprintf("planned %d", *s.Promised)
	}
	if s.Total == nil || s.Free == nil {
		return layout.Join(promised, "not reported")
	}
	if *s.Total == 0 && promised == "" {
		return "none"
	}
	return layout.Join(fmt.Sprintf("%d of %d in use", *s.Total-*s.Free, *s.Total), promised)
}

// Shares are the parts of a bar of hugepages.
type Shares struct {
	// Used, Free pages that are there, Missing ones that are planned and not there, and those of which nothing more than the
	// plan is known.
	Used, Free, Missing, Unknown int
}

// Shares divides a bar of the length. Whatever is not 0 gets some of it.
func (s HugepageState) Shares(length int) Shares {
	var planned int64
	if s.Promised != nil {
		planned = *s.Promised
	}
	if s.Total == nil || s.Free == nil {
		return Shares{Unknown: length}
	}
	total := max(*s.Total, planned)
	if total == 0 {
		return Shares{}
	}
	part := func(count int64) int {
		if count <= 0 {
			return 0
		}
		return max(1, int(float64(count)/float64(total)*float64(length)))
	}
	shares := Shares{Free: part(*s.Free), Missing: part(planned - *s.Total)}
	shares.Used = length - shares.Free - shares.Missing
	if *s.Total == *s.Free {
		// What rounding left over belongs to what there is most of.
		if shares.Free > shares.Missing {
			shares.Free += shares.Used
		} else {
			shares.Missing += shares.Used
		}
		shares.Used = 0
	}
	return shares
}

// OfReport is the view of a report.
func OfReport(node string, p *plan.NodePlan, t *topology.Topology, report verify.Report, findings []plan.Finding) Check {
	hash := p.Hash()
	view := Check{
		Node: node, Profile: p.Profile, PlanHash: &hash,
		Counts:       report.Counts(),
		Conditions:   each(report.Conditions(0), condition),
		Findings:     report.Findings(),
		Passed:       passedChecks(report),
		Skipped:      each(report.Skipped, func(s verify.Skip) Skip { return Skip{s.Check, s.Reason} }),
		NUMANodes:    each(t.NUMANodes, func(n topology.NUMANode) CheckNUMANode { return checkNUMANode(n, p, t) }),
		PlanFindings: append([]plan.Finding{}, findings...),
	}
	return view
}

// passedChecks are the checks that passed, in the order of the catalogue.
func passedChecks(report verify.Report) []v1alpha1.CheckID {
	passed := []v1alpha1.CheckID{}
	for _, result := range report.Results {
		if result.Outcome == v1alpha1.OutcomePassed {
			passed = append(passed, result.Check.ID)
		}
	}
	return passed
}

// AddTruth adds interrupts, reserved memory and the kubelet's settings to the NUMA nodes.
func (c *Check) AddTruth(truth verify.Truth) {
	c.Kubelet = each(truth.Kubelet, settingState)
	addTruth(c.NUMANodes, truth)
}

// addTruth adds interrupts and reserved memory to NUMA nodes.
func addTruth(nodes []CheckNUMANode, truth verify.Truth) {
	for _, local := range truth.Nodes {
		for i := range nodes {
			if node := &nodes[i]; node.ID == local.ID {
				node.Vectors, node.IsolatedVectors = local.Vectors.Pointer(), local.IsolatedVectors.Pointer()
				node.Reserved = each(local.Reserved, settingState)
			}
		}
	}
}

func settingState(truth verify.SettingTruth) SettingState {
	return SettingState{Name: truth.Name, Planned: truth.Planned, Configured: truth.Configured.Pointer(), Text: truth.String()}
}

// Unplanned is the view of a host that the profile does not fit.
func Unplanned(node, profile string, findings []plan.Finding) Check {
	return Check{
		Node: node, Profile: profile,
		Conditions: []Condition{}, Findings: []finding.Finding{}, Passed: []v1alpha1.CheckID{}, Skipped: []Skip{},
		NUMANodes: []CheckNUMANode{}, PlanFindings: append([]plan.Finding{}, findings...),
	}
}

// Status sums up the conditions: False when one of them is False or there is no plan to check, else Unknown when one is
// Unknown, else True.
func (c Check) Status() metav1.ConditionStatus {
	return statusOf(c.PlanHash != nil, c.Conditions, func(c Condition) metav1.ConditionStatus { return c.Status })
}

// statusOf is the worst status of the conditions; False without a plan, and Unknown without conditions.
func statusOf[T any](hasPlan bool, conditions []T, status func(T) metav1.ConditionStatus) metav1.ConditionStatus {
	isFalse := func(condition T) bool { return status(condition) == metav1.ConditionFalse }
	isOpen := func(condition T) bool { return status(condition) != metav1.ConditionTrue }
	switch {
	case !hasPlan, slices.ContainsFunc(conditions, isFalse):
		return metav1.ConditionFalse
	case len(conditions) == 0, slices.ContainsFunc(conditions, isOpen):
		return metav1.ConditionUnknown
	}
	return metav1.ConditionTrue
}

func condition(c metav1.Condition) Condition {
	return Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

// checkNUMANode is what a NUMA node offers by the plan, or without one, when it is nil.
func checkNUMANode(node topology.NUMANode, p *plan.NodePlan, t *topology.Topology) CheckNUMANode {
	if p == nil {
		p = &plan.NodePlan{}
	}
	view := CheckNUMANode{
		ID:           node.ID,
		Housekeeping: p.CPUs.Housekeeping.Intersection(node.CPUs),
		Isolated:     p.CPUs.Isolated.Intersection(node.CPUs),
		Hugepages:    []HugepageState{},
		NICs:         []string{},
	}
	for _, pool := range numaNode(node).Hugepages {
		state := HugepageState{SizeKibibytes: pool.SizeKibibytes, Total: pool.Total, Free: pool.Free}
		state.Promised = promised(node.ID, pool.SizeKibibytes, p.Hugepages)
		if state.Promised == nil || *state.Promised > 0 || pool.Total == nil || *pool.Total > 0 {
			view.Hugepages = append(view.Hugepages, state)
		}
	}
	for _, nic := range t.NICs {
		if nic.NUMANode != nil && *nic.NUMANode == node.ID && nic.PhysicalFunction == "" {
			view.NICs = append(view.NICs, nicName(nic))
		}
	}
	return view
}

// promised adds up the pages of one size that the plan reserves on one NUMA node.
func promised(node int, sizeKibibytes int64, reservations []plan.HugepagePlan) *int64 {
	var sum int64
	for _, reservation := range reservations {
		if reservation.SizeKibibytes != sizeKibibytes {
			continue
		}
		if reservation.NUMANode == nil {
			return nil
		}
		if *reservation.NUMANode == node {
			sum += reservation.Count
		}
	}
	return &sum
}

func nicName(nic topology.NIC) string {
	if nic.Name != "" {
		return nic.Name
	}
	return nic.PCIAddress
}
