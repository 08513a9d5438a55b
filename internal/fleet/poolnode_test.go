// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// A node has the share of a pool in force when its plan was made with the pool as it is, and its agent has found the plan
// applied, be it some time ago.
func TestInForceOfAPool(t *testing.T) {
	pool := objects.MakePool("x2").Obj()
	pool.Generation = 4
	applied := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.LowLatencyNode) {
		return func(r *v1alpha1.LowLatencyNode) {
			r.Status.Conditions[0].Status, r.Status.Conditions[0].Reason = status, reason
		}
	}
	planned := func(name string, generation int64) func(*v1alpha1.LowLatencyNode) {
		return func(r *v1alpha1.LowLatencyNode) {
			r.Spec.PlannedPools = []v1alpha1.PlannedPool{{Name: name, Generation: generation}}
		}
	}
	cases := map[string]struct {
		change     func(*v1alpha1.LowLatencyNode)
		want       metav1.ConditionStatus
		wantReason string
	}{
		"found applied":            {func(*v1alpha1.LowLatencyNode) {}, metav1.ConditionTrue, v1alpha1.ReasonVerified},
		"found applied long ago":   {applied(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatStale), metav1.ConditionTrue, v1alpha1.ReasonHeartbeatStale},
		"nobody can tell":          {applied(metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown), metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown},
		"found wanting":            {applied(metav1.ConditionFalse, v1alpha1.ReasonChecksFailed), metav1.ConditionFalse, v1alpha1.ReasonChecksFailed},
		"a reboot is pending":      {applied(metav1.ConditionFalse, v1alpha1.ReasonRebootPending), metav1.ConditionFalse, v1alpha1.ReasonRebootPending},
		"planned with older spec":  {planned("x2", 3), metav1.ConditionUnknown, v1alpha1.ReasonAwaitingPlan},
		"planned with other pools": {planned("x3", 4), metav1.ConditionUnknown, v1alpha1.ReasonAwaitingPlan},
		"another plan verified":    {func(r *v1alpha1.LowLatencyNode) { r.Status.VerifiedPlanHash = "old" }, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingVerification},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			report := objects.MakeReport("n", "trading").Inventory(objects.InventoryOf(t, hosttree.Xeon())).Verified("h", "TTT").Obj()
			planned("x2", 4)(report)
			report.Spec.PlanHash = "h"
			tc.change(report)
			if got := (&PoolNode{Node: objects.MakeNode("n"), Report: report}).InForce(pool); got.Status != tc.want || got.Reason != tc.wantReason {
				t.Errorf("%s %s, want %s %s", got.Status, got.Reason, tc.want, tc.wantReason)
			}
		})
	}
	if got := (&PoolNode{}).InForce(pool); got.Status != metav1.ConditionUnknown || got.Reason != v1alpha1.ReasonAwaitingPlan {
		t.Errorf("a node that nobody knows: %+v", got)
	}
}

// Units that are healthy and that the scheduler cannot see are missing; more than there are, and those of a DRA driver, are not.
func TestMissingUnits(t *testing.T) {
	nic := func(units int32, health v1alpha1.NICHealth) *v1alpha1.NodeBypassNIC {
		return &v1alpha1.NodeBypassNIC{Units: units, Health: health}
	}
	node := &PoolNode{
		Node: objects.MakeNode("n"),
		NICs: []*v1alpha1.NodeBypassNIC{nic(3, v1alpha1.NICHealthy), nic(4, v1alpha1.NICUnhealthy), nic(2, v1alpha1.NICHealthy)},
	}
	pool := objects.MakePool("x2").Obj()
	for advertised, want := range map[int64]int64{0: 5, 4: 1, 5: 0, 9: 0} {
		node.Node.Status.Allocatable = corev1.ResourceList{corev1.ResourceName(pool.Spec.ResourceName): *resource.NewQuantity(advertised, resource.DecimalSI)}
		if got := node.MissingUnits(pool); got != want {
			t.Errorf("%d of 5 advertised: %d missing, want %d", advertised, got, want)
		}
	}
	node.Node.Status.Allocatable = nil
	pool.Spec.Allocation = v1alpha1.AllocationDynamic
	for published, want := range map[int64]int64{0: 5, 4: 1, 5: 0, 9: 0} {
		node.Published = published
		if got := node.MissingUnits(pool); got != want {
			t.Errorf("%d of 5 offered by a DRA driver: %d missing, want %d", published, got, want)
		}
	}
}
