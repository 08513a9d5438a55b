// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

import (
	"errors"
	"fmt"
)

// Validate says what no measurement of this version can have found: the file of a result was edited or cut short, is of something else, or nothing was
// measured.
func (r *Result) Validate() error {
	switch r.Kind {
	case KindPingPong:
		return r.validateSizes()
	case KindRateSweep:
		return r.validateRates()
	case KindLoadSearch:
		return r.validateLoad()
	}
	return fmt.Errorf("its kind is %.40q", r.Kind)
}

func (r *Result) validateSizes() error {
	if len(r.Sizes) == 0 {
		return r.nothing("sizes")
	}
	for i := range r.Sizes {
		one := &r.Sizes[i]
		if one.Bytes < 0 {
			return fmt.Errorf("it has a message of %d bytes", one.Bytes)
		}
		if err := one.Distribution.validate(); err != nil {
			return fmt.Errorf("%d bytes: %w", one.Bytes, err)
		}
		if err := one.Stamps.validate(); err != nil {
			return fmt.Errorf("%d bytes: %w", one.Bytes, err)
		}
	}
	return nil
}

// validate wants stamps to be those of messages that there were; nil are none.
func (s *Stamps) validate() error {
	if s == nil {
		return nil
	}
	if s.Wire.Samples != s.Host.Samples || s.Wire.Samples > s.Messages || max(s.WithoutSent, s.WithoutReceived, s.Impossible) > s.Missing() {
		return fmt.Errorf("%d and %d messages of %d have stamps", s.Wire.Samples, s.Host.Samples, s.Messages)
	}
	return errors.Join(s.Wire.validate(), s.Host.validate())
}

func (r *Result) validateRates() error {
	if len(r.Rates) == 0 {
		return r.nothing("rates")
	}
	for i := range r.Rates {
		if err := r.Rates[i].validate(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Result) validateLoad() error {
	l := r.Load
	if l == nil || len(l.Trials) == 0 {
		return r.nothing("trials")
	}
	if l.LowestFail > 0 && l.BestPass >= l.LowestFail {
		return fmt.Errorf("its bestPass is %d and its lowestFail %d, which is not above", l.BestPass, l.LowestFail)
	}
	for i := range l.Trials {
		if err := l.Trials[i].Rate.validate(); err != nil {
			return err
		}
	}
	return nil
}

// nothing says that a result has none of what its kind measures, and as what it ended.
func (r *Result) nothing(what string) error {
	if r.Outcome.Reason == "" {
		return errors.New("it has no " + what)
	}
	return fmt.Errorf("it has no %s, since it ended as %.40q", what, string(r.Outcome.Reason))
}

func (r *Rate) validate() error {
	switch {
	case r.PerSecond == 0 || r.Bytes < 0 || r.AchievedPerSecond < 0:
		return fmt.Errorf("it has a rate of %d messages of %d bytes a second, of which %g were reached", r.PerSecond, r.Bytes, r.AchievedPerSecond)
	case r.Load.Lost > r.Load.Sent || r.AnswersLost > r.AnswersWanted:
		return fmt.Errorf("%d messages a second: more messages or answers were lost than there were", r.PerSecond)
	}
	for _, d := range []*Distribution{&r.FromIntended, &r.FromActual} {
		if err := d.validate(); err != nil {
			return fmt.Errorf("%d messages a second: %w", r.PerSecond, err)
		}
	}
	return nil
}

// validate wants what is known of latencies to be in order. An estimate of one way may be below zero.
func (d *Distribution) validate() error {
	if d.Samples > 0 && d.MinimumNanoseconds > d.MaximumNanoseconds {
		return fmt.Errorf("the shortest of its latencies is %d ns and the longest %d ns", d.MinimumNanoseconds, d.MaximumNanoseconds)
	}
	for i := range d.Percentiles {
		p := &d.Percentiles[i]
		if p.LowNanoseconds > p.Nanoseconds || p.HighNanoseconds != nil && *p.HighNanoseconds < p.Nanoseconds {
			return fmt.Errorf("%g %% is %d ns, outside its interval", p.Percent, p.Nanoseconds)
		}
	}
	return nil
}
