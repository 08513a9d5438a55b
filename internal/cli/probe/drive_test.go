// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency/recorded"
)

// trialProgram is a program in the place of TRex, with numbers that are made up: what receives takes 40000 messages a second, and above 30000 its queue grows.
// It sends a thousandth less than it is to, as generators do whose clocks start before their first message.
const trialProgram = `#!/bin/sh
rate=$1 seconds=$2
echo "$rate $seconds" >>"$0.trials"
sent=$((rate * seconds * 999 / 1000)) received=$sent microseconds=10
[ "$rate" -le 40000 ] || received=$((40000 * seconds))
[ "$rate" -le 30000 ] || microseconds=900
printf '{"server": {"version": "v3.04"}, "stats": {"total": {"opackets": %d, "ipackets": %d}, "latency": {"5": {"err_cntrs": {"dropped": 0}, "latency": {"histogram": {"%d": 10000}}}}}}' \
  "$sent" "$received" "$microseconds"
`

// generatorProgram writes a program, and returns its path.
func generatorProgram(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trial.sh")
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // A program is run.
		t.Fatal(err)
	}
	return file
}

// drive runs the command with short trials.
func drive(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	command := driveCommand()
	command.SetArgs(append([]string{"--sniff", "1s", "--search", "1s", "--confirm", "3s"}, args...))
	command.SetOut(&out)
	command.SetErr(&bytes.Buffer{})
	command.SilenceUsage, command.SilenceErrors = true, true
	err := command.ExecuteContext(ctx)
	return out.String(), err
}

// TestDrive: the search finds where messages are lost, and where latencies grow before that, and confirms the rate by a run that is long enough.
func TestDrive(t *testing.T) {
	for name, tc := range map[string]struct {
		args     []string
		capacity uint64
	}{
		"latencies that grow": {nil, 30_000},
		"a loss":              {[]string{"--growth", "0"}, 40_000},
	} {
		t.Run(name, func(t *testing.T) {
			program := generatorProgram(t, trialProgram)
			text, err := drive(t.Context(), append(tc.args, "-o", "json", "--", program, ratePlace, secondsPlace)...)
			if err != nil {
				t.Fatal(err)
			}
			var result latency.Result
			if err := json.Unmarshal([]byte(text), &result); err != nil {
				t.Fatal(err)
			}
			load := result.Load
			if load.BestPass > tc.capacity || load.LowestFail <= tc.capacity || float64(load.LowestFail) > 1.01*float64(load.BestPass) || !load.Confirmed {
				t.Errorf("best pass %d, lowest fail %d, confirmed %t", load.BestPass, load.LowestFail, load.Confirmed)
			}
			if result.Generator != "trex v3.04" {
				t.Errorf("the generator is %q", result.Generator)
			}
			expectRuns(t, program, load)
		})
	}
}

// expectRuns wants the program to have run once for each trial, the last time to confirm the best rate.
func expectRuns(t *testing.T, program string, load *latency.Load) {
	t.Helper()
	trials, err := os.ReadFile(program + ".trials")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(trials)), "\n")
	if want := strconv.FormatUint(load.BestPass, 10) + " 3"; len(lines) != len(load.Trials) || lines[len(lines)-1] != want {
		t.Errorf("%d runs for %d trials, the last %q, want %q", len(lines), len(load.Trials), lines[len(lines)-1], want)
	}
}

func TestDriveRefuses(t *testing.T) {
	program := generatorProgram(t, trialProgram)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no program":             {nil, "name the program"},
		"a program alone":        {[]string{"--", program}, "no argument of " + program + " has {rate}"},
		"no time":                {[]string{"--", program, ratePlace}, "has {seconds}"},
		"no such program":        {[]string{"--", "/nowhere", ratePlace, secondsPlace}, "/nowhere at 1000 messages a second"},
		"one that fails":         {[]string{"--", generatorProgram(t, "#!/bin/sh\necho no port >&2\nexit 3\n"), ratePlace, secondsPlace}, "exit status 3: it said: no port"},
		"one that prints else":   {[]string{"--", generatorProgram(t, "#!/bin/sh\necho fine\n"), ratePlace, secondsPlace}, "at 1000 messages a second: "},
		"one that prints much":   {[]string{"--", "sh", "-c", "head -c 70000000 /dev/zero", ratePlace, secondsPlace}, "it has printed more than the 67108864 bytes of the longest record"},
		"rates that descend":     {[]string{"--minimum", "5", "--start", "2", "--", program, ratePlace, secondsPlace}, "the least, the first and the most ascend"},
		"another percentile":     {[]string{"--growth-percentile", "95", "--", program, ratePlace, secondsPlace}, "the growth of 95 %: it is of one of the percentiles"},
		"histograms of none":     {[]string{"--generator", "testpmd", "-o", "hdr", "--", "/nowhere", ratePlace, secondsPlace}, "-o hdr: testpmd takes no latencies"},
		"a limit without number": {[]string{"--limit", "x", "--", program, ratePlace, secondsPlace}, "--limit x"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := drive(t.Context(), tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestDriveWithoutHistograms: that there are none is told after the first run, and not after all.
func TestDriveWithoutHistograms(t *testing.T) {
	program := generatorProgram(t, trialProgram)
	if out, err := drive(t.Context(), "-o", "hdr", "--", program, ratePlace, secondsPlace); err == nil || !strings.Contains(err.Error(), "-o hdr: the first run has no HDR histogram") || out != "" {
		t.Errorf("%v: %s", err, out)
	}
	if trials, err := os.ReadFile(program + ".trials"); err != nil || strings.Count(string(trials), "\n") != 1 {
		t.Errorf("%v: the trials are\n%s", err, trials)
	}
}

// TestRunsOfHistograms: a search goes on where its first run has a histogram, or no message of it came back, and where other forms are wanted.
func TestRunsOfHistograms(t *testing.T) {
	for name, tc := range map[string]struct {
		form  string
		phase latency.Phase
		rate  latency.Rate
		isBad bool
	}{
		"one":            {"hdr", latency.PhaseLow, latency.Rate{AnswersWanted: 3, FromIntended: latency.Distribution{Samples: 3, HDR: "x"}}, false},
		"none":           {"hdr", latency.PhaseLow, latency.Rate{AnswersWanted: 3, FromIntended: latency.Distribution{Samples: 3}}, true},
		"some lost":      {"hdr", latency.PhaseLow, latency.Rate{AnswersWanted: 4, AnswersLost: 1, FromIntended: latency.Distribution{Samples: 3}}, true},
		"no latencies":   {"hdr", latency.PhaseLow, latency.Rate{}, true},
		"all lost":       {"hdr", latency.PhaseLow, latency.Rate{AnswersWanted: 3, AnswersLost: 3}, false},
		"a later run":    {"hdr", latency.PhaseSearch, latency.Rate{}, false},
		"another form":   {"json", latency.PhaseLow, latency.Rate{}, false},
		"a confirmation": {"hdr", latency.PhaseConfirm, latency.Rate{}, false},
	} {
		flags := &driveFlags{output: recordedForms()}
		flags.output.Value = tc.form
		run := &recorded.Run{}
		run.Rate = tc.rate
		if err := flags.checkRun(run, tc.phase); (err != nil) != tc.isBad {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDriveJudges: what the search cannot know is no pass.
func TestDriveJudges(t *testing.T) {
	slow := strings.Replace(trialProgram, "sent=$((rate * seconds * 999 / 1000))", "sent=$((rate * seconds)); [ $rate -le 20000 ] || sent=$((20000 * seconds))\n", 1)
	for name, tc := range map[string]struct {
		program string
		args    []string
		want    string
	}{
		"the generator does not reach the rate": {slow, nil, "inconclusive (GeneratorLimit)"},
		"every rate passes":                     {trialProgram, []string{"--highest", "20000"}, "inconclusive (GeneratorLimit)"},
		"less than is asked for":                {trialProgram, []string{"--at-least", "50000"}, "failed (Rate)"},
		"not even the least rate":               {strings.Replace(trialProgram, "-le 40000 ", "-le 4 ", 1), []string{"--loss", "0", "--minimum", "50000", "--start", "50000"}, "no rate passed"},
	} {
		t.Run(name, func(t *testing.T) {
			program := generatorProgram(t, tc.program)
			if _, err := drive(t.Context(), append(tc.args, "--", program, ratePlace, secondsPlace)...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestDriveStops: a program that is interrupted has time to stop the generator that it has started.
func TestDriveStops(t *testing.T) {
	program := generatorProgram(t, "#!/bin/sh\nsleep 600 &\ntrap 'kill $!; touch \"$0.stopped\"; exit 1' INT\ntouch \"$0.started\"\nwait\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(program + ".started"); err == nil {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if _, err := drive(ctx, "--", program, ratePlace, secondsPlace); err == nil {
		t.Error("an interrupted search has a result")
	}
	if _, err := os.Stat(program + ".stopped"); err != nil {
		t.Errorf("the program could not stop what it had started: %v", err)
	}
}

// TestDriveEnds: whoever interrupts the command ends the program, too.
func TestDriveEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := drive(ctx, "--", "sh", "-c", "exec sleep 600", ratePlace, secondsPlace); err == nil {
		t.Error("an interrupted search has a result")
	}
}
