// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/transcript"
)

// held is for how long a program is held up, and holds how often. Between two messages it may be held up unseen: atLeast is seen of all together.
const held, holds, atLeast = 500 * time.Millisecond, 5, 3 * held

// probes is the command line of this cluster's client or server in the namespace of a node.
func (c *cluster) probes(node string, arguments ...string) *exec.Cmd {
	words := slices.Concat([]string{"netns", "exec", c.spaces[node]}, c.before, c.program[:1], []string{"probe", "pingpong", c.program[1]}, arguments)
	return exec.CommandContext(c.t.Context(), "ip", words...)
}

// childOf is the number of the program that a process has started to send and answer, by whichever of its threads, once it is there. Go's runtime starts a
// process that ends at once besides.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	for range 1000 {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			// A thread or process may have ended meanwhile.
			text, _ := os.ReadFile(file)
			for word := range strings.FieldsSeq(string(text)) {
				name, _ := os.ReadFile("/proc/" + word + "/comm")
				if child, err := strconv.Atoi(word); err == nil && string(name) == "lowlatency-traf\n" { // the kernel keeps 15 characters
					return child
				}
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("process %d has not started the program that sends and answers", parent)
	return 0
}

// holdUp stops a program again and again.
func holdUp(t *testing.T, process int) {
	t.Helper()
	time.Sleep(500 * time.Millisecond)
	for range holds {
		for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGCONT} {
			if err := unix.Kill(process, signal); err != nil {
				t.Errorf("process %d: %v", process, err)
			}
			time.Sleep(map[unix.Signal]time.Duration{unix.SIGSTOP: held, unix.SIGCONT: held / 4}[signal])
		}
	}
}

// stampsOf are those of messages of 64 bytes, while the program is held up that a process has started; 0 is that of the client.
func (c *cluster) stampsOf(t *testing.T, transport string, parent int) *latency.Stamps {
	t.Helper()
	var out, complaints bytes.Buffer
	client := c.probes("near", "--client", farAddress, "--transport", transport, "--wait", "block", "--sizes", "64", "--warm-up", "0", "--warm-up-messages", "0", "--batch", "100",
		"--minimum-time", "4s", "--maximum-time", "4s", "--timeout", "10s", "--report", "round-trip", "--timestamps", "kernel", "-o", "json")
	client.Stdout, client.Stderr = &out, &complaints
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	if parent == 0 {
		parent = client.Process.Pid
	}
	holdUp(t, childOf(t, parent))
	var result latency.Result
	if err := errors.Join(client.Wait(), json.Unmarshal(out.Bytes(), &result)); err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	if diff := cmp.Diff(&latency.Stamping{By: latency.StampedByKernel, Interface: "v0"}, result.Setup.Stamping); diff != "" || result.Sizes[0].Stamps == nil {
		t.Fatalf("%s%+v", diff, result)
	}
	return result.Sizes[0].Stamps
}

// together is the time of all messages.
func together(d *latency.Distribution) time.Duration {
	return time.Duration(d.MeanNanoseconds * float64(d.Samples))
}

func wirePart(s *latency.Stamps) *latency.Distribution { return &s.Wire }

func hostPart(s *latency.Stamps) *latency.Distribution { return &s.Host }

// TestStampsTellTheHostApart: what holds up the client's program after an answer has come is of its own host, and what holds up the server is of the wire,
// whatever carries the messages over a pair of virtual interfaces.
func TestStampsTellTheHostApart(t *testing.T) {
	c := newCluster(t, func(*v1alpha1.LatencyTestSpec) {})
	server, said := c.probes("far", "--server"), &transcript.Transcript{}
	server.Stdout, server.Stderr = said, said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Signal(unix.SIGTERM); _ = server.Wait() })
	for begin := time.Now(); !strings.Contains(said.String(), "port "); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the server does not come: %s", said)
		}
	}
	for _, transport := range []string{"udp", "tcp"} {
		for name, tc := range map[string]struct {
			// process has started the program that is held up; 0 is that of the client. shows is the part that tells it, and not the other.
			process    int
			shows, not func(*latency.Stamps) *latency.Distribution
		}{
			"the client": {0, hostPart, wirePart},
			"the server": {server.Process.Pid, wirePart, hostPart},
		} {
			t.Run(transport+" "+name, func(t *testing.T) {
				s := c.stampsOf(t, transport, tc.process)
				if s.Messages < 1000 || s.Missing() > 0 {
					t.Errorf("not every message has its stamps: %d of %d", s.Messages-s.Missing(), s.Messages)
				}
				// What else runs on this machine may hold up either program for a while, but not for as long.
				if shows, not := together(tc.shows(s)), together(tc.not(s)); shows < atLeast || shows < not {
					t.Errorf("the part that was held up %d times for %s is %s together, and the other %s", holds, held, shows, not)
				}
			})
		}
	}
}
