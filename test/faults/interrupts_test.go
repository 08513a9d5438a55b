// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"path/filepath"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

func faultsOfInterrupts() []fault {
	return []fault{
		{
			name: "an interrupt is delivered to an isolated CPU",
			harm: func(n *node) { n.moveIRQ(n.irq(n.otherNIC()), n.isolated()) },
			want: "irq.effective-affinity", says: []string{"is delivered to isolated CPU"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "an interrupt was handled by an isolated CPU",
			harm: func(n *node) { n.moveIRQ(n.irq(n.otherNIC()), n.isolated()) },
			want: "irq.delivered", says: []string{"since the last reading"},
		},
		{
			name: "new interrupts may go anywhere",
			harm: func(n *node) { n.put("/proc/irq/default_smp_affinity", n.plan.CPUs.Isolated.Mask()+"\n") },
			want: "irq.default-affinity",
		},
		{
			name: "irqbalance may use isolated CPUs",
			harm: func(n *node) {
				n.process(hosttree.Process{
					PID: 812, Name: "irqbalance", AllowedCPUs: n.plan.CPUs.Housekeeping,
					Environment: map[string]string{"IRQBALANCE_BANNED_CPULIST": "0"},
				})
			},
			want: "irq.balancer", says: []string{"irqbalance (process 812) may use isolated CPU"},
		},
		{
			name: "a mask of fewer CPUs stands beside the list of irqbalance",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 812, Name: "irqbalance", AllowedCPUs: n.plan.CPUs.Housekeeping, Environment: map[string]string{
					"IRQBALANCE_BANNED_CPULIST": n.plan.CPUs.Isolated.String(), "IRQBALANCE_BANNED_CPUS": cpus.Of(n.isolated()).Mask(),
				}})
			},
			want: "irq.balancer", says: []string{"IRQBALANCE_BANNED_CPUS="},
		},
		{
			name: "an interrupt reaches the CPU of a pod that asked for none", on: []string{xeonPerPod},
			harm: func(n *node) {
				n.pod(n.core())
				n.put("/proc/irq/default_smp_affinity", n.plan.Interrupts.DefaultAffinity.Difference(n.core()).Mask()+"\n")
				n.moveIRQ(n.irq(n.otherNIC()), n.isolated())
			},
			want: "irq.effective-affinity", says: []string{"whose pod asked for no interrupts"},
		},
		{
			name: "irqbalance is given a mask that is none",
			harm: func(n *node) {
				n.process(hosttree.Process{PID: 812, Name: "irqbalance", AllowedCPUs: n.plan.CPUs.Housekeeping, Environment: map[string]string{
					"IRQBALANCE_BANNED_CPUS": "0x" + n.plan.CPUs.Isolated.Mask(),
				}})
			},
			want: "irq.balancer", says: []string{"IRQBALANCE_BANNED_CPUS=0x"},
		},
		{
			name:   "softirqs of the network run on an isolated CPU",
			during: func(n *node) { n.count("/proc/softirqs", "NET_RX", n.isolated(), 5000) },
			want:   "irq.softirqs", says: []string{"NET_RX"},
		},
		{
			name:   "the timer interrupts an isolated CPU",
			during: func(n *node) { n.count("/proc/interrupts", tick(n), n.isolated(), 2500) },
			want:   "cpu.tick",
		},
		{
			name: "other CPUs interrupt an isolated one", on: x86(),
			during: func(n *node) { n.count("/proc/interrupts", "CAL", n.isolated(), 200) },
			want:   "irq.ipis", says: []string{"other CPUs interrupt it"},
		},
	}
}

// tick is the name of the timer in /proc/interrupts.
func tick(n *node) string {
	if n.hardware.Architecture == "arm64" {
		return "11"
	}
	return "LOC"
}

// keepInterruptsOff moves interrupts away from CPUs, as CRI-O does for a pod that asks for none.
func (n *node) keepInterruptsOff(own cpus.Set) {
	n.t.Helper()
	rest := n.plan.Interrupts.DefaultAffinity.Difference(own)
	n.put("/proc/irq/default_smp_affinity", rest.Mask()+"\n")
	for _, file := range n.files("/proc/irq/*/smp_affinity_list") {
		irq, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		n.must(err)
		if set, err := cpus.Parse(n.text(file)); err == nil && set.Overlaps(own) && irq > 0 {
			_ = hosttree.MoveIRQ(n.host.Dir, irq, rest)
		}
	}
}

// second lets the kubelet give CPUs to a second container of the pod that owns a core.
func (n *node) second(own cpus.Set) {
	n.t.Helper()
	const state = "/var/lib/kubelet/cpu_manager_state"
	n.edit(state, `"engine":`, fmt.Sprintf(`"feed":%q,"engine":`, own))
	shared := n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).Difference(n.core())
	n.edit(state, fmt.Sprintf(`"defaultCpuSet":%q`, shared), fmt.Sprintf(`"defaultCpuSet":%q`, shared.Difference(own)))
	pod := n.files("/sys/fs/cgroup/kubepods.slice/kubepods-pod*.slice")[0]
	container := pod + "/crio-fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210.scope"
	n.put(container+"/cpu.max", "max 100000\n")
	n.put(container+"/cpuset.cpus.effective", own.String()+"\n")
}

func variationsOfInterrupts() []variation {
	return []variation{
		{
			name: "an interrupt moves from one housekeeping CPU to another",
			change: func(n *node) {
				n.moveIRQ(n.irq(n.otherNIC()), n.plan.CPUs.Housekeeping.IDs()[n.plan.CPUs.Housekeeping.Len()-1])
			},
		},
		{
			name: "irqbalance runs and keeps off isolated CPUs",
			change: func(n *node) {
				n.put("/etc/sysconfig/irqbalance", "IRQBALANCE_BANNED_CPULIST="+n.plan.CPUs.Isolated.String()+"\n")
				n.process(hosttree.Process{
					PID: 812, Name: "irqbalance", AllowedCPUs: n.plan.CPUs.Housekeeping,
					Environment: map[string]string{"IRQBALANCE_BANNED_CPULIST": n.plan.CPUs.Isolated.String()},
				})
			},
		},
		{
			name: "irqbalance has the mask, and a list that does not count beside it",
			change: func(n *node) {
				n.process(hosttree.Process{PID: 812, Name: "irqbalance", AllowedCPUs: n.plan.CPUs.Housekeeping, Environment: map[string]string{
					"IRQBALANCE_BANNED_CPULIST": "0", "IRQBALANCE_BANNED_CPUS": n.plan.CPUs.Isolated.Mask(),
				}})
			},
		},
		{
			name: "a pod that asked for no interrupts has none", on: []string{xeonPerPod},
			change: func(n *node) {
				n.pod(n.core())
				n.keepInterruptsOff(n.core())
			},
		},
		{
			name: "a pod that did not ask for quiet interrupts owns a core", on: []string{xeonPerPod},
			change: func(n *node) { n.pod(n.core()) },
		},
		{
			name: "one container asked for no interrupts, and another one did not", on: []string{xeonPerPod},
			change: func(n *node) {
				n.pod(n.core())
				n.second(cpus.Of(n.plan.CPUs.Isolated.Difference(n.core()).First()))
				n.keepInterruptsOff(n.core())
			},
		},
		{
			name:   "one timer interrupt in ten seconds",
			during: func(n *node) { n.count("/proc/interrupts", tick(n), n.isolated(), 1) },
		},
		{
			name:   "housekeeping CPUs handle a million interrupts",
			during: func(n *node) { n.count("/proc/softirqs", "NET_RX", n.housekeeping(), 1_000_000) },
		},
		{
			name:   "the default affinity is one housekeeping CPU",
			change: func(n *node) { n.put("/proc/irq/default_smp_affinity", cpus.Of(n.housekeeping()).Mask()+"\n") },
		},
	}
}
