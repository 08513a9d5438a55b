// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"errors"
	"fmt"
	"slices"
)

// Validate says what no measurement can have found: the file of a result was edited, or is of something else.
func (r *Result) Validate() error {
	if len(r.CPUs) == 0 {
		return errors.New("it has no cpus")
	}
	if r.ThresholdNanoseconds < 0 {
		return fmt.Errorf("thresholdNanoseconds is %d", r.ThresholdNanoseconds)
	}
	seen := map[int]bool{}
	for i := range r.CPUs {
		one := &r.CPUs[i]
		if seen[one.CPU] {
			return fmt.Errorf("CPU %d is in it twice", one.CPU)
		}
		seen[one.CPU] = true
		if err := one.validate(); err != nil {
			return fmt.Errorf("CPU %d: %w", one.CPU, err)
		}
	}
	return nil
}

func (r *CPUResult) validate() error {
	switch {
	case r.CPU < 0:
		return errors.New("no CPU has a negative number")
	case r.DurationNanoseconds <= 0:
		return fmt.Errorf("durationNanoseconds is %d: nothing was measured", r.DurationNanoseconds)
	case r.CountedNanoseconds < 0:
		return fmt.Errorf("countedNanoseconds is %d", r.CountedNanoseconds)
	case r.NotRecorded > r.Interruptions:
		return fmt.Errorf("%d interruptions are not recorded, of %d", r.NotRecorded, r.Interruptions)
	case r.LoopNanoseconds < 0 || r.InterruptionsPerSecond < 0 || r.StolenPartsPerMillion < 0:
		return fmt.Errorf("negative among loopNanoseconds %g, interruptionsPerSecond %g and stolenPartsPerMillion %g",
			r.LoopNanoseconds, r.InterruptionsPerSecond, r.StolenPartsPerMillion)
	}
	return r.validateLengths()
}

// validateLengths judges every length of an interruption.
func (r *CPUResult) validateLengths() error {
	if r.StolenNanoseconds < 0 || r.MaximumNanoseconds < 0 {
		return fmt.Errorf("negative among stolenNanoseconds %d and maximumNanoseconds %d", r.StolenNanoseconds, r.MaximumNanoseconds)
	}
	for _, one := range slices.Concat(r.OverInterruptions, r.OverTime) {
		if one.Percent < 0 || one.Percent > 100 || one.Nanoseconds < 0 {
			return fmt.Errorf("percentile %g is %d ns", one.Percent, one.Nanoseconds)
		}
	}
	return r.validateCounted()
}

// validateCounted judges the histogram and the longest interruptions.
func (r *CPUResult) validateCounted() error {
	for _, bucket := range r.Histogram {
		if bucket.FromNanoseconds < 0 || bucket.ToNanoseconds <= bucket.FromNanoseconds {
			return fmt.Errorf("the histogram counts from %d to %d ns", bucket.FromNanoseconds, bucket.ToNanoseconds)
		}
	}
	for _, worst := range r.Worst {
		if worst.LengthNanoseconds <= 0 {
			return fmt.Errorf("an interruption among the worst lasts %d ns", worst.LengthNanoseconds)
		}
	}
	return nil
}
