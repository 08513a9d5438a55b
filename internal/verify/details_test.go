// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// The GIC numbers the interrupts that each CPU has of its own below 32.
func TestIsPrivate(t *testing.T) {
	for description, want := range map[string]bool{
		"GICv3  30 Level     arch_timer": true, "GICv3  31 Level     x": true, "GICv3  32 Level     eth0": false, "GICv3  x Level  eth0": false,
		"GICv3": false, "IR-PCI-MSI 30-edge eth0": false, "PCI-MSI GIC 30": false,
	} {
		if got := isPrivate(host.InterruptLine{Name: "11", Description: description}); got != want {
			t.Errorf("%q: %t", description, got)
		}
	}
}

func TestTaskObjects(t *testing.T) {
	of := func(pid, tid int) []v1alpha1.Process {
		return taskObjects(&host.Task{PID: pid, TID: tid, Name: "app"}, cpus.Of(2)).Processes
	}
	if diff := cmp.Diff([]v1alpha1.Process{{PID: 70, Name: "app"}}, of(70, 70)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]v1alpha1.Process{{PID: 70, Thread: 71, Name: "app"}}, of(70, 71)); diff != "" {
		t.Error(diff)
	}
}

// A fault of a rate names the counters that came, each once, though it came on several CPUs.
func TestRateNamesItsInterrupts(t *testing.T) {
	f := sound()
	f.interrupt("TLB", "TLB shootdowns", 6000)
	f.interrupt("RES", "Rescheduling interrupts", 0)
	for _, line := range f.facts.Interrupts.Lines.Value {
		if line.Name == "TLB" {
			line.Counts[2] += 6000
		}
	}
	result, _ := find(f.evaluate(), "irq.ipis")
	want := finding.Objects{CPUs: cpus.Of(2, 3), Interrupts: []v1alpha1.Interrupt{{ID: "RES"}, {ID: "TLB"}}}
	if diff := cmp.Diff(want, result.Objects); diff != "" {
		t.Errorf("%s: %s", result.Message, diff)
	}
	growth, came, ok := grown(
		[]host.InterruptLine{{Name: "TLB", Counts: []uint64{4, 6}}, {Name: "RES", Counts: []uint64{0, 0}}},
		[]host.InterruptLine{{Name: "TLB", Counts: []uint64{1, 2}}}, []column{{cpu: 2, now: 0, before: 0}, {cpu: 3, now: 1, before: 1}},
		func(host.InterruptLine) bool { return true })
	if !ok || cmp.Diff([]string{"TLB"}, came) != "" || cmp.Diff(map[int]uint64{2: 3, 3: 4}, growth) != "" {
		t.Errorf("%v %v %t", growth, came, ok)
	}
}

// Of several verdicts, the first fix and any reboot count.
func TestWorst(t *testing.T) {
	with := func(message, fix string, reboot v1alpha1.RebootRequirement) verdict {
		v := failed(message, "", "")
		v.fix, v.reboot = fix, reboot
		return v
	}
	cases := map[string]struct {
		verdicts []verdict
		want     verdict
	}{
		"the first fix": {
			[]verdict{with("a", "", ""), with("b", "one", ""), with("c", "two", "")},
			verdict{outcome: v1alpha1.OutcomeFailed, message: "a; b; c", fix: "one"},
		},
		"a reboot outweighs none": {
			[]verdict{with("a", "", v1alpha1.RebootRequired), with("b", "", v1alpha1.RebootNotRequired)},
			verdict{outcome: v1alpha1.OutcomeFailed, message: "a; b", reboot: v1alpha1.RebootRequired},
		},
		"a reboot is needed later": {
			[]verdict{with("a", "", v1alpha1.RebootNotRequired), with("b", "", v1alpha1.RebootRequired)},
			verdict{outcome: v1alpha1.OutcomeFailed, message: "a; b", reboot: v1alpha1.RebootRequired},
		},
		"failed outweighs the others": {
			[]verdict{passed("x"), unknown("f", "gone", ""), with("a", "", "")}, verdict{outcome: v1alpha1.OutcomeFailed, message: "a"},
		},
		"unknown outweighs passed": {
			[]verdict{passed("x"), unknown("f", "gone", "")}, verdict{outcome: v1alpha1.OutcomeUnknown, message: "f cannot be read: gone"},
		},
		"a fact that is absent without a reason": {
			[]verdict{unknown("f", "", "")}, verdict{outcome: v1alpha1.OutcomeUnknown, message: "f cannot be read: no value"},
		},
		"none applies": {[]verdict{notApplicable()}, verdict{}},
	}
	for name, tc := range cases {
		if diff := cmp.Diff(tc.want, worst(tc.verdicts...), cmp.AllowUnexported(verdict{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// A thread that may run nowhere belongs to nobody, and one of which that is not told, neither.
func TestOwnerOfNobody(t *testing.T) {
	s := newState(sound().input(), Catalogue())
	for name, task := range map[string]*host.Task{
		"no CPU":   {PID: 1, TID: 1, AllowedCPUs: known(cpus.Set{})},
		"not told": {PID: 1, TID: 1, AllowedCPUs: absent[cpus.Set]("status")},
	} {
		if o, holds := s.ownerOf(task); o.name != "" || !holds.Known || holds.Value {
			t.Errorf("%s: owner %q, %+v", name, o.name, holds)
		}
	}
}

// The same thread is the one of the same process, thread and name.
func TestEarlierThread(t *testing.T) {
	in := sound().input()
	in.Before.Tasks = known([]host.Task{{PID: 70, TID: 71, Name: "a", LastCPU: 5}, {PID: 80, TID: 81, Name: "b", LastCPU: 6}})
	s := newState(in, Catalogue())
	cases := []struct {
		task host.Task
		want int
	}{
		{host.Task{PID: 70, TID: 71, Name: "a"}, 5}, {host.Task{PID: 80, TID: 81, Name: "b"}, 6},
		{host.Task{PID: 70, TID: 81, Name: "b"}, 0}, {host.Task{PID: 80, TID: 71, Name: "a"}, 0}, {host.Task{PID: 80, TID: 81, Name: "a"}, 0},
	}
	for _, tc := range cases {
		found, ok := s.earlier(&tc.task)
		if ok != (tc.want > 0) || ok && found.LastCPU != tc.want {
			t.Errorf("%+v was %+v", tc.task, found)
		}
	}
	s.before = nil
	if _, ok := s.earlier(&in.Before.Tasks.Value[0]); ok {
		t.Error("there was no earlier reading")
	}
}

func TestSettingPaths(t *testing.T) {
	p := &plan.NodePlan{
		Sysctls: settings("vm.swappiness", "10"), Sysfs: settings("/sys/c", "1", "/sys/a", "1", "/sys/a", "2"), CPUs: plan.CPUPlan{Isolated: cpus.Of(3)},
	}
	want := []string{"/proc/sys/vm/swappiness", "/sys/a", "/sys/c", "/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us"}
	if diff := cmp.Diff(want, SettingPaths(p)); diff != "" {
		t.Error(diff)
	}
}

// What a container holds is on the NUMA nodes of its CPUs, its NIC and its memory.
func TestHeldBy(t *testing.T) {
	s := newState(sound().input(), Catalogue())
	held := holder("p", v1alpha1.AlignmentSplit, "m")
	if diff := cmp.Diff([]int32{0}, s.heldBy(held).NUMANodes); diff != "" {
		t.Error(diff)
	}
	held.Container.CPUs = list("6-7")
	held.Container.Memory = []allocation.MemoryBlock{{Type: "memory", NUMANodes: []int{3}}}
	want := finding.Objects{CPUs: list("6-7"), NICs: []string{"0000:3b:00.0"}, NUMANodes: []int32{0, 1, 3}, Containers: []string{"trading/p/app"}}
	if diff := cmp.Diff(want, s.heldBy(held)); diff != "" {
		t.Error(diff)
	}
	held.Container.CPUs, held.Container.Memory, held.PCIAddress = list("6-7"), nil, "0000:ff:00.0"
	if diff := cmp.Diff([]int32{1}, s.heldBy(held).NUMANodes); diff != "" {
		t.Error(diff)
	}
}

// The activity of a host is judged by the checks of two moments that read nothing but counters.
func TestEvaluateActivity(t *testing.T) {
	f := sound()
	f.count("LOC", 15000)
	f.plan.Verification.Waived = []v1alpha1.WaivedCheck{{Check: "cpu.tick", Reason: "known"}}
	outcomes := map[v1alpha1.CheckID]v1alpha1.Outcome{}
	for _, result := range EvaluateActivity(f.input()) {
		outcomes[result.Check.ID] = result.Outcome
	}
	want := map[v1alpha1.CheckID]v1alpha1.Outcome{
		"irq.delivered": passes, "irq.machine": passes, "irq.softirqs": passes, "irq.ipis": passes, "irq.background-softirqs": passes,
		"cpu.tick": v1alpha1.OutcomeWaived, "power.idle-entries": passes,
	}
	if diff := cmp.Diff(want, outcomes); diff != "" {
		t.Error(diff)
	}
	f.before = nil
	if got := EvaluateActivity(f.input()); got != nil {
		t.Errorf("%d checks of two moments are judged on one", len(got))
	}
}

// Objects are named in the order of their numbers, whatever the order in which they were found.
func TestSorted(t *testing.T) {
	found := sorted([]verdict{failed("b", "1", ""), failed("a", "2", ""), failed("a", "1", "")})
	order := make([]string, 0, len(found))
	for _, v := range found {
		order = append(order, v.message+v.observed)
	}
	if !slices.Equal(order, []string{"a1", "a2", "b1"}) {
		t.Error(order)
	}
}

// Of the devices that a container holds, those are named that are NICs of the host.
func TestNICsOf(t *testing.T) {
	s := newState(sound().input(), Catalogue())
	held := allocation.Container{Devices: []allocation.HeldDevices{{Resource: "r", IDs: []string{"0000:3b:00.0", "0000:ff:00.0"}}}}
	if diff := cmp.Diff([]string{"0000:3b:00.0"}, s.nicsOf(held)); diff != "" {
		t.Error(diff)
	}
}

func TestKibibytesText(t *testing.T) {
	for kibibytes, want := range map[int64]string{
		0: "0 KiB", 1: "1 KiB", 1023: "1023 KiB", 1024: "1 MiB", 1025: "1 MiB", 2048: "2 MiB", 1<<20 - 1: "1023 MiB", 1 << 20: "1 GiB", 3<<20 + 5: "3 GiB",
	} {
		if got := kibibytesText(kibibytes); got != want {
			t.Errorf("%d: %s, want %s", kibibytes, got, want)
		}
	}
}

// What a CPU tolerates: none at all, a limit, or no limit, which is also what a file says that nobody can read.
func TestCPULatencyLimit(t *testing.T) {
	for text, want := range map[string]int64{"n/a": 0, "0": math.MaxInt64, "1": 1, "2": 2, "170": 170, "x": math.MaxInt64, "": math.MaxInt64} {
		f := sound()
		f.set(latencyLimitPath(3), text)
		if got := newState(f.input(), Catalogue()).cpuLatencyLimit(3); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	f := sound()
	f.deny(latencyLimitPath(3))
	if got := newState(f.input(), Catalogue()).cpuLatencyLimit(3); got != math.MaxInt64 {
		t.Errorf("unreadable: %d", got)
	}
}
