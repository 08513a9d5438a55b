// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

func formerKey(n *enactment.Node) { n.HasFormerKey = true }

func currentKey(n *enactment.Node) { n.HasCurrentKey = true }

func estranged(n *enactment.Node) { n.Estranged = "it trusts somebody else" }

func outdated(n *enactment.Node) { n.Issued.IsOutdated = true }

func told(ago time.Duration) change {
	return func(n *enactment.Node) {
		n.Issued = &enactment.Issued{Number: 8, Action: enactment.MoveKey, Since: now().Add(-ago)}
	}
}

// TestKeyOfANode is one node whose guard takes instructions of another key than the operator's.
func TestKeyOfANode(t *testing.T) {
	inForce := reported(v1alpha1.EnactmentInForce, 7, planA, planA)
	cases := map[string]stageCase{
		"a key from before":              {[]change{inForce, formerKey}, enactment.Step{Verb: enactment.TellKey, Number: seconds()}, enactment.StageTold, "waits to be told"},
		"also where it waits":            {[]change{formerKey, reported(v1alpha1.EnactmentTakenBack, 7, planB, "")}, enactment.Step{Verb: enactment.TellKey, Number: seconds()}, enactment.StageTold, ""},
		"of a node that was made anew":   {[]change{inForce, currentKey}, enactment.Step{Verb: enactment.Claim}, enactment.StageDone, ""},
		"of one that says whose it is":   {[]change{inForce, currentKey, changed}, enactment.Step{}, enactment.StageDone, ""},
		"in force by root's hand":        {[]change{reported(v1alpha1.EnactmentInForce, 0, planA, planA), currentKey}, enactment.Step{}, enactment.StageDone, ""},
		"being told":                     {[]change{inForce, formerKey, told(time.Minute)}, enactment.Step{Verb: enactment.HandOver}, enactment.StageTold, "is told"},
		"told":                           {[]change{inForce, currentKey, told(time.Minute)}, enactment.Step{Verb: enactment.Withdraw}, enactment.StageTold, ""},
		"not told for long":              {[]change{inForce, formerKey, told(time.Hour)}, enactment.Step{Verb: enactment.HandOver}, enactment.StageLate, "has not taken"},
		"unreadable":                     {[]change{reported(v1alpha1.EnactmentUnreadable, 7, planA, planA), formerKey}, enactment.Step{}, enactment.StageWaiting, "cannot read"},
		"away":                           {[]change{inForce, formerKey, notReady}, enactment.Step{}, enactment.StageDone, ""},
		"in its turn":                    {took(inForce, formerKey, applied), enactment.Step{Verb: enactment.EndTurn}, enactment.StageChanging, ""},
		"strange":                        {[]change{inForce, estranged}, enactment.Step{}, enactment.StageRefused, "somebody else"},
		"strange in its turn":            {took(estranged), enactment.Step{Verb: enactment.EndTurn}, enactment.StageChanging, ""},
		"strange, and an instruction":    {took(issued(true), delivered, estranged), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, ""},
		"outdated and not delivered":     {took(issued(true), formerKey, outdated), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, "withdrawn"},
		"outdated, the guard unheard":    {took(issued(true), delivered, formerKey, outdated), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, ""},
		"outdated, the guard moved on":   {took(issued(true), delivered, currentKey, outdated), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, ""},
		"refused for the key, is no end": {took(currentKey, reported(v1alpha1.EnactmentRefused, 8, planA, planB), because("WrongKey", "x")), enactment.Step{Verb: enactment.Instruct, Number: seconds()}, enactment.StageChanging, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(1, node("n1", tc.with...))
			var got enactment.Step
			if len(d.Steps) == 1 {
				got = d.Steps[0]
			}
			if tc.step.Verb != "" {
				tc.step.Node = "n1"
			}
			if diff := cmp.Diff(tc.step, got); diff != "" || len(d.Steps) > 1 {
				t.Errorf("step (-want +got), of %d:\n%s", len(d.Steps), diff)
			}
			if state := stageOf(t, d, "n1"); state.Stage != tc.stage || !strings.Contains(state.Message, tc.says) {
				t.Errorf("state = %+v, want %s, %q", state, tc.stage, tc.says)
			}
		})
	}
}

// TestKeysOfManyNodes: some at a time are told, which takes no turn from others; none is begun while the profile is paused.
func TestKeysOfManyNodes(t *testing.T) {
	const inForce = 20
	nodes := make([]enactment.Node, 0, 2+inForce)
	nodes = append(nodes, node("a"), node("b", reported(v1alpha1.EnactmentInForce, 7, planA, planA), formerKey, told(time.Minute)))
	for i := range inForce {
		nodes = append(nodes, node(fmt.Sprintf("n%02d", i), reported(v1alpha1.EnactmentInForce, 7, planA, planA), formerKey))
	}
	verbsOf := map[enactment.Verb]int{}
	for _, step := range decide(1, nodes...).Steps {
		verbsOf[step.Verb]++
	}
	want := map[enactment.Verb]int{enactment.TellKey: 9, enactment.HandOver: 1, enactment.TakeTurn: 1}
	if diff := cmp.Diff(want, verbsOf); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	paused := enactment.Decide(nodes, enactment.Limits{Profile: "trading", MaximumUnavailable: 1}, now())
	if diff := cmp.Diff([]string{"HandOver b"}, verbs(paused)); diff != "" {
		t.Errorf("steps while paused (-want +got):\n%s", diff)
	}
}
