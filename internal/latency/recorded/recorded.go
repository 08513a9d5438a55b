// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package recorded reads what other generators of messages have recorded of a run at one rate. It is pure.
package recorded

import (
	"errors"
	"fmt"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Generator is a program that sends.
type Generator string

const (
	// TRex is Cisco's TRex in its stateless mode.
	TRex Generator = "trex"
	// Testpmd is testpmd of DPDK that sends, and receives what it has sent.
	Testpmd Generator = "testpmd"
	// TestpmdForwarder is testpmd of DPDK that passes on what another program sends.
	TestpmdForwarder Generator = "testpmd-forwarder"
)

// Run is a recorded run.
type Run struct {
	latency.Recorded

	// Version is what the generator says of its own; "" where the record does not have it.
	Version string
}

// Longest is how many bytes the longest record has that is read.
const Longest = 64 << 20

// Parse reads the record of a run, which was made at a rate in messages a second for so long. The text may be anybody's.
func Parse(generator Generator, text []byte, perSecond uint64, duration time.Duration) (*Run, error) {
	if perSecond < 1 || duration <= 0 {
		return nil, fmt.Errorf("%d messages a second for %s: a run has a rate and a duration", perSecond, duration)
	}
	if len(text) > Longest {
		return nil, fmt.Errorf("the record has %d bytes, more than %d", len(text), Longest)
	}
	run := &Run{}
	run.Rate.PerSecond, run.Duration = perSecond, duration
	var err error
	switch generator {
	case TRex:
		err = run.readTRex(text)
	case Testpmd, TestpmdForwarder:
		err = run.readTestpmd(text, generator == TestpmdForwarder)
	default:
		err = fmt.Errorf("generator %q is not known", generator)
	}
	if err != nil {
		return nil, err
	}
	if run.Rate.Load.Sent == 0 {
		return nil, errors.New("no message was sent")
	}
	run.Rate.AchievedPerSecond = float64(run.Rate.Load.Sent) / duration.Seconds()
	return run, nil
}

// streamOf is what became of sent messages. More of them than were sent are not of this run alone.
func streamOf(sent, received uint64) (latency.Stream, error) {
	if received > sent {
		return latency.Stream{}, fmt.Errorf("%d messages were received, and %d sent: count this run alone, without other traffic", received, sent)
	}
	return latency.Stream{Sent: sent, Lost: sent - received}, nil
}
