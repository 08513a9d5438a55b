// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"gotest.tools/v3/golden"
)

func TestParseSockperf(t *testing.T) {
	const text = "sockperf: ---> percentile 75.000 =    2.796\nsockperf: ---> percentile 50.000 =    2.623\nsockperf: ---> <MIN> observation =    2.093\n"
	for line, want := range map[string]int64{medianLine: 2623, minimumLine: 2093} {
		if got, err := parseSockperf(text, line); err != nil || got != want {
			t.Errorf("%s: %d, %v", line, got, err)
		}
		if _, err := parseSockperf("sockperf: ERROR: ", line); err == nil {
			t.Error("a complaint has a number")
		}
	}
}

func TestParseQperf(t *testing.T) {
	for text, want := range map[string]int64{
		"udp_lat:\n    latency  =  2.78512 us\n": 2785, "tcp_lat:\n    latency  =  812 ns\n": 812, "tcp_lat:\n    latency  =  1.5 ms\n": 1_500_000,
	} {
		if got, err := parseQperf(text); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "failed to connect", "latency  =  1.2.3 us", "latency  =  3 fortnights"} {
		if got, err := parseQperf(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestHeldUp(t *testing.T) {
	begin := time.Unix(0, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	// A tenth of all messages waits up to 20 ms, so one of ten of these waits longer than 18 ms.
	var stalls []stalled
	for ms := 0; ms < 20_000; ms += 200 {
		stalls = append(stalls, stalled{at(ms), at(ms + 20)})
	}
	if got := heldUp(stalls, 0.99); got < 17*time.Millisecond || got > 19*time.Millisecond {
		t.Errorf("%s", got)
	}
	if got := heldUp(stalls, 0.5); got != 0 {
		t.Errorf("%s", got)
	}
	if heldUp(nil, 0.99) != 0 {
		t.Error("nothing stalls")
	}
}

func TestCertain(t *testing.T) {
	if err := certain([]row{{bound: exact, holds: true}, {bound: "2 %"}}); err != nil {
		t.Error(err)
	}
	if err := certain([]row{{bound: exact, what: "lost", known: "3", measured: "2"}}); err == nil || err.Error() != "lost: 3 were injected, and 2 found" {
		t.Error(err)
	}
}

// TestShow: a row that does not hold says why, where that is known.
func TestShow(t *testing.T) {
	var out bytes.Buffer
	err := show(&out, []row{
		{what: "lost of 20000 messages", known: "193", measured: "193", off: "0", bound: exact, holds: true},
		{what: "capacity of a token bucket, messages a second", known: "2299", measured: "2338..2351", off: "+1.69 %", bound: "2 %"},
		{what: "median of 64 bytes over UDP, beside sockperf in 7 turns", known: "2785 ns", measured: "2756 ns", off: "-1.04 % (-2.14 %..+4.31 %)", bound: "2 %", why: tooWide},
	})
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, out.String(), "table.txt")
}

func TestOfStream(t *testing.T) {
	packet := make([]byte, 92)
	packet[0], packet[9] = 0x45, 17
	binary.LittleEndian.PutUint64(packet[28:], 7)
	if ofStream(packet) {
		t.Error("a ping belongs to a stream")
	}
	binary.LittleEndian.PutUint64(packet[28:], 1<<63|1<<48|7)
	if !ofStream(packet) || ofStream(packet[:50]) {
		t.Error("a message of a stream, or half of one")
	}
	packet[9] = 6
	if ofStream(packet) {
		t.Error("TCP has no streams of messages")
	}
}

func TestParseTimes(t *testing.T) {
	if got, err := parseTimes("0m0.010000s 0m0.000000s\n1m1.250000s 0m0.500000s\n"); err != nil || got != 61750*time.Millisecond {
		t.Errorf("%s, %v", got, err)
	}
	for _, text := range []string{"", "0m0.01s 0m0.00s\n", "0m0.01s 0m0.00s\n0m0.00s 0m0.00s\n", "a\nb c\n"} {
		if got, err := parseTimes(text); err == nil {
			t.Errorf("%q has %s", text, got)
		}
	}
}

func TestParseThroughput(t *testing.T) {
	const text = "sockperf: Total of 1206610 messages sent in 1.500 sec\n\nsockperf: Summary: Message Rate is 804407 [msg/sec]\n"
	if sent, rate, err := parseThroughput(text); err != nil || sent != 1206610 || rate != 804407 {
		t.Errorf("%d, %g, %v", sent, rate, err)
	}
	for _, bad := range []string{"", "Total of 0 messages sent, Message Rate is 0", "Message Rate is 5"} {
		if _, _, err := parseThroughput(bad); err == nil {
			t.Errorf("%q has a rate", bad)
		}
	}
}

func TestParseQueues(t *testing.T) {
	const text = `[{"kind":"prio","packets":9,"drops":8},{"kind":"netem","handle":"2:","options":{"limit":1000},"bytes":92,"packets":7,"drops":3,"overlimits":0}]`
	if got, err := parseQueues([]byte(text)); err != nil || got != (queue{Kind: "netem", Packets: 7, Drops: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{"", "[]", `[{"kind":"prio","packets":9}]`} {
		if got, err := parseQueues([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// TestWitness: 2 is overtaken, 3 and 4 and then 7 never come, and what comes twice is not overtaken for it.
func TestWitness(t *testing.T) {
	w := &witness{seen: map[uint64]bool{}}
	for _, number := range []uint64{0, 1, 5, 2, 2, 1, 6, 8} {
		packet := make([]byte, 92)
		binary.LittleEndian.PutUint64(packet[28:], 1<<63|3<<48|number)
		w.count(numberOf(packet))
	}
	if w.reordered != 1 || w.gaps(9) != 2 || w.gaps(10) != 3 {
		t.Errorf("%d are reordered, %d gaps of 9 and %d of 10", w.reordered, w.gaps(9), w.gaps(10))
	}
}
