// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// schedStat is where the scheduler counts for each CPU, where the kernel has CONFIG_SCHEDSTATS. Every program may read it, and no container
// runtime hides it. What is read here is counted whatever kernel.sched_schedstats says.
const schedStat = "/proc/schedstat"

// Isolation is what the scheduler and the idle governor of a host have counted on some CPUs up to one moment.
type Isolation struct {
	// RunQueues are those of each CPU.
	RunQueues Fact[map[int]RunQueue]
	// WaitedIn is within which time that was read.
	WaitedIn Span
	// Busy is how long each CPU was at work.
	Busy Fact[map[int]Ticks]
	// idle are the idle states of each CPU.
	idle map[int]idleReading
}

// RunQueue is what the scheduler has counted on one CPU since the host was started.
type RunQueue struct {
	// WaitedNanoseconds is for how long threads have waited for the CPU.
	WaitedNanoseconds uint64
	// Turns is how often a thread got the CPU: after it slept, or after another one.
	Turns uint64
}

// Ticks are for how long a CPU was at work, and for how long at all, in the unit of /proc/stat.
type Ticks struct{ Busy, All uint64 }

// Span is a time within which something was read. A reader that does not get a CPU reads at any moment of it.
type Span struct{ Began, Ended time.Time }

// since is for how long was counted between two readings at most: a rate over it is never told too high.
func (s Span) since(earlier Span) int64 { return s.Ended.Sub(earlier.Began).Nanoseconds() }

// idleReading are the idle states of a CPU, and when they were read.
type idleReading struct {
	states []IdleState
	in     Span
}

// spanOf calls a function, and says within which time it ran.
func spanOf(read func()) Span {
	began := time.Now()
	read()
	return Span{began, time.Now()}
}

// ReadIsolation reads /proc/schedstat, /proc/stat and the idle states of the given CPUs, and nothing else; none of these makes another CPU run code. The
// earlier reading of the same CPUs, nil for the first, saves names and latencies of idle states from being read again. What the host does
// not have is absent; the only error is that the context has ended.
func (h *Host) ReadIsolation(ctx context.Context, of cpus.Set, earlier *Isolation) (*Isolation, error) {
	view := h.tree.view()
	defer view.release()
	r := newReader(ctx, view, nil)
	now := &Isolation{idle: make(map[int]idleReading, of.Len())}
	now.WaitedIn = spanOf(func() { now.RunQueues = r.runQueues() })
	now.Busy = r.busy()
	for _, cpu := range of.IDs() {
		var states []IdleState
		in := spanOf(func() {
			if earlier != nil && len(earlier.idle[cpu].states) > 0 {
				states = r.idleUsage(earlier.idle[cpu].states)
			} else {
				states = r.idleStates(idleFolder(cpu))
			}
		})
		now.idle[cpu] = idleReading{states, in}
	}
	if r.err != nil {
		return nil, fmt.Errorf("reading the scheduler's counters of host %s: %w", h.path, r.err)
	}
	return now, nil
}

func readRunQueues(r *reader, f *Facts) { f.RunQueues = r.runQueues() }

// runQueues reads the scheduler's counters. The file has some lines for each CPU.
func (r *reader) runQueues() Fact[map[int]RunQueue] {
	text, err := r.content(schedStat, mediumFile)
	if err != nil {
		return Absent[map[int]RunQueue](schedStat, reasonOf(err))
	}
	counts, err := parseSchedStat(text)
	if err != nil {
		return Absent[map[int]RunQueue](schedStat, err.Error())
	}
	return Known(counts, schedStat)
}

func idleFolder(cpu int) string { return fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpuidle", cpu) }

// parseSchedStat reads the eighth and the ninth counter of the line of each CPU, which have been the same since version 15
// (Documentation/scheduler/sched-stats.rst). A version that nobody has described yet is refused.
func parseSchedStat(text string) (map[int]RunQueue, error) {
	const oldest, newest = 15, 17
	first, rest, _ := strings.Cut(text, "\n")
	version, ok := numberIn(first, "version ", "")
	if !ok || version < oldest || version > newest {
		return nil, fmt.Errorf("it begins with %q, and versions %d to %d are known", abbreviate(first), oldest, newest)
	}
	found := map[int]RunQueue{}
	for line := range strings.Lines(rest) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		cpu, ok := numberIn(fields[0], "cpu", "")
		queue, isQueue := parseRunQueue(fields[1:])
		if !ok || cpu > cpus.MaxCPU || !isQueue {
			return nil, fmt.Errorf("%q is no line of a CPU", abbreviate(line))
		}
		found[cpu] = queue
	}
	return found, nil
}

// parseRunQueue takes the eighth of nine counters and the ninth.
func parseRunQueue(counters []string) (queue RunQueue, ok bool) {
	const count, waited, turns = 9, 7, 8
	if len(counters) != count {
		return queue, false
	}
	nanoseconds, waitedErr := strconv.ParseUint(counters[waited], 10, 64)
	times, turnsErr := strconv.ParseUint(counters[turns], 10, 64)
	return RunQueue{WaitedNanoseconds: nanoseconds, Turns: times}, waitedErr == nil && turnsErr == nil
}

// Since is what was counted on a CPU since an earlier reading, over the time between the moments at which each was really read.
func (i *Isolation) Since(earlier *Isolation, cpu int) counted.Isolation {
	before, after := earlier.idle[cpu], i.idle[cpu]
	found := counted.Isolation{CPU: cpu, Nanoseconds: i.WaitedIn.since(earlier.WaitedIn), IdleNanoseconds: after.in.since(before.in)}
	found.WaitedNanoseconds, found.RunQueueUnknown = waitedSince(earlier.RunQueues, i.RunQueues, cpu)
	found.IdleStates, found.IdleUnknown = enteredSince(before.states, after.states, cpu)
	found.BusyTicks, found.AllTicks, found.BusyUnknown = busySince(earlier.Busy, i.Busy, cpu)
	return found
}

// waitedSince is by how much the time has grown that threads wait on a CPU, or why nobody knows.
func waitedSince(before, after Fact[map[int]RunQueue], cpu int) (nanoseconds uint64, unknown string) {
	for _, one := range []Fact[map[int]RunQueue]{before, after} {
		if !one.Known {
			return 0, schedStat + ": " + one.Reason
		}
	}
	was, here := before.Value[cpu]
	is, still := after.Value[cpu]
	switch {
	case !here || !still:
		return 0, fmt.Sprintf("%s has no line of CPU %d", schedStat, cpu)
	case is.WaitedNanoseconds < was.WaitedNanoseconds:
		return 0, fmt.Sprintf("%s: the counter of CPU %d went back", schedStat, cpu)
	}
	return is.WaitedNanoseconds - was.WaitedNanoseconds, ""
}

// enteredSince are the idle states that a CPU has entered, the one with the longest latency first, or why nobody knows.
func enteredSince(before, after []IdleState, cpu int) (entered []counted.IdleEntries, unknown string) {
	if len(before) == 0 || len(before) != len(after) {
		return nil, idleFolder(cpu) + ": no idle states are listed"
	}
	for i := range after {
		was, is := before[i].Usage, after[i].Usage
		switch {
		case !was.Known || !is.Known:
			return nil, is.Source + ": " + cmp.Or(is.Reason, was.Reason)
		case is.Value < was.Value:
			return nil, is.Source + ": the counter went back"
		case is.Value > was.Value:
			name := cmp.Or(after[i].Name.Value, "state"+strconv.Itoa(i))
			entered = append(entered, counted.IdleEntries{State: name, LatencyMicroseconds: after[i].LatencyMicros.Value, Count: is.Value - was.Value})
		}
	}
	slices.SortStableFunc(entered, func(a, b counted.IdleEntries) int { return cmp.Compare(b.LatencyMicroseconds, a.LatencyMicroseconds) })
	return entered, ""
}
