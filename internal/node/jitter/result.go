// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"fmt"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

// Result is what a measurement found. Its JSON form is documented in docs/jitter.md.
type Result struct {
	// CounterHertz is the frequency of the cycle counter, and CalibrationPartsPerMillion how far the clock of the
	// kernel and the counter drifted apart over the measurement.
	CounterHertz               float64 `json:"counterHertz"`
	CalibrationPartsPerMillion float64 `json:"calibrationPartsPerMillion"`
	// ThresholdNanoseconds is the least length of an interruption.
	ThresholdNanoseconds int64 `json:"thresholdNanoseconds"`
	// MemoryLocked reports whether the records could be locked into memory: "locked", or why not.
	MemoryLocked string `json:"memoryLocked"`
	// Scheduling is SCHED_OTHER or SCHED_FIFO with the priority.
	Scheduling string `json:"scheduling"`
	// CPUs in ascending order.
	CPUs []CPUResult `json:"cpus"`
}

// CPUResult is what was found on one CPU. All lengths are in nanoseconds.
type CPUResult struct {
	CPU                 int     `json:"cpu"`
	DurationNanoseconds int64   `json:"durationNanoseconds"`
	Loops               uint64  `json:"loops"`
	LoopNanoseconds     float64 `json:"loopNanoseconds"`
	// Interruptions is the number of gaps of the threshold or longer; NotRecorded of them had no room in the
	// record and are missing from everything below but InterruptionsPerSecond. Where there are any, the longest and the stolen time
	// are at least what stands here, and so are OverTime; OverInterruptions say nothing of all.
	Interruptions          uint64  `json:"interruptions"`
	NotRecorded            uint64  `json:"notRecorded"`
	InterruptionsPerSecond float64 `json:"interruptionsPerSecond"`
	StolenNanoseconds      int64   `json:"stolenNanoseconds"`
	StolenPartsPerMillion  float64 `json:"stolenPartsPerMillion"`
	MaximumNanoseconds     int64   `json:"maximumNanoseconds"`
	// OverInterruptions are percentiles of the lengths of interruptions, as sysjitter prints them, as far as their number carries
	// them (latency.Samples); results that were saved by earlier versions have all.
	OverInterruptions []Percentile `json:"overInterruptions"`
	// OverTime are percentiles over moments: at a random moment, the interruption that is going on is at most so
	// long; 0 when none is. They say how the time that was measured was spent, and take no number of interruptions.
	OverTime []Percentile `json:"overTime"`
	// Histogram counts interruptions by length, in powers of two.
	Histogram []Bucket `json:"histogram"`
	// HDR is the same as an HDR histogram in nanoseconds, V2 compressed, in base64.
	HDR string `json:"hdr"`
	// TimeLine is the longest interruption of each slice of the time; nil in results that were saved before there was one.
	TimeLine *latency.TimeLine `json:"timeLine,omitempty"`
	// Worst are the longest interruptions in the order of time.
	Worst []Interruption `json:"worst"`
	// Counted is what the kernel counted on this CPU over CountedNanoseconds, the time from right before the measurement to right after it,
	// the most frequent first. Unlike lengths, it does not depend on what the machine below a virtual one does. Preemptions are among it, be they 0,
	// unless nobody counted them, as in results that were saved by earlier versions.
	Counted            []counted.Event `json:"counted"`
	CountedNanoseconds int64           `json:"countedNanoseconds"`
	// InterruptsFrom is where interrupts were counted: /proc/interrupts, or /sys/kernel/irq, which has those of devices alone and not
	// the kernel's own, such as those of its timer, or host.NoInterrupts. It is empty in results that were saved before it was noted.
	InterruptsFrom string `json:"interruptsFrom,omitempty"`
	// Isolation is what the scheduler and the idle governor counted on this CPU within the measurement; nil in results that were saved
	// before they were asked.
	Isolation *counted.Isolation `json:"isolation,omitempty"`
	// ManagementInterrupts is how often the firmware interrupted this CPU within the measurement; nil in results that were saved before it
	// was counted.
	ManagementInterrupts *counted.ManagementInterrupts `json:"managementInterrupts,omitempty"`
}

// Dropped says, a sentence for each CPU, of which interruptions some had no room in the record; nil when all had.
func (r *Result) Dropped() []string {
	var sentences []string
	for i := range r.CPUs {
		if one := &r.CPUs[i]; one.NotRecorded > 0 {
			sentences = append(sentences, fmt.Sprintf("CPU %d: %d of %d interruptions had no room in the record: what is shown of lengths and of stolen time is of the others alone",
				one.CPU, one.NotRecorded, one.Interruptions))
		}
	}
	return sentences
}

// DevicesOnly reports whether interrupts of devices were counted, and those of the kernel itself were not.
func (r *CPUResult) DevicesOnly() bool { return r.InterruptsFrom == host.DeviceInterrupts }

// HidesCauses reports whether an interrupt of the kernel itself may be behind an interruption without a cause.
func (r *CPUResult) HidesCauses() bool {
	return r.DevicesOnly() || r.InterruptsFrom == host.NoInterrupts
}

// CountsAlike reports whether what was counted of interrupts in two measurements is of the same ones.
func (r *CPUResult) CountsAlike(other *CPUResult) bool {
	return r.DevicesOnly() == other.DevicesOnly() && r.HidesCauses() == other.HidesCauses()
}

// CountedPerSecond is how often the kernel counted something of a kind on this CPU; 0 when nothing was counted.
func (r *CPUResult) CountedPerSecond(kind counted.Kind) float64 {
	if r.CountedNanoseconds <= 0 {
		return 0
	}
	return float64(counted.Total(r.Counted, kind)) / (float64(r.CountedNanoseconds) / 1e9)
}

// PreemptionsPerSecond is how often the kernel gave this CPU to something else; nil where that was not counted.
func (r *CPUResult) PreemptionsPerSecond() *float64 {
	if r.CountedNanoseconds <= 0 || !slices.ContainsFunc(r.Counted, func(e counted.Event) bool { return e.Kind == counted.ContextSwitch }) {
		return nil
	}
	return new(r.CountedPerSecond(counted.ContextSwitch))
}

// Percentile is a length that a share of all stays below.
type Percentile struct {
	Percent     float64 `json:"percent"`
	Nanoseconds int64   `json:"nanoseconds"`
}

// Bucket counts interruptions of at least From and less than To nanoseconds.
type Bucket struct {
	FromNanoseconds int64  `json:"fromNanoseconds"`
	ToNanoseconds   int64  `json:"toNanoseconds"`
	Count           uint64 `json:"count"`
}

// Interruption is one of the longest.
type Interruption struct {
	// AtNanoseconds since the begin of the measurement.
	AtNanoseconds     int64 `json:"atNanoseconds"`
	LengthNanoseconds int64 `json:"lengthNanoseconds"`
	// Causes are the counters of the kernel that moved on this CPU about that time, in the order of counted.Compare. When none did, it was
	// firmware (SMI), the hypervisor, or the hardware, or what CPUResult.InterruptsFrom does not have. An SMI that was counted about that
	// time on the CPU of the reader stands first: it stops all CPUs.
	Causes []counted.Event `json:"causes,omitempty"`

	// ClockNanoseconds is when it began, by CLOCK_MONOTONIC of the host.
	ClockNanoseconds int64 `json:"clockNanoseconds"`
}
