// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

const (
	// withinSpread stands before a ratio of what two intervals do not tell apart.
	withinSpread = "~"
	// notReached stands behind the rate at which messages left, where the sender did not keep up.
	notReached = " !"
)

// LatencyPair puts two results of the same kind of measurement over the network side by side: a line before, a line after and the ratio of both for each
// size, for each rate, or for the answer of a search.
func LatencyPair(before, after *latency.Result, palette Palette, columns int) string {
	p := &latencyPair{before: before, after: after, compared: latency.CompareResults(before, after), palette: palette, columns: columns}
	table := map[latency.Kind]func() string{latency.KindPingPong: p.sizes, latency.KindRateSweep: p.rates, latency.KindLoadSearch: p.loads}[before.Kind]
	return p.title() + "\n\n" + table() + "\n" + p.remarks() + p.differences()
}

// Reported says what the latencies of a result are of; of a sweep or a search, those of messages on a schedule.
func Reported(result *latency.Result) string {
	switch {
	case result.Generator != "" && result.Kind != latency.KindPingPong:
		return "the way as the generator has measured it, from when messages left"
	case result.Kind != latency.KindPingPong && !result.Setup.RoundTrip:
		return "an estimate of one way"
	default:
		return ReportedOneAtATime(result)
	}
}

// ReportedOneAtATime says what the latencies of messages are of that went one at a time, which sweeps and searches have, too.
func ReportedOneAtATime(result *latency.Result) string { return roundTripWords(result.Setup.RoundTrip) }

// roundTripWords say what the latencies of a ping-pong are of.
func roundTripWords(isWhole bool) string {
	if isWhole {
		return "the round trip"
	}
	return "half of the round trip"
}

// latencyPair are two results of one kind.
type latencyPair struct {
	before, after *latency.Result
	compared      latency.Comparison
	palette       Palette
	columns       int
}

func (p *latencyPair) title() string {
	switch {
	case p.before.Generator != "" && p.before.Kind == latency.KindPingPong:
		return Reported(p.before) + ", with one message under way at a time, as " + p.before.Generator + " has measured it"
	case p.before.Generator != "":
		return "recorded runs of " + p.before.Generator + ", in messages a second"
	case p.before.Kind == latency.KindLoadSearch:
		return "the highest rate that passes, in messages a second"
	case p.before.Kind == latency.KindRateSweep:
		return Reported(p.before) + ", with messages on a schedule"
	default:
		return Reported(p.before) + ", with one message under way at a time"
	}
}

// moment is one result with its name.
type moment struct {
	name   string
	result *latency.Result
}

func (p *latencyPair) moments() []moment { return []moment{{"before", p.before}, {"after", p.after}} }

// carried are the percentiles that one of all sides carries.
func carried(sides []*latency.ComparedSide) []float64 {
	return slices.DeleteFunc(latency.Ladder(), func(percent float64) bool {
		return !slices.ContainsFunc(sides, func(side *latency.ComparedSide) bool {
			_, found := side.At(percent)
			return found
		})
	})
}

// lengthsHeader are the titles of columns of lengths with these percentiles, behind others.
func lengthsHeader(before []string, ladder []float64) []string {
	header := append(slices.Clone(before), "MINIMUM")
	for _, percent := range ladder {
		header = append(header, formatPercent(percent))
	}
	return append(header, "MAXIMUM")
}

// lines are those of a row by its name: before, after and the ratio, with counts of each side and these percentiles.
func lines(name string, row *latency.ComparedRow, counts func(*latency.ComparedSide) []string, columns int, ladder []float64) [][]string {
	lines := make([][]string, 0, 3)
	for _, side := range []struct {
		when string
		of   *latency.ComparedSide
	}{{"before", row.Before}, {"after", row.After}} {
		cells := slices.Repeat([]string{notCarried}, columns)
		if side.of != nil {
			cells = counts(side.of)
		}
		lines = append(lines, slices.Concat([]string{name, side.when}, cells, lengthCells(side.of, ladder)))
	}
	if !row.Comparable() {
		return lines
	}
	return append(lines, ratioLine([]string{name, "ratio"}, row.Ratios, columns, ladder))
}

// ratioLine is a line of ratios of these percentiles, which has nothing below counts in so many columns, below the minimum and below the maximum.
func ratioLine(names []string, ratios []latency.PercentileRatio, columns int, ladder []float64) []string {
	line := slices.Concat(names, make([]string, columns+1))
	for _, percent := range ladder {
		cell := notCarried
		if at := slices.IndexFunc(ratios, func(r latency.PercentileRatio) bool { return r.Percent == percent }); at >= 0 {
			cell = changeCell(&ratios[at].Change)
		}
		line = append(line, cell)
	}
	return append(line, "")
}

// lengthCells are the shortest latency of a side, percentiles, and the longest.
func lengthCells(s *latency.ComparedSide, ladder []float64) []string {
	if s == nil || s.Samples == 0 {
		return slices.Repeat([]string{notCarried}, 2+len(ladder))
	}
	cells := append(make([]string, 0, 2+len(ladder)), latency.Length(*s.MinimumNanoseconds))
	for _, percent := range ladder {
		cell := notCarried
		if p, found := s.At(percent); found {
			cell = latency.Length(p.Nanoseconds)
		}
		cells = append(cells, cell)
	}
	return append(cells, latency.Length(*s.MaximumNanoseconds))
}

// changeCell is a ratio in words; nil for none.
func changeCell(c *latency.Change) string {
	if c == nil {
		return notCarried
	}
	ratio := fmt.Sprintf("%.2f", c.Ratio)
	if c.WithinSpread {
		return withinSpread + ratio
	}
	return ratio
}

// lengthsTable is the table of rows, with a section for each title, whose counts have these names.
func (p *latencyPair) lengthsTable(name func(*latency.ComparedRow) string, header, counts []string, countsOf func(*latency.ComparedSide, latency.Begin) []string, titles map[latency.Begin]string) string {
	sides := make([]*latency.ComparedSide, 0, 2*len(p.compared.Rows))
	for i := range p.compared.Rows {
		sides = append(sides, p.compared.Rows[i].Before, p.compared.Rows[i].After)
	}
	ladder := carried(sides)
	var drawn []section
	for i := range p.compared.Rows {
		row := &p.compared.Rows[i]
		if title := titles[row.From]; len(drawn) == 0 || drawn[len(drawn)-1].title != title {
			drawn = append(drawn, section{title, nil})
		}
		last := &drawn[len(drawn)-1]
		of := func(s *latency.ComparedSide) []string { return countsOf(s, row.From) }
		last.rows = append(last.rows, lines(name(row), row, of, len(counts), ladder)...)
	}
	return sections(lengthsHeader(slices.Concat(header, counts), ladder), drawn, p.palette, p.columns)
}

// sizes is the table of ping-pongs.
func (p *latencyPair) sizes() string {
	return p.lengthsTable(func(r *latency.ComparedRow) string { return strconv.Itoa(r.Bytes) }, []string{"BYTES", ""}, []string{"SAMPLES", "LOST"},
		func(s *latency.ComparedSide, _ latency.Begin) []string {
			return []string{unsigned(s.Samples), unsigned(s.Lost)}
		}, nil)
}

// rates is the table of sweeps: latencies from when messages were to leave, and below from when they left.
func (p *latencyPair) rates() string {
	return p.lengthsTable(func(r *latency.ComparedRow) string { return unsigned(r.PerSecond) }, []string{"RATE", ""}, []string{"SENT", "LATE", "LOST", "NO ANSWER", "SAMPLES"}, rateCounts,
		map[latency.Begin]string{latency.FromIntended: "from when messages were to leave", latency.FromSent: "from when they left"})
}

// rateCounts are the counts of a rate, which stand once.
func rateCounts(s *latency.ComparedSide, from latency.Begin) []string {
	if from == latency.FromSent {
		return []string{"", "", "", "", unsigned(s.Samples)}
	}
	sent := fmt.Sprintf("%.0f", s.Schedule.AchievedPerSecond)
	if !s.Schedule.Reached {
		sent += notReached
	}
	return []string{sent, unsigned(s.Schedule.Late), unsigned(s.Lost), unsigned(s.Schedule.AnswersLost), unsigned(s.Samples)}
}

// loads is the table of searches: the interval of each, from the highest rate that passed to the lowest that did not.
func (p *latencyPair) loads() string {
	rows := make([][]string, 0, 3)
	searches := p.compared.Searches
	for _, m := range []struct {
		name    string
		of      *latency.ComparedSearch
		outcome *latency.Outcome
	}{{"before", &searches.Before, &p.compared.BeforeOutcome}, {"after", &searches.After, &p.compared.AfterOutcome}} {
		confirmed, held := "no", notCarried
		if m.of.Confirmed {
			confirmed = "yes"
		}
		if m.of.HeldNanoseconds > 0 {
			held = time.Duration(m.of.HeldNanoseconds).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{m.name, rateOrNone(m.of.BestPass), rateOrNone(m.of.LowestFail), confirmed, held, string(m.outcome.Verdict) + " (" + string(m.outcome.Reason) + ")"})
	}
	rows = append(rows, []string{"ratio", changeCell(searches.BestPass), changeCell(searches.LowestFail), "", "", ""})
	return Table([]string{"", "BEST PASS", "LOWEST FAIL", "CONFIRMED", "HELD", "OUTCOME"}, rows, p.palette, p.columns)
}

func rateOrNone(rate uint64) string {
	if rate == 0 {
		return notCarried
	}
	return unsigned(rate)
}

func unsigned(value uint64) string { return strconv.FormatUint(value, 10) }

// remarks say what the marks of the table mean, and what is wrong with either result.
func (p *latencyPair) remarks() string {
	var b strings.Builder
	for _, sentence := range append(p.legend(), p.doubts()...) {
		b.WriteString(paragraph(sentence, p.columns))
	}
	return b.String()
}

func (p *latencyPair) legend() []string {
	const ratio = "ratio: after to before; "
	if p.before.Kind == latency.KindLoadSearch {
		return []string{ratio + `"` + withinSpread + `": the difference is within the spread, since no rate that failed in one search held in the other`}
	}
	return lengthsLegend(ratio, ", or let a LatencyTest do it")
}

// lengthsLegend says what the marks of tables of lengths mean, behind of what a ratio is, and how far intervals go, with what else can be done than to repeat
// the measurements.
func lengthsLegend(ratio, otherwise string) []string {
	return []string{
		ratio + `"` + withinSpread + `": the difference is within the spread, since the intervals of both percentiles, which hold them with 95 % confidence, overlap; ` +
			`"` + notCarried + `": not measured, too few samples for the percentile, or fewer answers than it takes to compare it`,
		"Intervals are of one run each, and know nothing of what differs from run to run: repeat the measurements" + otherwise + ".",
	}
}

// doubts are what a reader has to know of either result.
func (p *latencyPair) doubts() []string {
	var found []string
	if p.isMissed() {
		found = append(found, `"`+strings.TrimSpace(notReached)+`": the sender did not reach the rate, which then says nothing of what receives and is not compared`)
	}
	for _, m := range p.moments() {
		if o := m.result.Outcome; o.Verdict != latency.Passed {
			found = append(found, fmt.Sprintf("%s: %s (%s): %s", m.name, o.Verdict, o.Reason, o.Message))
		}
		if l := m.result.Load; l != nil && l.LowestFail > 0 {
			found = append(found, fmt.Sprintf("%s, the lowest fail: %s (%s): %s", m.name, l.Why.Verdict, l.Why.Reason, l.Why.Message))
		}
		if hasNarrowIntervals(m.result) {
			found = append(found, m.name+": a version before this one took samples that follow each other for independent, so that intervals may be too narrow")
		}
	}
	if without := p.withoutRules(); len(without) > 0 {
		found = append(found, strings.Join(without, " and ")+": a version before this one did not save the rules of a search, so that it is not known whether both allowed the same loss and latencies, and made the same trials")
	}
	return found
}

// isMissed reports whether a rate of a sweep was not reached.
func (p *latencyPair) isMissed() bool {
	return slices.ContainsFunc(slices.Concat(p.before.Rates, p.after.Rates), func(r latency.Rate) bool { return !r.IsOnSchedule() })
}

// hasNarrowIntervals reports whether a result is of a version that did not say how many samples are independent.
func hasNarrowIntervals(result *latency.Result) bool {
	isNarrow := func(d *latency.Distribution) bool {
		return slices.ContainsFunc(d.Percentiles, func(p latency.Percentile) bool { return p.Independent == 0 })
	}
	return result.Kind == latency.KindPingPong && slices.ContainsFunc(result.Sizes, func(s latency.Size) bool { return isNarrow(&s.Distribution) }) ||
		result.Kind == latency.KindRateSweep && slices.ContainsFunc(result.Rates, func(r latency.Rate) bool { return isNarrow(&r.FromIntended) || isNarrow(&r.FromActual) })
}

// differences is a table of what of the setups differs, and of the rules of searches; "" for recorded runs of the same rules, which do not tell their setup.
func (p *latencyPair) differences() string {
	found := Differences(p.before, p.after)
	switch {
	case len(found) == 0 && p.before.Generator != "":
		return ""
	case len(found) == 0:
		return "Nothing that the results tell of both setups differs.\n"
	}
	rows := make([][]string, 0, len(found))
	for _, d := range found {
		rows = append(rows, []string{d.What, orDash(d.Before), orDash(d.After)})
	}
	return "\n" + Table([]string{"WHAT ELSE DIFFERS", "BEFORE", "AFTER"}, rows, p.palette, p.columns)
}

// Difference is what of the setups of two results differs, or of the rules of two searches. A side is "" that has none of it.
type Difference struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Differences are what of the setups of two results differs, and of the rules of two searches where both tell them. Recorded runs do not tell their setup.
func Differences(before, after *latency.Result) []Difference {
	found := []Difference{}
	var was, is [][2]string
	if before.Generator == "" {
		was, is = setupRows(before, after), setupRows(after, before)
	}
	if before.Load != nil && before.Load.Rules != nil && after.Load != nil && after.Load.Rules != nil {
		was, is = append(was, ruleRows(before.Load.Rules)...), append(is, ruleRows(after.Load.Rules)...)
	}
	for i := range was {
		if was[i][1] != is[i][1] {
			found = append(found, Difference{was[i][0], was[i][1], is[i][1]})
		}
	}
	return found
}

// setupRows are how a result was measured, with those variables of its ends that the other one does not have.
func setupRows(result, other *latency.Result) [][2]string {
	s := &result.Setup
	rows := [][2]string{
		{"transport", string(s.Transport)}, {"waiting", string(s.Waiting)}, {"peer", s.Peer}, {"group", s.Group}, {"latencies", Reported(result)}, {"bytes", loadBytes(result)},
		{"path", string(result.Path.State)}, {"stamps", stampingWords(s.Stamping)},
	}
	rows = append(rows, hostRows("client", &s.Client, &other.Setup.Client)...)
	return append(rows, hostRows("server", &s.Server, &other.Setup.Server)...)
}

func hostRows(name string, host, other *latency.Host) [][2]string {
	cpu := "any"
	if host.CPU >= 0 {
		cpu = strconv.Itoa(host.CPU)
	}
	own := slices.DeleteFunc(slices.Clone(host.Environment), func(variable string) bool { return slices.Contains(other.Environment, variable) })
	return [][2]string{{name, host.Name}, {name + ", kernel", host.Kernel}, {name + ", CPU", cpu}, {name + ", variables", strings.Join(own, " ")}}
}

// loadBytes is the size of the messages of a search; "" for others, which are compared by it.
func loadBytes(result *latency.Result) string {
	if result.Load == nil || len(result.Load.Trials) == 0 {
		return ""
	}
	return strconv.Itoa(result.Load.Trials[0].Rate.Bytes)
}
