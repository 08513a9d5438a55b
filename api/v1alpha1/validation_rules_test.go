// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

type (
	profile     = v1alpha1.LowLatencyNodeProfile
	profileRule = rule[v1alpha1.LowLatencyNodeProfile]
	nodeRule    = rule[v1alpha1.LowLatencyNode]
)

// profileRules returns a case for each CEL rule of LowLatencyNodeProfile.
func profileRules() []profileRule {
	return slices.Concat(crossSectionRules(), poolRules(), labelRules(), cpuRules(), cpuListRules(),
		nodeSelectorRules(func(p *profile, selector v1alpha1.NodeSelector) { p.Spec.NodeSelector = selector }),
		hugepageRules(), numaAndPowerRules(), kubeletRules(), networkRules(), systemRules(), hazardRules())
}

func crossSectionRules() []profileRule {
	return []profileRule{
		{
			message:  "metadata.name must be at most 40 characters long, because the names of machine config pools are made from it.",
			accepted: func(p *profile) { p.Name = strings.Repeat("a", 40) },
			rejected: func(p *profile) { p.Name = strings.Repeat("a", 41) },
		},
		{
			field:   "spec",
			message: "spec.memory.kernelPageSize 64Ki cannot be combined with spec.kernel.type RealTime: no real-time kernel with 64 KiB pages exists.",
			accepted: func(p *profile) {
				p.Spec.Memory.KernelPageSize = v1alpha1.PageSize64Ki
				p.Spec.Kernel.Type = v1alpha1.KernelDefault
			},
			rejected: func(p *profile) {
				p.Spec.Memory.KernelPageSize = v1alpha1.PageSize64Ki
				p.Spec.Kernel.Type = v1alpha1.KernelRealTime
			},
		},
		{
			field:   "spec",
			message: "spec.interrupts.balancer Stopped cannot be combined with spec.interrupts.placement PerPod: the container runtime moves interrupts through irqbalance.",
			accepted: func(p *profile) {
				p.Spec.Interrupts.Placement = v1alpha1.InterruptsHousekeeping
				p.Spec.Interrupts.Balancer = v1alpha1.BalancerStopped
			},
			rejected: func(p *profile) {
				p.Spec.Interrupts.Placement = v1alpha1.InterruptsPerPod
				p.Spec.Interrupts.Balancer = v1alpha1.BalancerStopped
			},
		},
	}
}

func existingPool(p *profile) {
	p.Spec.Pools = v1alpha1.PoolsSpec{
		Management: v1alpha1.PoolsExisting,
		Existing: &v1alpha1.ExistingPool{
			MachineConfigPoolSelector: v1alpha1.Labels{"pools.operator.machineconfiguration.openshift.io/trading": ""},
			MachineConfigLabels:       v1alpha1.Labels{"machineconfiguration.openshift.io/role": "trading"},
		},
	}
}

func poolRules() []profileRule {
	return []profileRule{
		{
			field:    "spec.pools",
			message:  "spec.pools.existing must be set when spec.pools.management is Existing, and only then.",
			accepted: existingPool,
			rejected: func(p *profile) {
				existingPool(p)
				p.Spec.Pools.Management = v1alpha1.PoolsManaged
			},
		},
		{
			field:    "spec.pools",
			message:  "spec.pools.maximumUnavailableNodes applies to Managed machine config pools only; an existing one has its own spec.maxUnavailable.",
			accepted: func(p *profile) { p.Spec.Pools.MaximumUnavailableNodes = 2 },
			rejected: func(p *profile) {
				existingPool(p)
				p.Spec.Pools.MaximumUnavailableNodes = 2
			},
		},
	}
}

// labelRules returns the rules of keys and values for each set of labels.
func labelRules() []profileRule {
	sets := map[string]func(*profile, v1alpha1.Labels){
		"spec.nodeSelector.matchLabels": func(p *profile, labels v1alpha1.Labels) {
			p.Spec.NodeSelector.MatchLabels = labels
		},
		"spec.pools.existing.machineConfigPoolSelector": func(p *profile, labels v1alpha1.Labels) {
			existingPool(p)
			p.Spec.Pools.Existing.MachineConfigPoolSelector = labels
		},
		"spec.pools.existing.machineConfigLabels": func(p *profile, labels v1alpha1.Labels) {
			existingPool(p)
			p.Spec.Pools.Existing.MachineConfigLabels = labels
		},
	}
	rules := make([]profileRule, 0, 2*len(sets))
	for field, set := range sets {
		rules = append(rules,
			profileRule{
				field:    field,
				message:  "a label key is a name of at most 63 letters, digits and _.-, which a DNS name and a slash may precede.",
				accepted: func(p *profile) { set(p, v1alpha1.Labels{"node-role.kubernetes.io/trading": "", "zone_A": "x"}) },
				rejected: func(p *profile) { set(p, v1alpha1.Labels{"trading nodes": ""}) },
			},
			profileRule{
				field:    field + "[]",
				message:  "a label value is empty or begins and ends with a letter or digit, with letters, digits and _.- between.",
				accepted: func(p *profile) { set(p, v1alpha1.Labels{"zone": "rack-1.A_2"}) },
				rejected: func(p *profile) { set(p, v1alpha1.Labels{"zone": "rack 1"}) },
			})
	}
	return rules
}

func explicitCPUs(p *profile) {
	p.Spec.CPUs = v1alpha1.CPUsSpec{
		Partition: v1alpha1.PartitionExplicit,
		Explicit:  &v1alpha1.ExplicitCPUs{Housekeeping: "0-1,40-41", Isolated: "2-39,42-79"},
	}
}

func cpuRules() []profileRule {
	return []profileRule{
		{
			field:    "spec.cpus",
			message:  "spec.cpus.explicit must be set when spec.cpus.partition is Explicit, and only then.",
			accepted: explicitCPUs,
			rejected: func(p *profile) { p.Spec.CPUs.Partition = v1alpha1.PartitionExplicit },
		},
		{
			field:   "spec.cpus",
			message: "spec.cpus.derived may be set only when spec.cpus.partition is Derived.",
			accepted: func(p *profile) {
				p.Spec.CPUs.Partition = v1alpha1.PartitionDerived
				p.Spec.CPUs.Derived = &v1alpha1.DerivedCPUs{HousekeepingCores: 2}
			},
			rejected: func(p *profile) {
				explicitCPUs(p)
				p.Spec.CPUs.Derived = &v1alpha1.DerivedCPUs{HousekeepingCores: 2}
			},
		},
		{
			field:   "spec.cpus.explicit",
			message: "spec.cpus.explicit.dataPlaneLoadBalancing may be set only together with spec.cpus.explicit.dataPlane.",
			accepted: func(p *profile) {
				explicitCPUs(p)
				p.Spec.CPUs.Explicit.DataPlane = "80-83"
				p.Spec.CPUs.Explicit.DataPlaneLoadBalancing = v1alpha1.LoadBalancingDisabled
			},
			rejected: func(p *profile) {
				explicitCPUs(p)
				p.Spec.CPUs.Explicit.DataPlaneLoadBalancing = v1alpha1.LoadBalancingDisabled
			},
		},
	}
}

func cpuListRules() []profileRule {
	lists := map[string]func(*v1alpha1.ExplicitCPUs) *v1alpha1.CPUList{
		"housekeeping": func(e *v1alpha1.ExplicitCPUs) *v1alpha1.CPUList { return &e.Housekeeping },
		"isolated":     func(e *v1alpha1.ExplicitCPUs) *v1alpha1.CPUList { return &e.Isolated },
		"offline":      func(e *v1alpha1.ExplicitCPUs) *v1alpha1.CPUList { return &e.Offline },
		"shared":       func(e *v1alpha1.ExplicitCPUs) *v1alpha1.CPUList { return &e.Shared },
		"dataPlane":    func(e *v1alpha1.ExplicitCPUs) *v1alpha1.CPUList { return &e.DataPlane },
	}
	rules := make([]profileRule, 0, len(lists))
	for name, list := range lists {
		set := func(value v1alpha1.CPUList) func(*profile) {
			return func(p *profile) {
				explicitCPUs(p)
				*list(p.Spec.CPUs.Explicit) = value
			}
		}
		rules = append(rules, profileRule{
			field:    "spec.cpus.explicit." + name,
			message:  "a CPU list is written as in the kernel, for example 0-3,8 without spaces.",
			accepted: set("80-83,85,90-99:1/2"),
			rejected: set("80-83, 85"),
		})
	}
	return rules
}

func hugepages(size v1alpha1.HugepageSize, reservations ...v1alpha1.HugepageReservation) func(*profile) {
	return func(p *profile) {
		p.Spec.Memory.DefaultHugepageSize = size
		p.Spec.Memory.Hugepages = reservations
	}
}

func with64KiPages(change func(*profile)) func(*profile) {
	return func(p *profile) {
		change(p)
		p.Spec.Memory.KernelPageSize = v1alpha1.PageSize64Ki
	}
}

func hugepageRules() []profileRule {
	node0, local := ptr.To[int32](0), v1alpha1.HugepagesBypassNICLocal
	one := func(size v1alpha1.HugepageSize) v1alpha1.HugepageReservation {
		return v1alpha1.HugepageReservation{Size: size, Count: 1}
	}
	return []profileRule{
		{
			field:    "spec.memory",
			message:  "spec.memory.defaultHugepageSize must be set when spec.memory.hugepages is set.",
			accepted: hugepages("1Gi", one("1Gi")),
			rejected: hugepages("", one("1Gi")),
		},
		{
			field:    "spec.memory",
			message:  "with spec.memory.kernelPageSize 64Ki, spec.memory.defaultHugepageSize must be 2Mi, 512Mi or 16Gi.",
			accepted: with64KiPages(hugepages("512Mi")),
			rejected: with64KiPages(hugepages("1Gi")),
		},
		{
			field:    "spec.memory",
			message:  "spec.memory.defaultHugepageSize 512Mi and 16Gi exist only with spec.memory.kernelPageSize 64Ki.",
			accepted: hugepages("1Gi"),
			rejected: hugepages("512Mi"),
		},
		{
			field:    "spec.memory",
			message:  "with spec.memory.kernelPageSize 64Ki, hugepages must be of size 2Mi, 512Mi or 16Gi.",
			accepted: with64KiPages(hugepages("2Mi", one("2Mi"), one("512Mi"), one("16Gi"))),
			rejected: with64KiPages(hugepages("2Mi", one("2Mi"), one("1Gi"))),
		},
		{
			field:    "spec.memory",
			message:  "hugepages of size 512Mi and 16Gi exist only with spec.memory.kernelPageSize 64Ki.",
			accepted: hugepages("2Mi", one("64Ki"), one("2Mi"), one("32Mi"), one("1Gi")),
			rejected: hugepages("2Mi", one("2Mi"), one("16Gi")),
		},
		{
			field:   "spec.memory.hugepages",
			message: "spec.memory.hugepages must name each combination of size, numaNode and placement once.",
			accepted: hugepages("2Mi", one("2Mi"), one("1Gi"),
				v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, NUMANode: node0},
				v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, NUMANode: ptr.To[int32](1)},
				v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, Placement: local}),
			rejected: hugepages("2Mi",
				v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, NUMANode: node0},
				v1alpha1.HugepageReservation{Size: "2Mi", Count: 2, NUMANode: node0}),
		},
		{
			field:    "spec.memory.hugepages[]",
			message:  "a hugepage reservation has either a placement or a numaNode, not both.",
			accepted: hugepages("2Mi", v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, Placement: local}),
			rejected: hugepages("2Mi", v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, Placement: local, NUMANode: node0}),
		},
	}
}

func numaAndPowerRules() []profileRule {
	return []profileRule{
		{
			field:   "spec.numa",
			message: "spec.numa.scope has no meaning with spec.numa.topologyPolicy None.",
			accepted: func(p *profile) {
				p.Spec.NUMA = v1alpha1.NUMASpec{TopologyPolicy: v1alpha1.TopologyRestricted, Scope: v1alpha1.TopologyScopePod}
			},
			rejected: func(p *profile) {
				p.Spec.NUMA = v1alpha1.NUMASpec{TopologyPolicy: v1alpha1.TopologyNone, Scope: v1alpha1.TopologyScopePod}
			},
		},
		{
			field:   "spec.power",
			message: "spec.power.idleStates cannot be set with spec.power.preset PerPod: pods choose their idle states themselves.",
			accepted: func(p *profile) {
				p.Spec.Power = v1alpha1.PowerSpec{Preset: v1alpha1.PowerLowLatency, IdleStates: v1alpha1.IdlePolling}
			},
			rejected: func(p *profile) {
				p.Spec.Power = v1alpha1.PowerSpec{Preset: v1alpha1.PowerPerPod, IdleStates: v1alpha1.IdlePolling}
			},
		},
		{
			field:   "spec.power",
			message: "spec.power.isolatedMaximumFrequencyKilohertz and spec.power.housekeepingMaximumFrequencyKilohertz must be set together.",
			accepted: func(p *profile) {
				p.Spec.Power.IsolatedMaximumFrequencyKilohertz = 3_500_000
				p.Spec.Power.HousekeepingMaximumFrequencyKilohertz = 2_800_000
			},
			rejected: func(p *profile) { p.Spec.Power.IsolatedMaximumFrequencyKilohertz = 3_500_000 },
		},
	}
}

func kubeletRules() []profileRule {
	amounts := map[string]func(*v1alpha1.KubeletSpec) *v1alpha1.MemoryQuantity{
		"systemReservedMemory": func(k *v1alpha1.KubeletSpec) *v1alpha1.MemoryQuantity { return &k.SystemReservedMemory },
		"kubeReservedMemory":   func(k *v1alpha1.KubeletSpec) *v1alpha1.MemoryQuantity { return &k.KubeReservedMemory },
		"evictionHardMemory":   func(k *v1alpha1.KubeletSpec) *v1alpha1.MemoryQuantity { return &k.EvictionHardMemory },
	}
	rules := make([]profileRule, 0, 1+len(amounts))
	rules = append(rules, profileRule{
		field:   "spec.kubelet",
		message: "spec.kubelet.fullCores has no meaning with spec.kubelet.resourceManagement DynamicResourceAllocation.",
		accepted: func(p *profile) {
			p.Spec.Kubelet.ResourceManagement = v1alpha1.ResourceManagementKubelet
			p.Spec.Kubelet.FullCores = v1alpha1.FullCoresRequired
		},
		rejected: func(p *profile) {
			p.Spec.Kubelet.ResourceManagement = v1alpha1.ResourceManagementDRA
			p.Spec.Kubelet.FullCores = v1alpha1.FullCoresRequired
		},
	})
	for name, amount := range amounts {
		rules = append(rules, profileRule{
			field:    "spec.kubelet." + name,
			message:  "an amount of memory is a whole number with Ki, Mi, Gi, k, M, G or no unit, for example 500Mi.",
			accepted: func(p *profile) { *amount(&p.Spec.Kubelet) = "1536Mi" },
			rejected: func(p *profile) { *amount(&p.Spec.Kubelet) = "1.5Gi" },
		})
	}
	return rules
}

func systemRules() []profileRule {
	parameter := func(name, value string) func(*profile) {
		return func(p *profile) {
			p.Spec.System.KernelParameters = []v1alpha1.KernelParameter{{Name: name, Value: value}}
		}
	}
	return []profileRule{
		{
			field:    "spec.kernel.additionalArguments[]",
			message:  "a kernel argument is a name or name=value of letters, digits and .,:;/@+=!&%*~_- without spaces or quotes.",
			accepted: func(p *profile) { p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0", "nosmap"} },
			rejected: func(p *profile) {
				p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0 init=/bin/sh"}
			},
		},
		{
			field:   "spec.system.stopServices[]",
			message: "a systemd unit is written with its type, for example fwupd-refresh.timer.",
			accepted: func(p *profile) {
				p.Spec.System.StopServices = []v1alpha1.UnitName{"fwupd-refresh.timer", "getty@tty1.service"}
			},
			rejected: func(p *profile) { p.Spec.System.StopServices = []v1alpha1.UnitName{"fwupd-refresh"} },
		},
		{
			field:    "spec.system.unloadModules[]",
			message:  "a kernel module name consists of letters, digits, _ and -.",
			accepted: func(p *profile) { p.Spec.System.UnloadModules = []v1alpha1.ModuleName{"ip_tables"} },
			rejected: func(p *profile) { p.Spec.System.UnloadModules = []v1alpha1.ModuleName{"ip_tables;reboot"} },
		},
		{
			field:    "spec.system.kernelParameters[].name",
			message:  "a kernel parameter is written with dots, for example net.core.busy_poll.",
			accepted: parameter("net.ipv4.conf.eth0.rp_filter", "0"),
			rejected: parameter("net/core/busy_poll", "0"),
		},
		{
			field:    "spec.system.kernelParameters[].value",
			message:  "the value of a kernel parameter consists of letters, digits, spaces and _.,:/+-.",
			accepted: parameter("net.ipv4.tcp_rmem", "4096 87380 16777216"),
			rejected: parameter("net.core.busy_poll", "50\nkernel.panic=1"),
		},
		{
			field:   "spec.verification.waivedChecks[].check",
			message: "a check is written as group.name, for example power.turbo.",
			accepted: func(p *profile) {
				p.Spec.Verification.WaivedChecks = []v1alpha1.WaivedCheck{{Check: "power.turbo", Reason: "fixed in BIOS"}}
			},
			rejected: func(p *profile) {
				p.Spec.Verification.WaivedChecks = []v1alpha1.WaivedCheck{{Check: "turbo", Reason: "fixed in BIOS"}}
			},
		},
	}
}

// hazardRules are the rules about settings that no node survives, or that have to be confirmed or kept by name.
func hazardRules() []profileRule {
	return []profileRule{
		{
			field:   "spec.kernel.additionalArguments[]",
			message: "arguments that decide what a node boots and starts, such as init, root, ostree, ignition, systemd.unit and rd.break, are refused; docs/dangerous-settings.md lists them with what to use instead.",
			accepted: func(p *profile) {
				p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"initcall_debug", "selinux=0", "rd.neednet=1"}
			},
			rejected: func(p *profile) {
				p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"systemd.machine-id=1"}
			},
		},
		{
			field:    "spec.system.stopServices[]",
			message:  "units without which a node is lost, such as kubelet, D-Bus, udev, its network, mounts and slices, are refused; docs/dangerous-settings.md lists them.",
			accepted: func(p *profile) { p.Spec.System.StopServices = []v1alpha1.UnitName{"sshd.service"} },
			rejected: func(p *profile) { p.Spec.System.StopServices = []v1alpha1.UnitName{"DBus.socket"} },
		},
		{
			field:    "spec.system.unloadModules[]",
			message:  "modules of disks, file systems and pods' networks without which a node is lost, such as overlay and nvme, are refused; docs/dangerous-settings.md lists them.",
			accepted: func(p *profile) { p.Spec.System.UnloadModules = []v1alpha1.ModuleName{"usb-storage"} },
			rejected: func(p *profile) { p.Spec.System.UnloadModules = []v1alpha1.ModuleName{"nvme-core"} },
		},
		{
			field:    "spec.containerRuntime.runtimeClassName",
			message:  "runtimeClassName is performance- and the name of the PerformanceProfile that the profile was imported from.",
			accepted: func(p *profile) { p.Spec.ContainerRuntime.RuntimeClassName = "performance-cnf.1" },
			rejected: func(p *profile) { p.Spec.ContainerRuntime.RuntimeClassName = "gvisor" },
		},
		{
			field:   "spec.acceptedRisks[].reason",
			message: "a reason is one line of text without control characters.",
			accepted: func(p *profile) {
				p.Spec.AcceptedRisks = []v1alpha1.AcceptedRisk{{Setting: "selinux=0", Reason: "Größe – 5 µs (a/b) \"c\" 日本"}}
			},
			rejected: func(p *profile) {
				p.Spec.AcceptedRisks = []v1alpha1.AcceptedRisk{{Setting: "selinux=0", Reason: "labels\x1b[2J"}}
			},
		},
		{
			field:   "spec.verification.waivedChecks[].reason",
			message: "a reason is one line of text without control characters.",
			accepted: func(p *profile) {
				p.Spec.Verification.WaivedChecks = []v1alpha1.WaivedCheck{{Check: "power.turbo", Reason: "fixed in BIOS"}}
			},
			rejected: func(p *profile) {
				p.Spec.Verification.WaivedChecks = []v1alpha1.WaivedCheck{{Check: "power.turbo", Reason: "fixed \u202e in BIOS"}}
			},
		},
		{
			field:   "spec.acceptedRisks[].setting",
			message: "an accepted risk is a setting of this profile: letters, digits, spaces and .,:;/@+=!&%*~_-.",
			accepted: func(p *profile) {
				p.Spec.AcceptedRisks = []v1alpha1.AcceptedRisk{{Setting: "selinux=0", Reason: "labels"}}
			},
			rejected: func(p *profile) {
				p.Spec.AcceptedRisks = []v1alpha1.AcceptedRisk{{Setting: "selinux=\"0\"", Reason: "labels"}}
			},
		},
	}
}

// nodeRules returns a case for each CEL rule of LowLatencyNode.
func nodeRules() []nodeRule {
	finding := func(check v1alpha1.CheckID) func(*v1alpha1.LowLatencyNode) {
		return func(n *v1alpha1.LowLatencyNode) {
			n.Status.Findings = []v1alpha1.Finding{{
				Check: check, Outcome: v1alpha1.OutcomeFailed, Severity: v1alpha1.SeverityCritical,
				Message: "IRQ 42 may run on isolated CPU 5.",
			}}
		}
	}
	drift := func(check v1alpha1.CheckID) func(*v1alpha1.LowLatencyNode) {
		return func(n *v1alpha1.LowLatencyNode) { n.Status.Drift = []v1alpha1.CheckDrift{{Check: check, Drifted: 1}} }
	}
	transition := func(check v1alpha1.CheckID) func(*v1alpha1.LowLatencyNode) {
		return func(n *v1alpha1.LowLatencyNode) {
			n.Status.Transitions = []v1alpha1.NodeTransition{{
				Time: metav1.Unix(1_795_000_000, 0), Condition: v1alpha1.ConditionDeJittered,
				From: metav1.ConditionTrue, To: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed, Check: check,
			}}
		}
	}
	return []nodeRule{
		{
			field:   "spec",
			message: "spec.planHash and spec.planConfigMap must be set together.",
			accepted: func(n *v1alpha1.LowLatencyNode) {
				n.Spec.PlanHash, n.Spec.PlanConfigMap = "abc", "trading-abc"
			},
			rejected: func(n *v1alpha1.LowLatencyNode) { n.Spec.PlanHash = "abc" },
		},
		{
			field:   "spec",
			message: "spec.pendingPlanHash can be set only with spec.planHash: a node without a plan waits for none.",
			accepted: func(n *v1alpha1.LowLatencyNode) {
				n.Spec.PlanHash, n.Spec.PlanConfigMap, n.Spec.PendingPlanHash = "abc", "trading-abc", "def"
			},
			rejected: func(n *v1alpha1.LowLatencyNode) { n.Spec.PendingPlanHash = "def" },
		},
		{
			field:    "status.findings[].check",
			message:  "a check is written as group.name, for example power.turbo.",
			accepted: finding("irq.affinity"),
			rejected: finding("affinity"),
		},
		{
			field:    "status.drift[].check",
			message:  "a check is written as group.name, for example power.turbo.",
			accepted: drift("irq.affinity"),
			rejected: drift("affinity"),
		},
		{
			field:    "status.transitions[].check",
			message:  "a check is written as group.name, for example power.turbo.",
			accepted: transition("irq.affinity"),
			rejected: transition("affinity"),
		},
	}
}
