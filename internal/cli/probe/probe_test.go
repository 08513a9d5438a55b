// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// isolatingHost is the tree of a host with isolated CPUs.
func isolatingHost(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := hosttree.Xeon().Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := hosttree.Boot(dir, hosttree.BootOptions{CommandLine: "isolcpus=domain,managed_irq,4-7"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func probe(t *testing.T, arguments ...string) (out, progress string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command := Command("/host")
	command.SetArgs(append([]string{"jitter"}, arguments...))
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestProbeSaysWhatItWouldDo(t *testing.T) {
	out, progress, err := probe(t, "--root", isolatingHost(t), "--dry-run", "--duration", "30s")
	if err != nil || out != "" {
		t.Fatalf("a dry run gives %q, %v", out, err)
	}
	if want := "measuring CPUs 4-7 for 30s after a warm-up of 1s, controlled from CPUs 0-3,8-"; !strings.HasPrefix(progress, want) {
		t.Errorf("a dry run says %q, want %q", progress, want)
	}
}

func TestProbeRefuses(t *testing.T) {
	root := isolatingHost(t)
	kubelet := isolatingHost(t)
	socket := filepath.Join(kubelet, "var/lib/kubelet/pod-resources")
	if err := os.MkdirAll(socket, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(socket, "kubelet.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown form":             {[]string{"--root", root, "-o", "yaml"}, "must be one of text, json, svg"},
		"a list that is none":         {[]string{"--root", root, "--cpus", "4-"}, "--cpus: "},
		"no host":                     {[]string{"--root", "/does/not/exist"}, "/does/not/exist"},
		"a CPU that is not online":    {[]string{"--root", root, "--cpus", "4000"}, "CPU 4000 is not online"},
		"a duration of nothing":       {[]string{"--root", root, "--duration", "0s"}, "the duration 0s"},
		"a kubelet that says nothing": {[]string{"--root", kubelet, "--dry-run"}, "the probe never runs on those"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, _, err := probe(t, tc.arguments...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestProgressIsShownEveryFewSeconds(t *testing.T) {
	var out bytes.Buffer
	show := showProgress(&out, 5*time.Second)
	for passed := time.Duration(0); passed <= 6*time.Second; passed += 100 * time.Millisecond {
		show(passed)
	}
	if want := "2s of 5s\n4s of 5s\n"; out.String() != want {
		t.Errorf("progress is %q, want %q", out.String(), want)
	}
}

func TestResultsAreWritten(t *testing.T) {
	result := &jitter.Result{Scheduling: "SCHED_OTHER", CPUs: []jitter.CPUResult{{CPU: 3}}}
	var text, encoded, plot bytes.Buffer
	if err := writeText(&text, result); err != nil || !strings.Contains(text.String(), "SCHED_OTHER") {
		t.Errorf("the text is %q, %v", text.String(), err)
	}
	var decoded jitter.Result
	if err := writeJSON(&encoded, result); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal(encoded.Bytes(), &decoded); err != nil || decoded.CPUs[0].CPU != 3 {
		t.Errorf("the JSON is %s, %v", encoded.String(), err)
	}
	if err := writePlot(&plot, result); err != nil || !strings.HasPrefix(plot.String(), "<svg") {
		t.Errorf("the plot is %q, %v", plot.String(), err)
	}
}

func TestCompare(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	before := file("before.json", `{"thresholdNanoseconds": 500, "cpus": [{"cpu": 3, "durationNanoseconds": 1000000000, "interruptionsPerSecond": 250}]}`)
	after := file("after.json", `{"thresholdNanoseconds": 500, "cpus": [{"cpu": 3, "durationNanoseconds": 1000000000}]}`)
	nothing := file("nothing.json", `{}`)
	none := file("none-measured.json", `{"cpus": []}`)
	edited := file("edited.json", `{"cpus": [{"cpu": 3, "durationNanoseconds": -1}]}`)
	cases := map[string]struct {
		args []string
		out  string
		err  string
	}{
		"as text":            {args: []string{before, after}, out: "3    before  250.0"},
		"as a picture":       {args: []string{before, after, "-o", "svg"}, out: "CPU 3 after"},
		"one file":           {args: []string{before}, err: "BEFORE and AFTER; there are 1"},
		"a file of others":   {args: []string{before, nothing}, err: nothing + " is no result of a probe command with -o json: it has neither kind nor cpus"},
		"no CPU":             {args: []string{before, none}, err: none + " is no result of probe jitter -o json: it has no cpus"},
		"an edited file":     {args: []string{before, edited}, err: edited + " is no result of probe jitter -o json: CPU 3: durationNanoseconds is -1: nothing was measured"},
		"a file that is not": {args: []string{folder + "/none", after}, err: "no such file or directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			command := Command("/")
			command.SetArgs(append([]string{"compare"}, tc.args...))
			command.SetOut(&out)
			command.SetErr(&out)
			err := command.ExecuteContext(t.Context())
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("the error is %v, want %q", err, tc.err)
			}
			if !strings.Contains(out.String(), tc.out) {
				t.Errorf("%q is missing in:\n%s", tc.out, out.String())
			}
		})
	}
}

// TestLatencyTestLeavesARecord: the program of a LatencyTest's pod says in its record why it could not measure, and does not fail.
func TestLatencyTestLeavesARecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "record")
	command := Command("/host")
	command.SetArgs([]string{"latencytest", "--own", "4095", "--duration", "1s", "--record", file})
	var said bytes.Buffer
	command.SetOut(&said)
	command.SetErr(&said)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	record, err := qualification.Parse(string(text))
	if err != nil || record.Problem == nil || record.Problem.Reason != v1alpha1.TestNotExclusive {
		t.Errorf("the record is %s (%v)", text, err)
	}
	if !strings.Contains(said.String(), "NotExclusive: the container has asked for 4095 CPUs") {
		t.Errorf("the log says %q", said.String())
	}
}
