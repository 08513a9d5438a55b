// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// giveBack lets the platform decide once about a profile that is being deleted.
func (c *cluster) giveBack(change func(*fleet.Intent)) ([]string, fleet.Remainder) {
	l := c.look(plannedNodes{})
	l.intent.Selected = nil
	if change != nil {
		change(l.intent)
	}
	c.evidence(l.w, nil)
	steps, rest := decideReturn(l.w, l.intent)
	texts := make([]string, 0, len(steps))
	for _, s := range steps {
		texts = append(texts, s.String())
		c.take(s)
	}
	return texts, rest
}

// TestReturnOfManagedPools follows a deletion. Each act of the machine-config operator is followed by one
// decision.
func TestReturnOfManagedPools(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	c.finish(plannedNodes{"n1": "a1", "n2": "a1"})
	clear(c.reboots)
	stages := []struct {
		name        string
		before      func()
		want        []string
		wantWaiting string
	}{
		{
			name: "first the nodes leave", before: func() {},
			want:        []string{`label n1 profile="trading" pool=""`, `label n2 profile="trading" pool=""`},
			wantWaiting: "nodes n1, n2 are leaving MachineConfigPool " + tradingPool,
		},
		{
			name: "while a node still has the old configuration", before: func() { c.reboot("n1") },
			wantWaiting: "nodes n2 are leaving MachineConfigPool " + tradingPool,
		},
		{
			name: "while the platform still counts nodes", before: func() { c.reboot("n2") },
			wantWaiting: "MachineConfigPool " + tradingPool + " still counts 2 nodes",
		},
		{
			name: "then the objects go", before: c.settle,
			want: []string{
				"remove Tuned lowlatency-" + tradingPool, "remove MachineConfig 50-lowlatency-" + tradingPool,
				"remove KubeletConfig lowlatency-" + tradingPool,
			},
			wantWaiting: "removing Tuned lowlatency-" + tradingPool,
		},
		{
			name: "while an object is being removed", before: func() {},
			wantWaiting: "removing KubeletConfig lowlatency-" + tradingPool,
		},
		{
			name: "then the pool goes", before: c.settle,
			want: []string{"remove MachineConfigPool " + tradingPool}, wantWaiting: "removing MachineConfigPool " + tradingPool,
		},
		{name: "in the end", before: func() {}},
	}
	for _, stage := range stages {
		stage.before()
		steps, rest := c.giveBack(nil)
		if diff := cmp.Diff(stage.want, steps, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", stage.name, diff)
		}
		if !strings.HasPrefix(rest.Waiting, stage.wantWaiting) || rest.Done() != (stage.wantWaiting == "") {
			t.Fatalf("%s: %+v is left, want %q", stage.name, rest, stage.wantWaiting)
		}
	}
	c.expectOneReboot()
}

func TestReturnLeavesNodesToTheirNextProfile(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	c.finish(plannedNodes{"n1": "a1", "n2": "a1"})
	steps, rest := c.giveBack(func(i *fleet.Intent) { i.Held["n2"] = "profile other is about to take it over" })
	if diff := cmp.Diff([]string{`label n1 profile="trading" pool=""`}, steps); diff != "" {
		t.Errorf("steps mismatch (-want +got):\n%s", diff)
	}
	if !strings.Contains(rest.Waiting, "node n2 stays meanwhile, because profile other is about to take it over") {
		t.Errorf("waiting is %q", rest.Waiting)
	}
}

func TestReturnFromAPausedPool(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	p := c.pools[workerPool]
	p.Spec.Paused = true
	p.Status.UpdatedMachineCount = 0
	steps, rest := c.giveBack(func(i *fleet.Intent) { bound(i, "pools.operator.machineconfiguration.openshift.io/worker") })
	if len(steps) > 0 || !strings.Contains(rest.Waiting, "MachineConfigPool worker is paused by its administrator") {
		t.Errorf("steps are %v, %+v is left", steps, rest)
	}
	p.Spec.Paused = false
	if _, rest = c.giveBack(func(i *fleet.Intent) { bound(i, "pools.operator.machineconfiguration.openshift.io/worker") }); !strings.Contains(rest.Waiting, "has rolled back 0 of 2 nodes") {
		t.Errorf("%+v is left", rest)
	}
}

func TestObjectsBeingRemovedAreNotRemovedAgain(t *testing.T) {
	gone := poolReference(pool("x", nil))
	now := metav1.Now()
	gone.SetDeletionTimestamp(&now)
	steps, rest := removal(gone)
	if len(steps) > 0 || rest.Done() {
		t.Errorf("steps are %v, %+v is left", steps, rest)
	}
}

func TestStalePoolsOfAProfile(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	c.finish(plannedNodes{"n1": "a1", "n2": "b1"})
	c.nodes["n2"].Labels[v1alpha1.LabelProfile] = "trading"
	d := c.finish(plannedNodes{"n1": "a1"})
	if len(d.outcome.Groups) != 1 || len(c.pools) != 3 {
		t.Errorf("pools are %v, want that of n1 besides master and worker", sortedKeys(c.pools))
	}
	if config := c.nodes["n2"].Annotations[annotationCurrentConfig]; !strings.HasPrefix(config, "rendered-worker-") {
		t.Errorf("node n2 has %s, want that of the pool worker", config)
	}
}
