// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

func noon() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

func TestReadKuredLock(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"none":            {"", ""},
		"for ever":        {`{"nodeID":"a","metadata":{"unschedulable":false},"created":"2026-11-23T11:00:00Z","TTL":0}`, "for node a"},
		"not over":        {`{"nodeID":"a","created":"2026-11-23T11:00:00Z","TTL":7200000000000}`, "for node a"},
		"over":            {`{"nodeID":"a","created":"2026-11-23T11:00:00Z","TTL":60000000000}`, ""},
		"several":         {`{"maxOwners":2,"locks":[{"nodeID":"a","created":"2026-11-23T11:00:00Z","TTL":1},{"nodeID":"b","created":"2026-11-23T11:00:00Z","TTL":0}]}`, "for node b"},
		"several, nobody": {`{"maxOwners":2,"locks":[]}`, ""},
		"garbage":         {`x`, "nobody can tell"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := readKuredLock(tc.text, noon()); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("readKuredLock() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestLockOfKured: kured may run in any namespace, under any name.
func TestLockOfKured(t *testing.T) {
	held := `{"nodeID": "worker-9", "created": "2026-01-01T00:00:00Z", "TTL": 0}`
	for name, lock := range map[string]string{"held": held, "free": ""} {
		t.Run(name, func(t *testing.T) {
			live := fake.NewClientBuilder().WithObjects(
				&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}},
				&appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "reboots", Name: "of-site-b", Annotations: map[string]string{kuredLock: lock}}},
			).Build()
			p := &Platform{Options: Options{Live: live, Clock: clocktesting.NewFakePassiveClock(noon())}}
			got, err := p.lockOfKured(t.Context(), nil)
			if err != nil || (got == "kured holds its lock for node worker-9") != (lock == held) || (got == "") != (lock == "") {
				t.Errorf("lockOfKured() = %q, %v", got, err)
			}
		})
	}
}

// TestLocksThatComeInATurn: whom a cordon does not keep away from the node stops what is done on it; what is done on other nodes alone does not, and nothing but the
// end of its machine keeps a node from being let go.
func TestLocksThatComeInATurn(t *testing.T) {
	holder := "node-maintenance"
	upgrade := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "system-upgrade", Name: "apply", Labels: map[string]string{upgradeNode: "a"}}}
	elsewhere := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "system-upgrade", Name: "apply", Labels: map[string]string{upgradeNode: "b"}}}
	over := upgrade.DeepCopy()
	over.Status.Phase = corev1.PodSucceeded
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: medik8sNamespace, Name: medik8sPrefix + "a"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
	kured := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: "kured", Annotations: map[string]string{kuredLock: `{"nodeID": "b", "created": "2026-01-01T00:00:00Z", "TTL": 0}`},
	}}
	all := []enactment.Verb{enactment.TakeTurn, enactment.Cordon, enactment.Evict, enactment.Instruct, enactment.Uncordon}
	working := []enactment.Verb{enactment.TakeTurn, enactment.Cordon, enactment.Evict, enactment.Instruct}
	for name, tc := range map[string]struct {
		object client.Object
		stops  []enactment.Verb
	}{
		"an upgrade of the node": {upgrade, working}, "an upgrade that is over": {over, nil}, "an upgrade of another node": {elsewhere, nil},
		"medik8s": {lease, working}, "kured, with another node": {kured, []enactment.Verb{enactment.TakeTurn}},
	} {
		p := &Platform{Options: Options{Live: fake.NewClientBuilder().WithObjects(tc.object.DeepCopyObject().(client.Object)).Build(), Clock: clocktesting.NewFakePassiveClock(noon())}}
		for _, verb := range all {
			w := &world{nodes: []enactment.Node{{Name: "a"}}, known: map[string]*corev1.Node{"a": {ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
			found, err := p.findLock(t.Context(), w, &enactment.Decision{Steps: []enactment.Step{{Node: "a", Verb: verb}}})
			if err != nil || found != slices.Contains(tc.stops, verb) || found != (w.nodes[0].Lock != "") {
				t.Errorf("%s: findLock() before %s = %t (%q), %v", name, verb, found, w.nodes[0].Lock, err)
			}
		}
	}
}

func TestIsHeld(t *testing.T) {
	lease := func(holder string, seconds int32, ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: new(metav1.NewMicroTime(noon().Add(-ago))),
		}}
	}
	cases := map[string]struct {
		lease *coordinationv1.Lease
		want  bool
	}{
		"held":             {lease("node-maintenance", 3600, time.Minute), true},
		"over":             {lease("node-maintenance", 60, time.Hour), false},
		"given up":         {lease("", 3600, time.Minute), false},
		"nobody":           {&coordinationv1.Lease{}, false},
		"without a length": {&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("a")}}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isHeld(tc.lease, noon()); got != tc.want {
				t.Errorf("isHeld() = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLockOf(t *testing.T) {
	cases := map[string]struct {
		change func(*corev1.Node)
		want   string
	}{
		"nobody":         {func(*corev1.Node) {}, ""},
		"our own taint":  {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "lowlatency.dev/unverified"}} }, ""},
		"kured":          {func(n *corev1.Node) { n.Annotations = map[string]string{kuredReboots: "now"} }, "kured"},
		"Karpenter":      {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} }, "karpenter.sh/disrupted"},
		"the autoscaler": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}} }, "ToBeDeleted"},
		"medik8s":        {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "medik8s.io/drain"}} }, "medik8s.io/drain"},
		"Karpenter, new": {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/rebooting"}} }, "Karpenter reboots it"},
		"Cluster API":    {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "node.cluster.x-k8s.io/outdated-revision"}} }, "about to replace"},
		"a name alike":   {func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disruptedness"}} }, ""},
		"our hold":       {func(n *corev1.Node) { hold(n) }, ""},
		"kubectl drain": {func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDrainInProgress, Status: corev1.ConditionTrue, Reason: "KubectlDrainStarted"}}
		}, "KubectlDrainStarted"},
		"deletion": {func(n *corev1.Node) { n.DeletionTimestamp = new(metav1.NewTime(noon())) }, "deleted"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{}
			tc.change(node)
			if got := lockOf(node); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("lockOf() = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestObjectName: names of nodes may be longer than those of pods.
func TestObjectName(t *testing.T) {
	if got := objectName("worker-1"); got != "enact-worker-1" {
		t.Errorf("objectName() = %q", got)
	}
	long, other := strings.Repeat("a", 252)+"b", strings.Repeat("a", 252)+"c"
	if len(objectName(long)) > 63 || objectName(long) == objectName(other) {
		t.Errorf("objectName() = %q and %q", objectName(long), objectName(other))
	}
}

// TestHold: what others have set stays as it is, and what we have set goes.
func TestHold(t *testing.T) {
	cases := map[string]struct {
		before func(*corev1.Node)
		held   string
		// meanwhile is what somebody does while the node is held.
		meanwhile func(*corev1.Node)
		after     func(*corev1.Node)
	}{
		"nobody else": {func(*corev1.Node) {}, karpenterHold + "," + autoscalerHold + "," + medik8sHold, func(*corev1.Node) {}, func(*corev1.Node) {}},
		"somebody holds it, too": {
			func(n *corev1.Node) { n.Annotations[karpenterHold] = "true" }, autoscalerHold + "," + medik8sHold,
			func(*corev1.Node) {}, func(n *corev1.Node) { n.Annotations[karpenterHold] = "true" },
		},
		"somebody says the contrary": {
			func(n *corev1.Node) { n.Labels[medik8sHold] = "false" }, karpenterHold + "," + autoscalerHold,
			func(*corev1.Node) {}, func(n *corev1.Node) { n.Labels[medik8sHold] = "false" },
		},
		"somebody changes it": {
			func(*corev1.Node) {}, karpenterHold + "," + autoscalerHold + "," + medik8sHold,
			func(n *corev1.Node) { n.Annotations[autoscalerHold] = "false" }, func(n *corev1.Node) { n.Annotations[autoscalerHold] = "false" },
		},
		"somebody notes what is not ours": {
			func(*corev1.Node) {}, karpenterHold + "," + autoscalerHold + "," + medik8sHold,
			func(n *corev1.Node) {
				n.Annotations[v1alpha1.AnnotationHeld] += ",other"
				n.Annotations["other"] = "true"
			},
			func(n *corev1.Node) { n.Annotations["other"] = "true" },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "true"}, Annotations: map[string]string{"b": "true"}}}
			node := want.DeepCopy()
			tc.before(node)
			for range 2 {
				hold(node)
			}
			if got := node.Annotations[v1alpha1.AnnotationHeld]; got != tc.held {
				t.Errorf("noted is %q, want %q", got, tc.held)
			}
			tc.meanwhile(node)
			tc.after(want)
			giveUp(node)
			if diff := cmp.Diff(want, node); diff != "" {
				t.Errorf("given up (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadMachine: the Machine of another node says nothing.
func TestReadMachine(t *testing.T) {
	cases := map[string]struct {
		node   string
		change func(*unstructured.Unstructured)
		want   string
	}{
		"nothing":    {"n1", func(*unstructured.Unstructured) {}, ""},
		"deleted":    {"n1", func(m *unstructured.Unstructured) { m.SetDeletionTimestamp(new(metav1.NewTime(noon()))) }, "Cluster API deletes its Machine fleet/m1"},
		"of another": {"n2", func(m *unstructured.Unstructured) { m.SetDeletionTimestamp(new(metav1.NewTime(noon()))) }, ""},
		"to be deleted": {"n1", func(m *unstructured.Unstructured) {
			m.SetAnnotations(map[string]string{"cluster.x-k8s.io/delete-machine": ""})
		}, "marked to be deleted"},
		"updated": {"n1", func(m *unstructured.Unstructured) {
			m.SetAnnotations(map[string]string{"in-place-updates.internal.cluster.x-k8s.io/update-in-progress": ""})
		}, "updated in place"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			machine := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"nodeRef": map[string]any{"name": "n1"}}}}
			machine.SetNamespace("fleet")
			machine.SetName("m1")
			tc.change(machine)
			if got := readMachine(machine, tc.node); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("readMachine() = %q, want %q", got, tc.want)
			}
		})
	}
}
