// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// sweeps makes a test a sweep over rates, with a second for each in both repetitions.
func sweeps(rates ...int32) func(*v1alpha1.LatencyTestSpec) {
	return func(spec *v1alpha1.LatencyTestSpec) {
		spec.Kind, spec.PingPong, spec.DurationSeconds = v1alpha1.LatencyTestRateSweep, nil, int32(len(rates))
		spec.RateSweep = &v1alpha1.RateSweepTest{MessagesPerSecond: rates, Bytes: 128, AnswersPerRate: 1000}
	}
}

// measures goes from the begin of a test to its verdict.
func (c *cluster) measures() {
	c.t.Helper()
	c.step()
	server := c.pod()
	c.step()
	c.ends(c.pod())
	if d := c.step(); len(d.Stop) != 1 {
		c.t.Errorf("%d Jobs are deleted at the end, want that of the server", len(d.Stop))
	}
	server.kill()
	if err := <-server.ended; err != nil && !strings.Contains(err.Error(), "canceled") {
		c.t.Errorf("the server ended with %v: %s", err, server.log)
	}
	c.t.Log(c.result().Message)
}

// attempts is how often a machine that is busy may keep the generator from its schedule.
const attempts = 5

// onSchedule measures, and expects something of the result. A result that says that the generator was the limit tells of other work on this
// machine: it is measured again, and the test fails when no attempt was on schedule.
func onSchedule(t *testing.T, measure func(*testing.T) *cluster, expect func(*cluster)) {
	t.Helper()
	for attempt := range attempts {
		late := false
		t.Run(fmt.Sprintf("attempt %d", attempt+1), func(t *testing.T) {
			c := measure(t)
			if late = c.wasLate(); late {
				t.Logf("this machine is busy: %s", c.result().Message)
				return
			}
			expect(c)
		})
		if !late {
			return
		}
	}
	t.Errorf("this machine was too busy to send on a schedule in each of %d attempts", attempts)
}

// wasLate reports whether the generator was the limit, of the whole test or of what a search ended with.
func (c *cluster) wasLate() bool {
	c.t.Helper()
	r := c.result()
	if r.Outcome == v1alpha1.LatencyInconclusive && r.Reason == v1alpha1.TestGeneratorLimit {
		return true
	}
	return r.Measured != nil && r.Measured.Network != nil && r.Measured.Network.Load != nil && r.Measured.Network.Load.FailReason == v1alpha1.TestGeneratorLimit
}

func TestRateSweepFromApplyToVerdict(t *testing.T) {
	for _, transport := range []v1alpha1.TestTransport{v1alpha1.TransportUDP, v1alpha1.TransportMulticast} {
		t.Run(string(transport), func(t *testing.T) {
			onSchedule(t, func(t *testing.T) *cluster {
				c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
					sweeps(500, 2000)(spec)
					spec.Traffic.Transport = transport
				})
				c.measures()
				return c
			}, func(c *cluster) {
				c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
				c.expectRates(500, 2000)
			})
		})
	}
}

// expectRates looks at what stands in the status of two repetitions.
func (c *cluster) expectRates(asked ...int64) {
	c.t.Helper()
	m := c.result().Measured
	if m == nil || m.Network == nil || len(m.Network.Rates) != len(asked) || len(m.Network.Sizes) != 1 || m.Histogram == "" {
		c.t.Fatalf("%+v", c.result())
	}
	for i, rate := range m.Network.Rates {
		want := 2 * asked[i]
		if rate.Sent != want || rate.Duplicates+rate.Reordered != 0 || rate.FromIntended.Samples+rate.AnswersLost < want/2 {
			c.t.Errorf("%+v", rate)
		}
		if rate.FromSent.MaximumNanoseconds > rate.FromIntended.MaximumNanoseconds {
			c.t.Errorf("from when messages left, latencies are longer than from when they were to leave: %+v", rate)
		}
	}
}

// TestKnownFaultsOfAWay: what is wrong is found, and named.
func TestKnownFaultsOfAWay(t *testing.T) {
	for name, tc := range map[string]struct {
		rates   []int32
		budget  v1alpha1.LatencyBudget
		outcome v1alpha1.LatencyOutcome
		reason  string
	}{
		"a budget that nobody keeps": {
			[]int32{500}, v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 1}}},
			v1alpha1.LatencyFailed, v1alpha1.TestOverBudget,
		},
		"a rate that nobody reaches": {
			[]int32{500, 5_000_000}, v1alpha1.LatencyBudget{LossPartsPerMillion: new(int32(1_000_000))},
			v1alpha1.LatencyInconclusive, v1alpha1.TestGeneratorLimit,
		},
		"another way than was asked for": {
			[]int32{500}, v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathAccelerated}, v1alpha1.LatencyInconclusive, v1alpha1.TestNotAccelerated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			measure := func(t *testing.T) *cluster {
				c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
					sweeps(tc.rates...)(spec)
					spec.Repetitions, spec.Budget = 1, &tc.budget
				})
				c.measures()
				return c
			}
			expect := func(c *cluster) { c.expect(tc.outcome, tc.reason) }
			if tc.reason == v1alpha1.TestGeneratorLimit {
				expect(measure(t))
				return
			}
			onSchedule(t, measure, expect)
		})
	}
}

// TestLossOnASchedule: what the server did not receive breaks the budget.
func TestLossOnASchedule(t *testing.T) {
	onSchedule(t, func(t *testing.T) *cluster {
		c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
			sweeps(500)(spec)
			spec.Repetitions, spec.Budget = 1, &v1alpha1.LatencyBudget{LossPartsPerMillion: new(int32(19_999))}
		})
		c.step()
		c.played()
		c.lies("received 490 0 3 7 0 0 0 0 0")
		c.step()
		c.ends(c.pod())
		c.step()
		return c
	}, func(c *cluster) {
		c.expect(v1alpha1.LatencyFailed, v1alpha1.TestLoss)
		if m := c.result().Measured; m == nil || m.Network.Rates[0].Lost != 10 || m.Network.Rates[0].Reordered != 3 || m.Network.Rates[0].Gaps != 7 {
			c.t.Errorf("%+v", m)
		}
	})
}

// TestHostilePeersOfASchedule: the same peers as of messages one at a time, and one that knows the protocol and lies about what it received.
func TestHostilePeersOfASchedule(t *testing.T) {
	for name, tc := range map[string]struct {
		peer   func(*cluster)
		reason string
	}{
		"garbage on the port": {func(c *cluster) {
			c.listens(func(peer net.Conn) { _, _ = peer.Write([]byte("\x00\xff\x1b[2J garbage\n")) })
		}, v1alpha1.TestStranger},
		"more came than was sent": {func(c *cluster) { c.lies("received 18446744073709551615 0 0 0 0 0 0 0 0") }, v1alpha1.TestMeasurementFailed},
		"no number came":          {func(c *cluster) { c.lies("received \x1b[2J") }, v1alpha1.TestMeasurementFailed},
		"another answer":          {func(c *cluster) { c.lies("anything") }, v1alpha1.TestStranger},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
				sweeps(500)(spec)
				spec.Repetitions = 1
			})
			c.expectOf(tc.peer, tc.reason)
		})
	}
}

// stream is what becomes of the messages on a schedule at a server that is played.
type stream interface {
	// begin is told the question with which a stream begins.
	begin(question string)
	// takes reports whether a message is answered.
	takes(message []byte) bool
	// end is what the server says of the stream.
	end() string
}

// liar says the same of each stream.
type liar string

func (liar) begin(string)      {}
func (liar) takes([]byte) bool { return true }
func (l liar) end() string     { return string(l) }

// lies is a server that answers messages, and says this of a stream.
func (c *cluster) lies(received string) {
	c.t.Helper()
	c.serves(liar(received))
}

// serves is a server that answers messages one at a time, and those on a schedule as it is told.
func (c *cluster) serves(s stream) {
	c.t.Helper()
	var messages net.PacketConn
	c.inFar(func() error {
		var err error
		messages, err = net.ListenPacket("udp4", farAddress+":0")
		return err
	})
	c.t.Cleanup(func() { _ = messages.Close() })
	var mutex sync.Mutex
	go c.answers(messages, s, &mutex)
	_, port, err := net.SplitHostPort(messages.LocalAddr().String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.listens(func(peer net.Conn) {
		questions := bufio.NewScanner(peer)
		for questions.Scan() {
			mutex.Lock()
			c.hears(peer, questions.Text(), port, s)
			mutex.Unlock()
		}
	})
}

// hears gives the answer to a question.
func (c *cluster) hears(peer net.Conn, question, port string, s stream) {
	word, _, _ := strings.Cut(question, " ")
	switch word {
	case "ping":
		_, _ = fmt.Fprintln(peer, "ready")
	case "stream":
		s.begin(question)
		_, _ = fmt.Fprintln(peer, "ready")
	case "counts":
		_, _ = fmt.Fprintln(peer, "counts 0 0 0 0")
	case "counters":
		_, _ = fmt.Fprintln(peer, notCounted)
	case "end":
		_, _ = fmt.Fprintln(peer, s.end())
	default:
		_, _ = fmt.Fprintf(peer, "ok %s 0 host kernel\nintroduced\nopen\n", port)
	}
}

// answers sends messages back until the connection is closed.
func (c *cluster) answers(messages net.PacketConn, s stream, mutex *sync.Mutex) {
	const header, streamByte = 24, 6
	message := make([]byte, 65536)
	for {
		n, from, err := messages.ReadFrom(message)
		if err != nil {
			return
		}
		mutex.Lock()
		// Messages of a stream carry its number.
		ofStream := n >= header && message[streamByte] != 0
		isAnswered := !ofStream || s.takes(message[:n])
		mutex.Unlock()
		if isAnswered {
			_, _ = messages.WriteTo(message[:n], from)
		}
	}
}
