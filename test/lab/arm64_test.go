// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// armMachine is the name of the machine of hack/lab/arm64, and of its profile in testdata/truth.
const armMachine = "arm64"

// armBoot is a boot of the arm64 machine and what the checks must say about it. It has no root file system with systemd
// and TuneD, so that only what kernel arguments decide is as planned: hugepages are reserved by a unit.
type armBoot struct {
	state, file string
	// without are kernel arguments of the plan that are left out.
	without []string
	want    verdicts
	// outcomes are those of some checks.
	outcomes map[string]string
}

func armBoots() []armBoot {
	return []armBoot{
		{
			state: "kernel arguments as planned, nothing else", file: "booted-with-the-arguments", want: verdicts{no, no, no},
			outcomes: map[string]string{
				"cpu.isolated": passed, "cpu.nohz-full": passed, "cpu.rcu-offload": passed, "memory.hugepages-numa": failed,
				"numa.nic-locality": unknown,
			},
		},
		{
			state: "booted without nohz_full and rcu_nocbs", without: []string{"nohz_full", "rcu_nocbs"}, want: verdicts{no, no, no},
			outcomes: map[string]string{"cpu.isolated": passed, "cpu.nohz-full": failed, "cpu.rcu-offload": failed},
		},
	}
}

// testARM plans Debian's arm64 kernel from a snapshot of it, boots it with the planned arguments, and judges it.
func testARM(t *testing.T, table *outcomeTable) {
	untuned := recordARM(t, untunedState)
	planned := planOf(t, armMachine, untuned)
	found := judgementOf(verify.Evaluate(verify.Input{Plan: planned, Facts: untuned}))
	if diff := cmp.Diff(verdicts{no, no, no}, found.verdicts); diff != "" {
		t.Errorf("untuned (-want +got):\n%s", diff)
	}
	table.verdict(armMachine, "untuned: no kernel argument of the plan", found, describeCount(found.outcomes))
	for _, boot := range armBoots() {
		t.Run(boot.state, func(t *testing.T) { boot.test(t, planned, table) })
	}
}

func (b armBoot) test(t *testing.T, planned *plan.NodePlan, table *outcomeTable) {
	arguments := make([]string, 0, len(planned.KernelArguments))
	for _, argument := range planned.KernelArguments {
		arguments = append(arguments, argument.Text)
	}
	found := judgementOf(verify.Evaluate(verify.Input{Plan: planned, Facts: recordARM(t, b.file, dropArguments(arguments, b.without)...)}))
	if diff := cmp.Diff(b.want, found.verdicts); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	for check, want := range b.outcomes {
		if got := found.outcomes[check]; got != want {
			t.Errorf("%s is %s (%s), want %s", check, got, found.messages[check], want)
		}
	}
	table.verdict(armMachine, b.state, found, describeCount(found.outcomes))
}

// recordARM boots the machine and returns what its kernel says. With -update, that of named states becomes test data.
func recordARM(t *testing.T, state string, arguments ...string) *host.Facts {
	t.Helper()
	snapshot := filepath.Join(t.TempDir(), "node.tar.gz")
	if state != "" && golden.FlagUpdate() {
		snapshot = filepath.Join(truthFolder, armMachine, state+".tar.gz")
	}
	command := exec.CommandContext(t.Context(), filepath.Join("..", "..", "hack", "lab", armMachine, "record.sh"), append([]string{snapshot}, arguments...)...)
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		t.Fatalf("booting the arm64 machine: %v", err)
	}
	return readFacts(t, snapshot)
}
