// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"slices"
	"strings"
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// threeShapes brings a cluster to where the pools of three shapes are written and rendered for a change, and none is let go.
func threeShapes(t *testing.T) (*cluster, plannedNodes) {
	c := newCluster(t, "n1", "n2", "n3")
	c.finish(plannedNodes{"n1": "a1", "n2": "b1", "n3": "c1"})
	next := plannedNodes{"n1": "a2", "n2": "b2", "n3": "c2"}
	c.act(c.look(next), 1000)
	for _, name := range sortedKeys(c.pools) {
		if name != workerPool && name != masterPool {
			c.kubelet(key{kindKubeletConfig, "lowlatency-" + name})
			c.render(name)
		}
	}
	return c, next
}

// released are the pools that a decision lets go, and queued those that wait.
func (d *decision) released() (released, queued []string) {
	for _, s := range d.steps {
		if s.letGo != "" {
			released = append(released, s.apply.GetName())
		}
	}
	for _, g := range d.outcome.Groups {
		if g.Phase == fleet.PhaseQueued {
			queued = append(queued, g.Name)
		}
	}
	return released, queued
}

func decideOn(c *cluster, f plannedNodes, limit int32, change func(*world, *fleet.Intent)) decision {
	l := c.look(f)
	l.intent.Profile.Spec.Pools.MaximumUnavailableNodes = limit
	if change != nil {
		change(l.w, l.intent)
	}
	for _, p := range l.w.pools {
		p.ResourceVersion = "1"
	}
	targets, conflicts := aim(l.w, l.intent, "operator", renderText)
	c.evidence(l.w, targets)
	return decideRoll(l.w, l.intent, targets, conflicts)
}

func TestUnavailableNodes(t *testing.T) {
	c, next := threeShapes(t)
	changing := func(labels map[string]string) func(*world, *fleet.Intent) {
		return func(_ *world, i *fleet.Intent) {
			i.Nodes["x"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: labels, Annotations: map[string]string{
				annotationCurrentConfig: "rendered-worker-1", annotationDesiredConfig: "rendered-worker-2",
			}}}
		}
	}
	unready := func(profile string) func(*world, *fleet.Intent) {
		return func(_ *world, i *fleet.Intent) {
			i.Nodes["x"] = &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: map[string]string{v1alpha1.LabelProfile: profile, v1alpha1.LabelPool: "other-1"}},
				Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}},
			}
		}
	}
	cases := map[string]struct {
		limit        int32
		change       func(*world, *fleet.Intent)
		wantReleased int
	}{
		"one by default":                          {0, nil, 1},
		"two":                                     {2, nil, 2},
		"as many as there are":                    {3, nil, 3},
		"a node of another profile changes":       {1, changing(map[string]string{v1alpha1.LabelProfile: "other", v1alpha1.LabelPool: "other-1"}), 0},
		"a node of an existing pool changes":      {1, changing(map[string]string{v1alpha1.LabelProfile: "other"}), 0},
		"a node that is not ours changes":         {1, changing(nil), 1},
		"a node of the profile is not ready":      {1, unready("trading"), 0},
		"a node of another profile is not ready":  {1, unready("other"), 1},
		"there is room beside the node that does": {2, unready("trading"), 1},
		"a pool was let go that the cache shows held": {1, func(w *world, _ *fleet.Intent) {
			w.letGo = map[string]bool{}
			for name, p := range w.pools {
				if heldByUs(p) && !strings.HasPrefix(name, tradingPool) {
					w.letGo[name] = true
				}
			}
		}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decideOn(c, next, tc.limit, tc.change)
			released, queued := d.released()
			if name == "a pool was let go that the cache shows held" {
				released = slices.DeleteFunc(released, func(pool string) bool { return pool != tradingPool })
			} else if len(released)+len(queued) != 3 {
				t.Errorf("%v are let go and %v wait, want three in all", released, queued)
			}
			if len(released) != tc.wantReleased {
				t.Errorf("%v are let go, want %d: %+v", released, tc.wantReleased, d.outcome.Groups)
			}
		})
	}
}

func TestReleasesAreBounded(t *testing.T) {
	c := newCluster(t, "n1", "n2", "n3", "n4")
	all := plannedNodes{"n1": "a1", "n2": "a1", "n3": "a1", "n4": "b1"}
	c.finish(all)
	for limit, want := range map[int32]int{0: 1, 2: 2, 10: 3} {
		d := decideOn(c, plannedNodes{"n4": "b1"}, limit, nil)
		if len(d.steps) < want || d.steps[want-1].label == nil || len(d.steps) > want && d.steps[want].label != nil {
			t.Errorf("with a limit of %d the steps are %v, want %d nodes released", limit, d.steps, want)
		}
	}
	c.act(c.look(plannedNodes{"n4": "b1"}), 1)
	if d := decideOn(c, plannedNodes{"n4": "b1"}, 1, nil); len(d.steps) > 0 || !slices.Equal(d.outcome.Returning, []string{"n1"}) {
		t.Errorf("while n1 returns the steps are %v and %v return, want to wait for n1", d.steps, d.outcome.Returning)
	}
}

func TestFreedPools(t *testing.T) {
	var freed freedPools
	pools := map[string]*mcfgv1.MachineConfigPool{"a": {ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}}}
	freed.note("a", "1")
	freed.note("gone", "1")
	if unseen := freed.unseen(pools); !unseen["a"] || unseen["gone"] {
		t.Errorf("unseen are %v, want a", unseen)
	}
	pools["a"].ResourceVersion = "2"
	if unseen := freed.unseen(pools); len(unseen) > 0 || len(freed.versions) > 0 {
		t.Errorf("unseen are %v and %v is remembered, want nothing", unseen, freed.versions)
	}
}

func TestPoolLimit(t *testing.T) {
	limited := func(limit intstr.IntOrString) *mcfgv1.MachineConfigPool {
		p := pool("x", nil)
		p.Spec.MaxUnavailable, p.Status.MachineCount = &limit, 10
		return p
	}
	for want, p := range map[int]*mcfgv1.MachineConfigPool{
		1: pool("x", nil), 3: limited(intstr.FromInt32(3)), 5: limited(intstr.FromString("50%")),
	} {
		if got := poolLimit(p); got != want {
			t.Errorf("poolLimit(%v) = %d, want %d", p.Spec.MaxUnavailable, got, want)
		}
	}
	for _, limit := range []intstr.IntOrString{intstr.FromInt32(0), intstr.FromString("1%"), intstr.FromString("x")} {
		if got := poolLimit(limited(limit)); got != 1 {
			t.Errorf("poolLimit(%v) = %d, want 1", limit, got)
		}
	}
}
