// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/affinity"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/transcript"
)

// TestCulpritIsNamedAtItsEnd: what takes the CPU of one end is named there, and not at the other end. Where nothing takes it, no end is named.
func TestCulpritIsNamedAtItsEnd(t *testing.T) {
	own, err := affinity.Own()
	if err != nil || own.Len() < 2 {
		t.Fatalf("each end needs a CPU of its own, and there are CPUs %s: %v", own, err)
	}
	// The program of a client takes the first CPU.
	client, server := own.IDs()[0], own.IDs()[1]
	for name, tc := range map[string]struct {
		disturbed int
		culprit   string
	}{"the server's": {server, "server"}, "the client's": {client, "client"}, "neither": {-1, ""}} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
				spec.Traffic.Waiting, spec.DurationSeconds, spec.Repetitions, spec.PingPong.Sizes = v1alpha1.WaitingSpin, 2, 1, []int32{64}
				spec.Budget = &v1alpha1.LatencyBudget{MaximumNanoseconds: 1}
			})
			// Nothing of this machine preempts either end but what this test puts there.
			c.before = []string{"chrt", "-f", "10"}
			c.step()
			c.played()
			c.servesOn(server)
			c.step()
			if tc.disturbed >= 0 {
				disturb(t, tc.disturbed)
			}
			c.ends(c.pod())
			c.step()
			c.expect(v1alpha1.LatencyFailed, v1alpha1.TestOverBudget)
			c.expectCulprit(client, server, tc.culprit)
		})
	}
}

// oftenPreempted is how often a second the kernel gives a CPU away that is disturbed, at least. From a real-time program that spins, it takes a CPU by itself for
// programs that are none: some 20 times a second where few of them wait for it, some 300 where this machine compiles beside the test.
const oftenPreempted = 1000

// expectCulprit wants one end, or none, to have been preempted often, and the message to say so of that end.
func (c *cluster) expectCulprit(client, server int, culprit string) {
	c.t.Helper()
	m := c.result().Measured
	if m == nil || m.CPUs != strconv.Itoa(client) || m.Network.ServerCPUs != strconv.Itoa(server) || m.Network.ServerIsolation == nil {
		c.t.Fatalf("%+v", c.result())
	}
	c.t.Log(c.result().Message)
	for _, end := range []struct {
		name   string
		cpu    int
		causes []string
	}{{"client", client, m.Causes}, {"server", server, m.Network.ServerCauses}} {
		words := preempted(end.causes)
		if (words != "") != (end.name == culprit) {
			c.t.Errorf("on CPU %d of the %s the kernel counted %q, and the culprit is at the %s", end.cpu, end.name, end.causes, culprit)
		}
		_, after, _ := strings.Cut(c.result().Message, fmt.Sprintf("; on CPU %d of the %s the kernel counted ", end.cpu, end.name))
		said, _, _ := strings.Cut(after, "; ")
		if words != "" && !strings.Contains(said, words) {
			c.t.Errorf("the message does not say %q of the %s", words, end.name)
		}
	}
}

// preempted is the cause that says how often a CPU was given to something else, where that was often; "" where it was not.
func preempted(causes []string) string {
	at := slices.IndexFunc(causes, func(cause string) bool { return strings.HasPrefix(cause, "ContextSwitch ") })
	if at < 0 {
		return ""
	}
	fields := strings.Fields(causes[at])
	if times, err := strconv.ParseFloat(fields[2], 64); err != nil || times < oftenPreempted {
		return ""
	}
	return causes[at]
}

// servesOn starts a server by hand that is kept to a CPU, in the place of a pod's: both pods of a node without a kubelet would take the same CPU.
func (c *cluster) servesOn(cpu int) {
	c.t.Helper()
	log := &transcript.Transcript{}
	ctx, kill := context.WithCancel(c.t.Context())
	arguments := slices.Concat([]string{"netns", "exec", c.spaces["far"]}, c.before, c.program[:1],
		[]string{"probe", "pingpong", "--server", "--address=" + farAddress, "--cpu=" + strconv.Itoa(cpu), c.program[1]})
	command := exec.CommandContext(ctx, "ip", arguments...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		kill()
		_ = command.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(log.String(), "port "); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("the server does not listen: %s", log)
		}
	}
}

// disturb takes a CPU for a moment some 4000 times a second, from whatever runs there, until the test ends.
func disturb(t *testing.T, cpu int) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	program := "while (1) { select " + strings.Repeat("undef, ", 3) + "0.0002; $n++ for 1 .. 200 }"
	command := exec.CommandContext(ctx, "taskset", "-c", strconv.Itoa(cpu), "chrt", "-f", "50", "perl", "-e", program)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill()
		_ = command.Wait()
	})
}
