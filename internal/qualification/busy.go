// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"errors"
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// busyOf sums up for how much of the time CPUs were at work in repetitions: the CPU with the most. It is nil when nobody asked.
func busyOf(all []counted.Isolation) *v1alpha1.LatencyBusy {
	busy, of := map[int]uint64{}, map[int]uint64{}
	for i := range all {
		one := &all[i]
		switch {
		case one.BusyUnknown != "":
			return &v1alpha1.LatencyBusy{State: v1alpha1.StateUnknown, UnknownReason: unknownReason(one.BusyUnknown)}
		case one.AllTicks == 0:
			return nil
		}
		busy[one.CPU], of[one.CPU] = busy[one.CPU]+one.BusyTicks, of[one.CPU]+one.AllTicks
	}
	most, highest := 0, int32(-1)
	for i := range all {
		cpu := all[i].CPU
		if percent := percentOf(busy[cpu], of[cpu]); percent > highest {
			most, highest = cpu, percent
		}
	}
	return &v1alpha1.LatencyBusy{State: v1alpha1.StateCounted, CPU: new(int32(most)), Percent: &highest}
}

// percentOf is a share of something in whole percent.
func percentOf(part, all uint64) int32 {
	const whole = 100
	return int32(min(whole, float64(part)/float64(all)*whole+0.5))
}

func busyWords(b *v1alpha1.LatencyBusy) string {
	if b.State != v1alpha1.StateCounted || b.CPU == nil || b.Percent == nil {
		return "work of CPUs unknown (" + b.UnknownReason + ")"
	}
	return fmt.Sprintf("CPU %d was at work for %d %% of the time", *b.CPU, *b.Percent)
}

// BusyWords is a phrase about for how much of the time a CPU was at work, over all parts of a measurement; "" where nobody asked.
func BusyWords(all []counted.Isolation) string {
	if len(all) == 0 {
		return ""
	}
	b := busyOf(all)
	if b == nil {
		return ""
	}
	return busyWords(b)
}

// checkBusy refuses what no program of ours leaves: of what is Unknown a reason and nothing else, of what was counted a CPU and a percentage.
func checkBusy(b *v1alpha1.LatencyBusy) error {
	if b == nil {
		return nil
	}
	contradiction := errors.New("the work of CPUs of the record contradicts itself")
	switch b.State {
	case v1alpha1.StateUnknown:
		if b.CPU != nil || b.Percent != nil {
			return contradiction
		}
		return checkWord("why the work of CPUs is not known", b.UnknownReason, v1alpha1.MaxUnknownReasonLength)
	case v1alpha1.StateCounted:
		if b.UnknownReason != "" || b.CPU == nil || !isCPU(b.CPU) || !isPercent(b.Percent) {
			return contradiction
		}
		return nil
	default:
		return errors.New("the record has a state of the work of CPUs that is not known")
	}
}

func isPercent(n *int32) bool { return n != nil && *n >= 0 && *n <= v1alpha1.MaxBusyPercent }
