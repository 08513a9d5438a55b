// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/affinity"
)

// TestServerCounts: each client learns what was counted on the CPU of the server while it measured, where this host counts.
func TestServerCounts(t *testing.T) {
	own, err := affinity.Own()
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	cpu := own.IDs()[0]
	port, _, _ := servingOn(t, cpu, h)
	for range 2 {
		got, err := measure(t, quick(port), latency.Budget{})
		if err != nil || got.Outcome.Verdict != latency.Passed || len(got.ServerCounts) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		areCounted(t, &got.ServerCounts[0], cpu, got.ElapsedNanoseconds)
	}
}

// areCounted wants something to be counted of a CPU, over a time at least.
func areCounted(t *testing.T, c *latency.Counts, cpu int, nanoseconds int64) {
	t.Helper()
	if c.CPU != cpu || c.CountedNanoseconds < nanoseconds || c.Unknown != "" || c.Isolation == nil || c.InterruptsFrom == "" {
		t.Errorf("%+v over %d ns", c, nanoseconds)
	}
}

// TestSearchCountsAtTheServer: each program that measures asks for itself, and the result has them all.
func TestSearchCountsAtTheServer(t *testing.T) {
	result := &latency.Result{ServerPageFaults: 1, ServerCounts: []latency.Counts{{CPU: 3, Unknown: "first"}}}
	addTo(result, &latency.Result{ServerPageFaults: 2, ServerCounts: []latency.Counts{someCounts()}})
	if diff := cmp.Diff([]latency.Counts{{CPU: 3, Unknown: "first"}, someCounts()}, result.ServerCounts); diff != "" || result.ServerPageFaults != 3 {
		t.Errorf("%d page faults (-want +got):\n%s", result.ServerPageFaults, diff)
	}
}

// TestNobodyCounts: that is said, and never taken for a quiet CPU.
func TestNobodyCounts(t *testing.T) {
	const silent = "the program that counts beside the server has not answered"
	for name, tc := range map[string]struct {
		beside func(net.Conn)
		want   string
	}{
		"nobody is there": {nil, "nobody counts beside the server"},
		"it is gone":      {func(c net.Conn) { _ = c.Close() }, silent},
		"answers to another measurement": {func(c net.Conn) {
			packet := make([]byte, longestQuestion)
			for {
				if _, err := c.Read(packet); err != nil {
					return
				}
				_, _ = c.Write([]byte("begun 0 "))
				_, _ = c.Write([]byte(`counted 0 {"cpu":-1,"unknown":"another"}`))
			}
		}, silent},
		"too long": {func(c net.Conn) {
			for question := range asked(c) {
				_, _ = c.Write([]byte("counted" + strings.TrimPrefix(question, "end") + " " + strings.Repeat("x", 4085)))
			}
		}, silent},
		"far too long": {func(c net.Conn) {
			for question := range asked(c) {
				_, _ = c.Write([]byte("counted" + strings.TrimPrefix(question, "end") + " " + strings.Repeat("x", 10_000)))
			}
		}, silent},
		"two lines": {func(c net.Conn) {
			for question := range asked(c) {
				_, _ = c.Write([]byte("counted" + strings.TrimPrefix(question, "end") + " x\nopen"))
			}
		}, silent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := measure(t, quick(servingBeside(t, tc.beside)), latency.Budget{})
			if err != nil || got.Outcome.Verdict != latency.Passed {
				t.Fatalf("%+v, %v", got, err)
			}
			if diff := cmp.Diff([]latency.Counts{{CPU: -1, Unknown: tc.want}}, got.ServerCounts); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestServerThatIsStopped: who stops the program of a server while it waits for a question, and lets it go on, takes no client from it.
func TestServerThatIsStopped(t *testing.T) {
	command := exec.CommandContext(t.Context(), os.Getenv(sanitizedVariable), "server", "address=127.0.0.1", "port=0")
	control, lines, _ := session(t, portOf(t, command), latency.UDP, latency.Block)
	becomes(t, command.Process.Pid, 'S')
	for _, one := range []struct {
		signal os.Signal
		state  byte
	}{{syscall.SIGSTOP, 'T'}, {syscall.SIGCONT, 'S'}} {
		if err := command.Process.Signal(one.signal); err != nil {
			t.Fatal(err)
		}
		becomes(t, command.Process.Pid, one.state)
	}
	_, _ = io.WriteString(control, "counts\n")
	heard(t, lines, "counts ")
}

// becomes waits until a process is in a state, as of proc_pid_stat(5).
func becomes(t *testing.T, pid int, state byte) {
	t.Helper()
	for range 10_000 {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.LastIndexByte(content, ')'); at >= 0 && at+2 < len(content) && content[at+2] == state {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("process %d does not come into the state %c", pid, state)
}

// asked are the questions of the program; the begin of a measurement is answered at once.
func asked(c net.Conn) func(func(string) bool) {
	return func(yield func(string) bool) {
		packet := make([]byte, longestQuestion)
		for {
			n, err := c.Read(packet)
			if err != nil || n == 0 {
				return
			}
			if number, isBegin := strings.CutPrefix(string(packet[:n]), "begin "); isBegin {
				_, _ = c.Write([]byte("begun " + number + " "))
			} else if !yield(string(packet[:n])) {
				return
			}
		}
	}
}

// servingBeside starts the program of a server with something else in the place of the process that counts; nil for nothing.
func servingBeside(t *testing.T, beside func(net.Conn)) (port int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Getenv(sanitizedVariable), "server", "address=127.0.0.1", "port=0")
	if beside != nil {
		program, here, err := openPackets()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = here.Close(), program.Close() })
		command.ExtraFiles = []*os.File{program}
		command.Args = append(command.Args, fmt.Sprintf("counters=%d", firstExtraFile))
		go beside(here)
	}
	return portOf(t, command)
}

// portOf starts the program of a server, and gives its port.
func portOf(t *testing.T, command *exec.Cmd) (port int) {
	t.Helper()
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = command.Process.Kill(), command.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "port %d", &port); err != nil {
		t.Fatal(err)
	}
	return port
}
