// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// notCarried stands where there are too few samples.
const notCarried = "-"

// Latency is the report of a measurement over the network: what was measured how, the columns of sfnt-pingpong, a ladder of percentiles
// with their intervals, and the outcome. Lines that begin with # are no rows of the first table.
func Latency(result *latency.Result) string {
	var b strings.Builder
	switch {
	case result.Generator != "" && result.Kind == latency.KindPingPong:
		fmt.Fprintf(&b, "# round trips of %s, with one message under way at a time, which it has recorded\n", result.Generator)
	case result.Generator != "":
		fmt.Fprintf(&b, "# recorded runs of %s, in messages a second; latencies in nanoseconds, at the lower ends of the steps in which it counts\n", result.Generator)
	default:
		latencySetup(&b, result)
	}
	latencyColumns(&b, result)
	latencyLadder(&b, result)
	latencyStamps(&b, result)
	latencyRates(&b, result)
	if result.Load != nil {
		latencyLoad(&b, result.Load)
	}
	fmt.Fprintf(&b, "# path: %s: %s\n", result.Path.State, result.Path.Message)
	latencyCounted(&b, result)
	for _, remark := range result.Remarks {
		fmt.Fprintf(&b, "# remark: %s\n", remark)
	}
	fmt.Fprintf(&b, "# outcome: %s (%s): %s\n", result.Outcome.Verdict, result.Outcome.Reason, result.Outcome.Message)
	return b.String()
}

// mostEvents is how many counters a report names.
const mostEvents = 8

// latencyCounted is what the kernel counted meanwhile at both ends: a bad figure comes with what may have made it.
func latencyCounted(b *strings.Builder, result *latency.Result) {
	if result.ElapsedNanoseconds > 0 {
		fmt.Fprintf(b, "# preempted: the client %d times, the server %d times, in %s; page faults of the client: %d, of the server: %d\n",
			result.Preemptions, result.ServerPreemptions, time.Duration(result.ElapsedNanoseconds).Round(time.Millisecond), result.PageFaults, result.ServerPageFaults)
	}
	for _, end := range []latency.End{result.Client(), result.Server()} {
		latencyCountedAt(b, &end)
	}
}

// latencyCountedAt is what was counted on the CPU of an end. That nothing was is said of the server, which does so by itself.
func latencyCountedAt(b *strings.Builder, end *latency.End) {
	over := end.CountedNanoseconds()
	if why := end.Unknown(); why != "" {
		fmt.Fprintf(b, "# not counted on the CPU of the %s: %s\n", end.Name, why)
	}
	if over <= 0 {
		return
	}
	fmt.Fprintf(b, "# counted on CPU %d of the %s, a second", end.CPU, end.Name)
	if from := end.InterruptsFrom(); from != "/proc/interrupts" {
		fmt.Fprintf(b, " (interrupts from: %s)", from)
	}
	b.WriteString(":\n")
	events := end.Kernel()
	for _, event := range events[:min(mostEvents, len(events))] {
		fmt.Fprintf(b, "#   %s %s\n", latency.PerSecond(event.Count, over), event.Title())
	}
	for _, phrase := range qualification.IsolationWords(qualification.IsolationOf(end.Isolation())) {
		fmt.Fprintf(b, "#   %s\n", phrase)
	}
}

func latencySetup(b *strings.Builder, result *latency.Result) {
	setup := &result.Setup
	over := string(setup.Transport)
	if setup.Group != "" {
		over += " to " + setup.Group
	}
	fmt.Fprintf(b, "# %s with %s over %s, waiting: %s\n", strings.ToLower(string(result.Kind)), setup.Peer, over, strings.ToLower(string(setup.Waiting)))
	for _, end := range []struct {
		name string
		host latency.Host
	}{{"client", setup.Client}, {"server", setup.Server}} {
		if end.host.Name == "" {
			continue
		}
		cpu := "any CPU"
		if end.host.CPU >= 0 {
			cpu = "CPU " + strconv.Itoa(end.host.CPU)
		}
		fmt.Fprintf(b, "# %s: %s, kernel %s, %s\n", end.name, end.host.Name, end.host.Kernel, cpu)
		for _, variable := range end.host.Environment {
			fmt.Fprintf(b, "#   %s\n", variable)
		}
	}
	fmt.Fprintf(b, "# times: %s; reading the clock costs %d ns, which is subtracted\n", setup.Timestamps, setup.ClockNanoseconds)
}

// latencyColumns are those of sfnt-pingpong.
func latencyColumns(b *strings.Builder, result *latency.Result) {
	if len(result.Sizes) == 0 {
		return
	}
	if result.Kind != latency.KindPingPong {
		b.WriteString("# with one message under way at a time:\n")
	}
	fmt.Fprintf(b, "# reporting: %s, in nanoseconds; %%ile is 99 %%\n", roundTripWords(result.Setup.RoundTrip))
	rows := make([][]string, 0, len(result.Sizes))
	for i := range result.Sizes {
		one := &result.Sizes[i]
		d := &one.Distribution
		row := []string{strconv.Itoa(one.Bytes)}
		if d.Samples == 0 {
			row = append(row, notCarried, notCarried, notCarried, notCarried, notCarried, notCarried)
		} else {
			row = append(row, fmt.Sprintf("%.0f", d.MeanNanoseconds), decimal(d.MinimumNanoseconds), decimal(d.MedianNanoseconds),
				decimal(d.MaximumNanoseconds), percentileCell(d, 99), fmt.Sprintf("%.0f", d.DeviationNanoseconds))
		}
		rows = append(rows, append(row, strconv.FormatUint(d.Samples, 10), strconv.FormatUint(one.Lost, 10), strconv.FormatUint(one.Stray, 10)))
	}
	b.WriteString(rightAligned([]string{"#size", "mean", "min", "median", "max", "%ile", "stddev", "iter", "lost", "stray"}, rows))
}

// latencyLadder is a row for each size with the percentiles that its samples carry.
func latencyLadder(b *strings.Builder, result *latency.Result) {
	rows := make([][]string, 0, len(result.Sizes))
	for i := range result.Sizes {
		rows = append(rows, ladderRow(strconv.Itoa(result.Sizes[i].Bytes), &result.Sizes[i].Distribution))
	}
	ladder(b, "size", rows)
}

// ladder is a table of percentiles; nothing without rows.
func ladder(b *strings.Builder, of string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	header := append(make([]string, 0, 1+len(latency.Ladder())), "#"+of)
	for _, percent := range latency.Ladder() {
		header = append(header, formatPercent(percent))
	}
	fmt.Fprintf(b, "# percentiles, with the interval that holds each with 95 %% confidence (no upper end where few bursts decide it); %q where there are too few samples\n", notCarried)
	b.WriteString(rightAligned(header, rows))
}

func ladderRow(of string, d *latency.Distribution) []string {
	row := append(make([]string, 0, 1+len(latency.Ladder())), "#"+of)
	for _, percent := range latency.Ladder() {
		row = append(row, ladderCell(d, percent))
	}
	return row
}

func percentileCell(d *latency.Distribution, percent float64) string {
	p, carried := d.At(percent)
	if !carried {
		return notCarried
	}
	return decimal(p.Nanoseconds)
}

func ladderCell(d *latency.Distribution, percent float64) string {
	p, carried := d.At(percent)
	if !carried {
		return notCarried
	}
	return fmt.Sprintf("%d (%s)", p.Nanoseconds, latency.Span(p.LowNanoseconds, p.HighNanoseconds, decimal))
}

func formatPercent(percent float64) string { return strconv.FormatFloat(percent, 'g', -1, 64) + "%" }

func decimal(value int64) string { return strconv.FormatInt(value, 10) }

// rightAligned is a table of numbers, as columns of text that other programs read.
func rightAligned(header []string, rows [][]string) string {
	all := append([][]string{header}, rows...)
	widths := natural(all)
	var b strings.Builder
	for _, row := range all {
		for i, cell := range row {
			separator := "  "
			if i == 0 {
				separator = ""
			}
			fmt.Fprintf(&b, "%s%*s", separator, widths[i], cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// latencyRates is a row for each rate: from when messages were to leave, from when they left, how late they left, and what became of them.
func latencyRates(b *strings.Builder, result *latency.Result) {
	if len(result.Rates) == 0 {
		return
	}
	reporting := "an estimate of one way: until the answer, less the mean of the way back"
	if result.Setup.RoundTrip {
		reporting = "the round trip"
	}
	fmt.Fprintf(b, "# on a schedule, in messages a second; reporting: %s, in nanoseconds, from when messages were to leave; median-sent and %%ile-sent from when they left\n", reporting)
	rows := make([][]string, 0, len(result.Rates))
	for i := range result.Rates {
		r := &result.Rates[i]
		d := &r.FromIntended
		row := []string{strconv.FormatUint(r.PerSecond, 10), fmt.Sprintf("%.0f", r.AchievedPerSecond)}
		if d.Samples == 0 {
			row = append(row, notCarried, notCarried, notCarried, notCarried, notCarried)
		} else {
			row = append(row, fmt.Sprintf("%.0f", d.MeanNanoseconds), decimal(d.MinimumNanoseconds), decimal(d.MedianNanoseconds), decimal(d.MaximumNanoseconds), percentileCell(d, 99))
		}
		row = append(row, percentileCell(&r.FromActual, 50), percentileCell(&r.FromActual, 99))
		for _, count := range []uint64{d.Samples, r.Late, r.Load.Lost, r.Load.Gaps, r.Load.Duplicates, r.Load.Reordered} {
			row = append(row, strconv.FormatUint(count, 10))
		}
		rows = append(rows, row)
	}
	b.WriteString(rightAligned([]string{"#target", "sent", "mean", "min", "median", "max", "%ile", "median-sent", "%ile-sent", "samples", "late", "lost", "gaps", "dup", "ooo"}, rows))
	ladders := make([][]string, 0, len(result.Rates))
	for i := range result.Rates {
		ladders = append(ladders, ladderRow(strconv.FormatUint(result.Rates[i].PerSecond, 10), &result.Rates[i].FromIntended))
	}
	ladder(b, "target", ladders)
}

// latencyLoad is a row for each trial, and the interval.
func latencyLoad(b *strings.Builder, load *latency.Load) {
	rows := make([][]string, 0, len(load.Trials))
	for i := range load.Trials {
		trial := &load.Trials[i]
		r := &trial.Rate
		rows = append(rows, []string{
			"#" + string(trial.Phase), strconv.FormatUint(r.PerSecond, 10), fmt.Sprintf("%.0f", r.AchievedPerSecond), strconv.FormatUint(r.Load.Lost, 10),
			percentileCell(&r.FromIntended, 50), percentileCell(&r.FromIntended, 99), strconv.FormatUint(r.FromIntended.Samples, 10),
			string(trial.Outcome.Verdict), string(trial.Outcome.Reason),
		})
	}
	b.WriteString(rightAligned([]string{"#phase", "target", "sent", "lost", "median", "99%", "probes", "verdict", "reason"}, rows))
	fmt.Fprintf(b, "best pass    %d\nlowest fail  %d\n", load.BestPass, load.LowestFail)
}
