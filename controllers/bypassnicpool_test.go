// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// poolWorldOf is a world of one profile, trading, whose nodes have reported the hardware of the Xeon.
func poolWorldOf(t *testing.T, pools []*v1alpha1.BypassNICPool, nodes ...*corev1.Node) *poolWorld {
	t.Helper()
	w := &poolWorld{
		pool: pools[0], pools: pools, nodes: nodes, reports: map[string]*v1alpha1.LowLatencyNode{},
		profiles: []*v1alpha1.LowLatencyNodeProfile{makeProfile("trading").obj()},
	}
	xeon := inventoryOf(t, hosttree.Xeon())
	for _, node := range nodes {
		report := makeReport(node.Name, "trading").inventory(xeon).obj()
		report.Spec.BypassPools = newPoolIndex(pools).of(node).names()
		w.reports[node.Name] = report
	}
	return w
}

// says lets the agent of a node say something about NICs of the pool.
func (w *poolWorld) says(node string, nics ...v1alpha1.NodeBypassNIC) *poolWorld {
	for _, nic := range nics {
		nic.Pool, nic.PoolGeneration = w.pool.Name, w.pool.Generation
		w.reports[node].Status.BypassNICs = append(w.reports[node].Status.BypassNICs, nic)
	}
	return w
}

func nicThatIs(address string, health v1alpha1.NICHealth, reasons ...string) v1alpha1.NodeBypassNIC {
	return v1alpha1.NodeBypassNIC{PCIAddress: address, Health: health, Reasons: reasons, Units: 2}
}

func tradingNode(name string, labels ...string) *corev1.Node {
	return makeNode(name, append([]string{"role", "trading"}, labels...)...)
}

func TestPoolConditions(t *testing.T) {
	const healthy, unhealthy = v1alpha1.NICHealthy, v1alpha1.NICUnhealthy
	x2 := []*v1alpha1.BypassNICPool{makePool("x2").obj()}
	base := func(nodes ...*corev1.Node) *poolWorld { return poolWorldOf(t, x2, nodes...) }
	cases := map[string]struct {
		world   *poolWorld
		failure error
		// want are the statuses of Ready, Progressing and Degraded, and the reason of Ready.
		want        string
		wantMessage string
	}{
		"no node": {base(), nil, "False/False/False NoNodes", "selects no node"},
		"all healthy": {
			base(tradingNode("n1")).says("n1", nicThatIs(firstPort, healthy)), nil,
			"True/False/False NICsHealthy", "all 1 NICs are healthy and give 2 units of lowlatency.dev/x2",
		},
		"one node is awaited": {
			base(tradingNode("n1"), tradingNode("n2")).says("n1", nicThatIs(firstPort, healthy)), nil,
			"False/True/False AwaitingNodes", "the agents of nodes n2 have not reported",
		},
		"an unhealthy NIC, and a node that is awaited": {
			base(tradingNode("n1"), tradingNode("n2")).says("n1", nicThatIs(firstPort, unhealthy, "The link is down.")), nil,
			"False/True/True NICsUnhealthy", "NIC 0000:af:00.0 on node n1 is unhealthy: The link is down.",
		},
		"two unhealthy NICs": {
			base(tradingNode("n1")).says("n1", nicThatIs(firstPort, unhealthy), nicThatIs(secondPort, unhealthy)), nil,
			"False/False/True NICsUnhealthy", "the agent gives no reason (and 1 more)",
		},
		"an unknown NIC": {
			base(tradingNode("n1")).says("n1", nicThatIs(firstPort, healthy), nicThatIs(secondPort, v1alpha1.NICUnknown, "No fact.")), nil,
			"Unknown/False/False NICsUnknown", "NIC 0000:af:00.1 on node n1 is unknown: No fact.",
		},
		"one NIC is for management": {
			base(tradingNode("n1")).says("n1", nicThatIs(firstPort, healthy), nicThatIs(secondPort, v1alpha1.NICIneligible, "It carries the default route.")), nil,
			"True/False/False NICsHealthy", "all 1 NICs",
		},
		"all NICs are for management": {
			base(tradingNode("n1")).says("n1", nicThatIs(firstPort, v1alpha1.NICIneligible, "It carries the default route.")), nil,
			"False/False/False NoNICs", "is ineligible: It carries the default route.",
		},
		"no NIC matches": {
			poolWorldOf(t, []*v1alpha1.BypassNICPool{makePool("x2").nics("0000:ff:00.0").obj()}, tradingNode("n1")), nil,
			"False/False/False NoNICs", "match no NIC",
		},
		"a refused object": {
			base(tradingNode("n1")).says("n1", nicThatIs(firstPort, unhealthy)), errors.New("DaemonSet bypass-x2 is forbidden"),
			"False/False/True PlatformFailed", "DaemonSet bypass-x2 is forbidden (and 1 more)",
		},
		"a node of no profile": {
			base(tradingNode("n1"), makeNode("bare")).says("n1", nicThatIs(firstPort, healthy)), nil,
			"False/False/True NodesUngoverned", "no LowLatencyNodeProfile selects node bare",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newPoolSummary(tc.world, decidePool(tc.world, newSelections()), tc.failure)
			status := s.status(metav1.NewTime(time.Unix(0, 0)))
			of := func(kind string) *metav1.Condition { return meta.FindStatusCondition(status.Conditions, kind) }
			ready := of(v1alpha1.ConditionReady)
			got := fmt.Sprintf("%s/%s/%s %s", ready.Status, of(v1alpha1.ConditionProgressing).Status, of(v1alpha1.ConditionDegraded).Status, ready.Reason)
			if got != tc.want || !strings.Contains(ready.Message, tc.wantMessage) {
				t.Errorf("conditions are %s (%s), want %s (%s)", got, ready.Message, tc.want, tc.wantMessage)
			}
			tc.world.pool.Status = status
			if again := s.status(metav1.NewTime(time.Unix(99, 0))); !samePoolStatus(&status, &again) {
				t.Error("the same world makes another status")
			}
		})
	}
}

func TestPoolStatusIsBounded(t *testing.T) {
	nodes := make([]*corev1.Node, 0, v1alpha1.MaxPoolMembers+10)
	for i := range v1alpha1.MaxPoolMembers + 10 {
		nodes = append(nodes, tradingNode(fmt.Sprintf("n%03d", i)))
	}
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{makePool("x2").obj()}, nodes...)
	for _, node := range nodes {
		health := v1alpha1.NICUnhealthy
		if node.Name < "n100" {
			health = v1alpha1.NICHealthy
		}
		w.says(node.Name, nicThatIs(firstPort, health, strings.Repeat("x", 600), strings.Repeat("y", 600)))
	}
	status := newPoolSummary(w, decidePool(w, newSelections()), nil).status(metav1.Now())
	if len(status.Members) != v1alpha1.MaxPoolMembers || status.Members[0].Node != "n100" {
		t.Errorf("%d members from %s on, want %d, those with an unhealthy NIC first", len(status.Members), status.Members[0].Node, v1alpha1.MaxPoolMembers)
	}
	if len(status.Findings) != v1alpha1.MaxPoolFindings || len(status.Findings[0].Message) > v1alpha1.MaxFindingMessageLength {
		t.Errorf("%d findings, the first of %d bytes", len(status.Findings), len(status.Findings[0].Message))
	}
	want := &v1alpha1.PoolNICCounts{Found: 266, Eligible: 266, Healthy: 100, Units: 200}
	if diff := cmp.Diff(want, status.NICs); diff != "" {
		t.Errorf("counts mismatch (-want +got):\n%s", diff)
	}
}

func TestReporting(t *testing.T) {
	pool := makePool("x2").obj()
	linkUp := pool.DeepCopy()
	linkUp.Spec.NICs[0].Link = v1alpha1.LinkUp
	old := nicThatIs(firstPort, v1alpha1.NICHealthy)
	cases := map[string]struct {
		pool   *v1alpha1.BypassNICPool
		change func(*v1alpha1.LowLatencyNode)
		want   bool
	}{
		"nothing said about a NIC that is there":  {pool, func(*v1alpha1.LowLatencyNode) {}, false},
		"nothing said where a link is asked for":  {linkUp, func(*v1alpha1.LowLatencyNode) {}, true},
		"said for the current spec":               {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.BypassNICs = saidFor(old, 1) }, true},
		"said for an older spec":                  {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.BypassNICs = saidFor(old, 0) }, false},
		"not asked to report the pool":            {pool, func(r *v1alpha1.LowLatencyNode) { r.Spec.BypassPools, r.Status.BypassNICs = nil, saidFor(old, 1) }, false},
		"no inventory":                            {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory = nil }, false},
		"an inventory that nobody can read":       {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory = &v1alpha1.Inventory{OnlineCPUs: "x"} }, true},
		"an inventory without NICs, nothing said": {pool, func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory.NICs = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := poolWorldOf(t, []*v1alpha1.BypassNICPool{tc.pool}, tradingNode("n1"))
			tc.change(w.reports["n1"])
			d := decidePool(w, newSelections())
			if got := d.nodes[0].isReporting(tc.pool); got != tc.want {
				t.Errorf("isReporting() = %v, want %v", got, tc.want)
			}
		})
	}
}

func saidFor(nic v1alpha1.NodeBypassNIC, generation int64) []v1alpha1.NodeBypassNIC {
	nic.Pool, nic.PoolGeneration = "x2", generation
	return []v1alpha1.NodeBypassNIC{nic}
}

func TestConflictFindings(t *testing.T) {
	pool := makePool("x2").obj()
	other := makePool("other").nics(secondPort).selecting(v1alpha1.Labels{"other": "yes"}).obj()
	namesake := makePool("same").nics("0000:18:00.1").resource("lowlatency.dev/x2").selecting(v1alpha1.Labels{"same": "yes"}).obj()
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{pool, other, namesake},
		tradingNode("alone"), tradingNode("contested", "other", "yes"), tradingNode("namesake", "same", "yes"))
	ineligible := nicThatIs(secondPort, v1alpha1.NICIneligible, "The agent says it in its own words.")
	for _, node := range []string{"alone", "contested", "namesake"} {
		w.says(node, nicThatIs(firstPort, v1alpha1.NICHealthy), ineligible)
	}
	d := decidePool(w, newSelections())
	findings := newPoolSummary(w, d, nil).findings
	got := make([]string, 0, len(findings))
	for _, finding := range findings {
		got = append(got, finding.reason+" "+finding.node+" "+finding.address)
	}
	want := []string{"PoolsConflict contested " + secondPort, "PoolsConflict namesake ", "NoNICs alone " + secondPort}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings mismatch (-want +got):\n%s", diff)
	}
	wantOthers := []bypass.OtherPool{
		{Claimant: bypass.ClaimantOf("other", &other.Spec), Nodes: []string{"contested"}},
		{Claimant: bypass.ClaimantOf("same", &namesake.Spec), Nodes: []string{"namesake"}},
	}
	if diff := cmp.Diff(wantOthers, d.content.OtherPools); diff != "" {
		t.Errorf("other pools mismatch (-want +got):\n%s", diff)
	}
}

func TestUnservedNodes(t *testing.T) {
	last := makePool("zz").obj()
	pools := make([]*v1alpha1.BypassNICPool, 0, v1alpha1.MaxPoolsPerNode+1)
	for i := range v1alpha1.MaxPoolsPerNode {
		pools = append(pools, makePool(fmt.Sprintf("pool-%02d", i)).obj())
	}
	crowded := poolWorldOf(t, append([]*v1alpha1.BypassNICPool{last}, pools...), tradingNode("n1"))
	crowded.pools = slices.Concat(pools, []*v1alpha1.BypassNICPool{last})
	disputed := poolWorldOf(t, []*v1alpha1.BypassNICPool{last}, tradingNode("n1"))
	disputed.profiles = append(disputed.profiles, makeProfile("other").selecting(v1alpha1.Labels{"role": "trading"}).obj())
	for want, w := range map[string]*poolWorld{
		"is selected by more than 16 BypassNICPools":                   crowded,
		"is selected by profiles other, trading and left as it is":     disputed,
		"no LowLatencyNodeProfile selects node bare, so none of its N": poolWorldOf(t, []*v1alpha1.BypassNICPool{last}, makeNode("bare")),
	} {
		findings := newPoolSummary(w, decidePool(w, newSelections()), nil).findings
		if len(findings) != 1 || findings[0].reason != v1alpha1.ReasonNodesUngoverned || !strings.Contains(findings[0].text, want) {
			t.Errorf("findings are %+v, want %q", findings, want)
		}
	}
}

func TestRenderOwnsItsObjects(t *testing.T) {
	w := poolWorldOf(t, []*v1alpha1.BypassNICPool{makePool("x2").obj()}, tradingNode("n1"))
	w.pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice, Namespaces: []string{"apps"}}
	r := &PoolReconciler{namespace: "operator", agentNamespace: "agents"}
	d := decidePool(w, newSelections())
	if _, err := r.render(w, d); !isUnrenderable(err) || !strings.Contains(err.Error(), "--image") {
		t.Errorf("without an image the error is %v", err)
	}
	r.image = "operator:v1"
	objects, err := r.render(w, d)
	if err != nil {
		t.Fatal(err)
	}
	expectOwned(t, objects, 4)
	if rest := (servedKinds{}).among(objects); len(rest) != 3 {
		t.Errorf("%d objects are left without network attachments, want 3", len(rest))
	}
	r.agentNamespace = "operator"
	if _, err := r.render(w, d); !isUnrenderable(err) {
		t.Errorf("an input that cannot be rendered makes the error %v", err)
	}
}

// expectOwned checks that the pool owns so many objects, and that each has a digest of its own.
func expectOwned(t *testing.T, objects []*unstructured.Unstructured, want int) {
	t.Helper()
	digests := map[string]bool{}
	for _, object := range objects {
		if owners := object.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != "uid-x2" || owners[0].BlockOwnerDeletion != nil {
			t.Errorf("%s has the owners %v", object.GetKind(), owners)
		}
		digests[object.GetAnnotations()[v1alpha1.AnnotationDigest]] = true
	}
	if len(objects) != want || len(digests) != want || digests[""] {
		t.Errorf("%d objects have the digests %v, want %d of each", len(objects), digests, want)
	}
}

func isUnrenderable(err error) bool {
	_, is := errors.AsType[unrenderable](err)
	return is
}

func TestCountPlugins(t *testing.T) {
	for command, program := range map[string]string{"device-plugin": "device plugin", "dra-driver": "driver for Dynamic Resource Allocation"} {
		daemonSet := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 5, NumberReady: 4, UpdatedNumberScheduled: 3}}
		daemonSet.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{command}}}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(daemonSet)
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{Object: fields}
		object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
		w := &poolWorld{objects: map[objectKey]*unstructured.Unstructured{keyOf(object): object}}
		if got, want := countPlugins(w), (pluginCounts{wanted: 5, ready: 3, program: program}); got != want || !got.starting() {
			t.Errorf("countPlugins() = %+v, want %+v", got, want)
		}
	}
	if got := countPlugins(&poolWorld{}); got.starting() {
		t.Errorf("without a DaemonSet countPlugins() = %+v", got)
	}
}

func TestPoolWatches(t *testing.T) {
	report := makeReport("n", "trading").obj()
	report.Spec.BypassPools = []string{"a", "b"}
	want := []reconcile.Request{requestFor("a"), requestFor("b")}
	if diff := cmp.Diff(want, poolsOfReport(t.Context(), report)); diff != "" {
		t.Errorf("poolsOfReport() mismatch (-want +got):\n%s", diff)
	}
	labelled := makeNode("n", v1alpha1.LabelBypassPool, "a")
	if diff := cmp.Diff(want[:1], poolOfLabel(t.Context(), labelled)); diff != "" {
		t.Errorf("poolOfLabel() mismatch (-want +got):\n%s", diff)
	}
	if got := append(poolsOfReport(t.Context(), labelled), poolOfLabel(t.Context(), report)...); len(got) > 0 {
		t.Errorf("other objects make the requests %v", got)
	}
	cases := map[string]struct {
		change func(*v1alpha1.LowLatencyNode)
		want   bool
	}{
		"checks":    {func(r *v1alpha1.LowLatencyNode) { r.Status.Checks = &v1alpha1.CheckCounts{Failed: 1} }, false},
		"inventory": {func(r *v1alpha1.LowLatencyNode) { r.Status.Inventory = &v1alpha1.Inventory{Hash: "x"} }, true},
		"pools":     {func(r *v1alpha1.LowLatencyNode) { r.Spec.BypassPools = nil }, true},
		"NICs":      {func(r *v1alpha1.LowLatencyNode) { r.Status.BypassNICs = make([]v1alpha1.NodeBypassNIC, 1) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := report.DeepCopy()
			tc.change(after)
			if got := nicsReported().Update(event.UpdateEvent{ObjectOld: report, ObjectNew: after}); got != tc.want {
				t.Errorf("nicsReported() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStripPlan(t *testing.T) {
	config := func(label string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{label: "x"}}, "data": map[string]any{"key": "text"},
		}}
	}
	for label, want := range map[string]bool{v1alpha1.LabelProfile: false, v1alpha1.LabelBypassPool: true} {
		object := config(label)
		if _, err := stripPlan(object); err != nil {
			t.Fatal(err)
		}
		if _, got := object.Object["data"]; got != want {
			t.Errorf("a ConfigMap with the label %s keeps its data: %v, want %v", label, got, want)
		}
	}
}
