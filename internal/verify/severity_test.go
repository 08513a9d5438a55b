// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func thresholds() []v1alpha1.FailureThreshold {
	return []v1alpha1.FailureThreshold{
		v1alpha1.FailOnImpact, v1alpha1.FailOnCritical, v1alpha1.FailOnHigh, v1alpha1.FailOnMedium, v1alpha1.FailOnLow,
	}
}

// conditionsWith are the statuses of the conditions of a node on which every other check passes and this one has the
// outcome: "Applied=False" and so on, without those that are True.
func conditionsWith(check Check, found verdict, by judgement) []string {
	passing := Check{ID: "other", Severity: v1alpha1.SeverityCritical, Conditions: ConditionTypes()}
	report := Report{Results: []Result{passing.result(passed(""), by), check.result(found, by)}}
	var changed []string
	for _, condition := range report.Conditions(1) {
		if condition.Status != metav1.ConditionTrue && condition.Type != v1alpha1.ConditionReady {
			changed = append(changed, fmt.Sprintf("%s=%s", condition.Type, condition.Status))
		}
	}
	return changed
}

func judgedOn(check Check) string {
	switch {
	case check.Window:
		return "window"
	case check.Qualification:
		return "qualification"
	}
	return "always"
}

// The golden file is deliberately a second place in which severity, impact and effect of every check are said: changing
// one of them is a decision about all nodes, and shows in the diff.
func TestSeverityAndEffectOfEveryCheck(t *testing.T) {
	var b strings.Builder
	b.WriteString("# check, severity, impact, reboot, when it is judged; what it changes when it failed, by spec.verification.failOn, and when it is unknown\n")
	for _, check := range Catalogue() {
		fmt.Fprintf(&b, "%s %s %s reboot=%s %s\n", check.ID, check.Severity, check.Impact, check.Reboot, judgedOn(check))
		changes := map[string][]string{}
		var order []string
		for _, failOn := range thresholds() {
			changed := strings.Join(conditionsWith(check, failed("wrong", "", ""), judgement{failOn: failOn}), " ")
			if changed == "" {
				continue
			}
			if changes[changed] == nil {
				order = append(order, changed)
			}
			changes[changed] = append(changes[changed], string(failOn))
		}
		for _, changed := range order {
			fmt.Fprintf(&b, "\tfailed: %s on %s\n", changed, strings.Join(changes[changed], " "))
		}
		if changed := conditionsWith(check, unknown("file", "gone", ""), judgement{}); len(changed) > 0 {
			fmt.Fprintf(&b, "\tunknown: %s\n", strings.Join(changed, " "))
		}
	}
	golden.Assert(t, b.String(), "severities.txt")
}

// What each class of checks does to conditions, said once more without the catalogue.
func TestDecides(t *testing.T) {
	about := []string{v1alpha1.ConditionDeJittered}
	all := []v1alpha1.FailureThreshold{"", v1alpha1.FailOnImpact, v1alpha1.FailOnCritical, v1alpha1.FailOnHigh, v1alpha1.FailOnMedium, v1alpha1.FailOnLow}
	cases := map[string]struct {
		severity v1alpha1.Severity
		impact   Impact
		outcome  v1alpha1.Outcome
		// want are the thresholds under which the condition is decided.
		want []v1alpha1.FailureThreshold
	}{
		"a critical failure": {v1alpha1.SeverityCritical, ImpactWork, v1alpha1.OutcomeFailed, all},
		"a high failure that puts work on CPUs": {v1alpha1.SeverityHigh, ImpactWork, v1alpha1.OutcomeFailed,
			[]v1alpha1.FailureThreshold{"", v1alpha1.FailOnImpact, v1alpha1.FailOnHigh, v1alpha1.FailOnMedium, v1alpha1.FailOnLow}},
		"a medium failure that slows CPUs": {v1alpha1.SeverityMedium, ImpactSpeed, v1alpha1.OutcomeFailed,
			[]v1alpha1.FailureThreshold{"", v1alpha1.FailOnImpact, v1alpha1.FailOnMedium, v1alpha1.FailOnLow}},
		"a low failure that moves memory": {v1alpha1.SeverityLow, ImpactPlacement, v1alpha1.OutcomeFailed,
			[]v1alpha1.FailureThreshold{"", v1alpha1.FailOnImpact, v1alpha1.FailOnLow}},
		"a low failure by which the plan is not in force": {v1alpha1.SeverityLow, ImpactPlan, v1alpha1.OutcomeFailed,
			[]v1alpha1.FailureThreshold{"", v1alpha1.FailOnImpact, v1alpha1.FailOnLow}},
		"a high failure without impact": {v1alpha1.SeverityHigh, ImpactNone, v1alpha1.OutcomeFailed,
			[]v1alpha1.FailureThreshold{v1alpha1.FailOnHigh, v1alpha1.FailOnMedium, v1alpha1.FailOnLow}},
		"a low failure without impact":    {v1alpha1.SeverityLow, ImpactNone, v1alpha1.OutcomeFailed, []v1alpha1.FailureThreshold{v1alpha1.FailOnLow}},
		"critical facts are missing":      {v1alpha1.SeverityCritical, ImpactWork, v1alpha1.OutcomeUnknown, all},
		"facts of a high one are missing": {v1alpha1.SeverityHigh, ImpactWork, v1alpha1.OutcomeUnknown, nil},
		"a critical check is waived":      {v1alpha1.SeverityCritical, ImpactWork, v1alpha1.OutcomeWaived, nil},
		"a critical check passed":         {v1alpha1.SeverityCritical, ImpactWork, v1alpha1.OutcomePassed, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			check := Check{ID: "test.check", Severity: tc.severity, Impact: tc.impact, Conditions: about}
			var got []v1alpha1.FailureThreshold
			for _, failOn := range all {
				decided := check.Decides(tc.outcome, failOn)
				if len(decided) == 0 {
					continue
				}
				if diff := cmp.Diff(about, decided); diff != "" {
					t.Error(diff)
				}
				got = append(got, failOn)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The command line's threshold comes before that of the plan, and a waiver before both.
func TestJudgement(t *testing.T) {
	check := Check{ID: "test.check", Severity: v1alpha1.SeverityHigh, Impact: ImpactNone, Conditions: []string{v1alpha1.ConditionApplied}}
	in := sound().input()
	in.Plan.Verification.FailOn = v1alpha1.FailOnHigh
	of := func() Result { return check.result(failed("wrong", "", ""), in.judgement()) }
	if diff := cmp.Diff([]string{v1alpha1.ConditionApplied}, of().Decides); diff != "" {
		t.Error(diff)
	}
	in.FailOn = v1alpha1.FailOnCritical
	if got := of(); got.Decides != nil || got.Outcome != v1alpha1.OutcomeFailed {
		t.Errorf("%+v decides although only critical failures count", got)
	}
	in.FailOn, in.Plan.Verification.Waived = v1alpha1.FailOnLow, []v1alpha1.WaivedCheck{{Check: "test.check", Reason: "known"}}
	if got := of(); got.Decides != nil || got.Outcome != v1alpha1.OutcomeWaived || got.Message != "wrong (waived: known)" {
		t.Errorf("%+v is not waived", got)
	}
}

// Every check says what a failure means, and what is critical has an impact.
func TestEveryCheckHasAnImpact(t *testing.T) {
	for _, check := range Catalogue() {
		if check.Impact.Sentence() == "" {
			t.Errorf("check %s has impact %q", check.ID, check.Impact)
		}
		if check.Severity == v1alpha1.SeverityCritical && check.Impact == ImpactNone {
			t.Errorf("check %s is critical and has no impact", check.ID)
		}
	}
}
