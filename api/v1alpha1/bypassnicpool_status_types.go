// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BypassNICPoolStatus is what the nodes say about the NICs of a pool.
type BypassNICPoolStatus struct {
	// conditions are Ready, Progressing and Degraded.
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

	// nodes counts the nodes of the pool.
	// +optional
	Nodes *PoolNodeCounts `json:"nodes,omitempty"`

	// nics counts the NICs of the pool.
	// +optional
	NICs *PoolNICCounts `json:"nics,omitempty"`

	// members are the nodes with their NICs, those with a NIC that is not healthy first, at most 256. Every
	// LowLatencyNode has its own full list.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=node
	// +optional
	Members []PoolMember `json:"members,omitempty"`

	// findings are what keeps NICs from being handed out, at most 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Findings []PoolFinding `json:"findings,omitempty"`
}

// PoolNodeCounts counts the nodes of a pool.
type PoolNodeCounts struct {
	// matched is the number of nodes that nodeSelector selects.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Matched int32 `json:"matched"`

	// reporting is the number of nodes whose agent has reported the NICs of this pool for the current spec.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Reporting int32 `json:"reporting"`
}

// PoolNICCounts counts the NICs of a pool.
type PoolNICCounts struct {
	// found is the number of NICs that the selectors of spec.nics match.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Found int32 `json:"found"`

	// eligible is the number of NICs that may be handed out.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Eligible int32 `json:"eligible"`

	// healthy is the number of eligible NICs that are healthy.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Healthy int32 `json:"healthy"`

	// units is the number of units of the resource that the healthy NICs give.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000000
	// +required
	Units int32 `json:"units"`

	// allocated is the number of units that containers hold.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000000
	// +required
	Allocated int32 `json:"allocated"`
}

// PoolMember is a node with its NICs of one pool.
type PoolMember struct {
	// node is the name of the node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Node string `json:"node"`

	// nics are the NICs of the pool on the node, at most 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=pciAddress
	// +optional
	NICs []PoolNIC `json:"nics,omitempty"`
}

// PoolNIC is one NIC of a pool in short.
type PoolNIC struct {
	// pciAddress of the NIC or of its virtual function.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	PCIAddress string `json:"pciAddress"`

	// numaNode of the NIC; absent when the firmware does not say.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	// +optional
	NUMANode *int32 `json:"numaNode,omitempty"`

	// health is Healthy, Unhealthy, Unknown or Ineligible.
	// +required
	Health NICHealth `json:"health"`

	// units of the resource that the NIC gives.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	// +required
	Units int32 `json:"units"`

	// allocated units.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	// +required
	Allocated int32 `json:"allocated"`
}

// PoolFinding is what keeps a NIC from being handed out.
type PoolFinding struct {
	// node is the name of the node. When omitted, the finding is about the pool as a whole, such as a resource name that
	// another pool has, too.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Node string `json:"node,omitempty"`

	// pciAddress of the NIC; absent when the finding is about the node.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	PCIAddress string `json:"pciAddress,omitempty"`

	// container that the finding is about, as NAMESPACE/POD/CONTAINER. When omitted, it is about none.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Container string `json:"container,omitempty"`

	// conflictingPools are the other BypassNICPools that claim the NIC or the resource name, too, at most 16. When
	// omitted, the finding is not about a conflict.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=40
	// +listType=set
	// +optional
	ConflictingPools []string `json:"conflictingPools,omitempty"`

	// message is one sentence that says what is wrong and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`
}

// NICHealth says whether a NIC can be handed out.
//
// +kubebuilder:validation:Enum=Healthy;Unhealthy;Unknown;Ineligible
type NICHealth string

const (
	// NICHealthy means that every fact that the stack needs was read and is good.
	NICHealthy NICHealth = "Healthy"
	// NICUnhealthy means that something is missing that may come back, such as the link or a version.
	NICUnhealthy NICHealth = "Unhealthy"
	// NICUnknown means that the host does not give a fact that the stack needs. It is not handed out.
	NICUnknown NICHealth = "Unknown"
	// NICIneligible means that the NIC must not be handed out: it carries management traffic, another pool
	// has it, or the stack does not support it.
	NICIneligible NICHealth = "Ineligible"
)

// NodeBypassNIC is a NIC of a node that a BypassNICPool selects, as the node's agent sees it.
type NodeBypassNIC struct {
	// pool is the name of the BypassNICPool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pool string `json:"pool"`

	// poolGeneration is the generation of the pool's spec that was evaluated.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	PoolGeneration int64 `json:"poolGeneration,omitempty"`

	// pciAddress of the NIC or of its virtual function.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	PCIAddress string `json:"pciAddress"`

	// interfaceName of the NIC; absent when no driver made one.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	InterfaceName string `json:"interfaceName,omitempty"`

	// model is the series of the NIC, such as X2 or X4, read from its PCI identifiers.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Model string `json:"model,omitempty"`

	// numaNode of the NIC; absent when the firmware does not say.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	// +optional
	NUMANode *int32 `json:"numaNode,omitempty"`

	// health is Healthy, Unhealthy, Unknown or Ineligible.
	// +required
	Health NICHealth `json:"health"`

	// reasons say why the NIC is not healthy, each in one sentence, at most 8. Those of a healthy NIC say what it
	// could do better, such as a PCIe link that was trained to half its width.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Reasons []string `json:"reasons,omitempty"`

	// moduleVersion is the version of the stack's kernel module.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ModuleVersion string `json:"moduleVersion,omitempty"`

	// userVersion is the version of the stack's user files on the node.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UserVersion string `json:"userVersion,omitempty"`

	// units of the resource that the NIC gives: how many containers may hold it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1024
	// +required
	Units int32 `json:"units"`

	// hugepages says whether the kernel has free pages of every size of the pool's spec.hugepages left on the NIC's
	// NUMA node: Left, Exhausted or Unknown. Absent when the pool reserves none.
	// +optional
	Hugepages HugepageSupply `json:"hugepages,omitempty"`

	// users are the containers that hold a unit, at most 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Users []NICUser `json:"users,omitempty"`
}

// HugepageSupply says whether a NUMA node has free hugepages.
//
// +kubebuilder:validation:Enum=Left;Exhausted;Unknown
type HugepageSupply string

const (
	// HugepagesLeft means that there is a free page of every size.
	HugepagesLeft HugepageSupply = "Left"
	// HugepagesExhausted means that there is none of some size.
	HugepagesExhausted HugepageSupply = "Exhausted"
	// HugepagesUnknown means that the NUMA node of the NIC, or its free pages, cannot be read.
	HugepagesUnknown HugepageSupply = "Unknown"
)

// Alignment says whether a container's CPUs, hugepages and NIC are on one NUMA node.
//
// +kubebuilder:validation:Enum=Aligned;Split;Unknown
type Alignment string

const (
	// AlignmentAligned means that all are on one NUMA node.
	AlignmentAligned Alignment = "Aligned"
	// AlignmentSplit means that they are not.
	AlignmentSplit Alignment = "Split"
	// AlignmentUnknown means that the kubelet or the firmware does not say.
	AlignmentUnknown Alignment = "Unknown"
)

// NICUser is a container that holds a unit of a NIC.
type NICUser struct {
	// namespace of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// pod is the name of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`

	// container is the name of the container.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Container string `json:"container"`

	// allocation is DevicePlugin or DynamicResourceAllocation: the way in which the container got the unit. It
	// differs from that of the pool for containers that were started before the pool was changed.
	// +optional
	Allocation AllocationType `json:"allocation,omitempty"`

	// alignment is Aligned, Split or Unknown, as the kubelet's PodResources service reports it.
	// +required
	Alignment Alignment `json:"alignment"`

	// message says what is on which NUMA node when the container is not aligned.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`
}
