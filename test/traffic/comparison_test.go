// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bufio"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// podAddress is that of a pod on the node that is measured.
const podAddress = "10.98.2.2"

// notCounted is what a server on CPU 0 says that has not counted there.
const notCounted = `counters {"cpu":0,"unknown":"nobody counts"}`

// compares makes a test a comparison with a bound on the median.
func compares(parts int32) func(*v1alpha1.LatencyTestSpec) {
	return func(spec *v1alpha1.LatencyTestSpec) {
		spec.Kind, spec.Repetitions, spec.PingPong.Sizes = v1alpha1.LatencyTestContainerVersusHost, 5, []int32{64}
		spec.Budget = &v1alpha1.LatencyBudget{
			Path: v1alpha1.LatencyPathKernel, Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: parts}},
		}
	}
}

// newComparison is a cluster whose measured node has pods with a network namespace of their own. Their way to the server is as long as that of
// the node: one pair of veth.
func newComparison(t *testing.T, parts int32) *cluster {
	t.Helper()
	c := newCluster(t, compares(parts))
	c.world.HostNamespace = c.world.Test.Namespace
	pod, far := c.spaces["near"]+"p", c.spaces["far"]
	c.spaces[podOn+"near"] = pod
	run(t, "ip", "netns", "add", pod)
	t.Cleanup(func() { run(t, "ip", "netns", "del", pod) })
	for _, command := range []string{
		"link add w0 netns " + pod + " type veth peer name w1 netns " + far,
		"-n " + pod + " addr add " + podAddress + "/24 dev w0", "-n " + far + " addr add 10.98.2.1/24 dev w1",
		"-n " + pod + " link set w0 up", "-n " + far + " link set w1 up", "-n " + pod + " route add " + farAddress + "/32 via 10.98.2.1",
	} {
		run(t, "ip", strings.Fields(command)...)
	}
	return c
}

// compared runs the pods of all measurements, one after the other.
func (c *cluster) compared(more ...string) {
	c.t.Helper()
	for c.step(); c.result().Activity == v1alpha1.LatencyRunning; c.step() {
		c.ends(c.pod(more...))
	}
	c.t.Log(c.result().Message)
}

// ratio is that of the medians, of the container to its host.
func (c *cluster) ratio() *v1alpha1.LatencyRatio {
	c.t.Helper()
	m := c.result().Measured
	if m == nil || m.Network == nil || m.Network.Comparison == nil || len(m.Network.Comparison.Sides) != 2 {
		c.t.Fatalf("%+v", c.result())
	}
	for _, side := range m.Network.Comparison.Sides {
		if side.Histogram == "" || len(side.RepetitionMediansNanoseconds) != 5 || side.Path != v1alpha1.LatencyPathKernel || side.Sizes[0].Samples < 1000 {
			c.t.Errorf("%+v", side)
		}
	}
	ratio := qualification.RatioOf(&m.Network.Comparison.Sides[0], 64, v1alpha1.P50)
	if ratio == nil {
		c.t.Fatalf("%+v", m.Network.Comparison)
	}
	return ratio
}

// TestEqualSidesPass: both are measured for real, with the server of the project, over ways that are as long. On a busy machine a ratio may be off by
// more than a quarter, but then its interval is wide, too.
func TestEqualSidesPass(t *testing.T) {
	c := newComparison(t, 1500)
	c.step()
	server := c.pod()
	c.compared()
	server.kill()
	c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
	if ratio := c.ratio(); ratio.HighPartsPerThousand < 800 || ratio.LowPartsPerThousand > 1250 {
		t.Errorf("%+v", ratio)
	}
	for _, from := range []string{nearAddress, podAddress} {
		if got := strings.Count(server.log.String(), from+" measures:"); got != 5 {
			t.Errorf("%d measurements came from %s: %s", got, from, server.log)
		}
	}
}

// holds is a server that holds each message for a known time, which depends on where it comes from. This kernel has no netem.
func (c *cluster) holds(times map[string]time.Duration) {
	c.t.Helper()
	var messages net.PacketConn
	c.inFar(func() error {
		var err error
		messages, err = net.ListenPacket("udp4", farAddress+":0")
		return err
	})
	c.t.Cleanup(func() { _ = messages.Close() })
	var counted atomic.Int64
	go func() {
		message := make([]byte, 65536)
		for {
			n, from, err := messages.ReadFrom(message)
			if err != nil {
				return
			}
			begin := time.Now()
			host, _, _ := net.SplitHostPort(from.String())
			for hold := times[host]; time.Since(begin) < hold; {
				// Sleeping takes longer than it is told to.
				continue
			}
			counted.Add(2)
			_, _ = messages.WriteTo(message[:n], from)
		}
	}()
	_, port, err := net.SplitHostPort(messages.LocalAddr().String())
	if err != nil {
		c.t.Fatal(err)
	}
	c.listens(func(peer net.Conn) {
		questions := bufio.NewScanner(peer)
		for questions.Scan() {
			switch word, _, _ := strings.Cut(questions.Text(), " "); word {
			case "ping":
				_, _ = fmt.Fprintln(peer, "ready")
			case "counts":
				_, _ = fmt.Fprintf(peer, "counts %d %d 0 0\n", counted.Load(), counted.Load())
			case "counters":
				_, _ = fmt.Fprintln(peer, notCounted)
			default:
				_, _ = fmt.Fprintf(peer, "ok %s 0 host kernel\nintroduced\nopen\n", port)
			}
		}
	})
}

// TestKnownRatios: a delay on one side turns the verdict, and its ratio is found.
func TestKnownRatios(t *testing.T) {
	for name, tc := range map[string]struct {
		container, host time.Duration
		outcome         v1alpha1.LatencyOutcome
		reason          string
	}{
		"a slow container": {2 * time.Millisecond, time.Millisecond, v1alpha1.LatencyFailed, v1alpha1.TestRatio},
		"a slow host":      {time.Millisecond, 2 * time.Millisecond, v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget},
	} {
		t.Run(name, func(t *testing.T) {
			c := newComparison(t, 1300)
			c.step()
			c.played()
			c.holds(map[string]time.Duration{podAddress: tc.container, nearAddress: tc.host})
			c.compared("--warm-up=0s")
			c.expect(tc.outcome, tc.reason)
			known, ratio := float64(tc.container)/float64(tc.host), c.ratio()
			off := float64(ratio.PartsPerThousand)/1000/known - 1
			t.Logf("known %.3f, found %s, off by %.1f %%", known, qualification.RatioWords(ratio), 100*off)
			if math.Abs(off) > 0.1 {
				t.Errorf("%+v", ratio)
			}
		})
	}
}

// TestSideThatIsNotReached: a host without a way to the server gives no ratio, and is named.
func TestSideThatIsNotReached(t *testing.T) {
	c := newComparison(t, 1500)
	run(t, "ip", "-n", c.spaces["near"], "link", "set", "v0", "down")
	c.step()
	c.pod()
	c.compared("--patience=1s")
	c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestUnreachable)
	if got := c.result().Message; !strings.HasPrefix(got, "measurement 2 of 10 (host): ") {
		t.Error(got)
	}
}
