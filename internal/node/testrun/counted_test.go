// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package testrun

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

func TestTrafficCauses(t *testing.T) {
	event := func(kind counted.Kind, name string, count uint64) counted.Event {
		return counted.Event{Kind: kind, Name: name, Count: count}
	}
	long := strings.Repeat("x", 200)
	two := []*latency.Result{
		{
			CountedNanoseconds: 1e9, InterruptsFrom: "/proc/interrupts", Preemptions: 2,
			Counted: []counted.Event{event(counted.Softirq, "NET_RX", 90_000), event(counted.Interrupt, "24 eth0", 2000), event(counted.Interrupt, "LOC", 1)},
		},
		{CountedNanoseconds: 3e9, InterruptsFrom: host.DeviceInterrupts, PageFaults: 1, Counted: []counted.Event{event(counted.Interrupt, "24 eth0", 2400)}},
	}
	crowded := &latency.Result{
		CountedNanoseconds: 10e9, InterruptsFrom: "/proc/interrupts", Preemptions: 300, PageFaults: 20,
		Counted: []counted.Event{event(counted.Interrupt, "LOC", 10_000), event(counted.Interrupt, "24 eth0", 9000), event(counted.Interrupt, "RES", 8000), event(counted.Interrupt, "CAL", 7000)},
	}
	for name, tc := range map[string]struct {
		results []*latency.Result
		causes  []string
		from    v1alpha1.CountedInterrupts
	}{
		"nothing was counted":            {[]*latency.Result{{}}, nil, ""},
		"the program alone has counted":  {[]*latency.Result{{Preemptions: 5}}, []string{"ContextSwitch nonvoluntary_ctxt_switches 5 times"}, v1alpha1.CountedInterruptsNone},
		"one repetition was not counted": {[]*latency.Result{two[1], {PageFaults: 3}}, []string{"PageFault minor or major 4 times", "Interrupt 24 eth0 800 a second"}, v1alpha1.CountedInterruptsNone},
		"rare preemptions and page faults": {[]*latency.Result{crowded}, []string{
			"ContextSwitch nonvoluntary_ctxt_switches 30 a second", "PageFault minor or major 2 a second", "Interrupt LOC 1000 a second", "Interrupt 24 eth0 900 a second",
		}, v1alpha1.CountedInterruptsAll},
		"two repetitions, of which one saw devices alone": {two, []string{
			"ContextSwitch nonvoluntary_ctxt_switches 0.5 a second", "PageFault minor or major 0.25 a second", "Interrupt 24 eth0 1100 a second", "Interrupt LOC 0.25 a second",
		}, v1alpha1.CountedInterruptsDevices},
		"softirqs alone": {[]*latency.Result{{CountedNanoseconds: 1e9, InterruptsFrom: host.NoInterrupts, Counted: []counted.Event{event(counted.Softirq, "RCU", 9)}}},
			[]string{"Softirq RCU 9 a second"}, v1alpha1.CountedInterruptsNone},
		"a quiet CPU": {[]*latency.Result{{CountedNanoseconds: 1e9, InterruptsFrom: "/proc/interrupts"}}, nil, v1alpha1.CountedInterruptsAll},
	} {
		causes, from := causesOver(clientsOf(tc.results), elapsedOf(tc.results))
		if diff := cmp.Diff(tc.causes, causes); diff != "" || from != tc.from {
			t.Errorf("%s: interrupts %q, want %q (-want +got):\n%s", name, from, tc.from, diff)
		}
	}
	causes, _ := causesOver(clientsOf([]*latency.Result{{CountedNanoseconds: 1e9, Counted: []counted.Event{event(counted.Interrupt, long+"\x1b[2J", 12)}}}), 0)
	if len(causes) != 1 || len(causes[0]) > v1alpha1.MaxTestCauseLength || !strings.HasSuffix(causes[0], " 12 a second") || strings.Contains(causes[0], "\x1b") {
		t.Errorf("a long name is %q", causes)
	}
}

// TestCausesOfServers: a server that has not counted is none that was quiet.
func TestCausesOfServers(t *testing.T) {
	of := func(nanoseconds int64, from, unknown string, events ...counted.Event) latency.Counts {
		c := latency.Counts{CPU: 7, CountedNanoseconds: nanoseconds, InterruptsFrom: from, Counted: events, Unknown: unknown}
		if unknown == "" {
			c.Isolation = &counted.Isolation{CPU: 7, Nanoseconds: nanoseconds, WaitedNanoseconds: 50, IdleUnknown: "none", BusyTicks: 1, AllTicks: 2}
		}
		return c
	}
	storm := counted.Event{Kind: counted.Interrupt, Name: "24 eth0", Count: 2000}
	whole := of(1e9, "/proc/interrupts", "", storm)
	waited := func(nanoseconds, over int64) v1alpha1.LatencyRunQueue {
		return v1alpha1.LatencyRunQueue{State: v1alpha1.StateCounted, CPU: new(int32(7)), WaitedNanoseconds: nanoseconds, CountedNanoseconds: over}
	}
	unknown := v1alpha1.LatencyRunQueue{State: v1alpha1.StateUnknown, UnknownReason: "nobody counts"}
	for name, tc := range map[string]struct {
		results []*latency.Result
		causes  []string
		from    v1alpha1.CountedInterrupts
		queue   *v1alpha1.LatencyRunQueue
	}{
		"nobody asked": {[]*latency.Result{{}}, nil, "", nil},
		"a storm": {[]*latency.Result{{ServerPreemptions: 4, ServerCounts: []latency.Counts{whole}}},
			[]string{"ContextSwitch nonvoluntary_ctxt_switches 4 a second", "Interrupt 24 eth0 2000 a second"}, v1alpha1.CountedInterruptsAll, new(waited(50, 1e9))},
		"the trials of a search": {[]*latency.Result{{ServerPageFaults: 2, ServerCounts: []latency.Counts{whole, of(3e9, "/proc/interrupts", "")}}},
			[]string{"PageFault minor or major 0.5 a second", "Interrupt 24 eth0 500 a second"}, v1alpha1.CountedInterruptsAll, new(waited(100, 4e9))},
		"the trials of a search, of which one was not counted": {
			[]*latency.Result{{ElapsedNanoseconds: 10e9, ServerPreemptions: 300, ServerCounts: []latency.Counts{whole, of(0, "", "nobody counts")}}},
			[]string{"ContextSwitch nonvoluntary_ctxt_switches 30 a second", "Interrupt 24 eth0 2000 a second"}, v1alpha1.CountedInterruptsNone, &unknown},
		"the program alone has counted": {[]*latency.Result{{ElapsedNanoseconds: 2e9, ServerPreemptions: 300, ServerCounts: []latency.Counts{of(0, "", "nobody counts")}}},
			[]string{"ContextSwitch nonvoluntary_ctxt_switches 150 a second"}, v1alpha1.CountedInterruptsNone, &unknown},
		"none was counted":    {[]*latency.Result{{ServerCounts: []latency.Counts{of(0, "", "nobody counts")}}}, nil, v1alpha1.CountedInterruptsNone, &unknown},
		"one was not counted": {[]*latency.Result{{ServerCounts: []latency.Counts{whole, of(0, "", "nobody counts")}}}, []string{"Interrupt 24 eth0 2000 a second"}, v1alpha1.CountedInterruptsNone, &unknown},
	} {
		servers := serversOf(tc.results)
		causes, from := causesOver(servers, elapsedOf(tc.results))
		if diff := cmp.Diff(tc.causes, causes); diff != "" || from != tc.from {
			t.Errorf("%s: interrupts %q, want %q (-want +got):\n%s", name, from, tc.from, diff)
		}
		var queue *v1alpha1.LatencyRunQueue
		if isolation := trafficIsolation(servers); isolation != nil {
			queue = &isolation.RunQueue
		}
		if diff := cmp.Diff(tc.queue, queue); diff != "" {
			t.Errorf("%s: run queue (-want +got):\n%s", name, diff)
		}
	}
	if storm.Count != 2000 || whole.Counted[0].Count != 2000 {
		t.Error("what was counted has changed")
	}
}

// TestCausesAreInTheRecord: the operator reads them there, and takes no record that it does not know.
func TestCausesAreInTheRecord(t *testing.T) {
	result := pingPong(t, latency.PathKernel, 1000, 5000)
	result.CountedNanoseconds, result.InterruptsFrom = 2e9, "/proc/interrupts"
	result.Counted = []counted.Event{{Kind: counted.Interrupt, Name: "24 eth0", Count: 600}}
	result.Setup.Server.CPU = 7
	result.ServerCounts = []latency.Counts{{
		CPU: 7, CountedNanoseconds: 1e9, InterruptsFrom: "/proc/interrupts", Counted: []counted.Event{{Kind: counted.Interrupt, Name: "9 sdb", Count: 70}},
		Isolation: &counted.Isolation{CPU: 7, Nanoseconds: 1e9, WaitedNanoseconds: 9, BusyTicks: 1, AllTicks: 2},
	}}
	r, err := TrafficRecord(v1alpha1.LatencyTestPingPong, 3, []*latency.Result{result}, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, r)
	want := v1alpha1.ServerCounts{ServerCPUs: "7", ServerCauses: []string{"Interrupt 9 sdb 70 a second"}, ServerCountedInterrupts: v1alpha1.CountedInterruptsAll, ServerIsolation: r.Network.ServerIsolation}
	if diff := cmp.Diff(want, r.Network.ServerCounts); diff != "" || *want.ServerIsolation.RunQueue.CPU != 7 {
		t.Errorf("the server (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Interrupt 24 eth0 300 a second"}, r.Causes); diff != "" || r.CountedInterrupts != v1alpha1.CountedInterruptsAll {
		t.Errorf("interrupts %s (-want +got):\n%s", r.CountedInterrupts, diff)
	}
}

// TestIsolationIsInTheRecord: of jitter it is that of the CPU with the most in all repetitions, over the network that of the client's CPU.
func TestIsolationIsInTheRecord(t *testing.T) {
	on := func(cpu int, waited uint64) *counted.Isolation {
		return &counted.Isolation{CPU: cpu, Nanoseconds: 1e9, WaitedNanoseconds: waited, IdleUnknown: "no idle states are listed"}
	}
	two := []*jitter.Result{{CPUs: []jitter.CPUResult{measured(t, 4, 1, 900), measured(t, 5, 1, 900)}}, {CPUs: []jitter.CPUResult{measured(t, 4, 1, 900), measured(t, 5, 1, 900)}}}
	for i := range two {
		two[i].CPUs[0].Isolation, two[i].CPUs[1].Isolation = on(4, 10), on(5, 30)
	}
	r, err := RecordOf(two, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, r)
	want := &v1alpha1.LatencyIsolation{
		RunQueue:   v1alpha1.LatencyRunQueue{State: v1alpha1.StateCounted, CPU: new(int32(5)), WaitedNanoseconds: 60, CountedNanoseconds: 2e9},
		IdleStates: v1alpha1.LatencyIdleStates{State: v1alpha1.StateUnknown, UnknownReason: "no idle states are listed"},
	}
	if diff := cmp.Diff(want, r.Isolation); diff != "" {
		t.Errorf("jitter (-want +got):\n%s", diff)
	}
	result := pingPong(t, latency.PathKernel, 1000, 5000)
	result.Isolation = on(3, 7)
	if r, err = TrafficRecord(v1alpha1.LatencyTestPingPong, 3, []*latency.Result{result}, "6.12", "b1"); err != nil {
		t.Fatal(err)
	}
	accepted(t, r)
	if got := r.Isolation; got == nil || *got.RunQueue.CPU != 3 || got.RunQueue.WaitedNanoseconds != 7 {
		t.Errorf("messages: %+v", got)
	}
}

// TestManagementInterruptsAreInTheRecord: repetitions add up, and of the CPUs it is the one with the most.
func TestManagementInterruptsAreInTheRecord(t *testing.T) {
	two := []*jitter.Result{{CPUs: []jitter.CPUResult{measured(t, 4, 1, 900), measured(t, 5, 1, 900)}}, {CPUs: []jitter.CPUResult{measured(t, 4, 1, 900), measured(t, 5, 1, 900)}}}
	for i, counts := range [][]uint64{{1, 2}, {1, 1}} {
		for j := range counts {
			two[i].CPUs[j].ManagementInterrupts = &counted.ManagementInterrupts{Count: counts[j]}
		}
	}
	r, err := RecordOf(two, "6.12", "b1")
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, r)
	want := &v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateCounted, CPU: new(int32(5)), Count: new(int64(3))}
	if diff := cmp.Diff(want, r.ManagementInterrupts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
