// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"cmp"
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
	p := &latencyPair{before: before, after: after, palette: palette, columns: columns}
	table := map[latency.Kind]func() string{latency.KindPingPong: p.sizes, latency.KindRateSweep: p.rates, latency.KindLoadSearch: p.loads}[before.Kind]
	return p.title() + "\n\n" + table() + "\n" + p.remarks() + p.differences()
}

// Reported says what the latencies of a result are of.
func Reported(result *latency.Result) string {
	switch {
	case result.Setup.RoundTrip:
		return "the round trip"
	case result.Kind == latency.KindPingPong:
		return "half of the round trip"
	default:
		return "an estimate of one way"
	}
}

// latencyPair are two results of one kind.
type latencyPair struct {
	before, after *latency.Result
	palette       Palette
	columns       int
}

func (p *latencyPair) title() string {
	switch {
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

// side is what one result has of a size or a rate: its counts in words, its latencies, nil where it was not measured, and how many messages had no answer.
type side struct {
	counts     []string
	lengths    *latency.Distribution
	unanswered uint64
}

// carried is a percentile of a side, where it was measured with as many samples as that takes.
func (s *side) carried(percent float64) (latency.Percentile, bool) {
	if s.lengths == nil || s.lengths.Samples < latency.Samples(percent) {
		return latency.Percentile{}, false
	}
	return s.lengths.At(percent)
}

// isAnswered reports whether a percentile says something of all messages.
func (s *side) isAnswered(percent float64) bool {
	return latency.IsAnswered(percent, s.lengths.Samples, s.unanswered)
}

// trio are both sides of a size or a rate, which are compared where they can be.
type trio struct {
	name          string
	before, after side
	isComparable  bool
}

// trioOf puts the sides of a pair together, by what is counted and measured of each.
func trioOf[T any](name string, pair latency.Pair[T], of func(*T) side) trio {
	t := trio{name: name, isComparable: pair.Before != nil && pair.After != nil}
	if pair.Before != nil {
		t.before = of(pair.Before)
	}
	if pair.After != nil {
		t.after = of(pair.After)
	}
	return t
}

// carried are the percentiles that either side of one of all carries.
func carried(all ...trio) []float64 {
	return slices.DeleteFunc(latency.Ladder(), func(percent float64) bool {
		return !slices.ContainsFunc(all, func(t trio) bool {
			_, was := t.before.carried(percent)
			_, is := t.after.carried(percent)
			return was || is
		})
	})
}

// rows are the lines of a trio, with so many counts and these percentiles.
func (t *trio) rows(counts int, ladder []float64) [][]string {
	rows := append(make([][]string, 0, 3), t.row("before", &t.before, counts, ladder), t.row("after", &t.after, counts, ladder))
	if !t.isComparable {
		return rows
	}
	ratios := append(make([]string, 0, 4+counts+len(ladder)), t.name, "ratio")
	ratios = append(ratios, make([]string, counts+1)...)
	for _, percent := range ladder {
		ratios = append(ratios, t.ratio(percent))
	}
	return append(rows, append(ratios, ""))
}

func (t *trio) row(when string, s *side, counts int, ladder []float64) []string {
	row := append(make([]string, 0, 4+counts+len(ladder)), t.name, when)
	if row = append(row, s.counts...); s.lengths == nil {
		row = append(row, slices.Repeat([]string{notCarried}, counts)...)
	}
	if s.lengths == nil || s.lengths.Samples == 0 {
		return append(row, slices.Repeat([]string{notCarried}, 2+len(ladder))...)
	}
	row = append(row, latency.Length(s.lengths.MinimumNanoseconds))
	for _, percent := range ladder {
		row = append(row, lengthCell(s.carried(percent)))
	}
	return append(row, latency.Length(s.lengths.MaximumNanoseconds))
}

func lengthCell(p latency.Percentile, carried bool) string {
	if !carried {
		return notCarried
	}
	return latency.Length(p.Nanoseconds)
}

// ratio is that of a percentile, after to before.
func (t *trio) ratio(percent float64) string {
	was, carriedThen := t.before.carried(percent)
	is, carriedNow := t.after.carried(percent)
	if !carriedThen || !carriedNow || !t.before.isAnswered(percent) || !t.after.isAnswered(percent) || min(was.Nanoseconds, is.Nanoseconds) <= 0 {
		return notCarried
	}
	return ratioCell(float64(was.Nanoseconds), float64(is.Nanoseconds), was.Overlaps(&is))
}

func ratioCell(was, is float64, isWithinSpread bool) string {
	ratio := fmt.Sprintf("%.2f", is/was)
	if isWithinSpread {
		return withinSpread + ratio
	}
	return ratio
}

// lengthsTable is the table of trios in sections, whose counts have these names.
func (p *latencyPair) lengthsTable(name string, counts []string, parts map[string][]trio, titles ...string) string {
	var all []trio
	for _, title := range titles {
		all = append(all, parts[title]...)
	}
	ladder := carried(all...)
	header := append(append([]string{name, ""}, counts...), "MINIMUM")
	for _, percent := range ladder {
		header = append(header, formatPercent(percent))
	}
	drawn := make([]section, 0, len(titles))
	for _, title := range titles {
		var rows [][]string
		for _, t := range parts[title] {
			rows = append(rows, t.rows(len(counts), ladder)...)
		}
		drawn = append(drawn, section{title, rows})
	}
	return sections(append(header, "MAXIMUM"), drawn, p.palette, p.columns)
}

// sizes is the table of ping-pongs.
func (p *latencyPair) sizes() string {
	pairs := latency.SizePairs(p.before, p.after)
	all := make([]trio, 0, len(pairs))
	for _, pair := range pairs {
		bytes := cmp.Or(pair.Before, pair.After).Bytes
		all = append(all, trioOf(strconv.Itoa(bytes), pair, func(s *latency.Size) side {
			return side{[]string{unsigned(s.Distribution.Samples), unsigned(s.Lost)}, &s.Distribution, s.Lost}
		}))
	}
	return p.lengthsTable("BYTES", []string{"SAMPLES", "LOST"}, map[string][]trio{"": all}, "")
}

// rates is the table of sweeps: latencies from when messages were to leave, and below from when they left.
func (p *latencyPair) rates() string {
	const intended, actual = "from when messages were to leave", "from when they left"
	parts := map[string][]trio{}
	for _, pair := range latency.RatePairs(p.before, p.after) {
		name := unsigned(cmp.Or(pair.Before, pair.After).PerSecond)
		add := func(title string, of func(*latency.Rate) side) {
			t := trioOf(name, pair, of)
			t.isComparable = t.isComparable && pair.Before.IsOnSchedule() && pair.After.IsOnSchedule()
			parts[title] = append(parts[title], t)
		}
		add(intended, func(r *latency.Rate) side { return side{rateCounts(r), &r.FromIntended, r.AnswersLost} })
		add(actual, func(r *latency.Rate) side {
			return side{append(make([]string, len(rateCounts(r))-1), unsigned(r.FromActual.Samples)), &r.FromActual, r.AnswersLost}
		})
	}
	return p.lengthsTable("RATE", []string{"SENT", "LATE", "LOST", "NO ANSWER", "SAMPLES"}, parts, intended, actual)
}

func rateCounts(r *latency.Rate) []string {
	sent := fmt.Sprintf("%.0f", r.AchievedPerSecond)
	if !r.IsOnSchedule() {
		sent += notReached
	}
	return []string{sent, unsigned(r.Late), unsigned(r.Load.Lost), unsigned(r.AnswersLost), unsigned(r.FromIntended.Samples)}
}

// loads is the table of searches: the interval of each, from the highest rate that passed to the lowest that did not.
func (p *latencyPair) loads() string {
	rows := make([][]string, 0, 3)
	for _, m := range p.moments() {
		l := m.result.Load
		confirmed, held := "no", notCarried
		if l.Confirmed {
			confirmed = "yes"
		}
		if l.HeldNanoseconds > 0 {
			held = time.Duration(l.HeldNanoseconds).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{m.name, rateOrNone(l.BestPass), rateOrNone(l.LowestFail), confirmed, held, string(m.result.Outcome.Verdict) + " (" + string(m.result.Outcome.Reason) + ")"})
	}
	was, is := p.before.Load, p.after.Load
	isSame := was.Overlaps(is)
	rows = append(rows, []string{"ratio", rateRatio(was.BestPass, is.BestPass, isSame), rateRatio(was.LowestFail, is.LowestFail, isSame), "", "", ""})
	return Table([]string{"", "BEST PASS", "LOWEST FAIL", "CONFIRMED", "HELD", "OUTCOME"}, rows, p.palette, p.columns)
}

func rateOrNone(rate uint64) string {
	if rate == 0 {
		return notCarried
	}
	return unsigned(rate)
}

func rateRatio(was, is uint64, isSame bool) string {
	if was == 0 || is == 0 {
		return notCarried
	}
	return ratioCell(float64(was), float64(is), isSame)
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
	const ratio = "ratio: after to before; " + `"` + withinSpread + `": the difference is within the spread, since `
	if p.before.Kind == latency.KindLoadSearch {
		return []string{ratio + "no rate that failed in one search held in the other"}
	}
	return []string{
		ratio + "the intervals of both percentiles, which hold them with 95 % confidence, overlap; " +
			`"` + notCarried + `": not measured, too few samples for the percentile, or fewer answers than it takes to compare it`,
		"Intervals are of one run each, and know nothing of what differs from run to run: repeat the measurements, or let a LatencyTest do it.",
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

// differences is a table of what of the setups differs; "" for recorded runs, which do not tell their setup.
func (p *latencyPair) differences() string {
	if p.before.Generator != "" {
		return ""
	}
	was, is := setupRows(p.before, p.after), setupRows(p.after, p.before)
	var rows [][]string
	for i := range was {
		if was[i][1] != is[i][1] {
			rows = append(rows, []string{was[i][0], orDash(was[i][1]), orDash(is[i][1])})
		}
	}
	if len(rows) == 0 {
		return "Nothing that the results tell of both setups differs.\n"
	}
	return "\n" + Table([]string{"WHAT ELSE DIFFERS", "BEFORE", "AFTER"}, rows, p.palette, p.columns)
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
