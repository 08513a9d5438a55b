// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

const tradingPool = "trading-ca978112"

// steps decides about the cluster as it is and says what would be written.
func (c *cluster) steps(intent *fleet.Intent) ([]string, fleet.Outcome) {
	w := c.world()
	targets, conflicts := aim(w, intent, "operator", renderText)
	c.evidence(w, targets)
	d := decideRoll(w, intent, targets, conflicts)
	texts := make([]string, 0, len(d.steps))
	for _, s := range d.steps {
		texts = append(texts, s.String())
	}
	return texts, d.outcome
}

// oneNode is the fleet of most cases.
func oneNode() plannedNodes { return plannedNodes{"n1": "a1"} }

// writing are the steps that write a plan into the machine config pool.
func writing() []string {
	return []string{
		"pause " + tradingPool, "apply MachineConfig 50-lowlatency-" + tradingPool,
		"apply KubeletConfig lowlatency-" + tradingPool, "apply Tuned lowlatency-" + tradingPool,
	}
}

// inForce, written and rendered bring the cluster to where the plan of oneNode is that far.
func inForce(c *cluster) { c.finish(oneNode()) }

func written(c *cluster) { c.act(c.look(oneNode()), 100) }

func rendered(c *cluster) {
	written(c)
	c.kubelet(key{kindKubeletConfig, "lowlatency-" + tradingPool})
	c.render(tradingPool)
}

// rolling brings the cluster to where the machine config pool was let go.
func rolling(c *cluster) {
	rendered(c)
	c.act(c.look(oneNode()), 100)
	c.status(tradingPool)
}

// pausedByAdmin pauses the machine config pool in the name of somebody else.
func pausedByAdmin(c *cluster) {
	inForce(c)
	c.pools[tradingPool].Spec.Paused = true
	c.pools[tradingPool].ManagedFields = []metav1.ManagedFieldsEntry{pausedBy("admin", metav1.ManagedFieldsOperationUpdate)}
}

// twoNodes brings two nodes into the machine config pool.
func twoNodes(c *cluster) { c.finish(plannedNodes{"n1": "a1", "n2": "a1"}) }

// withoutPlan makes n2 a node that the profile selects and that has no plan.
func withoutPlan(i *fleet.Intent) {
	i.Selected, i.Held["n2"], i.Leaving = []string{"n1", "n2"}, "the profile cannot be met on it", nil
}

type rolloutCase struct {
	before func(*cluster)
	// nodes is oneNode when it is nil.
	nodes       plannedNodes
	intent      func(*fleet.Intent)
	want        []string
	wantPhase   fleet.Phase
	wantMessage string
}

func runRollouts(t *testing.T, cases map[string]rolloutCase) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "n1", "n2")
			tc.before(c)
			if tc.nodes == nil {
				tc.nodes = oneNode()
			}
			intent := tc.nodes.intent(c)
			if tc.intent != nil {
				tc.intent(intent)
			}
			steps, outcome := c.steps(intent)
			if diff := cmp.Diff(tc.want, stepsOf(steps, tradingPool), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("steps mismatch (-want +got):\n%s", diff)
			}
			expectPool(t, outcome.Groups, tc.wantPhase, tc.wantMessage)
		})
	}
}

// expectPool checks how far the machine config pool is. An empty message is to be empty; of another, a part counts.
func expectPool(t *testing.T, pools []fleet.Group, phase fleet.Phase, message string) {
	t.Helper()
	at := slices.IndexFunc(pools, func(p fleet.Group) bool { return p.Name == tradingPool })
	if at < 0 {
		t.Fatalf("there is no machine config pool %s in %+v", tradingPool, pools)
	}
	got := pools[at]
	if got.Phase != phase || !strings.Contains(got.Message, message) || message == "" && got.Message != "" {
		t.Errorf("machine config pool is %s: %q, want %s: %q", got.Phase, got.Message, phase, message)
	}
}

// TestRolloutOfAPlan follows a plan from the first write to the last node.
func TestRolloutOfAPlan(t *testing.T) {
	runRollouts(t, map[string]rolloutCase{
		"a new machine config pool is created paused, and no node is in it yet": {
			before: func(*cluster) {}, want: writing(), wantPhase: fleet.PhaseWriting,
			wantMessage: "is paused while its configuration is written",
		},
		"nothing happens before the KubeletConfig is taken in": {
			before: written, want: nil, wantPhase: fleet.PhaseWriting,
			wantMessage: "has not taken in KubeletConfig lowlatency-" + tradingPool,
		},
		"nothing happens before the configuration is rendered": {
			before: func(c *cluster) {
				written(c)
				c.kubelet(key{kindKubeletConfig, "lowlatency-" + tradingPool})
			},
			want: nil, wantPhase: fleet.PhaseWriting, wantMessage: "has no rendered configuration yet",
		},
		"a rendered machine config pool gets its nodes and is let go": {
			before: rendered, want: []string{`label n1 profile="trading" pool="` + tradingPool + `"`, "apply MachineConfigPool " + tradingPool}, wantPhase: fleet.PhaseRolling,
			wantMessage: "begins to roll",
		},
		"a machine config pool that rolls is left alone": {
			before: rolling,
			want:   nil, wantPhase: fleet.PhaseRolling, wantMessage: "has updated 0 of 1 nodes",
		},
		"a machine config pool whose nodes are not counted yet is not in force": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Status.MachineCount = 0
				c.pools[tradingPool].Status.UpdatedMachineCount = 0
			},
			want: nil, wantPhase: fleet.PhaseRolling, wantMessage: "has updated 0 of 1 nodes",
		},
		"a machine config pool in force is left alone": {before: inForce, want: nil, wantPhase: fleet.PhaseInForce},
		"a changed plan is written into the paused machine config pool": {
			before: inForce, nodes: plannedNodes{"n1": "a2"}, want: writing(), wantPhase: fleet.PhaseWriting,
			wantMessage: "is paused while its configuration is written",
		},
	})
}

// TestRolloutRestores covers what others have changed.
func TestRolloutRestores(t *testing.T) {
	runRollouts(t, map[string]rolloutCase{
		"what somebody has changed is written again": {
			before: func(c *cluster) {
				inForce(c)
				c.objects[key{kindMachineConfig, "50-lowlatency-" + tradingPool}].Object["spec"] = map[string]any{"kernelArguments": []any{"mine"}}
			},
			want: writing()[:2], wantPhase: fleet.PhaseWriting, wantMessage: "is paused while",
		},
		"a change that takes effect at once needs no pause": {
			before: func(c *cluster) {
				inForce(c)
				delete(c.objects, key{kindTuned, "lowlatency-" + tradingPool})
			},
			want: writing()[3:], wantPhase: fleet.PhaseInForce,
		},
		"a label that somebody has taken away needs no pause": {
			before: func(c *cluster) {
				inForce(c)
				c.objects[key{kindMachineConfig, "50-lowlatency-" + tradingPool}].SetLabels(map[string]string{
					mcfgv1.MachineConfigRoleLabelKey: tradingPool,
				})
			},
			want: writing()[1:2], wantPhase: fleet.PhaseInForce,
		},
		"the label by which the machine config pool selects our MachineConfig needs a pause": {
			before: func(c *cluster) {
				inForce(c)
				c.objects[key{kindMachineConfig, "50-lowlatency-" + tradingPool}].SetLabels(nil)
			},
			want: writing()[:2], wantPhase: fleet.PhaseWriting, wantMessage: "is paused while its configuration is written",
		},
		"a changed machine config pool is restored without a pause": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"other": ""}}
			},
			want: []string{"apply MachineConfigPool " + tradingPool}, wantPhase: fleet.PhaseInForce,
		},
	})
}

// TestRolloutOfPausedPools covers machine config pools that somebody else holds.
func TestRolloutOfPausedPools(t *testing.T) {
	runRollouts(t, map[string]rolloutCase{
		"a machine config pool that its administrator has paused stays paused": {
			before: func(c *cluster) {
				pausedByAdmin(c)
				c.pools[tradingPool].Status.UpdatedMachineCount = 0
			},
			want: nil, wantPhase: fleet.PhaseStopped, wantMessage: "is paused by its administrator",
		},
		"a change is written into a machine config pool that its administrator has paused": {
			before: pausedByAdmin,
			nodes:  plannedNodes{"n1": "a2"}, want: writing(), wantPhase: fleet.PhaseWriting, wantMessage: "is paused while",
		},
	})
}

// TestRolloutWithStrangers covers machine config pools with nodes that do not belong there.
func TestRolloutWithStrangers(t *testing.T) {
	runRollouts(t, map[string]rolloutCase{
		"a machine config pool that holds a node without a plan is left alone": {
			before: twoNodes, nodes: plannedNodes{"n1": "a2"},
			intent: withoutPlan,
			want:   nil, wantPhase: fleet.PhaseHeld,
			wantMessage: "MachineConfigPool " + tradingPool + " is left as it is, because node n2 in it must not be changed: the profile cannot be met on it",
		},
		"an unchanged machine config pool with a node without a plan is in force": {
			before: twoNodes, nodes: plannedNodes{"n1": "a1"},
			intent: withoutPlan,
			want:   nil, wantPhase: fleet.PhaseInForce,
		},
		"a node that the profile no longer selects is released": {
			before: twoNodes, nodes: plannedNodes{"n1": "a1"},
			want: []string{`label n2 profile="" pool=""`}, wantPhase: fleet.PhaseInForce,
		},
		"a node that another profile takes over is left to it": {
			before: twoNodes, nodes: plannedNodes{"n1": "a1"},
			intent: func(i *fleet.Intent) {
				i.Held["n2"], i.Leaving = "profile other is about to take it over", nil
			},
			want: nil, wantPhase: fleet.PhaseInForce,
		},
		"a machine config pool waits for nodes that move to another": {
			before: func(c *cluster) {
				twoNodes(c)
				f := plannedNodes{"n1": "a2", "n2": "c2"}
				c.act(c.look(f), 100)
				c.kubelet(key{kindKubeletConfig, "lowlatency-" + tradingPool})
				c.render(tradingPool)
			},
			nodes: plannedNodes{"n1": "a2", "n2": "c2"}, want: nil, wantPhase: fleet.PhaseWriting,
			wantMessage: "is paused until the nodes n2 have left it",
		},
	})
}

// TestRolloutFailures covers what the platform reports.
func TestRolloutFailures(t *testing.T) {
	runRollouts(t, map[string]rolloutCase{
		"a degraded machine config pool is a failure": {
			before: func(c *cluster) {
				inForce(c)
				c.pools[tradingPool].Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{
					Type: mcfgv1.MachineConfigPoolNodeDegraded, Status: corev1.ConditionTrue, Message: "Node n1 is reporting: disk full",
				}}
			},
			want: nil, wantPhase: fleet.PhaseFailed,
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
			want: nil, wantPhase: fleet.PhaseFailed, wantMessage: "refuses KubeletConfig lowlatency-" + tradingPool + ": Error: no such field",
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
			want: nil, wantPhase: fleet.PhaseFailed,
			wantMessage: "MachineConfig 99-" + tradingPool + "-generated-kubelet-1 replaces the kubelet settings of KubeletConfig lowlatency-" + tradingPool,
		},
		"a configuration that is not rendered is awaited": {
			before: heldFor(renderDeadline - time.Second), want: nil, wantPhase: fleet.PhaseWriting,
			wantMessage: "has not taken in KubeletConfig lowlatency-" + tradingPool,
		},
		"a configuration that is not rendered is no longer awaited": {
			before: heldFor(renderDeadline), want: nil, wantPhase: fleet.PhaseFailed,
			wantMessage: "MachineConfigPool " + tradingPool + " is paused since 2026-11-22T10:00:00Z, and the machine-config operator has rendered " +
				"no configuration with what was written: the machine-config operator has not taken in KubeletConfig lowlatency-" + tradingPool,
		},
		"a late configuration is not missed once it is there": {
			before: func(c *cluster) {
				heldFor(time.Hour)(c)
				c.kubelet(key{kindKubeletConfig, "lowlatency-" + tradingPool})
				c.render(tradingPool)
			},
			want:      []string{"label n1 profile=\"trading\" pool=\"" + tradingPool + "\"", "apply MachineConfigPool " + tradingPool},
			wantPhase: fleet.PhaseRolling, wantMessage: "begins to roll",
		},
		"a read-only look writes nothing": {
			before: func(*cluster) {}, intent: func(i *fleet.Intent) { i.ReadOnly = true },
			want: nil, wantPhase: fleet.PhaseWriting, wantMessage: "is paused while",
		},
	})
}

// heldFor lets the machine-config operator do nothing for some time after all was written.
func heldFor(held time.Duration) func(*cluster) {
	return func(c *cluster) {
		written(c)
		since := metav1.NewTime(time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC))
		for i := range c.pools[tradingPool].ManagedFields {
			c.pools[tradingPool].ManagedFields[i].Time = &since
		}
		c.now = since.Add(held)
	}
}

// TestLateRenderingIsLookedAtAgain: what was late is found without an event, and has a reason of its own.
func TestLateRenderingIsLookedAtAgain(t *testing.T) {
	c := newCluster(t, "n1")
	heldFor(renderDeadline)(c)
	_, outcome := c.steps(oneNode().intent(c))
	if outcome.RetryAfter != renderTimeout {
		t.Errorf("the next look is after %s, want %s", outcome.RetryAfter, renderTimeout)
	}
	at := slices.IndexFunc(outcome.Groups, func(p fleet.Group) bool { return p.Name == tradingPool })
	if at < 0 || outcome.Groups[at].Reason != v1alpha1.ReasonRenderingLate {
		t.Errorf("groups are %+v, want %s with reason %s", outcome.Groups, tradingPool, v1alpha1.ReasonRenderingLate)
	}
}

// stepsOf leaves the steps about one machine config pool, and those about nodes.
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
				Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:maxUnavailable":{}}}`),
			}}
		}},
		"a label is missing": {want: func(p *mcfgv1.MachineConfigPool) { p.Labels["x"] = "y" }},
		"a selector differs": {live: func(p *mcfgv1.MachineConfigPool) { p.Spec.MachineConfigSelector = nil }},
		"an old mark is left": {live: func(p *mcfgv1.MachineConfigPool) {
			p.Annotations = map[string]string{v1alpha1.AnnotationPausedFor: "x"}
		}},
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
			Manager: manager, Operation: operation, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const apply = metav1.ManagedFieldsOperationApply
	spec := `{"f:spec":{"f:paused":{}}}`
	cases := map[string]struct {
		paused  bool
		entries []metav1.ManagedFieldsEntry
		want    bool
	}{
		"not paused": {entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, apply, "", spec)}},
		"ours":       {paused: true, entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, apply, "", spec)}, want: true},
		"ours and the administrator's": {paused: true, entries: []metav1.ManagedFieldsEntry{
			entry("kubectl", metav1.ManagedFieldsOperationUpdate, "", spec), entry(v1alpha1.FieldManager, apply, "", spec),
		}, want: true},
		"the administrator's":   {paused: true, entries: []metav1.ManagedFieldsEntry{entry("kubectl", apply, "", spec)}},
		"another kind of write": {paused: true, entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, metav1.ManagedFieldsOperationUpdate, "", spec)}},
		"the status":            {paused: true, entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, apply, "status", spec)}},
		"another field":         {paused: true, entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, apply, "", `{"f:spec":{"f:nodeSelector":{}}}`)}},
		"unreadable fields":     {paused: true, entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, apply, "", `{`)}},
		"no fields":             {paused: true, entries: []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, Operation: apply}}},
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
		t.Error("a machine config pool that does not exist is held")
	}
}

func TestPausedPool(t *testing.T) {
	foreign := pool("worker-cnf", nil)
	held := paused(poolReference(foreign), "abc")
	want := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
		"metadata": map[string]any{
			"name": "worker-cnf", "uid": "uid-worker-cnf", "annotations": map[string]any{v1alpha1.AnnotationPausedFor: "abc"},
		},
		"spec": map[string]any{"paused": true},
	}}
	if diff := cmp.Diff(want, held); diff != "" {
		t.Errorf("paused() mismatch (-want +got):\n%s", diff)
	}
}

// withExistingPool puts all nodes into a machine config pool of somebody else.
func withExistingPool(t *testing.T) *cluster {
	c := newCluster(t, "n1", "n2")
	c.pools["worker-cnf"] = pool("worker-cnf", map[string]string{"cnf": ""})
	for _, node := range c.nodes {
		node.Labels["cnf"] = ""
	}
	c.settle()
	clear(c.reboots)
	return c
}

// boundLook looks at the cluster for a profile that is bound to that pool.
func (c *cluster) boundLook(f plannedNodes) look {
	l := c.look(f)
	bound(l.intent, "pools.operator.machineconfiguration.openshift.io/worker-cnf")
	return l
}

func (c *cluster) expectOneReboot() {
	c.t.Helper()
	if len(c.reboots) != len(c.nodes) {
		c.t.Errorf("the nodes %v rebooted, want all", sortedKeys(c.reboots))
	}
	for name, count := range c.reboots {
		if count != 1 {
			c.t.Errorf("node %s rebooted %d times, want once", name, count)
		}
	}
}

func TestExistingPoolIsChangedOnce(t *testing.T) {
	c, f := withExistingPool(t), plannedNodes{"n1": "a1", "n2": "a1"}
	for range 6 {
		c.act(c.boundLook(f), 100)
		c.settle()
	}
	c.expectInForce(f, c.act(c.boundLook(f), 100))
	c.expectOneReboot()
	p := c.pools["worker-cnf"]
	if p.Spec.Paused || p.Annotations[v1alpha1.AnnotationPausedFor] != "" || p.Labels[v1alpha1.LabelProfile] != "" {
		t.Errorf("the machine config pool of somebody else was left changed: %+v", p)
	}
}

func TestExistingPoolWaitsForAllPlans(t *testing.T) {
	c := withExistingPool(t)
	l := c.boundLook(plannedNodes{"n1": "a1"})
	l.intent.Selected, l.intent.Held["n2"] = []string{"n1", "n2"}, "its agent has not reported an inventory yet"
	d := c.act(l, 100)
	if len(d.steps) > 0 || d.outcome.Groups[0].Phase != fleet.PhaseHeld {
		t.Errorf("steps are %v, machine config pool is %+v, want it held", d.steps, d.outcome.Groups[0])
	}
}

func TestExistingPoolIsReturnedOnce(t *testing.T) {
	c, f := withExistingPool(t), plannedNodes{"n1": "a1", "n2": "a1"}
	for range 6 {
		c.act(c.boundLook(f), 100)
		c.settle()
	}
	clear(c.reboots)
	for rest := (fleet.Remainder{Waiting: "start"}); !rest.Done(); c.settle() {
		_, rest = c.giveBack(func(i *fleet.Intent) { bound(i, "pools.operator.machineconfiguration.openshift.io/worker-cnf") })
		if c.turns++; c.turns > 20 {
			t.Fatalf("the deletion does not end: %+v", rest)
		}
	}
	c.expectOneReboot()
	if len(c.objects) > 0 || c.pools["worker-cnf"].Spec.Paused {
		t.Errorf("left behind: %v, paused %v", objectNames(c.objects), c.pools["worker-cnf"].Spec.Paused)
	}
}

func objectNames(objects map[key]*unstructured.Unstructured) []string {
	names := make([]string, 0, len(objects))
	for k := range objects {
		names = append(names, k.kind+" "+k.name)
	}
	return names
}

// TestRuntimeClassIsAppliedOnce: it is one for all machine config pools of a profile, and goes with the first that can be written.
func TestRuntimeClassIsAppliedOnce(t *testing.T) {
	object := func(kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": kind}}
	}
	with := func(conflict *fleet.Conflict) *target {
		return &target{conflict: conflict, want: []*unstructured.Unstructured{object(kindMachineConfig), object(kindRuntimeClass)}}
	}
	targets := []*target{with(&fleet.Conflict{}), with(nil), with(nil)}
	shareRuntimeClass(targets)
	applied := make([]bool, 0, len(targets))
	for _, t := range targets {
		applied = append(applied, t.conflict == nil && slices.ContainsFunc(t.want, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == kindRuntimeClass
		}))
	}
	if diff := cmp.Diff([]bool{false, true, false}, applied); diff != "" {
		t.Errorf("which targets apply the RuntimeClass (-want +got):\n%s", diff)
	}
}
