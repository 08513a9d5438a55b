// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/states"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

func at(minute int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 11, 21, 8, minute, 0, 0, time.UTC))
}

// verified is a report in which one critical check of every condition has the outcome.
func verified(outcome v1alpha1.Outcome) *verify.Report {
	check := verify.Check{ID: "test.check", Severity: v1alpha1.SeverityCritical, Conditions: verify.ConditionTypes()}
	return &verify.Report{Results: []verify.Result{{Check: check, Outcome: outcome, Message: "CPU 5 is busy", Decides: check.Decides(outcome, "")}}}
}

func summary(status v1alpha1.LowLatencyNodeStatus) []string {
	lines := make([]string, 0, len(status.Conditions))
	for _, c := range status.Conditions {
		lines = append(lines, fmt.Sprintf("%s %s %s at %d of generation %d", c.Type, c.Status, c.Reason, c.LastTransitionTime.Minute(), c.ObservedGeneration))
	}
	return lines
}

// rest is what a status says besides conditions.
type rest struct {
	Inventory  *v1alpha1.Inventory
	Plan       string
	Checks     *v1alpha1.CheckCounts
	Findings   int
	Generation int64
}

func TestObserve(t *testing.T) {
	inventory, other := &v1alpha1.Inventory{Hash: "a"}, &v1alpha1.Inventory{Hash: "b"}
	passed := Observe(v1alpha1.LowLatencyNodeStatus{}, Observation{
		Generation: 1, PlanHash: "p1", Inventory: inventory, Report: verified(v1alpha1.OutcomePassed), Now: at(1),
	})
	cases := map[string]struct {
		previous      v1alpha1.LowLatencyNodeStatus
		seen          Observation
		want          []string
		wantInventory *v1alpha1.Inventory
		wantPlan      string
		wantChecks    *v1alpha1.CheckCounts
		wantFindings  int
	}{
		"a node without a plan": {
			seen: Observation{Generation: 1, Inventory: inventory, Reason: v1alpha1.ReasonAwaitingPlan, Message: "no plan", Now: at(1)},
			want: []string{
				"Applied Unknown AwaitingPlan at 1 of generation 1", "DeJittered Unknown AwaitingPlan at 1 of generation 1",
				"NUMAAligned Unknown AwaitingPlan at 1 of generation 1", "Ready Unknown AwaitingPlan at 1 of generation 1",
			},
			wantInventory: inventory,
		},
		"a verified node": {
			seen: Observation{Generation: 1, PlanHash: "p1", Inventory: inventory, Report: verified(v1alpha1.OutcomePassed), Now: at(1)},
			want: []string{
				"Applied True Verified at 1 of generation 1", "DeJittered True Verified at 1 of generation 1",
				"NUMAAligned True Verified at 1 of generation 1", "Ready True Verified at 1 of generation 1",
			},
			wantInventory: inventory, wantPlan: "p1", wantChecks: &v1alpha1.CheckCounts{Passed: 1},
		},
		"a node that stays verified for another plan": {
			previous: passed,
			seen:     Observation{Generation: 2, PlanHash: "p2", Inventory: other, Report: verified(v1alpha1.OutcomePassed), Now: at(9)},
			want: []string{
				"Applied True Verified at 1 of generation 2", "DeJittered True Verified at 1 of generation 2",
				"NUMAAligned True Verified at 1 of generation 2", "Ready True Verified at 1 of generation 2",
			},
			wantInventory: other, wantPlan: "p2", wantChecks: &v1alpha1.CheckCounts{Passed: 1},
		},
		"a node that fails": {
			previous: passed,
			seen:     Observation{Generation: 1, PlanHash: "p1", Inventory: inventory, Report: verified(v1alpha1.OutcomeFailed), Now: at(9)},
			want: []string{
				"Applied False ChecksFailed at 9 of generation 1", "DeJittered False ChecksFailed at 9 of generation 1",
				"NUMAAligned False ChecksFailed at 9 of generation 1", "Ready False ChecksFailed at 9 of generation 1",
			},
			wantInventory: inventory, wantPlan: "p1", wantChecks: &v1alpha1.CheckCounts{Failed: 1}, wantFindings: 1,
		},
		"a host that cannot be read keeps its hardware and proves nothing": {
			previous: passed,
			seen:     Observation{Generation: 1, Reason: v1alpha1.ReasonChecksUnknown, Message: "/proc/interrupts: input/output error", Now: at(9)},
			want: []string{
				"Applied Unknown ChecksUnknown at 9 of generation 1", "DeJittered Unknown ChecksUnknown at 9 of generation 1",
				"NUMAAligned Unknown ChecksUnknown at 9 of generation 1", "Ready Unknown ChecksUnknown at 9 of generation 1",
			},
			wantInventory: inventory,
		},
	}
	recorded := states.Recorder{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := *tc.previous.DeepCopy()
			got := Observe(tc.previous, tc.seen)
			recorded.Record(name, got.Conditions)
			if diff := cmp.Diff(tc.want, summary(got)); diff != "" {
				t.Error(diff)
			}
			want := rest{tc.wantInventory, tc.wantPlan, tc.wantChecks, tc.wantFindings, tc.seen.Generation}
			if diff := cmp.Diff(want, rest{got.Inventory, got.VerifiedPlanHash, got.Checks, len(got.Findings), got.ObservedGeneration}); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.previous); diff != "" {
				t.Errorf("the previous status was changed: %s", diff)
			}
		})
	}
	recorded.Assert(t, "LowLatencyNode")
}

// A pass that finds what the last one found must not change the status.
func TestObserveNothingNew(t *testing.T) {
	seen := Observation{Generation: 1, PlanHash: "p1", Inventory: &v1alpha1.Inventory{}, Report: verified(v1alpha1.OutcomeFailed), Now: at(1)}
	first := Observe(v1alpha1.LowLatencyNodeStatus{}, seen)
	seen.Now = at(30)
	if diff := cmp.Diff(first, Observe(first, seen)); diff != "" {
		t.Error(diff)
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	status := Observe(v1alpha1.LowLatencyNodeStatus{}, Observation{Message: strings.Repeat("é", 4000), Reason: "Test", Now: at(1)})
	for _, condition := range status.Conditions {
		if len(condition.Message) > v1alpha1.MaxNodeConditionMessageLength || !utf8.ValidString(condition.Message) || !strings.HasSuffix(condition.Message, "é…") {
			t.Errorf("message of %d bytes ends in %q", len(condition.Message), condition.Message[len(condition.Message)-8:])
		}
	}
}

func TestHistory(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	type step struct {
		after time.Duration
		boot  string
		// want is the second at which the facts to compare with were read; -1 for none.
		want int
	}
	cases := map[string][]step{
		"one reading has nothing to compare with": {{0, "a", -1}},
		"each reading is compared with the last that is old enough": {
			{0, "a", -1}, {10, "a", 0}, {20, "a", 10}, {30, "a", 20},
		},
		"readings in quick succession are compared with an older one": {
			{0, "a", -1}, {10, "a", 0}, {11, "a", 0}, {12, "a", 0}, {20, "a", 10}, {29, "a", 10}, {30, "a", 20},
		},
		"another boot is not compared": {
			{0, "a", -1}, {10, "a", 0}, {20, "b", -1}, {25, "b", -1}, {30, "b", 20},
		},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			var h history
			if !h.tooShort() {
				t.Error("an empty history is long enough")
			}
			for _, s := range steps {
				facts := factsOf(s.boot, strconv.Itoa(int(s.after)))
				before, _ := h.before(reading{at: start.Add(s.after * time.Second), facts: facts}, 10*time.Second)
				got := -1
				if before != nil {
					_, err := fmt.Sscan(before.Name.Value, &got)
					if err != nil {
						t.Fatal(err)
					}
				}
				if got != s.want {
					t.Errorf("after %d s: compared with %d, want %d", s.after, got, s.want)
				}
				if len(h.readings) > 3 {
					t.Errorf("%d readings are kept", len(h.readings))
				}
			}
		})
	}
}

// A container that has come and gone within a window is seen by the readings that its coming and going have caused, and they are no readings to
// compare counters with.
func TestHistoryKeepsOwners(t *testing.T) {
	var h history
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, s := range []struct {
		after       time.Duration
		owned, want string
	}{
		{0, "nobody", ""}, {3, "engine", ""}, {5, "nobody", ""}, {11, "nobody", "nobody,engine,nobody"}, {13, "feed", "nobody,engine,nobody"},
		{16, "nobody", "nobody,engine,nobody,feed"}, {22, "nobody", "nobody,feed,nobody"}, {33, "nobody", "nobody"}, {34, "nobody", "nobody"},
	} {
		facts := factsOf("a", strconv.Itoa(int(s.after)))
		facts.Kubelet.CPUManagerState = host.Known(s.owned, "test")
		_, meanwhile := h.before(reading{at: start.Add(s.after * time.Second), facts: facts}, 10*time.Second)
		got := make([]string, 0, len(meanwhile))
		for _, one := range meanwhile {
			got = append(got, one.Value)
		}
		if diff := cmp.Diff(s.want, strings.Join(got, ",")); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", s.after, diff)
		}
		if s.after == 5 && !h.tooShort() {
			t.Error("three readings within a window are long enough")
		}
	}
}

// factsOf are facts of one boot; the name tells when they were read.
func factsOf(boot, name string) *host.Facts {
	return &host.Facts{
		Name:     host.Known(name, "test"),
		Settings: map[string]host.Fact[string]{bootIDPath: host.Known(boot, bootIDPath)},
	}
}

func TestBootsWithoutIdentifierAreToldByTheCommandLine(t *testing.T) {
	a, b := &host.Facts{}, &host.Facts{}
	if !sameBoot(a, b) {
		t.Error("equal facts are of different boots")
	}
	b.Kernel.CommandLine = host.Known("nosmt", "/proc/cmdline")
	if sameBoot(a, b) {
		t.Error("another command line is the same boot")
	}
}
