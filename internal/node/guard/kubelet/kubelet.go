// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package kubelet judges whether the kubelet of a host is healthy by what the host itself can tell, without an API server: what
// systemd says of its service, and what the kubelet answers on its own port of health. It is pure.
package kubelet

import (
	"fmt"
	"time"
)

// Unit is what systemd says of the service that runs the kubelet.
type Unit struct {
	Name string
	// Active is systemd's ActiveState, such as active, activating or failed.
	Active string
	// Invocation identifies one start of the service, and Restarts counts those that nobody has asked for: the service ended by itself.
	Invocation string
	Restarts   int
	// Process is the number of the service's main process; 0 for none. Running is for how long it has run.
	Process int
	Running time.Duration
}

// IsUp tells that the service runs, or is about to: it is not one that somebody has stopped.
func (u Unit) IsUp() bool {
	return u.Active == "active" || u.Active == "activating" || u.Active == "reloading"
}

// Sight is one look at a kubelet.
type Sight struct {
	Unit Unit
	// Health is why the kubelet does not say that it is healthy; nil when it does.
	Health error
}

// problem is what is wrong with a kubelet at a moment; "" for nothing.
func (s Sight) problem() string {
	switch {
	case s.Unit.Active != "active" && s.Unit.Restarts > 0:
		return fmt.Sprintf("%s is %s and was started again %d times", s.Unit.Name, s.Unit.Active, s.Unit.Restarts)
	case s.Unit.Active != "active":
		return fmt.Sprintf("%s is %s", s.Unit.Name, s.Unit.Active)
	case s.Health != nil:
		return fmt.Sprintf("the kubelet of %s does not say that it is healthy: %v", s.Unit.Name, s.Health)
	default:
		return ""
	}
}

const (
	// Proof is for how long one process of a kubelet has to be healthy.
	Proof = time.Minute
	// patience is how long a kubelet that was started by the guard may take until it is healthy.
	patience = 2 * time.Minute
	// maximumEnds is how often its process may end before nobody waits any longer: once may be the runtime's fault.
	maximumEnds = 3
)

// Before says what was wrong with a kubelet before it is touched; "" for nothing. One whose process is young and not the first is
// not known to be healthy yet, and isOpen.
func (s Sight) Before() (problem string, isOpen bool) {
	switch problem := s.problem(); {
	case problem == "" && s.Unit.Restarts > 0 && s.Unit.Running < Proof:
		return fmt.Sprintf("%s was started again %d times, the last time less than a minute ago", s.Unit.Name, s.Unit.Restarts), true
	default:
		return problem, false
	}
}

// Verdict is what several looks at a kubelet have told.
type Verdict string

const (
	// Open tells that it is not known yet.
	Open Verdict = "Open"
	// Healthy tells that one process was healthy for long enough.
	Healthy Verdict = "Healthy"
	// Broken tells that waiting longer is of no use.
	Broken Verdict = "Broken"
)

// Watch looks at a kubelet until it is proven or broken. The zero value waits for as long as it is asked.
type Watch struct {
	// IsStarted tells that the guard itself has just started the kubelet: one that is not healthy in two minutes is broken then.
	IsStarted bool

	began, green time.Time
	last         Unit
	ends         int
	problem      string
}

// Look takes one more look, and says what all of them have told, and what was wrong last.
func (w *Watch) Look(now time.Time, s Sight) (verdict Verdict, problem string) {
	if w.began.IsZero() {
		w.began, w.last = now, s.Unit
	}
	w.count(s.Unit)
	if problem := s.problem(); problem != "" {
		w.problem, w.green = problem, time.Time{}
	} else if w.green.IsZero() {
		w.green = now
	}
	switch {
	case w.ends >= maximumEnds:
		return Broken, fmt.Sprintf("its process has ended %d times since it was started", w.ends) + also(w.problem)
	case s.Unit.Active == "failed":
		return Broken, w.problem
	case !w.green.IsZero() && now.Sub(w.green) >= Proof:
		return Healthy, ""
	case w.IsStarted && w.isLate(now):
		return Broken, "it was not healthy for a minute in time" + also(w.problem)
	default:
		return Open, w.waiting()
	}
}

// IsGreen reports whether the kubelet was healthy at the last look: its proof is a matter of less than a minute.
func (w *Watch) IsGreen() bool { return !w.green.IsZero() }

// isLate tells that a kubelet has had its time: to become healthy, and to stay so.
func (w *Watch) isLate(now time.Time) bool {
	limit := patience
	if !w.green.IsZero() {
		limit += Proof
	}
	return now.Sub(w.began) >= limit
}

// count notes when a process has ended: the time for which one was healthy begins anew with the next.
func (w *Watch) count(now Unit) {
	w.ends += max(now.Restarts-w.last.Restarts, 0)
	if now.Invocation != w.last.Invocation || now.Restarts != w.last.Restarts {
		w.green = time.Time{}
	}
	w.last = now
}

// waiting is what to say of a kubelet that is not proven yet.
func (w *Watch) waiting() string {
	if w.green.IsZero() {
		return w.problem
	}
	return "the kubelet is healthy, and was not for a minute yet"
}

func also(problem string) string {
	if problem == "" {
		return ""
	}
	return "; " + problem
}
