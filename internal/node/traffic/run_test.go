// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/transcript"
)

// serving starts a server and gives its port; it ends with the test, and must not have ended before.
func serving(t *testing.T) (port int, log *transcript.Transcript, stop func()) {
	t.Helper()
	return servingOn(t, -1, nil)
}

// servingOn starts a server on a CPU, -1 for any, whose program counts there on a host; nil for nowhere.
func servingOn(t *testing.T, cpu int, h *host.Host) (port int, log *transcript.Transcript, stop func()) {
	t.Helper()
	log = &transcript.Transcript{}
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, ServerOptions{Program: os.Getenv(sanitizedVariable), Address: "127.0.0.1", CPU: cpu, Host: h, Out: out, Log: log})
	}()
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "port %d", &port); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%v: %s", err, log)
		}
	})
	t.Cleanup(stop)
	return port, log, stop
}

// quick is a request that takes a moment.
func quick(port int) Request {
	r := DefaultRequest()
	r.Host, r.Port, r.Sizes = "127.0.0.1", port, []int{1, 64, 1473}
	r.WarmUp, r.WarmUpPings, r.Batch, r.MaximumPings, r.MinimumTime, r.MaximumTime = 0, 100, 100, 1000, 0, time.Minute
	return r
}

func measure(t *testing.T, r Request, budget latency.Budget) (*latency.Result, error) {
	t.Helper()
	return Measure(t.Context(), Options{Program: os.Getenv(sanitizedVariable), Request: r, Budget: budget, Progress: func(Progress) {}})
}

func TestPingPong(t *testing.T) {
	port, _, _ := serving(t)
	for _, transport := range []latency.Transport{latency.TCP, latency.UDP, latency.Multicast} {
		for _, waiting := range []latency.Waiting{latency.Block, latency.Spin} {
			t.Run(string(transport)+" "+string(waiting), func(t *testing.T) {
				r := quick(port)
				r.Transport, r.Waiting = transport, waiting
				if waiting == latency.Spin {
					// Two programs that never sleep share the CPUs of the machine with other tests.
					r.Batch, r.MaximumPings, r.WarmUpPings = 2, 20, 2
				}
				// A packet that a busy machine handles late is no lost one here.
				r.Timeout = time.Minute
				got, err := measure(t, r, latency.Budget{Accelerated: true})
				if err != nil {
					t.Fatal(err)
				}
				judgeResult(t, got, r.Batch)
				judgeSetup(t, got)
			})
		}
	}
}

func judgeResult(t *testing.T, got *latency.Result, batch int) {
	t.Helper()
	for i, bytes := range []int{1, 64, 1473} {
		s := got.Sizes[i]
		if s.Bytes != bytes || s.Lost != 0 || s.Stray != 0 || s.Distribution.Samples != uint64(10*batch) || s.Distribution.MedianNanoseconds <= 0 {
			t.Errorf("size %d: %+v", bytes, s)
		}
	}
	// A batch to warm up and ten for each size, each with a ping more, there and back.
	if want := uint64(31 * (batch + 1) * 2); got.Path.Client.Messages != want || got.Path.Server.Messages != want || got.Path.State != latency.PathKernel {
		t.Errorf("the path is %+v, want %d messages through the kernel", got.Path, want)
	}
}

func judgeSetup(t *testing.T, got *latency.Result) {
	t.Helper()
	if got.Outcome.Verdict != latency.Inconclusive || got.Outcome.Reason != latency.ReasonNotAccelerated {
		t.Errorf("the outcome is %+v", got.Outcome)
	}
	if got.Setup.Server.Name != got.Setup.Client.Name || got.Setup.Server.Kernel != got.Setup.Client.Kernel || got.Setup.ClockNanoseconds <= 0 {
		t.Errorf("the setup is %+v", got.Setup)
	}
}

func TestEmptyDatagrams(t *testing.T) {
	port, _, _ := serving(t)
	r := quick(port)
	r.Transport, r.Sizes, r.Timeout = latency.UDP, []int{0, 65507}, time.Minute
	got, err := measure(t, r, latency.Budget{})
	if err != nil || got.Outcome.Verdict != latency.Passed || got.Sizes[0].Distribution.Samples != 1000 || got.Sizes[1].Distribution.Samples != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestTimesAndProgress(t *testing.T) {
	port, _, _ := serving(t)
	r := quick(port)
	r.Sizes, r.RoundTrip, r.MaximumPings = []int{1}, true, 100_000_000
	r.MinimumTime, r.MaximumTime = 1200*time.Millisecond, 1200*time.Millisecond
	r.MaximumPings = 1_000_000
	var times SizeTimes
	var shown Progress
	got, err := Measure(t.Context(), Options{
		Program: os.Getenv(sanitizedVariable), Request: r, Progress: func(p Progress) { shown = p },
		Times: func(s SizeTimes) error { times = s; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if uint64(len(times.Times)) != got.Sizes[0].Distribution.Samples || times.Elapsed < int64(1200*time.Millisecond) {
		t.Errorf("%d times in %d ns", len(times.Times), times.Elapsed)
	}
	expectShown(t, &shown, times.Times)
	full := errors.New("no space left")
	if _, err := Measure(t.Context(), Options{
		Program: os.Getenv(sanitizedVariable), Request: quick(port), Progress: func(Progress) {}, Times: func(SizeTimes) error { return full },
	}); !errors.Is(err, full) {
		t.Errorf("the error is %v", err)
	}
}

// expectShown holds what was shown last of one size against the times that had been taken until then.
func expectShown(t *testing.T, shown *Progress, times []int64) {
	t.Helper()
	if shown.Phase != PhaseOneAtATime || shown.Bytes != 1 || shown.Samples == 0 || shown.Samples > uint64(len(times)) || shown.Sent < shown.Samples {
		t.Fatalf("%+v of %d times", shown, len(times))
	}
	seen := slices.Sorted(slices.Values(times[:shown.Samples]))
	if shown.LongestNanoseconds != seen[len(seen)-1] {
		t.Errorf("the longest is %d, want %d", shown.LongestNanoseconds, seen[len(seen)-1])
	}
	for _, p := range shown.Percentiles {
		want := seen[uint64(float64(len(seen))*p.Percent/100)]
		if p.Nanoseconds < want || float64(p.Nanoseconds) > float64(want)*(1+1.0/32) {
			t.Errorf("%g %% is %d, want %d to a 32nd above it", p.Percent, p.Nanoseconds, want)
		}
	}
}

// TestServerOutlivesStrangers: what sends garbage or says nothing is sent away, and the next client is served.
func TestServerOutlivesStrangers(t *testing.T) {
	port, log, _ := serving(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	for name, text := range map[string]string{
		"a line": "GET / HTTP/1.1\r\n\r\n", "no line": strings.Repeat("x", 10_000), "zeros": "\x00\x00\n", "another version": "lowlatency-traffic 2 TCP Spin -\n",
		"a group that is none": protocolLine + " Multicast Spin 10.0.0.1\n", "more than a line": protocolLine + " TCP Spin - and more\n",
		"frames at a server that has none": protocolLine + " Frames Spin -\n",
	} {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = connection.Write([]byte(text))
		answer, _ := io.ReadAll(connection)
		_ = connection.Close()
		if len(answer) > 0 && !strings.HasPrefix(string(answer), "error ") {
			t.Errorf("%s: the server answers %q", name, answer)
		}
		if want := "error this is the server of " + protocolLine + ", and both ends have to be of one release\n"; name == "another version" && string(answer) != want {
			t.Errorf("the server answers another version with %q", answer)
		}
	}
	if got, err := measure(t, quick(port), latency.Budget{}); err != nil || got.Outcome.Verdict != latency.Passed {
		t.Errorf("%+v, %v: %s", got, err, log)
	}
}

// TestServerOutlivesPartOfAMessage: a client that has sent a part of a large message, and then asks for a smaller one, has its session ended before anything is
// received beyond the room for messages, and the next client is served.
func TestServerOutlivesPartOfAMessage(t *testing.T) {
	port, log, _ := serving(t)
	control, lines, messages := session(t, port, latency.TCP, latency.Block)
	_, _ = io.WriteString(control, "ping 65536 1\n")
	heard(t, lines, "ready")
	_ = messages.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = messages.Write(make([]byte, 65535))
	awaitTaken(t, messages)
	_, _ = io.WriteString(control, "counts\nping 8 1\n")
	_ = control.SetReadDeadline(time.Now().Add(10 * time.Second))
	if answers, err := io.ReadAll(lines); errors.Is(err, os.ErrDeadlineExceeded) || len(answers) > 0 {
		t.Errorf("the session goes on with %q, %v: %s", answers, err, log)
	}
	if got, err := measure(t, quick(port), latency.Budget{}); err != nil || got.Outcome.Verdict != latency.Passed {
		t.Errorf("%+v, %v: %s", got, err, log)
	}
}

// TestServerOfAGroup has its socket of messages at the address of the group: nothing that is sent to another address of its host reaches it.
func TestServerOfAGroup(t *testing.T) {
	port, log, _ := serving(t)
	control := dialed(t, "tcp", port)
	_, _ = fmt.Fprintf(control, "%s Multicast Block 224.1.2.48\n", protocolLine)
	var data int
	if _, err := fmt.Sscanf(heard(t, bufio.NewReader(control), "ok "), "ok %d", &data); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf(" 300201E0:%04X ", data); !strings.Contains(string(table), want) {
		t.Errorf("no socket is at%s(224.1.2.48): %s\n%s", want, log, table)
	}
}

// awaitTaken waits until the peer, a program of this host, has taken what was sent to it: the kernel holds nothing for it any more (Documentation/networking/proc_net_tcp.rst).
func awaitTaken(t *testing.T, connection net.Conn) {
	t.Helper()
	ours, theirs := fmt.Sprintf(":%04X ", connection.LocalAddr().(*net.TCPAddr).Port), fmt.Sprintf(":%04X ", connection.RemoteAddr().(*net.TCPAddr).Port)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		table, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		empty := 0
		for line := range strings.Lines(string(table)) {
			if strings.Contains(line, ours) && strings.Contains(line, theirs) && strings.Contains(line, " 00000000:00000000 ") {
				empty++
			}
		}
		if empty == 2 {
			return
		}
	}
	t.Fatal("the server does not take what was sent to it")
}

// session begins one with a server, as a client does, and gives its control connection, what is heard there, and the connection of messages.
func session(t *testing.T, port int, transport latency.Transport, waiting latency.Waiting) (control net.Conn, lines *bufio.Reader, messages net.Conn) {
	t.Helper()
	control = dialed(t, "tcp", port)
	lines = bufio.NewReader(control)
	_, _ = fmt.Fprintf(control, "%s %s %s -\n", protocolLine, transport, waiting)
	var data int
	if _, err := fmt.Sscanf(heard(t, lines, "ok "), "ok %d", &data); err != nil {
		t.Fatal(err)
	}
	messages = dialed(t, strings.ToLower(string(transport)), data)
	heard(t, lines, "open")
	return control, lines, messages
}

// TestDoubledDatagrams: what the way makes two of is answered and counts once, so that the last message of a batch has its answer, also in the batch after the
// one at whose end there were two; what is late of another size, or of a batch before, counts for nothing. A batch that is whole ends by itself.
func TestDoubledDatagrams(t *testing.T) {
	const batch = 100
	port, log, _ := serving(t)
	control, lines, messages := session(t, port, latency.UDP, latency.Spin)
	sequence := 0
	// Numbers of one byte come round.
	for _, size := range []int{1, 1, 1, 8, 8, 64, 64, 2, 2} {
		_, _ = fmt.Fprintf(control, "ping %d %d\n", size, batch)
		heard(t, lines, "ready")
		for range batch {
			before, message := numbered(size, sequence), numbered(size, sequence+1)
			sequence++
			if !isAnswered(t, messages, message, [][]byte{make([]byte, size+1), before, message, message}, 10*time.Second) {
				t.Fatalf("message %d, of %d bytes, has no answer: %s", sequence, size, log)
			}
		}
		next := numbered(size, sequence+1)
		if isAnswered(t, messages, next, [][]byte{next}, 20*time.Millisecond) {
			t.Errorf("message %d, of %d bytes, is answered before it was asked for", sequence+1, size)
		}
	}
}

// numbered is a message with a number, as far as there is room.
func numbered(size, sequence int) []byte {
	message := make([]byte, max(size, 8))
	binary.LittleEndian.PutUint64(message, uint64(sequence))
	return message[:size]
}

// dialed is a connection to a port of this machine, for as long as the test runs.
func dialed(t *testing.T, network string, port int) net.Conn {
	t.Helper()
	connection, err := net.Dial(network, fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

// heard is the next line that begins with something.
func heard(t *testing.T, lines *bufio.Reader, prefix string) string {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("waiting for %q: %v", prefix, err)
		}
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
}

// isAnswered sends datagrams, and reports whether an answer to one comes in time.
func isAnswered(t *testing.T, to net.Conn, message []byte, all [][]byte, patience time.Duration) bool {
	t.Helper()
	for _, one := range all {
		if _, err := to.Write(one); err != nil {
			t.Fatal(err)
		}
	}
	answer := make([]byte, 2*len(message)+1)
	_ = to.SetReadDeadline(time.Now().Add(patience))
	for {
		n, err := to.Read(answer)
		if err != nil || bytes.Equal(answer[:n], message) {
			return err == nil
		}
	}
}

// hostile is a server that follows the protocol up to where a test says otherwise.
type hostile struct {
	greeting string
	// endless is what it says over and over again after its greeting; "" for nothing.
	endless string
	// answers to pings: what comes back for a message; nil closes the connection.
	answer func(message []byte) []byte
	// counters is what it says of its CPU; "" for that nobody counts there.
	counters string
}

func (h hostile) serve(t *testing.T) int {
	t.Helper()
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	data, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = control.Close(), data.Close() })
	go h.session(control, data)
	return control.Addr().(*net.TCPAddr).Port
}

func (h hostile) session(control, data net.Listener) {
	connection, err := control.Accept()
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	lines := bufio.NewReader(connection)
	_, _ = lines.ReadString('\n')
	if h.greeting != "" {
		h.greet(connection)
		return
	}
	_, _ = fmt.Fprintf(connection, "ok %d 3 far 6.1\nenvironment EF_POLL_USEC=100\nintroduced\n", data.Addr().(*net.TCPAddr).Port)
	messages, err := data.Accept()
	if err != nil {
		return
	}
	defer func() { _ = messages.Close() }()
	_, _ = io.WriteString(connection, "open\n")
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var size, count int
		if line == "counters\n" {
			_, _ = io.WriteString(connection, cmp.Or(h.counters, "counters "+notCounted+"\n"))
			continue
		}
		if _, err := fmt.Sscanf(line, "ping %d %d", &size, &count); err != nil {
			_, _ = io.WriteString(connection, "counts 10 -1 0 0\n")
			continue
		}
		_, _ = io.WriteString(connection, "ready\n")
		message := make([]byte, size)
		for range count {
			if _, err := io.ReadFull(messages, message); err != nil {
				return
			}
			back := h.answer(message)
			if back == nil {
				return
			}
			_, _ = messages.Write(back)
		}
	}
}

// greet says nothing but the greeting, for a minute at most.
func (h hostile) greet(connection net.Conn) {
	_ = connection.SetDeadline(time.Now().Add(time.Minute))
	_, err := io.WriteString(connection, h.greeting)
	for err == nil && h.endless != "" {
		_, err = io.WriteString(connection, h.endless)
	}
	_, _ = io.Copy(io.Discard, connection)
}

func TestHostilePeers(t *testing.T) {
	cases := map[string]struct {
		peer hostile
		want latency.Reason
	}{
		"another service":        {hostile{greeting: "SSH-2.0-OpenSSH_9.2p1\r\n"}, latency.ReasonStranger},
		"no line":                {hostile{greeting: strings.Repeat("x", 10_000)}, latency.ReasonStranger},
		"zeros":                  {hostile{greeting: "ok\x00\x00\n"}, latency.ReasonStranger},
		"a port of nowhere":      {hostile{greeting: "ok 99999 0 far 6.1\n"}, latency.ReasonStranger},
		"a server that will not": {hostile{greeting: "error not \x1b[31mtoday\n"}, latency.ReasonRefused},
		"variables without end":  {hostile{greeting: "ok 9 3 far 6.1\n", endless: strings.Repeat("environment EF_A=b\n", 100)}, latency.ReasonStranger},
		"another answer": {hostile{answer: func(m []byte) []byte {
			changed := bytes.Clone(m)
			changed[len(changed)-1]++
			return changed
		}}, latency.ReasonWrongAnswer},
		"another answer for its CPU": {hostile{answer: bytes.Clone, counters: "counts 10 -1 0 0\n"}, latency.ReasonStranger},
		"garbage of its CPU":         {hostile{answer: bytes.Clone, counters: "counters \x1b[2J{\n"}, latency.ReasonStranger},
		"a CPU of another":           {hostile{answer: bytes.Clone, counters: `counters {"cpu":4,"unknown":"x"}` + "\n"}, latency.ReasonStranger},
		"a wall about its CPU":       {hostile{answer: bytes.Clone, counters: "counters " + strings.Repeat("x", 10_000) + "\n"}, latency.ReasonStranger},
		"a long word about its CPU":  {hostile{answer: bytes.Clone, counters: `counters {"cpu":3,"unknown":"` + strings.Repeat("x", 3500) + "\"}\n"}, latency.ReasonStranger},
		"a peer that vanishes": {hostile{answer: func(m []byte) []byte {
			if len(m) == 64 {
				return nil
			}
			return m
		}}, latency.ReasonPeerVanished},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := measure(t, quick(tc.peer.serve(t)), latency.Budget{Accelerated: true})
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome.Verdict != latency.Inconclusive || got.Outcome.Reason != tc.want || strings.ContainsRune(got.Outcome.Message, '\x1b') {
				t.Errorf("the outcome is %+v, want %s", got.Outcome, tc.want)
			}
			if tc.want == latency.ReasonPeerVanished && len(got.Sizes) != 1 {
				t.Errorf("what was measured before is %d sizes", len(got.Sizes))
			}
		})
	}
}

// TestProgramsThatGoOn: one that prints what cannot be read is ended, and does not hold the measurement for as long as it prints.
func TestProgramsThatGoOn(t *testing.T) {
	for name, tc := range map[string]struct{ prints, want string }{
		"lines that are not known": {"hello", "no such line is known"},
		"variables of a server":    {"environment EF_A=b", "the server names more than 256 variables of its environment"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			script := fmt.Sprintf("echo '%s' && exec yes '%s'", protocolLine, tc.prints)
			if _, err := runClient(ctx, "sh", nil, []string{"-c", script}, func(Progress) {}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestServerThatDoesNotCount(t *testing.T) {
	peer := hostile{answer: func(m []byte) []byte { return m }}
	got, err := measure(t, quick(peer.serve(t)), latency.Budget{Accelerated: true})
	if err != nil || got.Outcome.Reason != latency.ReasonNotAccelerated || got.Path.State != latency.PathUnknown {
		t.Fatalf("%+v, %v", got, err)
	}
	want := latency.Host{Name: "far", Kernel: "6.1", CPU: 3, Environment: []string{"EF_POLL_USEC=100"}}
	if diff := gocmp.Diff(want, got.Setup.Server); diff != "" {
		t.Error(diff)
	}
}

func TestNobodyThere(t *testing.T) {
	port, _, stop := serving(t)
	stop()
	for _, host := range []string{"127.0.0.1", "no-such-host.invalid"} {
		r := quick(port)
		r.Host = host
		got, err := measure(t, r, latency.Budget{})
		if err != nil || got.Outcome.Reason != latency.ReasonUnreachable {
			t.Errorf("%s: %+v, %v", host, got, err)
		}
	}
}

// lying puts a clock before the C library's.
const lying = `#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *t) {
	static int (*real)(clockid_t, struct timespec *); static long calls;
	if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int failed = real(which, t);
	calls++;
	if (which == CLOCK_REALTIME) t->tv_sec += calls > 24000 ? 3600 : 0;
	if (which == CLOCK_MONOTONIC && BACK && calls > 24000) t->tv_sec -= calls % 2 ? 1 : 2;
	if (which == CLOCK_MONOTONIC_RAW && DRIFT && calls > 24000) t->tv_sec += 1;
	return failed;
}
`

// TestKernelSockets: a program without the variables of stacks has none of what is preloaded, here a clock that lies, and says so.
func TestKernelSockets(t *testing.T) {
	port, _, _ := serving(t)
	source, library := filepath.Join(t.TempDir(), "lying.c"), filepath.Join(t.TempDir(), "lying.so")
	if err := os.WriteFile(source, []byte(lying), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "gcc", "-DBACK=1", "-DDRIFT=0", "-shared", "-fPIC", "-o", library, source)
	environment := append(os.Environ(), "LD_PRELOAD="+library, "EF_POLL_USEC=-1", "ZF_ATTR=a", "XLIO_TRACELEVEL=1", "TPX=kept", "EFFECT=kept")
	without := WithoutStacks(environment)
	if diff := gocmp.Diff(append(os.Environ(), "TPX=kept", "EFFECT=kept"), without); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		environment []string
		verdict     latency.Verdict
		variables   int
	}{
		"as it is": {environment, latency.Inconclusive, 4}, "the kernel's": {without, latency.Passed, 0}, "none at all": {WithoutStacks(nil), latency.Passed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Measure(t.Context(), Options{
				Program: run(t, "../../../hack/traffic.sh", "release"), Request: quick(port), Environment: tc.environment, Progress: func(Progress) {},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome.Verdict != tc.verdict || len(got.Setup.Client.Environment) != tc.variables {
				t.Errorf("the outcome is %+v, with %s", got.Outcome, got.Setup.Client.Environment)
			}
		})
	}
}

func TestClocks(t *testing.T) {
	port, _, _ := serving(t)
	folder := t.TempDir()
	source := filepath.Join(folder, "lying.c")
	if err := os.WriteFile(source, []byte(lying), 0o600); err != nil {
		t.Fatal(err)
	}
	release := run(t, "../../../hack/traffic.sh", "release")
	cases := map[string]struct {
		flags   []string
		verdict latency.Verdict
		reason  latency.Reason
	}{
		"the wall clock steps":         {[]string{"-DBACK=0", "-DDRIFT=0"}, latency.Passed, latency.ReasonMeasured},
		"the clock goes back":          {[]string{"-DBACK=1", "-DDRIFT=0"}, latency.Inconclusive, latency.ReasonClockUnsteady},
		"two clocks drift from others": {[]string{"-DBACK=0", "-DDRIFT=1"}, latency.Inconclusive, latency.ReasonClockUnsteady},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			library := filepath.Join(t.TempDir(), "lying.so")
			run(t, "gcc", append(tc.flags, "-shared", "-fPIC", "-o", library, source)...)
			t.Setenv("LD_PRELOAD", library)
			got, err := Measure(t.Context(), Options{Program: release, Request: quick(port), Progress: func(Progress) {}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Outcome.Verdict != tc.verdict || got.Outcome.Reason != tc.reason {
				t.Errorf("the outcome is %+v", got.Outcome)
			}
			// An hour, within what the two readings of the two clocks are apart.
			if remarks := strings.Join(got.Remarks, "\n"); tc.verdict == latency.Passed && !regexp.MustCompile(`stepped by (1h0m0|59m59)\.?\d*s`).MatchString(remarks) {
				t.Errorf("the remarks are %q", remarks)
			}
			if diff := gocmp.Diff([]string{"LD_PRELOAD=" + library}, got.Setup.Client.Environment); diff != "" {
				t.Error(diff)
			}
		})
	}
}
