// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"path/filepath"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const operatorNamespace = "lowlatency-system"

// examples are plans as they are made for real machines, written down by hand so that a change of planning rules
// does not change what these tests say about rendering.
func examples(t testing.TB) map[string]Input {
	t.Helper()
	return map[string]Input{
		"trading-xeon": {
			Plan:              withRuntime(tradingXeon(t)),
			MachineConfigPool: MachineConfigPool{Name: "trading-1f2e3d4c", Management: v1alpha1.PoolsManaged, MaximumUnavailableNodes: 2},
			Namespace:         operatorNamespace,
		},
		"perpod-epyc": {
			Plan:              withRuntime(perPodEPYC(t)),
			MachineConfigPool: MachineConfigPool{Name: "dataplane-0a1b2c3d", Paused: true},
			Namespace:         operatorNamespace,
		},
		"realtime-existing": {
			Plan: withRuntime(realTimeXeon(t)),
			MachineConfigPool: MachineConfigPool{
				Name:                "ran",
				Management:          v1alpha1.PoolsExisting,
				PoolSelector:        map[string]string{"pools.operator.machineconfiguration.openshift.io/ran": ""},
				MachineConfigLabels: map[string]string{LabelMachineConfigRole: "ran"},
			},
			Namespace: operatorNamespace,
		},
		"arm-64k": {
			Plan:              withRuntime(largePagesArm(t)),
			MachineConfigPool: MachineConfigPool{Name: "edge-55667788", Management: v1alpha1.PoolsManaged},
			Namespace:         operatorNamespace,
		},
	}
}

// plannedExamples are the examples, and the planner's own golden plans for the machines of its tests: with them, what
// is judged is what comes out of planning and rendering together.
func plannedExamples(t testing.TB) map[string]Input {
	t.Helper()
	inputs := examples(t)
	for name, planned := range objects.GoldenPlans(t, filepath.Join("..", "..", "..", "plan", "testdata")) {
		name = "planned-" + name
		inputs[name] = Input{Plan: planned, MachineConfigPool: MachineConfigPool{Name: name}, Namespace: operatorNamespace}
	}
	return inputs
}

// withRuntime completes a plan with what the planner always decides.
func withRuntime(p *plan.NodePlan) *plan.NodePlan {
	p.ContainerRuntime = runtimeOf(p.CPUs)
	return p
}

func example(t testing.TB, name string) Input {
	t.Helper()
	in, ok := plannedExamples(t)[name]
	if !ok {
		t.Fatalf("no example %q", name)
	}
	return in
}

// tradingXeon is a dual-socket Xeon with 80 CPUs: isolated statically, 1 GiB pages by kernel argument, 2 MiB pages on
// the NUMA node of the NIC by a unit.
func tradingXeon(t testing.TB) *plan.NodePlan {
	housekeeping, isolated := set(t, "0-1,40-41"), set(t, "2-39,42-79")
	return &plan.NodePlan{
		Profile: "trading", Architecture: "amd64", Vendor: "Intel",
		CPUs: plan.CPUPlan{
			Housekeeping: housekeeping, Isolated: isolated,
			SMT: v1alpha1.SMTKept, Isolation: v1alpha1.IsolationStatic, Tick: v1alpha1.TickStopped,
			Origin: plan.Origin{Source: plan.FromTopology, Detail: "1 core of each NUMA node"},
		},
		Kernel: plan.KernelPlan{Type: v1alpha1.KernelDefault, PageSize: v1alpha1.PageSize4Ki},
		KernelArguments: arguments("skew_tick=1", "nohz=on", "nohz_full=2-39,42-79", "rcu_nocbs=2-39,42-79",
			"isolcpus=domain,managed_irq,2-39,42-79", "irqaffinity=0-1,40-41", "systemd.cpu_affinity=0-1,40-41",
			"default_hugepagesz=1G", "hugepagesz=1G", "hugepages=16", "intel_iommu=on", "iommu=pt", "tsc=reliable",
			"nmi_watchdog=0", "nosoftlockup", "audit=0"),
		Hugepages: []plan.HugepagePlan{
			{Size: "1Gi", SizeKibibytes: 1 << 20, Count: 16, Method: plan.ByKernelArgument},
			{Size: "2Mi", SizeKibibytes: 2048, Count: 400, NUMANode: new(1), Method: plan.ByUnit},
		},
		Interrupts: plan.InterruptPlan{
			Placement: v1alpha1.InterruptsHousekeeping, DefaultAffinity: housekeeping,
			Balancer: v1alpha1.BalancerRestricted, Banned: isolated,
		},
		Power: plan.PowerPlan{
			IdleStates: v1alpha1.IdleShallowByQoS, FrequencyDriver: v1alpha1.FrequencyDriverActive,
			Governor: v1alpha1.GovernorPerformance, Turbo: v1alpha1.TurboKept,
		},
		Sysctls: settings("kernel.numa_balancing", "0", "kernel.sched_rt_runtime_us", "-1",
			"kernel.timer_migration", "1", "vm.stat_interval", "10"),
		Sysfs: settings("/sys/devices/virtual/workqueue/cpumask", housekeeping.Mask(),
			"/sys/kernel/mm/ksm/run", "2", "/sys/kernel/mm/transparent_hugepage/enabled", "never"),
		Network: plan.NetworkPlan{
			Queues:   4,
			NICs:     []v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}, {Interfaces: []v1alpha1.InterfacePattern{"ens*f0"}}},
			Steering: v1alpha1.PacketSteeringOff,
		},
		Kubelet: managedKubelet(housekeeping, "single-numa-node", "pod"),
		Files: []plan.File{
			{Path: "/etc/lowlatency/irqbalance.env", Mode: 0o644, Content: "IRQBALANCE_BANNED_CPULIST=2-39,42-79\n"},
			{Path: "/etc/modprobe.d/lowlatency.conf", Mode: 0o644, Content: "blacklist ip_tables\n"},
		},
		Units: []plan.Unit{
			{Name: "fwupd-refresh.timer", Masked: true},
			{Name: "irqbalance.service", DropIns: map[string]string{
				"10-lowlatency.conf": "[Service]\nEnvironmentFile=/etc/lowlatency/irqbalance.env\n",
			}},
			{Name: "kubelet.service", DropIns: map[string]string{
				"20-lowlatency.conf": "[Unit]\nRequires=lowlatency-hugepages-2048kB-node1.service\n",
				"10-lowlatency.conf": "[Service]\nCPUAffinity=0-1,40-41\n",
			}},
			{Name: "lowlatency-hugepages-2048kB-node1.service", Enabled: true, Content: "[Unit]\nBefore=kubelet.service\n" +
				"[Service]\nType=oneshot\nExecStart=/bin/true\n[Install]\nRequiredBy=kubelet.service\n"},
		},
		StopServices:  settings("fwupd-refresh.timer", ""),
		UnloadModules: settings("ip_tables", ""),
		Verification:  plan.VerificationPlan{Gate: v1alpha1.GateTaint, MultipleNUMANodes: true},
	}
}

// perPodEPYC is an EPYC with 8 NUMA nodes: everything per pod, nothing that the CPU would do by itself is changed.
func perPodEPYC(t testing.TB) *plan.NodePlan {
	housekeeping := set(t, "0,8,16,24,32,40,48,56,64,72,80,88,96,104,112,120")
	kubelet := managedKubelet(housekeeping, "restricted", "container")
	kubelet.Additional = map[string]any{"maxPods": 100}
	return &plan.NodePlan{
		Profile: "dataplane", Architecture: "amd64", Vendor: "AMD",
		CPUs: plan.CPUPlan{
			Housekeeping: housekeeping, Isolated: set(t, "0-127").Difference(housekeeping),
			SMT: v1alpha1.SMTKept, Isolation: v1alpha1.IsolationPerPod, Tick: v1alpha1.TickPeriodic,
		},
		Kernel:          plan.KernelPlan{Type: v1alpha1.KernelDefault, PageSize: v1alpha1.PageSize4Ki},
		KernelArguments: arguments("skew_tick=1", "amd_pstate=passive", "iommu=pt"),
		Interrupts: plan.InterruptPlan{
			Placement: v1alpha1.InterruptsPerPod, DefaultAffinity: set(t, "0-127"), Balancer: v1alpha1.BalancerKept,
		},
		Power: plan.PowerPlan{
			IdleStates: v1alpha1.IdleKept, FrequencyDriver: v1alpha1.FrequencyDriverPassive,
			Governor: v1alpha1.GovernorKept, Turbo: v1alpha1.TurboKept,
		},
		Sysctls: settings("kernel.timer_migration", "1"),
		Network: plan.NetworkPlan{Queues: 16, Steering: v1alpha1.PacketSteeringOff},
		Kubelet: kubelet,
	}
}

// realTimeXeon is a single-socket Xeon with explicit CPU lists, a real-time kernel and no kubelet managers.
func realTimeXeon(t testing.TB) *plan.NodePlan {
	housekeeping := set(t, "0-3")
	return &plan.NodePlan{
		Profile: "ran", Architecture: "amd64", Vendor: "Intel",
		CPUs: plan.CPUPlan{
			Housekeeping: housekeeping, Isolated: set(t, "4-31"), Offline: set(t, "32-63"),
			SMT: v1alpha1.SMTDisabled, Isolation: v1alpha1.IsolationStatic, Tick: v1alpha1.TickStopped,
		},
		Kernel: plan.KernelPlan{Type: v1alpha1.KernelRealTime, PageSize: v1alpha1.PageSize4Ki},
		KernelArguments: arguments("skew_tick=1", "nohz_full=4-31", "rcu_nocbs=4-31", "isolcpus=domain,managed_irq,4-31",
			"nosmt", "idle=poll", "rcutree.kthread_prio=11"),
		Interrupts: plan.InterruptPlan{
			Placement: v1alpha1.InterruptsHousekeeping, DefaultAffinity: housekeeping, Balancer: v1alpha1.BalancerStopped,
		},
		Power: plan.PowerPlan{
			IdleStates: v1alpha1.IdlePolling, FrequencyDriver: v1alpha1.FrequencyDriverActive,
			Governor: v1alpha1.GovernorPerformance, Turbo: v1alpha1.TurboDisabled,
		},
		Sysfs: settings("/sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
		Kubelet: plan.KubeletPlan{
			CPUManagerPolicy: "none", MemoryManagerPolicy: "None", TopologyManagerPolicy: "none",
			ReservedSystemCPUs: housekeeping.String(),
		},
		Units: []plan.Unit{{Name: "irqbalance.service", Masked: true}},
	}
}

// largePagesArm is an arm64 server with 64 KiB pages.
func largePagesArm(t testing.TB) *plan.NodePlan {
	housekeeping, isolated := set(t, "0-1,64-65"), set(t, "2-63,66-127")
	return &plan.NodePlan{
		Profile: "edge", Architecture: "arm64", Vendor: "ARM",
		CPUs: plan.CPUPlan{
			Housekeeping: housekeeping, Isolated: isolated,
			SMT: v1alpha1.SMTKept, Isolation: v1alpha1.IsolationStatic, Tick: v1alpha1.TickStopped,
		},
		Kernel:          plan.KernelPlan{Type: v1alpha1.KernelDefault, PageSize: v1alpha1.PageSize64Ki},
		KernelArguments: arguments("nohz_full=2-63,66-127", "default_hugepagesz=512M", "hugepagesz=512M", "hugepages=32"),
		Interrupts: plan.InterruptPlan{
			Placement: v1alpha1.InterruptsHousekeeping, DefaultAffinity: housekeeping,
			Balancer: v1alpha1.BalancerRestricted, Banned: isolated,
		},
		Power: plan.PowerPlan{
			IdleStates: v1alpha1.IdleShallowByQoS, FrequencyDriver: v1alpha1.FrequencyDriverKept,
			Governor: v1alpha1.GovernorPerformance, Turbo: v1alpha1.TurboKept,
		},
		Kubelet: managedKubelet(housekeeping, "best-effort", "container"),
	}
}

// managedKubelet has all managers on, with 1100 MiB reserved on NUMA nodes 0 and 1.
func managedKubelet(reserved cpus.Set, policy, scope string) plan.KubeletPlan {
	return plan.KubeletPlan{
		CPUManagerPolicy:          "static",
		CPUManagerPolicyOptions:   map[string]string{"full-pcpus-only": "true"},
		CPUManagerReconcilePeriod: "5s",
		TopologyManagerPolicy:     policy,
		TopologyManagerScope:      scope,
		MemoryManagerPolicy:       "Static",
		ReservedSystemCPUs:        reserved.String(),
		ReservedMemory: []plan.MemoryReservation{
			{NUMANode: 0, Limits: map[string]string{"memory": "550Mi"}},
			{NUMANode: 1, Limits: map[string]string{"memory": "550Mi"}},
		},
		SystemReserved: map[string]string{"memory": "500Mi"},
		KubeReserved:   map[string]string{"memory": "500Mi"},
		EvictionHard: map[string]string{
			"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%",
		},
		Origin: plan.Origin{Source: plan.FromDefault, Detail: "spec.kubelet.resourceManagement"},
	}
}

func set(t testing.TB, list string) cpus.Set {
	t.Helper()
	parsed, err := cpus.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func arguments(texts ...string) []plan.Argument {
	out := make([]plan.Argument, 0, len(texts))
	for _, text := range texts {
		out = append(out, plan.Argument{Text: text, Origin: plan.Origin{Source: plan.FromDefault, Detail: "spec"}})
	}
	return out
}

// settings takes names and values in turn.
func settings(namesAndValues ...string) []plan.Setting {
	var out []plan.Setting
	for i := 0; i < len(namesAndValues); i += 2 {
		out = append(out, plan.Setting{Name: namesAndValues[i], Value: namesAndValues[i+1]})
	}
	return out
}
