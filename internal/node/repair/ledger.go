// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package repair

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	// maximumAttempts is how often one file is written within window before it is given up.
	maximumAttempts = 3
	// window is the time that attempts are counted for, and for which a file that was given up must be as planned
	// before it is written again.
	window = 30 * time.Minute
	// maximumRecent bounds the writes that are kept for those who ask.
	maximumRecent = 256
)

// Entry is a write that was tried.
type Entry struct {
	Write

	// At is when it was tried.
	At time.Time `json:"at"`
	// Problem says why the file could not be written; "" when it was.
	Problem string `json:"problem,omitempty"`
}

// Ledger remembers the repairs of one plan on one host. The zero Ledger is empty. It is for one goroutine.
type Ledger struct {
	objects map[string]*object
	recent  []Entry
}

// object is a file that was written.
type object struct {
	last Entry
	// attempts are the times of the writes within window.
	attempts []time.Time
	// pending tells that it is not known yet whether the last write helped.
	pending bool
	// abandoned tells that the file was written too often.
	abandoned bool
	// soundSince is when the file was found as planned; zero while it is not.
	soundSince time.Time
}

// Review compares with what a new reading has found: it returns how many of the earlier writes have helped, by
// check, and which of the wanted writes are to be tried now. A file that was written maximumAttempts times within
// window is given up: whoever changes it would only be fought. After it has been as planned for a whole window,
// nobody changes it any more, and it counts as any other.
func (l *Ledger) Review(wanted []Write, now time.Time) (helped map[v1alpha1.CheckID]int64, due []Write) {
	missing := make(map[string]bool, len(wanted))
	for _, write := range wanted {
		missing[write.Path] = true
	}
	helped = map[v1alpha1.CheckID]int64{}
	for path, o := range l.objects {
		if missing[path] {
			o.pending, o.soundSince = false, time.Time{}
			continue
		}
		if o.pending && o.last.Problem == "" {
			helped[o.last.Check]++
		}
		o.pending = false
		if o.soundSince.IsZero() {
			o.soundSince = now
		}
		if now.Sub(o.soundSince) >= window {
			delete(l.objects, path)
		}
	}
	for _, write := range wanted {
		if l.mayTry(write.Path, now) {
			due = append(due, write)
		}
	}
	return helped, due
}

// mayTry reports whether a file may be written once more, and gives it up otherwise.
func (l *Ledger) mayTry(path string, now time.Time) bool {
	o, known := l.objects[path]
	if !known {
		return true
	}
	o.attempts = slices.DeleteFunc(o.attempts, func(at time.Time) bool { return now.Sub(at) >= window })
	o.abandoned = o.abandoned || len(o.attempts) >= maximumAttempts
	return !o.abandoned
}

// Note remembers a write that was tried, and its error.
func (l *Ledger) Note(write Write, err error, now time.Time) {
	if l.objects == nil {
		l.objects = map[string]*object{}
	}
	o, known := l.objects[write.Path]
	if !known {
		o = &object{}
		l.objects[write.Path] = o
	}
	o.last = Entry{Write: write, At: now}
	if err != nil {
		o.last.Problem = err.Error()
	}
	o.attempts = append(o.attempts, now)
	o.pending, o.soundSince = true, time.Time{}
	l.recent = append(l.recent, o.last)
	l.recent = l.recent[max(0, len(l.recent)-maximumRecent):]
}

// Unrepaired says, for each check, which files were given up or could not be written, and why, in ascending order
// of the files. A file that is as planned again is none of them.
func (l *Ledger) Unrepaired() map[v1alpha1.CheckID][]string {
	reasons := map[v1alpha1.CheckID][]string{}
	for _, path := range slices.Sorted(maps.Keys(l.objects)) {
		o := l.objects[path]
		if !o.soundSince.IsZero() {
			continue
		}
		switch {
		case o.last.Problem != "":
			reasons[o.last.Check] = append(reasons[o.last.Check], o.last.Object+": "+o.last.Problem)
		case o.abandoned:
			reasons[o.last.Check] = append(reasons[o.last.Check],
				fmt.Sprintf("%s: %s was set to %s %d times within %s and did not stay so; find the program that changes it",
					o.last.Object, path, o.last.New, maximumAttempts, window))
		}
	}
	return reasons
}

// Recent returns the latest writes that were tried, the latest first, at most 256.
func (l *Ledger) Recent() []Entry {
	recent := slices.Clone(l.recent)
	slices.SortStableFunc(recent, func(a, b Entry) int { return cmp.Compare(b.At.UnixNano(), a.At.UnixNano()) })
	return recent
}
