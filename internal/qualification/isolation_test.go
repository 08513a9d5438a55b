// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

func TestIsolationOf(t *testing.T) {
	slept := func(cpu int, states ...counted.IdleEntries) counted.Isolation {
		return counted.Isolation{CPU: cpu, Nanoseconds: 1e9, IdleStates: states}
	}
	waited := func(cpu int, nanoseconds uint64) counted.Isolation {
		return counted.Isolation{CPU: cpu, Nanoseconds: 1e9, WaitedNanoseconds: nanoseconds}
	}
	c1, c6 := counted.IdleEntries{State: "C1", LatencyMicroseconds: 2, Count: 900}, counted.IdleEntries{State: "C6", LatencyMicroseconds: 133, Count: 3}
	for name, tc := range map[string]struct {
		all   []counted.Isolation
		words []string
		blame string
	}{
		"nothing was asked": {nil, nil, ""},
		"a quiet CPU":       {[]counted.Isolation{waited(3, 0)}, []string{"no thread waited in a run queue", "no idle state was entered"}, ""},
		"the CPU with the most, over its repetitions": {[]counted.Isolation{waited(2, 3e6), waited(3, 2e6), waited(2, 0), waited(3, 2e6)},
			[]string{"threads waited 2 ms a second in the run queue of CPU 3", "no idle state was entered"},
			"; over the whole measurement: threads waited 2 ms a second in the run queue of CPU 3"},
		"a wait of a nanosecond is one": {[]counted.Isolation{{CPU: 3, Nanoseconds: 60e9, WaitedNanoseconds: 1}},
			[]string{"threads waited 1 ns a second in the run queue of CPU 3", "no idle state was entered"},
			"; over the whole measurement: threads waited 1 ns a second in the run queue of CPU 3"},
		"the deepest state, not the most frequent": {[]counted.Isolation{slept(2, c1), slept(3, c6), slept(3, c6)},
			[]string{"no thread waited in a run queue", "CPU 3 entered idle state C6, which takes 133 µs to leave, 3 times a second"},
			"; over the whole measurement: CPU 3 entered idle state C6, which takes 133 µs to leave, 3 times a second"},
		"what one does not tell is unknown of all": {[]counted.Isolation{waited(2, 5), counted.Uncounted(3, "/proc/schedstat: no such file")},
			[]string{"run queue unknown (/proc/schedstat: no such file)", "idle states unknown (/proc/schedstat: no such file)"},
			"; over the whole measurement: run queue unknown (/proc/schedstat: no such file), idle states unknown (/proc/schedstat: no such file)"},
	} {
		found := IsolationOf(tc.all)
		if diff := cmp.Diff(tc.words, IsolationWords(found)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := isolationBlame(found, ""); got != tc.blame {
			t.Errorf("%s blames %q", name, got)
		}
		r := measuredRecord()
		r.Isolation = found
		if got, err := Parse(encoded(t, r)); err != nil || !cmp.Equal(got.Isolation, found) {
			t.Errorf("%s: the record is read as %+v, %v", name, got, err)
		}
	}
}

func TestIsolationIsBounded(t *testing.T) {
	one := counted.Isolation{CPU: 1, Nanoseconds: 1, RunQueueUnknown: strings.Repeat("x\x1b", 200), IdleStates: []counted.IdleEntries{{State: strings.Repeat("C", 99), Count: 1 << 63}}}
	r := measuredRecord()
	r.Isolation = IsolationOf([]counted.Isolation{one})
	if _, err := Parse(encoded(t, r)); err != nil {
		t.Error(err)
	}
}

func TestHostileIsolationIsRefused(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.LatencyIsolation){
		"no state":               func(i *v1alpha1.LatencyIsolation) { i.RunQueue.State = "" },
		"a state of ours is not": func(i *v1alpha1.LatencyIsolation) { i.IdleStates.State = "Fine" },
		"a wait on no CPU":       func(i *v1alpha1.LatencyIsolation) { i.RunQueue.CPU = nil },
		"no wait on a CPU":       func(i *v1alpha1.LatencyIsolation) { i.RunQueue.WaitedNanoseconds = 0 },
		"a negative wait":        func(i *v1alpha1.LatencyIsolation) { i.RunQueue.WaitedNanoseconds = -1 },
		"a CPU that cannot be":   func(i *v1alpha1.LatencyIsolation) { i.RunQueue.CPU = new(int32(-1)) },
		"counted over no time":   func(i *v1alpha1.LatencyIsolation) { i.RunQueue.CountedNanoseconds = 0 },
		"counted with a reason":  func(i *v1alpha1.LatencyIsolation) { i.RunQueue.UnknownReason = "no such file" },
		"unknown with a count":   func(i *v1alpha1.LatencyIsolation) { i.IdleStates.State = v1alpha1.StateUnknown },
		"unknown without a reason": func(i *v1alpha1.LatencyIsolation) {
			i.RunQueue = v1alpha1.LatencyRunQueue{State: v1alpha1.StateUnknown}
		},
		"a state with no name":      func(i *v1alpha1.LatencyIsolation) { i.IdleStates.Name = "" },
		"a state in red":            func(i *v1alpha1.LatencyIsolation) { i.IdleStates.Name = "\x1b[31m" },
		"a negative latency":        func(i *v1alpha1.LatencyIsolation) { i.IdleStates.LatencyMicroseconds = -1 },
		"a name that was not asked": func(i *v1alpha1.LatencyIsolation) { i.IdleStates.CPU, i.IdleStates.Entries = nil, 0 },
	} {
		r := measuredRecord()
		r.Isolation = IsolationOf([]counted.Isolation{{CPU: 1, Nanoseconds: 1e9, WaitedNanoseconds: 7, IdleStates: []counted.IdleEntries{{State: "C6", LatencyMicroseconds: 1, Count: 2}}}})
		if _, err := Parse(encoded(t, r)); err != nil {
			t.Fatal(err)
		}
		change(r.Isolation)
		if _, err := Parse(encoded(t, r)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestFailuresNameTheCulprit: a bad number comes with what kept the thread waiting, in each kind.
func TestFailuresNameTheCulprit(t *testing.T) {
	isolation := IsolationOf([]counted.Isolation{{CPU: 5, Nanoseconds: 1e9, WaitedNanoseconds: 12e6}})
	const culprit = "; over the whole measurement: threads waited 12 ms a second in the run queue of CPU 5"
	jitter := &v1alpha1.LatencyMeasurement{CPUs: "5", MaximumNanoseconds: 9000, Isolation: isolation}
	if v := Judge(jitter, &v1alpha1.LatencyBudget{MaximumNanoseconds: 10}); v.Outcome != v1alpha1.LatencyFailed || !strings.HasSuffix(v.Message, culprit) {
		t.Errorf("%+v", v)
	}
	if v := Judge(jitter, &v1alpha1.LatencyBudget{MaximumNanoseconds: 10000}); v.Outcome != v1alpha1.LatencyPassed || strings.Contains(v.Message, "run queue") {
		t.Errorf("%+v", v)
	}
}

// TestSidesHaveTheirIsolation: of the measurement with the longest latency, as their causes.
func TestSidesHaveTheirIsolation(t *testing.T) {
	p := compares(5)
	records := runsOf(p, 2000, 10_000, 10_400, 10_200, 10_600, 10_800)
	for run, record := range records {
		record.Isolation = IsolationOf([]counted.Isolation{{CPU: 4, Nanoseconds: 1e9, WaitedNanoseconds: uint64(run + 1)}})
		record.Network.ServerCounts = countedServer()
		record.Network.ServerCPUs, record.Network.ServerCauses = strconv.Itoa(6+run/2%2), []string{fmt.Sprintf("Interrupt of run %d", run)}
	}
	measured := Compared(p, records, "n2")
	side := &measured.Network.Comparison.Sides[0]
	if side.Isolation == nil || side.Isolation.RunQueue.WaitedNanoseconds != 9 || measured.Isolation != nil {
		t.Errorf("%+v, and of all %+v", side.Isolation, measured.Isolation)
	}
	want := countedServer()
	want.ServerCPUs, want.ServerCauses = "6-7", []string{"Interrupt of run 8"}
	if diff := cmp.Diff(want, side.ServerCounts); diff != "" || measured.Network.ServerIsolation != nil {
		t.Errorf("the server (-want +got):\n%s", diff)
	}
	v := Judge(measured, &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 1100}}})
	if v.Outcome != v1alpha1.LatencyFailed || !strings.Contains(v.Message,
		"at the client: threads waited 9 ns a second in the run queue of CPU 4; on CPU 6-7 of the server the kernel counted Interrupt of run 8; over") {
		t.Errorf("%+v", v)
	}
}
