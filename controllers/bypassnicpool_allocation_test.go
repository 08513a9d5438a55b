// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const (
	byPlugin = v1alpha1.AllocationDevicePlugin
	byClaim  = v1alpha1.AllocationDynamic
)

// servedWorld is a world of one pool and one node of a profile, whose agent has reported the hardware of the Xeon and
// these NICs.
func servedWorld(t *testing.T, pool *v1alpha1.BypassNICPool, node *corev1.Node, nics ...v1alpha1.NodeBypassNIC) *poolWorld {
	t.Helper()
	report := objects.MakeReport(node.Name, "trading").Inventory(objects.InventoryOf(t, hosttree.Xeon())).Obj()
	report.Spec.BypassPools = []string{pool.Name}
	for _, nic := range nics {
		nic.Pool, nic.PoolGeneration = pool.Name, pool.Generation
		report.Status.BypassNICs = append(report.Status.BypassNICs, nic)
	}
	return &poolWorld{PoolWorld: fleet.PoolWorld{
		Pool: pool, Pools: []*v1alpha1.BypassNICPool{pool}, Nodes: []*corev1.Node{node},
		Profiles: []*v1alpha1.LowLatencyNodeProfile{objects.MakeProfile("trading").Obj()},
		Reports:  map[string]*v1alpha1.LowLatencyNode{node.Name: report},
	}}
}

// runs puts a DaemonSet with a command into the world. All its pods are ready.
func (w *poolWorld) runs(t *testing.T, change func(*appsv1.DaemonSet), arguments ...string) *poolWorld {
	t.Helper()
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents", image: "operator:v1"}
	objects, err := r.render(w, fleet.DecidePool(&w.PoolWorld, fleet.NewSelections()))
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
	w.DaemonSet = daemonSetAmong(w.objects)
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
		"the plugin goes on":                  {"", plugin, asItIs, []v1alpha1.NICUser{objects.User(byPlugin)}, 1, "plugin"},
		"the driver comes at once":            {byClaim, plugin, asItIs, []v1alpha1.NICUser{objects.User(byPlugin)}, 1, "driver"},
		"the driver goes on":                  {byClaim, driver, asItIs, []v1alpha1.NICUser{objects.User(byClaim)}, 1, "driver"},
		"the driver comes back":               {byClaim, draining, asItIs, []v1alpha1.NICUser{objects.User(byClaim)}, 1, "driver"},
		"the driver drains first":             {byPlugin, driver, asItIs, nil, 1, "draining"},
		"a claim keeps the driver":            {byPlugin, draining, asItIs, []v1alpha1.NICUser{objects.User(byPlugin), objects.User(byClaim)}, 1, "draining"},
		"an agent has not looked yet":         {byPlugin, draining, asItIs, nil, 0, "draining"},
		"not all pods drain yet":              {byPlugin, draining, func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled = 0 }, nil, 1, "draining"},
		"the DaemonSet was not looked at yet": {byPlugin, draining, func(d *appsv1.DaemonSet) { d.Generation = 3 }, nil, 1, "draining"},
		"nobody holds a claim any more":       {byPlugin, draining, asItIs, []v1alpha1.NICUser{objects.User(byPlugin)}, 1, "plugin"},
		"an agent that tells no way":          {byPlugin, draining, asItIs, []v1alpha1.NICUser{objects.User("")}, 1, "plugin"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := objects.MakePool("x2").Obj()
			pool.Spec.Allocation = tc.allocation
			nic := objects.NIC(objects.FirstPort, v1alpha1.NICHealthy)
			nic.Users = tc.users
			w := servedWorld(t, pool, objects.MakeNode("n1", "role", "trading"), nic).runs(t, tc.change, tc.runs...)
			w.Reports["n1"].Status.BypassNICs[0].PoolGeneration = tc.generation
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
	objects, err := r.render(w, fleet.DecidePool(&w.PoolWorld, fleet.NewSelections()))
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

// TestNameOfTheClass: pods ask the driver by the name of the resource only when no kubelet remembers the device plugin.
func TestNameOfTheClass(t *testing.T) {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	unknown := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}
	cases := map[string]struct {
		condition corev1.NodeCondition
		counted   string
		users     []v1alpha1.NICUser
		wantName  bool
	}{
		"a kubelet that never knew a plugin":  {condition: ready, wantName: true},
		"a kubelet that counts the plugin":    {condition: ready, counted: "2"},
		"a kubelet that forgot the plugin":    {condition: ready, counted: "0", users: []v1alpha1.NICUser{objects.User(byClaim)}, wantName: true},
		"a container of the plugin":           {condition: ready, counted: "0", users: []v1alpha1.NICUser{objects.User(byPlugin)}},
		"a kubelet that is gone takes no pod": {condition: unknown, counted: "2", wantName: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := objects.MakePool("x2").Obj()
			pool.Spec.Allocation = byClaim
			node := objects.MakeNode("n1", "role", "trading")
			node.Status.Conditions = []corev1.NodeCondition{tc.condition}
			if tc.counted != "" {
				node.Status.Capacity = corev1.ResourceList{"lowlatency.dev/x2": resource.MustParse(tc.counted)}
			}
			nic := objects.NIC(objects.FirstPort, v1alpha1.NICHealthy)
			nic.Users = tc.users
			w := servedWorld(t, pool, node, nic)
			if got, want := classOf(t, w).Spec.ExtendedResourceName, "lowlatency.dev/x2"; tc.wantName != (got != nil && *got == want) {
				t.Errorf("the class has the name %v, want one: %v", got, tc.wantName)
			}
		})
	}
}

// classOf is the DeviceClass that is made of a world.
func classOf(t *testing.T, w *poolWorld) *resourcev1.DeviceClass {
	t.Helper()
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents", image: "operator:v1"}
	objects, err := r.render(w, fleet.DecidePool(&w.PoolWorld, fleet.NewSelections()))
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
	pool := objects.MakePool("x2").Obj()
	pool.Spec.Allocation = byClaim
	w := servedWorld(t, pool, objects.MakeNode("n1", "role", "trading"))
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents", image: "operator:v1"}
	objects, err := r.render(w, fleet.DecidePool(&w.PoolWorld, fleet.NewSelections()))
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
