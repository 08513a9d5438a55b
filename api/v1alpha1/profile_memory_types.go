// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// HugepageSize is the size of a hugepage.
//
// +kubebuilder:validation:Enum="64Ki";"2Mi";"32Mi";"512Mi";"1Gi";"16Gi"
type HugepageSize string

// PageSize is the size of the kernel's base page.
//
// +kubebuilder:validation:Enum="4Ki";"64Ki"
type PageSize string

const (
	// PageSize4Ki is the base page of every amd64 kernel and of most arm64 kernels.
	PageSize4Ki PageSize = "4Ki"
	// PageSize64Ki is the base page of the arm64 64k kernel.
	PageSize64Ki PageSize = "64Ki"
)

// BackgroundActivity says whether the kernel does something in the background.
//
// +kubebuilder:validation:Enum=Kept;Disabled
type BackgroundActivity string

const (
	// ActivityKept leaves it as the distribution configured it.
	ActivityKept BackgroundActivity = "Kept"
	// ActivityDisabled switches it off.
	ActivityDisabled BackgroundActivity = "Disabled"
)

// MemorySpec reserves hugepages and sets what the kernel does with memory in the background.
//
// +kubebuilder:validation:XValidation:rule="!has(self.hugepages) || has(self.defaultHugepageSize)",message="spec.memory.defaultHugepageSize must be set when spec.memory.hugepages is set."
// +kubebuilder:validation:XValidation:rule="!has(self.kernelPageSize) || self.kernelPageSize != '64Ki' || !has(self.defaultHugepageSize) || self.defaultHugepageSize in ['2Mi', '512Mi', '16Gi']",message="with spec.memory.kernelPageSize 64Ki, spec.memory.defaultHugepageSize must be 2Mi, 512Mi or 16Gi."
// +kubebuilder:validation:XValidation:rule="(has(self.kernelPageSize) && self.kernelPageSize == '64Ki') || !has(self.defaultHugepageSize) || self.defaultHugepageSize in ['64Ki', '2Mi', '32Mi', '1Gi']",message="spec.memory.defaultHugepageSize 512Mi and 16Gi exist only with spec.memory.kernelPageSize 64Ki."
// +kubebuilder:validation:XValidation:rule="!has(self.kernelPageSize) || self.kernelPageSize != '64Ki' || !has(self.hugepages) || self.hugepages.all(page, page.size in ['2Mi', '512Mi', '16Gi'])",message="with spec.memory.kernelPageSize 64Ki, hugepages must be of size 2Mi, 512Mi or 16Gi."
// +kubebuilder:validation:XValidation:rule="(has(self.kernelPageSize) && self.kernelPageSize == '64Ki') || !has(self.hugepages) || self.hugepages.all(page, page.size in ['64Ki', '2Mi', '32Mi', '1Gi'])",message="hugepages of size 512Mi and 16Gi exist only with spec.memory.kernelPageSize 64Ki."
type MemorySpec struct {
	// defaultHugepageSize is the size that a program gets when it asks for hugepages without a size. It is
	// required when hugepages are reserved. Sizes are 2Mi and 1Gi on amd64; 64Ki, 2Mi, 32Mi and 1Gi on
	// arm64 with 4 KiB pages; 2Mi, 512Mi and 16Gi on arm64 with 64 KiB pages.
	// +optional
	DefaultHugepageSize HugepageSize `json:"defaultHugepageSize,omitempty"`

	// hugepages are the reservations, at most 64, each size and place once:
	//
	//	hugepages:
	//	- {size: 1Gi, count: 16}
	//	- {size: 2Mi, count: 400, placement: BypassNICLocal}
	//	- {size: 2Mi, count: 512, numaNode: 1}
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, self.exists_one(b, a.size == b.size && (has(a.numaNode) ? a.numaNode : -1) == (has(b.numaNode) ? b.numaNode : -1) && (has(a.placement) ? a.placement : '') == (has(b.placement) ? b.placement : '')))",message="spec.memory.hugepages must name each combination of size, numaNode and placement once."
	// +listType=atomic
	// +optional
	Hugepages []HugepageReservation `json:"hugepages,omitempty"`

	// kernelPageSize is 4Ki or 64Ki. 64Ki installs the arm64 kernel with 64 KiB pages. When omitted, this
	// means the user has no opinion and the operator chooses a default, which is subject to change over
	// time. The current default is 4Ki.
	// +optional
	KernelPageSize PageSize `json:"kernelPageSize,omitempty"`

	// transparentHugepages is Kept or Disabled. Disabled sets transparent_hugepage to never: khugepaged and
	// compaction no longer stall a task to assemble large pages. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current
	// default is Disabled.
	// +optional
	TransparentHugepages BackgroundActivity `json:"transparentHugepages,omitempty"`

	// samePageMerging is Kept or Disabled. Disabled stops KSM and unmerges its pages. When omitted, this
	// means the user has no opinion and the operator chooses a default, which is subject to change over
	// time. The current default is Disabled.
	// +optional
	SamePageMerging BackgroundActivity `json:"samePageMerging,omitempty"`
}

// HugepagePlacement says on which NUMA nodes hugepages are reserved.
//
// +kubebuilder:validation:Enum=Spread;EveryNUMANode;BypassNICLocal
type HugepagePlacement string

const (
	// HugepagesSpread lets the kernel spread the count evenly over the NUMA nodes with memory.
	HugepagesSpread HugepagePlacement = "Spread"
	// HugepagesEveryNUMANode reserves the count on each NUMA node that has CPUs and memory.
	HugepagesEveryNUMANode HugepagePlacement = "EveryNUMANode"
	// HugepagesBypassNICLocal reserves the count on each NUMA node that holds a bypass NIC.
	HugepagesBypassNICLocal HugepagePlacement = "BypassNICLocal"
)

// HugepageReservation is a number of hugepages of one size.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.placement) && has(self.numaNode))",message="a hugepage reservation has either a placement or a numaNode, not both."
type HugepageReservation struct {
	// size of one page.
	// +required
	Size HugepageSize `json:"size"`

	// count of pages, 1 to 16777216. With placement EveryNUMANode or BypassNICLocal it is the count for
	// each of these NUMA nodes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16777216
	// +required
	Count int32 `json:"count"`

	// placement is Spread, EveryNUMANode or BypassNICLocal. Spread lets the kernel divide the count evenly
	// over the NUMA nodes. When neither placement nor numaNode is given, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current
	// default is Spread.
	// +optional
	Placement HugepagePlacement `json:"placement,omitempty"`

	// numaNode is the NUMA node of all pages, 0 to 1023.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	// +optional
	NUMANode *int32 `json:"numaNode,omitempty"`
}

// InterruptPlacement says where device interrupts are handled.
//
// +kubebuilder:validation:Enum=Housekeeping;PerPod
type InterruptPlacement string

const (
	// InterruptsHousekeeping keeps all device interrupts on housekeeping CPUs from boot on.
	InterruptsHousekeeping InterruptPlacement = "Housekeeping"
	// InterruptsPerPod lets interrupts use all CPUs until a pod's annotation moves them off its CPUs.
	InterruptsPerPod InterruptPlacement = "PerPod"
)

// InterruptBalancer says what becomes of irqbalance.
//
// +kubebuilder:validation:Enum=Restricted;Stopped;Kept
type InterruptBalancer string

const (
	// BalancerRestricted lets irqbalance run with the isolated CPUs banned.
	BalancerRestricted InterruptBalancer = "Restricted"
	// BalancerStopped stops irqbalance.
	BalancerStopped InterruptBalancer = "Stopped"
	// BalancerKept leaves irqbalance as it is.
	BalancerKept InterruptBalancer = "Kept"
)

// InterruptsSpec says where device interrupts may be handled.
type InterruptsSpec struct {
	// placement is Housekeeping or PerPod. Housekeeping: device interrupts are handled on housekeeping CPUs
	// only, from boot on. PerPod: they may use every CPU until a pod asks, by its annotation, to have them
	// moved off its CPUs; nodes are then judged only by CPUs that pinned pods own. When omitted, this
	// means the user has no opinion and the operator chooses a default, which is subject to change over
	// time. The current default is Housekeeping.
	// +optional
	Placement InterruptPlacement `json:"placement,omitempty"`

	// balancer is Restricted, Stopped or Kept: what becomes of irqbalance. When omitted, this means the
	// user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is Restricted with placement Housekeeping and Kept with placement PerPod.
	// +optional
	Balancer InterruptBalancer `json:"balancer,omitempty"`
}

// TopologyPolicy is the policy of the kubelet's topology manager.
//
// +kubebuilder:validation:Enum=None;BestEffort;Restricted;SingleNUMANode
type TopologyPolicy string

const (
	// TopologyNone aligns nothing.
	TopologyNone TopologyPolicy = "None"
	// TopologyBestEffort aligns where possible and admits every pod.
	TopologyBestEffort TopologyPolicy = "BestEffort"
	// TopologyRestricted refuses pods whose preferred alignment is impossible.
	TopologyRestricted TopologyPolicy = "Restricted"
	// TopologySingleNUMANode refuses pods that do not fit one NUMA node.
	TopologySingleNUMANode TopologyPolicy = "SingleNUMANode"
)

// TopologyScope is the scope of the kubelet's topology manager.
//
// +kubebuilder:validation:Enum=Container;Pod
type TopologyScope string

const (
	// TopologyScopeContainer aligns each container by itself.
	TopologyScopeContainer TopologyScope = "Container"
	// TopologyScopePod aligns all containers of a pod together.
	TopologyScopePod TopologyScope = "Pod"
)

// NUMASpec says how strictly a pod is kept on one NUMA node.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || !has(self.topologyPolicy) || self.topologyPolicy != 'None'",message="spec.numa.scope has no meaning with spec.numa.topologyPolicy None."
type NUMASpec struct {
	// topologyPolicy is None, BestEffort, Restricted or SingleNUMANode. When omitted, this means the user
	// has no opinion and the operator chooses a default, which is subject to change over time. The current
	// default is SingleNUMANode.
	// +optional
	TopologyPolicy TopologyPolicy `json:"topologyPolicy,omitempty"`

	// scope is Container or Pod. When omitted, this means the user has no opinion and the operator chooses
	// a default, which is subject to change over time. The current default is Pod with SingleNUMANode and
	// Container otherwise.
	// +optional
	Scope TopologyScope `json:"scope,omitempty"`

	// automaticBalancing is Kept or Disabled. Disabled sets kernel.numa_balancing to 0: the kernel no longer
	// unmaps pages to find out who uses them. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is Disabled.
	// +optional
	AutomaticBalancing BackgroundActivity `json:"automaticBalancing,omitempty"`
}
