// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// What a test does when the fields are omitted.
const (
	defaultDurationSeconds      = 60
	defaultRepetitions          = 1
	defaultParallelNodes        = 8
	defaultCPUs                 = 1
	defaultThresholdNanoseconds = 500
)

// Parameters are what a test measures, with the values in force of what is omitted.
type Parameters struct {
	Kind          v1alpha1.LatencyTestKind
	Duration      time.Duration
	Repetitions   int32
	CPUs          int32
	Threshold     time.Duration
	ParallelNodes int
}

// ParametersOf are those of a test.
func ParametersOf(spec *v1alpha1.LatencyTestSpec) Parameters {
	jitter := v1alpha1.JitterTest{}
	if spec.Jitter != nil {
		jitter = *spec.Jitter
	}
	return Parameters{
		Kind:          spec.Kind,
		Duration:      time.Duration(cmp.Or(spec.DurationSeconds, defaultDurationSeconds)) * time.Second,
		Repetitions:   cmp.Or(spec.Repetitions, defaultRepetitions),
		CPUs:          cmp.Or(jitter.CPUs, defaultCPUs),
		Threshold:     time.Duration(cmp.Or(jitter.ThresholdNanoseconds, defaultThresholdNanoseconds)),
		ParallelNodes: int(cmp.Or(spec.MaximumParallelNodes, defaultParallelNodes)),
	}
}

// Hash tells measurements with different parameters apart.
func (p Parameters) Hash() string {
	return hashOf(fmt.Sprintf("%s %s %d %d %s", p.Kind, p.Duration, p.Repetitions, p.CPUs, p.Threshold))
}

// hashOf is short, and the same on every machine.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	const bytes = 8
	return hex.EncodeToString(sum[:bytes])
}
