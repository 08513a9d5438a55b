// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func measurement() *v1alpha1.LatencyMeasurement {
	r := measuredRecord()
	return &v1alpha1.LatencyMeasurement{
		CPUs: r.CPUs, WorstCPU: r.WorstCPU, MaximumNanoseconds: r.MaximumNanoseconds, StolenPartsPerMillion: r.StolenPartsPerMillion,
		Percentiles: r.Percentiles, Causes: r.Causes,
	}
}

// judged is a measurement with a budget, and what becomes of it.
type judged struct {
	change func(*v1alpha1.LatencyMeasurement)
	budget *v1alpha1.LatencyBudget
	want   Verdict
}

// judgedCases are measurements within a budget, beyond it, and such as cannot be told.
func judgedCases() map[string]judged {
	return map[string]judged{
		"values that equal the bounds are within": {
			budget: &v1alpha1.LatencyBudget{
				MaximumNanoseconds: 9000, StolenPartsPerMillion: 12, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P999, Nanoseconds: 3000}},
			},
			want: Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: longest interruption (CPU 5) 9 µs, 12 parts per million of the time taken, CPUs 4-5"},
		},
		"the longest interruption is too long": {
			budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 8999},
			want:   Verdict{v1alpha1.LatencyFailed, v1alpha1.TestMaximumExceeded, "the longest interruption (CPU 5) was 9 µs, more than 8.999 µs; the kernel counted Interrupt LOC"},
		},
		"everything is too much, and nothing was counted": {
			change: func(m *v1alpha1.LatencyMeasurement) { m.Causes = nil },
			budget: &v1alpha1.LatencyBudget{
				MaximumNanoseconds: 1, StolenPartsPerMillion: 11, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99, Nanoseconds: 1500}},
			},
			want: Verdict{v1alpha1.LatencyFailed, v1alpha1.TestMaximumExceeded, "the longest interruption (CPU 5) was 9 µs, more than 1 ns; " +
				"12 parts per million of the time were taken from a CPU, more than 11; percentile 99 % was 2 µs, more than 1.5 µs; " +
				"the kernel counted nothing about that time: firmware, hypervisor or hardware"},
		},
		"nothing was counted about the longest, and something about others": {
			change: func(m *v1alpha1.LatencyMeasurement) {
				m.Causes = []string{NothingAboutLongest, "Interrupt LOC", "Softirq TIMER"}
			},
			budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 8999},
			want: Verdict{v1alpha1.LatencyFailed, v1alpha1.TestMaximumExceeded, "the longest interruption (CPU 5) was 9 µs, more than 8.999 µs; " +
				"the kernel counted nothing about the longest one: firmware, hypervisor or hardware; about others of the longest it counted Interrupt LOC, Softirq TIMER"},
		},
		"the same of a record without room, where the kernel's own interrupts are hidden": {
			change: func(m *v1alpha1.LatencyMeasurement) {
				m.Causes, m.CountedInterrupts = []string{NothingAboutLongest}, v1alpha1.CountedInterruptsDevices
			},
			budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 8999},
			want: Verdict{v1alpha1.LatencyFailed, v1alpha1.TestMaximumExceeded, "the longest interruption (CPU 5) was 9 µs, more than 8.999 µs; " +
				"the kernel counted nothing about the longest one that a pod may see: its own interrupts, firmware, hypervisor or hardware"},
		},
		"nothing was counted where the kernel's own interrupts are hidden": {
			change: func(m *v1alpha1.LatencyMeasurement) {
				m.Causes, m.CountedInterrupts = nil, v1alpha1.CountedInterruptsDevices
			},
			budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 8999},
			want: Verdict{v1alpha1.LatencyFailed, v1alpha1.TestMaximumExceeded, "the longest interruption (CPU 5) was 9 µs, more than 8.999 µs; " +
				"the kernel counted nothing about that time that a pod may see: its own interrupts, firmware, hypervisor or hardware"},
		},
		"a percentile that was not measured": {
			change: func(m *v1alpha1.LatencyMeasurement) { m.Percentiles = m.Percentiles[:2] },
			budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 9000, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99999, Nanoseconds: 9000}}},
			want: Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestTooFewSamples, "the measurement has no percentile 99.999 %: " +
				"longest interruption (CPU 5) 9 µs, 12 parts per million of the time taken, CPUs 4-5"},
		},
		"a percentile alone": {
			budget: &v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99999, Nanoseconds: 0}}},
			want:   Verdict{v1alpha1.LatencyFailed, v1alpha1.TestPercentileExceeded, "percentile 99.999 % was 5 µs, more than 0 ns; the kernel counted Interrupt LOC"},
		},
		"a quiet node": {
			change: func(m *v1alpha1.LatencyMeasurement) {
				m.WorstCPU, m.MaximumNanoseconds, m.StolenPartsPerMillion = nil, 0, 0
			},
			budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 1},
			want:   Verdict{v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget, "within the budget: longest interruption 0 ns, 0 parts per million of the time taken, CPUs 4-5"},
		},
		"no budget": {
			want: Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestNoBudget, "measured, but neither spec.budget nor spec.verification.budget of the profile of the node says what is good enough: " +
				"longest interruption (CPU 5) 9 µs, 12 parts per million of the time taken, CPUs 4-5"},
		},
	}
}

func TestJudge(t *testing.T) {
	cases := judgedCases()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			measured := measurement()
			if tc.change != nil {
				tc.change(measured)
			}
			if diff := cmp.Diff(tc.want, Judge(measured, tc.budget)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNothingPassesByWhatWasNotCounted: interruptions shorter than the threshold are not, and a budget may bound them.
func TestNothingPassesByWhatWasNotCounted(t *testing.T) {
	quiet := &v1alpha1.LatencyMeasurement{CPUs: "4-5"}
	const counted = "; counted were: longest interruption 0 ns, 0 parts per million of the time taken, CPUs 4-5"
	profile := &v1alpha1.LowLatencyNodeProfile{Spec: v1alpha1.LowLatencyNodeProfileSpec{Verification: v1alpha1.VerificationSpec{
		Budget: &v1alpha1.JitterBudget{MaximumInterruptionMicroseconds: 10, StolenPartsPerMillion: 50},
	}}}
	percentile := func(nanoseconds int64) *v1alpha1.LatencyBudget {
		return &v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99, Nanoseconds: nanoseconds}}}
	}
	for name, tc := range map[string]struct {
		threshold int32
		budget    *v1alpha1.LatencyBudget
		want      string
	}{
		"the budget of the profile":        {0, nil, ""},
		"above the budget of the profile":  {20_000, nil, "interruptions shorter than 20 µs were not counted, and the budget bounds the longest one by 10 µs, the time that they take by 50 parts per million"},
		"stolen time of the profile":       {501, nil, "interruptions shorter than 501 ns were not counted, and the budget bounds the time that they take by 50 parts per million"},
		"as long as the longest may be":    {10_000, &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000}, ""},
		"longer than the longest may be":   {10_001, &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000}, "interruptions shorter than 10.001 µs were not counted, and the budget bounds the longest one by 10 µs"},
		"a percentile without any":         {500, percentile(0), ""},
		"a percentile with shorter ones":   {1000, percentile(999), "interruptions shorter than 1 µs were not counted, and the budget bounds percentile 99 % by 999 ns"},
		"a percentile with as long ones":   {1000, percentile(1000), ""},
		"only what is counted is bounded":  {1_000_000, &v1alpha1.LatencyBudget{MaximumNanoseconds: 2_000_000}, ""},
		"the longest below the default":    {0, &v1alpha1.LatencyBudget{MaximumNanoseconds: 499}, "interruptions shorter than 500 ns were not counted, and the budget bounds the longest one by 499 ns"},
		"stolen time with the default one": {0, &v1alpha1.LatencyBudget{StolenPartsPerMillion: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			measured := quiet.DeepCopy()
			measured.Percentiles = []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99}}
			spec := &v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter, Jitter: &v1alpha1.JitterTest{ThresholdNanoseconds: tc.threshold}, Budget: tc.budget}
			got := VerdictOf(spec, profile, measured)
			if tc.want == "" {
				if got.Outcome != v1alpha1.LatencyPassed {
					t.Errorf("%+v", got)
				}
				return
			}
			want := Verdict{v1alpha1.LatencyInconclusive, v1alpha1.TestThresholdTooHigh, tc.want + ": lower spec.jitter.thresholdNanoseconds" + counted}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			measured.MaximumNanoseconds, measured.StolenPartsPerMillion = 30_000, 60
			measured.Percentiles[0].Nanoseconds = 30_000
			if got := VerdictOf(spec, profile, measured); got.Outcome != v1alpha1.LatencyFailed {
				t.Errorf("what exceeds the budget all the same: %+v", got)
			}
		})
	}
}

func TestBudgetOfProfile(t *testing.T) {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	spec := &v1alpha1.LatencyTestSpec{}
	if BudgetOf(spec, nil) != nil || BudgetOf(spec, profile) != nil {
		t.Error("there is a budget that nobody has set")
	}
	profile.Spec.Verification.Budget = &v1alpha1.JitterBudget{MaximumInterruptionMicroseconds: 10, StolenPartsPerMillion: 50}
	if diff := cmp.Diff(&v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000, StolenPartsPerMillion: 50}, BudgetOf(spec, profile)); diff != "" {
		t.Errorf("the budget of the profile (-want +got):\n%s", diff)
	}
	spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: 5}
	if BudgetOf(spec, profile) != spec.Budget {
		t.Error("the budget of the test does not come first")
	}
}

// testedNode is a node with its report.
func testedNode() (*corev1.Node, *v1alpha1.LowLatencyNode) {
	node := &corev1.Node{}
	node.Status.NodeInfo.KernelVersion = "6.12.0-rt"
	report := &v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{PlanHash: "plan-1"}}
	report.Status.Inventory = &v1alpha1.Inventory{
		KernelRelease: "6.12.0-rt", KernelCommandLine: "isolcpus=4-7", Microcode: "0x1", BIOSVersion: "2.1", MitigationsHash: "m1",
		NICs: []v1alpha1.InventoryNIC{{PCIAddress: "0000:3b:00.0", Vendor: "1924", Device: "0b03", Driver: "sfc", DriverVersion: "5.3", FirmwareVersion: "8.4"}},
	}
	report.Status.BypassNICs = []v1alpha1.NodeBypassNIC{
		{Pool: "feed", PCIAddress: "0000:3b:00.0", ModuleVersion: "9.1", UserVersion: "9.1"},
		{Pool: "feed", PCIAddress: "0000:3b:00.1", ModuleVersion: "9.1", UserVersion: "9.1"},
	}
	return node, report
}

func testedFingerprint() v1alpha1.LatencyFingerprint {
	node, report := testedNode()
	return FingerprintOf(Told{Kernel: node.Status.NodeInfo.KernelVersion}, report)
}

// differing is what becomes of a node, and the words for it.
type differing struct {
	change func(*corev1.Node, *v1alpha1.LowLatencyNode)
	want   []string
}

// differingCases are changes of a node that count, and such as do not.
func differingCases() map[string]differing {
	return map[string]differing{
		"nothing": {func(*corev1.Node, *v1alpha1.LowLatencyNode) {}, nil},
		"a virtual function": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			r.Status.Inventory.NICs = append(r.Status.Inventory.NICs, v1alpha1.InventoryNIC{PCIAddress: "0000:3b:02.0", PhysicalFunction: "0000:3b:00.0"})
		}, nil},
		"the kernel": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.KernelRelease = "6.13" }, []string{"the kernel (6.13, was 6.12.0-rt)"}},
		"the command line": {
			func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.KernelCommandLine = "" }, []string{"the kernel's command line"},
		},
		"firmware, microcode and plan": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			r.Status.Inventory.Microcode, r.Status.Inventory.BIOSVersion, r.Spec.PlanHash = "0x2", "2.2", ""
		}, []string{"the microcode (0x2, was 0x1)", "the firmware (2.2, was 2.1)", "the plan (not reported, was plan-1)"}},
		"a driver": {
			func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.NICs[0].Driver = "vfio-pci" }, []string{"a NIC or its driver"},
		},
		"the mitigations": {
			func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.MitigationsHash = "m2" }, []string{"the mitigations of CPU vulnerabilities"},
		},
		"the version of a driver": {
			func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.NICs[0].DriverVersion = "5.4" }, []string{"the driver sfc (5.4, was 5.3)"},
		},
		"the firmware of a NIC": {
			func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.NICs[0].FirmwareVersion = "8.5" },
			[]string{"the firmware of NICs with driver sfc (8.5, was 8.4)"},
		},
		"versions that nobody tells any more": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			r.Status.Inventory.NICs[0].DriverVersion, r.Status.Inventory.NICs[0].FirmwareVersion = "", ""
		}, nil},
		"an RDMA module that is not loaded": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.NICs[0].FirmwareVersion = "" }, nil},
		"a driver that states no version":   {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.NICs[0].DriverVersion = "" }, nil},
		"a virtual function of another driver": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			r.Status.Inventory.NICs = append(r.Status.Inventory.NICs, v1alpha1.InventoryNIC{PCIAddress: "a", PhysicalFunction: "b", Driver: "sfc", DriverVersion: "9"})
		}, nil},
		"mitigations that nobody tells any more": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.Inventory.MitigationsHash = "" }, nil},
		"a stack of another version": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			r.Status.BypassNICs[0].ModuleVersion, r.Status.BypassNICs[1].ModuleVersion = "9.2", "9.2"
		}, []string{"the stack of BypassNICPool feed (9.2/9.1, was 9.1/9.1)"}},
		"a NIC of a pool with another version": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			r.Status.BypassNICs = append(r.Status.BypassNICs, v1alpha1.NodeBypassNIC{Pool: "feed", UserVersion: "9.0"})
		}, []string{"the stack of BypassNICPool feed (-/9.0, 9.1/9.1, was 9.1/9.1)"}},
		"an added pool": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			r.Status.BypassNICs = append(r.Status.BypassNICs, v1alpha1.NodeBypassNIC{Pool: "orders", UserVersion: "9.0"})
		}, nil},
		"a deleted pool": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) { r.Status.BypassNICs = nil }, nil},
		"a module whose version nobody tells for now": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			for i := range r.Status.BypassNICs {
				r.Status.BypassNICs[i].ModuleVersion = ""
			}
		}, nil},
		"other libraries of a module whose version nobody tells": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			for i := range r.Status.BypassNICs {
				r.Status.BypassNICs[i].ModuleVersion, r.Status.BypassNICs[i].UserVersion = "", "9.2"
			}
		}, []string{"the stack of BypassNICPool feed (-/9.2, was 9.1/9.1)"}},
		"a pool whose stack nobody sees for now": {func(_ *corev1.Node, r *v1alpha1.LowLatencyNode) {
			for i := range r.Status.BypassNICs {
				r.Status.BypassNICs[i].ModuleVersion, r.Status.BypassNICs[i].UserVersion = "", ""
			}
		}, nil},
	}
}

func TestFingerprintDifferences(t *testing.T) {
	cases := differingCases()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			then := testedFingerprint()
			node, report := testedNode()
			tc.change(node, report)
			if diff := cmp.Diff(tc.want, Differences(then, FingerprintOf(Told{Kernel: node.Status.NodeInfo.KernelVersion}, report))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	// Two NICs of one driver may have different firmware.
	_, two := testedNode()
	two.Status.Inventory.NICs = append(two.Status.Inventory.NICs, v1alpha1.InventoryNIC{PCIAddress: "0000:3b:00.1", Driver: "sfc", DriverVersion: "5.3", FirmwareVersion: "8.1"})
	if diff := cmp.Diff([]v1alpha1.LatencyFingerprintDriver{{Name: "sfc", Version: "5.3", Firmware: "8.1, 8.4"}}, FingerprintOf(Told{}, two).Drivers); diff != "" {
		t.Errorf("two NICs (-want +got):\n%s", diff)
	}
	node, _ := testedNode()
	if diff := cmp.Diff(v1alpha1.LatencyFingerprint{Kernel: "6.12.0-rt"}, FingerprintOf(Told{Kernel: node.Status.NodeInfo.KernelVersion}, nil)); diff != "" {
		t.Errorf("a node without a report (-want +got):\n%s", diff)
	}
}

func TestFreshness(t *testing.T) {
	begin := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	fingerprint := testedFingerprint()
	spec := &v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter, ExpireAfterHours: 2}
	measured := &v1alpha1.LatencyMeasurement{CompletedTime: metav1.NewTime(begin), ParametersHash: ParametersOf(spec).Hash(), Fingerprint: fingerprint}
	other := fingerprint
	other.Kernel = "6.13"
	longer := spec.DeepCopy()
	longer.DurationSeconds = 600
	same := spec.DeepCopy()
	same.DurationSeconds = 60
	for name, tc := range map[string]struct {
		spec *v1alpha1.LatencyTestSpec
		now  v1alpha1.LatencyFingerprint
		at   time.Time
		want v1alpha1.LatencyFreshness
	}{
		"at once":                {spec, fingerprint, begin, v1alpha1.LatencyFresh},
		"before it expires":      {spec, fingerprint, begin.Add(2*time.Hour - 1), v1alpha1.LatencyFresh},
		"when it expires":        {spec, fingerprint, begin.Add(2 * time.Hour), v1alpha1.LatencyExpired},
		"clocks that differ":     {&v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter}, fingerprint, begin.Add(-clockTolerance), v1alpha1.LatencyFresh},
		"a clock that was wrong": {&v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter}, fingerprint, begin.Add(-clockTolerance - 1), v1alpha1.LatencyExpired},
		"another kernel":         {spec, other, begin, v1alpha1.LatencyStale},
		"other parameters":       {longer, fingerprint, begin, v1alpha1.LatencyStale},
		"the default spelt out":  {same, fingerprint, begin, v1alpha1.LatencyFresh},
	} {
		if got, why := Freshness(tc.spec, measured, tc.now, tc.at); got != tc.want || (why == "") != (tc.want == v1alpha1.LatencyFresh) {
			t.Errorf("%s: %s, %q, want %s", name, got, why, tc.want)
		}
	}
}
