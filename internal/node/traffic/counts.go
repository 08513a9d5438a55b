// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

const (
	// longestCounts bounds what a server says of its CPU, in bytes: one line of the connection has 4096 with its first word.
	longestCounts = 3072
	// mostEvents and mostIdleStates bound what it names, and longestName each name and each reason, in bytes.
	mostEvents, mostIdleStates, longestName = 64, 16, 128
	// mostCounted bounds each number: 285 years of nanoseconds, and what JSON has room for.
	mostCounted = 1<<53 - 1
	// interruptsOfAll is where all interrupts are counted.
	interruptsOfAll = "/proc/interrupts"
)

// encodeCounts are counts as a server says them, on one line. The events that moved least go where there is no room.
func encodeCounts(c latency.Counts) (string, error) {
	c.Unknown, c.Counted = word(c.Unknown), slices.Clone(c.Counted[:min(mostEvents, len(c.Counted))])
	for i := range c.Counted {
		c.Counted[i].Name = word(c.Counted[i].Name)
	}
	if c.Isolation != nil {
		c.Isolation = boundIsolation(*c.Isolation)
	}
	for {
		text, err := json.Marshal(c)
		if err != nil {
			return "", fmt.Errorf("printing what was counted: %w", err)
		}
		if len(text) <= longestCounts {
			return string(text), nil
		}
		if len(c.Counted) == 0 {
			return "", fmt.Errorf("what was counted has %d bytes, more than %d", len(text), longestCounts)
		}
		c.Counted = c.Counted[:len(c.Counted)-1]
	}
}

// boundIsolation has words that parseCounts takes. States that were entered and find no room are not left out in silence.
func boundIsolation(i counted.Isolation) *counted.Isolation {
	i.RunQueueUnknown, i.IdleUnknown, i.BusyUnknown = word(i.RunQueueUnknown), word(i.IdleUnknown), word(i.BusyUnknown)
	i.IdleStates = slices.Clone(i.IdleStates)
	if len(i.IdleStates) > mostIdleStates {
		i.IdleUnknown, i.IdleStates = fmt.Sprintf("%d idle states were entered, more than %d", len(i.IdleStates), mostIdleStates), nil
	}
	for at := range i.IdleStates {
		i.IdleStates[at].State = word(i.IdleStates[at].State)
	}
	return &i
}

// word is a text that parseCounts takes.
func word(text string) string {
	return shorten.Sentence(strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, text), longestName)
}

// parseCounts reads what a server that was kept to a CPU, -1 for none, says of it. It trusts nothing in it: text that is too long, is no JSON, has fields that
// are not known, words or numbers out of their bounds, or contradicts itself is refused.
func parseCounts(text string, cpu int) (latency.Counts, error) {
	var c latency.Counts
	if len(text) > longestCounts {
		return c, fmt.Errorf("%d bytes are more than %d", len(text), longestCounts)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return latency.Counts{}, fmt.Errorf("it cannot be read: %s", printable(err.Error()))
	}
	if decoder.More() {
		return latency.Counts{}, errors.New("it goes on after its end")
	}
	if err := checkCounts(&c, cpu); err != nil {
		return latency.Counts{}, err
	}
	return c, nil
}

func checkCounts(c *latency.Counts, cpu int) error {
	if c.CPU != cpu {
		return fmt.Errorf("it is of CPU %d, and the server is kept to CPU %d", c.CPU, cpu)
	}
	switch {
	case c.Unknown != "" && reflect.DeepEqual(*c, latency.Counts{CPU: cpu, Unknown: c.Unknown}):
		return checkName(c.Unknown)
	case c.Unknown != "" || cpu < 0 || c.Isolation == nil || c.CountedNanoseconds == 0 || !isNumber(c.CountedNanoseconds):
		return errors.New("it was counted and was not counted")
	case !slices.Contains([]string{interruptsOfAll, host.DeviceInterrupts, host.NoInterrupts}, c.InterruptsFrom):
		return errors.New("nobody counts interrupts there")
	}
	if err := checkEvents(c.Counted); err != nil {
		return err
	}
	return checkIsolation(c.Isolation, cpu)
}

// checkEvents wants each event once, with a count.
func checkEvents(events []counted.Event) error {
	if len(events) > mostEvents {
		return fmt.Errorf("%d counters are more than %d", len(events), mostEvents)
	}
	known := map[counted.Event]bool{}
	for _, event := range events {
		same := counted.Event{Kind: event.Kind, Name: event.Name}
		isKind := event.Kind == counted.Interrupt || event.Kind == counted.Softirq
		if !isKind || event.Count == 0 || event.Count > mostCounted || known[same] {
			return errors.New("a counter is of no kind that is known, comes twice, or its count cannot be")
		}
		if err := checkName(event.Name); err != nil {
			return err
		}
		known[same] = true
	}
	return nil
}

// checkIsolation wants of each of the three what was counted over a time, or why that is not known.
func checkIsolation(i *counted.Isolation, cpu int) error {
	out := errors.New("what the scheduler and the idle governor counted there cannot be")
	areNumbers := isNumber(i.Nanoseconds) && isNumber(i.IdleNanoseconds) && max(i.WaitedNanoseconds, i.AllTicks) <= mostCounted && i.BusyTicks <= i.AllTicks
	if i.CPU != cpu || !areNumbers || len(i.IdleStates) > mostIdleStates || slices.ContainsFunc(i.IdleStates, isNoState) {
		return out
	}
	for _, one := range []struct {
		unknown string
		over    uint64
	}{{i.RunQueueUnknown, uint64(i.Nanoseconds)}, {i.IdleUnknown, uint64(i.IdleOver())}, {i.BusyUnknown, i.AllTicks}} {
		if !isKnownOrWhy(one.unknown, one.over) {
			return out
		}
	}
	return nil
}

// isKnownOrWhy reports whether something was counted over a time, or a reason says why not.
func isKnownOrWhy(unknown string, over uint64) bool {
	if unknown == "" {
		return over > 0
	}
	return checkName(unknown) == nil
}

// isNoState reports whether no CPU has entered an idle state so.
func isNoState(s counted.IdleEntries) bool {
	return checkName(s.State) != nil || !isNumber(s.LatencyMicroseconds) || s.Count > mostCounted
}

func isNumber(n int64) bool { return n >= 0 && n <= mostCounted }

// checkName refuses an empty or long name, and one that a terminal would obey.
func checkName(name string) error {
	if name == "" || len(name) > longestName || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("a name has %d bytes, or cannot be printed", len(name))
	}
	return nil
}
