// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LowLatencyNodeProfileStatus is what the operator planned and what the kernels of the nodes report.
type LowLatencyNodeProfileStatus struct {
	// conditions are Ready, Progressing, Degraded, DeJittered and NUMAAligned, and Stalled when nothing will
	// change without a new spec.
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

	// nodes counts the matching nodes by how far they are.
	// +optional
	Nodes *NodeCounts `json:"nodes,omitempty"`

	// effective are the settings in force, after presets and defaults, each with where it came from.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=field
	// +optional
	Effective []EffectiveSetting `json:"effective,omitempty"`

	// shapes are the distinct plans, one for all nodes whose plans are equal, the most frequent first.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=hash
	// +optional
	Shapes []ShapeStatus `json:"shapes,omitempty"`

	// findings are what cannot be met on some node, and what a node's kernel contradicts, the most severe
	// first, at most 64. Each LowLatencyNode has its own full list.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Findings []ProfileFinding `json:"findings,omitempty"`
}

// NodeCounts counts nodes by how far they are.
type NodeCounts struct {
	// matched is the number of nodes that nodeSelector selects.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Matched int32 `json:"matched"`

	// planned is the number of nodes with a plan.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Planned int32 `json:"planned"`

	// applied is the number of nodes whose running kernel and kubelet have the current plan.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Applied int32 `json:"applied"`

	// pending is the number of nodes that keep the plan that they have until their turn for the current one comes.
	// Until then, deJittered and numaAligned count them by the plan that they have.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// deJittered is the number of nodes whose kernel proves that isolated CPUs are left alone.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	DeJittered int32 `json:"deJittered"`

	// numaAligned is the number of nodes whose CPUs, hugepages, NICs and kubelet are NUMA-aligned.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	NUMAAligned int32 `json:"numaAligned"`
}

// SettingOrigin says where a setting came from.
//
// +kubebuilder:validation:Enum=Profile;Preset;Default
type SettingOrigin string

const (
	// OriginProfile means that the profile's spec names the value.
	OriginProfile SettingOrigin = "Profile"
	// OriginPreset means that a preset named in the spec implies the value.
	OriginPreset SettingOrigin = "Preset"
	// OriginDefault means that the operator chose the value.
	OriginDefault SettingOrigin = "Default"
)

// EffectiveSetting is one setting in force.
type EffectiveSetting struct {
	// field is the path of the field in the spec, such as spec.cpus.tick.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Field string `json:"field"`

	// value in force.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Value string `json:"value"`

	// origin is Profile, Preset or Default.
	// +required
	Origin SettingOrigin `json:"origin"`
}

// RebootRequirement says whether a plan takes effect without a reboot.
//
// +kubebuilder:validation:Enum=Required;NotRequired;Unknown
type RebootRequirement string

const (
	// RebootRequired means that the node has to reboot.
	RebootRequired RebootRequirement = "Required"
	// RebootNotRequired means that every difference can be applied to the running system.
	RebootNotRequired RebootRequirement = "NotRequired"
	// RebootUnknown means that what the node runs now could not be read.
	RebootUnknown RebootRequirement = "Unknown"
)

// ShapeStatus is one distinct plan.
type ShapeStatus struct {
	// hash identifies the plan.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Hash string `json:"hash"`

	// pool is the machine config pool that carries the plan.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Pool string `json:"pool,omitempty"`

	// nodes is the number of nodes that are to have this plan.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	Nodes int32 `json:"nodes"`

	// pending is the number of these nodes that keep another plan until their turn comes.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Pending int32 `json:"pending,omitempty"`

	// kernelArguments is the planned part of the kernel command line.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	KernelArguments string `json:"kernelArguments,omitempty"`

	// housekeeping are the CPUs of the operating system and ordinary pods.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Housekeeping string `json:"housekeeping,omitempty"`

	// isolated are the CPUs of latency-critical pods.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Isolated string `json:"isolated,omitempty"`

	// partition counts the cores of a derived partition. When omitted, the profile names its CPUs.
	// +optional
	Partition *ShapePartition `json:"partition,omitempty"`

	// reboot says whether some node of this shape has to reboot before the plan is in force.
	// +optional
	Reboot RebootRequirement `json:"reboot,omitempty"`
}

// PartitionReason says why a derived partition has as many housekeeping cores as it has.
//
// +kubebuilder:validation:Enum=AsAsked;FewerNearBypassNICs;WholeL3Domains;SharedL3Domains
type PartitionReason string

const (
	// PartitionAsAsked means that housekeeping has the cores that were asked for, or all that its NUMA nodes have.
	PartitionAsAsked PartitionReason = "AsAsked"
	// PartitionFewerNearBypassNICs means that NUMA nodes of bypass NICs give up one core only.
	PartitionFewerNearBypassNICs PartitionReason = "FewerNearBypassNICs"
	// PartitionWholeL3Domains means that housekeeping is rounded up to whole L3 domains.
	PartitionWholeL3Domains PartitionReason = "WholeL3Domains"
	// PartitionSharedL3Domains means that housekeeping shares L3 domains with isolated CPUs, because whole ones would take
	// more than a quarter of the cores.
	PartitionSharedL3Domains PartitionReason = "SharedL3Domains"
)

// ShapePartition counts the physical cores of a derived partition.
type ShapePartition struct {
	// askedCores is the number of housekeeping cores that spec.cpus.derived, or its default, asks for: on all NUMA nodes
	// together.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	AskedCores int32 `json:"askedCores"`

	// housekeepingCores is the number of housekeeping cores that the plan gives.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	HousekeepingCores int32 `json:"housekeepingCores"`

	// isolatedCores is the number of isolated cores.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +required
	IsolatedCores int32 `json:"isolatedCores"`

	// reason says why housekeepingCores is what it is; the findings say what else could be chosen.
	// +required
	Reason PartitionReason `json:"reason"`
}

// ProfileFinding is a finding of one node as the profile repeats it.
type ProfileFinding struct {
	// node is the name of the node.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Node string `json:"node,omitempty"`

	// check is the identifier of the check or of the planning rule.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Check string `json:"check"`

	// severity is Critical, High, Medium or Low.
	// +required
	Severity Severity `json:"severity"`

	// message says what is wrong, with the field or file, its value, and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Message string `json:"message"`

	// objects are the CPUs, interrupts, NICs and other parts of the node that the finding is about. When omitted, it is
	// about the node as a whole, or about more than nodes.
	// +optional
	Objects *FindingObjects `json:"objects,omitempty"`
}
