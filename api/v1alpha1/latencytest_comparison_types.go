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

// LatencySide is a side of a comparison: from where messages were sent.
//
// +kubebuilder:validation:Enum=Container;Host
type LatencySide string

const (
	// LatencySideContainer is a pod as users have it, with a network namespace of its own.
	LatencySideContainer LatencySide = "Container"
	// LatencySideHost is the network namespace of the node, without the filter for system calls that containers have.
	LatencySideHost LatencySide = "Host"
)

// ComparisonMeasurement is what was measured on several sides in turns.
type ComparisonMeasurement struct {
	// base is the side with which the others are compared.
	// +required
	Base LatencySide `json:"base"`

	// sides are what was measured on each side, 2 at most.
	// +kubebuilder:validation:MaxItems=2
	// +listType=map
	// +listMapKey=side
	// +required
	Sides []SideMeasurement `json:"sides"`
}

// SideMeasurement is what was measured on one side of a comparison.
type SideMeasurement struct {
	// side is Container or Host.
	// +required
	Side LatencySide `json:"side"`

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

	// sizes are what was measured with messages of each size, at most 8, in the order of the measurement.
	// +kubebuilder:validation:MaxItems=8
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

	// ratios are how many times as long messages took as on the base, for each size and each percentile that all measurements carry, at most 48. The
	// base has none.
	// +kubebuilder:validation:MaxItems=48
	// +listType=atomic
	// +optional
	Ratios []LatencyRatio `json:"ratios,omitempty"`

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
