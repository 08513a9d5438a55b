// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// largestFigures have numbers of many digits.
func largestFigures() v1alpha1.LatencyFigures {
	figures := v1alpha1.LatencyFigures{
		Samples: 10_000_000, LeastSamples: 1_000_000, MinimumNanoseconds: 1_000_000, MeanNanoseconds: 1_000_000, DeviationNanoseconds: 1_000_000, MaximumNanoseconds: 1_000_000_000,
	}
	for _, name := range qualification.Percentiles() {
		figures.Percentiles = append(figures.Percentiles, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: 1_000_000_000})
		figures.Intervals = append(figures.Intervals, v1alpha1.LatencyInterval{LowNanoseconds: 1_000_000_000, HighNanoseconds: new(int64(1_000_000_000))})
	}
	return figures
}

// largestServer is what was counted on the CPU of a server with long names.
func largestServer() v1alpha1.ServerCounts {
	unknown := strings.Repeat("u", v1alpha1.MaxUnknownReasonLength)
	return v1alpha1.ServerCounts{
		ServerCPUs: "10-11", ServerCauses: slices.Repeat([]string{strings.Repeat("c", v1alpha1.MaxTestCauseLength)}, v1alpha1.MaxTestCauses),
		ServerCountedInterrupts: v1alpha1.CountedInterruptsDevices, ServerIsolation: &v1alpha1.LatencyIsolation{
			RunQueue: v1alpha1.LatencyRunQueue{State: v1alpha1.StateUnknown, UnknownReason: unknown}, IdleStates: v1alpha1.LatencyIdleStates{State: v1alpha1.StateUnknown, UnknownReason: unknown},
			Busy: &v1alpha1.LatencyBusy{State: v1alpha1.StateUnknown, UnknownReason: unknown},
		},
	}
}

// TestBothEndsShareTheRoom: the more nodes, the less of what was counted, at both ends alike; the measurement before has none, and jitter keeps all.
func TestBothEndsShareTheRoom(t *testing.T) {
	type left struct {
		Causes, AtServer           int
		Isolation, IsolationServer bool
	}
	leftOf := func(m *v1alpha1.LatencyMeasurement) left {
		n := m.Network
		return left{len(m.Causes), len(n.ServerCauses), m.Isolation != nil, n.ServerIsolation != nil}
	}
	of := func(nodes int) *decider {
		return &decider{World: newPingPong(t, "server-1").World, selectedNodes: make([]candidate, nodes)}
	}
	measured := largestMeasurement(8, 0)
	for nodes, want := range map[int]left{98: {4, 4, true, true}, 105: {4, 4, false, false}, 110: {2, 2, false, false}, 128: {0, 0, false, false}} {
		if diff := cmp.Diff(want, leftOf(of(nodes).inRoom(measured))); diff != "" {
			t.Errorf("%d nodes (-want +got):\n%s", nodes, diff)
		}
	}
	if diff := cmp.Diff(left{}, leftOf(of(1).asPrevious(measured))); diff != "" || len(measured.Causes) != v1alpha1.MaxTestCauses {
		t.Errorf("the measurement before (-want +got):\n%s", diff)
	}
	side := of(1).asPrevious(largestComparison(2, 8)).Network.Comparison.Sides[1]
	if side.ServerIsolation != nil || side.Causes != nil || side.ServerCauses != nil || side.Isolation != nil {
		t.Errorf("the comparison before has %+v", side)
	}
	jitter := &v1alpha1.LatencyMeasurement{Causes: []string{"a"}, Histogram: strings.Repeat("h", 20_000)}
	if of(128).inRoom(jitter) != jitter {
		t.Error("jitter has changed")
	}
}

// largestMeasurement is one of so many sizes and rates.
func largestMeasurement(sizes, rates int) *v1alpha1.LatencyMeasurement {
	figures := largestFigures()
	fingerprint := v1alpha1.LatencyFingerprint{
		Kernel: strings.Repeat("k", 40), CommandLineHash: strings.Repeat("c", 16), Microcode: "0x1234", BIOSVersion: "1.2.3", PlanHash: strings.Repeat("p", 16),
		NICsHash: strings.Repeat("n", 16), MitigationsHash: strings.Repeat("m", 16),
		Drivers: []v1alpha1.LatencyFingerprintDriver{{Name: "mlx5_core", Version: "24.10-1.1.4", Firmware: "22.41.1000"}, {Name: "sfc", Version: "5.3.16.1004"}},
	}
	rate := v1alpha1.RateMeasurement{
		MessagesPerSecond: 1_000_000, AchievedPerSecond: 1_000_000, Bytes: 1472, Sent: 100_000_000, Lost: 100_000, Gaps: 100_000, Duplicates: 100_000, Reordered: 100_000,
		Late: 100_000, MaximumLatenessNanoseconds: 1_000_000, AnswersLost: 100_000, FromIntended: figures, FromSent: figures,
	}
	rate.FromSent.Intervals, rate.FromSent.LeastSamples = nil, 1_000_000
	return &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(begin()), ParametersHash: strings.Repeat("h", 16), Fingerprint: fingerprint, Percentiles: figures.Percentiles,
		Histogram: strings.Repeat("h", 1500), Causes: largestServer().ServerCauses, CountedInterrupts: v1alpha1.CountedInterruptsDevices, Isolation: largestServer().ServerIsolation,
		Network: &v1alpha1.NetworkMeasurement{
			Server: "server-1", ServerKernel: fingerprint.Kernel, PathMessage: strings.Repeat("m", 120), ServerFingerprint: &fingerprint,
			ServerCounts: largestServer(),
			Rates:        slices.Repeat([]v1alpha1.RateMeasurement{rate}, rates),
			Sizes:        slices.Repeat([]v1alpha1.SizeMeasurement{{Bytes: 1472, Lost: 100_000, Stray: 100_000, LatencyFigures: figures}}, sizes),
		},
	}
}

// hasPrevious fails the test where the measurement before takes no room.
func hasPrevious(t *testing.T, result *v1alpha1.LatencyTestResult) {
	t.Helper()
	if result.Previous == nil {
		t.Fatalf("node %s has no measurement before", result.Node)
	}
}

// mostEarlierRuns are as many as are kept, each as long as it can be.
func mostEarlierRuns() []v1alpha1.LatencyRunSpread {
	const most = 1<<53 - 1
	return slices.Repeat([]v1alpha1.LatencyRunSpread{{Least: most, Most: most}}, v1alpha1.MaxEarlierRuns)
}

// TestResultsFindRoom: etcd takes objects of 1.5 MiB, and a test with the most nodes is one, with intervals as far as there is room for them.
func TestResultsFindRoom(t *testing.T) {
	sizesOf := func(count int) *v1alpha1.PingPongTest {
		p := &v1alpha1.PingPongTest{}
		for i := range count {
			p.Sizes = append(p.Sizes, int32(1000+i))
		}
		return p
	}
	for name, tc := range map[string]struct {
		sizes, rates, nodes int
		isMost, intervals   bool
	}{
		"rates on the most nodes":        {1, v1alpha1.MaxTestRates, v1alpha1.MaxSweptNodes, true, false},
		"rates with intervals":           {1, v1alpha1.MaxTestRates, 48, false, true},
		"eight sizes on the most nodes":  {8, 0, v1alpha1.MaxTestedNodes, true, false},
		"eight sizes with intervals":     {8, 0, 48, false, true},
		"one node more than that":        {8, 0, 49, false, false},
		"the most sizes":                 {v1alpha1.MaxTestSizes, 0, 54, true, false},
		"as many sizes as sfnt-pingpong": {19, 0, 57, true, false},
		"the same on one node":           {19, 0, 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t, "server-1")
			if tc.rates > 0 {
				s.Test.Spec.Kind, s.Test.Spec.PingPong = v1alpha1.LatencyTestRateSweep, nil
			} else {
				s.Test.Spec.PingPong = sizesOf(tc.sizes)
			}
			s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Profile: "trading"}
			s.Nodes = nil
			for i := range tc.nodes {
				s.add(fmt.Sprintf("a-node-with-a-name-of-middling-length-%d.example.com", i))
			}
			s.step()
			d := &decider{World: s.World, selectedNodes: s.selected()}
			if _, message := d.stalled(); message != "" {
				t.Fatalf("%d nodes are too many: %s", tc.nodes, message)
			}
			measured := largestMeasurement(tc.sizes, tc.rates)
			if kept := qualification.IntervalOf(qualification.Rows(d.inRoom(measured).Network)[0].Figures, v1alpha1.P50) != nil; kept != tc.intervals {
				t.Errorf("there are intervals: %t", kept)
			}
			for i := range s.Test.Status.Results {
				result := &s.Test.Status.Results[i]
				result.Message = strings.Repeat("m", 500)
				result.Measured = measured
				d.succeed(&d.selectedNodes[i], result, measured)
				hasPrevious(t, result)
				result.Earlier = d.earlierInRoom(measured, mostEarlierRuns())
			}
			text, err := json.Marshal(s.Test)
			if err != nil {
				t.Fatal(err)
			}
			const most = 3 << 19
			t.Logf("the test has %d bytes of %d", len(text), most)
			if len(text) > most {
				t.Errorf("the test has %d bytes, more than %d", len(text), most)
			}
			s.add("one-too-many")
			s.step()
			if _, message := (&decider{World: s.World, selectedNodes: s.selected()}).stalled(); (message != "") != tc.isMost {
				t.Errorf("with one node more: %q", message)
			}
		})
	}
}
