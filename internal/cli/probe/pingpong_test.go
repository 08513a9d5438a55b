// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/transcript"
)

// trafficProgram builds the program that sends messages.
func trafficProgram(t *testing.T) string {
	t.Helper()
	// What a test reads itself, its result depends on.
	for _, name := range []string{"traffic.c", "frames.c", "frames.h", "stamps.c", "stamps.h"} {
		if _, err := os.ReadFile("../../../cmd/lowlatency-traffic/" + name); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("../../../hack/traffic.sh", "release")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("building lowlatency-traffic: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// served starts the command's server, and gives its port once it says it.
func served(t *testing.T) (port string) {
	t.Helper()
	return servedOf(t, "/")
}

// servedOf is served by a command that finds the root of this host there.
func servedOf(t *testing.T, root string) (port string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	said, ended := &transcript.Transcript{}, make(chan error, 1)
	command := Command(root)
	command.SetArgs([]string{"pingpong", "--server", "--program", trafficProgram(t), "--address", "127.0.0.1", "--port", "0"})
	command.SetOut(said)
	command.SetErr(said)
	go func() { ended <- command.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for {
		if found := regexp.MustCompile(`(?m)^port (\d+)$`).FindStringSubmatch(said.String()); found != nil {
			return found[1]
		}
		select {
		case err := <-ended:
			t.Fatalf("the server has ended: %v: %s", err, said)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// TestWithoutHost: on no CPU nothing is counted, so that the root of the host may be missing, as in a container without it.
func TestWithoutHost(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "host")
	out, err := client(t, few(t, servedOf(t, missing), "--root", missing)...)
	if err != nil || !strings.Contains(out, "# not counted on the CPU of the server: the server is kept to no CPU") {
		t.Errorf("%v: %s", err, out)
	}
}

// client runs a measurement.
func client(t *testing.T, arguments ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := Command("/")
	command.SilenceUsage = true
	command.SetArgs(arguments)
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	err = command.ExecuteContext(t.Context())
	return stdout.String(), err
}

// few are the arguments of a short ping-pong with a server on this machine.
func few(t *testing.T, port string, more ...string) []string {
	return append([]string{
		"pingpong", "--client", "127.0.0.1", "--program", trafficProgram(t), "--port", port, "--sizes", "1,64", "--wait", "block", "--warm-up", "0", "--warm-up-messages", "10",
		"--batch", "100", "--minimum-time", "0", "--maximum-time", "1m", "--maximum-messages", "300", "--timeout", "1m",
	}, more...)
}

func TestPingPongForms(t *testing.T) {
	port := served(t)
	out, err := client(t, few(t, port, "--transport", "udp", "-o", "json")...)
	var result latency.Result
	if err != nil || json.Unmarshal([]byte(out), &result) != nil || len(result.Sizes) != 2 || result.Setup.Transport != latency.UDP || result.Version != latency.Version {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := client(t, few(t, port)...); err != nil || !strings.Contains(out, "# outcome: Passed (Measured)") || !strings.Contains(out, "# path: Kernel") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPingPongLogs(t *testing.T) {
	port := served(t)
	out, err := client(t, few(t, port, "-o", "csv", "--report", "round-trip")...)
	if err != nil || !regexp.MustCompile(`(?m)^bytes,rate,what,nanoseconds,low,high,samples,trial,phase,verdict,latencies,count\n1,,minimum,\d+,,,300,,,,the round trip,\n1,,mean,[\d.]+,,,300,.*\n1,,50%,\d+,\d+,\d+,300,.*\n1,,maximum,`).MatchString(out) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = client(t, few(t, port, "-o", "hdr")...)
	if err != nil {
		t.Fatal(err)
	}
	logged := hdrhistogram.NewHistogramLogReader(strings.NewReader(out))
	for _, tag := range []string{"1bytes", "64bytes"} {
		one, err := logged.NextIntervalHistogram()
		if err != nil || one.TotalCount() != 300 || one.Tag() != tag {
			t.Fatalf("%s: %v, %+v: %s", tag, err, one, out)
		}
	}
}

func TestPingPongStamps(t *testing.T) {
	port := served(t)
	out, err := client(t, few(t, port, "--transport", "udp", "--timestamps", "kernel")...)
	if want := regexp.MustCompile(`(?m)^# stamps: kernel, at interface lo, [^\n]*\n[^\n]*\n[^\n]*\n *#1  wire +\d+ [^\n]*  300        0\n *#1  host  `); err != nil || !want.MatchString(out) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = client(t, few(t, port, "--timestamps", "kernel", "-o", "csv")...)
	if want := regexp.MustCompile(`(?m)^1,,maximum,.*\n1,,wire minimum,\d+,,,300,.*\n(.*\n)*1,,host 50%,\d+,\d+,\d*,300,.*\n(.*\n)*64,,minimum,`); err != nil || !want.MatchString(out) {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPingPongTimes(t *testing.T) {
	port, path := served(t), filepath.Join(t.TempDir(), "times")
	if _, err := client(t, few(t, port, "--times", path)...); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 600 || !regexp.MustCompile(`(?m)^64\t\d+$`).Match(text) {
		t.Errorf("%v: %d lines", err, strings.Count(string(text), "\n"))
	}
	if _, err := client(t, few(t, port, "--times", "/dev/full")...); err == nil || !strings.Contains(err.Error(), "no space left on device") {
		t.Errorf("on a full disk: %v", err)
	}
}

// TestTimesOfRefusedMeasurements: what cannot be measured costs nobody the times of an earlier measurement; one that is made replaces all of them.
func TestTimesOfRefusedMeasurements(t *testing.T) {
	const earlier = "64\t12345\n"
	path := filepath.Join(t.TempDir(), "times")
	unmeasured := []string{"pingpong", "--client", "127.0.0.1", "--program", trafficProgram(t), "--times", path}
	for name, arguments := range map[string][]string{
		"a wrong size":  {"--sizes", "1,99999999"},
		"no server":     {"--port", "1"},
		"stamps beside": {"--timestamps", "kernel", "--accelerated"},
	} {
		if err := os.WriteFile(path, []byte(earlier), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := client(t, append(unmeasured, arguments...)...); err == nil {
			t.Errorf("%s: measured", name)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != earlier {
			t.Errorf("%s: %v, the file has %q", name, err, text)
		}
	}
	expectTimesReplaced(t, path, strings.Repeat(earlier, 5000))
}

// expectTimesReplaced refuses a measurement, which leaves no file, and wants one that is made to leave its own times alone.
func expectTimesReplaced(t *testing.T, path, earlier string) {
	t.Helper()
	fresh := filepath.Join(t.TempDir(), "fresh")
	if _, err := client(t, "pingpong", "--client", "127.0.0.1", "--program", "x", "--sizes", "99999999", "--times", fresh); err == nil {
		t.Error("a wrong size is measured")
	}
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a refused measurement leaves a file: %v", err)
	}
	if err := os.WriteFile(path, []byte(earlier), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, few(t, served(t), "--times", path)...); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 600 {
		t.Errorf("%v: %d lines", err, strings.Count(string(text), "\n"))
	}
}

// TestNobodyThere: whatever the form, a measurement without a server is one that cannot be judged, and says so.
func TestNobodyThere(t *testing.T) {
	for _, kind := range []string{"pingpong", "rate", "load"} {
		for _, form := range latencyOutput().Allowed {
			out, err := client(t, kind, "--client", "127.0.0.1", "--port", "1", "--program", trafficProgram(t), "-o", form)
			if err == nil || !strings.HasPrefix(err.Error(), "inconclusive (Unreachable): ") || ExitCode(err, 2) != 3 || out == "" {
				t.Errorf("%s -o %s ends with %d: %v\n%s", kind, form, ExitCode(err, 2), err, out)
			}
		}
	}
}

func TestPingPongOnAFullDisk(t *testing.T) {
	port := served(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	for _, form := range []string{"text", "json", "csv", "hdr"} {
		command := Command("/")
		command.SetArgs(few(t, port, "-o", form))
		command.SetOut(full)
		command.SetErr(&bytes.Buffer{})
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "writing the result: ") {
			t.Errorf("%s: %v", form, err)
		}
	}
}

func TestPingPongBudget(t *testing.T) {
	port := served(t)
	cases := map[string]struct {
		flags []string
		want  string
	}{
		"over":     {[]string{"--limit", "50=1ns", "--loss", "0"}, "failed (OverBudget): 1 bytes: 50 % is "},
		"the most": {[]string{"--maximum", "1ns"}, "failed (OverBudget): 1 bytes: the maximum is "},
		"too few":  {[]string{"--limit", "99.9%=1m"}, "inconclusive (TooFewSamples): 1 bytes: 300 samples do not carry 99.9 %"},
		"kernel":   {[]string{"--accelerated"}, "inconclusive (NotAccelerated): the path was not accelerated"},
	}
	for name, tc := range cases {
		out, err := client(t, few(t, port, tc.flags...)...)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || !strings.Contains(out, "# outcome: ") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

func TestPingPongRefuses(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"neither":       {nil, "say either --server"},
		"both":          {[]string{"--server", "--client", "far"}, "say either --server"},
		"a limit":       {[]string{"--client", "far", "--limit", "99.5=1us"}, "a limit is PERCENT=LATENCY"},
		"less than 0":   {[]string{"--client", "far", "--maximum", "-1s"}, "not negative"},
		"no program":    {[]string{"--client", "far"}, "build it with make traffic"},
		"a size":        {[]string{"--client", "far", "--sizes", "0", "--program", "x"}, "1 to 65536 bytes"},
		"another file":  {[]string{"--client", "far", "--program", "/dev/null"}, "permission denied"},
		"no such file":  {[]string{"--client", "far", "--program", "/no/such"}, "no such file"},
		"others' words": {[]string{"--client", "far", "--program", "/bin/echo"}, "it is another version"},
		"whose stamps":  {[]string{"--client", "far", "--timestamps", "sundial"}, "sundial"},
		"past stamps":   {[]string{"--client", "127.0.0.1", "--program", "x", "--timestamps", "kernel", "--accelerated"}, "stamps: an accelerated path passes by"},
		"no folder":     {[]string{"--client", "far", "--program", "x", "--times", "/no/such/file"}, "no such file"},
		"no address":    {[]string{"--server", "--address", "nowhere", "--program", trafficProgram(t)}, "the server has ended"},
	}
	t.Setenv("PATH", t.TempDir())
	for name, tc := range cases {
		if _, err := client(t, append([]string{"pingpong"}, tc.arguments...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}
