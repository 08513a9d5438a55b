// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// IsolationOf sums up what the scheduler and the idle governor counted on CPUs in repetitions: the CPU with the most. What is not known of one is
// Unknown of all. It is nil when nothing was asked.
func IsolationOf(all []counted.Isolation) *v1alpha1.LatencyIsolation {
	if len(all) == 0 {
		return nil
	}
	return &v1alpha1.LatencyIsolation{RunQueue: runQueueOf(all), IdleStates: idleStatesOf(all), Busy: busyOf(all)}
}

// within is a count within the bounds of the API.
func within(count uint64) int64 { return int64(min(count, v1alpha1.MaxGeneration)) }

func unknownReason(text string) string {
	return shorten.Sentence(printable(text), v1alpha1.MaxUnknownReasonLength)
}

func runQueueOf(all []counted.Isolation) v1alpha1.LatencyRunQueue {
	waited, over := map[int]uint64{}, map[int]int64{}
	for i := range all {
		one := &all[i]
		if one.RunQueueUnknown != "" {
			return v1alpha1.LatencyRunQueue{State: v1alpha1.StateUnknown, UnknownReason: unknownReason(one.RunQueueUnknown)}
		}
		waited[one.CPU] += one.WaitedNanoseconds
		over[one.CPU] += one.Nanoseconds
	}
	most := all[0].CPU
	for i := range all {
		if waited[all[i].CPU] > waited[most] {
			most = all[i].CPU
		}
	}
	found := v1alpha1.LatencyRunQueue{State: v1alpha1.StateCounted, WaitedNanoseconds: within(waited[most]), CountedNanoseconds: over[most]}
	if waited[most] > 0 {
		found.CPU = new(int32(most))
	}
	return found
}

// entered is an idle state of a CPU, over all repetitions.
type entered struct {
	cpu     int
	name    string
	latency int64
	count   uint64
}

func idleStatesOf(all []counted.Isolation) v1alpha1.LatencyIdleStates {
	var states []entered
	over := map[int]int64{}
	for i := range all {
		one := &all[i]
		if one.IdleUnknown != "" {
			return v1alpha1.LatencyIdleStates{State: v1alpha1.StateUnknown, UnknownReason: unknownReason(one.IdleUnknown)}
		}
		over[one.CPU] += one.IdleOver()
		for _, state := range one.IdleStates {
			states = addEntries(states, entered{one.CPU, state.State, state.LatencyMicroseconds, state.Count})
		}
	}
	if len(states) == 0 {
		return v1alpha1.LatencyIdleStates{State: v1alpha1.StateCounted, CountedNanoseconds: over[all[0].CPU]}
	}
	deepest := slices.MaxFunc(states, func(a, b entered) int {
		return cmp.Or(cmp.Compare(a.latency, b.latency), cmp.Compare(a.count, b.count))
	})
	return v1alpha1.LatencyIdleStates{
		State: v1alpha1.StateCounted, CPU: new(int32(deepest.cpu)), Name: shorten.Sentence(printable(deepest.name), v1alpha1.MaxIdleStateLength),
		LatencyMicroseconds: max(0, deepest.latency), Entries: within(deepest.count), CountedNanoseconds: over[deepest.cpu],
	}
}

// addEntries adds what one repetition counted to what others did.
func addEntries(states []entered, more entered) []entered {
	at := slices.IndexFunc(states, func(e entered) bool { return e.cpu == more.cpu && e.name == more.name })
	if at < 0 {
		return append(states, more)
	}
	states[at].count += more.count
	return states
}

// IsolationWords are what was counted, a phrase each: of the run queue, of idle states, and of work. There are none of nil.
func IsolationWords(i *v1alpha1.LatencyIsolation) []string {
	if i == nil {
		return nil
	}
	words := []string{runQueueWords(&i.RunQueue), idleStateWords(&i.IdleStates)}
	if i.Busy != nil {
		words = append(words, busyWords(i.Busy))
	}
	return words
}

func runQueueWords(q *v1alpha1.LatencyRunQueue) string {
	switch {
	case q.State != v1alpha1.StateCounted:
		return "run queue unknown (" + q.UnknownReason + ")"
	case q.CPU == nil:
		return "no thread waited in a run queue"
	}
	return fmt.Sprintf("threads waited %s a second in the run queue of CPU %d", latency.Length(WaitedPerSecond(q)), *q.CPU)
}

func idleStateWords(s *v1alpha1.LatencyIdleStates) string {
	switch {
	case s.State != v1alpha1.StateCounted:
		return "idle states unknown (" + s.UnknownReason + ")"
	case s.CPU == nil:
		return "no idle state was entered"
	}
	return fmt.Sprintf("CPU %d entered idle state %s, which takes %d µs to leave, %s times a second", *s.CPU, s.Name, s.LatencyMicroseconds, EntriesPerSecond(s))
}

// WaitedPerSecond is for how many nanoseconds of each second threads waited; a wait is never told as none.
func WaitedPerSecond(q *v1alpha1.LatencyRunQueue) int64 {
	if q.CountedNanoseconds <= 0 {
		return 0
	}
	return int64(math.Ceil(float64(q.WaitedNanoseconds) * 1e9 / float64(q.CountedNanoseconds)))
}

// EntriesPerSecond is how often a second the idle state was entered, in words.
func EntriesPerSecond(s *v1alpha1.LatencyIdleStates) string {
	if s.CountedNanoseconds <= 0 {
		return "0"
	}
	return latency.PerSecond(uint64(max(0, s.Entries)), s.CountedNanoseconds)
}

// isolationBlame are the end of a sentence about a failure: that threads waited, that CPUs slept, and what is not known of these; "" when
// nothing of it is so. The place names the end of a measurement over the network, such as " at the client".
func isolationBlame(i *v1alpha1.LatencyIsolation, place string) string {
	if i == nil {
		return ""
	}
	var words []string
	if i.RunQueue.State != v1alpha1.StateCounted || i.RunQueue.CPU != nil {
		words = append(words, runQueueWords(&i.RunQueue))
	}
	if i.IdleStates.State != v1alpha1.StateCounted || i.IdleStates.CPU != nil {
		words = append(words, idleStateWords(&i.IdleStates))
	}
	if len(words) == 0 {
		return ""
	}
	return "; over the whole measurement" + place + ": " + strings.Join(words, ", ")
}

// checkIsolation refuses what no program of ours leaves of a CPU's scheduler and idle governor.
func checkIsolation(i *v1alpha1.LatencyIsolation) error {
	if i == nil {
		return nil
	}
	if err := checkBusy(i.Busy); err != nil {
		return err
	}
	q, s := &i.RunQueue, &i.IdleStates
	for _, one := range []total{
		{"run queue", q.UnknownReason, q.State, q.CPU, q.WaitedNanoseconds, q.CountedNanoseconds},
		{"idle states", s.UnknownReason, s.State, s.CPU, s.Entries, s.CountedNanoseconds},
	} {
		if err := one.check(); err != nil {
			return err
		}
	}
	if s.LatencyMicroseconds < 0 || s.LatencyMicroseconds > v1alpha1.MaxGeneration || (s.CPU == nil && (s.Name != "" || s.LatencyMicroseconds != 0)) {
		return errors.New("the record has an idle state that cannot be")
	}
	if s.CPU != nil {
		return checkWord("the idle state", s.Name, v1alpha1.MaxIdleStateLength)
	}
	return nil
}

// total is an amount of something that a CPU had over so many nanoseconds, or why that is not known.
type total struct {
	what, unknown string
	state         v1alpha1.CountedState
	cpu           *int32
	amount, over  int64
}

// check wants a reason and nothing else of what is Unknown, and of what was counted a CPU exactly when there is an amount.
func (t total) check() error {
	contradiction := fmt.Errorf("the %s of the record contradict themselves", t.what)
	if !t.isPossible() {
		return contradiction
	}
	switch t.state {
	case v1alpha1.StateUnknown:
		if t.cpu != nil || t.amount != 0 || t.over != 0 {
			return contradiction
		}
		return checkWord("why the "+t.what+" are not known", t.unknown, v1alpha1.MaxUnknownReasonLength)
	case v1alpha1.StateCounted:
		if t.unknown != "" || (t.cpu != nil) != (t.amount > 0) || t.over == 0 {
			return contradiction
		}
		return nil
	default:
		return fmt.Errorf("the record has a state of the %s that is not known", t.what)
	}
}

func (t total) isPossible() bool { return isAmount(t.amount) && isAmount(t.over) && isCPU(t.cpu) }

func isAmount(n int64) bool { return n >= 0 && n <= v1alpha1.MaxGeneration }

func isCPU(n *int32) bool { return n == nil || (*n >= 0 && *n <= v1alpha1.MaxCPUNumber) }
