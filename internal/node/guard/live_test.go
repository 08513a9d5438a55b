// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const unboundWork = "/sys/devices/virtual/workqueue/cpumask"

// wide is a machine whose kernel can have 40 CPUs, and prints masks of that width.
type wide struct{ *world }

func (w wide) Get(name string) (string, error) {
	value, err := w.world.Get(name)
	if path.Base(name) == "cpumask" && !strings.Contains(value, ",") {
		value = "00," + strings.Repeat("0", 8-len(value)) + value
	}
	return value, err
}

// TestNotationsOfTheKernel: a value is in force in whichever notation the kernel prints it, and where the kernel was built without what it
// switches off. It is put back, too.
func TestNotationsOfTheKernel(t *testing.T) {
	w := newWorld(t)
	w.live[unboundWork] = "ff,ffffffff"
	g := guard.New(w, wide{w}, func(string) {})
	operations := []operation.Operation{
		operation.SetSysctl("vm.stat_interval", "10"), operation.SetSysfs(unboundWork, "3"), operation.SetSysfs("/sys/kernel/mm/ksm/run", "2"),
	}
	if next, err := g.Apply(context.Background(), wanted(operations)); next != guard.Verify || err != nil {
		t.Fatalf("Apply() = %v, %v", next, err)
	}
	if differences, err := g.CheckWritten(); err != nil || len(differences) > 0 || w.live[unboundWork] != "3" {
		t.Errorf("CheckWritten() = %q, %v, values %v", differences, err, w.live)
	}
	w.live[unboundWork] = "ff"
	want := []string{unboundWork + ` is "00,000000ff" and is to be "3"`}
	if differences, err := g.CheckWritten(); err != nil || !cmp.Equal(want, differences) {
		t.Errorf("CheckWritten() of another value = %q, %v, want %q", differences, err, want)
	}
	w.live[unboundWork] = "3"
	if next, err := g.TakeBack(context.Background(), instruction.ReasonWithdrawn, "it was asked for"); next != guard.Nothing || err != nil {
		t.Fatalf("TakeBack() = %v, %v", next, err)
	}
	if w.live[unboundWork] != "ff,ffffffff" {
		t.Errorf("the mask is %q", w.live[unboundWork])
	}
}

// TestAValueThatTheKernelDoesNotKnow is none that is in force.
func TestAValueThatTheKernelDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	operations := []operation.Operation{operation.SetSysctl("vm.stat_intervall", "10")}
	if _, err := w.guard().Apply(context.Background(), wanted(operations)); err == nil || !strings.Contains(err.Error(), "stat_intervall") {
		t.Errorf("Apply() = %v", err)
	}
}

// TestSettingsOfALaterPlan: values that an operator has held since it was upgraded come with the next plan, and need no reboot.
func TestSettingsOfALaterPlan(t *testing.T) {
	w := prepared(t, trading())
	w.live["/proc/sys/kernel/nmi_watchdog"], w.live[unboundWork] = "1", "ff"
	boots := w.boots
	w.enact(append(trading(), operation.SetSysctl("kernel.nmi_watchdog", "0"), operation.SetSysfs(unboundWork, "3")))
	if w.boots != boots || w.live["/proc/sys/kernel/nmi_watchdog"] != "0" || w.live[unboundWork] != "3" {
		t.Errorf("%d boots, values %v", w.boots-boots, w.live)
	}
}
