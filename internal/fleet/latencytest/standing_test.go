// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// asked is a node of a profile that asks for tests/quiet, which has measured it with this longest interruption an hour ago.
func asked(maximum int64) (*Subject, []v1alpha1.LatencyTest) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.NodeInfo.KernelVersion = "6.12"
	report := &v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading", PlanHash: "plan-1"}}
	report.Status.Inventory = &v1alpha1.Inventory{KernelRelease: "6.12", Microcode: "0x1"}
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	profile.Spec.Verification.Qualification = &v1alpha1.Qualification{Tests: []v1alpha1.LatencyTestReference{{Namespace: "tests", Name: "quiet"}}}
	subject := &Subject{Node: node, Report: report, Profile: profile}
	return subject, []v1alpha1.LatencyTest{measuredTest("quiet", subject, maximum)}
}

func measuredTest(name string, s *Subject, maximum int64) v1alpha1.LatencyTest {
	test := v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: name}}
	test.Spec = v1alpha1.LatencyTestSpec{
		Kind: v1alpha1.LatencyTestJitter, Nodes: v1alpha1.LatencyTestNodes{Names: []string{"n1"}},
		Budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000},
	}
	test.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Activity: v1alpha1.LatencyIdle, Measured: &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(begin().Add(-time.Hour)), Fingerprint: qualification.FingerprintOf(qualification.Told{Kernel: s.Node.Status.NodeInfo.KernelVersion}, s.Report), CPUs: "2",
		ParametersHash: qualification.ParametersOf(&test.Spec).Hash(), MaximumNanoseconds: maximum,
	}}}
	return test
}

func TestStandings(t *testing.T) {
	type world struct {
		*Subject
		tests []v1alpha1.LatencyTest
	}
	cases := map[string]struct {
		change func(*world)
		want   []State
		// wantText is in the message of the worst.
		wantText  string
		wantAgain time.Duration
	}{
		"nothing is asked for": {func(w *world) { w.Profile.Spec.Verification.Qualification = nil }, []State{}, "", 0},
		"passed":               {func(*world) {}, []State{StatePassed}, "LatencyTest tests/quiet: within the budget", 0},
		"passed, and expires":  {func(w *world) { w.tests[0].Spec.ExpireAfterHours = 3 }, []State{StatePassed}, "within the budget", 2 * time.Hour},
		"expired":              {func(w *world) { w.tests[0].Spec.ExpireAfterHours = 1 }, []State{StateStale}, "the result of LatencyTest tests/quiet is expired, since more than 1 hours", 0},
		"failed":               {func(w *world) { w.tests[0].Spec.Budget.MaximumNanoseconds = 1 }, []State{StateFailed}, "tests/quiet: the longest interruption was 9 µs, more than 1 ns", 0},
		"another kernel, and the status does not say so yet": {func(w *world) {
			w.tests[0].Status.Results[0].Freshness, w.tests[0].Status.Results[0].Outcome = v1alpha1.LatencyFresh, v1alpha1.LatencyPassed
			w.Report.Status.Inventory.KernelRelease = "6.13"
		}, []State{StateStale}, "stale, since this changed after the measurement: the kernel (6.13, was 6.12); the node is to be measured", 0},
		"another kernel, and no result of it": {func(w *world) {
			w.tests[0].Status.Results[0].Outcome, w.tests[0].Status.Results[0].Reason = v1alpha1.LatencyInconclusive, v1alpha1.TestNotExclusive
			w.tests[0].Status.Results[0].Message = "no CPUs of its own"
			w.Report.Status.Inventory.KernelRelease = "6.13"
		}, []State{StateStale}, "(6.13, was 6.12); the last run gave no result (NotExclusive: no CPUs of its own)", 0},
		"another plan alone": {func(w *world) { w.Report.Spec.PlanHash = "plan-2" }, []State{StateAwaited}, "the plan (plan-2, was plan-1)", 0},
		"another plan, and it expires": {func(w *world) {
			w.Report.Spec.PlanHash, w.tests[0].Spec.ExpireAfterHours = "plan-2", 3
		}, []State{StateAwaited}, "the plan (plan-2, was plan-1)", 2 * time.Hour},
		"another plan, and expired": {func(w *world) {
			w.Report.Spec.PlanHash, w.tests[0].Spec.ExpireAfterHours = "plan-2", 1
		}, []State{StateStale}, "the plan (plan-2, was plan-1)", 0},
		"other parameters": {func(w *world) { w.tests[0].Spec.DurationSeconds = 7 }, []State{StateAwaited}, "measures something else now", 0},
		"no budget":        {func(w *world) { w.tests[0].Spec.Budget = nil }, []State{StateAwaited}, "neither spec.budget nor", 0},
		"not measured": {func(w *world) {
			w.tests[0].Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Activity: v1alpha1.LatencyWaiting, Message: "waits for its turn"}}
		}, []State{StateAwaited}, "LatencyTest tests/quiet has not measured the node yet: waits for its turn", 0},
		"not seen": {func(w *world) { w.tests[0].Status.Results = nil }, []State{StateAwaited}, "has not measured the node yet", 0},
		"stands still": {func(w *world) {
			w.tests[0].Status.Results = nil
			w.tests[0].Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Message: "too many nodes"}}
		}, []State{StateAwaited}, "; the test stands still: too many nodes", 0},
		"a wrong name":            {func(w *world) { w.tests = nil }, []State{StateMissing}, "LatencyTest tests/quiet, which spec.verification.qualification of LowLatencyNodeProfile trading names, does not exist", 0},
		"a test of other nodes":   {func(w *world) { w.tests[0].Spec.Nodes.Names = []string{"n2"} }, []State{StateMissing}, "does not select the node", 0},
		"a test of the same name": {func(w *world) { w.tests[0].Namespace = "elsewhere" }, []State{StateMissing}, "does not exist", 0},
		"one of two selects the node": {func(w *world) {
			w.Profile.Spec.Verification.Qualification.Tests = append(w.Profile.Spec.Verification.Qualification.Tests, v1alpha1.LatencyTestReference{Namespace: "tests", Name: "rest"})
			rest := measuredTest("rest", w.Subject, 9_000)
			rest.Spec.Nodes.Names = []string{"n2"}
			w.tests = append(w.tests, rest)
		}, []State{StatePassed}, "tests/quiet", 0},
		"both select it, and one fails": {func(w *world) {
			w.Profile.Spec.Verification.Qualification.Tests = append(w.Profile.Spec.Verification.Qualification.Tests, v1alpha1.LatencyTestReference{Namespace: "tests", Name: "rest"})
			w.tests = append(w.tests, measuredTest("rest", w.Subject, 90_000))
		}, []State{StateFailed, StatePassed}, "tests/rest: the longest interruption was 90 µs", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			subject, tests := asked(9_000)
			w := &world{subject, tests}
			tc.change(w)
			standings := Standings(w.Subject, w.tests, begin())
			states := make([]State, 0, len(standings))
			for _, s := range standings {
				states = append(states, s.State)
			}
			if diff := cmp.Diff(tc.want, states); diff != "" {
				t.Errorf("%s%+v", diff, standings)
			}
			if len(standings) > 0 && !strings.Contains(standings[0].Message, tc.wantText) {
				t.Errorf("the message is %q, want %q in it", standings[0].Message, tc.wantText)
			}
			if again := Changes(standings, begin()); again != tc.wantAgain {
				t.Errorf("it changes after %s, want %s", again, tc.wantAgain)
			}
			if _, unmet := Unmet(standings); unmet != (len(states) > 0 && states[0] != StatePassed) {
				t.Errorf("unmet is %t for %v", unmet, states)
			}
		})
	}
}

func TestUnqualifiedLeavesOutWhatIsOnItsWay(t *testing.T) {
	subject, tests := asked(90_000)
	settled, moving := subject.Report.DeepCopy(), subject.Report.DeepCopy()
	settled.Status.VerifiedPlanHash = "plan-1"
	settled.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue}}
	moving.Status.VerifiedPlanHash = "plan-0"
	other := subject.Node.DeepCopy()
	other.Name = "n2"
	w := &fleet.ProfileWorld{Profile: subject.Profile}
	got, again := Unqualified(w, []fleet.Member{{Node: subject.Node, Report: settled}, {Node: other, Report: moving}}, tests, begin())
	if len(got) != 1 || got["n1"].Reason != v1alpha1.ReasonQualificationFailed || again != 0 {
		t.Errorf("%+v, again after %s", got, again)
	}
}

// TestIdle: a test that selects no member is told, and one of which nothing is known is not.
func TestIdle(t *testing.T) {
	subject, tests := asked(9_000)
	members := []fleet.Member{{Node: subject.Node, Report: subject.Report}}
	of := func(change func(*v1alpha1.LatencyTest), members []fleet.Member) []string {
		changed := []v1alpha1.LatencyTest{*tests[0].DeepCopy()}
		change(&changed[0])
		return Idle(&fleet.ProfileWorld{Profile: subject.Profile}, members, changed)
	}
	name := tests[0].Namespace + "/" + tests[0].Name
	elsewhere := func(l *v1alpha1.LatencyTest) { l.Spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{"n9"}} }
	for situation, tc := range map[string]struct {
		got, want []string
	}{
		"selects the node":     {of(func(*v1alpha1.LatencyTest) {}, members), nil},
		"selects another node": {of(elsewhere, members), []string{name}},
		"there is no node":     {of(elsewhere, nil), nil},
		"does not exist":       {of(func(l *v1alpha1.LatencyTest) { l.Name = "other" }, members), nil},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", situation, diff)
		}
	}
}

func TestSaysElse(t *testing.T) {
	_, tests := asked(9_000)
	cases := map[string]struct {
		change func(*v1alpha1.LatencyTest)
		want   bool
	}{
		"the same": {func(*v1alpha1.LatencyTest) {}, false},
		"of another node": {func(l *v1alpha1.LatencyTest) {
			l.Status.Results = append(l.Status.Results, v1alpha1.LatencyTestResult{Node: "n2"})
		}, false},
		"of this node":     {func(l *v1alpha1.LatencyTest) { l.Status.Results[0].Activity = v1alpha1.LatencyRunning }, true},
		"another spec":     {func(l *v1alpha1.LatencyTest) { l.Generation++ }, true},
		"another one":      {func(l *v1alpha1.LatencyTest) { l.UID = "u2" }, true},
		"nothing any more": {func(l *v1alpha1.LatencyTest) { l.Status.Results = nil }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			after := tests[0].DeepCopy()
			tc.change(after)
			if got := SaysElse(&tests[0], after, "n1"); got != tc.want {
				t.Errorf("%t", got)
			}
		})
	}
}
