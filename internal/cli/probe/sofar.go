// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/progress"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// showTraffic shows how far a measurement over the network is, after words that say which part of the work it is. Messages that go one at a time are
// shown as half of the round trip unless roundTrip asks for all of it; those on a schedule as round trips, since what the way back takes is not known yet.
func showTraffic(shown *progress.Writer, words func() string, roundTrip bool) func(traffic.Progress) {
	return func(p traffic.Progress) { shown.Show(text.SoFar + words() + soFar(p, roundTrip)) }
}

// nothing comes before what is shown.
func nothing() string { return "" }

// soFar is how far a measurement is, on one line.
func soFar(p traffic.Progress, roundTrip bool) string {
	switch p.Phase {
	case traffic.PhaseWarmUp:
		return "warming up"
	case traffic.PhaseOneAtATime:
		what, divisor := "round trips", int64(1)
		if !roundTrip {
			what, divisor = "half round trips", 2
		}
		return fmt.Sprintf("%d bytes: %s, %d without an answer", p.Bytes, seen(p, what, divisor), p.Lost)
	default:
		return fmt.Sprintf("%d messages a second: %d sent, %d late; %s", p.PerSecond, p.Sent, p.Late, seen(p, "round trips", 1))
	}
}

// seen are the times that were taken, of which only percentiles are told that they carry.
func seen(p traffic.Progress, what string, divisor int64) string {
	words := []string{strconv.FormatUint(p.Samples, 10) + " " + what}
	for _, percentile := range p.Percentiles {
		words = append(words, fmt.Sprintf("%g %% %s", percentile.Percent, latency.Length(rounded(percentile.Nanoseconds/divisor))))
	}
	if p.Samples > 0 {
		words = append(words, "longest "+latency.Length(p.LongestNanoseconds/divisor))
	}
	return strings.Join(words, ", ")
}

// rounded keeps two digits: what is shown meanwhile is not known better.
func rounded(nanoseconds int64) int64 {
	const hundred = 100
	unit := int64(1)
	for nanoseconds/unit >= hundred {
		unit *= 10
	}
	return (nanoseconds + unit/2) / unit * unit
}
