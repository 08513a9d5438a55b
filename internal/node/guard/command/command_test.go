// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package command

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/kubeletservice"
)

// quietMachine runs no programs and notes which it was to run.
type quietMachine struct {
	guard.Below
	tools     *[]string
	emergency bool
	// kubelet is nil on a host without one.
	kubelet *kubeletservice.Service
	// boot is the state of the unit that runs at each start; "" where systemd does not say it.
	boot string
}

func (q quietMachine) Unit(_ context.Context, name string) (*kubelet.Unit, error) {
	if name == "lowlatency-guard.service" && q.boot != "" {
		return &kubelet.Unit{Name: name, Active: q.boot}, nil
	}
	if q.kubelet == nil {
		return nil, nil //nolint:nilnil // There is no such service, and that is no error.
	}
	return q.kubelet.Unit(name), nil
}

// Set leaves no part of a longer value, as no file of the kernel does.
func (q quietMachine) Set(name, value string) error {
	return os.WriteFile(filepath.Join(q.Root, name), []byte(value), 0o644)
}

func (q quietMachine) Health(context.Context, string) error { return q.kubelet.Health() }

func (q quietMachine) Tool(_ context.Context, program string, arguments ...string) error {
	text := strings.Join(append([]string{filepath.Base(program)}, arguments...), " ")
	*q.tools = append(*q.tools, text)
	if q.kubelet != nil {
		q.kubelet.Tool(arguments...)
	}
	if q.emergency && strings.Contains(text, "is-active") {
		return errors.New("exit status 3")
	}
	return nil
}

// ownDisk has all files belong to whoever runs the test.
type ownDisk struct {
	*hostfile.Root
	// isFull tells that no record fits on it.
	isFull bool
}

func (o ownDisk) Append(name string, content []byte) error {
	if o.isFull {
		return unix.ENOSPC
	}
	return o.Root.Append(name, content)
}

func (o ownDisk) Create(name string, s hostfile.State) error {
	s.UID, s.GID = os.Getuid(), os.Getgid()
	return o.Root.Create(name, s)
}

func (o ownDisk) Read(name string) (hostfile.State, error) {
	s, err := o.Root.Read(name)
	s.UID, s.GID = 0, 0
	return s, err
}

// tree is a host with a running kernel in it.
type tree struct {
	t     *testing.T
	root  string
	tools []string
	// emergency tells that the host has ended in a shell for its administrator.
	emergency bool
	// isFull tells that the disk has no room for a record.
	isFull bool
	// kubelet is nil on a host without one.
	kubelet *kubeletservice.Service
	// boot is the state of the unit that runs at each start; "" where systemd does not say it.
	boot string
	// pause is called in the place of a pause; nil for none.
	pause func(long time.Duration)
}

func newHost(t *testing.T) *tree {
	t.Helper()
	h := &tree{t: t, root: t.TempDir()}
	h.write("proc/cmdline", "ro quiet\n")
	h.write("proc/uptime", "30.00 10.00\n")
	h.write("proc/sys/kernel/random/boot_id", "one\n")
	h.write("proc/sys/vm/stat_interval", "1\n")
	h.write("etc/hostname", "a\n")
	h.write("usr/local/bin/other", "")
	h.write("var/lib/other", "")
	h.write("run/other", "")
	h.write("etc/systemd/system/multi-user.target.wants/other", "")
	return h
}

func (h *tree) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *tree) read(name string) string {
	h.t.Helper()
	content, err := os.ReadFile(filepath.Join(h.root, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(content)
}

// files are the names of all files of the tree but those of the kernel and of the guard's lock.
func (h *tree) files() []string {
	h.t.Helper()
	var names []string
	for _, folder := range []string{"etc", "usr", "var"} {
		err := filepath.WalkDir(filepath.Join(h.root, folder), func(name string, _ os.DirEntry, err error) error {
			names = append(names, strings.TrimPrefix(name, h.root))
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
	return names
}

// run runs a command with an answer on its standard input.
func (h *tree) run(answer string, arguments ...string) (string, error) {
	h.t.Helper()
	var out bytes.Buffer
	command := h.session(answer, &out).command("test")
	command.SetArgs(append([]string{"--root", h.root}, arguments...))
	command.SetOut(&out)
	err := command.ExecuteContext(h.t.Context())
	return out.String(), err
}

// session of somebody who answers something, on the host.
func (h *tree) session(answer string, out *bytes.Buffer) *session {
	s := newSession()
	s.root, s.out, s.in = h.root, out, strings.NewReader(answer)
	s.machineOf = func(root string) Machine {
		return quietMachine{guard.Below{Root: root}, &h.tools, h.emergency, h.kubelet, h.boot}
	}
	s.diskOf = func(root string) (Disk, error) {
		opened, err := hostfile.OpenRoot(root)
		return ownDisk{opened, h.isFull}, err
	}
	if h.kubelet != nil {
		s.now, s.pause = h.kubelet.Now, func(_ context.Context, long time.Duration) error { h.kubelet.Pass(long); return nil }
	}
	if h.pause != nil {
		s.pause = func(_ context.Context, long time.Duration) error { h.pause(long); return nil }
	}
	return s
}

const operations = `
operations:
- {kind: Sysctl, name: vm.stat_interval, value: "10"}
- {kind: File, path: /etc/lowlatency/a, mode: 420, content: "x"}
`

func (h *tree) file(content string) string {
	h.t.Helper()
	name := filepath.Join(h.t.TempDir(), "operations.yaml")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return name
}

// says runs a command that must succeed, and looks for a text in what it prints.
func (h *tree) says(answer, want string, arguments ...string) string {
	h.t.Helper()
	out, err := h.run(answer, arguments...)
	if err != nil || !strings.Contains(out, want) {
		h.t.Errorf("%q: %q, %v, want %q", arguments, out, err, want)
	}
	return out
}

// denies runs status, which must say that something is not in force.
func (h *tree) denies(want string, arguments ...string) {
	h.t.Helper()
	out, err := h.run("", append([]string{"status"}, arguments...)...)
	if !errors.Is(err, ErrNotInForce) || !strings.Contains(out, want) {
		h.t.Errorf("status: %q, %v, want %q", out, err, want)
	}
}

// holds asserts what files hold, without the spaces around it.
func (h *tree) holds(name, want string) {
	h.t.Helper()
	if got := strings.TrimSpace(h.read(name)); got != want {
		h.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

func TestApplyStatusRevert(t *testing.T) {
	h := newHost(t)
	before := h.files()
	want := `  write  /etc/lowlatency, folder
  write  /etc/lowlatency/a, a file of 1 bytes with mode 0644, owner 0:0
  set    /proc/sys/vm/stat_interval from 1 to 10
Do this? Type yes:
Verified, and kept.
`
	if diff := cmp.Diff(want, h.says("yes\n", "", "apply", h.file(operations))); diff != "" {
		t.Errorf("apply (-want +got):\n%s", diff)
	}
	h.holds("proc/sys/vm/stat_interval", "10")
	h.holds("etc/lowlatency/a", "x")
	if !slices.Contains(h.tools, "systemctl daemon-reload") {
		t.Errorf("programs that ran: %q", h.tools)
	}
	h.says("", "In force:  operations ", "status")
	h.write("etc/lowlatency/a", "y")
	h.denies("Changed by others: /etc/lowlatency/a has another content")
	h.write("etc/lowlatency/a", "x")
	h.says("yes\n", "The host is as it was before.\nVerified, and kept.\nNothing is in force: the guard leaves the host.\n", "revert")
	if diff := cmp.Diff(before, h.files()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
	h.says("", "In force:  nothing\n", "status")
}

func TestApplyAsks(t *testing.T) {
	h := newHost(t)
	before := h.files()
	for name, arguments := range map[string][]string{
		"no":           {"apply", h.file(operations)},
		"no deadline":  {"apply", "--yes", "--deadline", "1s", h.file(operations)},
		"no operation": {"apply", "--yes", h.file("operations: []")},
		"a typo":       {"apply", "--yes", h.file("operation: []")},
		"another path": {"apply", "--yes", h.file("operations: [{kind: File, path: /etc/passwd, mode: 420}]")},
		"no file":      {"apply", "--yes", "/nowhere"},
		"a format":     {"status", "-o", "xml"},
		"no revert":    {"revert"},
	} {
		if out, err := h.run("no\n", arguments...); err == nil {
			t.Errorf("%s: no error, and %q", name, out)
		}
	}
	if diff := cmp.Diff(before, h.files()); diff != "" {
		t.Errorf("something was written (-before +after):\n%s", diff)
	}
}

func TestUnitsOnAHostWithNothingToDo(t *testing.T) {
	h := newHost(t)
	for _, name := range []string{"boot", "trial"} {
		if out, err := h.run("", name); err != nil || out != "" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// TestTrialOfAPlan: what the plan asks for is not so, and the deadline is over.
func TestTrialOfAPlan(t *testing.T) {
	h := newHost(t)
	unit := operations + `- {kind: Unit, name: lowlatency-a.service, path: /etc/systemd/system/lowlatency-a.service, mode: 420, content: "[Service]\n", state: Present}
plan: {kernelArguments: [{text: nohz_full=2-7}]}
`
	before := h.files()
	h.says("", "reboot once", "apply", "--yes", h.file(unit))
	if last := h.tools[len(h.tools)-1]; last != "systemctl --no-block reboot" {
		t.Errorf("the last program is %q", last)
	}
	h.write("proc/sys/kernel/random/boot_id", "two\n")
	h.write("proc/sys/vm/stat_interval", "1\n")
	h.says("", "", "boot")
	h.holds("proc/sys/vm/stat_interval", "10")
	h.write("proc/uptime", "700.00 10.00\n")
	h.says("", "nohz_full", "trial")
	h.denies(`"stage": "Reverted"`, "-o", "json")
	h.denies("it was not verified in time")
	h.says("", "", "revert", "--yes")
	if diff := cmp.Diff(before, h.files()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// trialOverAPlan is a host that runs one plan on trial while another is in force.
func trialOverAPlan(t *testing.T) *tree {
	t.Helper()
	h := newHost(t)
	h.says("", "Verified, and kept.", "apply", "--yes", h.file(operations))
	h.says("", "reboot once", "apply", "--yes", h.file("operations: [{kind: Unit, name: lowlatency-a.service, path: /etc/systemd/system/lowlatency-a.service, mode: 420, content: x, state: Present}]"))
	h.starts("two")
	return h
}

// starts has the host start again, up to what the guard does before everything else.
func (h *tree) starts(bootID string) {
	h.t.Helper()
	h.write("proc/sys/kernel/random/boot_id", bootID+"\n")
	h.says("", "", "boot")
}

// TestRevertOfATrialOverAPlan: what is on trial is taken back first, and after the reboot for that the guard goes on with the plan of before, once.
func TestRevertOfATrialOverAPlan(t *testing.T) {
	const follows = "after the next start the guard takes it back, too"
	before := newHost(t).files()
	for name, meanwhile := range map[string]func(h *tree){
		"it goes on": func(*tree) {},
		"a look at the same start changes nothing": func(h *tree) {
			h.says("", "", "trial")
			h.holds("etc/lowlatency/a", "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := trialOverAPlan(t)
			h.says("", follows, "revert", "--yes")
			if last := h.tools[len(h.tools)-1]; last != "systemctl --no-block reboot" {
				t.Errorf("the last program is %q", last)
			}
			meanwhile(h)
			h.starts("three")
			h.holds("etc/lowlatency/a", "x")
			h.says("", "The host is as it was before.", "trial")
			if diff := cmp.Diff(before, h.files()); diff != "" {
				t.Errorf("the host before and after (-before +after):\n%s", diff)
			}
		})
	}
}

// TestARemovalThatIsAskedForNoMore: who applies another plan instead has it, and a removal that has failed is not tried at each start.
func TestARemovalThatIsAskedForNoMore(t *testing.T) {
	for name, instead := range map[string]func(h *tree){
		"another plan": func(h *tree) {
			h.says("", "Verified, and kept.", "apply", "--yes", h.file(strings.Replace(operations, `"10"`, `"20"`, 1)))
			h.starts("four")
		},
		"it fails": func(h *tree) {
			h.isFull = true
			if out, err := h.run("", "trial"); err == nil {
				h.t.Errorf("a full disk: %q, and no error", out)
			}
			h.isFull = false
			h.starts("four")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := trialOverAPlan(t)
			h.says("", "", "revert", "--yes", "--no-reboot")
			h.starts("three")
			instead(h)
			if out := h.says("", "", "trial"); strings.Contains(out, "as root has asked for") {
				t.Errorf("it is removed all the same: %s", out)
			}
			h.holds("etc/lowlatency/a", "x")
		})
	}
}

// TestTrialInAnEmergency: the operations are in force, and the host has not started.
func TestTrialInAnEmergency(t *testing.T) {
	h := newHost(t)
	before := h.files()
	unit := "operations: [{kind: Unit, name: lowlatency-a.service, path: /etc/systemd/system/lowlatency-a.service, mode: 420, content: x, state: Present}]"
	h.says("", "reboot once", "apply", "--yes", h.file(unit))
	h.write("proc/sys/kernel/random/boot_id", "two\n")
	h.write("proc/uptime", "700.00 10.00\n")
	h.emergency = true
	h.says("", "multi-user.target", "trial")
	h.denies("the host has not started up to multi-user.target")
	h.says("", "", "revert", "--yes")
	if diff := cmp.Diff(before, h.files()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// TestATrialBeforeTheStart: what the guard does at each start comes first, and is not waited for when the time of the trial is over.
func TestATrialBeforeTheStart(t *testing.T) {
	const file = "operations: [{kind: Unit, name: lowlatency-a.service, path: /etc/systemd/system/lowlatency-a.service, mode: 420, content: x, state: Present}]"
	for name, tc := range map[string]struct {
		then func(h *tree)
		want string
	}{
		"it comes": {func(h *tree) { h.boot = "active" }, "Verified, and kept."},
		"it fails": {func(h *tree) { h.boot = "failed" }, "Verified, and kept."},
		"it hangs": {func(h *tree) { h.boot, h.emergency = "activating", true; h.write("proc/uptime", "600.00 10.00\n") }, "multi-user.target"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.says("", "reboot once", "apply", "--yes", h.file(file))
			h.write("proc/sys/kernel/random/boot_id", "two\n")
			h.boot = "inactive"
			pauses := 0
			h.pause = func(time.Duration) { pauses++; tc.then(h) }
			out, err := h.run("", "trial")
			if err != nil || !strings.Contains(out, tc.want) || pauses != 1 {
				t.Errorf("trial: %q, %v, %d pauses", out, err, pauses)
			}
		})
	}
}

// TestDocumentedOperations reads the file that the documentation shows.
func TestDocumentedOperations(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/guard.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	block, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the documentation shows no file of operations")
	}
	h := newHost(t)
	given, err := readInstruction(h.file(block))
	if err != nil {
		t.Fatal(err)
	}
	if err := operation.Validate(given.Operations); err != nil {
		t.Error(err)
	}
}

// instructed is the guard of a host that takes instructions signed with a key.
func (h *tree) instructed(key ed25519.PrivateKey) *guard.Guard {
	h.t.Helper()
	opened, err := hostfile.OpenRoot(h.root)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			h.t.Error(err)
		}
	})
	g := guard.New(ownDisk{opened, false}, quietMachine{guard.Below{Root: h.root}, &h.tools, false, h.kubelet, h.boot}, func(string) {})
	if err := g.Pin(guard.Trust{Key: key.Public().(ed25519.PublicKey), Node: "worker-1", NodeUID: "uid-1"}, nil); err != nil {
		h.t.Fatal(err)
	}
	return g
}

// give hands a signed instruction over.
func (h *tree) give(g *guard.Guard, key ed25519.PrivateKey, i instruction.Instruction) {
	h.t.Helper()
	data, err := instruction.Sign(key, i)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := g.HandOver(data); err != nil {
		h.t.Fatal(err)
	}
}

// TestTake carries out what is in the inbox, verifies it, and looks once more when something else has come meanwhile.
func TestTake(t *testing.T) {
	h := newHost(t)
	before := h.files()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	h.says("", "", "take")
	g := h.instructed(key)
	i := instruction.Instruction{
		Node: "worker-1", NodeUID: "uid-1", PlanHash: "17304b9f96e3aaaa", Number: 1, Action: instruction.Enact, Reboot: instruction.RebootForbidden,
		Attempt: instruction.FirstAttempt, DeadlineSeconds: 60,
		Operations: []operation.Operation{operation.SetSysctl("vm.stat_interval", "10"), operation.PutFile("/etc/lowlatency/a", 0o644, "x")},
	}
	h.give(g, key, i)
	h.says("", "Verified, and kept", "take")
	h.holds("proc/sys/vm/stat_interval", "10")
	if report, err := g.Report(); err != nil || report.Phase != instruction.InForce || report.InForce != i.PlanHash {
		t.Errorf("Report() = %+v, %v", report, err)
	}
	i.Number, i.Action, i.Operations, i.PlanHash = 2, instruction.Remove, nil, ""
	h.give(g, key, i)
	h.says("", "Verified, and kept", "take")
	if diff := cmp.Diff(before, h.files(), cmpopts.IgnoreSliceElements(func(name string) bool { return name == "/var/lib/lowlatency" })); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// TestAgentsHearWhatIsNotAsBefore of a host that is given back at once: the report has it for longer than an agent lets pass between two
// looks.
func TestAgentsHearWhatIsNotAsBefore(t *testing.T) {
	h := newHost(t)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	g := h.instructed(key)
	i := instruction.Instruction{
		Node: "worker-1", NodeUID: "uid-1", PlanHash: "17304b9f96e3aaaa", Number: 1, Action: instruction.Enact, Reboot: instruction.RebootForbidden,
		Attempt: instruction.FirstAttempt, DeadlineSeconds: 60, Operations: []operation.Operation{operation.PutFile("/etc/lowlatency/a", 0o644, "x")},
	}
	h.give(g, key, i)
	h.says("", "Verified, and kept", "take")
	h.write("etc/lowlatency/a", "theirs")
	heard, paused := [][]string{}, time.Duration(0)
	h.pause = func(long time.Duration) {
		report, err := g.Report()
		if err != nil || report.Phase != instruction.Verifying || report.Number != 2 {
			t.Errorf("Report() = %+v, %v", report, err)
		}
		heard, paused = append(heard, report.Differences), paused+long
	}
	i.Number, i.Action, i.Operations, i.PlanHash = 2, instruction.Remove, nil, ""
	h.give(g, key, i)
	h.says("", "Not as before: /etc/lowlatency/a has another content than the guard has written\n", "take")
	want := [][]string{{"/etc/lowlatency/a has another content than the guard has written", "/etc/lowlatency holds files of others, so the folder stays"}}
	if diff := cmp.Diff(want, heard); diff != "" || paused < 33*time.Second {
		t.Errorf("heard for %s (-want +got):\n%s", paused, diff)
	}
	if report, err := g.Report(); err != nil || report.Phase != instruction.Removed {
		t.Errorf("Report() = %+v, %v", report, err)
	}
	h.holds("etc/lowlatency/a", "theirs")
}

// TestRevertNames what others have changed, and no agent is waited for.
func TestRevertNames(t *testing.T) {
	h := newHost(t)
	h.says("", "Verified, and kept", "apply", "--yes", h.file(operations))
	h.write("etc/lowlatency/a", "theirs")
	h.pause = func(long time.Duration) { t.Errorf("a pause of %s", long) }
	out := h.says("", "Left as it is: /etc/lowlatency/a has another content than the guard has written\n", "revert", "--yes")
	if strings.Contains(out, "as it was before.") || !strings.Contains(out, "Not as before: /etc/lowlatency holds files of others, so the folder stays\n") {
		t.Errorf("revert says %q", out)
	}
	h.holds("etc/lowlatency/a", "theirs")
}

// remember writes down what the guard has done before.
func (h *tree) remember(records ...journal.Record) {
	h.t.Helper()
	var text []byte
	for _, record := range records {
		line, err := journal.Encode(record)
		if err != nil {
			h.t.Fatal(err)
		}
		text = append(text, line...)
	}
	h.write("var/lib/lowlatency/guard/journal", string(text))
}

// TestTrialThatCouldNotBeKept: everything is taken back, and the kernel of the trial runs. The unit that verifies starts again and
// has the host reboot, once.
func TestTrialThatCouldNotBeKept(t *testing.T) {
	h := newHost(t)
	added := operation.AddKernelArguments("nohz_full=2-7")
	h.remember(
		journal.Record{Begin: &journal.Begin{Number: 1, Hash: operation.Hash([]operation.Operation{added}), Operations: []operation.Operation{added}, BootID: "one"}},
		journal.Record{Stage: &journal.Reached{Stage: journal.Reverted, BootID: "two", Cause: instruction.ReasonNotKept, Reason: "it could not be made permanent"}},
	)
	h.write("proc/cmdline", "ro quiet "+strings.Join(added.Arguments, " ")+"\n")
	h.write("proc/sys/kernel/random/boot_id", "two\n")
	h.says("", "The host starts with its old arguments", "trial")
	if !slices.Equal(h.tools, []string{"systemctl --no-block reboot"}) {
		t.Errorf("programs that ran: %q", h.tools)
	}
	h.write("proc/sys/kernel/random/boot_id", "three\n")
	h.says("", "", "trial")
	if len(h.tools) != 1 {
		t.Errorf("programs that ran: %q", h.tools)
	}
}

// TestTrialThatCannotBeTakenBack: a host with its own arguments is not rebooted because the disk is full, and everything is put back
// once there is room.
func TestTrialThatCannotBeTakenBack(t *testing.T) {
	h := newHost(t)
	set := operation.SetSysctl("vm.stat_interval", "10")
	h.remember(
		journal.Record{Begin: &journal.Begin{Number: 1, Hash: operation.Hash([]operation.Operation{set}), Operations: []operation.Operation{set}, BootID: "one"}},
		journal.Record{Stage: &journal.Reached{Stage: journal.Written, BootID: "one"}},
	)
	h.write("proc/uptime", "700.00 10.00\n")
	h.isFull = true
	if out, err := h.run("", "trial"); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("trial: %q, %v", out, err)
	}
	if slices.Contains(h.tools, "systemctl --no-block reboot") {
		t.Errorf("programs that ran: %q", h.tools)
	}
	h.isFull = false
	if out, err := h.run("", "trial"); err == nil || !strings.Contains(err.Error(), "taken back: ") {
		t.Errorf("trial: %q, %v", out, err)
	}
	h.denies(`"stage": "Reverted"`, "-o", "json")
}

// TestAnInstructionThatComesDuringARemoval is carried out: the guard stays for it.
func TestAnInstructionThatComesDuringARemoval(t *testing.T) {
	h := newHost(t)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	g := h.instructed(key)
	i := instruction.Instruction{
		Node: "worker-1", NodeUID: "uid-1", PlanHash: "17304b9f96e3aaaa", Number: 1, Action: instruction.Enact, Reboot: instruction.RebootAllowed,
		Attempt: instruction.FirstAttempt, DeadlineSeconds: 60,
		Operations: []operation.Operation{operation.PutUnit("lowlatency-a.service", "[Service]\n", operation.Present)},
	}
	h.give(g, key, i)
	h.says("", "", "take")
	h.write("proc/sys/kernel/random/boot_id", "two\n")
	h.says("", "Verified, and kept", "trial")
	h.give(g, key, instruction.Instruction{
		Node: i.Node, NodeUID: i.NodeUID, Number: 2, Action: instruction.Remove, Reboot: i.Reboot, Attempt: i.Attempt, DeadlineSeconds: i.DeadlineSeconds,
	})
	h.says("", "", "take")
	h.write("proc/sys/kernel/random/boot_id", "three\n")
	i.Number, i.Attempt = 3, instruction.FurtherAttempt
	h.give(g, key, i)
	h.says("", "Verified, and kept", "trial")
	if report, err := g.Report(); err != nil || report.Number != 3 || report.Phase != instruction.Armed {
		t.Errorf("Report() = %+v, %v", report, err)
	}
}

// TestNotVerifiedYet says what a host on trial lacks, once until that changes.
func TestNotVerifiedYet(t *testing.T) {
	h := newHost(t)
	unit := "- {kind: Unit, name: lowlatency-a.service, path: /etc/systemd/system/lowlatency-a.service, mode: 420, content: x, state: Present}\n"
	h.says("", "reboot once", "apply", "--yes", h.file(operations+unit+"plan: {kernelArguments: [{text: nohz_full=2-7}]}\n"))
	h.write("proc/sys/kernel/random/boot_id", "two\n")
	h.says("", "", "boot")
	var out bytes.Buffer
	s := h.session("", &out)
	look := func() {
		t.Helper()
		err := s.open(func(g *guard.Guard, m Machine) error {
			onTrial, err := g.OnTrial()
			if err != nil || onTrial == nil {
				t.Fatalf("on trial: %v, %v", onTrial, err)
			}
			done, err := s.decide(t.Context(), g, m, onTrial, false)
			if done {
				t.Error("a host that is not as planned is settled")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	look()
	look()
	h.write("proc/sys/vm/stat_interval", "1\n")
	look()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "nohz_full") || strings.Contains(lines[0], "stat_interval") || !strings.Contains(lines[1], "stat_interval") {
		t.Errorf("said %q", lines)
	}
}
