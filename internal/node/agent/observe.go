// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/installation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/podresources"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// Observation is what one pass over a host found.
type Observation struct {
	// Generation of the LowLatencyNode that the pass looked at.
	Generation int64
	// PlanHash is the plan that Report was made for.
	PlanHash string
	// BootID is the boot of the kernel that was looked at; "" when the host could not be read or does not report.
	BootID string
	// Inventory of the host; nil when the host could not be read.
	Inventory *v1alpha1.Inventory
	// Software of the host; nil when the host could not be read, and where nobody asks for it.
	Software *v1alpha1.NodeSoftware
	// Enactment is what the guard of the host says; nil where there is none.
	Enactment *v1alpha1.NodeEnactment
	// Report of the checks; nil when nothing could be verified, for Reason and Message.
	Report          *verify.Report
	Reason, Message string
	// Pools that select the node.
	Pools []PoolObservation

	// counts of drift that are not in the status yet, and the files that could not be put back; both by check.
	counts     map[v1alpha1.CheckID]driftCount
	unrepaired map[v1alpha1.CheckID][]string

	// owners, hugepages and truth are for the full report alone.
	owners    nodereport.Owners
	hugepages []nodereport.Hugepages
	truth     verify.Truth

	// Now is the time of the pass.
	Now metav1.Time
}

// Observe returns the status that follows from an observation. What has not changed keeps its
// transition time, so that a pass that finds nothing new gives an equal status. The inventory of a host
// that cannot be read for the moment stays: the node did not lose its hardware, and plans depend on it.
func Observe(previous v1alpha1.LowLatencyNodeStatus, seen Observation) v1alpha1.LowLatencyNodeStatus {
	status := v1alpha1.LowLatencyNodeStatus{
		ObservedGeneration: seen.Generation,
		Inventory:          seen.Inventory,
		Software:           seen.Software,
		Enactment:          seen.Enactment,
		BypassNICs:         mergeNICs(previous.BypassNICs, seen.Pools),
		BootID:             cmp.Or(seen.BootID, previous.BootID),
		Conditions:         append([]metav1.Condition(nil), previous.Conditions...),
		Drift:              previous.Drift,
	}
	if status.Inventory == nil {
		status.Inventory, status.Software = previous.Inventory, previous.Software
	}
	conditions := unverified(seen)
	if seen.Report != nil {
		counts := seen.Report.Counts()
		status.VerifiedPlanHash, status.Checks, status.Findings = seen.PlanHash, &counts, finding.Statuses(seen.Report.Findings())
		conditions = handedBack(seen.Report.Conditions(seen.Generation), seen.Enactment, seen.PlanHash)
		status.Drift = mergeDrift(previous.Drift, seen.counts, seen.unrepaired)
	}
	for _, condition := range conditions {
		condition.LastTransitionTime = seen.Now
		condition.Message = shorten.Sentence(condition.Message, v1alpha1.MaxNodeConditionMessageLength)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	status.Transitions = recordTransitions(&previous, &status, seen.Report, seen.Now)
	return status
}

// unverified are the conditions of a node of which nothing could be verified.
func unverified(seen Observation) []metav1.Condition {
	types := append(verify.ConditionTypes(), v1alpha1.ConditionReady)
	conditions := make([]metav1.Condition, 0, len(types))
	for _, conditionType := range types {
		conditions = append(conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionUnknown, ObservedGeneration: seen.Generation,
			Reason: seen.Reason, Message: seen.Message,
		})
	}
	return conditions
}

// observe passes over the whole host once. The status of the node is what earlier passes have reported.
func (a *Agent) observe(ctx context.Context, node *v1alpha1.LowLatencyNode) Observation {
	status := node.Status
	a.latest = latestPass{}
	facts, err := a.read(ctx)
	if err != nil {
		return a.unobserved(err)
	}
	found, err := topology.FromFacts(facts)
	if err != nil {
		return a.unobserved(fmt.Errorf("understanding the host: %w", err))
	}
	topology.MarkManagement(found, &facts.Bypass, a.HostAddresses)
	seen := Observation{
		Inventory: a.inventory(facts, found, status.Inventory), Software: installation.Of(facts),
		BootID: shorten.Value(facts.Setting(bootIDPath).Value, v1alpha1.MaxBootIDLength),
	}
	pools, holders := a.observePools(ctx, facts, found)
	seen.Pools = pools
	now := a.clock().Now()
	before, meanwhile := a.history.before(reading{at: now, facts: facts}, a.window())
	if a.plan.plan == nil {
		seen.Reason, seen.Message = v1alpha1.ReasonAwaitingPlan, a.plan.problem
		return seen
	}
	in := verify.Input{Plan: a.plan.plan, Facts: facts, Before: before, Meanwhile: meanwhile, Holders: holders, Qualification: qualified(node, &seen)}
	a.askKubelet(ctx, &in)
	report := verify.Evaluate(in)
	a.drift.compare(report, a.plan.hash, status)
	seen.unrepaired = a.repair(ctx, in, report, now)
	seen.PlanHash, seen.Report, seen.counts = a.plan.hash, &report, a.drift.counts
	seen.owners, seen.hugepages, seen.truth = ownersOf(in, found), nodereport.HugepagesOf(found), verify.TruthOf(in.Plan, facts)
	a.latest = latestPass{at: now, in: in, report: &report}
	return seen
}

// qualified is the measurement that the node has passed last, as the operator says, beside what a pass has found; nil without one.
func qualified(node *v1alpha1.LowLatencyNode, seen *Observation) *verify.Qualification {
	passed := node.Spec.Qualification
	if passed == nil {
		return nil
	}
	return &verify.Qualification{
		Then:                 passed.Fingerprint,
		Now:                  qualification.FingerprintOfInventory(node.Spec.PlanHash, seen.Inventory, mergeNICs(node.Status.BypassNICs, seen.Pools)),
		ManagementInterrupts: managementInterrupts(passed.ManagementInterrupts),
	}
}

// managementInterrupts are those that the measurement counted. The agent itself asks nobody: it would make isolated CPUs run code.
func managementInterrupts(measured *v1alpha1.LatencyManagementInterrupts) host.Fact[uint64] {
	const source = "managementInterrupts of the LatencyTest"
	switch {
	case measured == nil:
		return host.Absent[uint64](source, "no LatencyTest of kind Jitter that the node has passed asked for them")
	case measured.State != v1alpha1.StateCounted || measured.Count == nil:
		return host.Absent[uint64](source, cmp.Or(measured.UnknownReason, "not counted"))
	}
	return host.Known(uint64(max(0, *measured.Count)), source)
}

// inventory is what the host is, or was before CPUs that the plan in force counts on went offline.
func (a *Agent) inventory(facts *host.Facts, found *topology.Topology, reported *v1alpha1.Inventory) *v1alpha1.Inventory {
	now := topology.Inventory(facts, found)
	if a.plan.plan == nil {
		return now
	}
	return topology.Settled(now, reported, a.plan.plan.CPUs.Housekeeping.Union(a.plan.plan.CPUs.Isolated))
}

// ownersOf are the containers that own CPUs, as far as the kubelet was asked or its state file read.
func ownersOf(in verify.Input, t *topology.Topology) nodereport.Owners {
	containers := host.Absent[[]allocation.Container](podresources.Socket, "not asked")
	if in.Containers != nil {
		containers = *in.Containers
	}
	return nodereport.OwnersOf(containers, in.Facts.Kubelet.CPUManagerState, t)
}

// unobserved is what a pass over a host that cannot be read found.
func (a *Agent) unobserved(err error) Observation {
	return Observation{Reason: v1alpha1.ReasonChecksUnknown, Message: err.Error(), Pools: a.unobservedPools(err.Error())}
}
