// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestPromised: pages add up only where both their size and their place are the same.
func TestPromised(t *testing.T) {
	zero, one := 0, 1
	const gigantic, huge = 1 << 20, 2 << 10
	s := &state{plan: &plan.NodePlan{Hugepages: []plan.HugepagePlan{
		{Size: "1Gi", SizeKibibytes: gigantic, Count: 16},
		{Size: "1Gi", SizeKibibytes: gigantic, Count: 1, NUMANode: &zero},
		{Size: "2Mi", SizeKibibytes: huge, Count: 32, NUMANode: &zero},
		{Size: "2Mi", SizeKibibytes: huge, Count: 64, NUMANode: &one},
		{Size: "2Mi", SizeKibibytes: huge, Count: 8, NUMANode: &zero},
		{Size: "2Mi", SizeKibibytes: huge, Count: 2},
	}}}
	type total struct {
		size  v1alpha1.HugepageSize
		count int64
		node  int
	}
	promises := s.promised()
	got := make([]total, 0, len(promises))
	for _, p := range promises {
		node := -1
		if p.numaNode != nil {
			node = *p.numaNode
		}
		got = append(got, total{p.size, p.count, node})
	}
	want := []total{{"1Gi", 17, -1}, {"1Gi", 1, 0}, {"2Mi", 40, 0}, {"2Mi", 106, -1}, {"2Mi", 64, 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(total{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInterruptsThatKeepOff: the check says how many interrupts it has looked at, and what they keep off.
func TestInterruptsThatKeepOff(t *testing.T) {
	f := sound()
	for _, result := range f.evaluate().Results {
		if result.Check.ID == "irq.effective-affinity" {
			if want := "2 interrupts keep off CPUs 2-3,6-7"; result.Observed != want {
				t.Errorf("observed %q, want %q", result.Observed, want)
			}
			return
		}
	}
	t.Error("irq.effective-affinity was not judged")
}

// TestNothingCritical: a plan to which no critical check of a condition applies proves nothing about it.
func TestNothingCritical(t *testing.T) {
	report := Report{Results: []Result{{
		Check: Check{ID: "irq.default-affinity", Severity: v1alpha1.SeverityHigh, Conditions: []string{v1alpha1.ConditionDeJittered}}, Outcome: v1alpha1.OutcomePassed,
	}}}
	got := report.condition(v1alpha1.ConditionDeJittered)
	want := metav1.Condition{
		Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonChecksUnknown,
		Message: "no critical check applies to the plan",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
