// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

const tradingPool = "trading-ca978112"

// steps decides about the cluster as it is and says what would be written.
func (c *cluster) steps(intent *platform.Intent) ([]string, platform.Outcome) {
	w := c.world()
	targets, conflicts := aim(w, intent, "operator", renderText)
	c.evidence(w, targets)
	d := decideRoll(w, intent, targets, conflicts)
	var texts []string
	for _, s := range d.steps {
		texts = append(texts, s.String())
	}
	return texts, d.outcome
}

func TestRollout(t *testing.T) {
	one := fleet{"n1": "a1"}
	write := []string{
		"pause " + tradingPool, "apply MachineConfig 50-lowlatency-" + tradingPool,
		"apply KubeletConfig lowlatency-" + tradingPool, "apply Tuned lowlatency-" + tradingPool,
	}
	label := `label n1 profile="trading" pool="` + tradingPool + `"`
	inForce := func(c *cluster) { c.finish(one) }
	written := func(c *cluster) { c.act(c.look(one), 100) }
	rendered := func(c *cluster) {
		written(c)
		c.kubelet(key{kindKubeletConfig, "lowlatency-" + tradingPool})
		c.render(tradingPool)
	}
	cases := map[string]struct {
		before      func(*cluster)
		fleet       fleet
		intent      func(*platform.Intent)
		want        []string
		wantPhase   platform.Phase
		wantMessage string
	}{
		"a new pool is created paused, and no node is in it yet": {
			before: func(*cluster) {}, want: write, wantPhase: platform.PhaseWriting,
			wantMessage: "is paused while its configuration is written",
		},
		"nothing happens before the KubeletConfig is taken in": {
			before: written, want: nil, wantPhase: platform.PhaseWriting,
			wantMessage: "has not taken in KubeletConfig lowlatency-" + tradingPool,
		},
		"nothing happens before the configuration is rendered": {
			before: func(c *cluster) {
				written(c)
				c.kubelet(key{kindKubeletConfig, "lowlatency-" + tradingPool})
			},
			want: nil, wantPhase: platform.PhaseWriting, wantMessage: "has no rendered configuration yet",
		},
		"a rendered pool gets its nodes and is let go": {
			before: rendered, want: []string{label, "apply MachineConfigPool " + tradingPool}, wantPhase: platform.PhaseRolling,
			wantMessage: "begins to roll",
		},
		"a pool that rolls is left alone": {
			before: func(c *cluster) {
				rendered(c)
				c.act(c.look(one), 100)
				c.status(tradingPool)
			},
			want: nil, wantPhase: platform.PhaseRolling, wantMessage: "has updated 0 of 1 nodes",
		},
		"a pool whose nodes are not counted yet is not in force": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Status.MachineCount = 0
				c.pools[tradingPool].Status.UpdatedMachineCount = 0
			},
			want: nil, wantPhase: platform.PhaseRolling, wantMessage: "has updated 0 of 1 nodes",
		},
		"a pool in force is left alone": {before: inForce, want: nil, wantPhase: platform.PhaseInForce},
		"a changed plan is written into the paused pool": {
			before: inForce, fleet: fleet{"n1": "a2"}, want: write, wantPhase: platform.PhaseWriting,
			wantMessage: "is paused while its configuration is written",
		},
		"what somebody has changed is written again": {
			before: func(c *cluster) {
				inForce(c)
				c.objects[key{kindMachineConfig, "50-lowlatency-" + tradingPool}].Object["spec"] = map[string]any{"kernelArguments": []any{"mine"}}
			},
			want: write[:2], wantPhase: platform.PhaseWriting, wantMessage: "is paused while",
		},
		"a change that takes effect at once needs no pause": {
			before: func(c *cluster) {
				inForce(c)
				delete(c.objects, key{kindTuned, "lowlatency-" + tradingPool})
			},
			want: write[3:], wantPhase: platform.PhaseInForce,
		},
		"a label that somebody has taken away needs no pause": {
			before: func(c *cluster) {
				inForce(c)
				c.objects[key{kindMachineConfig, "50-lowlatency-" + tradingPool}].SetLabels(nil)
			},
			want: write[1:2], wantPhase: platform.PhaseInForce,
		},
		"a changed pool is restored without a pause": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"other": ""}}
			},
			want: []string{"apply MachineConfigPool " + tradingPool}, wantPhase: platform.PhaseInForce,
		},
		"a pool that its administrator has paused stays paused": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Spec.Paused = true
				c.pools[tradingPool].ManagedFields = []metav1.ManagedFieldsEntry{pausedBy("admin", metav1.ManagedFieldsOperationUpdate)}
				c.pools[tradingPool].Status.UpdatedMachineCount = 0
			},
			want: nil, wantPhase: platform.PhaseStopped, wantMessage: "is paused by its administrator",
		},
		"a change is written into a pool that its administrator has paused": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Spec.Paused = true
				c.pools[tradingPool].ManagedFields = []metav1.ManagedFieldsEntry{pausedBy("admin", metav1.ManagedFieldsOperationUpdate)}
			},
			fleet: fleet{"n1": "a2"}, want: write, wantPhase: platform.PhaseWriting, wantMessage: "is paused while",
		},
		"a pool that holds a node without a plan is left alone": {
			before: func(c *cluster) { c.finish(fleet{"n1": "a1", "n2": "a1"}) }, fleet: fleet{"n1": "a2"},
			intent: func(i *platform.Intent) {
				i.Selected, i.Held["n2"] = []string{"n1", "n2"}, "the profile cannot be met on it"
			},
			want: nil, wantPhase: platform.PhaseHeld,
			wantMessage: "MachineConfigPool " + tradingPool + " is left as it is, because node n2 in it must not be changed: the profile cannot be met on it",
		},
		"an unchanged pool with a node without a plan is in force": {
			before: func(c *cluster) { c.finish(fleet{"n1": "a1", "n2": "a1"}) }, fleet: fleet{"n1": "a1"},
			intent: func(i *platform.Intent) {
				i.Selected, i.Held["n2"] = []string{"n1", "n2"}, "the profile cannot be met on it"
			},
			want: nil, wantPhase: platform.PhaseInForce,
		},
		"a node that the profile no longer selects is released": {
			before: func(c *cluster) { c.finish(fleet{"n1": "a1", "n2": "a1"}) }, fleet: fleet{"n1": "a1"},
			want: []string{`label n2 profile="" pool=""`}, wantPhase: platform.PhaseInForce,
		},
		"a node that another profile takes over is left to it": {
			before: func(c *cluster) { c.finish(fleet{"n1": "a1", "n2": "a1"}) }, fleet: fleet{"n1": "a1"},
			intent: func(i *platform.Intent) { i.Held["n2"] = "profile other is about to take it over" },
			want:   nil, wantPhase: platform.PhaseInForce,
		},
		"a pool waits for nodes that move to another": {
			before: func(c *cluster) {
				c.finish(fleet{"n1": "a1", "n2": "a1"})
				f := fleet{"n1": "a2", "n2": "c2"}
				c.act(c.look(f), 100)
				c.kubelet(key{kindKubeletConfig, "lowlatency-" + tradingPool})
				c.render(tradingPool)
			},
			fleet: fleet{"n1": "a2", "n2": "c2"}, want: nil, wantPhase: platform.PhaseWriting,
			wantMessage: "is paused until the nodes n2 have left it",
		},
		"a degraded pool is a failure": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{
					Type: mcfgv1.MachineConfigPoolNodeDegraded, Status: corev1.ConditionTrue, Message: "Node n1 is reporting: disk full",
				}}
			},
			want: nil, wantPhase: platform.PhaseFailed,
			wantMessage: "MachineConfigPool " + tradingPool + " reports NodeDegraded: Node n1 is reporting: disk full",
		},
		"a refused KubeletConfig is a failure": {
			before: func(c *cluster) {
				written(c)
				object := c.objects[key{kindKubeletConfig, "lowlatency-" + tradingPool}]
				object.Object["status"] = map[string]any{
					"observedGeneration": object.GetGeneration(),
					"conditions":         []any{map[string]any{"type": "Accepted", "status": "False", "message": "Error: no such field"}},
				}
			},
			want: nil, wantPhase: platform.PhaseFailed, wantMessage: "refuses KubeletConfig lowlatency-" + tradingPool + ": Error: no such field",
		},
		"another KubeletConfig that replaces ours is a failure": {
			before: func(c *cluster) {
				rendered(c)
				c.configs["99-"+tradingPool+"-generated-kubelet-1"] = &mcfgv1.MachineConfig{
					ObjectMeta: metav1.ObjectMeta{
						Name:   "99-" + tradingPool + "-generated-kubelet-1",
						Labels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: tradingPool},
					},
					Spec: mcfgv1.MachineConfigSpec{},
				}
				c.configs["99-"+tradingPool+"-generated-kubelet-1"].Spec.Config.Raw = fileIgnition("/etc/kubernetes/kubelet.conf", "other")
				c.render(tradingPool)
			},
			want: nil, wantPhase: platform.PhaseFailed,
			wantMessage: "MachineConfig 99-" + tradingPool + "-generated-kubelet-1 replaces the kubelet settings of KubeletConfig lowlatency-" + tradingPool,
		},
		"a read-only look writes nothing": {
			before: func(*cluster) {}, intent: func(i *platform.Intent) { i.ReadOnly = true },
			want: nil, wantPhase: platform.PhaseWriting, wantMessage: "is paused while",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "n1", "n2")
			tc.before(c)
			f := tc.fleet
			if f == nil {
				f = one
			}
			intent := f.intent(c)
			if tc.intent != nil {
				tc.intent(intent)
			}
			got, outcome := c.steps(intent)
			got = stepsOf(got, tradingPool)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("steps mismatch (-want +got):\n%s", diff)
			}
			state := outcome.Pools[len(outcome.Pools)-1]
			for _, p := range outcome.Pools {
				if p.Name == tradingPool {
					state = p
				}
			}
			if state.Phase != tc.wantPhase || !strings.Contains(state.Message, tc.wantMessage) || tc.wantMessage == "" && state.Message != "" {
				t.Errorf("pool is %s: %q, want %s: %q", state.Phase, state.Message, tc.wantPhase, tc.wantMessage)
			}
		})
	}
}

// stepsOf leaves the steps about one pool, and those about nodes.
func stepsOf(steps []string, pool string) []string {
	var about []string
	for _, s := range steps {
		if strings.Contains(s, pool) || strings.HasPrefix(s, "label") {
			about = append(about, s)
		}
	}
	return about
}

func TestSamePool(t *testing.T) {
	limit := intstr.FromInt32(2)
	base := func() *mcfgv1.MachineConfigPool { return pool("trading", map[string]string{"a": "b"}) }
	cases := map[string]struct {
		live, want func(*mcfgv1.MachineConfigPool)
		same       bool
	}{
		"equal": {same: true},
		"the platform has filled in the configuration": {
			live: func(p *mcfgv1.MachineConfigPool) { p.Spec.Configuration.Name = "rendered" }, same: true,
		},
		"a limit is missing":             {want: func(p *mcfgv1.MachineConfigPool) { p.Spec.MaxUnavailable = &limit }},
		"a limit of somebody else stays": {live: func(p *mcfgv1.MachineConfigPool) { p.Spec.MaxUnavailable = &limit }, same: true},
		"a limit of ours goes": {live: func(p *mcfgv1.MachineConfigPool) {
			p.Spec.MaxUnavailable = &limit
			p.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: platform.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:maxUnavailable":{}}}`)},
			}}
		}},
		"a label is missing":  {want: func(p *mcfgv1.MachineConfigPool) { p.Labels["x"] = "y" }},
		"a selector differs":  {live: func(p *mcfgv1.MachineConfigPool) { p.Spec.MachineConfigSelector = nil }},
		"an old mark is left": {live: func(p *mcfgv1.MachineConfigPool) { p.Annotations = map[string]string{AnnotationPausedFor: "x"} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live, want := base(), base()
			if tc.live != nil {
				tc.live(live)
			}
			if tc.want != nil {
				tc.want(want)
			}
			if got := samePool(live, want); got != tc.same {
				t.Errorf("samePool() = %v, want %v", got, tc.same)
			}
		})
	}
}

func TestHeldByUs(t *testing.T) {
	entry := func(manager string, operation metav1.ManagedFieldsOperationType, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: &metav1.FieldsV1{Raw: []byte(fields)},
		}
	}
	const apply = metav1.ManagedFieldsOperationApply
	spec := `{"f:spec":{"f:paused":{}}}`
	cases := map[string]struct {
		paused  bool
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"not paused": {entries: []metav1.ManagedFieldsEntry{entry(platform.FieldManager, apply, "", spec)}},
		"ours":       {paused: true, entries: []metav1.ManagedFieldsEntry{entry(platform.FieldManager, apply, "", spec)}, want: true},
		"ours and the administrator's": {paused: true, entries: []metav1.ManagedFieldsEntry{
			entry("kubectl", metav1.ManagedFieldsOperationUpdate, "", spec), entry(platform.FieldManager, apply, "", spec),
		}, want: true},
		"the administrator's":   {paused: true, entries: []metav1.ManagedFieldsEntry{entry("kubectl", apply, "", spec)}},
		"another kind of write": {paused: true, entries: []metav1.ManagedFieldsEntry{entry(platform.FieldManager, metav1.ManagedFieldsOperationUpdate, "", spec)}},
		"the status":            {paused: true, entries: []metav1.ManagedFieldsEntry{entry(platform.FieldManager, apply, "status", spec)}},
		"another field":         {paused: true, entries: []metav1.ManagedFieldsEntry{entry(platform.FieldManager, apply, "", `{"f:spec":{"f:nodeSelector":{}}}`)}},
		"unreadable fields":     {paused: true, entries: []metav1.ManagedFieldsEntry{entry(platform.FieldManager, apply, "", `{`)}},
		"no fields":             {paused: true, entries: []metav1.ManagedFieldsEntry{{Manager: platform.FieldManager, Operation: apply}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pool("trading", nil)
			p.Spec.Paused, p.ManagedFields = tc.paused, tc.entries
			if got := heldByUs(p); got != tc.want {
				t.Errorf("heldByUs() = %v, want %v", got, tc.want)
			}
		})
	}
	if heldByUs(nil) {
		t.Error("a pool that does not exist is held")
	}
}

func TestPausedPool(t *testing.T) {
	foreign := pool("worker-cnf", nil)
	held := paused(poolReference(foreign), "abc")
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
		"metadata": map[string]any{
			"name": "worker-cnf", "uid": "uid-worker-cnf", "annotations": map[string]any{AnnotationPausedFor: "abc"},
		},
		"spec": map[string]any{"paused": true},
	}}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Errorf("paused() mismatch (-want +got):\n%s", diff)
	}
}

func TestExistingPoolIsChangedOnce(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	c.pools["worker-cnf"] = pool("worker-cnf", map[string]string{"cnf": ""})
	for _, node := range c.nodes {
		node.Labels["cnf"] = ""
	}
	c.settle()
	clear(c.reboots)
	f := fleet{"n1": "a1", "n2": "a1"}
	bind := func() look {
		l := c.look(f)
		l.intent.Profile.Spec.Pools = v1alpha1.PoolsSpec{
			Management: v1alpha1.PoolsExisting,
			Existing:   &v1alpha1.ExistingPool{MachineConfigPoolSelector: v1alpha1.Labels{"pools.operator.machineconfiguration.openshift.io/worker-cnf": ""}},
		}
		return l
	}
	for range 6 {
		c.act(bind(), 100)
		c.settle()
	}
	d := c.act(bind(), 100)
	c.expectInForce(f, d)
	p := c.pools["worker-cnf"]
	if p.Spec.Paused || p.Annotations[AnnotationPausedFor] != "" || p.Labels[v1alpha1.LabelProfile] != "" {
		t.Errorf("the pool of somebody else was left changed: %+v", p)
	}
	for name, count := range c.reboots {
		if count != 1 {
			t.Errorf("node %s rebooted %d times, want once", name, count)
		}
	}

	clear(c.reboots)
	for range 8 {
		l := bind()
		c.evidence(l.w, nil)
		l.intent.Shapes, l.intent.Selected = nil, nil
		steps, rest := decideReturn(l.w, l.intent)
		for _, s := range steps {
			c.take(s)
		}
		if rest.Done() {
			break
		}
		c.settle()
	}
	if len(c.objects) > 0 || c.pools["worker-cnf"].Spec.Paused {
		t.Errorf("left behind: %v, paused %v", objectNames(c.objects), c.pools["worker-cnf"].Spec.Paused)
	}
	for name, count := range c.reboots {
		if count != 1 {
			t.Errorf("node %s rebooted %d times on return, want once", name, count)
		}
	}
}

func objectNames(objects map[key]*unstructured.Unstructured) []string {
	var names []string
	for k := range objects {
		names = append(names, k.kind+" "+k.name)
	}
	return names
}
