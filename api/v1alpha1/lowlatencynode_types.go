// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LowLatencyNode is what one node is to be and what its running kernel says it is. It has the name of the
// Node, is created by the operator and owned by the Node; its status is written by that node's agent.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=lln,categories=lowlatency
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.profile`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="De-jittered",type=string,JSONPath=`.status.conditions[?(@.type=="DeJittered")].status`
// +kubebuilder:printcolumn:name="NUMA-aligned",type=string,JSONPath=`.status.conditions[?(@.type=="NUMAAligned")].status`
// +kubebuilder:printcolumn:name="Passed",type=integer,JSONPath=`.status.checks.passed`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.checks.failed`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.checks.unknown`
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=`.status.transitions[0].time`
// +kubebuilder:printcolumn:name="Last-change",type=string,priority=1,JSONPath=`.status.transitions[0].message`
// +kubebuilder:printcolumn:name="Plan",type=string,priority=1,JSONPath=`.spec.planHash`
// +kubebuilder:printcolumn:name="Enactment",type=string,priority=1,JSONPath=`.status.enactment.phase`
// +kubebuilder:printcolumn:name="Pending-plan",type=string,priority=1,JSONPath=`.spec.pendingPlanHash`
// +kubebuilder:printcolumn:name="Kernel",type=string,priority=1,JSONPath=`.status.inventory.kernelRelease`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type LowLatencyNode struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is written by the operator: which profile governs the node and which plan it is to prove.
	// +required
	Spec LowLatencyNodeSpec `json:"spec"`

	// status is written by the node's agent.
	// +optional
	Status LowLatencyNodeStatus `json:"status,omitzero"`
}

// LowLatencyNodeList is a list of LowLatencyNode.
//
// +kubebuilder:object:root=true
type LowLatencyNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []LowLatencyNode `json:"items"`
}

// LowLatencyNodeSpec says which profile governs the node and which plan it is to prove.
//
// +kubebuilder:validation:XValidation:rule="has(self.planHash) == has(self.planConfigMap)",message="spec.planHash and spec.planConfigMap must be set together."
// +kubebuilder:validation:XValidation:rule="!has(self.pendingPlanHash) || has(self.planHash)",message="spec.pendingPlanHash can be set only with spec.planHash: a node without a plan waits for none."
type LowLatencyNodeSpec struct {
	// profile is the name of the LowLatencyNodeProfile that governs the node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Profile string `json:"profile"`

	// planHash identifies the plan by which the node is judged: the one that it has, until its turn for another comes.
	// When omitted, there is no plan yet: the agent reports its inventory only.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PlanHash string `json:"planHash,omitempty"`

	// planConfigMap is the name of the ConfigMap, in the operator's namespace, that holds the plan under the
	// key plan.json. All nodes of one shape share it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PlanConfigMap string `json:"planConfigMap,omitempty"`

	// pendingPlanHash identifies the plan that the profile makes of this node now, while the node still has the one of
	// planHash: the rollout is paused, or the node waits for its turn. When omitted, the two are the same, or the
	// profile cannot be met on the node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	PendingPlanHash string `json:"pendingPlanHash,omitempty"`

	// bypassPools are the names of the BypassNICPools that select the node, at most 16. The agent reads each
	// from the ConfigMap bypass-<name> in the operator's namespace.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	// +listType=set
	// +optional
	BypassPools []string `json:"bypassPools,omitempty"`

	// plannedPools are the BypassNICPools whose spec the plan of planHash was made with, at most 16, each with the
	// generation of that spec. A pool is ready on the node when the node has proven the plan that was made with its
	// current generation.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	PlannedPools []PlannedPool `json:"plannedPools,omitempty"`

	// bypassNICs says which BypassNICPool has which NIC of the node, at most 256. A pool keeps what it has here as
	// long as it claims it: another pool that claims the same NIC later does not get it, whichever of the two is older,
	// unless both agree to share it.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=pciAddress
	// +listMapKey=pool
	// +optional
	BypassNICs []BypassNICClaim `json:"bypassNICs,omitempty"`

	// qualification is how the node was when a LatencyTest that spec.verification.qualification of its profile names measured it
	// last and found it within the budget. The agent compares it with what the node is now: check firmware.fingerprint. When omitted,
	// the profile names no test, or no result of them that the budget allows is known.
	// +optional
	Qualification *NodeQualification `json:"qualification,omitempty"`
}

// NodeQualification is a measurement that a node has passed.
type NodeQualification struct {
	// test is the LatencyTest that measured.
	// +required
	Test LatencyTestReference `json:"test"`

	// completedTime is when the measurement ended.
	// +required
	CompletedTime metav1.Time `json:"completedTime"`

	// fingerprint is how the node was then.
	// +required
	Fingerprint LatencyFingerprint `json:"fingerprint"`

	// managementInterrupts is how often the firmware interrupted the measured CPUs, in the newest of the measurements that the node has passed which
	// asked: that of a test of kind Jitter, which may be another than test. The agent judges it: check firmware.smi. When omitted, none asked.
	// +optional
	ManagementInterrupts *LatencyManagementInterrupts `json:"managementInterrupts,omitempty"`
}

// PlannedPool is a BypassNICPool as a plan was made with it.
type PlannedPool struct {
	// name of the BypassNICPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name"`

	// generation of the BypassNICPool.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	Generation int64 `json:"generation"`
}

// BypassNICClaim is a NIC that belongs to a BypassNICPool.
type BypassNICClaim struct {
	// pciAddress of the NIC.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	PCIAddress string `json:"pciAddress"`

	// pool is the name of the BypassNICPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Pool string `json:"pool"`
}

// LowLatencyNodeStatus is what the node's agent read from the running kernel.
type LowLatencyNodeStatus struct {
	// conditions are Applied, DeJittered, NUMAAligned and Ready.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation of the spec that this status speaks of.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// verifiedPlanHash is the plan that the findings and conditions were read against.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	VerifiedPlanHash string `json:"verifiedPlanHash,omitempty"`

	// inventory is the node's hardware and kernel as far as plans depend on it.
	// +optional
	Inventory *Inventory `json:"inventory,omitempty"`

	// software is what decides how a plan is written on an ordinary host. It is omitted on nodes of OpenShift.
	// +optional
	Software *NodeSoftware `json:"software,omitempty"`

	// enactment is what the guard on an ordinary host says about the plan that it was given. It is omitted where there is no
	// guard.
	// +optional
	Enactment *NodeEnactment `json:"enactment,omitempty"`

	// checks counts the checks by outcome.
	// +optional
	Checks *CheckCounts `json:"checks,omitempty"`

	// findings are all checks that have not passed, the most severe first, at most 128.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=check
	// +optional
	Findings []Finding `json:"findings,omitempty"`

	// drift counts what has changed on the node under an unchanged plan, and what the agent put back, by check,
	// at most 128.
	// +kubebuilder:validation:MaxItems=128
	// +listType=map
	// +listMapKey=check
	// +optional
	Drift []CheckDrift `json:"drift,omitempty"`

	// bypassNICs are the NICs that BypassNICPools select on this node, at most 256.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=pool
	// +listMapKey=pciAddress
	// +optional
	BypassNICs []NodeBypassNIC `json:"bypassNICs,omitempty"`

	// bootID is the boot of the kernel that the agent has looked at, as /proc/sys/kernel/random/boot_id gives it.
	// A report about another boot than that of the Node proves nothing any more.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	BootID string `json:"bootID,omitempty"`

	// transitions are the latest changes of the conditions Applied, DeJittered and NUMAAligned, the latest first,
	// at most 20.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Transitions []NodeTransition `json:"transitions,omitempty"`
}

// WorkloadPartitioning says whether the pods of the platform are told from others on a node.
//
// +kubebuilder:validation:Enum=Enabled
type WorkloadPartitioning string

// WorkloadPartitioningEnabled means that they can have CPUs of their own.
const WorkloadPartitioningEnabled WorkloadPartitioning = "Enabled"

// TimestampCounter says whether time can be read from the processor's time-stamp counter.
//
// +kubebuilder:validation:Enum=Stable;Unstable
type TimestampCounter string

const (
	// TimestampCounterStable runs at a constant rate in all idle states.
	TimestampCounterStable TimestampCounter = "Stable"
	// TimestampCounterUnstable does not, or the kernel found it unstable.
	TimestampCounterUnstable TimestampCounter = "Unstable"
)

// Inventory is a node's hardware and kernel as far as plans depend on it. An absent field means that the
// host does not say.
type Inventory struct {
	// hash changes when any other field does.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Hash string `json:"hash,omitempty"`

	// architecture is the machine name of the kernel in Go's notation, amd64 or arm64.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Architecture string `json:"architecture,omitempty"`

	// processorVendor is Intel, AMD, ARM or what the processor calls itself.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ProcessorVendor string `json:"processorVendor,omitempty"`

	// processorModel is the processor's own name.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ProcessorModel string `json:"processorModel,omitempty"`

	// processorFamily is the family number of an x86 processor, such as 6. With processorModelNumber it tells the
	// generation.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ProcessorFamily int32 `json:"processorFamily,omitempty"`

	// processorModelNumber is the model number of an x86 processor within its family, such as 106 for Ice Lake servers.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ProcessorModelNumber int32 `json:"processorModelNumber,omitempty"`

	// microcode is the revision of the loaded microcode.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Microcode string `json:"microcode,omitempty"`

	// biosVersion is the version of the firmware.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	BIOSVersion string `json:"biosVersion,omitempty"`

	// product is the name of the machine.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Product string `json:"product,omitempty"`

	// kernelRelease is the running kernel, as uname -r prints it.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	KernelRelease string `json:"kernelRelease,omitempty"`

	// kernelType is Default or RealTime, as the running kernel says.
	// +optional
	KernelType KernelType `json:"kernelType,omitempty"`

	// kernelCommandLine is the command line of the running kernel.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	KernelCommandLine string `json:"kernelCommandLine,omitempty"`

	// hypervisor names the virtual machine monitor when the node is a virtual machine.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Hypervisor string `json:"hypervisor,omitempty"`

	// timestampCounter is Stable where the time-stamp counter of an amd64 processor runs at a constant rate in all
	// idle states and the kernel trusts it, and Unstable where not, as in most virtual machines. It is omitted
	// where nobody tells, and on arm64, which has no such counter.
	// +optional
	TimestampCounter TimestampCounter `json:"timestampCounter,omitempty"`

	// workloadPartitioning is Enabled where the container runtime tells the pods of the platform from others, as on every
	// node of an OpenShift cluster that was installed with cpuPartitioningMode AllNodes. Plans then keep these pods on
	// housekeeping CPUs.
	// +optional
	WorkloadPartitioning WorkloadPartitioning `json:"workloadPartitioning,omitempty"`

	// onlineCPUs are the CPUs that are online, and those that went offline although the plan in force counts on them: cores,
	// caches and NUMA nodes are then those of before, because the kernel forgets them.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	OnlineCPUs string `json:"onlineCPUs,omitempty"`

	// offlineCPUs are the other CPUs that are present.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	OfflineCPUs string `json:"offlineCPUs,omitempty"`

	// cores are the physical cores, each as the list of its CPUs, online and, where the firmware says,
	// offline ones.
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +optional
	Cores []string `json:"cores,omitempty"`

	// efficiencyCPUs are the CPUs of the slower cores of a hybrid processor. When omitted, all cores are alike.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	EfficiencyCPUs string `json:"efficiencyCPUs,omitempty"`

	// packages are the processor packages, each as the list of its CPUs. Virtual machines often show one
	// package per CPU.
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	Packages []string `json:"packages,omitempty"`

	// l3Domains are the last-level caches, each as the list of the CPUs that share it.
	// +kubebuilder:validation:MaxItems=512
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=atomic
	// +optional
	L3Domains []string `json:"l3Domains,omitempty"`

	// numaNodes are the NUMA nodes, memory-only ones included.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=id
	// +optional
	NUMANodes []InventoryNUMANode `json:"numaNodes,omitempty"`

	// nics are the network devices on PCI, at most 256.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=pciAddress
	// +optional
	NICs []InventoryNIC `json:"nics,omitempty"`

	// mitigationsHash is a hash of how the kernel mitigates each vulnerability of the processor, but for what it does only
	// while virtual machines run (/sys/devices/system/cpu/vulnerabilities); absent when the host does not tell all of it.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MitigationsHash string `json:"mitigationsHash,omitempty"`

	// minimumFrequencyKilohertz is the lowest frequency of the hardware, where cpufreq reports it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	MinimumFrequencyKilohertz int64 `json:"minimumFrequencyKilohertz,omitempty"`

	// maximumFrequencyKilohertz is the highest frequency of the hardware, where cpufreq reports it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000000
	// +optional
	MaximumFrequencyKilohertz int64 `json:"maximumFrequencyKilohertz,omitempty"`
}

// InventoryNUMANode is a NUMA node of a host.
type InventoryNUMANode struct {
	// id is the number of the NUMA node.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	// +required
	ID int32 `json:"id"`

	// cpus are the online CPUs of the NUMA node.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	CPUs string `json:"cpus,omitempty"`

	// memoryBytes is the memory of the NUMA node in bytes; absent when the host does not say.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	MemoryBytes *int64 `json:"memoryBytes,omitempty"`

	// distances are the distances to the NUMA nodes in ascending order of their numbers, as the firmware
	// states them; 10 is local.
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=255
	// +listType=atomic
	// +optional
	Distances []int32 `json:"distances,omitempty"`

	// hugepageSizesKibibytes are the sizes of hugepages that the kernel offers, in KiB.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=1073741824
	// +listType=atomic
	// +optional
	HugepageSizesKibibytes []int64 `json:"hugepageSizesKibibytes,omitempty"`
}

// InventoryNIC is a network device of a host.
type InventoryNIC struct {
	// pciAddress is the PCI address, such as 0000:3b:00.0.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	PCIAddress string `json:"pciAddress"`

	// interfaceName is the name of the network interface; absent when no driver made one.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	InterfaceName string `json:"interfaceName,omitempty"`

	// vendor is the PCI vendor, four hexadecimal digits without 0x as in a NICSelector.
	// +kubebuilder:validation:MaxLength=8
	// +optional
	Vendor string `json:"vendor,omitempty"`

	// device is the PCI device, four hexadecimal digits without 0x.
	// +kubebuilder:validation:MaxLength=8
	// +optional
	Device string `json:"device,omitempty"`

	// driver is the kernel driver.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Driver string `json:"driver,omitempty"`

	// driverVersion is the version of the kernel driver's module; absent when its source states none, as of most drivers that
	// come with the kernel.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	DriverVersion string `json:"driverVersion,omitempty"`

	// firmwareVersion is the version of the NIC's firmware, where the driver tells it without a network namespace: as an RDMA device.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	FirmwareVersion string `json:"firmwareVersion,omitempty"`

	// numaNode is the NUMA node; absent when the firmware does not say (numa_node is -1).
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	// +optional
	NUMANode *int32 `json:"numaNode,omitempty"`

	// localCPUs are the CPUs that the kernel calls local to the device.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	LocalCPUs string `json:"localCPUs,omitempty"`

	// physicalFunction is the PCI address of the physical function when this is a virtual one.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	PhysicalFunction string `json:"physicalFunction,omitempty"`

	// maximumVirtualFunctions is how many virtual functions the NIC can have.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	MaximumVirtualFunctions int32 `json:"maximumVirtualFunctions,omitempty"`

	// management says which traffic of the node itself the NIC carries, such as "the default route"; absent
	// when it carries none. Such a NIC is never given away.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Management string `json:"management,omitempty"`
}

// CheckCounts counts checks by outcome.
type CheckCounts struct {
	// passed is the number of checks that the kernel satisfies.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +required
	Passed int32 `json:"passed"`

	// failed is the number of checks that the kernel contradicts.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +required
	Failed int32 `json:"failed"`

	// unknown is the number of checks whose facts the host does not give.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +required
	Unknown int32 `json:"unknown"`

	// waived is the number of checks that failed and are accepted by the profile.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +required
	Waived int32 `json:"waived"`
}

// Severity says how urgent a failed check is. Whether it makes a condition False depends on its impact and on
// spec.verification.failOn of the profile.
//
// +kubebuilder:validation:Enum=Critical;High;Medium;Low
type Severity string

const (
	// SeverityCritical breaks what the plan is for: it is to be mended at once.
	SeverityCritical Severity = "Critical"
	// SeverityHigh costs latency regularly.
	SeverityHigh Severity = "High"
	// SeverityMedium costs latency sometimes.
	SeverityMedium Severity = "Medium"
	// SeverityLow is worth knowing.
	SeverityLow Severity = "Low"
)

// Outcome is the result of a check.
//
// +kubebuilder:validation:Enum=Passed;Failed;Unknown;Waived
type Outcome string

const (
	// OutcomePassed means that the kernel satisfies the check.
	OutcomePassed Outcome = "Passed"
	// OutcomeFailed means that the kernel contradicts it.
	OutcomeFailed Outcome = "Failed"
	// OutcomeUnknown means that the host does not give the facts.
	OutcomeUnknown Outcome = "Unknown"
	// OutcomeWaived means that the check did not pass and the profile accepts that.
	OutcomeWaived Outcome = "Waived"
)

// Finding is one check that has not passed.
type Finding struct {
	// check is the identifier of the check, as in docs/checks.md.
	// +required
	Check CheckID `json:"check"`

	// outcome is Failed, Unknown or Waived.
	// +required
	Outcome Outcome `json:"outcome"`

	// severity is Critical, High, Medium or Low.
	// +required
	Severity Severity `json:"severity"`

	// message is one sentence that says what is wrong and names the object: CPU, IRQ, file or NIC.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`

	// objects are the CPUs, interrupts, NICs and other parts of the node that the finding is about. When omitted, it is
	// about the node as a whole.
	// +optional
	Objects *FindingObjects `json:"objects,omitempty"`

	// observed is what the kernel says.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Observed string `json:"observed,omitempty"`

	// expected is what the plan says.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Expected string `json:"expected,omitempty"`

	// fix is what to do.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Fix string `json:"fix,omitempty"`

	// reboot says whether the fix takes effect only after a reboot.
	// +optional
	Reboot RebootRequirement `json:"reboot,omitempty"`

	// decides are the types of the conditions that the finding keeps from being True. When omitted, it is a lesser
	// finding, which changes no condition.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	// +optional
	Decides []string `json:"decides,omitempty"`
}
