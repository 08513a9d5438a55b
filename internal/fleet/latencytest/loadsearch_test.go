// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// newLoadSearch is a world with a search from node-1 to node-2.
func newLoadSearch(t *testing.T) *scene {
	t.Helper()
	s := newPingPong(t, "node-2")
	s.Test.Spec.Kind, s.Test.Spec.PingPong = v1alpha1.LatencyTestLoadSearch, nil
	s.Test.Spec.LoadSearch = &v1alpha1.LoadSearchTest{
		Bytes: 256, LowestMessagesPerSecond: 1000, HighestMessagesPerSecond: 20_000, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99, Nanoseconds: 50_000}},
		Growth: &v1alpha1.LatencyGrowth{Percentile: v1alpha1.P90, MaximumPercent: 250},
	}
	s.Test.Spec.Budget = &v1alpha1.LatencyBudget{MinimumMessagesPerSecond: 15_000}
	return s
}

// loadRecord is what a client leaves behind that has found an interval; change spoils it.
func loadRecord(t *testing.T, best, fail int64, change func(*qualification.Record)) string {
	t.Helper()
	trials := rates(256, 1000, best, fail)
	for i, rate := range []int64{1000, best, fail} {
		trials[i].MessagesPerSecond = int32(rate)
	}
	size := v1alpha1.SizeMeasurement{Bytes: 256, LatencyFigures: trials[0].FromIntended}
	r := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestLoadSearch, Kernel: "6.12", BootID: "b1", CPUs: "2", RepetitionMaximums: []int64{90_000},
		MaximumNanoseconds: 90_000, Percentiles: trials[0].FromIntended.Percentiles,
		Network: &qualification.NetworkRecord{
			Path: v1alpha1.LatencyPathKernel, PathMessage: "the kernel counted 2 for 2 messages", ServerKernel: "6.12",
			Sizes: [][]int64{qualification.SizeRow(&size)}, Medians: []int64{5_500},
			Load: &qualification.LoadRecord{
				BestPass: best, LowestFail: fail, State: v1alpha1.LoadConfirmed, Reason: string(latency.ReasonLoss), Message: "messages were lost", Made: 9,
				Trials:     []v1alpha1.LoadTrial{v1alpha1.LoadTrialLow, v1alpha1.LoadTrialBestPass, v1alpha1.LoadTrialLowestFail},
				BestPasses: []int32{int32(best)},
			},
		},
	}
	for i := range trials {
		r.Network.Rates = append(r.Network.Rates, qualification.RateRow(&trials[i]))
	}
	if change != nil {
		change(&r)
	}
	text, err := qualification.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestJobOfASearch(t *testing.T) {
	s := newLoadSearch(t)
	s.step()
	s.serves("node-1", "10.0.0.7")
	d := s.step()
	if len(d.Start) != 1 {
		t.Fatalf("%d Jobs are made", len(d.Start))
	}
	container := d.Start[0].Spec.Template.Spec.Containers[0]
	want := "probe latencytest --kind=LoadSearch --role=Client --server=10.0.0.7 --transport=UDP --waiting=Spin --sizes=256 --duration=21m0s --repetitions=1 " +
		"--minimum=1000 --start=10000 --highest=20000 --granularity=0.01 --probes=1000 --sniff=2s --search=15s --confirm=1m0s --retries=1 --loss=0 " +
		"--limit=99=50000ns --growth=2.5 --growth-percentile=90 --own=4 --record=/dev/termination-log"
	if got := strings.Join(container.Args, " "); got != want {
		t.Errorf("(-want +got):\n%s", cmp.Diff(want, got))
	}
	if got := container.Resources.Limits.Memory().String(); got != "318Mi" {
		t.Errorf("the client has %s of memory", got)
	}
	// Twice what the messages take, the time to start, and what is kept.
	if got := *d.Start[0].Spec.ActiveDeadlineSeconds; got < 2*21*60 {
		t.Errorf("the Job ends after %d s", got)
	}
}

func TestRecordsOfSearches(t *testing.T) {
	for name, tc := range map[string]struct {
		record string
		want   string
	}{
		"enough":                  {loadRecord(t, 15_000, 15_100, nil), "Idle Passed Fresh WithinBudget"},
		"too little":              {loadRecord(t, 14_000, 14_100, nil), "Idle Failed Fresh Rate"},
		"a generator at its end":  {loadRecord(t, 14_000, 14_100, func(r *qualification.Record) { r.Network.Load.Reason = "GeneratorLimit" }), "Idle Inconclusive Fresh GeneratorLimit"},
		"beyond the highest rate": {loadRecord(t, 19_999, 20_001, nil), "Idle Inconclusive  BadResult"},
		"another lowest rate":     {loadRecord(t, 15_000, 15_100, func(r *qualification.Record) { r.Network.Rates[0][0] = 999 }), "Idle Inconclusive  BadResult"},
		"another size":            {loadRecord(t, 15_000, 15_100, func(r *qualification.Record) { r.Network.Sizes[0][0] = 64 }), "Idle Inconclusive  BadResult"},
		"one repetition more": {loadRecord(t, 15_000, 15_100, func(r *qualification.Record) {
			r.RepetitionMaximums, r.Network.Medians, r.Network.Load.BestPasses = []int64{1, 90_000}, []int64{1, 2}, []int32{15_000, 15_000}
		}), "Idle Inconclusive  BadResult"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newLoadSearch(t)
			s.step()
			s.serves("node-1", "10.0.0.7")
			s.step()
			s.ends("node-1", tc.record)
			s.step()
			s.expect("node-1", tc.want)
		})
	}
}

// TestAnotherBudgetOfASearch: it judges what is there, and measures nothing.
func TestAnotherBudgetOfASearch(t *testing.T) {
	s := newLoadSearch(t)
	s.step()
	s.serves("node-1", "10.0.0.7")
	s.step()
	s.ends("node-1", loadRecord(t, 15_000, 15_100, nil))
	s.step()
	s.Test.Spec.Budget.MinimumMessagesPerSecond = 16_000
	s.Test.Generation++
	if d := s.step(); len(d.Start) != 0 {
		t.Errorf("%d Jobs are made", len(d.Start))
	}
	s.expect("node-1", "Idle Failed Fresh Rate")
}

// TestSearchesHaveFewerNodes: their results take the room of rates.
func TestSearchesHaveFewerNodes(t *testing.T) {
	s := newLoadSearch(t)
	s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Profile: "trading"}
	for i := range v1alpha1.MaxSweptNodes {
		s.add(fmt.Sprintf("more-%d", i))
	}
	s.step()
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonTooManyNodes)
}
