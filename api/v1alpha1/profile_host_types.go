// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// ResourceManagement says who gives CPUs, memory and devices to pods.
//
// +kubebuilder:validation:Enum=KubeletManagers;DynamicResourceAllocation
type ResourceManagement string

const (
	// ResourceManagementKubelet uses the kubelet's CPU, memory and topology managers.
	ResourceManagementKubelet ResourceManagement = "KubeletManagers"
	// ResourceManagementDRA switches these managers off in favour of Dynamic Resource Allocation drivers.
	ResourceManagementDRA ResourceManagement = "DynamicResourceAllocation"
)

// FullCores says whether a pod's exclusive CPUs must be whole cores.
//
// +kubebuilder:validation:Enum=Required;NotRequired
type FullCores string

const (
	// FullCoresRequired refuses pods that would share a physical core with another.
	FullCoresRequired FullCores = "Required"
	// FullCoresNotRequired admits them.
	FullCoresNotRequired FullCores = "NotRequired"
)

// MemoryQuantity is an amount of memory in the notation of Kubernetes, such as 500Mi.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,14}(Ki|Mi|Gi|k|M|G)?$')",message="an amount of memory is a whole number with Ki, Mi, Gi, k, M, G or no unit, for example 500Mi."
type MemoryQuantity string

// KubeletSpec holds settings of the kubelet that do not follow from the other sections.
//
// +kubebuilder:validation:XValidation:rule="!has(self.resourceManagement) || self.resourceManagement != 'DynamicResourceAllocation' || !has(self.fullCores)",message="spec.kubelet.fullCores has no meaning with spec.kubelet.resourceManagement DynamicResourceAllocation."
type KubeletSpec struct {
	// resourceManagement is KubeletManagers or DynamicResourceAllocation. When omitted, this means the user
	// has no opinion and the operator chooses a default, which is subject to change over time. The current
	// default is KubeletManagers.
	// +optional
	ResourceManagement ResourceManagement `json:"resourceManagement,omitempty"`

	// fullCores is Required or NotRequired: the option full-pcpus-only of the static CPU manager policy.
	// When omitted, this means the user has no opinion and the operator chooses a default, which is
	// subject to change over time. The current default is Required with topologyPolicy SingleNUMANode and
	// NotRequired otherwise.
	// +optional
	FullCores FullCores `json:"fullCores,omitempty"`

	// systemReservedMemory is kept back for system daemons. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current
	// default is 500Mi.
	// +optional
	SystemReservedMemory MemoryQuantity `json:"systemReservedMemory,omitempty"`

	// kubeReservedMemory is kept back for the kubelet and the container runtime. When omitted, this means
	// the user has no opinion and the operator chooses a default, which is subject to change over time.
	// The current default is 500Mi.
	// +optional
	KubeReservedMemory MemoryQuantity `json:"kubeReservedMemory,omitempty"`

	// evictionHardMemory is the free memory below which the kubelet evicts pods. When omitted, this means
	// the user has no opinion and the operator chooses a default, which is subject to change over time.
	// The current default is 100Mi.
	// +optional
	EvictionHardMemory MemoryQuantity `json:"evictionHardMemory,omitempty"`

	// additionalConfiguration holds further fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1)
	// as YAML or JSON text of at most 16384 characters, for example "maxPods: 100". Fields that the
	// operator computes are refused, unknown fields too.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	AdditionalConfiguration string `json:"additionalConfiguration,omitempty"`
}

// ExecPlacement says on which of its CPUs a container's exec processes start.
//
// +kubebuilder:validation:Enum=FirstCPU;AnyCPU
type ExecPlacement string

const (
	// ExecFirstCPU starts exec processes, such as probes, on the container's first CPU.
	ExecFirstCPU ExecPlacement = "FirstCPU"
	// ExecAnyCPU lets them use all CPUs of the container.
	ExecAnyCPU ExecPlacement = "AnyCPU"
)

// ContainerRuntimeSpec holds settings of the container runtime.
type ContainerRuntimeSpec struct {
	// execPlacement is FirstCPU or AnyCPU: where exec probes and kubectl exec run in a container with
	// exclusive CPUs. When omitted, this means the user has no opinion and the operator chooses a default,
	// which is subject to change over time. The current default is FirstCPU.
	// +optional
	ExecPlacement ExecPlacement `json:"execPlacement,omitempty"`

	// runtimeClassName is the name of the RuntimeClass by which pods ask for this profile's nodes and for the
	// handler of latency-critical pods, 1 to 253 characters. An import sets the name that the PerformanceProfile
	// gave it, performance-NAME, so that pods need no change; no other name can be chosen. No two profiles may have
	// the same: the one that has the RuntimeClass keeps it, else the oldest, and the others report RuntimeClassConflict
	// and change nothing. When omitted, it is lowlatency- and the name of the profile.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^performance-[a-z0-9]([a-z0-9.-]*[a-z0-9])?$')",message="runtimeClassName is performance- and the name of the PerformanceProfile that the profile was imported from."
	// +optional
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
}

// UnitName is the name of a systemd unit, such as fwupd-refresh.timer.
//
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=255
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.:@-]+[.](service|socket|timer|path|target|mount|slice)$')",message="a systemd unit is written with its type, for example fwupd-refresh.timer."
// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)^(.*[.]mount|.*[.]automount|.*[.]slice|kubelet(@.*)?[.].*|crio(@.*)?[.].*|containerd(@.*)?[.].*|docker(@.*)?[.].*|cri-docker(@.*)?[.].*|networkmanager(@.*)?[.].*|networkmanager-dispatcher(@.*)?[.].*|systemd-networkd(@.*)?[.].*|systemd-networkd-persistent-storage(@.*)?[.].*|openvswitch(@.*)?[.].*|ovs-vswitchd(@.*)?[.].*|ovsdb-server(@.*)?[.].*|ovs-configuration(@.*)?[.].*|networking(@.*)?[.].*|wickedd.*|nmstate.*|nodeip-configuration(@.*)?[.].*|dbus(@.*)?[.].*|dbus-broker(@.*)?[.].*|dbus-org(@.*)?[.].*|systemd-udev.*|systemd-journal.*|systemd-tmpfiles-setup.*|systemd-sysctl(@.*)?[.].*|systemd-modules-load(@.*)?[.].*|systemd-remount-fs(@.*)?[.].*|systemd-fsck.*|systemd-sysusers(@.*)?[.].*|systemd-logind(@.*)?[.].*|systemd-machine-id.*|systemd-cryptsetup.*|systemd-random-seed(@.*)?[.].*|systemd-user-sessions(@.*)?[.].*|initrd-.*|dracut-.*|ignition-.*|ostree-.*|kmod-static-nodes(@.*)?[.].*|lowlatency-.*)$')",message="units without which a node is lost, such as kubelet, D-Bus, udev, its network, mounts and slices, are refused; docs/dangerous-settings.md lists them."
type UnitName string

// ModuleName is the name of a kernel module, such as ip_tables.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=55
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="a kernel module name consists of letters, digits, _ and -."
// +kubebuilder:validation:XValidation:rule="!self.matches('(?i)^(overlay|xfs|libcrc32c|crc32c[_-].*|ext4|jbd2|mbcache|vfat|fat|nls[_-].*|autofs4|efivarfs|nvme.*|sd[_-]mod|scsi[_-].*|ahci|libahci.*|libata|ata[_-].*|megaraid.*|mpt3sas|mpi3mr|smartpqi|hpsa|aacraid|qla2xxx|lpfc|bnx2fc|fcoe|libfc.*|iscsi[_-].*|libiscsi.*|virtio|virtio[_-]ring|virtio[_-]pci.*|virtio[_-]mmio|virtio[_-]blk|virtio[_-]scsi|virtio[_-]net|vmd|dm[_-].*|md[_-]mod|raid.*|xen[_-]blkfront|hv[_-]vmbus|hv[_-]storvsc|hv[_-]netvsc|vmw[_-]pvscsi|mmc[_-].*|sdhci.*|ufshcd.*|target[_-]core.*|t10[_-]pi|veth|openvswitch)$')",message="modules of disks, file systems and pods' networks without which a node is lost, such as overlay and nvme, are refused; docs/dangerous-settings.md lists them."
type ModuleName string

// PacketFilterMode says what becomes of the host's packet filter rules.
//
// +kubebuilder:validation:Enum=Kept;Flushed
type PacketFilterMode string

const (
	// PacketFilterKept leaves the rules.
	PacketFilterKept PacketFilterMode = "Kept"
	// PacketFilterFlushed deletes all nftables rules before the kubelet starts.
	PacketFilterFlushed PacketFilterMode = "Flushed"
)

// SystemSpec does what the clean-up script of a hand-tuned host does.
type SystemSpec struct {
	// stopServices are systemd units that are stopped and masked, at most 64. When omitted, this means the
	// user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is fwupd-refresh.timer, whose firmware queries cause system-management interrupts.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	StopServices []UnitName `json:"stopServices,omitempty"`

	// unloadModules are kernel modules that are unloaded and kept from loading, at most 64.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	UnloadModules []ModuleName `json:"unloadModules,omitempty"`

	// packetFilter is Kept or Flushed. Flushed removes the rules of nftables before the kubelet starts;
	// whatever needs them, such as kube-proxy, installs its own again. When omitted, this means the user has
	// no opinion and the operator chooses a default, which is subject to change over time. The current
	// default is Kept.
	// +optional
	PacketFilter PacketFilterMode `json:"packetFilter,omitempty"`

	// kernelParameters are set besides those that the operator computes, at most 64. One that
	// contradicts a computed one is a finding and the node gets no plan.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	KernelParameters []KernelParameter `json:"kernelParameters,omitempty"`
}

// KernelParameter is a sysctl.
type KernelParameter struct {
	// name of the parameter, such as net.core.busy_poll.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9_-]+([.][A-Za-z0-9_-]+)+$')",message="a kernel parameter is written with dots, for example net.core.busy_poll."
	// +required
	Name string `json:"name"`

	// value of the parameter.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.,:/+ -]+$')",message="the value of a kernel parameter consists of letters, digits, spaces and _.,:/+-."
	// +required
	Value string `json:"value"`
}

// VerificationGate says what happens to a node that is not verified.
//
// +kubebuilder:validation:Enum=ReportOnly;Taint
type VerificationGate string

const (
	// GateReportOnly reports and does nothing else.
	GateReportOnly VerificationGate = "ReportOnly"
	// GateTaint keeps latency-critical pods away until the node is verified.
	GateTaint VerificationGate = "Taint"
)

// FailureThreshold says which failed checks make a condition False.
//
// +kubebuilder:validation:Enum=Impact;Critical;High;Medium;Low
type FailureThreshold string

const (
	// FailOnImpact counts failed checks that can put work on an isolated CPU, slow it down, or move memory, interrupts or
	// devices away from their NUMA node.
	FailOnImpact FailureThreshold = "Impact"
	// FailOnCritical counts failed checks of severity Critical.
	FailOnCritical FailureThreshold = "Critical"
	// FailOnHigh counts those of severity High, too.
	FailOnHigh FailureThreshold = "High"
	// FailOnMedium counts those of severity Medium, too.
	FailOnMedium FailureThreshold = "Medium"
	// FailOnLow counts every failed check.
	FailOnLow FailureThreshold = "Low"
)

// RepairMode says whether the agent puts back what has drifted from the plan.
//
// +kubebuilder:validation:Enum=ReportOnly;Runtime
type RepairMode string

const (
	// RepairReportOnly reports drift and changes nothing on the host.
	RepairReportOnly RepairMode = "ReportOnly"
	// RepairRuntime puts back what a running kernel takes back without a reboot.
	RepairRuntime RepairMode = "Runtime"
)

// VerificationSpec says what a node must prove and what happens while it has not.
type VerificationSpec struct {
	// gate is ReportOnly or Taint. Taint puts the taint lowlatency.dev/unverified with effect NoSchedule on
	// a node until its agent has verified the current plan since the last boot and the device plugins of its
	// BypassNICPools advertise, and again when a condition becomes False; pods that run are left alone. After a
	// failure the node must prove the plan for a minute before the taint goes, and twice as long after each
	// further failure within an hour, up to 16 minutes. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is ReportOnly.
	// +optional
	Gate VerificationGate `json:"gate,omitempty"`

	// repair is ReportOnly or Runtime. With Runtime, the agent writes back what has drifted from the plan and
	// what a running kernel takes back without a reboot: the affinity of interrupts, masks of workqueues and of
	// packet steering, the sysctls and files below /sys of the plan, the frequency governor. It counts in
	// status.drift of the LowLatencyNode what it put back, and stops and reports when another program keeps
	// changing the same file. It needs the agents of config/agent-repair, whose view of the host is writable;
	// others report that they may not write. When omitted, this means the user has no opinion and the operator
	// chooses a default, which is subject to change over time. The current default is ReportOnly.
	// +optional
	Repair RepairMode `json:"repair,omitempty"`

	// failOn is Impact, Critical, High, Medium or Low: which failed checks make the conditions Applied, DeJittered and
	// NUMAAligned of a node False, and with them close its gate. Impact counts every failed check that can put work
	// on an isolated CPU, slow it down, or move memory, interrupts or devices away from their NUMA node, whatever its severity.
	// Critical, High, Medium and Low count failed checks of this severity and of higher ones instead. All other failed
	// checks are lesser findings: the messages of the conditions count them. A critical check whose facts are missing
	// makes its conditions Unknown with every value, and a waived check never changes a condition. docs/checks.md
	// has severity and impact of each check. When omitted, this means the user has no opinion and the operator chooses a
	// default, which is subject to change over time. The current default is Impact.
	// +optional
	FailOn FailureThreshold `json:"failOn,omitempty"`

	// budget is how much measured jitter an isolated CPU may show. When omitted, jitter is not judged.
	// +optional
	Budget *JitterBudget `json:"budget,omitempty"`

	// qualification names LatencyTests that a node must have passed. When omitted, no measurement is asked for.
	// +optional
	Qualification *Qualification `json:"qualification,omitempty"`

	// waivedChecks are checks whose failure is accepted, at most 64. A waived check is still evaluated and
	// counted as waived.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=check
	// +optional
	WaivedChecks []WaivedCheck `json:"waivedChecks,omitempty"`
}

// Qualification says which measurements a node must have passed before it counts as ready.
type Qualification struct {
	// tests are LatencyTests, 1 to 8. A node is qualified when it has passed every one of them that selects it, when each result is
	// fresh, and when at least one selects it. Until then the condition LowLatencyReady of the Node is not True and says
	// which test it waits for, and the taint of spec.verification.gate stays. A result that fails, expires or becomes stale by a
	// change of kernel, firmware or driver closes the gate. A test that does not exist, selects none of the nodes, is measured for the
	// first time or has other parameters than before closes the gate of no node that was open in its present boot. Who may
	// write LatencyTests, or create pods, in the namespace of a test decides with it: name one of those who administer the nodes.
	//
	//	qualification:
	//	  tests:
	//	  - {namespace: lowlatency-operator-agents, name: quiet-cpus}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +required
	Tests []LatencyTestReference `json:"tests"`
}

// LatencyTestReference names a LatencyTest.
type LatencyTestReference struct {
	// namespace is that of the LatencyTest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// name is that of the LatencyTest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`
}

// JitterBudget limits the jitter measured on isolated CPUs.
//
// +kubebuilder:validation:MinProperties=1
type JitterBudget struct {
	// maximumInterruptionMicroseconds is the longest interruption allowed, 1 to 1000000. When omitted, a
	// single interruption is not judged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaximumInterruptionMicroseconds int32 `json:"maximumInterruptionMicroseconds,omitempty"`

	// stolenPartsPerMillion is the share of time that may be taken from a spinning program, 1 to 1000000.
	// When omitted, the share is not judged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	StolenPartsPerMillion int32 `json:"stolenPartsPerMillion,omitempty"`
}

// CheckID is the identifier of a check, such as power.turbo.
//
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9-]+([.][a-z0-9-]+)+$')",message="a check is written as group.name, for example power.turbo."
type CheckID string

// WaivedCheck accepts the failure of a check.
type WaivedCheck struct {
	// check is the identifier of the check, as in docs/checks.md.
	// +required
	Check CheckID `json:"check"`

	// reason says why the failure is accepted, 1 to 256 characters in one line.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\p{Cc}\p{Cf}]')`,message="a reason is one line of text without control characters."
	// +required
	Reason string `json:"reason"`
}

// AcceptedRisk confirms one dangerous setting of the profile by name.
type AcceptedRisk struct {
	// setting is the setting as the profile has it, 1 to 257 characters: a kernel argument (selinux=0), a unit
	// (sshd.service), a module (bonding), a kernel parameter with its value (vm.overcommit_memory=2) or a field
	// of KubeletConfiguration (tlsMinVersion).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=257
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.,:;/@+=!&%*~ -]+$')",message="an accepted risk is a setting of this profile: letters, digits, spaces and .,:;/@+=!&%*~_-."
	// +required
	Setting string `json:"setting"`

	// reason says why the risk is accepted, 1 to 256 characters in one line.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\p{Cc}\p{Cf}]')`,message="a reason is one line of text without control characters."
	// +required
	Reason string `json:"reason"`
}
