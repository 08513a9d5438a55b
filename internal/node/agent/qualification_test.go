// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// TestFingerprintOfQualification: the agent compares the host that it reads with what the operator writes about the measurement that the
// node has passed, and judges the system management interrupts that were counted then.
func TestFingerprintOfQualification(t *testing.T) {
	h, err := tunedhost.New(t.Context(), t.TempDir(), tunedhost.Small(hosttree.Xeon()), tunedhost.Profile())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Apply(); err != nil {
		t.Fatal(err)
	}
	const vulnerabilities = "/sys/devices/system/cpu/vulnerabilities/"
	if err := os.MkdirAll(filepath.Join(h.Dir, vulnerabilities), 0o750); err != nil {
		t.Fatal(err)
	}
	tell := func(name, state string) { put(t, filepath.Join(h.Dir, vulnerabilities+name), state) }
	tell("mds", "Mitigation: Clear CPU buffers; SMT disabled")
	tell("itlb_multihit", "KVM: Mitigation: VMX disabled")

	node := &v1alpha1.LowLatencyNode{Spec: v1alpha1.LowLatencyNodeSpec{PlanHash: h.Plan.Hash()}}
	look := func() *Observation {
		t.Helper()
		a := &Agent{Root: h.Dir, Window: time.Nanosecond, plan: plannedState{plan: h.Plan, hash: h.Plan.Hash()}}
		seen := a.observe(t.Context(), node)
		if seen.Report == nil {
			t.Fatal(seen.Message)
		}
		return &seen
	}
	expect := func(id v1alpha1.CheckID, want string) {
		t.Helper()
		if got := saysOf(look().Report, id); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	expect("firmware.fingerprint", "skipped: only a qualification run judges it")

	// What the operator makes of what this agent has reported.
	node.Status.Inventory = look().Inventory
	node.Spec.Qualification = &v1alpha1.NodeQualification{Fingerprint: qualification.FingerprintOf(qualification.Told{}, node)}
	if node.Spec.Qualification.Fingerprint.MitigationsHash == "" {
		t.Fatal("the inventory tells nothing of mitigations")
	}
	expect("firmware.fingerprint", "Passed")
	smis := func(m *v1alpha1.LatencyManagementInterrupts, want string) {
		t.Helper()
		node.Spec.Qualification.ManagementInterrupts = m
		expect("firmware.smi", want)
	}
	const uncounted = "skipped: nobody counted system management interrupts during the qualification run: "
	smis(nil, uncounted+"no LatencyTest of kind Jitter")
	smis(&v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateUnknown, UnknownReason: "it takes CAP_PERFMON"}, uncounted+"it takes CAP_PERFMON")
	smis(&v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateCounted}, uncounted+"not counted")
	smis(&v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateCounted, Count: new(int64(0))}, "Passed")
	smis(&v1alpha1.LatencyManagementInterrupts{State: v1alpha1.StateCounted, CPU: new(int32(2)), Count: new(int64(3))}, "Failed: the firmware interrupted all CPUs")

	tell("itlb_multihit", "KVM: Mitigation: Split huge pages")
	expect("firmware.fingerprint", "Passed")
	tell("mds", "Vulnerable; SMT disabled")
	expect("firmware.fingerprint", "Failed: changed since the qualification run: the mitigations of CPU vulnerabilities")
	node.Spec.Qualification.Fingerprint.MitigationsHash = ""
	expect("firmware.fingerprint", "Passed")
	node.Spec.Qualification.Fingerprint.Kernel = "5.14.0-1"
	expect("firmware.fingerprint", "Failed: changed since the qualification run: the kernel (")
	node.Spec.Qualification.Fingerprint.Kernel, node.Spec.Qualification.Fingerprint.PlanHash = look().Inventory.KernelRelease, "earlier"
	expect("firmware.fingerprint", "Passed")
}

// saysOf is the outcome of a check with its message where it did not pass, or why it was skipped.
func saysOf(report *verify.Report, id v1alpha1.CheckID) string {
	if at := slices.IndexFunc(report.Skipped, func(s verify.Skip) bool { return s.Check == id }); at >= 0 {
		return "skipped: " + report.Skipped[at].Reason
	}
	at := slices.IndexFunc(report.Results, func(r verify.Result) bool { return r.Check.ID == id })
	if at < 0 {
		return "not evaluated"
	}
	return string(report.Results[at].Outcome) + ": " + report.Results[at].Message
}
