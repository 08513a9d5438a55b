// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package onload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	// trafficProgram and probeProgram are where containers find the programs that measure.
	trafficProgram = "/usr/local/bin/" + lab.TrafficProgram
	probeProgram   = "/usr/local/bin/kubectl-lowlatency"
)

// pings is a measurement with a server by a transport.
func pings(server, transport string) []string {
	return []string{
		probeProgram, "probe", "pingpong", "--program", trafficProgram, "--client", server, "--transport", transport, "--wait", "block", "--sizes", "64,1024", "--warm-up", "0",
		"--warm-up-messages", "10", "--batch", "10", "--minimum-time", "0", "--maximum-time", "60s", "--maximum-messages", "200", "--timeout", "10s", "-o", "json",
	}
}

// servesTraffic lets a container with Onload answer, and measures it from the peer, which has the kernel's sockets.
func (s *scene) servesTraffic(t *testing.T) string {
	c := container{name: "server", command: []string{probeProgram, "probe", "pingpong", "--server", "--address", fastAddress, "--program", trafficProgram}}
	s.start(t, c, s.allocated(t))
	s.waitReady(t, c, "port ", 1)
	seen := make([]string, 0, 2)
	for _, transport := range []string{"udp", "tcp"} {
		result, err := s.machine.Execute(t.Context(), "ip netns exec "+peer+" "+strings.Join(pings(fastAddress, transport), " "))
		must(t, err)
		seen = append(seen, s.went(t, result, latency.PathKernel, latency.PathAccelerated))
	}
	return strings.Join(seen, "; ") + "; " + s.judged(t, c, onload.Accelerated, "none through the kernel")
}

// measuresTraffic measures from a container with Onload, and the peer answers by the kernel's sockets.
func (s *scene) measuresTraffic(t *testing.T) string {
	s.run(t, "systemd-run --unit server ip netns exec "+peer+" "+trafficProgram+" server port=2048")
	t.Cleanup(func() { _, _ = s.machine.Run(context.WithoutCancel(t.Context()), "systemctl stop server") })
	seen := make([]string, 0, 2)
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) { seen = append(seen, s.measures(t, transport)) })
	}
	return strings.Join(seen, "; ")
}

// measures sends by one transport, from a container of its own: the stack of one that has ended keeps the only virtual interface for a while.
func (s *scene) measures(t *testing.T, transport string) string {
	t.Helper()
	c := container{name: "client-" + transport, command: []string{"sleep", "infinity"}}
	s.start(t, c, s.allocated(t))
	ended, err := s.inside(c)(t.Context(), pings(peerAddress, transport))
	must(t, err)
	return s.went(t, lab.Result{ExitCode: ended.ExitCode, Stdout: ended.Output, Stderr: ended.Complaint}, latency.PathAccelerated, latency.PathKernel)
}

// went reads a result, and wants the messages to have gone by these paths at its ends, with none lost. The end with Onload says by which variables.
func (s *scene) went(t *testing.T, result lab.Result, client, server latency.PathState) string {
	t.Helper()
	var measured latency.Result
	if err := json.Unmarshal([]byte(result.Stdout), &measured); err != nil {
		t.Fatalf("%v: %s%s", err, result.Stdout, result.Stderr)
	}
	got := []any{measured.Outcome.Verdict, measured.Path.Client.State, measured.Path.Server.State, len(measured.Sizes)}
	if diff := cmp.Diff([]any{latency.Passed, client, server, 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s%+v %s", diff, measured.Outcome, measured.Path.Message)
	}
	for _, size := range measured.Sizes {
		if size.Lost > 0 || size.Distribution.Samples < 200 {
			t.Errorf("%d bytes: %d lost, %d answered", size.Bytes, size.Lost, size.Distribution.Samples)
		}
	}
	for state, host := range map[latency.PathState]latency.Host{client: measured.Setup.Client, server: measured.Setup.Server} {
		isPreloaded := slices.ContainsFunc(host.Environment, func(variable string) bool {
			return strings.HasPrefix(variable, "LD_PRELOAD=") && strings.Contains(variable, "libonload")
		})
		if isPreloaded != (state == latency.PathAccelerated) {
			t.Errorf("an end that is %s has the variables %q", state, host.Environment)
		}
	}
	return fmt.Sprintf("%s: %s", measured.Setup.Transport, measured.Path.Message)
}
