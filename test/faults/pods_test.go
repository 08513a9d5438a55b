// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

const socket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// engine is a container with CPUs and a NIC, as the kubelet's PodResources service tells of it.
func (n *node) engine(own cpus.Set, memoryNode int) allocation.Container {
	return allocation.Container{
		Namespace: "trading", Pod: "engine-0", Name: "engine", CPUs: own,
		Memory: []allocation.MemoryBlock{{Type: "memory", Bytes: 1 << 30, NUMANodes: []int{memoryNode}}},
		Devices: []allocation.HeldDevices{{
			Resource: v1alpha1.GroupName + "/onload", IDs: []string{n.plan.BypassNICs[0].PCIAddress}, NUMANodes: []int{*n.plan.BypassNICs[0].NUMANode},
		}},
	}
}

// near are the isolated CPUs of NUMA node 1, where the bypass NICs are.
func (n *node) near() cpus.Set {
	n.t.Helper()
	set, err := cpus.Parse(strings.TrimSpace(n.text("/sys/devices/system/node/node1/cpulist")))
	n.must(err)
	return set.Intersection(n.plan.CPUs.Isolated)
}

// tells lets the kubelet tell of containers and of what it may give away.
func tells(offered func(*node) cpus.Set, containers func(*node) []allocation.Container) func(*node, *verify.Input) {
	return func(n *node, in *verify.Input) {
		all := host.Known(containers(n), socket)
		allocatable := host.Known(verify.Allocatable{CPUs: offered(n), Devices: n.engine(cpus.Set{}, 1).Devices}, socket)
		in.Containers, in.Allocatable = &all, &allocatable
	}
}

func isolated(n *node) cpus.Set { return n.plan.CPUs.Isolated }

func nobody(*node) []allocation.Container { return nil }

// holder lets one container hold the NIC.
func holder(alignment v1alpha1.Alignment, message string) func(*node, *verify.Input) {
	return func(n *node, in *verify.Input) {
		held := host.Known([]allocation.Holder{{
			PCIAddress: n.plan.BypassNICs[0].PCIAddress, Container: n.engine(n.near(), 1), Alignment: alignment, Message: message,
		}}, socket)
		in.Holders = &held
	}
}

// fingerprintOf is what the agent compares of a host.
func fingerprintOf(facts *host.Facts) v1alpha1.LatencyFingerprint {
	found, err := topology.FromFacts(facts)
	if err != nil {
		panic(err)
	}
	return qualification.FingerprintOfInventory("plan", topology.Inventory(facts, found), nil)
}

// qualified lets a run have measured the host.
func qualified(change func(*verify.Qualification)) func(*node, *verify.Input) {
	return func(_ *node, in *verify.Input) {
		run := verify.Qualification{Now: fingerprintOf(in.Facts), ManagementInterrupts: host.Known(uint64(0), "perf event msr/smi/")}
		run.Then = *run.Now.DeepCopy()
		change(&run)
		in.Qualification = &run
	}
}

func faultsOfPods() []fault {
	on := []string{xeonPool}
	return []fault{
		{
			name: "a container that holds a NIC is spread over NUMA nodes", on: on,
			more: holder(v1alpha1.AlignmentSplit, "its CPUs are on NUMA node 0, the NIC is on 1"),
			want: "numa.pods", says: []string{"container trading/engine-0/engine is spread over NUMA nodes"}, makes: []string{v1alpha1.ConditionNUMAAligned},
		},
		{
			name: "nobody can tell where a container is that holds a NIC", on: on,
			more: holder(v1alpha1.AlignmentUnknown, "the kubelet gave it no CPUs of its own"),
			want: "numa.pods", unknown: "it has no CPUs of its own", says: []string{"cannot be proven"},
		},
		{
			name: "a container has its CPUs on both NUMA nodes", on: on,
			more: tells(isolated, func(n *node) []allocation.Container { return []allocation.Container{n.engine(n.plan.CPUs.Isolated, 1)} }),
			want: "numa.exclusive-pods", says: []string{"trading/engine-0/engine"}, makes: []string{v1alpha1.ConditionNUMAAligned},
		},
		{
			name: "a container has memory of another NUMA node than its CPUs", on: on,
			more: tells(isolated, func(n *node) []allocation.Container { return []allocation.Container{n.engine(n.near(), 0)} }),
			want: "numa.exclusive-pods", says: []string{"trading/engine-0/engine"},
		},
		{
			name: "the kubelet offers fewer CPUs", on: on,
			more: tells(func(n *node) cpus.Set { return n.plan.CPUs.Isolated.Difference(n.firstIsolated()) }, nobody),
			want: "kubelet.allocatable", says: []string{"does not offer isolated CPU {cpu}"},
		},
		{
			name: "the kubelet offers housekeeping CPUs", on: on,
			more: tells(func(n *node) cpus.Set { return n.plan.CPUs.Isolated.Union(n.firstHousekeeping()) }, nobody),
			want: "kubelet.allocatable", says: []string{"which is not isolated for pods"},
		},
		{
			name: "the kubelet believes a NIC elsewhere", on: on,
			more: func(n *node, in *verify.Input) {
				tells(isolated, nobody)(n, in)
				in.Allocatable.Value.Devices[0].NUMANodes = []int{0}
			},
			want: "kubelet.allocatable", says: []string{"does not know that NIC {nic}", "on NUMA node 1"},
		},
		{
			name: "the firmware interrupted the run", on: []string{xeon},
			more: qualified(func(run *verify.Qualification) { run.ManagementInterrupts.Value = 3 }),
			want: "firmware.smi", says: []string{"a few times"},
		},
	}
}

func faultsOfQualifications() []fault {
	return []fault{
		{
			name: "the firmware was updated since the run",
			more: qualified(func(run *verify.Qualification) { run.Then.BIOSVersion = "another" }),
			want: "firmware.fingerprint", says: []string{"changed since the qualification run: the firmware (", ", was another)"},
		},
		{
			name: "kernel and microcode were updated since the run", on: x86(),
			more: qualified(func(run *verify.Qualification) { run.Then.Kernel, run.Then.Microcode = "5.14.0-1", "0x1" }),
			want: "firmware.fingerprint", says: []string{"the kernel (", ", was 5.14.0-1), the microcode (", ", was 0x1)"},
		},
		{
			name: "the kernel mitigated other vulnerabilities when the run was",
			more: qualified(func(run *verify.Qualification) { run.Then.MitigationsHash, run.Now.MitigationsHash = "a", "b" }),
			want: "firmware.fingerprint", says: []string{"changed since the qualification run: the mitigations of CPU vulnerabilities"},
		},
		{
			name: "the host no longer tells its command line", on: x86(),
			more: qualified(func(run *verify.Qualification) { run.Now.CommandLineHash = "" }),
			want: "firmware.fingerprint", unknown: "it told it then", says: []string{"the kernel's command line cannot be read"},
		},
		{
			name: "a program of a pod takes memory of another NUMA node", on: []string{xeon},
			harm: func(n *node) {
				n.pod(n.near())
				n.edit("/proc/9000/status", "Mems_allowed_list:\t0\n", "Mems_allowed_list:\t0-1\n")
			},
			want: "numa.pod-memory", says: []string{"engine (process 9000)", "NUMA node 0"},
		},
		{
			name: "the container of a pod has a quota",
			harm: func(n *node) {
				n.pod(n.core())
				for _, file := range n.files("/sys/fs/cgroup/kubepods.slice/*/*/cpu.max") {
					n.put(file, "200000 100000\n")
				}
			},
			want: "pod.cpu-quota", says: []string{"cpu.max is 200000 100000"},
		},
		{
			name: "a whole pod has a quota",
			harm: func(n *node) {
				n.pod(n.core())
				for _, file := range n.files("/sys/fs/cgroup/kubepods.slice/*/cpu.max") {
					n.put(file, "200000 100000\n")
				}
			},
			want: "pod.cpu-quota", says: []string{"the pod of container engine"},
		},
		{
			name: "the container of a pod has a quota, with version 1 of control groups",
			harm: func(n *node) { n.podOfVersion1(n.core(), "200000", "-1") },
			want: "pod.cpu-quota", says: []string{"container engine", "cpu.cfs_quota_us is 200000"},
		},
		{
			name: "a whole pod has a quota, with version 1 of control groups",
			harm: func(n *node) { n.podOfVersion1(n.core(), "-1", "400000") },
			want: "pod.cpu-quota", says: []string{"the pod of container engine", "cpu.cfs_quota_us is 400000"},
		},
		{
			name: "a pod owns housekeeping CPUs",
			harm: func(n *node) { n.pod(n.firstHousekeeping()) },
			want: "kubelet.cpu-manager", says: []string{"not isolated for pods"},
		},
	}
}

func variationsOfPods() []variation {
	on := []string{xeonPool}
	return []variation{
		{name: "no container holds a NIC", on: on, more: func(_ *node, in *verify.Input) {
			held := host.Known([]allocation.Holder{}, socket)
			in.Holders = &held
		}},
		{name: "a container that holds a NIC is on its NUMA node", on: on, more: holder(v1alpha1.AlignmentAligned, "")},
		{name: "the kubelet tells of a container on one NUMA node", on: on, more: tells(isolated, func(n *node) []allocation.Container {
			return []allocation.Container{n.engine(n.near(), 1), {Namespace: "kube-system", Pod: "dns", Name: "dns"}}
		})},
		{name: "a qualification run agrees", more: qualified(func(*verify.Qualification) {})},
		{name: "nobody counted what the firmware does", more: qualified(func(run *verify.Qualification) {
			run.ManagementInterrupts = host.Absent[uint64]("perf event msr/smi/", "no such event")
		})},
		{name: "an earlier version of the operator qualified the host", more: qualified(func(run *verify.Qualification) { run.Then.MitigationsHash = "" })},
		{name: "the plan is another than when the host was qualified", more: qualified(func(run *verify.Qualification) { run.Then.PlanHash = "earlier" })},
		{
			name: "a pod owns all CPUs of a NUMA node", on: x86(),
			change: func(n *node) {
				n.pod(n.near())
				n.edit("/proc/9000/status", "Mems_allowed_list:\t0\n", "Mems_allowed_list:\t1\n")
			},
		},
		{
			name:   "a pod owns CPUs, with version 1 of control groups",
			change: func(n *node) { n.podOfVersion1(n.core(), "-1", "-1") },
		},
		{
			name: "a pod that shares CPUs has a quota",
			change: func(n *node) {
				n.put("/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podx.slice/cpu.max", "200000 100000\n")
			},
		},
		{
			name: "the kubelet started anew, and the pod that owned CPUs is gone",
			change: func(n *node) {
				n.pod(n.core())
				n.remove("/proc/9000", "/sys/fs/cgroup/kubepods.slice")
				n.put("/var/lib/kubelet/cpu_manager_state", `{"policyName":"static","defaultCpuSet":"`+n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated).String()+`","checksum":7}`)
			},
		},
	}
}
