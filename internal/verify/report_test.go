// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func TestSoundHostIsReady(t *testing.T) {
	report := sound().evaluate()
	if findings := report.Findings(); len(findings) > 0 {
		t.Errorf("findings: %+v", findings)
	}
	counts := report.Counts()
	if want := (v1alpha1.CheckCounts{Passed: int32(len(report.Results))}); counts != want {
		t.Errorf("counts %+v, want %+v", counts, want)
	}
	if got, want := len(report.Results)+len(report.Skipped), len(Catalogue()); got != want {
		t.Errorf("%d checks are evaluated or skipped, want %d", got, want)
	}
	got := make([]string, 0, 4)
	for _, condition := range report.Conditions(7) {
		got = append(got, fmt.Sprintf("%s %s %s %d", condition.Type, condition.Status, condition.Reason, condition.ObservedGeneration))
		if condition.Message == "" || !condition.LastTransitionTime.IsZero() {
			t.Errorf("condition %+v has no message, or a time", condition)
		}
	}
	want := []string{"Applied True Verified 7", "DeJittered True Verified 7", "NUMAAligned True Verified 7", "Ready True Verified 7"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// butOne is the message of DeJittered on a sound host of which one check did not pass.
func butOne() string {
	count := len(sound().evaluate().concerning(v1alpha1.ConditionDeJittered))
	return fmt.Sprintf("the running kernel satisfies the plan: %d of %d checks passed. Other findings: ", count-1, count)
}

// want is what a condition is to say; any message where there is none.
type want struct {
	status          metav1.ConditionStatus
	reason, message string
}

// conditionCase is a change of the sound host and the conditions that follow from it.
type conditionCase struct {
	change                            func(fixture)
	applied, deJittered, aligned, all want
}

func (tc conditionCase) test(t *testing.T) {
	t.Helper()
	f := sound()
	tc.change(f)
	got := f.evaluate().Conditions(1)
	for conditionType, want := range map[string]want{
		v1alpha1.ConditionApplied: tc.applied, v1alpha1.ConditionDeJittered: tc.deJittered,
		v1alpha1.ConditionNUMAAligned: tc.aligned, v1alpha1.ConditionReady: tc.all,
	} {
		found := meta.FindStatusCondition(got, conditionType)
		if found.Status != want.status || found.Reason != want.reason || want.message != "" && found.Message != want.message {
			t.Errorf("%s is %s %s %q\nwant %+v", conditionType, found.Status, found.Reason, found.Message, want)
		}
	}
}

func TestConditions(t *testing.T) {
	verified := want{metav1.ConditionTrue, v1alpha1.ReasonVerified, ""}
	irq := "irq.effective-affinity: IRQ 142 (sfc-ens2f0-3) is delivered to isolated CPU 3; wanted 0-1,4-5"
	moveInterrupt := func(f fixture) { f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list("3")) }
	cases := map[string]conditionCase{
		"a critical check fails": {
			change: moveInterrupt, applied: verified, aligned: verified,
			deJittered: want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, irq},
			all:        want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, "DeJittered: " + irq},
		},
		"it is waived": {
			change: func(f fixture) {
				moveInterrupt(f)
				f.plan.Verification.Waived = []v1alpha1.WaivedCheck{{Check: "irq.effective-affinity", Reason: "management port"}}
			},
			applied: verified, deJittered: verified, aligned: verified, all: verified,
		},
		"a critical fact is missing": {
			change:  func(f fixture) { f.facts.CPUs.Isolated = absent[cpus.Set]("/sys/devices/system/cpu/isolated") },
			applied: verified, aligned: verified,
			deJittered: want{metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown, "cpu.isolated: /sys/devices/system/cpu/isolated cannot be read: no such file"},
			all:        want{metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown, "DeJittered: cpu.isolated: /sys/devices/system/cpu/isolated cannot be read: no such file"},
		},
		"failed outweighs unknown": {
			change: func(f fixture) {
				moveInterrupt(f)
				f.facts.CPUs.Isolated = absent[cpus.Set]("/sys/devices/system/cpu/isolated")
			},
			applied: verified, aligned: verified,
			deJittered: want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, irq + ". Other findings: 1 unknown"},
			all:        want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, "DeJittered: " + irq + ". Other findings: 1 unknown"},
		},
		"the plan needs a reboot": {
			change:     func(f fixture) { f.boot(strings.ReplaceAll(soundCommandLine, "tsc=reliable ", "")) },
			deJittered: verified, aligned: verified,
			applied: want{metav1.ConditionFalse, v1alpha1.ReasonRebootPending, "kernel.command-line: the kernel was booted without tsc=reliable"},
			all:     want{metav1.ConditionFalse, v1alpha1.ReasonRebootPending, "Applied: kernel.command-line: the kernel was booted without tsc=reliable"},
		},
		"the kubelet has another configuration": {
			change:     configured("single-numa-node", "restricted"),
			deJittered: verified,
			applied: want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed,
				"kubelet.topology-manager: the kubelet's topologyManagerPolicy is restricted, not single-numa-node"},
			aligned: want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed,
				"kubelet.topology-manager: the kubelet's topologyManagerPolicy is restricted, not single-numa-node"},
			all: want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed,
				"Applied: kubelet.topology-manager: the kubelet's topologyManagerPolicy is restricted, not single-numa-node"},
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.test)
	}
}

// What decides DeJittered besides critical checks.
func TestConditionsByImpact(t *testing.T) {
	verified := want{metav1.ConditionTrue, v1alpha1.ReasonVerified, ""}
	failed := func(message string) (deJittered, all want) {
		return want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, message}, want{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, "DeJittered: " + message}
	}
	withTHP := func(f fixture) { f.set(settingTHP, "[always] madvise never") }
	withTaint := func(f fixture) { f.set(settingTainted, "16384") }
	hugepages := "memory.transparent-hugepages: /sys/kernel/mm/transparent_hugepage/enabled is [always] madvise never, not never"
	lockup := "kernel.tainted: the kernel has seen a lockup since it booted"
	slow := "clock.source: the kernel keeps time with hpet, not tsc"
	failOn := func(threshold v1alpha1.FailureThreshold, change func(fixture)) func(fixture) {
		return func(f fixture) {
			change(f)
			f.plan.Verification.FailOn = threshold
		}
	}
	waived := func(f fixture) {
		withTHP(f)
		f.plan.Verification.Waived = []v1alpha1.WaivedCheck{{Check: "memory.transparent-hugepages", Reason: "a database"}}
	}
	passed := func(others string) (deJittered, all want) {
		return want{metav1.ConditionTrue, v1alpha1.ReasonVerified, butOne() + others},
			want{metav1.ConditionTrue, v1alpha1.ReasonVerified, "the running kernel proves the plan. Other findings: " + others}
	}
	cases := map[string]struct {
		change func(fixture)
		want   func(string) (deJittered, all want)
		says   string
	}{
		"a check fails that is not critical and has an impact": {withTHP, failed, hugepages},
		"it is waived":                                       {waived, passed, "1 waived"},
		"it is waived, whatever counts":                      {failOn(v1alpha1.FailOnLow, waived), passed, "1 waived"},
		"a check fails that touches no isolated CPU":         {withTaint, passed, "1 failed"},
		"it fails, and its severity counts":                  {failOn(v1alpha1.FailOnMedium, withTaint), failed, lockup},
		"it fails, and a higher severity counts":             {failOn(v1alpha1.FailOnHigh, withTaint), passed, "1 failed"},
		"only critical failures count":                       {failOn(v1alpha1.FailOnCritical, withTHP), passed, "1 failed"},
		"a fact is missing for a check that is not critical": {func(f fixture) { f.remove(settingTHP) }, passed, "1 unknown"},
		"the most severe failure comes first, and lesser ones are counted": {func(f fixture) {
			withTaint(f)
			withTHP(f)
			f.set(settingClocksource, "hpet")
		}, failed, slow + ". " + hugepages + ". Other findings: 1 failed"},
	}
	for name, tc := range cases {
		deJittered, all := tc.want(tc.says)
		t.Run(name, conditionCase{change: tc.change, applied: verified, aligned: verified, deJittered: deJittered, all: all}.test)
	}
}

// A host with one NUMA node has nothing to misalign.
func TestOneNUMANodeIsAligned(t *testing.T) {
	f := sound()
	oneNode(f)
	f.plan.Verification.MultipleNUMANodes, f.plan.Hugepages, f.plan.BypassNICs = false, nil, nil
	f.plan.Verification.NUMANodes = nil
	if !meta.IsStatusConditionTrue(f.evaluate().Conditions(1), v1alpha1.ConditionNUMAAligned) {
		t.Errorf("not aligned: %+v", f.evaluate().Findings())
	}
}

func TestConditionNamesThreeChecksAndCountsTheRest(t *testing.T) {
	f := sound()
	f.facts.CPUs.Online = known(list("0-9"))
	f.facts.CPUs.Isolated, f.facts.CPUs.NoHzFull = known(cpus.Set{}), known(cpus.Set{})
	f.set(settingClocksource, "hpet")
	f.set(settingLatencyLimit, "2000000000")
	got := meta.FindStatusCondition(f.evaluate().Conditions(1), v1alpha1.ConditionDeJittered).Message
	want := "cpu.partition: CPUs 8-9 are online and neither housekeeping nor isolated" +
		". cpu.isolated: isolated CPUs 2-3,6-7 are in the scheduler's domains: they are not in /sys/devices/system/cpu/isolated" +
		". cpu.nohz-full: isolated CPUs 2-3,6-7 are interrupted by the scheduler tick: they are not in /sys/devices/system/cpu/nohz_full" +
		". And 2 more"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNoConditionIsTrueWithoutACheck(t *testing.T) {
	for _, condition := range (Report{}).Conditions(1) {
		if condition.Status != metav1.ConditionUnknown || condition.Reason != v1alpha1.ReasonChecksUnknown {
			t.Errorf("%s is %s %s, want Unknown", condition.Type, condition.Status, condition.Reason)
		}
	}
}

// A host that is read once has no counters to compare; that must neither fail nor block.
func TestOneReadingLeavesOutCounters(t *testing.T) {
	f := sound()
	f.before = nil
	report := f.evaluate()
	for _, check := range Catalogue() {
		_, found := find(report, check.ID)
		if check.Window && found {
			t.Errorf("%s was evaluated on one reading", check.ID)
		}
	}
	want := []Skip{}
	for _, check := range Catalogue() {
		if check.Window {
			want = append(want, Skip{Check: check.ID, Reason: "it compares counters of two moments, and the host was read once only"})
		}
	}
	windowed := cmpopts.IgnoreSliceElements(func(s Skip) bool { return s.Reason == skippedByPlan })
	if diff := cmp.Diff(want, report.Skipped, windowed); diff != "" || len(want) == 0 {
		t.Error(diff)
	}
	for _, condition := range report.Conditions(1) {
		if condition.Status != metav1.ConditionTrue {
			t.Errorf("%s is %s: %s", condition.Type, condition.Status, condition.Message)
		}
	}
}

func TestWaiver(t *testing.T) {
	f := sound()
	f.set(settingNoTurbo, "0")
	f.plan.Verification.Waived = []v1alpha1.WaivedCheck{
		{Check: "power.turbo", Reason: "fixed in BIOS"}, {Check: "clock.source", Reason: "it passes anyway"},
	}
	report := f.evaluate()
	want := []v1alpha1.Finding{{
		Check: "power.turbo", Outcome: v1alpha1.OutcomeWaived, Severity: v1alpha1.SeverityMedium,
		Message:  settingNoTurbo + " is 0, not 1 (waived: fixed in BIOS)",
		Objects:  &v1alpha1.FindingObjects{Files: []string{settingNoTurbo}, Counts: v1alpha1.ObjectCounts{Files: 1}},
		Observed: "0", Expected: "1",
		Fix: "Write the planned value to the file named (1 in intel_pstate/no_turbo and 0 in cpufreq/boost switch turbo off), or change the firmware's setting.", Reboot: v1alpha1.RebootNotRequired,
	}}
	if diff := cmp.Diff(want, finding.Statuses(report.Findings())); diff != "" {
		t.Error(diff)
	}
	if counts := report.Counts(); counts.Waived != 1 || counts.Failed != 0 || counts.Unknown != 0 {
		t.Errorf("counts %+v, want one waived", counts)
	}
}

func TestFindingsAreOrderedAndCounted(t *testing.T) {
	f := sound()
	f.set(settingNoTurbo, "0")
	f.remove(settingClocksource)
	f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list("3"))
	f.set(settingTHP, "[always] madvise never")
	f.boot("quiet")
	f.pods.qualification = nil
	f.plan.Verification.Waived = []v1alpha1.WaivedCheck{{Check: "kernel.command-line", Reason: "test"}}
	report := f.evaluate()
	got := make([]string, 0, 6)
	for _, finding := range report.Findings() {
		got = append(got, fmt.Sprintf("%s %s %s", finding.Severity, finding.Outcome, finding.Check))
	}
	want := []string{
		"Critical Failed irq.effective-affinity",
		"Critical Unknown clock.source",
		"Critical Waived kernel.command-line",
		"High Failed memory.transparent-hugepages",
		"Medium Failed irq.managed",
		"Medium Failed power.turbo",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	counts := report.Counts()
	counts.Passed = 0
	if diff := cmp.Diff(v1alpha1.CheckCounts{Failed: 4, Unknown: 1, Waived: 1}, counts); diff != "" {
		t.Error(diff)
	}
}

func TestFindingsStayWithinTheBoundsOfTheAPI(t *testing.T) {
	long := strings.Repeat("é", 2000)
	var report Report
	for i := range 200 {
		report.Results = append(report.Results, Result{
			Check:   Check{ID: v1alpha1.CheckID(fmt.Sprintf("test.number-%d", i)), Severity: v1alpha1.SeverityLow},
			Outcome: v1alpha1.OutcomeFailed, Message: "x" + long, Observed: long, Expected: long, Fix: long,
		})
	}
	findings := finding.Statuses(report.Findings())
	if len(findings) != 128 {
		t.Errorf("%d findings, want 128", len(findings))
	}
	for _, f := range findings {
		for text, limit := range map[string]int{f.Message: 1024, f.Observed: 512, f.Expected: 512, f.Fix: 512} {
			if len(text) > limit || len(text) < limit-4 || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
				t.Errorf("text of %d bytes, limit %d: %q", len(text), limit, text)
			}
		}
	}
}

// The same host must give the same report, down to the byte, or an idle node would write its status.
func TestReportIsDeterministic(t *testing.T) {
	break1 := func(f fixture) {
		f.boot("quiet")
		f.facts.CPUs.Isolated = known(cpus.Set{})
		f.facts.Kubelet.CPUManagerState = known(`{"policyName":"static","defaultCpuSet":"2-7","entries":` +
			`{"pod-a":{"x":"0","y":"1"},"pod-b":{"x":"0","y":"1"},"pod-c":{"x":"4"}}}`)
		f.plan.Kubelet.CPUManagerPolicyOptions = map[string]string{"a": "1", "b": "2", "c": "3"}
	}
	first := sound()
	break1(first)
	want := first.evaluate().Findings()
	for range 20 {
		f := sound()
		break1(f)
		if diff := cmp.Diff(want, f.evaluate().Findings()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// Nothing known is nothing proven.
func TestEmptyFactsPassNothing(t *testing.T) {
	f := sound()
	f.facts, f.before = &host.Facts{}, nil
	*f.pods = pods{}
	report := f.evaluate()
	for _, result := range report.Results {
		if result.Outcome == v1alpha1.OutcomePassed {
			t.Errorf("%s passed on a host that says nothing: %s", result.Check.ID, result.Observed)
		}
	}
	for _, condition := range report.Conditions(1) {
		if condition.Status == metav1.ConditionTrue {
			t.Errorf("%s is True on a host that says nothing", condition.Type)
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	for _, count := range []int{80, 512} {
		f := large(count)
		b.Run(fmt.Sprintf("cpus=%d", count), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f.evaluate()
			}
		})
	}
}

// large is a sound host of many CPUs and ten interrupts for each.
func large(count int) fixture {
	f := sound()
	all := cpus.Set{}
	for _, facts := range []*host.Facts{f.facts, f.before} {
		facts.CPUs.List, facts.Interrupts.Columns, facts.Interrupts.Routes = nil, nil, nil
		for id := range count {
			cpu := soundCPU(id)
			facts.CPUs.List = append(facts.CPUs.List, cpu)
			facts.Interrupts.Columns = append(facts.Interrupts.Columns, id)
			all = all.Union(cpus.Of(id))
		}
		lines := make([]host.InterruptLine, 0, 10*count)
		for number := range 10 * count {
			lines = append(lines, host.InterruptLine{Name: strconv.Itoa(number), Counts: make([]uint64, count)})
			facts.Interrupts.Routes = append(facts.Interrupts.Routes, host.InterruptRoute{
				Number: number, Affinity: known(cpus.Of(0, 1)), EffectiveAffinity: known(cpus.Of(number % 2)), Actions: []string{"queue"},
			})
		}
		facts.Interrupts.Lines = known(lines)
		facts.CPUs.Online = known(all)
	}
	f.plan.CPUs.Housekeeping = list("0-1,4-5")
	f.plan.CPUs.Isolated = all.Difference(f.plan.CPUs.Housekeeping)
	for _, facts := range []*host.Facts{f.facts, f.before} {
		facts.CPUs.Isolated, facts.CPUs.NoHzFull = known(f.plan.CPUs.Isolated), known(f.plan.CPUs.Isolated)
	}
	return f
}
