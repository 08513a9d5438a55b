// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LowLatencyNodeProfile says how a set of nodes is to be partitioned, tuned and verified. The operator
// computes an exact plan for every matching node from that node's own topology, applies it through the
// platform, and reports from the running kernel whether each node is de-jittered and NUMA-aligned.
//
// Nodes of different shape may live under one profile. A node may be matched by one profile only; when
// two match, both report it and neither changes that node.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=llnp,categories=lowlatency
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.matched`
// +kubebuilder:printcolumn:name="Applied",type=integer,JSONPath=`.status.nodes.applied`
// +kubebuilder:printcolumn:name="Pending",type=integer,JSONPath=`.status.nodes.pending`
// +kubebuilder:printcolumn:name="De-jittered",type=integer,JSONPath=`.status.nodes.deJittered`
// +kubebuilder:printcolumn:name="NUMA-aligned",type=integer,JSONPath=`.status.nodes.numaAligned`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name must be at most 40 characters long, because the names of machine config pools are made from it."
type LowLatencyNodeProfile struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is how the matching nodes are to be partitioned, tuned and verified.
	// +required
	Spec LowLatencyNodeProfileSpec `json:"spec"`

	// status is what the operator planned for the matching nodes and what their kernels report.
	// +optional
	Status LowLatencyNodeProfileStatus `json:"status,omitzero"`
}

// LowLatencyNodeProfileList is a list of LowLatencyNodeProfile.
//
// +kubebuilder:object:root=true
type LowLatencyNodeProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []LowLatencyNodeProfile `json:"items"`
}

// LowLatencyNodeProfileSpec is the intent for a set of nodes. Every section but nodeSelector may be
// omitted; the values then in force are listed in status.effective.
//
// +kubebuilder:validation:XValidation:rule="!has(self.memory) || !has(self.memory.kernelPageSize) || self.memory.kernelPageSize != '64Ki' || !has(self.kernel) || !has(self.kernel.type) || self.kernel.type != 'RealTime'",message="spec.memory.kernelPageSize 64Ki cannot be combined with spec.kernel.type RealTime: no real-time kernel with 64 KiB pages exists."
// +kubebuilder:validation:XValidation:rule="!has(self.interrupts) || !has(self.interrupts.placement) || self.interrupts.placement != 'PerPod' || !has(self.interrupts.balancer) || self.interrupts.balancer != 'Stopped'",message="spec.interrupts.balancer Stopped cannot be combined with spec.interrupts.placement PerPod: the container runtime moves interrupts through irqbalance."
type LowLatencyNodeProfileSpec struct {
	// nodeSelector selects the nodes by their labels. A node must carry all of them. It cannot select
	// control-plane nodes together with workers, because a machine config pool holds only one kind.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector"`

	// pools says how the nodes are grouped for the platform that changes them. When omitted, the
	// operator manages one machine config pool for each shape of node.
	// +optional
	Pools PoolsSpec `json:"pools,omitzero"`

	// cpus divides the CPUs of a node. When omitted, the partition is derived from each node's topology.
	// +optional
	CPUs CPUsSpec `json:"cpus,omitzero"`

	// memory reserves hugepages and sets what the kernel does with memory in the background.
	// +optional
	Memory MemorySpec `json:"memory,omitzero"`

	// interrupts says where device interrupts may be handled.
	// +optional
	Interrupts InterruptsSpec `json:"interrupts,omitzero"`

	// numa says how strictly the kubelet keeps a pod's CPUs, memory and devices on one NUMA node.
	// +optional
	NUMA NUMASpec `json:"numa,omitzero"`

	// power sets frequency and idle-state behaviour.
	// +optional
	Power PowerSpec `json:"power,omitzero"`

	// kernel selects the kernel and its arguments.
	// +optional
	Kernel KernelSpec `json:"kernel,omitzero"`

	// network names the NICs that matter to this profile and sets their queues and packet steering.
	// +optional
	Network NetworkSpec `json:"network,omitzero"`

	// kubelet holds settings of the node's kubelet that do not follow from the other sections.
	// +optional
	Kubelet KubeletSpec `json:"kubelet,omitzero"`

	// containerRuntime holds settings of the node's container runtime.
	// +optional
	ContainerRuntime ContainerRuntimeSpec `json:"containerRuntime,omitzero"`

	// system stops services, unloads kernel modules and sets kernel parameters, as the clean-up script of
	// a hand-tuned host does.
	// +optional
	System SystemSpec `json:"system,omitzero"`

	// verification says what a node must prove and what happens while it has not.
	// +optional
	Verification VerificationSpec `json:"verification,omitzero"`

	// acceptedRisks confirm by name what the operator otherwise refuses as dangerous, at most 32: kernel
	// arguments, units, modules, kernel parameters and kubelet fields of this profile. What a node would not
	// survive is refused whether named here or not.
	//
	//	acceptedRisks:
	//	- {setting: selinux=0, reason: "the vendor's driver is not labelled"}
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=setting
	// +optional
	AcceptedRisks []AcceptedRisk `json:"acceptedRisks,omitempty"`

	// rollout says whether changes are carried out.
	// +optional
	Rollout RolloutSpec `json:"rollout,omitzero"`
}

// LabelValue is the value of a Kubernetes label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$')",message="a label value is empty or begins and ends with a letter or digit, with letters, digits and _.- between."
type LabelValue string

// Labels are label keys and the values that they must have.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=8
// +kubebuilder:validation:XValidation:rule="self.all(key, size(key) <= 317 && key.matches('^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="a label key is a name of at most 63 letters, digits and _.-, which a DNS name and a slash may precede."
type Labels map[string]LabelValue

// NodeSelector selects nodes by label, as a LabelSelector of Kubernetes does: a node must carry all of matchLabels and meet
// all of matchExpressions.
//
// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions)",message="nodeSelector needs matchLabels or matchExpressions: an empty selector would take every node of the cluster."
type NodeSelector struct {
	// matchLabels are the labels that a node must carry, each with this value, 1 to 8 of them. When omitted,
	// matchExpressions decide alone.
	// +optional
	MatchLabels Labels `json:"matchLabels,omitempty"`

	// matchExpressions are requirements on labels that a node must meet, 1 to 8 of them. When omitted, matchLabels decide
	// alone.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	MatchExpressions []LabelExpression `json:"matchExpressions,omitempty"`
}

// LabelKey is the key of a Kubernetes label.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$')",message="a label key is a name of at most 63 letters, digits and _.-, which a DNS name and a slash may precede."
type LabelKey string

// LabelOperator says how a label is compared.
//
// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
type LabelOperator string

const (
	// LabelIn wants the label with one of the values.
	LabelIn LabelOperator = "In"
	// LabelNotIn wants the label with another value, or not at all.
	LabelNotIn LabelOperator = "NotIn"
	// LabelExists wants the label, whatever its value.
	LabelExists LabelOperator = "Exists"
	// LabelDoesNotExist wants no such label.
	LabelDoesNotExist LabelOperator = "DoesNotExist"
)

// LabelExpression is a requirement on one label.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == has(self.values)",message="a requirement with In or NotIn needs values, and one with Exists or DoesNotExist has none."
type LabelExpression struct {
	// key of the label.
	// +required
	Key LabelKey `json:"key"`

	// operator is In or NotIn, which compare with values, or Exists or DoesNotExist. A node without the label meets NotIn.
	// +required
	Operator LabelOperator `json:"operator"`

	// values are those that In and NotIn compare with, 1 to 16 of them. Exists and DoesNotExist have none.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	Values []LabelValue `json:"values,omitempty"`
}

// PoolManagement says who owns the machine config pools.
//
// +kubebuilder:validation:Enum=Managed;Existing
type PoolManagement string

const (
	// PoolsManaged lets the operator create one MachineConfigPool for each shape of node.
	PoolsManaged PoolManagement = "Managed"
	// PoolsExisting uses a MachineConfigPool that somebody else owns.
	PoolsExisting PoolManagement = "Existing"
)

// PoolsSpec says how nodes are grouped into MachineConfigPools.
//
// +kubebuilder:validation:XValidation:rule="(has(self.management) && self.management == 'Existing') == has(self.existing)",message="spec.pools.existing must be set when spec.pools.management is Existing, and only then."
// +kubebuilder:validation:XValidation:rule="!has(self.maximumUnavailableNodes) || !has(self.management) || self.management == 'Managed'",message="spec.pools.maximumUnavailableNodes applies to Managed machine config pools only; an existing one has its own spec.maxUnavailable."
type PoolsSpec struct {
	// management is Managed or Existing. Managed: the operator creates a MachineConfigPool for each shape
	// of node and moves the nodes into it by a label. Existing: the profile binds to one that
	// somebody else owns; a second shape in it is a finding. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current
	// default is Managed.
	// +optional
	Management PoolManagement `json:"management,omitempty"`

	// existing names the machine config pool to bind to when management is Existing:
	//
	//	pools:
	//	  management: Existing
	//	  existing:
	//	    machineConfigPoolSelector: {pools.operator.machineconfiguration.openshift.io/trading: ""}
	//	    machineConfigLabels: {machineconfiguration.openshift.io/role: trading}
	//
	// +optional
	Existing *ExistingPool `json:"existing,omitempty"`

	// maximumUnavailableNodes is how many nodes may be unavailable at the same time while the operator changes nodes of
	// this profile, 1 to 1000: over all managed machine config pools of the profile, and counting nodes of other profiles
	// that are being changed. When omitted, this means the user has no opinion and the operator chooses a default, which
	// is subject to change over time. The current default is one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaximumUnavailableNodes int32 `json:"maximumUnavailableNodes,omitempty"`
}

// ExistingPool names a MachineConfigPool that the operator does not own.
type ExistingPool struct {
	// machineConfigPoolSelector are labels of the MachineConfigPool. They must select exactly one.
	// +required
	MachineConfigPoolSelector Labels `json:"machineConfigPoolSelector"`

	// machineConfigLabels are the labels put on MachineConfigs so that the machine config pool selects them. When
	// omitted, the label machineconfiguration.openshift.io/role with the name of the machine config pool is used.
	// +optional
	MachineConfigLabels Labels `json:"machineConfigLabels,omitempty"`
}

// RolloutState says whether changes are carried out.
//
// +kubebuilder:validation:Enum=Active;Paused
type RolloutState string

const (
	// RolloutActive carries out changes.
	RolloutActive RolloutState = "Active"
	// RolloutPaused plans and verifies but writes nothing to the platform.
	RolloutPaused RolloutState = "Paused"
)

// BootFallback says what may have to happen where a kernel does not come up with new arguments.
//
// +kubebuilder:validation:Enum=Automatic;ByHandAccepted
type BootFallback string

const (
	// BootFallbackAutomatic has arguments tried only on hosts that start with the former ones by themselves.
	BootFallbackAutomatic BootFallback = "Automatic"
	// BootFallbackByHandAccepted has them tried also where somebody has to choose the former entry at the console.
	BootFallbackByHandAccepted BootFallback = "ByHandAccepted"
)

// RolloutSpec says whether changes are carried out, and how many nodes may leave the profile at once.
type RolloutSpec struct {
	// state is Active or Paused. Paused: nodes are planned and verified, but nothing is written to the
	// platform. When omitted, this means the user has no opinion and the operator chooses a default,
	// which is subject to change over time. The current default is Active.
	// +optional
	State RolloutState `json:"state,omitempty"`

	// maximumReleasedNodes is how many nodes may leave the profile at once without further consent, 0 to 1000000: nodes
	// that it governs and that nodeSelector no longer selects, because of another selector or other labels. When more
	// leave at once, none of them is released: all keep their plan and their gate, and Degraded says how many they
	// are; raise this number to that one to let them go. Nodes are released one after another, within
	// spec.pools.maximumUnavailableNodes. Nodes that another profile selects are handed over and not counted. When
	// omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over
	// time. The current default is a tenth of the nodes that the profile governs, rounded up.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	MaximumReleasedNodes *int32 `json:"maximumReleasedNodes,omitempty"`

	// bootFallback is Automatic or ByHandAccepted: what may have to happen on an ordinary host whose kernel does not come
	// up with new arguments. Automatic: arguments are tried only where the boot loader starts them once, so that the host
	// comes back with the former ones by itself; others are refused. ByHandAccepted: they are tried also where GRUB keeps
	// its environment on LVM, MD RAID, btrfs or ZFS and cannot write there. A kernel that does not come up is then started
	// again and again until somebody chooses the former entry at the console; one that comes up and is not verified is
	// taken back as elsewhere. They are tried also where /etc/crypttab has a disk that the TPM opens, and that may ask for
	// its passphrase with other arguments, until somebody starts the host again, and where that file cannot be read. It
	// has no effect on OpenShift. When omitted, this means the user has no opinion and the operator chooses a default,
	// which is subject to change over time. The current default is Automatic.
	// +optional
	BootFallback BootFallback `json:"bootFallback,omitempty"`
}
