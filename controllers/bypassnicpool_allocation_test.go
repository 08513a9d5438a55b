// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
)

const (
	byPlugin = v1alpha1.AllocationDevicePlugin
	byClaim  = v1alpha1.AllocationDynamic
)

func allocatedBy(way v1alpha1.AllocationType) v1alpha1.NICUser {
	return v1alpha1.NICUser{Namespace: "trading", Pod: "feed", Container: "main", Alignment: v1alpha1.AlignmentAligned, Allocation: way}
}

// runs puts a DaemonSet with a command into the world. All its pods are ready.
func (w *poolWorld) runs(t *testing.T, change func(*appsv1.DaemonSet), arguments ...string) *poolWorld {
	t.Helper()
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents", image: "operator:v1"}
	objects, err := r.render(w, decidePool(w, newSelections()))
	if err != nil {
		t.Fatal(err)
	}
	daemonSet := &appsv1.DaemonSet{}
	for _, object := range objects {
		if object.GetKind() == "DaemonSet" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, daemonSet); err != nil {
				t.Fatal(err)
			}
		}
	}
	daemonSet.Spec.Template.Spec.Containers[0].Args = arguments
	daemonSet.Generation = 2
	daemonSet.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 1, NumberReady: 1, UpdatedNumberScheduled: 1}
	change(daemonSet)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(daemonSet)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: fields}
	w.objects = map[objectKey]*unstructured.Unstructured{keyOf(object): object}
	return w
}

// TestChangeOfAllocation: what runs on the nodes next follows from what runs there and who holds NICs.
func TestChangeOfAllocation(t *testing.T) {
	plugin, driver, draining := []string{"device-plugin"}, []string{"dra-driver"}, []string{"dra-driver", "--drain"}
	asItIs := func(*appsv1.DaemonSet) {}
	cases := map[string]struct {
		allocation v1alpha1.AllocationType
		runs       []string
		change     func(*appsv1.DaemonSet)
		users      []v1alpha1.NICUser
		generation int64
		want       string
	}{
		"the plugin goes on":                  {"", plugin, asItIs, []v1alpha1.NICUser{allocatedBy(byPlugin)}, 1, "plugin"},
		"the driver comes at once":            {byClaim, plugin, asItIs, []v1alpha1.NICUser{allocatedBy(byPlugin)}, 1, "driver"},
		"the driver goes on":                  {byClaim, driver, asItIs, []v1alpha1.NICUser{allocatedBy(byClaim)}, 1, "driver"},
		"the driver comes back":               {byClaim, draining, asItIs, []v1alpha1.NICUser{allocatedBy(byClaim)}, 1, "driver"},
		"the driver drains first":             {byPlugin, driver, asItIs, nil, 1, "draining"},
		"a claim keeps the driver":            {byPlugin, draining, asItIs, []v1alpha1.NICUser{allocatedBy(byPlugin), allocatedBy(byClaim)}, 1, "draining"},
		"an agent has not looked yet":         {byPlugin, draining, asItIs, nil, 0, "draining"},
		"not all pods drain yet":              {byPlugin, draining, func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled = 0 }, nil, 1, "draining"},
		"the DaemonSet was not looked at yet": {byPlugin, draining, func(d *appsv1.DaemonSet) { d.Generation = 3 }, nil, 1, "draining"},
		"nobody holds a claim any more":       {byPlugin, draining, asItIs, []v1alpha1.NICUser{allocatedBy(byPlugin)}, 1, "plugin"},
		"an agent that tells no way":          {byPlugin, draining, asItIs, []v1alpha1.NICUser{allocatedBy("")}, 1, "plugin"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := makePool("x2").obj()
			pool.Spec.Allocation = tc.allocation
			nic := nicThatIs(firstPort, v1alpha1.NICHealthy)
			nic.Users = tc.users
			w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, tradingNode("n1")).says("n1", nic).runs(t, tc.change, tc.runs...)
			w.reports["n1"].Status.BypassNICs[0].PoolGeneration = tc.generation
			if got := rendered(t, w); got != tc.want {
				t.Errorf("the nodes run %s, want %s", got, tc.want)
			}
		})
	}
}

// rendered is what the nodes are to run, and makes sure that pods can ask the driver for NICs by a class only while it
// hands them out.
func rendered(t *testing.T, w *poolWorld) string {
	t.Helper()
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents", image: "operator:v1"}
	objects, err := r.render(w, decidePool(w, newSelections()))
	if err != nil {
		t.Fatal(err)
	}
	words, hasClass := "plugin", false
	for _, object := range objects {
		hasClass = hasClass || object.GetKind() == "DeviceClass"
		daemonSet := &appsv1.DaemonSet{}
		if object.GetKind() != "DaemonSet" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, daemonSet); err != nil {
			t.Fatal(err)
		}
		if dynamic, draining := manifests.IsDriver(daemonSet); draining {
			words = "draining"
		} else if dynamic {
			words = "driver"
		}
	}
	if hasClass != (words == "driver") {
		t.Errorf("%s has a DeviceClass: %v", words, hasClass)
	}
	return words
}

// TestChangeOfAllocationIsSaid: the container is named until it ends.
func TestChangeOfAllocationIsSaid(t *testing.T) {
	cases := map[string]struct {
		allocation v1alpha1.AllocationType
		user       v1alpha1.NICUser
		want       string
	}{
		"held by the plugin":          {byClaim, allocatedBy(byPlugin), "by DevicePlugin, which spec.allocation named before: the NIC is handed out by DynamicResourceAllocation when the pod ends"},
		"held by a claim":             {"", allocatedBy(byClaim), "by DynamicResourceAllocation, which spec.allocation named before: the NIC is handed out by DevicePlugin"},
		"held as the pool says":       {byClaim, allocatedBy(byClaim), ""},
		"held as the default is":      {"", allocatedBy(byPlugin), ""},
		"the agent does not tell how": {"", allocatedBy(""), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := makePool("x2").obj()
			pool.Spec.Allocation = tc.allocation
			nic := nicThatIs(firstPort, v1alpha1.NICHealthy)
			nic.Users = []v1alpha1.NICUser{tc.user}
			w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, tradingNode("n1")).says("n1", nic)
			status := newPoolSummary(w, decidePool(w, newSelections()), nil).status(metav1.Now())
			progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
			changing := progressing.Status == metav1.ConditionTrue && progressing.Reason == v1alpha1.ReasonAllocationChanging
			if changing != (tc.want != "") || !strings.Contains(progressing.Message, tc.want) {
				t.Errorf("Progressing is %+v, want %q", progressing, tc.want)
			}
			if meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) == changing ||
				meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionDegraded) {
				t.Errorf("conditions are %+v", status.Conditions)
			}
			if named := slices.ContainsFunc(status.Findings, func(f v1alpha1.PoolFinding) bool { return strings.Contains(f.Message, "trading/feed") }); named != changing {
				t.Errorf("findings are %+v", status.Findings)
			}
		})
	}
}

// TestNameOfTheClass: pods ask the driver by the name of the resource only when no kubelet remembers the device plugin.
func TestNameOfTheClass(t *testing.T) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	silent := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
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
		"a kubelet that forgot the plugin":    {condition: ready, counted: "0", users: []v1alpha1.NICUser{allocatedBy(byClaim)}, wantName: true},
		"a container of the plugin":           {condition: ready, counted: "0", users: []v1alpha1.NICUser{allocatedBy(byPlugin)}, wantSaid: "trading/feed"},
		"a kubelet that is gone takes no pod": {condition: silent, counted: "2", wantName: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := makePool("x2").obj()
			pool.Spec.Allocation = byClaim
			node := tradingNode("n1")
			node.Status.Conditions = []corev1.NodeCondition{tc.condition}
			if tc.counted != "" {
				node.Status.Capacity = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse(tc.counted)}
			}
			nic := nicThatIs(firstPort, v1alpha1.NICHealthy)
			nic.Users = tc.users
			w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, node).says("n1", nic)
			if got, want := classOf(t, w).Spec.ExtendedResourceName, "lowlatency.dev/x2"; tc.wantName != (got != nil && *got == want) {
				t.Errorf("the class has the name %v, want one: %v", got, tc.wantName)
			}
			status := newPoolSummary(w, decidePool(w, newSelections()), nil).status(metav1.Now())
			progressing := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProgressing)
			if (progressing.Status == metav1.ConditionTrue) != (tc.wantSaid != "") || !strings.Contains(progressing.Message, tc.wantSaid) {
				t.Errorf("Progressing is %+v, want %q", progressing, tc.wantSaid)
			}
		})
	}
}

// classOf is the DeviceClass that is made of a world.
func classOf(t *testing.T, w *poolWorld) *resourcev1.DeviceClass {
	t.Helper()
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents", image: "operator:v1"}
	objects, err := r.render(w, decidePool(w, newSelections()))
	if err != nil {
		t.Fatal(err)
	}
	class := &resourcev1.DeviceClass{}
	for _, object := range objects {
		if object.GetKind() != "DeviceClass" {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, class); err != nil {
			t.Fatal(err)
		}
		return class
	}
	t.Fatal("there is no DeviceClass")
	return nil
}

// TestClassesThatAreNotServed: an older API server is said, and nothing else of the pool fails for it.
func TestClassesThatAreNotServed(t *testing.T) {
	pool := makePool("x2").obj()
	pool.Spec.Allocation = byClaim
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool}, tradingNode("n1"))
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents", image: "operator:v1"}
	objects, err := r.render(w, decidePool(w, newSelections()))
	if err != nil {
		t.Fatal(err)
	}
	for served, want := range map[servedKinds]int{{}: 3, {attachments: true}: 3, {classes: true}: 4, {attachments: true, classes: true}: 4} {
		if got := len(served.among(objects)); got != want {
			t.Errorf("with %+v %d objects are made, want %d", served, got, want)
		}
	}
	if err := r.served.lacking(pool); !isUnrenderable(err) || !strings.Contains(err.Error(), "needs Kubernetes 1.34") {
		t.Errorf("the error is %v", err)
	}
	if err := (servedKinds{classes: true}).lacking(pool); err != nil {
		t.Errorf("with classes the error is %v", err)
	}
}

// TestStartupOfADriver: a node does not wait for a kubelet that will advertise nothing.
func TestStartupOfADriver(t *testing.T) {
	w := startingWorld(t)
	if got := len(w.startup().Pools); got != 1 {
		t.Fatalf("%d pools are waited for, want the one with a device plugin", got)
	}
	w.pools[0].Spec.Allocation = byClaim
	if waited := w.startup().Pools; len(waited) > 0 {
		t.Errorf("pools %+v are waited for", waited)
	}
}
