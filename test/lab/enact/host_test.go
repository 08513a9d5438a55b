// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
)

// plugin is where the test puts the command line of users.
const plugin = "/root/kubectl-lowlatency"

//go:embed testdata/profile.yaml
var hostProfile string

// TestHost changes one machine that has neither a kubelet nor a cluster by the commands of the README: host apply, status, check and
// revert. Afterwards it is as it was before.
func TestHost(t *testing.T) {
	h := startMachine(t, fleetMachine("host", t.TempDir()), "cmd/lowlatency-guard", "cmd/kubectl-lowlatency")
	defer h.table()
	const profile = "/root/profile.yaml"
	if err := h.machine.WriteFile(h.ctx(), profile, hostProfile, 0o644); err != nil {
		t.Fatal(err)
	}
	before, line := h.manifest(), h.run("cat /proc/cmdline")

	// Without a terminal and without --yes nobody can answer, so nothing is written.
	result, err := h.machine.Execute(h.ctx(), plugin+" host apply -f "+profile+" </dev/null")
	if err != nil || result.ExitCode == 0 {
		t.Errorf("nobody answers: %+v, %v", result, err)
	}
	h.asBefore("nobody answers the question", before, line)

	boot, _ := h.machine.BootID(h.ctx())
	t.Log(h.runUntilReboot(plugin + " host apply --yes --deadline 6m -f " + profile))
	h.rebooted(boot)
	status := h.settled()
	if status.InForce == "" {
		t.Fatalf("taken back: %s\n%s", status.Reason, h.run("journalctl -o cat -u 'lowlatency-guard*' | tail -30"))
	}
	h.isPlanned(status)

	boot, _ = h.machine.BootID(h.ctx())
	t.Log(h.run(plugin + " host apply --yes -f " + profile))
	if again, _ := h.machine.BootID(h.ctx()); again != boot {
		t.Error("the same profile rebooted the machine again")
	}
	h.expect("the same profile again", h.settled(), status.InForce, "no reboot")

	t.Log(h.runUntilReboot(plugin + " host revert --yes"))
	h.rebooted(boot)
	h.settled()
	h.asBefore("host revert", before, line)
}

// isPlanned asserts what the running kernel has of the profile, beside what the commands say of it.
func (h *host) isPlanned(status guard.Status) {
	h.t.Helper()
	for _, fact := range []struct{ what, command, want string }{
		{"isolated CPUs", "cat /sys/devices/system/cpu/isolated", "1,3"},
		{"nohz_full", "cat /sys/devices/system/cpu/nohz_full", "1,3"},
		{"hugepages", "cat /sys/devices/system/node/node*/hugepages/hugepages-2048kB/nr_hugepages | paste -sd ' '", "16 32"},
		{"the exit code of host status", plugin + " host status >/dev/null; echo $?", "0"},
	} {
		if got := h.run(fact.command); got != fact.want {
			h.t.Errorf("%s: %q, want %q", fact.what, got, fact.want)
		}
	}
	h.isDeJittered()
	h.expect("host apply", status, status.InForce, "tried, verified, kept: "+h.run("cat /proc/cmdline"))
}

// isDeJittered asserts what the user's command finds of the running kernel.
func (h *host) isDeJittered() {
	h.t.Helper()
	result, err := h.machine.Execute(h.ctx(), plugin+" check -f /root/profile.yaml --root / -o json")
	if err != nil {
		h.t.Fatal(err)
	}
	var all []view.Check
	if err := json.Unmarshal([]byte(result.Stdout), &all); err != nil || len(all) != 1 {
		h.t.Fatalf("check: %v: %s%s", err, result.Stdout, result.Stderr)
	}
	checked := all[0]
	for _, condition := range checked.Conditions {
		if condition.Type == v1alpha1.ConditionDeJittered && condition.Status != metav1.ConditionTrue {
			h.t.Errorf("%s is %s: %s", condition.Type, condition.Status, condition.Message)
		}
	}
	for _, f := range checked.Findings {
		h.t.Logf("%+v", f)
	}
	if !slices.Contains(checked.Passed, "cpu.isolated") {
		h.t.Errorf("cpu.isolated is not among the checks that passed: %v", checked.Passed)
	}
	h.row("check", fmt.Sprintf("%+v", checked.Counts), "")
}

// rebooted waits until the machine has started again.
func (h *host) rebooted(boot string) {
	h.t.Helper()
	if err := h.machine.WaitReboot(h.ctx(), boot); err != nil {
		h.t.Fatal(err)
	}
}

// asBefore asserts that nothing of a change is left.
func (h *host) asBefore(what, before, line string) {
	h.t.Helper()
	if manifest := h.manifest(); !cmp.Equal(before, manifest) {
		h.t.Errorf("%s: (-before +after):\n%s", what, cmp.Diff(strings.Split(before, "\n"), strings.Split(manifest, "\n")))
	}
	if now := h.run("cat /proc/cmdline"); now != line {
		h.t.Errorf("%s: the kernel runs with %q, and %q was before", what, now, line)
	}
	h.row(what, "as before", "")
}
