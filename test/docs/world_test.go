// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

//nolint:gochecknoglobals // The testing package parses flags of the whole program.
var (
	all    = flag.Bool("all", false, "run commands that need a cluster or build something, too")
	update = flag.Bool("update", false, "put what commands print into the documents that show it")
)

// TestMain lets this program be, under their names, the programs that documents call.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "probe" {
		// The probe starts its own program again, which is this one.
		os.Exit(plugin(args))
	}
	switch filepath.Base(os.Args[0]) {
	case "kubectl-lowlatency":
		os.Exit(plugin(args))
	case "kubectl":
		os.Exit(kubectl(args))
	case "go":
		os.Exit(goTool(args))
	}
	os.Exit(m.Run())
}

// kubectl is what has a plugin and no cluster.
func kubectl(args []string) int {
	if len(args) > 0 && args[0] == "lowlatency" {
		return plugin(args[1:])
	}
	fmt.Fprintln(os.Stderr, "this command needs a cluster: give it the need clusters in rules_test.go")
	return 2
}

// goTool becomes the real one, but for what is built already.
func goTool(args []string) int {
	if len(args) > 1 && args[0] == "run" && args[1] == "./cmd/kubectl-lowlatency" {
		return plugin(args[2:])
	}
	if len(args) == 2 && args[0] == "install" {
		return installed(args[1])
	}
	fmt.Fprintln(os.Stderr, syscall.Exec(os.Getenv("REAL_GO"), append([]string{"go"}, args...), os.Environ()))
	return 2
}

// installed has what "go install PACKAGE@VERSION" would need a released version for: the package is to be one of this module, whose program
// is on the PATH already.
func installed(what string) int {
	module := "github.com/lowlatency-dev/lowlatency-operator/"
	name, version, _ := strings.Cut(what, "@")
	if name != module+"cmd/kubectl-lowlatency" || version == "" {
		fmt.Fprintf(os.Stderr, "go install %s: no program of this repository with a version\n", what)
		return 1
	}
	return 0
}

func plugin(args []string) int {
	return cli.Run(context.Background(), "", args, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// world is a folder like a reader's: a clone of the repository, with files of the reader's own beside it.
type world struct {
	dir string
	env []string
	// instead are what every command here has something else for, in pairs.
	instead []string
}

// newWorld makes the folder, and the programs that the commands call.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: filepath.Join(t.TempDir(), "w")}
	w.clone(t)
	w.programs(t)
	w.files(t)
	w.recordings(t)
	w.pingPongs(t)
	w.hosts(t)
	w.commit(t)
	return w
}

// clone copies the work tree as it is, without what git ignores.
func (w *world) clone(t *testing.T) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = repository
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if info, err := os.Stat(filepath.Join(repository, name)); err == nil && info.Mode().IsRegular() {
			w.copy(t, filepath.Join(repository, name), name)
		}
	}
}

func (w *world) copy(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, to, content, info.Mode().Perm())
}

func (w *world) write(t *testing.T, name string, content []byte, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

// programs puts this program on the PATH under the names that it knows. With -all, kubectl and go are the real ones.
func (w *world) programs(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	realGo, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	names := map[string]string{"kubectl-lowlatency": self, "kubectl": self, "go": self}
	if *all {
		names["kubectl"], names["go"] = os.Getenv("DOCS_KUBECTL"), realGo
	}
	for name, target := range names {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, aptGet+"/apt-get", []byte("#!/bin/sh\necho \"apt-get $*\"\n"), 0o755)
	w.write(t, aptGet+"/sudo", []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755)
	w.env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "REAL_GO="+realGo, "NO_COLOR=1", "COLUMNS=100")
}

// aptGet is the folder, in the world, of an apt-get that installs nothing and says what it was asked for, and of a sudo without its rights.
const aptGet = "apt-get-that-installs-nothing"

// recordings are runs of TRex and testpmd that readers are said to have, by the rates in the names that documents give them; the numbers are made up. The
// runs at the highest rate lose messages.
func (w *world) recordings(t *testing.T) {
	t.Helper()
	const short, long = 30, 60
	for name, run := range map[string]struct{ rate, seconds, lost int }{
		"slow.json": {100_000, short, 0}, "fast.json": {200_000, short, 300},
		"8M.json": {8_000_000, long, 0}, "12M.json": {12_000_000, long, 0}, "14M.json": {14_000_000, long, 1000},
	} {
		sent := run.rate * run.seconds
		w.write(t, name, fmt.Appendf(nil, `{"server": {"version": "v3.04"}, "stats": {"total": {"opackets": %d, "ipackets": %d},
			"latency": {"5": {"err_cntrs": {"dropped": 0}, "latency": {"histogram": {"10": 9950, "20": 50}}}}}}`, sent, sent-run.lost), 0o644)
	}
	w.write(t, "trial.sh", []byte(trial), 0o755)
	for name, run := range map[string]struct{ rate, lost int }{"stopped.txt": {1_000_000, 0}, "8M.txt": {8_000_000, 0}, "12M.txt": {12_000_000, 1000}} {
		came := run.rate * long
		var text strings.Builder
		text.WriteString("EAL: RTE Version: 'DPDK 24.11.1'\n")
		for _, part := range []struct {
			title, border string
			came, left    int
		}{
			{" Forward statistics for port 0  ", "-", came, 0}, {" Forward statistics for port 1  ", "-", 0, came - run.lost},
			{" Accumulated forward statistics for all ports", "+", came, came - run.lost},
		} {
			half := strings.Repeat(part.border, 22)
			fmt.Fprintf(&text, "\n  %s%s%s\n  RX-packets: %d RX-dropped: 0 RX-total: %d\n  TX-packets: %d TX-dropped: 0 TX-total: %d\n  %s\n",
				half, part.title, half, part.came, part.came, part.left, part.left, strings.Repeat(part.border, 76))
		}
		w.write(t, name, []byte(text.String()), 0o644)
	}
}

// trial is a program in the place of one that starts TRex: what receives takes three million messages a second. The numbers are made up.
const trial = `#!/bin/sh
sent=$(($1 * $2)) received=$(($1 * $2))
[ "$1" -le 3000000 ] || received=$((3000000 * $2))
echo '{"server": {"version": "v3.04"}, "stats": {"total": {"opackets": '$sent', "ipackets": '$received'},
  "latency": {"5": {"err_cntrs": {"dropped": 0}, "latency": {"histogram": {"10": 9950, "20": 50}}}}}}'
`

// pingPongs are results of probe pingpong, and round trips of another program, that readers are said to have; the numbers are made up.
func (w *world) pingPongs(t *testing.T) {
	t.Helper()
	chance := rand.New(rand.NewPCG(5, 6))
	latencies := func(shortest, mean float64) latency.Distribution {
		samples := make([]int64, 20_000)
		for i := range samples {
			samples[i] = int64(shortest + mean*chance.ExpFloat64())
		}
		d, err := latency.Distribute(samples)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, run := range []struct {
		name      string
		cpu       int
		transport latency.Transport
		path      latency.PathState
		sizes     []latency.Size
	}{
		{"untuned.json", -1, latency.TCP, latency.PathKernel, []latency.Size{{Bytes: 64, Distribution: latencies(6000, 2500)}, {Bytes: 1024, Distribution: latencies(8000, 900)}}},
		{"tuned.json", 4, latency.TCP, latency.PathKernel, []latency.Size{{Bytes: 64, Distribution: latencies(5800, 600)}, {Bytes: 1024, Distribution: latencies(8000, 900)}}},
		{"kernel.json", 4, latency.UDP, latency.PathKernel, []latency.Size{{Bytes: 64, Distribution: latencies(5800, 600)}, {Bytes: 1024, Distribution: latencies(8000, 900)}}},
		{"frames.json", 4, latency.UDP, latency.PathAccelerated, []latency.Size{{Bytes: 64, Distribution: latencies(3100, 400)}, {Bytes: 1024, Distribution: latencies(4300, 500)}}},
		{"onload.json", 4, latency.UDP, latency.PathAccelerated, []latency.Size{{Bytes: 64, Distribution: latencies(3000, 400)}, {Bytes: 1024, Distribution: latencies(4200, 500)}}},
	} {
		end := latency.Host{Name: "worker-1", Kernel: "6.12.0-rt", CPU: run.cpu}
		text, err := json.Marshal(&latency.Result{
			Version: latency.Version, Kind: latency.KindPingPong, Outcome: latency.Outcome{Verdict: latency.Passed, Reason: latency.ReasonMeasured},
			Setup: latency.Setup{Transport: run.transport, Waiting: latency.Spin, Peer: "10.0.0.2:2048", Client: end, Server: latency.Host{Name: "worker-2", Kernel: "6.12.0-rt", CPU: 4}},
			Path:  latency.Path{State: run.path}, Sizes: run.sizes,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, run.name, text, 0o644)
	}
	for _, name := range []string{"zf-64.txt", "zf-1024.txt", "raw-64.dat"} {
		var text strings.Builder
		for range 20_000 {
			fmt.Fprintf(&text, "%d\n", 5000+int64(800*chance.ExpFloat64()))
		}
		w.write(t, name, []byte(text.String()), 0o644)
	}
}

const performanceProfile = `apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: performance}
spec:
  cpu: {reserved: 0-1, isolated: 2-7}
  nodeSelector: {node-role.kubernetes.io/worker-cnf: ""}
`

// files are what readers are said to have: profiles and pools under the names that documents give them.
func (w *world) files(t *testing.T) {
	t.Helper()
	profile := read(t, "config/samples/tick-to-trade/profile.yaml")
	pool := read(t, "config/samples/tick-to-trade/pool.yaml")
	older := strings.Replace(profile, "preset: MaximumDeterminism", "preset: HighPerformance", 1)
	for name, text := range map[string]string{
		"trading.yaml": profile, "new.yaml": profile, "old.yaml": older, "older.yaml": older, "pool.yaml": pool,
		"typo.yaml":             strings.Replace(profile, "simultaneousMultithreading:", "simultaneousMultithreadng:", 1),
		"profiles/trading.yaml": profile, "profiles/x2.yaml": pool, "performanceprofile.yaml": performanceProfile,
		"before.json": `{"cpus": [{"cpu": 4, "durationNanoseconds": 1000000000, "interruptionsPerSecond": 250}]}`, "after.json": `{"cpus": [{"cpu": 4, "durationNanoseconds": 1000000000}]}`,
	} {
		w.write(t, name, []byte(text), 0o644)
	}
}

// hosts are small servers with Onload: untuned ones, and some that are tuned as trading.yaml says and then went wrong.
func (w *world) hosts(t *testing.T) {
	t.Helper()
	for _, file := range []string{"a.tar.gz", "b.tar.gz", "node.tar.gz", "snapshots/worker-1.tar.gz", "snapshots/worker-2.tar.gz", "snapshots/a.tar.gz", "snapshots/b.tar.gz"} {
		w.untuned(t, file)
	}
	for name, harm := range harms() {
		machine := hosttree.Xeon().Small()
		machine.Hostname = "worker-1"
		tuned, err := tunedhost.New(t.Context(), t.TempDir(), machine, tradingProfile(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := tuned.Apply(); err != nil {
			t.Fatal(err)
		}
		if err := harm(tuned); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w.snapshot(t, tuned.Dir, name+".tar.gz")
	}
}

// untuned makes the snapshot of an untuned server with the name of its file.
func (w *world) untuned(t *testing.T, file string) {
	t.Helper()
	machine := hosttree.Xeon().Small()
	machine.Hostname = strings.TrimSuffix(filepath.Base(file), ".tar.gz")
	dir := t.TempDir()
	if err := machine.Write(dir); err != nil {
		t.Fatal(err)
	}
	w.snapshot(t, dir, file)
}

// harms are what has happened to hosts that were tuned, by the name of their snapshot.
func harms() map[string]func(*tunedhost.Host) error {
	return map[string]func(*tunedhost.Host) error{
		"tuned": func(*tunedhost.Host) error { return nil },
		"interrupt": func(h *tunedhost.Host) error {
			irq, err := hosttree.FindIRQ(h.Dir, h.BypassNIC())
			if err != nil {
				return err
			}
			return hosttree.MoveIRQ(h.Dir, irq, h.Plan.CPUs.Isolated)
		},
		"modules": func(h *tunedhost.Host) error {
			return hosttree.SetOnloadVersion(h.Dir, "9.2.0", strings.Repeat("a", 32))
		},
		"nolink": func(h *tunedhost.Host) error { return hosttree.SetCarrier(h.Dir, h.BypassNIC(), false) },
	}
}

func tradingProfile(t *testing.T) *v1alpha1.LowLatencyNodeProfile {
	t.Helper()
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := yaml.UnmarshalStrict([]byte(read(t, "config/samples/tick-to-trade/profile.yaml")), profile); err != nil {
		t.Fatal(err)
	}
	return profile
}

// snapshot saves a host into a file of the world.
func (w *world) snapshot(t *testing.T, dir, file string) {
	t.Helper()
	path := filepath.Join(w.dir, file)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	streams := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &said}
	if code := cli.Run(t.Context(), "", []string{"snapshot", "--root", dir, "-o", path}, streams); code != cli.ExitOK {
		t.Fatalf("snapshot of %s: exit code %d\n%s", file, code, said.String())
	}
}

// commit makes the folder a clone of git whose remote branch main is older than the files: the profile there sets another preset.
func (w *world) commit(t *testing.T) {
	t.Helper()
	current := read(t, "config/samples/tick-to-trade/profile.yaml")
	w.write(t, "profiles/trading.yaml", []byte(strings.Replace(current, "preset: MaximumDeterminism", "preset: HighPerformance", 1)), 0o644)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "profiles", "snapshots", "Makefile"},
		{"-c", "user.name=reader", "-c", "user.email=reader@example.com", "commit", "-q", "-m", "older"},
		{"update-ref", "refs/remotes/origin/main", "HEAD"},
	} {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Dir = w.dir
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	w.write(t, "profiles/trading.yaml", []byte(current), 0o644)
}

// textOf is a command with what a reader would put into it.
func (w *world) textOf(c *command) string {
	r, _ := ruleOf(c)
	return strings.NewReplacer(slices.Concat(r.instead, w.instead, []string{"NODE", "worker-1", "POOL", "x2-onload"})...).Replace(c.text)
}

// run runs a command in the world, as its rule says, and returns what it printed on both outputs.
func (w *world) run(t *testing.T, c *command) string {
	t.Helper()
	r, _ := ruleOf(c)
	text := w.textOf(c)
	shell := exec.CommandContext(t.Context(), "bash", "-c", "set -euo pipefail\n"+text)
	shell.Dir, shell.Env = w.dir, w.env
	out, err := shell.CombinedOutput()
	code := shell.ProcessState.ExitCode()
	exits := r.exits
	if exits == nil {
		exits = []int{0}
	}
	if !slices.Contains(exits, code) {
		t.Errorf("%s:%d: exit code %d (%v)\n%s\n%s", c.file, c.line, code, err, text, out)
	}
	return string(out)
}
