// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// Node is one machine with everything that is known about it: its hardware, what its plan makes of each CPU, who uses
// it, and what its kernel says.
type Node struct {
	Node    string `json:"node"`
	Profile string `json:"profile"`
	// PlanHash is null when there is no plan.
	PlanHash *string `json:"planHash"`
	// Problems say why parts of what follows are not known, or are out of date.
	Problems []string `json:"problems"`
	// LastLook is when the agent of the node has looked at the host last; absent when that is not known, and for a host
	// that was read just now.
	LastLook *time.Time `json:"lastLook,omitempty"`
	// WindowSeconds is the time between the two readings; null when the host was read once, and from a cluster.
	WindowSeconds *float64 `json:"windowSeconds"`
	// ReportTime is when the agent looked at what its full report tells; null without such a report, and for a host that was
	// read just now.
	ReportTime *time.Time `json:"reportTime"`
	// Counts is null when nothing was verified.
	Counts     *v1alpha1.CheckCounts `json:"counts"`
	Conditions []NodeCondition       `json:"conditions"`
	Machine    Topology              `json:"machine"`
	// Roles of CPUs, those without any CPU left out. No CPU has two.
	Roles []Role `json:"roles"`
	// Containers with exclusive CPUs; null when that is not known.
	Containers []nodereport.Container `json:"containers"`
	NUMANodes  []CheckNUMANode        `json:"numaNodes"`
	// Kubelet are the settings of the kubelet that align pods; absent when they were not compared.
	Kubelet  []SettingState `json:"kubelet,omitempty"`
	Pools    []Pool         `json:"pools"`
	Findings []NodeFinding  `json:"findings"`
	// Passed and Skipped are null where only the LowLatencyNode is known, which has their number only.
	Passed       []v1alpha1.CheckID `json:"passed"`
	Skipped      []Skip             `json:"skipped"`
	PlanFindings []plan.Finding     `json:"planFindings"`
	// Transitions of conditions, the last first, and Drift are what the agent of the node remembers; of a host that was
	// read just now there are none.
	Transitions []v1alpha1.NodeTransition `json:"transitions"`
	Drift       []v1alpha1.CheckDrift     `json:"drift"`
	// Differences are what others have changed of what the guard has written on the host; of a host that was read just now there are none.
	Differences []string `json:"differences"`
	// Jitter is what a measurement on the node found; null without one.
	Jitter *jitter.Result `json:"jitter"`

	topology *topology.Topology
}

// NodeCondition is a condition of a node.
type NodeCondition struct {
	Condition
	// LastTransition is when the status changed last; null for a host that was read just now.
	LastTransition *time.Time `json:"lastTransition"`
}

// RoleName says what a plan makes of a CPU.
type RoleName string

const (
	// RoleHousekeeping CPUs run the system and all that is not latency-critical.
	RoleHousekeeping RoleName = "Housekeeping"
	// RoleShared CPUs are housekeeping CPUs that containers with isolated CPUs may use too.
	RoleShared RoleName = "Shared"
	// RoleIsolated CPUs are kept quiet.
	RoleIsolated RoleName = "Isolated"
	// RoleDataPlane CPUs are isolated ones for a virtual switch.
	RoleDataPlane RoleName = "DataPlane"
	// RoleOwned CPUs are those that a container owns, whatever the plan made of them. It is for drawings only.
	RoleOwned RoleName = "Owned"
	// RoleOffline CPUs are off.
	RoleOffline RoleName = "Offline"
	// RoleNone CPUs are online and in no set of the plan, or there is no plan.
	RoleNone RoleName = "None"
)

// Letter stands for the role in drawings.
func (r RoleName) Letter() string { return r.sign()[0] }

// Words name the role in legends.
func (r RoleName) Words() string { return r.sign()[1] }

func (r RoleName) sign() [2]string {
	return map[RoleName][2]string{
		RoleHousekeeping: {"H", "housekeeping"},
		RoleShared:       {"S", "shared"},
		RoleIsolated:     {"I", "isolated"},
		RoleDataPlane:    {"D", "dataplane"},
		RoleOwned:        {"P", "owned by a container"},
		RoleOffline:      {"o", "offline"},
		RoleNone:         {"-", "in no set of the plan"},
	}[r]
}

// Role is a set of CPUs with the same role.
type Role struct {
	Role RoleName `json:"role"`
	CPUs cpus.Set `json:"cpus"`
}

// NodeFinding is a check that did not pass, with where on the machine it is to be shown.
type NodeFinding struct {
	finding.Finding
	// Documentation of the check.
	Documentation string `json:"documentation"`
	Place         Place  `json:"place"`
}

// NodeInput is what a Node is made of.
type NodeInput struct {
	// Name of the node and of its profile.
	Name, Profile string
	// Topology of the machine.
	Topology *topology.Topology
	// Plan is nil when there is none, or it is not known.
	Plan *plan.NodePlan
	// PlanFindings are those about the plan.
	PlanFindings []plan.Finding
	// Containers with exclusive CPUs; nil when that is not known.
	Containers []nodereport.Container
	// Pools that select the node, each with this node alone.
	Pools []Pool
	// Truth is what the host says about interrupts, memory reserved by the kubelet and the kubelet's settings; nil when that
	// was not read.
	Truth *verify.Truth
	// Jitter is nil without a measurement.
	Jitter *jitter.Result
}

// OfHardware is the view of a machine of which nothing is asked.
func OfHardware(name string, machine *topology.Topology) Node {
	return ofNode(NodeInput{Name: name, Topology: machine})
}

// IsHardware reports whether nothing is asked of the machine, so that there is nothing to say about plans and checks.
func (n *Node) IsHardware() bool { return n.Profile == "" && n.PlanHash == nil && n.Counts == nil }

// OfHost is the view of a host that was read just now. The report is nil without a plan.
func OfHost(in NodeInput, report *verify.Report) Node {
	view := ofNode(in)
	if report == nil {
		return view
	}
	check := OfReport(in.Name, in.Plan, in.Topology, *report, in.PlanFindings)
	view.Counts, view.Passed, view.Skipped = &check.Counts, check.Passed, check.Skipped
	if in.Truth != nil {
		view.addTruth(*in.Truth)
	}
	view.Conditions = each(check.Conditions, func(c Condition) NodeCondition { return NodeCondition{Condition: c} })
	view.setFindings(check.Findings)
	return view
}

// OfStatus is the view of what the agent of a node reports in its LowLatencyNode.
func OfStatus(in NodeInput, object *v1alpha1.LowLatencyNode) Node {
	view := ofNode(in)
	if view.PlanHash == nil {
		view.PlanHash = known(object.Spec.PlanHash)
	}
	view.Counts = object.Status.Checks
	view.Conditions = each(object.Status.Conditions, func(c metav1.Condition) NodeCondition {
		of := NodeCondition{Condition: condition(c)}
		if !c.LastTransitionTime.IsZero() {
			of.LastTransition = known(c.LastTransitionTime.UTC())
		}
		return of
	})
	view.setFindings(each(object.Status.Findings, finding.Reported))
	view.Drift = append(view.Drift, object.Status.Drift...)
	if guard := object.Status.Enactment; guard != nil {
		view.Differences = append(view.Differences, guard.Differences...)
	}
	view.Transitions = append(view.Transitions, object.Status.Transitions...)
	slices.SortStableFunc(view.Transitions, func(a, b v1alpha1.NodeTransition) int { return b.Time.Compare(a.Time.Time) })
	return view
}

// OfCluster is the view of what the agent of a node reports in its LowLatencyNode, and of its full report, unless that is nil: a status has neither
// hugepages nor containers.
func OfCluster(in NodeInput, object *v1alpha1.LowLatencyNode, full *nodereport.Report) Node {
	if full == nil {
		return OfStatus(in, object)
	}
	full.AddHugepages(in.Topology)
	in.Containers = full.Containers
	view := OfStatus(in, object)
	view.AddReport(full, object)
	return view
}

// addTruth adds interrupts, reserved memory and the kubelet's settings.
func (n *Node) addTruth(truth verify.Truth) {
	n.Kubelet = each(truth.Kubelet, settingState)
	addTruth(n.NUMANodes, truth)
}

// AddReport adds what the full report of the agent tells of checks, interrupts and the kubelet, if it is about the plan that the LowLatencyNode was
// verified for: results about another plan, or from before the host became unreadable, would contradict the conditions.
func (n *Node) AddReport(full *nodereport.Report, object *v1alpha1.LowLatencyNode) {
	n.ReportTime = known(full.Time.UTC())
	if full.ContainersProblem != "" {
		n.Problems = append(n.Problems, full.ContainersProblem)
	}
	if full.PlanHash != object.Status.VerifiedPlanHash {
		n.Problems = append(n.Problems, "the full report of the agent is about plan "+full.PlanHash+": the checks that passed are not shown")
		return
	}
	verified := full.Verified()
	counts := verified.Counts()
	n.Counts, n.Passed = &counts, passedChecks(verified)
	n.Skipped = each(verified.Skipped, func(s verify.Skip) Skip { return Skip{s.Check, s.Reason} })
	n.setFindings(verified.Findings())
	n.addTruth(full.Truth())
}

func ofNode(in NodeInput) Node {
	view := Node{
		Node: in.Name, Profile: in.Profile, Problems: []string{}, Conditions: []NodeCondition{},
		Machine: OfTopology(in.Name, in.Topology), Roles: roles(in.Plan, in.Topology), Containers: in.Containers,
		NUMANodes: each(in.Topology.NUMANodes, func(n topology.NUMANode) CheckNUMANode { return checkNUMANode(n, in.Plan, in.Topology) }),
		Pools:     append([]Pool{}, in.Pools...), Findings: []NodeFinding{},
		PlanFindings: append([]plan.Finding{}, in.PlanFindings...), Jitter: in.Jitter, topology: in.Topology,
		Transitions: []v1alpha1.NodeTransition{}, Drift: []v1alpha1.CheckDrift{}, Differences: []string{},
	}
	if in.Plan != nil {
		view.PlanHash = known(in.Plan.Hash())
	}
	for i := range view.NUMANodes {
		view.NUMANodes[i].Hugepages = tellingPools(view.NUMANodes[i].Hugepages, in.Plan != nil)
	}
	return view
}

// tellingPools leaves out pools of which nothing is planned and nothing is known. Without a plan, it is not known what
// is planned.
func tellingPools(pools []HugepageState, planned bool) []HugepageState {
	telling := []HugepageState{}
	for _, pool := range pools {
		if !planned {
			pool.Promised = nil
		}
		if pool.Total != nil || pool.Promised == nil && planned || pool.Promised != nil && *pool.Promised > 0 {
			telling = append(telling, pool)
		}
	}
	return telling
}

func (n *Node) setFindings(findings []finding.Finding) {
	var isolated cpus.Set
	for _, role := range n.Roles {
		if role.Role == RoleIsolated || role.Role == RoleDataPlane {
			isolated = isolated.Union(role.CPUs)
		}
	}
	n.Findings = each(findings, func(f finding.Finding) NodeFinding {
		return NodeFinding{Finding: f, Documentation: documentation(f.Check), Place: placeOf(f, n.topology, isolated)}
	})
}

// Topology is the hardware, as drawings need it.
func (n *Node) Topology() *topology.Topology { return n.topology }

// AllFindings are the findings without their places.
func (n *Node) AllFindings() []finding.Finding {
	return each(n.Findings, func(f NodeFinding) finding.Finding { return f.Finding })
}

// Status sums up the conditions, as that of a Check does.
func (n *Node) Status() metav1.ConditionStatus {
	return statusOf(n.PlanHash != nil, n.Conditions, func(c NodeCondition) metav1.ConditionStatus { return c.Status })
}

// IsMisfit tells that the profile does not fit the node, so that there is no plan; findings about the plan say why.
func (n *Node) IsMisfit() bool { return n.PlanHash == nil && len(n.PlanFindings) > 0 }

// RoleOf is what the plan makes of a CPU.
func (n *Node) RoleOf(cpu int) RoleName {
	for _, role := range n.Roles {
		if role.CPUs.Contains(cpu) {
			return role.Role
		}
	}
	return RoleNone
}

// DrawnRoles are the roles, and that of CPUs that containers own; it comes last, and hides the others.
func (n *Node) DrawnRoles() []Role {
	all := slices.Clone(n.Roles)
	if owned := n.Owned(); !owned.IsEmpty() {
		all = append(all, Role{RoleOwned, owned})
	}
	return all
}

// DrawnRole is the role of a CPU in drawings.
func (n *Node) DrawnRole(cpu int) RoleName {
	if n.Owned().Contains(cpu) {
		return RoleOwned
	}
	return n.RoleOf(cpu)
}

// Names reports whether a failed check names the CPU, and not simply all isolated ones.
func (n *Node) Names(cpu int) bool {
	return slices.ContainsFunc(n.Findings, func(f NodeFinding) bool {
		return !f.Place.EveryIsolated && f.Place.CPUs.Contains(cpu)
	})
}

// NamesNIC reports whether a failed check names the NIC with the PCI address.
func (n *Node) NamesNIC(pciAddress string) bool {
	return slices.ContainsFunc(n.Findings, func(f NodeFinding) bool { return slices.Contains(f.Place.NICs, pciAddress) })
}

// FindingsAt are the failed checks that are to be shown at a NUMA node, the most severe first.
func (n *Node) FindingsAt(node *topology.NUMANode) []NodeFinding {
	nics := layout.PhysicalNICs(n.topology, &node.ID)
	cores := n.topology.CoresOf(node.ID)
	return slices.DeleteFunc(slices.Clone(n.Findings), func(f NodeFinding) bool { return !f.Place.in(node, cores, nics) })
}

// LabelAt names what of a NUMA node a finding is about: CPUs, NICs or the node itself.
func (n *Node) LabelAt(node *topology.NUMANode, f NodeFinding) string {
	return f.Place.label(node, n.topology.CoresOf(node.ID), layout.PhysicalNICs(n.topology, &node.ID))
}

// WideFindings are failed checks that are to be shown at no NUMA node.
type WideFindings struct {
	// What they are about: every isolated CPU, or the whole node.
	What   string
	Checks []v1alpha1.CheckID
}

// WideFindings are the failed checks about every isolated CPU, and those about the whole node, where there are such.
func (n *Node) WideFindings() []WideFindings {
	wide := []WideFindings{{What: "every isolated CPU"}, {What: "the whole node"}}
	for _, finding := range n.Findings {
		switch {
		case finding.Outcome != v1alpha1.OutcomeFailed:
		case finding.Place.EveryIsolated:
			wide[0].Checks = append(wide[0].Checks, finding.Check)
		case finding.Place.IsNowhere():
			wide[1].Checks = append(wide[1].Checks, finding.Check)
		}
	}
	return slices.DeleteFunc(wide, func(w WideFindings) bool { return len(w.Checks) == 0 })
}

// HugepagesAt are the pools of hugepages of a NUMA node.
func (n *Node) HugepagesAt(node int) []HugepageState {
	for _, view := range n.NUMANodes {
		if view.ID == node {
			return view.Hugepages
		}
	}
	return nil
}

// OwnersOf names the containers that own a CPU.
func (n *Node) OwnersOf(cpu int) []string {
	var names []string
	for _, container := range n.Containers {
		if container.CPUs.Contains(cpu) {
			names = append(names, container.Name())
		}
	}
	return names
}

// NICUse is a NIC as a pool has it.
type NICUse struct {
	Pool string
	NIC  PoolNIC
}

// Words say how many units are used, as far as that is known: ", 1 of 3 used".
func (u NICUse) Words() string {
	if u.NIC.Users == nil {
		return ""
	}
	return fmt.Sprintf(", %d of %d used", len(u.NIC.Users), u.NIC.Units)
}

// UsesOf are the pools that have the NIC.
func (n *Node) UsesOf(pciAddress string) []NICUse {
	var uses []NICUse
	for _, pool := range n.Pools {
		for _, nic := range pool.NICsOf(pciAddress) {
			uses = append(uses, NICUse{pool.Pool, nic})
		}
	}
	return uses
}

// Owned are the CPUs that containers own.
func (n *Node) Owned() cpus.Set {
	var owned cpus.Set
	for _, container := range n.Containers {
		owned = owned.Union(container.CPUs)
	}
	return owned
}

// roles are the roles that a plan gives to the CPUs of a machine. A CPU that is off has no other role: what it was meant
// for cannot be had of it.
func roles(p *plan.NodePlan, t *topology.Topology) []Role {
	all := t.Online.Union(t.Offline)
	for _, core := range t.Cores {
		all = all.Union(core.CPUs)
	}
	offline := all.Difference(t.Online)
	var in plan.CPUPlan
	if p != nil {
		in = p.CPUs
	}
	named := []Role{
		{RoleHousekeeping, in.Housekeeping.Difference(in.Shared).Difference(offline)},
		{RoleShared, in.Shared.Difference(offline)},
		{RoleIsolated, in.Isolated.Difference(in.DataPlane).Difference(offline)},
		{RoleDataPlane, in.DataPlane.Difference(offline)},
		{RoleOffline, offline},
		{RoleNone, all.Difference(offline.Union(in.Housekeeping, in.Shared, in.Isolated, in.DataPlane))},
	}
	return slices.DeleteFunc(named, func(r Role) bool { return r.CPUs.IsEmpty() })
}
