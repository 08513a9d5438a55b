// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// sampler reads the counters of the kernel from a control CPU: none of the files makes another CPU run code.
type sampler struct {
	host    *host.Host
	child   Threads
	options Options
	samples []sample
	// smis counts those of a control CPU. Where it does not, what the measured CPUs count themselves says why.
	smis *smiCounter
	// isolation are the first and the last reading of what is counted over the measurement.
	isolation isolation
	// names are the names of counters that were seen; a sample refers to them instead of to the text that was read.
	names map[string]string
}

// take reads all counters once.
func (s *sampler) take(ctx context.Context) error {
	began, err := monotonic()
	if err != nil {
		return err
	}
	counters, err := s.host.ReadCounters(ctx)
	if err != nil {
		return err
	}
	taken := sample{BeganNanoseconds: began, Counters: s.reduced(counters), Preemptions: s.preemptions(), ManagementInterrupts: s.managementInterrupts()}
	if taken.EndedNanoseconds, err = monotonic(); err != nil {
		return err
	}
	s.samples = append(s.samples, taken)
	return nil
}

// monotonic is CLOCK_MONOTONIC in nanoseconds.
func monotonic() (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("reading CLOCK_MONOTONIC: %w", err)
	}
	return now.Nano(), nil
}

// reduced keeps the columns of the measured CPUs: on a machine of 512 CPUs the others are most of the memory.
func (s *sampler) reduced(all *host.Counters) *host.Counters {
	kept := &host.Counters{}
	kept.Interrupts.Columns, kept.Interrupts.Lines = s.reducedTable(all.Interrupts.Columns, all.Interrupts.Lines)
	kept.Softirqs.Columns, kept.Softirqs.Lines = s.reducedTable(all.Softirqs.Columns, all.Softirqs.Lines)
	return kept
}

func (s *sampler) reducedTable(columns []int, lines host.Fact[[]host.InterruptLine]) ([]int, host.Fact[[]host.InterruptLine]) {
	measured := s.options.Request.CPUs
	var kept []host.InterruptLine
	for _, line := range lines.Value {
		counts := make([]uint64, 0, len(measured))
		for _, cpu := range measured {
			if column := slices.Index(columns, cpu); column >= 0 && column < len(line.Counts) {
				counts = append(counts, line.Counts[column])
			}
		}
		if len(counts) == len(measured) {
			kept = append(kept, host.InterruptLine{Name: s.name(line.Name), Counts: counts, Description: s.name(line.Description)})
		}
	}
	lines.Value = kept
	return measured, lines
}

// name returns an equal string that does not hold the text of a whole file in memory.
func (s *sampler) name(text string) string {
	if known, ok := s.names[text]; ok {
		return known
	}
	if s.names == nil {
		s.names = map[string]string{}
	}
	own := strings.Clone(text)
	s.names[own] = own
	return own
}

// preemptions of the measuring threads. One that cannot be read is left out: nobody knows its count.
func (s *sampler) preemptions() map[int]uint64 {
	counts := map[int]uint64{}
	own, err := procfs.NewDefaultFS()
	if err != nil {
		return counts
	}
	for cpu, thread := range s.child.Threads {
		process, err := own.Thread(s.child.PID, thread)
		if err != nil {
			continue
		}
		if status, err := process.NewStatus(); err == nil {
			counts[cpu] = status.NonVoluntaryCtxtSwitches
		}
	}
	return counts
}

// managementInterrupts are those of the control CPU; nil when nobody knows them.
func (s *sampler) managementInterrupts() *uint64 {
	count, err := s.smis.total()
	if err != nil {
		return nil
	}
	return &count
}

// watch takes samples until the measurement is done. Only the samples around the longest interruptions matter,
// but which those are is known at the end; a long measurement samples less often, so that memory stays bounded.
func (s *sampler) watch(ctx context.Context, done <-chan struct{}) error {
	const most = 2000
	interval := max(s.options.SampleInterval, s.options.Request.Duration/most)
	if interval == 0 {
		interval = defaultSampleInterval
	}
	ticker := time.NewTicker(max(interval, defaultSampleInterval/10))
	defer ticker.Stop()
	begun := time.Now()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("measuring: %w", ctx.Err())
		case <-ticker.C:
			if err := s.take(ctx); err != nil {
				return err
			}
			if err := s.isolation.take(ctx, &s.options, time.Since(begun)); err != nil {
				return err
			}
			if s.options.Progress != nil {
				s.options.Progress(time.Since(begun))
			}
		}
	}
}
