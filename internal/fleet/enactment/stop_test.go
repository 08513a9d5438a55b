// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

const (
	hasFailed  = "the plan has failed on node n1"
	mayHave    = "nobody knows whether the plan has failed on node n1: its agent cannot read what the guard says: a newer guard"
	isUnheard  = "no agent says whether the plan has failed on node n1; to go on without knowing, take the label lowlatency.dev/pool off it"
	triedAgain = "the plan has failed on node n1, where another attempt comes first"
)

func changed(n *enactment.Node) { n.IsChanged = true }

func unheard(n *enactment.Node) {
	n.IsChanged, n.IsUnheard, n.IsReporting, n.Wanted, n.Reported = true, true, false, nil, nil
}

// unread is a node whose agent cannot read what the guard says: the rest is what was read last.
func unread(number int64, hash, inForce string, more ...change) []change {
	return append([]change{reported(v1alpha1.EnactmentUnreadable, number, hash, inForce), because("NotStarted", "a newer guard.")}, more...)
}

// takenBack is a node on which plan A has failed.
func takenBack(more ...change) []change {
	return append([]change{changed, reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "x")}, more...)
}

// TestAFailureStops: with room for several nodes at a time, no other one is begun while a plan is not known to be right that has failed on
// one, whatever hides that from the operator now. What is no failure stops nobody.
func TestAFailureStops(t *testing.T) {
	cases := map[string]struct {
		first []change
		// says is why n2 waits; "" when its turn begins.
		says string
	}{
		"taken back":                                {takenBack(), hasFailed},
		"refused":                                   {takenBack(reported(v1alpha1.EnactmentRefused, 8, planA, ""), because("CannotEnact", "x")), hasFailed},
		"taken back with another plan in force":     {takenBack(reported(v1alpha1.EnactmentTakenBack, 8, planA, planB)), hasFailed},
		"its agent is silent since":                 {takenBack(silent, wants(planA)), hasFailed},
		"its kubelet is away since":                 {takenBack(notReady, silent), hasFailed},
		"the host cannot have it any more":          {takenBack(impossible("no real-time kernel")), hasFailed},
		"two profiles select it now":                {takenBack(unwanted), hasFailed},
		"its report cannot be read any more":        {unread(8, planA, "", changed), mayHave},
		"nor that of another plan in force":         {unread(8, planA, planB, changed), mayHave},
		"it was refused, and cannot be read":        {unread(8, planA, "", because("CannotEnact", "a newer guard.")), mayHave},
		"it was tried, and cannot be read":          {unread(8, planA, "", because("", "a newer guard.")), mayHave},
		"unreadable, and two profiles select it":    {unread(8, planA, "", unwanted), mayHave},
		"unreadable since it was told":              {unread(7, planB, planB, inTurn, issued(true), delivered), mayHave},
		"unreadable, and nothing known from before": {unread(0, "", "", changed), mayHave},
		"unreadable, another attempt was asked for": {unread(8, planA, "", retry), mayHave},
		"its report was deleted":                    {[]change{unheard}, isUnheard},
		"its report was deleted during its turn":    {[]change{unheard, inTurn, cordoned}, isUnheard},
		"another attempt is to come":                {takenBack(retry, foreignCordon), triedAgain},
		"another attempt is made":                   {takenBack(retry, inTurn, reported(v1alpha1.EnactmentVerifying, 9, planA, "")), triedAgain},
		"another attempt has failed":                {takenBack(retry, reported(v1alpha1.EnactmentTakenBack, 9, planA, "")), hasFailed},

		"another attempt was kept":                       {takenBack(retry, applied, reported(v1alpha1.EnactmentInForce, 9, planA, planA)), ""},
		"corrected":                                      {takenBack(wants(planB)), ""},
		"corrected, and cannot be read":                  {unread(8, planA, "", wants(planB)), ""},
		"withdrawn":                                      {takenBack(wantsRemoval), ""},
		"withdrawn, and cannot be read":                  {unread(8, planA, "", wantsRemoval), ""},
		"withdrawn, and nobody says anything":            {[]change{unheard, wantsRemoval}, ""},
		"a plan that nobody is to have any more":         {takenBack(unwanted, reported(v1alpha1.EnactmentTakenBack, 8, planB, "")), ""},
		"another profile's":                              {takenBack(of("other")), ""},
		"a guard with the plan that cannot be read":      {unread(8, planA, planA, changed), ""},
		"and which two profiles select":                  {unread(8, planA, planA, changed, unwanted), ""},
		"a guard without it that cannot be read":         {unread(7, planB, planB, changed), ""},
		"somebody's own guard that cannot be read":       {unread(0, "", ""), ""},
		"a node that has just joined":                    {[]change{silent, unwanted}, ""},
		"a node that needs a reboot":                     {[]change{changed, inTurn, cordoned, reported(v1alpha1.EnactmentRefused, 8, planA, planB), because("RebootForbidden", "x")}, ""},
		"a node on which it is tried for the first time": {[]change{changed, inTurn, cordoned, reported(v1alpha1.EnactmentVerifying, 8, planA, "")}, ""},
		"a mended host that was not heard of yet":        {[]change{changed, silent, reported(v1alpha1.EnactmentInForce, 8, planA, planA)}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(9, node("n1", tc.first...), node("n2"))
			state := stageOf(t, d, "n2")
			begun := strings.Contains(strings.Join(verbs(d), ","), "TakeTurn n2")
			if begun != (tc.says == "") || tc.says != "" && state.Message != tc.says {
				t.Errorf("steps %q, n2 = %+v, want the reason %q", verbs(d), state, tc.says)
			}
		})
	}
}

// TestOthersGoOnWhileAFailureStops: nodes are given back, an attempt that was asked for by name is made whatever has failed elsewhere, and
// what is begun is finished.
func TestOthersGoOnWhileAFailureStops(t *testing.T) {
	nodes := []enactment.Node{
		node("n1", unread(8, planA, "", changed)...), node("n2", takenBack(retry)...), node("n3", takenBack(retry)...), node("n4"),
		node("n5", changed, wantsRemoval, reported(v1alpha1.EnactmentInForce, 3, planB, planB)), node("n6", inTurn, needsReboot),
	}
	want := []string{"Cordon n6", "TakeTurn n5", "TakeTurn n2", "TakeTurn n3"}
	if diff := cmp.Diff(want, verbs(decide(9, nodes...))); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
}
