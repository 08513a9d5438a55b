// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// poolSummary is everything that the status of a pool is computed from.
type poolSummary struct {
	pool  *v1alpha1.BypassNICPool
	nodes []fleet.PoolNode
	// findings are the most severe first.
	findings []poolFinding
	// plugins is how far the device plugin or the DRA driver is.
	plugins fleet.PluginCounts
}

// OfPool is the status of a pool. The failure is why its objects could not be made, if they could not. Of the previous
// status it takes only when conditions changed last.
func OfPool(pool *v1alpha1.BypassNICPool, d *fleet.PoolDecision, failure error, now time.Time) v1alpha1.BypassNICPoolStatus {
	return newPoolSummary(pool, d, failure).status(metav1.NewTime(now))
}

func newPoolSummary(pool *v1alpha1.BypassNICPool, d *fleet.PoolDecision, failure error) *poolSummary {
	s := &poolSummary{pool: pool, nodes: d.Nodes, plugins: d.Plugins}
	if failure != nil {
		s.findings = append(s.findings, poolFinding{reason: v1alpha1.ReasonPlatformFailed, text: failure.Error()})
	}
	s.findings = append(s.findings, resourceFindings(pool, &d.Content.Standing)...)
	for i := range s.nodes {
		s.findings = append(s.findings, nodeFindings(pool, &s.nodes[i])...)
	}
	slices.SortStableFunc(s.findings, compareFindings)
	return s
}

// status computes the status. Of the previous one it takes only when conditions changed last.
func (s *poolSummary) status(now metav1.Time) v1alpha1.BypassNICPoolStatus {
	next := v1alpha1.BypassNICPoolStatus{
		Conditions:         slices.Clone(s.pool.Status.Conditions),
		ObservedGeneration: s.pool.Generation,
		Nodes:              s.nodeCounts(),
		NICs:               s.nicCounts(),
		Members:            s.members(),
		Findings:           s.findingStatuses(),
	}
	for _, condition := range s.conditions() {
		condition.ObservedGeneration = s.pool.Generation
		condition.LastTransitionTime = now
		condition.Message = shorten.Sentence(condition.Message, v1alpha1.MaxConditionMessageLength)
		meta.SetStatusCondition(&next.Conditions, condition)
	}
	slices.SortFunc(next.Conditions, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	return next
}

// SamePool reports whether writing the next status would change nothing.
func SamePool(a, b *v1alpha1.BypassNICPoolStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}

func (s *poolSummary) nodeCounts() *v1alpha1.PoolNodeCounts {
	counts := &v1alpha1.PoolNodeCounts{Matched: int32(min(len(s.nodes), 1_000_000))}
	for i := range s.nodes {
		counts.Reporting += one(s.nodes[i].IsReporting(s.pool))
	}
	return counts
}

func (s *poolSummary) nicCounts() *v1alpha1.PoolNICCounts {
	counts := &v1alpha1.PoolNICCounts{}
	for i := range s.nodes {
		for _, nic := range s.nodes[i].NICs {
			counts.Found++
			counts.Eligible += one(nic.Health != v1alpha1.NICIneligible)
			counts.Allocated += int32(len(nic.Users))
			if nic.Health == v1alpha1.NICHealthy {
				counts.Healthy++
				counts.Units += nic.Units
			}
		}
	}
	return counts
}

// members are the nodes with NICs, those with one that is not healthy first.
func (s *poolSummary) members() []v1alpha1.PoolMember {
	sorted := make([]*fleet.PoolNode, 0, len(s.nodes))
	for i := range s.nodes {
		if len(s.nodes[i].NICs) > 0 {
			sorted = append(sorted, &s.nodes[i])
		}
	}
	slices.SortStableFunc(sorted, func(a, b *fleet.PoolNode) int { return cmp.Compare(one(isHealthy(a)), one(isHealthy(b))) })
	sorted = shorten.List(sorted, v1alpha1.MaxPoolMembers)
	members := make([]v1alpha1.PoolMember, 0, len(sorted))
	for _, n := range sorted {
		member := v1alpha1.PoolMember{Node: n.Name()}
		for _, nic := range shorten.List(n.NICs, v1alpha1.MaxMemberNICs) {
			member.NICs = append(member.NICs, v1alpha1.PoolNIC{
				PCIAddress: nic.PCIAddress, NUMANode: nic.NUMANode, Health: nic.Health,
				Units: nic.Units, Allocated: int32(len(nic.Users)),
			})
		}
		members = append(members, member)
	}
	return members
}

func isHealthy(n *fleet.PoolNode) bool {
	return !slices.ContainsFunc(n.NICs, func(nic *v1alpha1.NodeBypassNIC) bool { return nic.Health != v1alpha1.NICHealthy })
}

// findingStatuses are the findings about nodes and other pools; the rest is in the conditions only.
func (s *poolSummary) findingStatuses() []v1alpha1.PoolFinding {
	var findings []v1alpha1.PoolFinding
	for _, f := range s.findings {
		if f.node != "" || len(f.pools) > 0 {
			findings = append(findings, v1alpha1.PoolFinding{
				Node: f.node, PCIAddress: f.address, Container: shorten.Value(f.container, v1alpha1.MaxContainerPathLength),
				ConflictingPools: shorten.List(f.pools, v1alpha1.MaxPoolsPerNode),
				Message:          shorten.Sentence(f.text, v1alpha1.MaxFindingMessageLength),
			})
		}
	}
	return shorten.List(findings, v1alpha1.MaxPoolFindings)
}

// conditions computes all conditions that a pool has now. Their truth table is in docs/conditions.md.
func (s *poolSummary) conditions() []metav1.Condition {
	progressing, degraded := s.progressing(), s.degraded()
	return []metav1.Condition{progressing, degraded, s.ready(progressing, degraded)}
}

func poolCondition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// degraded is True when something will not solve itself.
func (s *poolSummary) degraded() metav1.Condition {
	if len(s.findings) == 0 || !s.findings[0].isProblem() {
		return s.undegraded()
	}
	others := 0
	for i := range s.findings {
		others += int(one(i > 0 && s.findings[i].isProblem()))
	}
	return poolCondition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, s.findings[0].reason,
		s.findings[0].text+andMore(others))
}

// undegraded tells of what the pool keeps from others: that is no problem of its own.
func (s *poolSummary) undegraded() metav1.Condition {
	kept := slices.DeleteFunc(slices.Clone(s.findings), func(f poolFinding) bool { return !f.kept })
	if len(kept) == 0 {
		return poolCondition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected, "nothing is wrong")
	}
	return poolCondition(v1alpha1.ConditionDegraded, metav1.ConditionFalse, kept[0].reason, kept[0].text+andMore(len(kept)-1))
}

// progressing is True while something is under way that ends by itself. The first rule that applies decides: that a pod holds a NIC
// by the former way is why the kubelet does not know it by the new one yet.
func (s *poolSummary) progressing() metav1.Condition {
	for _, rule := range []func() (metav1.Condition, bool){
		s.hasNoNodes, s.awaitsReports, s.awaitsPlans, s.awaitsPlugins, s.changesAllocation, s.awaitsUnits,
	} {
		if condition, applies := rule(); applies {
			return condition
		}
	}
	return poolCondition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonAsExpected,
		fmt.Sprintf("%d of %d nodes have reported their NICs", s.nodeCounts().Reporting, len(s.nodes)))
}

func progressing(reason, message string) (metav1.Condition, bool) {
	return poolCondition(v1alpha1.ConditionProgressing, metav1.ConditionTrue, reason, message), true
}

func (s *poolSummary) hasNoNodes() (metav1.Condition, bool) {
	return poolCondition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonNoNodes,
		"spec.nodeSelector selects no node"), len(s.nodes) == 0
}

// served are the nodes on which the pool hands out NICs, of which the function chooses.
func (s *poolSummary) served(chosen func(*fleet.PoolNode) bool) []*fleet.PoolNode {
	var nodes []*fleet.PoolNode
	for i := range s.nodes {
		if n := &s.nodes[i]; n.IsServed(s.pool.Name) && chosen(n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// awaitsReports applies while agents have not reported the NICs for the current spec.
func (s *poolSummary) awaitsReports() (metav1.Condition, bool) {
	awaited := s.served(func(n *fleet.PoolNode) bool { return !n.IsReporting(s.pool) })
	if len(awaited) == 0 {
		return metav1.Condition{}, false
	}
	names := make([]string, 0, len(awaited))
	for _, n := range awaited {
		names = append(names, n.Name())
	}
	return progressing(v1alpha1.ReasonAwaitingNodes, fmt.Sprintf("the agents of nodes %s have not reported the NICs of this pool yet", fleet.Names(names)))
}

// awaitsPlans applies while a node does not have the share of the pool that its plan holds. A paused rollout, and checks that
// have failed, do not end by themselves.
func (s *poolSummary) awaitsPlans() (metav1.Condition, bool) {
	awaited := s.served(func(n *fleet.PoolNode) bool { return n.InForce(s.pool).Status != metav1.ConditionTrue })
	if len(awaited) == 0 {
		return metav1.Condition{}, false
	}
	first := awaited[0]
	condition := first.InForce(s.pool)
	message := nodeMessage(first.Name(), condition) + andMore(len(awaited)-1)
	switch {
	case first.Paused:
		return poolCondition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, v1alpha1.ReasonPaused, fmt.Sprintf(
			"spec.rollout.state of profile %s is Paused; %s", first.Profiles[0], message)), true
	case condition.Reason == v1alpha1.ReasonChecksFailed:
		return poolCondition(v1alpha1.ConditionProgressing, metav1.ConditionFalse, condition.Reason, message), true
	default:
		return progressing(condition.Reason, message)
	}
}

// awaitsPlugins applies while the program that hands out NICs does not run everywhere.
func (s *poolSummary) awaitsPlugins() (metav1.Condition, bool) {
	if !s.plugins.Starting() {
		return metav1.Condition{}, false
	}
	return progressing(v1alpha1.ReasonPluginsStarting,
		fmt.Sprintf("the %s runs on %d of %d nodes", s.plugins.Program, s.plugins.Ready, s.plugins.Wanted))
}

// awaitsUnits applies while the scheduler cannot hand out all units of healthy NICs.
func (s *poolSummary) awaitsUnits() (metav1.Condition, bool) {
	awaited := s.served(func(n *fleet.PoolNode) bool { return n.MissingUnits(s.pool) > 0 })
	if len(awaited) == 0 {
		return metav1.Condition{}, false
	}
	units, text := fleet.HealthyUnits(awaited[0].NICs), "the kubelet of node %s advertises %d of %d units of %s%s"
	if bypass.Allocation(&s.pool.Spec) == v1alpha1.AllocationDynamic {
		text = "the DRA driver offers in the ResourceSlices of node %s %d of %d units of %s%s"
	}
	return progressing(v1alpha1.ReasonAwaitingPlugins, fmt.Sprintf(text,
		awaited[0].Name(), units-awaited[0].MissingUnits(s.pool), units, s.pool.Spec.ResourceName, andMore(len(awaited)-1)))
}

func (s *poolSummary) changesAllocation() (metav1.Condition, bool) {
	changing := s.findingsOf(v1alpha1.ReasonAllocationChanging)
	if len(changing) == 0 {
		return metav1.Condition{}, false
	}
	return progressing(v1alpha1.ReasonAllocationChanging, changing[0].text+andMore(len(changing)-1))
}

// findingsOf are those with a reason.
func (s *poolSummary) findingsOf(reason string) []poolFinding {
	return slices.DeleteFunc(slices.Clone(s.findings), func(f poolFinding) bool { return f.reason != reason })
}

// ready sums up the others, and then says whether the NICs that may be handed out are healthy.
func (s *poolSummary) ready(progressing, degraded metav1.Condition) metav1.Condition {
	kind, counts := v1alpha1.ConditionReady, s.nicCounts()
	switch {
	case degraded.Status == metav1.ConditionTrue:
		return poolCondition(kind, metav1.ConditionFalse, degraded.Reason, degraded.Message)
	case progressing.Reason == v1alpha1.ReasonNoNodes:
		// Nothing is missing. A wave of GitOps that precedes its nodes must not wait for them.
		return poolCondition(kind, metav1.ConditionTrue, progressing.Reason, progressing.Message)
	case progressing.Status == metav1.ConditionTrue || progressing.Reason != v1alpha1.ReasonAsExpected:
		return poolCondition(kind, metav1.ConditionFalse, progressing.Reason, progressing.Message)
	case counts.Eligible == 0:
		return poolCondition(kind, metav1.ConditionFalse, v1alpha1.ReasonNoNICs, s.noNICsText(counts))
	case counts.Healthy < counts.Eligible:
		// What is not healthy and no problem is unknown, and the most severe of the findings.
		return poolCondition(kind, metav1.ConditionUnknown, v1alpha1.ReasonNICsUnknown,
			s.findings[0].text+andMore(int(counts.Eligible-counts.Healthy)-1))
	default:
		return poolCondition(kind, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy,
			fmt.Sprintf("all %d NICs are healthy and give %d units of %s", counts.Healthy, counts.Units, s.pool.Spec.ResourceName))
	}
}

func (s *poolSummary) noNICsText(counts *v1alpha1.PoolNICCounts) string {
	if counts.Found == 0 {
		return "the selectors of spec.nics match no NIC on any node of the pool"
	}
	for _, f := range s.findings {
		if f.reason == v1alpha1.ReasonNoNICs {
			return f.text + andMore(int(counts.Found)-1)
		}
	}
	return fmt.Sprintf("none of the %d NICs may be handed out", counts.Found)
}
