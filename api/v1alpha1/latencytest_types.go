// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LatencyTest measures nodes and judges them by a budget. The operator runs one Job on each chosen node, in the namespace of the
// LatencyTest, and writes what it measured, with the fingerprint of the node, into the status. A result is stale once the kernel,
// its command line, the firmware, the microcode, the plan or a driver of the node has become another; the node is then
// measured again.
//
// The pod of a Job is Guaranteed and asks for whole CPUs, which a kubelet with the static CPU manager gives to it alone: it never
// runs on CPUs that another pod owns. It has no rights in the API, no volume and no capability. Tests never run on the same
// node at the same time.
//
// Who may create pods in the namespace of a LatencyTest can pretend to be its pod. A test that decides about nodes belongs in a
// namespace of those who administer the nodes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=lt,categories=lowlatency
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.selected`
// +kubebuilder:printcolumn:name="Passed",type=integer,JSONPath=`.status.nodes.passed`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.nodes.failed`
// +kubebuilder:printcolumn:name="Inconclusive",type=integer,JSONPath=`.status.nodes.inconclusive`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.nodes.running`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 characters long, because Jobs carry it as a label."
type LatencyTest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says what is measured on which nodes.
	// +required
	Spec LatencyTestSpec `json:"spec"`

	// status is what was measured.
	// +optional
	Status LatencyTestStatus `json:"status,omitzero"`
}

// LatencyTestList is a list of LatencyTest.
//
// +kubebuilder:object:root=true
type LatencyTestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []LatencyTest `json:"items"`
}

// LatencyTestKind says what is measured.
//
// +kubebuilder:validation:Enum=Jitter
type LatencyTestKind string

// LatencyTestJitter measures how often and for how long something else runs on a CPU that a program believes to own.
const LatencyTestJitter LatencyTestKind = "Jitter"

// LatencyTestSpec says what is measured on which nodes, and what is good enough.
type LatencyTestSpec struct {
	// nodes are those that are measured, at most 128.
	// +required
	Nodes LatencyTestNodes `json:"nodes"`

	// kind is Jitter: a loop on the cycle counter notes when and for how long something else runs on its CPU.
	// +required
	Kind LatencyTestKind `json:"kind"`

	// jitter has the parameters of kind Jitter. When omitted, each of them is as if it were omitted.
	// +optional
	Jitter *JitterTest `json:"jitter,omitempty"`

	// durationSeconds is how long each repetition measures, 1 to 86400. When omitted, this means the user has no opinion and
	// the operator chooses a default, which is subject to change over time. The current default is 60.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DurationSeconds int32 `json:"durationSeconds,omitempty"`

	// repetitions is how often the measurement is made, 1 to 10; the worst repetition is judged. When omitted, this means the
	// user has no opinion and the operator chooses a default, which is subject to change over time. The current default is 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	Repetitions int32 `json:"repetitions,omitempty"`

	// budget is what a node may show at most. A result that is there is judged anew by a changed budget. When omitted, the
	// budget of the LowLatencyNodeProfile that governs the node counts (spec.verification.budget); without that, the outcome
	// is Inconclusive.
	// +optional
	Budget *LatencyBudget `json:"budget,omitempty"`

	// run counts runs on demand, 0 to 1000000: raising it measures every node once more. When omitted, it is 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Run int32 `json:"run,omitempty"`

	// repeatAfterHours measures a node once more so many hours after its last measurement, 1 to 8760. When omitted, a
	// node is measured again only when its fingerprint has changed, or spec.run was raised.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8760
	// +optional
	RepeatAfterHours int32 `json:"repeatAfterHours,omitempty"`

	// expireAfterHours is for how many hours a measurement counts, 1 to 87600; after that the node is measured again. When
	// omitted, a measurement counts until the fingerprint of the node changes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=87600
	// +optional
	ExpireAfterHours int32 `json:"expireAfterHours,omitempty"`

	// maximumParallelNodes is how many nodes are measured at the same time, 1 to 128. When omitted, this means the user
	// has no opinion and the operator chooses a default, which is subject to change over time. The current default is 8.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	// +optional
	MaximumParallelNodes int32 `json:"maximumParallelNodes,omitempty"`
}

// LatencyTestNodes says which nodes are measured, in one of four ways.
//
// +kubebuilder:validation:XValidation:rule="[has(self.profile), has(self.bypassNICPool), has(self.nodeSelector), has(self.names)].filter(set, set).size() == 1",message="spec.nodes needs exactly one of profile, bypassNICPool, nodeSelector and names."
type LatencyTestNodes struct {
	// profile is the name of the LowLatencyNodeProfile whose nodes are measured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +optional
	Profile string `json:"profile,omitempty"`

	// bypassNICPool is the name of the BypassNICPool whose nodes are measured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +optional
	BypassNICPool string `json:"bypassNICPool,omitempty"`

	// nodeSelector selects nodes by their labels.
	// +optional
	NodeSelector *NodeSelector `json:"nodeSelector,omitempty"`

	// names are the names of nodes, 1 to 128.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
}

// JitterTest has the parameters of kind Jitter.
type JitterTest struct {
	// cpus is how many CPUs of each node are measured at the same time, 1 to 512. The pod asks for one core more, from which
	// it reads the kernel's counters, and for whole cores where threads share them. Which CPUs they are is up to the kubelet.
	// When omitted, this means the user has no opinion and the operator chooses a default, which is subject to change over
	// time. The current default is 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=512
	// +optional
	CPUs int32 `json:"cpus,omitempty"`

	// thresholdNanoseconds is the least length of an interruption, 100 to 1000000. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current default is 500.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	ThresholdNanoseconds int32 `json:"thresholdNanoseconds,omitempty"`
}

// LatencyBudget is what a node may show at most. A value that equals the bound is within it.
//
// +kubebuilder:validation:MinProperties=1
type LatencyBudget struct {
	// maximumNanoseconds bounds the longest interruption, 1 to 10000000000. When omitted, it is not judged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000000000
	// +optional
	MaximumNanoseconds int64 `json:"maximumNanoseconds,omitempty"`

	// stolenPartsPerMillion bounds the share of time that was taken from the measured CPU which lost most, 1 to 1000000. When
	// omitted, it is not judged.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	StolenPartsPerMillion int32 `json:"stolenPartsPerMillion,omitempty"`

	// percentiles bound single percentiles, at most 6. When omitted, none is judged.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=map
	// +listMapKey=percentile
	// +optional
	Percentiles []LatencyPercentile `json:"percentiles,omitempty"`
}

// PercentileName is a percentile as people write it, without the point.
//
// +kubebuilder:validation:Enum=P50;P90;P99;P999;P9999;P99999
type PercentileName string

const (
	// P50 is the median.
	P50 PercentileName = "P50"
	// P90 leaves 10 of 100 above it.
	P90 PercentileName = "P90"
	// P99 leaves 1 of 100 above it.
	P99 PercentileName = "P99"
	// P999 is 99.9 %.
	P999 PercentileName = "P999"
	// P9999 is 99.99 %.
	P9999 PercentileName = "P9999"
	// P99999 is 99.999 %.
	P99999 PercentileName = "P99999"
)

// LatencyPercentile is a percentile with its value, or with its bound.
type LatencyPercentile struct {
	// percentile is P50, P90, P99, P999 (99.9 %), P9999 or P99999. Of kind Jitter it is over time: at a random
	// moment, the interruption that is going on is at most so long, and 0 when none is.
	// +required
	Percentile PercentileName `json:"percentile"`

	// nanoseconds is the value or the bound, 0 to 10000000000.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000000000
	// +required
	Nanoseconds int64 `json:"nanoseconds"`
}
