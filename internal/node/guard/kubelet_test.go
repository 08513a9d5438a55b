// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/kubeletservice"
)

const (
	kubeletService = "kubelet.service"
	kubeletFolder  = "/var/lib/kubelet/kubelet.conf.d"
	kubeletDropIn  = kubeletFolder + "/90-lowlatency.conf"
	kubeletState   = "/var/lib/kubelet/cpu_manager_state"
)

// kubeletOnly are operations that only the kubelet reads: a folder for it, a file there, and the state that it must not find.
func kubeletOnly(policy string) []operation.Operation {
	return []operation.Operation{
		operation.PutDropIn(kubeletService, "90-lowlatency.conf", "[Service]\nEnvironment=KUBELET_CONFIG_ARGS=--config-dir="+kubeletFolder+"\n"),
		operation.PutKubeletDropIn(kubeletDropIn, "cpuManagerPolicy: "+policy+"\n"),
		operation.PutFile("/etc/tmpfiles.d/lowlatency-kubelet.conf", 0o644, "r! "+kubeletState+"\n"),
		operation.RemoveStateFile(kubeletState),
	}
}

// withKubelet gives a host a kubelet. It does not start with the state of another policy than it is configured to, and remembers the
// one that it has.
func (w *world) withKubelet() *world {
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files["/var/lib/kubelet"] = hostfile.NewFolder()
	}
	w.kubelet = kubeletservice.New(kubeletService, w.kubeletLife)
	return w
}

// policy is what the kubelet's files say.
func (w *world) policy() string {
	_, policy, _ := strings.Cut(strings.TrimSpace(string(w.seen[kubeletDropIn].Content)), ": ")
	if w.seen["/etc/systemd/system/kubelet.service.d/90-lowlatency.conf"].Type == hostfile.Absent || policy == "" {
		return "none"
	}
	return policy
}

func (w *world) kubeletLife() kubeletservice.Life {
	if state := w.seen[kubeletState]; state.Type == hostfile.Regular && string(state.Content) != w.policy() {
		return kubeletservice.Refuses()
	}
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		files[kubeletState] = hostfile.File(w.policy(), 0o600)
	}
	switch w.policy() {
	case "refused":
		return kubeletservice.Refuses()
	case "crashing":
		return kubeletservice.Life{Ends: 5 * time.Second, Green: true}
	case "hanging":
		return kubeletservice.Hangs()
	default:
		return kubeletservice.Healthy()
	}
}

// instructedTo is what an operator has the host become.
func instructedTo(operations []operation.Operation) guard.Wanted {
	w := wanted(operations)
	w.Instruction = &journal.Instruction{Number: 1}
	return w
}

func TestTheKubeletIsStartedAgain(t *testing.T) {
	w := newWorld(t).withKubelet()
	before := w.manifest()
	next, err := w.guard().Apply(t.Context(), instructedTo(kubeletOnly("static")))
	if next != guard.Verify || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	want := []string{"systemctl daemon-reload", "systemctl stop kubelet.service", "systemctl reset-failed kubelet.service", "systemctl --no-block start kubelet.service"}
	if diff := cmp.Diff(want, w.tools); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	w.runsWith("static")
	trial, err := w.guard().OnTrial()
	if diff := cmp.Diff(&guard.Trial{Plan: []byte(`{}`), DeadlineSeconds: 600, Kubelet: kubeletService, IsKubeletStarted: true}, trial); diff != "" || err != nil {
		t.Fatalf("OnTrial() (-want +got), %v:\n%s", err, diff)
	}
	if next, err := w.guard().TakeBack(t.Context(), instruction.ReasonKubeletUnhealthy, "it has crashed"); next != guard.Nothing || err != nil {
		t.Fatalf("TakeBack() = %v, %v", next, err)
	}
	w.runsWith("none")
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// runsWith asserts that the kubelet is healthy with a policy, and that the host has not rebooted.
func (w *world) runsWith(policy string) {
	w.t.Helper()
	if got := string(w.seen[kubeletState].Content); got != policy || w.kubelet.Health() != nil || w.boots != 1 {
		w.t.Errorf("%d boots, and the kubelet runs with policy %q: %v", w.boots, got, w.kubelet.Health())
	}
}

// TestAnotherStartNeedsPermission: pods are evicted before.
func TestAnotherStartNeedsPermission(t *testing.T) {
	w := newWorld(t).withKubelet()
	before := w.manifest()
	forbidden := instructedTo(kubeletOnly("static"))
	forbidden.RebootForbidden = true
	if _, err := w.guard().Apply(t.Context(), forbidden); !errors.Is(err, guard.ErrRebootForbidden) {
		t.Errorf("Apply() = %v", err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" || w.kubelet.Starts() != 1 {
		t.Errorf("something was done (-before +after):\n%s", diff)
	}
}

// TestAKubeletThatWasBroken is not touched for an instruction, and whoever changes the host by hand is told.
func TestAKubeletThatWasBroken(t *testing.T) {
	for name, tc := range map[string]struct {
		life  kubeletservice.Life
		after time.Duration
		says  string
		open  bool
	}{
		"it refuses its configuration":       {kubeletservice.Refuses(), time.Hour, "kubelet.service is activating and was started again", false},
		"it crashes, and is healthy now":     {kubeletservice.Life{Ends: 5 * time.Second, Green: true}, 32 * time.Second, "less than a minute ago", true},
		"it does not say that it is healthy": {kubeletservice.Hangs(), time.Hour, "does not say that it is healthy: no answer", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).withKubelet()
			w.kubelet.Life = func() kubeletservice.Life { return tc.life }
			w.kubelet.Boot()
			w.kubelet.Pass(tc.after)
			w.refusesToTouch(tc.says, tc.open)
			w.isChangedByHand(tc.says)
		})
	}
}

// refusesToTouch gives an instruction for a kubelet that is broken.
func (w *world) refusesToTouch(says string, isOpen bool) {
	w.t.Helper()
	before, starts := w.manifest(), w.kubelet.Starts()
	_, err := w.guard().Apply(w.t.Context(), instructedTo(kubeletOnly("static")))
	problem, is := errors.AsType[*guard.KubeletError](err)
	if !is || problem.IsOpen != isOpen || !strings.Contains(err.Error(), says) {
		w.t.Fatalf("Apply() = %v", err)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" || w.kubelet.Starts() != starts {
		w.t.Errorf("something was done (-before +after):\n%s", diff)
	}
}

// isChangedByHand has root change the host all the same.
func (w *world) isChangedByHand(says string) {
	w.t.Helper()
	lines, err := w.guard().Describe(w.t.Context(), kubeletOnly("static"))
	if err != nil || !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "beware ") && strings.Contains(line, says) }) {
		w.t.Errorf("Describe() = %q, %v", lines, err)
	}
	if next, err := w.guard().Apply(w.t.Context(), wanted(kubeletOnly("static"))); next != guard.Verify || err != nil {
		w.t.Fatalf("by hand: %v, %v", next, err)
	}
	if trial, err := w.guard().OnTrial(); err != nil || trial == nil || trial.Kubelet != "" {
		w.t.Errorf("OnTrial() = %+v, %v", trial, err)
	}
}

// TestAKubeletThatSomebodyHasStopped stays stopped, and finds no state of another policy when it is started.
func TestAKubeletThatSomebodyHasStopped(t *testing.T) {
	w := newWorld(t).withKubelet()
	w.kubelet.Stop()
	w.enact(kubeletOnly("static"))
	if unit := w.kubelet.Unit(kubeletService); unit.Active != "inactive" || w.boots != 1 || w.seen[kubeletState].Type != hostfile.Absent {
		t.Errorf("%d boots, the kubelet %+v, its state %v", w.boots, unit, w.seen[kubeletState])
	}
}

// TestPowerCutsAndTheKubelet cuts the power, or kills the guard, at every step of a change that only the kubelet reads, of another one and of the
// removal: the kubelet ends healthy, with the files that are there.
func TestPowerCutsAndTheKubelet(t *testing.T) {
	for name, c := range map[string]struct{ from, to []operation.Operation }{
		"first": {nil, kubeletOnly("static")}, "changed": {kubeletOnly("static"), kubeletOnly("restricted")}, "removed": {kubeletOnly("static"), nil},
		"hugepages": {hugepages("16"), hugepages("24")},
	} {
		t.Run(name, func(t *testing.T) {
			prepare := func() *world {
				w := newWorld(t).withKubelet()
				if c.from != nil {
					w.enact(c.from)
				}
				return w
			}
			steps := prepare().steps
			before, after := prepare(), prepare()
			after.enact(c.to)
			counts := map[string]int{}
			for cut := steps + 1; cut <= after.steps; cut++ {
				for _, kills := range []bool{false, true} {
					w := prepare()
					w.cut = cut
					w.interrupted(c.to, kills)
					counts[w.judgeKubelet(cut, kills, before, after)]++
				}
			}
			if counts["reverted"] == 0 || counts["enacted"] == 0 {
				t.Errorf("outcomes %v: some cuts must end in each", counts)
			}
		})
	}
}

// interrupted applies operations until the power is cut, or until the guard alone is killed and its unit starts it again.
func (w *world) interrupted(operations []operation.Operation, kills bool) {
	w.t.Helper()
	var next guard.Next
	cut, err := w.until(func() (err error) {
		next, err = w.guard().Apply(context.Background(), wanted(operations))
		if err == nil && next == guard.Verify {
			err = w.guard().Keep(context.Background())
		}
		return err
	})
	switch {
	case err != nil:
		w.t.Fatal(err)
	case !cut:
	case kills:
		w.cut = -1
		w.goOnAfterKill(operations)
	default:
		w.reboot(false)
		if _, err := w.guard().Boot(context.Background()); err != nil {
			w.t.Fatal(err)
		}
		w.kubelet.Start()
	}
}

// goOnAfterKill: what was interrupted is finished before anything else is done.
func (w *world) goOnAfterKill(operations []operation.Operation) {
	w.t.Helper()
	again := wanted(operations)
	again.Again = true
	if _, err := w.guard().Apply(context.Background(), again); err != nil && !errors.Is(err, guard.ErrUnfinished) {
		w.t.Fatal(err)
	}
	if trial, err := w.guard().OnTrial(); err != nil || trial != nil && w.guard().Keep(context.Background()) != nil {
		w.t.Fatal(err)
	}
}

func (w *world) judgeKubelet(cut int, kills bool, before, after *world) string {
	w.t.Helper()
	w.kubelet.Pass(time.Hour)
	if problem := w.kubelet.Health(); problem != nil {
		w.t.Fatalf("step %d (killed: %v): the kubelet ends as %v: %v", cut, kills, w.kubelet.Unit(kubeletService), problem)
	}
	if running := string(w.seen[kubeletState].Content); running != w.policy() {
		w.t.Fatalf("step %d (killed: %v): the kubelet runs with %q, and its files say %q", cut, kills, running, w.policy())
	}
	got := w.manifest()
	for outcome, other := range map[string]*world{"reverted": before, "enacted": after} {
		want := maps.Clone(other.manifest())
		if cmp.Equal(want, got) {
			return outcome
		}
	}
	w.t.Fatalf("step %d (killed: %v): neither as before nor as planned (-planned +got):\n%s", cut, kills, cmp.Diff(after.manifest(), got))
	return ""
}

// hugepages are reserved by a unit that the kubelet needs.
func hugepages(count string) []operation.Operation {
	return slices.Concat(kubeletOnly("static"), []operation.Operation{
		operation.PutUnit(hugepageUnit, "[Service]\nType=oneshot\nExecStart=/usr/local/bin/lowlatency-hugepages "+count+"\n"+
			"[Install]\nWantedBy=multi-user.target\nRequiredBy="+kubeletService+"\n", operation.Enabled),
		operation.SetService(hugepageUnit, operation.Restarted),
		operation.PutFile("/etc/sysctl.d/99-lowlatency.conf", 0o644, "a = "+count+"\n"),
	})
}

const hugepageUnit = "lowlatency-hugepages.service"

// TestOtherHugepagesNeedNoReboot: the unit runs again while the kubelet is stopped, also when the change is taken back. What is not changed
// is left alone.
func TestOtherHugepagesNeedNoReboot(t *testing.T) {
	w := newWorld(t).withKubelet()
	w.enact(hugepages("16"))
	if w.boots != 2 {
		t.Errorf("%d boots for a unit that was not there, want 2", w.boots)
	}
	w.tools = nil
	if next, err := w.guard().Apply(t.Context(), instructedTo(hugepages("24"))); next != guard.Verify || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	again := []string{
		"systemctl daemon-reload", "systemctl stop kubelet.service", "systemctl restart " + hugepageUnit,
		"systemctl reset-failed kubelet.service", "systemctl --no-block start kubelet.service",
	}
	if diff := cmp.Diff(again, w.tools); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	w.tools = nil
	if next, err := w.guard().TakeBack(t.Context(), instruction.ReasonKubeletUnhealthy, "it has crashed"); next != guard.Nothing || err != nil {
		t.Fatalf("TakeBack() = %v, %v", next, err)
	}
	if diff := cmp.Diff(again, w.tools); diff != "" {
		t.Errorf("programs of the way back (-want +got):\n%s", diff)
	}
	w.tools = nil
	other := append(hugepages("16"), operation.PutFile("/etc/sysctl.d/98-lowlatency.conf", 0o644, "b = 1\n"))
	if next, err := w.guard().Apply(t.Context(), instructedTo(other)); next != guard.Verify || err != nil || len(w.tools) > 0 {
		t.Errorf("Apply() of another file = %v, %v, with %v", next, err, w.tools)
	}
}

// TestTuneDRunsOn: who changes nothing of what TuneD reads leaves it alone, because it puts all settings back while it is started again. A
// change that was interrupted behind the file of a profile has it started all the same.
func TestTuneDRunsOn(t *testing.T) {
	w := newWorld(t)
	host := func(profile, other string) []operation.Operation {
		return []operation.Operation{
			operation.PutTuneDProfile("lowlatency-trading", "[sysctl]\nvm.stat_interval="+profile+"\n"), operation.PutFile("/etc/lowlatency/a", 0o644, other),
		}
	}
	w.enact(host("10", "a"))
	for _, step := range []struct {
		operations []operation.Operation
		want       []string
	}{{host("10", "b"), nil}, {host("20", "b"), []string{"systemctl try-restart tuned.service"}}} {
		w.tools = nil
		if next, err := w.guard().Apply(t.Context(), instructedTo(step.operations)); next != guard.Verify || err != nil {
			t.Fatalf("Apply() = %v, %v", next, err)
		}
		if diff := cmp.Diff(step.want, w.tools); diff != "" {
			t.Errorf("programs (-want +got):\n%s", diff)
		}
		if err := w.guard().Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTuneDReadsWhatWasPutBack: what it has set of a change without a reboot is what it set before.
func TestTuneDReadsWhatWasPutBack(t *testing.T) {
	w := newWorld(t)
	profile := func(value string) []operation.Operation {
		return []operation.Operation{operation.PutTuneDProfile("lowlatency-trading", "[sysctl]\nvm.stat_interval="+value+"\n")}
	}
	w.enact(profile("10"))
	if next, err := w.guard().Apply(t.Context(), instructedTo(profile("20"))); next != guard.Verify || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	w.tools = nil
	if _, err := w.guard().TakeBack(t.Context(), instruction.ReasonNotVerified, "it is not as planned"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"systemctl try-restart tuned.service"}, w.tools); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
}
