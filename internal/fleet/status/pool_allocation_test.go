// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const (
	byPlugin = v1alpha1.AllocationDevicePlugin
	byClaim  = v1alpha1.AllocationDynamic
)

// TestChangeOfAllocationIsSaid: the container is named until it ends.
func TestChangeOfAllocationIsSaid(t *testing.T) {
	cases := map[string]struct {
		allocation v1alpha1.AllocationType
		user       v1alpha1.NICUser
		want       string
	}{
		"held by the plugin":            {byClaim, objects.User(byPlugin), "by DevicePlugin, which spec.allocation named before: the NIC is handed out by DynamicResourceAllocation when the pod ends"},
		"held by a claim":               {"", objects.User(byClaim), "by DynamicResourceAllocation, which spec.allocation named before: the NIC is handed out by DevicePlugin"},
		"held as the pool says":         {byClaim, objects.User(byClaim), ""},
		"held as the default is":        {"", objects.User(byPlugin), ""},
		"the agent does not report how": {"", objects.User(""), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := objects.MakePool("x2").Obj()
			pool.Spec.Allocation = tc.allocation
			nic := objects.NIC(objects.FirstPort, v1alpha1.NICHealthy)
			nic.Users = []v1alpha1.NICUser{tc.user}
			w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, tradingNode("n1")).says("n1", nic)
			if tc.want != "" {
				// The kubelet cannot know all units by the new way yet. Why it cannot is what is to be said.
				w = w.advertises("n1", 0)
			}
			status := newPoolSummary(w.Pool, fleet.DecidePool(w.PoolWorld, fleet.NewSelections()), nil).status(metav1.Now())
			progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
			changing := progressing.Status == metav1.ConditionTrue && progressing.Reason == v1alpha1.ReasonAllocationChanging
			if changing != (tc.want != "") || !strings.Contains(progressing.Message, tc.want) {
				t.Errorf("Progressing is %+v, want %q", progressing, tc.want)
			}
			if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) == changing ||
				meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDegraded) {
				t.Errorf("conditions are %+v", status.Conditions)
			}
			if named := slices.ContainsFunc(status.Findings, func(f v1alpha1.PoolFinding) bool {
				return f.Container == "trading/feed/main" && strings.Contains(f.Message, "trading/feed")
			}); named != changing {
				t.Errorf("findings are %+v", status.Findings)
			}
		})
	}
}

// TestSplitContainerIsNamed: as a value, not in the sentence alone.
func TestSplitContainerIsNamed(t *testing.T) {
	pool := objects.MakePool("x2").Obj()
	nic := objects.NIC(objects.FirstPort, v1alpha1.NICHealthy)
	split := objects.User(byPlugin)
	split.Container, split.Alignment, split.Message = "order", v1alpha1.AlignmentSplit, "CPU 4 on NUMA node 1, NIC on NUMA node 0"
	nic.Users = []v1alpha1.NICUser{objects.User(byPlugin), split}
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, tradingNode("n1")).says("n1", nic)
	status := newPoolSummary(w.Pool, fleet.DecidePool(w.PoolWorld, fleet.NewSelections()), nil).status(metav1.Now())
	if len(status.Findings) != 1 || status.Findings[0].Container != "trading/feed/order" || status.Findings[0].PCIAddress != objects.FirstPort {
		t.Errorf("findings are %+v", status.Findings)
	}
}

// TestWaitForTheNameIsSaid: pods that ask the driver by the name of the resource wait until no kubelet remembers the device plugin.
func TestWaitForTheNameIsSaid(t *testing.T) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	unknown := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
	cases := map[string]struct {
		condition corev1.NodeCondition
		counted   string
		users     []v1alpha1.NICUser
		wantName  bool
		// wantSaid is what Progressing says; "" when nothing is under way.
		wantSaid string
	}{
		"a kubelet that never knew a plugin":  {condition: ready, wantName: true},
		"a kubelet that counts the plugin":    {condition: ready, counted: "2", wantSaid: "the kubelet of node n1 counts 2 units of lowlatency.dev/x2 by a device plugin still"},
		"a kubelet that forgot the plugin":    {condition: ready, counted: "0", users: []v1alpha1.NICUser{objects.User(byClaim)}, wantName: true},
		"a container of the plugin":           {condition: ready, counted: "0", users: []v1alpha1.NICUser{objects.User(byPlugin)}, wantSaid: "trading/feed"},
		"a kubelet that is gone takes no pod": {condition: unknown, counted: "2", wantName: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := objects.MakePool("x2").Obj()
			pool.Spec.Allocation = byClaim
			node := tradingNode("n1")
			node.Status.Conditions = []corev1.NodeCondition{tc.condition}
			if tc.counted != "" {
				node.Status.Capacity = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse(tc.counted)}
			}
			nic := objects.NIC(objects.FirstPort, v1alpha1.NICHealthy)
			nic.Users = tc.users
			w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, node).says("n1", nic)
			d := fleet.DecidePool(w.PoolWorld, fleet.NewSelections())
			if d.Nameless == tc.wantName {
				t.Errorf("pods may not ask by the name: %v, want %v", d.Nameless, !tc.wantName)
			}
			status := newPoolSummary(w.Pool, d, nil).status(metav1.Now())
			progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
			if (progressing.Status == metav1.ConditionTrue) != (tc.wantSaid != "") || !strings.Contains(progressing.Message, tc.wantSaid) {
				t.Errorf("Progressing is %+v, want %q", progressing, tc.wantSaid)
			}
		})
	}
}
