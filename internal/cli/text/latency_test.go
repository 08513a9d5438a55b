// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

func TestLatency(t *testing.T) {
	// Each sample is longer than the one before: all that is above 90 % came at once.
	samples := make([]int64, 1000)
	for i := range samples {
		samples[i] = int64(1000 + i)
	}
	some, err := latency.Distribute(samples)
	if err != nil {
		t.Fatal(err)
	}
	result := &latency.Result{
		Kind: latency.KindPingPong, Outcome: latency.Outcome{Verdict: latency.Passed, Reason: latency.ReasonMeasured, Message: "measured"},
		Setup: latency.Setup{
			Transport: latency.Multicast, Group: "224.1.2.48", Waiting: latency.Spin, Peer: "10.0.0.2:2048", Timestamps: "the program's", ClockNanoseconds: 20,
			Client: latency.Host{Name: "near", Kernel: "6.1", CPU: 4, Environment: []string{"EF_POLL_USEC=1"}}, Server: latency.Host{Name: "far", Kernel: "6.2", CPU: 7},
		},
		Path:        latency.Path{State: latency.PathKernel, Message: "counted"},
		Remarks:     []string{"the clock stepped"},
		Preemptions: 3, ServerPreemptions: 4, PageFaults: 5, ElapsedNanoseconds: 2_500_000_000,
		CountedNanoseconds: 2e9, InterruptsFrom: host.DeviceInterrupts,
		Counted: []counted.Event{{Kind: counted.Interrupt, Name: "24 eth0-rx-0", Count: 2400}, {Kind: counted.Softirq, Name: "NET_RX", Count: 3}},
		Isolation: &counted.Isolation{
			CPU: 4, Nanoseconds: 2e9, WaitedNanoseconds: 5000, IdleStates: []counted.IdleEntries{{State: "C6", LatencyMicroseconds: 133, Count: 40}},
		},
		ServerPageFaults: 6,
		ServerCounts: []latency.Counts{{
			CPU: 7, CountedNanoseconds: 1e9, InterruptsFrom: "/proc/interrupts", Counted: []counted.Event{{Kind: counted.Interrupt, Name: "9 sdb", Count: 70}},
			Isolation: &counted.Isolation{CPU: 7, Nanoseconds: 1e9, WaitedNanoseconds: 250e6, IdleUnknown: "none are listed"},
		}, {
			CPU: 7, CountedNanoseconds: 1e9, InterruptsFrom: "/proc/interrupts", Counted: []counted.Event{{Kind: counted.Interrupt, Name: "9 sdb", Count: 50}},
			Isolation: &counted.Isolation{CPU: 7, Nanoseconds: 1e9, IdleUnknown: "none are listed"},
		}},
		Sizes: []latency.Size{{Bytes: 64, Lost: 2, Stray: 1, Distribution: some}, {Bytes: 1024, Lost: 3}},
	}
	want := `# pingpong with 10.0.0.2:2048 over Multicast to 224.1.2.48, waiting: spin
# client: near, kernel 6.1, CPU 4
#   EF_POLL_USEC=1
# server: far, kernel 6.2, CPU 7
# times: the program's; reading the clock costs 20 ns, which is subtracted
# reporting: half of the round trip, in nanoseconds; %ile is 99 %
#size  mean   min  median   max  %ile  stddev  iter  lost  stray
   64  1500  1000    1500  1999     -     289  1000     2      1
 1024     -     -       -     -     -       -     0     3      0
# percentiles, with the interval that holds each with 95 % confidence (no upper end where few bursts decide it); "-" where there are too few samples
#size                50%            90%  99%  99.9%  99.99%  99.999%
  #64  1500 (1311..1688)  1900 (1790..)    -      -       -        -
#1024                  -              -    -      -       -        -
# path: Kernel: counted
# preempted: the client 3 times, the server 4 times, in 2.5s; page faults of the client: 5, of the server: 6
# counted on CPU 4 of the client, a second (interrupts from: /sys/kernel/irq):
#   1200 24 eth0-rx-0
#   1.5 softirq NET_RX
#   threads waited 2.5 µs a second in the run queue of CPU 4
#   CPU 4 entered idle state C6, which takes 133 µs to leave, 20 times a second
# counted on CPU 7 of the server, a second:
#   60 9 sdb
#   threads waited 125 ms a second in the run queue of CPU 7
#   idle states unknown (none are listed)
# remark: the clock stepped
# outcome: Passed (Measured): measured
`
	if diff := cmp.Diff(want, Latency(result)); diff != "" {
		t.Error(diff)
	}
	result.Setup.Server.CPU, result.ServerCounts = -1, []latency.Counts{{CPU: -1, Unknown: "the server is kept to no CPU"}}
	for _, words := range []string{"kernel 6.2, any CPU\n", "# not counted on the CPU of the server: the server is kept to no CPU\n# remark"} {
		if got := Latency(result); !strings.Contains(got, words) {
			t.Errorf("%s lacks %q", got, words)
		}
	}
	result.Sizes, result.Setup.RoundTrip = result.Sizes[:1], true
	if got := Latency(result); !cmp.Equal(got[:30], want[:30]) {
		t.Errorf("%s", got)
	}
}
