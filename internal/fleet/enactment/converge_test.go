// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

// cluster is two nodes with guards, and what the operator has written about them.
type cluster struct {
	nodes   []enactment.Node
	reboots map[string]int
	// most is the largest number of nodes that were not available at one time.
	most int
	// fails are the nodes whose trial fails.
	fails map[string]bool
	// unwritable are the nodes whose hosts cannot be written, which a guard finds out before it looks whether it may reboot.
	unwritable map[string]bool
	at         time.Time
}

// carryOut does one step to the world.
func (c *cluster) carryOut(step enactment.Step) {
	n := c.find(step.Node)
	switch step.Verb {
	case enactment.TakeTurn:
		n.IsHeld, n.Turn = true, &enactment.Turn{Since: c.at}
	case enactment.Cordon:
		n.IsCordoned, n.IsOurCordon = true, true
	case enactment.Evict:
		n.Drain = &enactment.Drain{}
	case enactment.Instruct:
		n.Issued = &enactment.Issued{Number: step.Number, Action: n.Wanted.Action, PlanHash: n.Wanted.PlanHash, Reboots: step.Reboots, Since: c.at}
	case enactment.Withdraw:
		n.Issued = nil
	case enactment.Uncordon:
		n.IsCordoned, n.IsOurCordon, n.IsHeld, n.Drain = false, false, false, nil
	case enactment.EndTurn:
		n.Turn = nil
	case enactment.Claim:
		n.IsChanged = true
	case enactment.HandOver, enactment.TellKey:
	}
}

// beginTo does the first write of a step that has two.
func (c *cluster) beginTo(step enactment.Step) {
	if step.Verb == enactment.TakeTurn {
		c.find(step.Node).IsHeld = true
	}
}

func (c *cluster) find(name string) *enactment.Node {
	for i := range c.nodes {
		if c.nodes[i].Name == name {
			return &c.nodes[i]
		}
	}
	return nil
}

// live lets the guard of each node go one stage further.
func (c *cluster) live() {
	down := 0
	for i := range c.nodes {
		n := &c.nodes[i]
		c.guard(n)
		if n.IsCordoned || !n.IsReady {
			down++
		}
	}
	c.most = max(c.most, down)
	c.at = c.at.Add(time.Second)
}

func (c *cluster) guard(n *enactment.Node) {
	report := v1alpha1.NodeEnactment{}
	if n.Reported != nil {
		report = *n.Reported
	}
	switch report.Phase {
	case v1alpha1.EnactmentReceived:
		report.Phase = v1alpha1.EnactmentArmed
	case v1alpha1.EnactmentArmed:
		// It comes up again: first the guard, then the kubelet and the agent.
		n.IsReady, report.Phase = false, v1alpha1.EnactmentVerifying
		c.reboots[n.Name]++
	case v1alpha1.EnactmentVerifying:
		c.settle(n, &report)
	default:
		if !c.take(n, &report) {
			n.IsReady, n.IsApplied = true, n.Wanted != nil && report.InForcePlanHash == n.Wanted.PlanHash && report.InForcePlanHash != ""
			return
		}
	}
	n.Reported = &report
}

// take lets a guard at rest take the instruction of its node, and reports whether there was one that it had not answered.
func (c *cluster) take(n *enactment.Node, report *v1alpha1.NodeEnactment) bool {
	// Who hands over a removal where nothing is, goes again.
	isNeedless := n.Issued != nil && n.Issued.Action == enactment.Remove && report.Phase == v1alpha1.EnactmentRemoved
	if n.Issued == nil || n.Issued.Number <= report.Number || isNeedless {
		return false
	}
	report.Phase, report.Number, report.PlanHash, report.Reason = v1alpha1.EnactmentReceived, n.Issued.Number, n.Issued.PlanHash, ""
	switch {
	case c.unwritable[n.Name]:
		report.Phase, report.Reason = v1alpha1.EnactmentRefused, "CannotEnact"
	case !n.Issued.Reboots:
		report.Phase, report.Reason = v1alpha1.EnactmentRefused, v1alpha1.ReasonRebootForbidden
	}
	return true
}

// settle ends a trial.
func (c *cluster) settle(n *enactment.Node, report *v1alpha1.NodeEnactment) {
	switch {
	case c.fails[n.Name]:
		report.Phase, report.Reason = v1alpha1.EnactmentTakenBack, "NotStarted"
	case report.PlanHash == "":
		*report = v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentRemoved}
	default:
		report.Phase, report.InForcePlanHash = v1alpha1.EnactmentInForce, report.PlanHash
	}
}

// run lets operator and guards go on until nothing happens any more. The operator is killed before it carries out one step, and
// comes back after a while that the guards have for themselves.
func (c *cluster) run(t *testing.T, killedAt int) {
	t.Helper()
	steps := 0
	for quiet := 0; quiet < 10; quiet++ {
		d := enactment.Decide(c.nodes, enactment.Limits{Profile: "trading", MaximumUnavailable: 1, MayBegin: true}, c.at)
		for _, step := range d.Steps {
			quiet = 0
			if steps++; steps == killedAt {
				c.beginTo(step)
				for range killedAt % 7 {
					c.live()
				}
				break
			}
			if steps > 200 {
				t.Fatalf("killed at %d: there is no end: %+v", killedAt, step)
			}
			c.carryOut(step)
		}
		c.live()
	}
}

func newCluster() *cluster {
	return &cluster{nodes: []enactment.Node{node("n1"), node("n2")}, reboots: map[string]int{}, fails: map[string]bool{}, unwritable: map[string]bool{}, at: now()}
}

// end is what is left of it.
func (c *cluster) end() []string {
	texts := make([]string, 0, len(c.nodes))
	for _, n := range c.nodes {
		phase := v1alpha1.EnactmentPhase("nothing")
		if n.Reported != nil {
			phase = n.Reported.Phase
		}
		texts = append(texts, fmt.Sprintf("%s %s, turn %v, issued %v, cordoned %v, %d reboots", n.Name, phase, n.Turn != nil, n.Issued != nil, n.IsCordoned || n.IsHeld, c.reboots[n.Name]))
	}
	return texts
}

// TestKilled: wherever the operator is killed, each node is rebooted once, one is away at a time, and nothing is left over.
func TestKilled(t *testing.T) {
	const kills = 24
	for killedAt := range kills {
		c := newCluster()
		c.run(t, killedAt)
		want := []string{
			"n1 InForce, turn false, issued false, cordoned false, 1 reboots", "n2 InForce, turn false, issued false, cordoned false, 1 reboots",
		}
		if diff := cmp.Diff(want, c.end()); diff != "" || c.most != 1 {
			t.Errorf("killed at step %d, %d nodes away at once (-want +got):\n%s", killedAt, c.most, diff)
		}
		for i := range c.nodes {
			c.nodes[i].Wanted = &enactment.Wanted{Action: enactment.Remove}
		}
		c.run(t, killedAt)
		want = []string{
			"n1 Removed, turn false, issued false, cordoned false, 2 reboots", "n2 Removed, turn false, issued false, cordoned false, 2 reboots",
		}
		if diff := cmp.Diff(want, c.end()); diff != "" || c.most != 1 {
			t.Errorf("given back, killed at step %d, %d nodes away at once (-want +got):\n%s", killedAt, c.most, diff)
		}
	}
}

// TestKilledAndFailing: wherever the operator is killed, a plan that does not come up is tried on one node, once.
func TestKilledAndFailing(t *testing.T) {
	const kills = 16
	for killedAt := range kills {
		c := newCluster()
		c.fails["n1"] = true
		c.run(t, killedAt)
		want := []string{
			"n1 TakenBack, turn false, issued false, cordoned false, 1 reboots", "n2 nothing, turn false, issued false, cordoned false, 0 reboots",
		}
		if diff := cmp.Diff(want, c.end()); diff != "" {
			t.Errorf("killed at step %d (-want +got):\n%s", killedAt, diff)
		}
	}
}

// TestUnwritable: wherever the operator is killed, no pod is evicted for a plan that cannot be written on the host, and no further node
// gets it.
func TestUnwritable(t *testing.T) {
	const kills = 12
	for killedAt := range kills {
		c := newCluster()
		c.unwritable["n1"] = true
		c.run(t, killedAt)
		want := []string{
			"n1 Refused, turn false, issued false, cordoned false, 0 reboots", "n2 nothing, turn false, issued false, cordoned false, 0 reboots",
		}
		if diff := cmp.Diff(want, c.end()); diff != "" || c.most != 0 {
			t.Errorf("killed at step %d, %d nodes away at once (-want +got):\n%s", killedAt, c.most, diff)
		}
	}
}

// TestLaterPlan: a plan that takes the place of another needs no second reboot once the guard has said that it needs one.
func TestLaterPlan(t *testing.T) {
	c := newCluster()
	c.run(t, -1)
	for i := range c.nodes {
		c.nodes[i].Wanted = &enactment.Wanted{Action: enactment.Enact, PlanHash: planB}
		c.nodes[i].IsApplied = false
	}
	c.run(t, -1)
	want := []string{
		"n1 InForce, turn false, issued false, cordoned false, 2 reboots", "n2 InForce, turn false, issued false, cordoned false, 2 reboots",
	}
	if diff := cmp.Diff(want, c.end()); diff != "" || c.nodes[0].Reported.InForcePlanHash != planB {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
