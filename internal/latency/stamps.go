// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"fmt"
	"math"
	"strconv"
)

// Stamper is who notes the time at which messages pass, beside the program that sends and receives them.
type Stamper string

const (
	// StampedByKernel is the driver of the interface as it hands a message to the device, and the kernel as it gets one from the driver.
	StampedByKernel Stamper = "Kernel"
	// StampedByNIC is the NIC, with its own clock.
	StampedByNIC Stamper = "NIC"
)

// Stamping is who stamped the messages of the client, and where.
type Stamping struct {
	By Stamper `json:"by"`
	// Interface by which messages left the client.
	Interface string `json:"interface"`
	// Clock is the number of the NIC's clock, as in /dev/ptp0; nil for stamps of the kernel, which are of CLOCK_REALTIME.
	Clock *int `json:"clock,omitempty"`
}

// Stamps are what the stamps of the messages of one size tell. Both distributions are of the messages with both stamps, of the round trip or of half of it
// as the setup says: Wire from when a message passed who stamps to when its answer did, with the network and the host of the server, and Host the
// rest of what the program measured, which is that of the client's own host between the program and who stamps.
type Stamps struct {
	// Messages is how many have an answer. Of these, WithoutSent and WithoutReceived lack a stamp, or both, and Impossible have two that cannot be true:
	// they are longer apart than the program waited, or the later one is the earlier, as after a step of the clock.
	Messages        uint64       `json:"messages"`
	WithoutSent     uint64       `json:"withoutSent"`
	WithoutReceived uint64       `json:"withoutReceived"`
	Impossible      uint64       `json:"impossible"`
	Wire            Distribution `json:"wire"`
	Host            Distribution `json:"host"`
}

// Missing is how many messages have no two stamps that can be used.
func (s *Stamps) Missing() uint64 { return s.Messages - min(s.Messages, s.Wire.Samples) }

// Lack says of how many messages the stamps are not known, and why; "" where all are, or were not asked for.
func (s *Stamps) Lack() string {
	if s == nil || s.Missing() == 0 {
		return ""
	}
	share := math.Ceil(1e4*float64(s.Missing())/float64(s.Messages)) / 100
	return fmt.Sprintf("%d of %d messages (%s %%) have no two stamps that can be used: %d lack that of sending, %d that of the answer, and %d have two that cannot be true",
		s.Missing(), s.Messages, strconv.FormatFloat(share, 'f', -1, 64), s.WithoutSent, s.WithoutReceived, s.Impossible)
}

// judgeStamps is the outcome of a measurement that was to have stamps and has sizes without any; other times are never taken in their place.
func judgeStamps(result *Result) (outcome Outcome, lacks bool) {
	for i := range result.Sizes {
		if s := result.Sizes[i].Stamps; s != nil && s.Messages > 0 && s.Wire.Samples == 0 {
			return Outcome{Inconclusive, ReasonUnstamped, fmt.Sprintf("%d bytes: %s", result.Sizes[i].Bytes, s.Lack())}, true
		}
	}
	return Outcome{}, false
}
