// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// inFolder makes files in a folder, and gives its path.
func inFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// asJSON is a result as a command writes it.
func asJSON(t *testing.T, result *latency.Result) string {
	t.Helper()
	var text bytes.Buffer
	if err := writeLatencyJSON(&text, result); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// distributed are so many latencies from a shortest one.
func distributed(t *testing.T, n, shortest int64) latency.Distribution {
	t.Helper()
	samples := make([]int64, n)
	for i := range samples {
		samples[i] = shortest + int64(i)
	}
	d, err := latency.Distribute(samples)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// results are one of each command that measures over the network.
func results(t *testing.T) map[string]*latency.Result {
	t.Helper()
	passed := latency.Outcome{Verdict: latency.Passed, Reason: latency.ReasonMeasured, Message: "measured"}
	rate := latency.Rate{
		PerSecond: 1000, AchievedPerSecond: 1000, Bytes: 64, Load: latency.Stream{Sent: 1000}, FromIntended: distributed(t, 1000, 5000), FromActual: distributed(t, 1000, 4000),
	}
	load := &latency.Load{BestPass: 1000, LowestFail: 1010, Confirmed: true, Trials: []latency.Trial{{Phase: latency.PhaseLow, Rate: rate}, {Phase: latency.PhaseConfirm, Rate: rate}}}
	load.Rules = &latency.SearchOptions{Confirm: time.Minute, Budget: latency.Budget{LossPartsPerMillion: new(float64), Limits: []latency.Limit{{Percent: 99, Nanoseconds: 50_000}}}}
	all := map[string]*latency.Result{
		"pingpong": {Kind: latency.KindPingPong, Sizes: []latency.Size{{Bytes: 64, Distribution: distributed(t, 1000, 3000)}}},
		"rate":     {Kind: latency.KindRateSweep, Rates: []latency.Rate{rate}},
		"load":     {Kind: latency.KindLoadSearch, Load: load},
		"recorded": {Kind: latency.KindLoadSearch, Load: load, Generator: "trex v3.04"},
		"samples":  {Kind: latency.KindPingPong, Generator: "zfudppingpong 9.0", Sizes: []latency.Size{{Bytes: 64, Distribution: distributed(t, 1000, 3000)}}},
	}
	for _, one := range all {
		one.Version, one.Outcome = latency.Version, passed
	}
	return all
}

// changed is a copy of a result with a change.
func changed(t *testing.T, result *latency.Result, change func(*latency.Result)) string {
	t.Helper()
	clone := &latency.Result{}
	if err := json.Unmarshal([]byte(asJSON(t, result)), clone); err != nil {
		t.Fatal(err)
	}
	change(clone)
	return asJSON(t, clone)
}

// absolute is a path that does not depend on the folder that a test changes to.
func absolute(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// ofProbe is what a command of the probe prints in a folder, and its error.
func ofProbe(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	t.Chdir(folder)
	var out bytes.Buffer
	command := Command("/")
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&out)
	command.SilenceUsage, command.SilenceErrors = true, true
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCompareLatencies(t *testing.T) {
	files := map[string]string{}
	for command, result := range results(t) {
		files[command+".json"] = asJSON(t, result)
	}
	folder := inFolder(t, files)
	for command, want := range map[string]string{
		"pingpong": "64     ratio                           ~1.00",
		"samples":  "half of the round trip, with one message under way at a time, as zfudppingpong 9.0 has measured it\n",
		"rate":     "\n  1000  ratio                                                  ~1.00   ~1.00\nfrom when they left\n",
		"load":     "ratio   ~1.00      ~1.00",
		"recorded": "recorded runs of trex v3.04, in messages a second\n",
	} {
		t.Run(command, func(t *testing.T) {
			out, err := ofProbe(t, folder, "compare", command+".json", command+".json")
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%q is missing (%v):\n%s", want, err, out)
			}
			if _, err := ofProbe(t, folder, "compare", command+".json", command+".json", "-o", "svg"); err == nil ||
				err.Error() != "-o svg draws results of probe jitter, and "+command+".json is one of probe "+command+": leave it out for a table" {
				t.Errorf("a picture: %v", err)
			}
		})
	}
}

// TestCompareAsJSON: machines get the values of the table, and what of both setups differs. The results have a size or a rate in common, and one of their own.
func TestCompareAsJSON(t *testing.T) {
	files := map[string]string{
		"jitter.json": `{"thresholdNanoseconds": 500, "cpus": [{"cpu": 3, "durationNanoseconds": 1000000000}, {"cpu": 10, "durationNanoseconds": 1000000000, "interruptions": 200, "interruptionsPerSecond": 200,
			"stolenPartsPerMillion": 12.5, "maximumNanoseconds": 7000, "overInterruptions": [{"percent": 50, "nanoseconds": 900}], "countedNanoseconds": 2000000000,
			"counted": [{"kind": "Interrupt", "name": "LOC", "count": 500}, {"kind": "Softirq", "name": "TIMER", "count": 3}]}]}`,
		"jitter-after.json": `{"thresholdNanoseconds": 500, "cpus": [{"cpu": 4, "durationNanoseconds": 1000000000}, {"cpu": 10, "durationNanoseconds": 1000000000, "countedNanoseconds": 1000000000,
			"interruptsFrom": "none"}]}`,
	}
	for command, result := range results(t) {
		result.Setup.Client = latency.Host{Name: "near", CPU: -1}
		result.Setup.RoundTrip = result.Kind == latency.KindPingPong
		files[command+".json"] = asJSON(t, result)
		files[command+"-after.json"] = changed(t, result, func(r *latency.Result) {
			r.Setup.Client.CPU, r.Outcome = 4, latency.Outcome{Verdict: latency.Failed, Reason: latency.ReasonOverBudget, Message: "over"}
			switch r.Kind {
			case latency.KindPingPong:
				r.Sizes = append([]latency.Size{{Bytes: 128, Lost: 2}}, r.Sizes...)
				r.Sizes[1].Distribution = distributed(t, 1000, 6000)
			case latency.KindRateSweep:
				r.Rates = append(r.Rates, r.Rates[0], r.Rates[0])
				r.Rates[0].FromIntended, r.Rates[0].Late = distributed(t, 1000, 5100), 9
				r.Rates[1].PerSecond, r.Rates[2].PerSecond, r.Rates[2].Bytes = 2000, 1000, 128
			default:
				r.Load.BestPass, r.Load.LowestFail = 2000, 0
				r.Load.Rules.Budget = latency.Budget{LossPartsPerMillion: new(1000.0)}
			}
		})
	}
	folder, goldens := inFolder(t, files), absolute(t, "testdata")
	for _, command := range []string{"jitter", "pingpong", "rate", "load", "recorded"} {
		t.Run(command, func(t *testing.T) {
			out, err := ofProbe(t, folder, "compare", command+".json", command+"-after.json", "-o", "json")
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, out, filepath.Join(goldens, "compare-"+command+".json"))
		})
	}
}

// TestCompareWithoutRules: that an earlier version saved no rules is not that they are the same.
func TestCompareWithoutRules(t *testing.T) {
	folder := inFolder(t, map[string]string{
		"after.json": asJSON(t, results(t)["load"]), "before.json": changed(t, results(t)["load"], func(r *latency.Result) { r.Load.Rules = nil }),
	})
	if out, err := ofProbe(t, folder, "compare", "before.json", "after.json"); err != nil || !strings.Contains(out, "\nbefore: a version before this one did not save the rules") {
		t.Errorf("%v:\n%s", err, out)
	}
	if out, err := ofProbe(t, folder, "compare", "before.json", "after.json", "-o", "json"); err != nil || strings.Count(out, `"rules": null`) != 1 || !strings.Contains(out, `"differences": []`) {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestCompareTellsKindsApart(t *testing.T) {
	files := map[string]string{"jitter.json": `{"cpus": [{"cpu": 3, "durationNanoseconds": 1000000000}]}`}
	for command, result := range results(t) {
		files[command+".json"] = asJSON(t, result)
	}
	folder := inFolder(t, files)
	for before := range files {
		for after := range files {
			_, err := ofProbe(t, folder, "compare", before, after)
			want := before + " is a result of probe " + strings.TrimSuffix(before, ".json") + " and " + after + " one of probe " + strings.TrimSuffix(after, ".json") +
				": compare two of the same command"
			if pair := []string{before, after}; slices.Contains(pair, "pingpong.json") && slices.Contains(pair, "samples.json") {
				want += ", or put both into one table with probe stacks"
			}
			if before == after && err != nil || before != after && (err == nil || err.Error() != want) {
				t.Errorf("%s and %s: %v", before, after, err)
			}
		}
	}
}

// TestCompareRefuses: what is no result, or none that can be compared, gets one sentence with the name of the file.
func TestCompareRefuses(t *testing.T) {
	all := results(t)
	good := map[string]string{"pingpong": asJSON(t, all["pingpong"]), "rate": asJSON(t, all["rate"]), "recorded": asJSON(t, all["recorded"])}
	cases := map[string]struct{ before, after, want string }{
		"an empty file":       {good["pingpong"], " \n", "after.json is no result of a probe command with -o json: it is empty"},
		"a table":             {"# pingpong with 10.0.0.2\n", good["pingpong"], "before.json is no result of a probe command with -o json: it is not JSON: invalid character '#' looking for beginning of value"},
		"cut short":           {good["pingpong"][:len(good["pingpong"])-30], good["pingpong"], "before.json is no result of a probe command with -o json: it is cut short"},
		"two of them":         {good["pingpong"] + good["pingpong"], good["pingpong"], "before.json is no result of a probe command with -o json: there is more behind its end"},
		"a list":              {"[1]", good["pingpong"], "before.json is no result of a probe command with -o json: it is of another type (array)"},
		"nothing":             {"null", good["pingpong"], "before.json is no result of a probe command with -o json: it has neither kind nor cpus"},
		"another kind":        {`{"version": 1, "kind": "Walk"}`, good["pingpong"], `before.json is no result that this program knows: its kind is "Walk"`},
		"a kind for a screen": {`{"kind": "\u001b[2J"}`, good["pingpong"], `before.json is no result that this program knows: its kind is "\x1b[2J"`},
		"a LatencyTest": {`{"apiVersion": "lowlatency.dev/v1alpha1", "kind": "LatencyTest"}`, good["pingpong"],
			`before.json is an object of Kubernetes, of kind "LatencyTest": saved LatencyTests are compared by test compare`},
		"a later version": {changed(t, all["pingpong"], func(r *latency.Result) { r.Version = 2 }), good["pingpong"],
			"before.json is of version 2 of the form of results, and this program reads version 1"},
		"no version": {good["rate"], changed(t, all["rate"], func(r *latency.Result) { r.Version = 0 }), "after.json is no result of probe rate -o json: it has no version"},
		"a text for a number": {strings.Replace(good["pingpong"], `"bytes": 64`, `"bytes": "64"`, 1), good["pingpong"],
			"before.json is no result of probe pingpong -o json: sizes.bytes is of another type (string)"},
		"nothing measured": {good["rate"], changed(t, all["rate"], func(r *latency.Result) { r.Rates, r.Outcome.Reason = nil, latency.ReasonUnreachable }),
			`after.json is no result of probe rate -o json: it has no rates, since it ended as "Unreachable"`},
		"other sizes": {changed(t, all["pingpong"], func(r *latency.Result) {
			for bytes := range 6 {
				r.Sizes = append(r.Sizes, latency.Size{Bytes: bytes})
			}
		}), changed(t, all["pingpong"], func(r *latency.Result) { r.Sizes[0].Bytes = 65 }),
			"before.json has messages of 64, 0, 1, 2, 3 and 2 more bytes and after.json of 65: there is no size that both have"},
		"other rates": {good["rate"], changed(t, all["rate"], func(r *latency.Result) { r.Rates[0].PerSecond = 7 }),
			"before.json has 1000 a second of 64 bytes and after.json 7 a second of 64 bytes: there is no rate of messages of one size that both have"},
		"messages of another size": {good["rate"], changed(t, all["rate"], func(r *latency.Result) { r.Rates[0].Bytes = 7 }),
			"before.json has 1000 a second of 64 bytes and after.json 1000 a second of 7 bytes: there is no rate of messages of one size that both have"},
		"half and whole": {good["pingpong"], changed(t, all["pingpong"], func(r *latency.Result) { r.Setup.RoundTrip = true }),
			"before.json has latencies of half of the round trip and after.json of the round trip: measure both with the same --report"},
		"one way and whole": {changed(t, all["rate"], func(r *latency.Result) { r.Setup.RoundTrip = true }), good["rate"],
			"before.json has latencies of the round trip and after.json of an estimate of one way: measure both with the same --report"},
		"two generators": {good["recorded"], changed(t, all["recorded"], func(r *latency.Result) { r.Generator = "trex v2.87" }),
			`before.json has runs of "trex v3.04" and after.json of "trex v2.87": compare runs of one generator and version`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			folder := inFolder(t, map[string]string{"before.json": tc.before, "after.json": tc.after})
			out, err := ofProbe(t, folder, "compare", "before.json", "after.json")
			if err == nil || err.Error() != tc.want || out != "" {
				t.Errorf("the error is\n%v, want\n%s\n%s", err, tc.want, out)
			}
		})
	}
}

// TestComparedTextIsHarmless: a file is somebody else's word.
func TestComparedTextIsHarmless(t *testing.T) {
	folder := inFolder(t, map[string]string{
		"before.json": asJSON(t, results(t)["pingpong"]), "after.json": changed(t, results(t)["pingpong"], func(r *latency.Result) { r.Setup.Client.Name = "near\x1b[2J" }),
	})
	if out, err := ofProbe(t, folder, "compare", "before.json", "after.json"); err != nil || strings.Contains(out, "\x1b") || !strings.Contains(out, "near") {
		t.Errorf("%v: %q", err, out)
	}
}

// TestTextIsHarmless: the server says how it and its environment are called.
func TestTextIsHarmless(t *testing.T) {
	saved, err := parseSaved("after.json", []byte(changed(t, results(t)["pingpong"], func(r *latency.Result) {
		r.Setup.Server.Name, r.Setup.Server.Environment = "far\x1b[2J", []string{"EF_LOG=\x1b]0;owned\a"}
	})))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeLatencyText(&out, saved.latency); err != nil || strings.ContainsAny(out.String(), "\x1b\a") || !strings.Contains(out.String(), "EF_LOG=") {
		t.Errorf("%v: %q", err, out.String())
	}
}

// FuzzSaved: whatever a file holds, it is refused, or compared with itself without a difference.
func FuzzSaved(f *testing.F) {
	f.Add([]byte(`{"cpus": [{"cpu": 3, "durationNanoseconds": 1000000000}]}`))
	f.Add([]byte(`{"version": 1, "kind": "PingPong", "sizes": [{"bytes": 64, "distribution": {"samples": 200, "percentiles": [{"percent": 50, "nanoseconds": 7, "highNanoseconds": 9}]}}]}`))
	f.Add([]byte(`{"version": 1, "kind": "RateSweep", "rates": [{"perSecond": 7, "achievedPerSecond": 7, "fromIntended": {"samples": 1}}]}`))
	f.Add([]byte(`{"version": 1, "kind": "LoadSearch", "generator": "trex v3.04", "load": {"bestPass": 7, "lowestFail": 8, "trials": [{"rate": {"perSecond": 7}}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		one, err := parseSaved("one.json", data)
		if err != nil || one.latency == nil {
			return
		}
		out, err := comparedLatency(one, one, "text")
		if err != nil || !utf8.ValidString(out) || strings.Contains(out, "WHAT ELSE DIFFERS") {
			t.Errorf("%v:\n%s", err, out)
		}
		if out, err := comparedLatency(one, one, "json"); err != nil || !json.Valid([]byte(out)) || !strings.Contains(out, `"differences": []`) {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}
