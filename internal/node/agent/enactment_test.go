// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/states"
)

// TestEnactment: what a guard says is reported within bounds. What cannot be read is not taken for what it was, nor for no guard.
func TestEnactment(t *testing.T) {
	before := &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentArmed, Number: 3}
	long := strings.Repeat("word ", 600)
	newer := &journal.FormatError{Path: "/var/lib/lowlatency/guard/journal", Format: journal.Format + 1}
	cases := map[string]struct {
		report *instruction.Report
		err    error
		want   *v1alpha1.NodeEnactment
	}{
		"no guard": {report: &instruction.Report{Phase: instruction.Removed, BootID: "b"}},
		"unreadable": {err: errors.New("input/output error"), want: &v1alpha1.NodeEnactment{
			Phase: v1alpha1.EnactmentUnreadable, Number: 3, Message: "input/output error",
		}},
		"a newer guard": {err: fmt.Errorf("reading: %w", newer), want: &v1alpha1.NodeEnactment{
			Phase: v1alpha1.EnactmentUnreadable, Number: 3, Message: "reading: " + newer.Error(),
		}},
		"in force": {
			report: &instruction.Report{Phase: instruction.InForce, Number: 4, PlanHash: "aaaaaaaa", InForce: "aaaaaaaa", BootID: "b", Differences: []string{"/etc/x is absent"}},
			want: &v1alpha1.NodeEnactment{
				Phase: v1alpha1.EnactmentInForce, Number: 4, PlanHash: "aaaaaaaa", InForcePlanHash: "aaaaaaaa", BootID: "b", Differences: []string{"/etc/x is absent"},
			},
		},
		"taken back": {
			report: &instruction.Report{Phase: instruction.TakenBack, Number: 4, Reason: instruction.ReasonNotStarted, Message: "the kernel did not come up"},
			want:   &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentTakenBack, Number: 4, Reason: "NotStarted", Message: "the kernel did not come up"},
		},
		"a foreign instruction": {
			report: &instruction.Report{Phase: instruction.Removed, Refused: &instruction.Refusal{Reason: instruction.ReasonWrongKey, Message: "another key"}},
			want:   &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentRemoved, Refusal: &v1alpha1.EnactmentRefusal{Reason: "WrongKey", Message: "another key"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &Agent{Guard: func(string) (*instruction.Report, error) { return tc.report, tc.err }}
			if diff := cmp.Diff(tc.want, a.enactment(t.Context(), before)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	unread := &Agent{Guard: func(string) (*instruction.Report, error) { return nil, errors.New("unreadable") }}
	once := unread.enactment(t.Context(), before)
	if again := unread.enactment(t.Context(), once); !cmp.Equal(once, again) || before.Message != "" {
		t.Errorf("said again: %+v, after %+v of %+v", again, once, before)
	}
	never := &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentUnreadable, Message: "unreadable"}
	if diff := cmp.Diff(never, unread.enactment(t.Context(), nil)); diff != "" {
		t.Errorf("never read (-want +got):\n%s", diff)
	}
	tight := enactmentOf(&instruction.Report{Phase: instruction.Refused, Number: 1, Message: long, Differences: strings.Split(long, " ")})
	if len(tight.Message) > v1alpha1.MaxEnactmentMessageLength || len(tight.Differences) > v1alpha1.MaxDifferences {
		t.Errorf("a long report has %d bytes and %d differences", len(tight.Message), len(tight.Differences))
	}
	many := make([]string, v1alpha1.MaxDifferences+1)
	if got := enactmentOf(&instruction.Report{Phase: instruction.InForce, Differences: many}).Differences; !strings.HasPrefix(got[len(got)-1], "and 2 more") {
		t.Errorf("of %d differences, the last one is %q", len(many), got[len(got)-1])
	}
}

// TestHandedBack: what the guard says of the wanted plan is the reason of Applied, and changes no status: not that of a kernel that shows the
// plan, nor that of facts which are missing.
func TestHandedBack(t *testing.T) {
	said := func(phase v1alpha1.EnactmentPhase, reason string, change ...func(*v1alpha1.NodeEnactment)) *v1alpha1.NodeEnactment {
		e := &v1alpha1.NodeEnactment{Phase: phase, Number: 7, PlanHash: "p1", Reason: reason, Message: "because."}
		for _, c := range change {
			c(e)
		}
		return e
	}
	back := func(change func(*v1alpha1.NodeEnactment)) *v1alpha1.NodeEnactment {
		return said(v1alpha1.EnactmentTakenBack, "NotVerified", change)
	}
	recorded := states.Recorder{}
	for name, tc := range map[string]struct {
		outcome v1alpha1.Outcome
		guard   *v1alpha1.NodeEnactment
		want    string
	}{
		"no guard":               {v1alpha1.OutcomeFailed, nil, "False ChecksFailed"},
		"taken back":             {v1alpha1.OutcomeFailed, said(v1alpha1.EnactmentTakenBack, "NotVerified"), "False TakenBack the guard has tried the plan and taken it back (NotVerified): because. Now: "},
		"refused":                {v1alpha1.OutcomeFailed, said(v1alpha1.EnactmentRefused, "CannotEnact"), "False Refused the guard has refused the plan, and has written nothing (CannotEnact): because. Now: "},
		"a reboot forbidden":     {v1alpha1.OutcomeFailed, said(v1alpha1.EnactmentRefused, v1alpha1.ReasonRebootForbidden), "False ChecksFailed"},
		"being tried again":      {v1alpha1.OutcomeFailed, said(v1alpha1.EnactmentVerifying, ""), "False ChecksFailed"},
		"unreadable":             {v1alpha1.OutcomeFailed, said(v1alpha1.EnactmentUnreadable, "NotVerified"), "False ChecksFailed"},
		"another plan":           {v1alpha1.OutcomeFailed, back(func(e *v1alpha1.NodeEnactment) { e.PlanHash = "p0" }), "False ChecksFailed"},
		"in force before":        {v1alpha1.OutcomeFailed, back(func(e *v1alpha1.NodeEnactment) { e.InForcePlanHash = "p1" }), "False ChecksFailed"},
		"by hand":                {v1alpha1.OutcomeFailed, back(func(e *v1alpha1.NodeEnactment) { e.Number = 0 }), "False ChecksFailed"},
		"brought by other means": {v1alpha1.OutcomePassed, said(v1alpha1.EnactmentTakenBack, "NotVerified"), "True Verified"},
		"facts are missing":      {v1alpha1.OutcomeUnknown, said(v1alpha1.EnactmentTakenBack, "NotVerified"), "Unknown ChecksUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Observe(v1alpha1.LowLatencyNodeStatus{}, Observation{
				Generation: 1, PlanHash: "p1", Inventory: &v1alpha1.Inventory{}, Report: verified(tc.outcome), Enactment: tc.guard, Now: at(1),
			})
			recorded.Record(name, got.Conditions)
			for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionReady} {
				c := meta.FindStatusCondition(got.Conditions, kind)
				if text := string(c.Status) + " " + c.Reason + " " + strings.TrimPrefix(c.Message, "Applied: "); !strings.HasPrefix(text, tc.want) {
					t.Errorf("%s is %s, want %s", kind, text, tc.want)
				}
			}
			if other := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionDeJittered); strings.Contains(other.Message, "the guard") {
				t.Errorf("DeJittered is %+v", other)
			}
		})
	}
	recorded.Assert(t, "LowLatencyNode")
}
