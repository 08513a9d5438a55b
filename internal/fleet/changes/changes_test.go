// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package changes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const currentConfig = "machineconfiguration.openshift.io/currentConfig"

func nodes() Nodes { return Nodes{Annotations: []string{currentConfig}} }

func TestNodes(t *testing.T) {
	cases := map[string]struct {
		change                            func(*corev1.Node)
		wantMoved, wantMarked, wantServed bool
	}{
		"a heartbeat": {change: func(n *corev1.Node) {
			n.ResourceVersion = "2"
			n.Annotations = map[string]string{"volumes": "attached"}
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "MemoryPressure", Status: "False"})
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
			n.Status.Capacity = n.Status.Allocatable
		}},
		"the kubelet stops": {change: func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Ready", Status: "False"})
		}, wantMarked: true, wantServed: true},
		"another boot": {change: func(n *corev1.Node) { n.Status.NodeInfo.BootID = "b2" }, wantMarked: true},
		"a device plugin registers": {change: func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("2")}
		}, wantMarked: true, wantServed: true},
		"a device plugin is forgotten": {change: func(n *corev1.Node) {
			n.Status.Capacity = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("0")}
		}, wantServed: true},
		"our note": {change: func(n *corev1.Node) {
			n.Annotations = map[string]string{v1alpha1.AnnotationStarted: "b1"}
		}, wantMoved: true, wantMarked: true},
		"a label":           {change: func(n *corev1.Node) { n.Labels["new"] = "" }, wantMoved: true, wantMarked: true, wantServed: true},
		"another node":      {change: func(n *corev1.Node) { n.UID = "other" }, wantMoved: true, wantMarked: true, wantServed: true},
		"the daemon's word": {change: func(n *corev1.Node) { n.Annotations = map[string]string{currentConfig: "x"} }, wantMoved: true},
		"a taint":           {change: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "x"}} }, wantMarked: true},
		"our taint": {change: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}}
		}, wantMoved: true, wantMarked: true},
		"our condition": {change: func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: v1alpha1.NodeConditionDeJittered, Status: "True"})
		}, wantMoved: true, wantMarked: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := objects.MakeNode("n", "a", "b")
			after := before.DeepCopy()
			tc.change(after)
			if got := nodes().Moved(before, after); got != tc.wantMoved {
				t.Errorf("Moved() = %v, want %v", got, tc.wantMoved)
			}
			if got := NodeMarked(before, after); got != tc.wantMarked {
				t.Errorf("NodeMarked() = %v, want %v", got, tc.wantMarked)
			}
			if got := NodeServed(before, after); got != tc.wantServed {
				t.Errorf("NodeServed() = %v, want %v", got, tc.wantServed)
			}
		})
	}
}

func TestStrip(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 11, 28, 17, 51, 1, 0, time.UTC))
	node := objects.MakeNode("n", "a", "b")
	node.ResourceVersion = "7"
	node.Annotations = map[string]string{currentConfig: "rendered-x-1", v1alpha1.AnnotationStarted: "b1", "other": "large"}
	node.Spec = corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Taints: []corev1.Taint{{Key: "x"}}}
	node.Status = corev1.NodeStatus{
		Images: []corev1.ContainerImage{{SizeBytes: 1}},
		Conditions: []corev1.NodeCondition{
			{Type: "MemoryPressure"}, {Type: "Ready", Status: "True", Message: "kubelet is ready", LastHeartbeatTime: metav1.Now(), LastTransitionTime: since},
			{Type: v1alpha1.NodeConditionNUMAAligned, Status: "True"},
		},
		Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4"), "lowlatency.dev/x2": resource.MustParse("3")},
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("4"), "lowlatency.dev/x2": resource.MustParse("2")},
		NodeInfo:    corev1.NodeSystemInfo{BootID: "b1", KernelVersion: "6.12", SystemUUID: "4c4c4544-1", OSImage: "large"},
	}
	got := nodes().Strip(node)
	want := objects.MakeNode("n", "a", "b")
	want.ResourceVersion = "7"
	want.Annotations = map[string]string{currentConfig: "rendered-x-1", v1alpha1.AnnotationStarted: "b1"}
	want.Spec.Taints = []corev1.Taint{{Key: "x"}}
	want.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True", LastTransitionTime: since}, {Type: v1alpha1.NodeConditionNUMAAligned, Status: "True"}}
	want.Status.Capacity = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("3")}
	want.Status.Allocatable = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse("2")}
	want.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "b1", KernelVersion: "6.12", SystemUUID: "4c4c4544-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Strip() mismatch (-want +got):\n%s", diff)
	}
}

func TestNICsReported(t *testing.T) {
	report := objects.MakeReport("n", "trading").Obj()
	report.Spec.BypassPools = []string{"a", "b"}
	cases := map[string]struct {
		change func(*v1alpha1.LowLatencyNode)
		want   bool
	}{
		"checks":    {func(r *v1alpha1.LowLatencyNode) { r.Status.Checks = &v1alpha1.CheckCounts{Failed: 1} }, false},
		"inventory": {func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory = &v1alpha1.Inventory{Hash: "x"} }, true},
		"pools":     {func(r *v1alpha1.LowLatencyNode) { r.Spec.BypassPools = nil }, true},
		"plan":      {func(r *v1alpha1.LowLatencyNode) { r.Spec.PlanHash = "x" }, true},
		"verified":  {func(r *v1alpha1.LowLatencyNode) { r.Status.VerifiedPlanHash = "x" }, true},
		"in force": {func(r *v1alpha1.LowLatencyNode) {
			r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue}}
		}, true},
		"de-jittered": {func(r *v1alpha1.LowLatencyNode) {
			r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionTrue}}
		}, false},
		"NICs": {func(r *v1alpha1.LowLatencyNode) { r.Status.BypassNICs = make([]v1alpha1.NodeBypassNIC, 1) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := report.DeepCopy()
			tc.change(after)
			if got := NICsReported(report, after); got != tc.want {
				t.Errorf("NICsReported() = %v, want %v", got, tc.want)
			}
		})
	}
}
