// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// LatencyRatioBound bounds how many times as long messages may take on one side as on another.
type LatencyRatioBound struct {
	// percentile is P50, P90, P99, P999 (99.9 %), P9999 or P99999 of the latencies of each measurement. The ratio is that of its medians over the
	// measurements of each side.
	// +required
	Percentile PercentileName `json:"percentile"`

	// maximumPartsPerThousand is the largest ratio, in parts per thousand, 1 to 1000000: 1050 is five per cent longer.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +required
	MaximumPartsPerThousand int32 `json:"maximumPartsPerThousand"`
}

// LatencySide is a side of a comparison: Container or Host of kind ContainerVersusHost, and a name of spec.stackComparison.sides of kind StackComparison.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]+(-[a-z0-9]+)*$`
type LatencySide string

const (
	// LatencySideContainer is a pod as users have it, with a network namespace of its own.
	LatencySideContainer LatencySide = "Container"
	// LatencySideHost is the network namespace of the node, without the filter for system calls that containers have.
	LatencySideHost LatencySide = "Host"
)

// StackComparison says which sides kind StackComparison measures in turns. Of each side the client and the server are pods of their own, so that both
// ends are what the side says.
//
// +kubebuilder:validation:XValidation:rule="self.sides.exists(s, s.name == self.base)",message="spec.stackComparison.base is the name of one of spec.stackComparison.sides."
type StackComparison struct {
	// base is the name of the side with which the others are compared.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +required
	Base string `json:"base"`

	// sides are what is measured in turns, 2 to 5, in this order, which turns round with each repetition.
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=name
	// +required
	Sides []StackSide `json:"sides"`
}

// StackName is the name of a side.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=20
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]+(-[a-z0-9]+)*$')",message="the name of a side has lower-case letters, digits and - between them, such as onload."
type StackName string

// StackSide is a side of a comparison of stacks.
//
// +kubebuilder:validation:XValidation:rule="self.path != 'Accelerated' || (has(self.client.bypassNICPool) && has(self.server.bypassNICPool) && !(has(self.client.sockets) && self.client.sockets == 'Kernel') && !(has(self.server.sockets) && self.server.sockets == 'Kernel'))",message="a side with path Accelerated needs bypassNICPool at both ends, and sockets Kernel at none: the kernel's own sockets are not accelerated."
type StackSide struct {
	// name is what the side is called in the result, at most 20 characters.
	// +required
	Name StackName `json:"name"`

	// path is Kernel or Accelerated: the way that messages of this side have to take by what the kernel counts at both ends. When a side took another one,
	// nothing is compared with it, and the result is Inconclusive.
	// +kubebuilder:validation:Enum=Kernel;Accelerated
	// +required
	Path LatencyPath `json:"path"`

	// client is the end that measures, on each of spec.nodes.
	// +required
	Client StackClient `json:"client"`

	// server is the end that answers, on the node that spec.traffic.server says.
	// +required
	Server StackServer `json:"server"`
}

// StackClient is the end of a side that measures.
//
// +kubebuilder:validation:XValidation:rule="!has(self.network) || self.network == 'Pod' || !has(self.address)",message="an address does not stand with network Host: the namespace of the node has the addresses of the node."
type StackClient struct {
	TestEnd `json:",inline"`

	// network is Pod or Host. Pod: a network namespace of its own, as pods have it. Host: the network namespace of the node, and no filter for system
	// calls, in namespace lowlatency-operator-agents alone. When omitted, it is Pod.
	// +optional
	Network TestNetwork `json:"network,omitempty"`
}

// StackServer is the end of a side that answers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.network) || self.network == 'Pod' || has(self.address)",message="a server with network Host needs an address: that of the NIC of its pool in the namespace of the node, at which it is reached."
type StackServer struct {
	TestEnd `json:",inline"`

	// network is Pod or Host. Pod: a network namespace of its own, as pods have it. Host: the network namespace of the node, in namespace
	// lowlatency-operator-agents alone, and address is then the one that the NIC of the pool has there: the server listens on it and on no other. When
	// omitted, it is Pod.
	// +optional
	Network TestNetwork `json:"network,omitempty"`
}

// TestNetwork is the network namespace of a pod.
//
// +kubebuilder:validation:Enum=Pod;Host
type TestNetwork string

const (
	// TestNetworkPod is one of its own.
	TestNetworkPod TestNetwork = "Pod"
	// TestNetworkHost is that of the node.
	TestNetworkHost TestNetwork = "Host"
)

// ComparisonMeasurement is what was measured on several sides in turns.
type ComparisonMeasurement struct {
	// base is the side with which the others are compared.
	// +required
	Base LatencySide `json:"base"`

	// sides are what was measured on each side, 5 at most.
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=side
	// +required
	Sides []SideMeasurement `json:"sides"`
}

// SideMeasurement is what was measured on one side of a comparison.
type SideMeasurement struct {
	// side is Container or Host, or the name of a side of kind StackComparison.
	// +required
	Side LatencySide `json:"side"`

	// wantedPath is the way that messages of the side had to take, Kernel or Accelerated. When omitted, it is whichever all sides take.
	// +kubebuilder:validation:Enum=Kernel;Accelerated
	// +optional
	WantedPath LatencyPath `json:"wantedPath,omitempty"`

	// path is the way that messages took: Kernel, Accelerated, Mixed or Unknown, by what the kernel counted at both ends.
	// +required
	Path LatencyPath `json:"path"`

	// pathMessage says in a sentence what the kernel counted.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	PathMessage string `json:"pathMessage,omitempty"`

	// cpus are the CPUs to which the client was kept.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	CPUs string `json:"cpus"`

	// sizes are what was measured with messages of each size, at most 20, in the order of the measurement.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +required
	Sizes []SizeMeasurement `json:"sizes"`

	// repetitionMediansNanoseconds are the medians of the first size in the repetitions, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=9007199254740991
	// +listType=atomic
	// +optional
	RepetitionMediansNanoseconds []int64 `json:"repetitionMediansNanoseconds,omitempty"`

	// ratios are how many times as long messages took as on the base, for each size and each percentile that all measurements carry, at most 120. The
	// base has none, nor has a side that took another path than the wanted one, or whose base did.
	// +kubebuilder:validation:MaxItems=120
	// +listType=atomic
	// +optional
	Ratios []LatencyRatio `json:"ratios,omitempty"`

	// causes are what the kernel counted on the CPU of the client during the measurement with the longest latency, with the rate of each, the most
	// frequent first and softirqs last, at most 4.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=96
	// +listType=atomic
	// +optional
	Causes []string `json:"causes,omitempty"`

	// isolation is what the scheduler and the idle governor counted on the CPU of the client during the measurement with the longest latency. When
	// omitted, they were not asked, or there was no room.
	// +optional
	Isolation *LatencyIsolation `json:"isolation,omitempty"`

	// The counts of the server are those of the same measurement.
	ServerCounts `json:",inline"`

	// histogram is the HDR histogram of the latencies of messages of the first size in nanoseconds, in the compressed V2 encoding and base64, of the
	// repetition whose median is in the middle. It is absent where it would be too large.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Histogram string `json:"histogram,omitempty"`
}

// LatencyRatio is how many times as long messages of one size took on one side as on another: the ratio of the medians, over the measurements
// of each side, of a percentile.
type LatencyRatio struct {
	// bytes is the size of the messages.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	// +required
	Bytes int32 `json:"bytes"`

	// percentile is P50, P90, P99, P999 (99.9 %), P9999 or P99999 of the latencies of a measurement.
	// +required
	Percentile PercentileName `json:"percentile"`

	// partsPerThousand is the ratio: 1000 is as long.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	PartsPerThousand int64 `json:"partsPerThousand"`

	// lowPartsPerThousand to highPartsPerThousand hold the ratio with 95 % confidence, by the bootstrap over pairs of measurements.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	LowPartsPerThousand int64 `json:"lowPartsPerThousand"`

	// highPartsPerThousand is its upper end.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +required
	HighPartsPerThousand int64 `json:"highPartsPerThousand"`
}
