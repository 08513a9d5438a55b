// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// newRateSweep is a world with a sweep over two rates from node-1 to node-2.
func newRateSweep(t *testing.T) *scene {
	t.Helper()
	s := newPingPong(t, "node-2")
	s.Test.Spec.Kind, s.Test.Spec.PingPong = v1alpha1.LatencyTestRateSweep, nil
	s.Test.Spec.RateSweep = &v1alpha1.RateSweepTest{MessagesPerSecond: []int32{1000, 20_000}, Bytes: 256, AnswersPerRate: 100_000}
	return s
}

// rates are those of a measurement, each reached as it says.
func rates(bytes int32, reached ...int64) []v1alpha1.RateMeasurement {
	asked := []int32{1000, 20_000, 30_000}
	found := make([]v1alpha1.RateMeasurement, 0, len(reached))
	for i, achieved := range reached {
		figures := v1alpha1.LatencyFigures{
			Samples: 20_000, MinimumNanoseconds: 5_000, MeanNanoseconds: 6_000, MaximumNanoseconds: 90_000,
			Percentiles: []v1alpha1.LatencyPercentile{
				{Percentile: v1alpha1.P50, Nanoseconds: 5_500}, {Percentile: v1alpha1.P90, Nanoseconds: 7_000}, {Percentile: v1alpha1.P99, Nanoseconds: 9_000},
			},
		}
		found = append(found, v1alpha1.RateMeasurement{
			MessagesPerSecond: asked[i], AchievedPerSecond: achieved, Bytes: bytes, Sent: 30_000, FromIntended: figures, FromSent: figures,
		})
	}
	return found
}

// rateSweepRecord is what a client leaves behind that has measured these rates.
func rateSweepRecord(t *testing.T, bytes int32, measured []v1alpha1.RateMeasurement) string {
	t.Helper()
	size := v1alpha1.SizeMeasurement{Bytes: bytes, LatencyFigures: measured[0].FromIntended}
	r := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestRateSweep, Kernel: "6.12", BootID: "b1", CPUs: "2", RepetitionMaximums: []int64{90_000},
		MaximumNanoseconds: 90_000, Percentiles: measured[0].FromIntended.Percentiles,
		Network: &qualification.NetworkRecord{
			Path: v1alpha1.LatencyPathKernel, PathMessage: "the kernel counted 2 for 2 messages", ServerKernel: "6.12",
			Sizes: [][]int64{qualification.SizeRow(&size)}, Medians: []int64{5_500},
		},
	}
	for i := range measured {
		r.Network.Rates = append(r.Network.Rates, qualification.RateRow(&measured[i]))
	}
	text, err := qualification.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestJobOfARateSweep(t *testing.T) {
	s := newRateSweep(t)
	s.step()
	s.serves("node-1", "10.0.0.7")
	d := s.step()
	if len(d.Start) != 1 {
		t.Fatalf("%d Jobs are made", len(d.Start))
	}
	container := d.Start[0].Spec.Template.Spec.Containers[0]
	want := "probe latencytest --kind=RateSweep --role=Client --server=10.0.0.7 --transport=UDP --waiting=Spin --sizes=256 --duration=1m0s --repetitions=1 " +
		"--rates=1000,20000 --answers=100000 --own=4 --record=/dev/termination-log"
	if got := strings.Join(container.Args, " "); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	if got := container.Resources.Limits.Memory().String(); got != "377Mi" {
		t.Errorf("the client has %s of memory", got)
	}
}

// TestRoomForMessages: the times of more messages take more memory, and what nobody asks for changes no Job.
func TestRoomForMessages(t *testing.T) {
	for name, tc := range map[string]struct {
		given      v1alpha1.PingPongTest
		wantArg    string
		wantMemory string
	}{
		"as many as there are":          {v1alpha1.PingPongTest{Sizes: []int32{64, 1024}}, "", "352Mi"},
		"the same, said":                {v1alpha1.PingPongTest{Sizes: []int32{64, 1024}, MessagesPerSize: 1_000_000}, "", "352Mi"},
		"few":                           {v1alpha1.PingPongTest{Sizes: []int32{64, 1024}, MessagesPerSize: 1000}, " --messages=1000 ", "304Mi"},
		"enough for P99999":             {v1alpha1.PingPongTest{Sizes: []int32{64}, MessagesPerSize: 12_000_000}, " --messages=12000000 ", "832Mi"},
		"the most":                      {v1alpha1.PingPongTest{Sizes: []int32{64, 1024}, MessagesPerSize: 20_000_000}, " --messages=20000000 ", "2176Mi"},
		"the sizes when none are named": {v1alpha1.PingPongTest{MessagesPerSize: 5_000_000}, " --messages=5000000 ", "2176Mi"},
	} {
		s := newPingPong(t)
		s.Test.Spec.PingPong = &tc.given
		s.step()
		s.serves("node-1", "10.0.0.7")
		container := s.step().Start[0].Spec.Template.Spec.Containers[0]
		args := strings.Join(container.Args, " ")
		if strings.Contains(args, "--messages") != (tc.wantArg != "") || !strings.Contains(args, tc.wantArg) {
			t.Errorf("%s: %s", name, args)
		}
		if got := container.Resources.Limits.Memory().String(); got != tc.wantMemory {
			t.Errorf("%s: the client has %s of memory, want %s", name, got, tc.wantMemory)
		}
	}
}

func TestRecordsOfRateSweeps(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes    int32
		measured []v1alpha1.RateMeasurement
		want     string
	}{
		"all rates":                         {256, rates(256, 1000, 20_000), "Idle Passed Fresh WithinBudget"},
		"a rate that was missed by a bit":   {256, rates(256, 1000, 19_000), "Idle Inconclusive Fresh GeneratorLimit"},
		"a sweep that ended with its first": {256, rates(256, 800), "Idle Inconclusive Fresh GeneratorLimit"},
		"a rate that was left out":          {256, rates(256, 1000), "Idle Inconclusive  BadResult"},
		"a rate more":                       {256, rates(256, 1000, 20_000, 30_000), "Idle Inconclusive  BadResult"},
		"another order": {256, func() []v1alpha1.RateMeasurement {
			both := rates(256, 1000, 20_000)
			slices.Reverse(both)
			return both
		}(), "Idle Inconclusive  BadResult"},
		"another size": {64, rates(64, 1000, 20_000), "Idle Inconclusive  BadResult"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRateSweep(t)
			s.step()
			s.serves("node-1", "10.0.0.7")
			s.step()
			s.ends("node-1", rateSweepRecord(t, tc.bytes, tc.measured))
			s.step()
			s.expect("node-1", tc.want)
		})
	}
}
