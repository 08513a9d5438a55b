// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// told are transitions in short.
func told(status v1alpha1.LowLatencyNodeStatus) []string {
	lines := make([]string, 0, len(status.Transitions))
	for _, t := range status.Transitions {
		lines = append(lines, fmt.Sprintf("%d %s %s-%s %s plan=%s boot=%s check=%s: %s", t.Time.Minute(), t.Condition, t.From, t.To, t.Reason, t.PlanHash, t.BootID, t.Check, t.Message))
	}
	return lines
}

// jittered is a report in which only DeJittered has failed.
func jittered(message string) *verify.Report {
	report := verified(v1alpha1.OutcomePassed)
	check := verify.Check{ID: "irq.delivered", Severity: v1alpha1.SeverityCritical, Conditions: []string{v1alpha1.ConditionDeJittered}}
	report.Results = append(report.Results, verify.Result{Check: check, Outcome: v1alpha1.OutcomeFailed, Message: message, Decides: check.Conditions})
	return report
}

func TestTransitionsTellTheStory(t *testing.T) {
	status := v1alpha1.LowLatencyNodeStatus{BootID: "b1"}
	for _, seen := range []Observation{
		{Reason: v1alpha1.ReasonAwaitingPlan, Message: "no plan", Now: at(1)},
		{PlanHash: "p1", Report: verified(v1alpha1.OutcomePassed), Now: at(2)},
		{PlanHash: "p1", Report: verified(v1alpha1.OutcomePassed), Now: at(3)},
		{PlanHash: "p1", Report: jittered("IRQ 142 came on CPU 5"), Now: at(4)},
		{PlanHash: "p1", Report: jittered("IRQ 143 came on CPU 5"), Now: at(5)},
		{Reason: v1alpha1.ReasonChecksUnknown, Message: "/proc/interrupts: input/output error", Now: at(6)},
	} {
		status = Observe(status, seen)
	}
	want := []string{
		"6 NUMAAligned True-Unknown ChecksUnknown plan= boot=b1 check=: /proc/interrupts: input/output error",
		"6 DeJittered False-Unknown ChecksUnknown plan= boot=b1 check=: /proc/interrupts: input/output error",
		"6 Applied True-Unknown ChecksUnknown plan= boot=b1 check=: /proc/interrupts: input/output error",
		"4 DeJittered True-False ChecksFailed plan=p1 boot=b1 check=irq.delivered: IRQ 142 came on CPU 5",
		"2 NUMAAligned Unknown-True Verified plan=p1 boot=b1 check=: the running kernel satisfies the plan: 1 of 1 checks passed",
		"2 DeJittered Unknown-True Verified plan=p1 boot=b1 check=: the running kernel satisfies the plan: 1 of 1 checks passed",
		"2 Applied Unknown-True Verified plan=p1 boot=b1 check=: the running kernel satisfies the plan: 1 of 1 checks passed",
	}
	if diff := cmp.Diff(want, told(status)); diff != "" {
		t.Error(diff)
	}
}

func TestTransitionsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 600)
	status := v1alpha1.LowLatencyNodeStatus{}
	for minute := range 30 {
		report := verified(v1alpha1.OutcomePassed)
		if minute%2 == 1 {
			report = jittered(long)
		}
		status = Observe(status, Observation{PlanHash: "p1", Report: report, Now: at(minute)})
	}
	if len(status.Transitions) != v1alpha1.MaxTransitions {
		t.Errorf("%d transitions are kept, want %d", len(status.Transitions), v1alpha1.MaxTransitions)
	}
	latest := status.Transitions[0]
	if latest.Time.Minute() != 29 || latest.To != metav1.ConditionFalse {
		t.Errorf("the latest is %v", told(status)[0])
	}
	if len(latest.Message) > v1alpha1.MaxTransitionMessageLength || !utf8.ValidString(latest.Message) {
		t.Errorf("the message has %d bytes", len(latest.Message))
	}
}

func TestTransitionsHaveTheTimesThatTheAPIKeeps(t *testing.T) {
	now := metav1.NewTime(at(7).Add(123456789))
	status := Observe(v1alpha1.LowLatencyNodeStatus{}, Observation{PlanHash: "p1", Report: verified(v1alpha1.OutcomePassed), Now: now})
	if got := status.Transitions[0].Time; !got.Time.Equal(at(7).Time) {
		t.Errorf("the time is %v, want whole seconds", got)
	}
}

func TestTheBootStaysWhenTheHostCannotBeRead(t *testing.T) {
	first := Observe(v1alpha1.LowLatencyNodeStatus{}, Observation{BootID: "boot-1", Now: at(1)})
	unread := Observe(first, Observation{Reason: v1alpha1.ReasonChecksUnknown, Now: at(2)})
	next := Observe(unread, Observation{BootID: "boot-2", Now: at(3)})
	if diff := cmp.Diff([]string{"boot-1", "boot-1", "boot-2"}, []string{first.BootID, unread.BootID, next.BootID}); diff != "" {
		t.Error(diff)
	}
}
