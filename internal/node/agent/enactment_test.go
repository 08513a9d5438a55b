// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
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
