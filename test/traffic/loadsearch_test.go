// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"strconv"
	"testing"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Messages of searches in bytes, and the probes a second beside them.
const searchedBytes, probesBeside = 1000, 50

// confirmed is for how many seconds a known capacity has to hold.
const confirmed = 6

// searches makes a test a search between two rates.
func searches(lowest, first, highest int32, change func(*v1alpha1.LoadSearchTest)) func(*v1alpha1.LatencyTestSpec) {
	return func(spec *v1alpha1.LatencyTestSpec) {
		spec.Kind, spec.PingPong, spec.DurationSeconds, spec.Repetitions = v1alpha1.LatencyTestLoadSearch, nil, 600, 1
		spec.LoadSearch = &v1alpha1.LoadSearchTest{
			Bytes: searchedBytes, LowestMessagesPerSecond: lowest, FirstMessagesPerSecond: first, HighestMessagesPerSecond: highest,
			ProbesPerSecond: probesBeside, SniffSeconds: 1, TrialSeconds: 1, ConfirmSeconds: 1,
		}
		if change != nil {
			change(spec.LoadSearch)
		}
		spec.Budget = &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel}
	}
}

// passes lets so many messages a second through, by a token bucket on the way to the server, with a queue of a few.
func (c *cluster) passes(perSecond int) {
	c.t.Helper()
	const headers, queue = 42, 4
	size := searchedBytes + headers
	run(c.t, "ip", "netns", "exec", c.spaces["near"], "tc", "qdisc", "replace", "dev", "v0", "root", "tbf",
		"rate", strconv.Itoa(perSecond*size*8), "burst", strconv.Itoa(2*size), "limit", strconv.Itoa(queue*size))
}

// consumer takes as long for each message, and has a queue of a few. Its time is that of the schedule by which messages leave, so that it carries
// the same however busy this machine is.
type consumer struct {
	service, queue time.Duration
	busyUntil      time.Duration
	sent, received [2]uint64
}

func (s *consumer) begin(question string) {
	s.busyUntil, s.received = 0, [2]uint64{}
	var stream uint64
	_, _ = fmt.Sscanf(question, "stream %d %d %d", &stream, &s.sent[0], &s.sent[1])
}

// takes reports whether a message of a stream is answered.
func (s *consumer) takes(message []byte) bool {
	const wantsAnswer, isProbe = 1 << 63, 1 << 62
	sequence, intended := binary.LittleEndian.Uint64(message), time.Duration(binary.LittleEndian.Uint64(message[8:]))
	if s.busyUntil-intended > s.queue {
		return false
	}
	s.busyUntil = max(s.busyUntil, intended) + s.service
	if sequence&isProbe != 0 {
		s.received[1]++
	} else {
		s.received[0]++
	}
	return sequence&wantsAnswer != 0
}

func (s *consumer) end() string {
	lost := func(i int) uint64 { return min(1, s.sent[i]-s.received[i]) }
	return fmt.Sprintf("received %d 0 0 %d %d 0 0 %d 0", s.received[0], lost(0), s.received[1], lost(1))
}

// TestLoadSearchFindsAKnownCapacity goes from apply to verdict: what a server carries that takes as long for each message is found to within 2 %. The
// result is there, and another budget judges it anew.
func TestLoadSearchFindsAKnownCapacity(t *testing.T) {
	const capacity = 600
	onSchedule(t, func(t *testing.T) *cluster {
		c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
			searches(200, 500, 1000, func(l *v1alpha1.LoadSearchTest) {
				l.Bytes, l.GranularityPartsPerThousand, l.Retries, l.SniffSeconds, l.TrialSeconds, l.ConfirmSeconds = 64, 8, new(int32(4)), 4, 4, confirmed
			})(spec)
			spec.Budget = &v1alpha1.LatencyBudget{MinimumMessagesPerSecond: capacity / 2}
		})
		c.step()
		c.played()
		c.serves(&consumer{service: time.Second / capacity, queue: 4 * time.Second / capacity})
		c.step()
		c.ends(c.pod())
		c.step()
		return c
	}, func(c *cluster) {
		c.expectCapacity(capacity - probesBeside)
		c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
		c.world.Test.Spec.Budget.MinimumMessagesPerSecond = capacity
		c.step()
		c.expect(v1alpha1.LatencyFailed, v1alpha1.TestRate)
		c.t.Log(c.result().Message)
	})
}

// expectCapacity looks at the interval in the status, and at the trials that it rests on.
func (c *cluster) expectCapacity(known float64) {
	c.t.Helper()
	m := c.result().Measured
	if m == nil || m.Network == nil || m.Network.Load == nil {
		c.t.Fatalf("%+v", c.result())
	}
	l := m.Network.Load
	off := float64(l.BestPassPerSecond)/known - 1
	c.t.Logf("known %.0f, found %d to %d in %d trials, off by %.2f %%", known, l.BestPassPerSecond, l.LowestFailPerSecond, l.Trials, 100*off)
	c.expectTrials(m)
	if math.Abs(off) > 0.02 || l.Confirmation != v1alpha1.LoadConfirmed || l.FailReason != v1alpha1.TestLoss {
		c.t.Errorf("%+v", l)
	}
}

// expectTrials looks at the rates on which the interval rests.
func (c *cluster) expectTrials(m *v1alpha1.LatencyMeasurement) {
	c.t.Helper()
	l, rates := m.Network.Load, m.Network.Rates
	if len(rates) != 3 || rates[1].Trial != v1alpha1.LoadTrialBestPass || rates[1].Lost != 0 || rates[1].Sent != confirmed*int64(l.BestPassPerSecond) || m.Histogram == "" {
		c.t.Errorf("%+v", rates)
	}
}

// TestWaysThatCarryNothing: the lowest rate already loses messages.
func TestWaysThatCarryNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		least   int32
		outcome v1alpha1.LatencyOutcome
		reason  string
	}{
		"whatever it is":  {0, v1alpha1.LatencyInconclusive, v1alpha1.TestLoss},
		"too little":      {1000, v1alpha1.LatencyFailed, v1alpha1.TestRate},
		"nobody asks why": {100, v1alpha1.LatencyInconclusive, v1alpha1.TestLoss},
	} {
		t.Run(name, func(t *testing.T) {
			onSchedule(t, func(t *testing.T) *cluster {
				c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
					searches(500, 500, 1000, nil)(spec)
					spec.Budget.MinimumMessagesPerSecond = tc.least
				})
				c.passes(200)
				c.measures()
				return c
			}, func(c *cluster) { c.expect(tc.outcome, tc.reason) })
		})
	}
}

// TestSearchWithoutTime: a search that is ended says what it has found, and that this is not all.
func TestSearchWithoutTime(t *testing.T) {
	onSchedule(t, func(t *testing.T) *cluster {
		c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
			searches(100, 100, 1000, func(l *v1alpha1.LoadSearchTest) { l.GranularityPartsPerThousand = 1 })(spec)
			spec.DurationSeconds = 4
		})
		c.measures()
		return c
	}, func(c *cluster) {
		c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestUnfinished)
		if m := c.result().Measured; m == nil || m.Network.Load.Confirmation != v1alpha1.LoadUnconfirmed {
			c.t.Errorf("%+v", c.result())
		}
	})
}

// TestHostilePeersOfASearch: what a peer says of the first trial already ends the search.
func TestHostilePeersOfASearch(t *testing.T) {
	for name, tc := range map[string]struct {
		peer   func(*cluster)
		reason string
	}{
		"garbage on the port": {func(c *cluster) {
			c.listens(func(peer net.Conn) { _, _ = peer.Write([]byte("\x00\xff\x1b[2J garbage\n")) })
		}, v1alpha1.TestStranger},
		"more came than was sent": {func(c *cluster) { c.lies("received 18446744073709551615 0 0 0 0 0 0 0 0") }, v1alpha1.TestMeasurementFailed},
		"no number came":          {func(c *cluster) { c.lies("received \x1b[2J") }, v1alpha1.TestMeasurementFailed},
		"a peer that hangs up":    {func(c *cluster) { c.listens(func(net.Conn) {}) }, v1alpha1.TestPeerVanished},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, searches(100, 100, 200, nil))
			c.expectOf(tc.peer, tc.reason)
		})
	}
}
