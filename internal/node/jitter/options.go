// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"context"
	"os/exec"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// defaultSampleInterval is the time between two readings of the kernel's counters, and so how closely an
// interruption can be attributed.
const defaultSampleInterval = 100 * time.Millisecond

// Options say how a measurement is run.
type Options struct {
	Request   Request
	Placement Placement
	// Host is read for the counters of the kernel.
	Host *host.Host
	// Command makes the process that measures: it must call Serve with its standard input and output, and run with
	// GODEBUG=asyncpreemptoff=1 (see Environment).
	Command func(ctx context.Context) *exec.Cmd
	// SampleInterval between two readings of the counters; zero means defaultSampleInterval.
	SampleInterval time.Duration
	// Progress is called with the time that has passed, at every reading; nil for none.
	Progress func(passed time.Duration)
}

// Environment are the variables that the process of Options.Command needs besides those of this process.
func Environment() []string { return []string{"GODEBUG=asyncpreemptoff=1", "GOGC=off"} }
