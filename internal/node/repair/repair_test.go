// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package repair_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// tuned is a host that is as planned.
func tuned(t *testing.T) *tunedhost.Host {
	t.Helper()
	h, err := tunedhost.New(t.Context(), t.TempDir(), tunedhost.Small(hosttree.Xeon()), tunedhost.Profile())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Apply(); err != nil {
		t.Fatal(err)
	}
	return h
}

// evaluate reads the host and checks it.
func evaluate(ctx context.Context, t *testing.T, h *tunedhost.Host) (verify.Input, verify.Report) {
	t.Helper()
	facts, err := h.Read(ctx, verify.SettingPaths(h.Plan)...)
	if err != nil {
		t.Fatal(err)
	}
	in := verify.Input{Plan: h.Plan, Facts: facts}
	return in, verify.Evaluate(in)
}

// lines are writes in short.
func lines(writes []repair.Write) []string {
	short := make([]string, 0, len(writes))
	for _, w := range writes {
		short = append(short, fmt.Sprintf("%s: %s: %s %s -> %s", w.Check, w.Object, w.Path, w.Old, w.New))
	}
	return short
}

func TestNothingIsRepairedOnASoundHost(t *testing.T) {
	h := tuned(t)
	if got := repair.Plan(evaluate(t.Context(), t, h)); got != nil {
		t.Errorf("got %v", lines(got))
	}
}

func TestWhatDriftedIsPutBack(t *testing.T) {
	cases := map[string]struct {
		drift func(t *testing.T, h *tunedhost.Host)
		// want are the writes, with NIC, IRQ, ISOLATED and HOUSEKEEPING for the host's own.
		want []string
	}{
		"an interrupt on an isolated CPU": {
			drift: func(t *testing.T, h *tunedhost.Host) {
				t.Helper()
				if err := hosttree.MoveIRQ(h.Dir, irqOf(t, h), cpus.Of(h.Plan.CPUs.Isolated.First())); err != nil {
					t.Fatal(err)
				}
			},
			want: []string{"irq.effective-affinity: IRQ {IRQ} ({NIC}-0): /proc/irq/{IRQ}/smp_affinity_list {ISOLATED} -> {NEAR}"},
		},
		"the default for new interrupts": {
			drift: set("/proc/irq/default_smp_affinity", "ffff"),
			want:  []string{"irq.default-affinity: /proc/irq/default_smp_affinity: /proc/irq/default_smp_affinity ffff -> {MASK}"},
		},
		"the mask of unbound kernel work": {
			drift: set("/sys/devices/virtual/workqueue/cpumask", "ffff"),
			want:  []string{"workqueue.unbound: /sys/devices/virtual/workqueue/cpumask: /sys/devices/virtual/workqueue/cpumask ffff -> {MASK}"},
		},
		"transparent hugepages": {
			drift: set("/sys/kernel/mm/transparent_hugepage/enabled", "always"),
			want: []string{"memory.transparent-hugepages: /sys/kernel/mm/transparent_hugepage/enabled: " +
				"/sys/kernel/mm/transparent_hugepage/enabled always -> never"},
		},
		"same-page merging": {
			drift: set("/sys/kernel/mm/ksm/run", "1"),
			want:  []string{"memory.ksm: /sys/kernel/mm/ksm/run: /sys/kernel/mm/ksm/run 1 -> 2"},
		},
		"a kernel parameter with a check of its own": {
			drift: set("/proc/sys/kernel/numa_balancing", "1"),
			want:  []string{"memory.numa-balancing: /proc/sys/kernel/numa_balancing: /proc/sys/kernel/numa_balancing 1 -> 0"},
		},
		"a kernel parameter without one": {
			drift: set("/proc/sys/kernel/hung_task_timeout_secs", "120"),
			want:  []string{"kernel.sysctls: /proc/sys/kernel/hung_task_timeout_secs: /proc/sys/kernel/hung_task_timeout_secs 120 -> 600"},
		},
		"the governor of one CPU": {
			drift: func(t *testing.T, h *tunedhost.Host) {
				t.Helper()
				set(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", h.Plan.CPUs.Isolated.First()), "powersave")(t, h)
			},
			want: []string{"power.governor: CPU {ISOLATED}: /sys/devices/system/cpu/cpu{ISOLATED}/cpufreq/scaling_governor powersave -> performance"},
		},
		"what needs a reboot is left": {
			drift: set("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := tuned(t)
			tc.drift(t, h)
			writes := repair.Plan(evaluate(t.Context(), t, h))
			if diff := cmp.Diff(fill(t, h, tc.want), lines(writes)); diff != "" {
				t.Fatalf("writes (-want +got):\n%s", diff)
			}
			for _, w := range writes {
				if err := h.Write(w.Path, w.New); err != nil {
					t.Fatal(err)
				}
			}
			if left := repair.Plan(evaluate(t.Context(), t, h)); left != nil {
				t.Errorf("still to be written: %v", lines(left))
			}
		})
	}
}

// set writes one file of the host.
func set(path, value string) func(*testing.T, *tunedhost.Host) {
	return func(t *testing.T, h *tunedhost.Host) {
		t.Helper()
		if err := h.Write(path, value); err != nil {
			t.Fatal(err)
		}
	}
}

func irqOf(t *testing.T, h *tunedhost.Host) int {
	t.Helper()
	irq, err := hosttree.FindIRQ(h.Dir, h.BypassNIC())
	if err != nil {
		t.Fatal(err)
	}
	return irq
}

// fill puts the host's own numbers and names into lines.
func fill(t *testing.T, h *tunedhost.Host, wanted []string) []string {
	t.Helper()
	in, _ := evaluate(t.Context(), t, h)
	var near string
	for _, nic := range in.Facts.NICs {
		if nic.Name.Value == h.BypassNIC() {
			near = nic.LocalCPUs.Value.Intersection(h.Plan.CPUs.Housekeeping).String()
		}
	}
	replacer := strings.NewReplacer("{IRQ}", strconv.Itoa(irqOf(t, h)), "{NIC}", h.BypassNIC(),
		"{ISOLATED}", strconv.Itoa(h.Plan.CPUs.Isolated.First()), "{NEAR}", near, "{MASK}", h.Plan.CPUs.Housekeeping.Mask())
	filled := make([]string, 0, len(wanted))
	for _, line := range wanted {
		filled = append(filled, replacer.Replace(line))
	}
	return filled
}

func TestWaivedChecksAreNotRepaired(t *testing.T) {
	h := tuned(t)
	set("/sys/kernel/mm/ksm/run", "1")(t, h)
	h.Plan.Verification.Waived = []v1alpha1.WaivedCheck{{Check: "memory.ksm", Reason: "wanted"}}
	if got := repair.Plan(evaluate(t.Context(), t, h)); got != nil {
		t.Errorf("got %v", lines(got))
	}
}

// Where interrupts may use every CPU until a pod objects, what the container runtime made of an affinity stays.
func TestAffinitiesThatPodsMadeAreKept(t *testing.T) {
	h := tuned(t)
	owned := h.Plan.CPUs.Isolated
	h.Plan.Interrupts.Placement = v1alpha1.InterruptsPerPod
	h.Plan.Interrupts.DefaultAffinity = h.Plan.CPUs.Housekeeping.Union(owned)
	h.Plan.CPUs.DataPlane = cpus.Of(owned.Last())
	allowed := cpus.Of(h.Plan.CPUs.Housekeeping.First(), owned.Last())
	if err := hosttree.MoveIRQ(h.Dir, irqOf(t, h), cpus.Of(owned.Last())); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf("/proc/irq/%d/smp_affinity_list", irqOf(t, h))
	in, _ := evaluate(t.Context(), t, h)
	for i := range in.Facts.Interrupts.Routes {
		if route := &in.Facts.Interrupts.Routes[i]; route.Number == irqOf(t, h) {
			route.Affinity.Value = allowed
		}
	}
	for _, w := range repair.Plan(in, verify.Evaluate(in)) {
		if w.Path == file && w.New != strconv.Itoa(h.Plan.CPUs.Housekeeping.First()) {
			t.Errorf("%s is to become %s, want what remains of %s", file, w.New, allowed)
		}
	}
}

func TestVectorsOfPoolNICsGoWhereThePoolWantsThem(t *testing.T) {
	h := tuned(t)
	wanted := cpus.Of(h.Plan.CPUs.Housekeeping.Last())
	h.Plan.BypassPools = []plan.PoolPlan{{Name: "x2", NICs: []plan.PoolNICPlan{{
		PCIAddress: h.Plan.BypassNICs[0].PCIAddress, Interrupts: v1alpha1.NICInterruptsLocalHousekeeping, InterruptCPUs: wanted,
	}}}}
	if err := hosttree.MoveIRQ(h.Dir, irqOf(t, h), cpus.Of(h.Plan.CPUs.Isolated.First())); err != nil {
		t.Fatal(err)
	}
	file := fmt.Sprintf("/proc/irq/%d/smp_affinity_list", irqOf(t, h))
	for _, w := range repair.Plan(evaluate(t.Context(), t, h)) {
		if w.Check != "nic.interrupts" || w.New != wanted.String() {
			t.Errorf("got %v", lines([]repair.Write{w}))
		}
		if w.Path == file {
			return
		}
	}
	t.Errorf("%s is not among the writes", filepath.Base(filepath.Dir(file)))
}
