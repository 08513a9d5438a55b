// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// affinityOf is what a deviation of an interrupt says.
func affinityOf(check v1alpha1.CheckID, number, name, observed, planned string) Deviation {
	return Deviation{Check: check, Object: "IRQ " + number + " (" + name + ")", Path: "/proc/irq/" + number + "/smp_affinity_list", Observed: observed, Planned: planned}
}

// fileIs is the deviation of a file that belongs to nothing else.
func fileIs(check v1alpha1.CheckID, file, observed, planned string) []Deviation {
	return []Deviation{{check, file, file, observed, planned}}
}

// deviationCase is a change of the sound host and what of it a program can set right.
type deviationCase struct {
	change []func(fixture)
	want   []Deviation
}

func (tc deviationCase) test(t *testing.T) {
	t.Helper()
	f := sound()
	for _, change := range tc.change {
		change(f)
	}
	got := Deviations(f.input(), f.evaluate())
	if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestDeviations(t *testing.T) {
	const sfc = "sfc-ens2f0-3"
	move := func(number int, allowed, effective string) func(fixture) {
		return func(f fixture) {
			for i := range f.facts.Interrupts.Routes {
				if route := &f.facts.Interrupts.Routes[i]; route.Number == number {
					route.Affinity, route.EffectiveAffinity = known(list(allowed)), known(list(effective))
				}
			}
		}
	}
	inPool := func(f fixture) {
		f.plan.BypassPools = []plan.PoolPlan{{Name: "x2", NICs: []plan.PoolNICPlan{{PCIAddress: "0000:3b:00.0", Interrupts: v1alpha1.NICInterruptsLocalHousekeeping, InterruptCPUs: list("0")}}}}
	}
	const standard = "/proc/irq/default_smp_affinity"
	cases := map[string]deviationCase{
		"nothing": {},
		"an interrupt keeps the CPUs that it may have": {
			change: []func(fixture){move(142, "1,3", "3")}, want: []Deviation{affinityOf("irq.effective-affinity", "142", sfc, "1,3", "1")},
		},
		"one of a NIC gets CPUs beside it": {
			change: []func(fixture){move(142, "3", "3")}, want: []Deviation{affinityOf("irq.effective-affinity", "142", sfc, "3", "0-1")},
		},
		"one of a NIC without CPUs beside it gets others": {
			change: []func(fixture){move(142, "3", "3"), func(f fixture) { f.facts.NICs[0].LocalCPUs = known(list("2-3")) }},
			want:   []Deviation{affinityOf("irq.effective-affinity", "142", sfc, "3", "0-1,4-5")},
		},
		"one that is no NIC's gets any housekeeping CPU": {
			change: []func(fixture){move(8, "2", "2")}, want: []Deviation{affinityOf("irq.effective-affinity", "8", "rtc0", "2", "0-1,4-5")},
		},
		"CPUs that are offline are not planned": {
			change: []func(fixture){move(8, "2", "2"), func(f fixture) { f.facts.CPUs.Online = known(list("0-4,6-7")) }},
			want:   []Deviation{affinityOf("irq.effective-affinity", "8", "rtc0", "2", "0-1,4")},
		},
		"one without a handler is left":        {change: []func(fixture){move(9, "2", "2")}},
		"one that may be elsewhere and is not": {change: []func(fixture){move(8, "0-7", "1")}},
		"several, in the order of their files": {
			change: []func(fixture){move(8, "2", "2"), move(142, "1,3", "3")},
			want: []Deviation{
				affinityOf("irq.effective-affinity", "142", sfc, "1,3", "1"), affinityOf("irq.effective-affinity", "8", "rtc0", "2", "0-1,4-5"),
			},
		},
		"a waived check has none": {
			change: []func(fixture){move(142, "3", "3"), func(f fixture) {
				f.plan.Verification.Waived = []v1alpha1.WaivedCheck{{Check: "irq.effective-affinity", Reason: "r"}}
			}},
		},
		"a pool decides about its NIC": {
			change: []func(fixture){inPool, move(142, "3", "3")}, want: []Deviation{affinityOf("nic.interrupts", "142", sfc, "3", "0")},
		},
		"a pool's vector is on another housekeeping CPU": {
			change: []func(fixture){inPool, move(142, "1", "1")}, want: []Deviation{affinityOf("nic.interrupts", "142", sfc, "1", "0")},
		},
		"a pool's vector is where it belongs": {change: []func(fixture){inPool, move(142, "0", "0")}},
		"a pool's CPUs are offline": {
			change: []func(fixture){inPool, move(142, "1", "1"), func(f fixture) { f.facts.CPUs.Online = known(list("1-7")) }},
		},
		"the default for new interrupts": {
			change: []func(fixture){func(f fixture) { f.facts.Interrupts.DefaultAffinity = known(list("1-2")) }},
			want:   fileIs("irq.default-affinity", standard, list("1-2").Mask(), list("1").Mask()),
		},
		"the default is isolated CPUs alone": {
			change: []func(fixture){func(f fixture) { f.facts.Interrupts.DefaultAffinity = known(list("2")) }},
			want:   fileIs("irq.default-affinity", standard, list("2").Mask(), list("0-1,4-5").Mask()),
		},
	}
	for name, tc := range cases {
		t.Run(name, tc.test)
	}
}

func TestDeviationsOfSettings(t *testing.T) {
	steer := func(mask string) func(fixture) {
		return func(f fixture) {
			f.facts.NICs[0].ReceiveSteering[1] = host.Known(list(mask), "/sys/class/net/ens2f0/queues/rx-1/rps_cpus")
		}
	}
	steered := func(observed, planned string) []Deviation {
		return []Deviation{{"nic.receive-steering", "receive queue 1 of NIC ens2f0", "/sys/class/net/ens2f0/queues/rx-1/rps_cpus", observed, planned}}
	}
	cases := map[string]deviationCase{
		"a queue of a bond": {
			change: []func(fixture){func(f fixture) {
				f.facts.Interfaces = append(f.facts.Interfaces, host.Interface{Name: "bond0", ReceiveSteering: []host.Fact[cpus.Set]{host.Known(list("1-2"), "rps_cpus")}})
			}},
			want: []Deviation{{"nic.receive-steering", "receive queue 0 of interface bond0", "rps_cpus", list("1-2").Mask(), list("1").Mask()}},
		},
		"a kernel parameter with a check of its own": {
			change: []func(fixture){func(f fixture) { f.set("/proc/sys/kernel/numa_balancing", "1") }},
			want:   fileIs("memory.numa-balancing", "/proc/sys/kernel/numa_balancing", "1", "0"),
		},
		"a kernel parameter without one": {
			change: []func(fixture){func(f fixture) { f.set("/proc/sys/net/core/netdev_budget", "300") }},
			want:   fileIs("kernel.sysctls", "/proc/sys/net/core/netdev_budget", "300", "50"),
		},
		"a file with a check of its own": {
			change: []func(fixture){func(f fixture) { f.set(settingTHP, "[always] madvise never") }},
			want:   fileIs("memory.transparent-hugepages", settingTHP, "always", "never"),
		},
		"a file without one": {
			change: []func(fixture){func(f fixture) { f.set("/sys/module/test/parameters/quiet", "N") }},
			want:   fileIs("kernel.sysfs", "/sys/module/test/parameters/quiet", "N", "Y"),
		},
		"a file that cannot be read": {change: []func(fixture){func(f fixture) { f.remove("/sys/module/test/parameters/quiet") }}},
		"the governor of an isolated CPU": {
			change: []func(fixture){func(f fixture) {
				for _, id := range []int{1, 3} {
					f.facts.CPUs.List[id].Frequency.Governor = host.Known("powersave", "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor")
				}
			}},
			want: []Deviation{{"power.governor", "CPU 3", "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "powersave", "performance"}},
		},
		"the governor is kept": {change: []func(fixture){func(f fixture) {
			f.plan.Power.Governor = v1alpha1.GovernorKept
			f.eachCPU(func(cpu *host.CPU) { cpu.Frequency.Governor = known("powersave") }, 3)
		}}},
		"packets are handed on to isolated CPUs": {change: []func(fixture){steer("1-3")}, want: steered(list("1-3").Mask(), list("1").Mask())},
		"packets are to be handed on to nobody": {
			change: []func(fixture){steer("1-3"), func(f fixture) { f.plan.Network.Steering = v1alpha1.PacketSteeringOff }},
			want:   steered(list("1-3").Mask(), cpus.Set{}.Mask()),
		},
		"packets are handed on to housekeeping CPUs": {change: []func(fixture){steer("0,4")}},
	}
	for name, tc := range cases {
		t.Run(name, tc.test)
	}
}
