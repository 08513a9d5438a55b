// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

func writeLatencyText(w io.Writer, result *latency.Result) error {
	_, err := io.WriteString(w, text.Harmless(text.Latency(result)))
	return err
}

func writeLatencyJSON(w io.Writer, result *latency.Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

// writeLatencyCSV writes a line for each number of each size, rate, or trial, of a search those of its answer, and one of the outcome. Columns that came later stand
// at the end, so that the others keep their places.
func writeLatencyCSV(w io.Writer, result *latency.Result) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"bytes", "rate", "what", "nanoseconds", "low", "high", "samples", "trial", "phase", "verdict", "latencies", "count"})
	for i := range result.Sizes {
		csvSize(c, &result.Sizes[i], text.ReportedOneAtATime(result))
	}
	for i := range result.Rates {
		csvRate(&csvRows{to: c}, &result.Rates[i], result)
	}
	if load := result.Load; load != nil {
		for i := range load.Trials {
			trial := &load.Trials[i]
			csvRate(&csvRows{to: c, trial: strconv.Itoa(i + 1), phase: string(trial.Phase), verdict: string(trial.Outcome.Verdict)}, &trial.Rate, result)
		}
		csvAnswer(c, load)
	}
	(&csvRows{to: c, verdict: string(result.Outcome.Verdict)}).write("outcome", csvNumber{})
	c.Flush()
	return c.Error()
}

// csvRows are lines about the same messages.
type csvRows struct {
	to                                            *csv.Writer
	bytes, rate, trial, phase, verdict, latencies string
}

// csvNumber is a number of a line: a length with its interval and its samples, or a count. What it does not have is "".
type csvNumber struct{ nanoseconds, low, high, samples, count string }

func (r *csvRows) write(what string, n csvNumber) {
	latencies := r.latencies
	if n.nanoseconds == "" {
		latencies = ""
	}
	_ = r.to.Write([]string{r.bytes, r.rate, what, n.nanoseconds, n.low, n.high, n.samples, r.trial, r.phase, r.verdict, latencies, n.count})
}

func (r *csvRows) count(what string, count uint64) {
	r.write(what, csvNumber{count: strconv.FormatUint(count, 10)})
}

// lengths writes a line for each number of a distribution; none where it has no sample. What it is of stands before the name of the number.
func (r *csvRows) lengths(of string, d *latency.Distribution) {
	if d.Samples == 0 {
		return
	}
	samples := strconv.FormatUint(d.Samples, 10)
	r.write(of+"minimum", csvNumber{nanoseconds: number(d.MinimumNanoseconds), samples: samples})
	r.write(of+"mean", csvNumber{nanoseconds: strconv.FormatFloat(d.MeanNanoseconds, 'f', 1, 64), samples: samples})
	for _, p := range d.Percentiles {
		r.write(of+strconv.FormatFloat(p.Percent, 'g', -1, 64)+"%", csvNumber{
			nanoseconds: number(p.Nanoseconds), low: number(p.LowNanoseconds), high: numberOrNone(p.HighNanoseconds), samples: samples,
		})
	}
	r.write(of+"maximum", csvNumber{nanoseconds: number(d.MaximumNanoseconds), samples: samples})
}

// csvSize writes the lines of messages of one size that went one at a time.
func csvSize(c *csv.Writer, size *latency.Size, reported string) {
	rows := &csvRows{to: c, bytes: strconv.Itoa(size.Bytes), latencies: reported}
	rows.lengths("", &size.Distribution)
	if s := size.Stamps; s != nil {
		rows.lengths("wire ", &s.Wire)
		rows.lengths("host ", &s.Host)
	}
	rows.count("lost", size.Lost)
}

// csvRate writes the lines of messages on a schedule. How many left late, other generators do not tell; and of no answer is told where none was wanted.
func csvRate(rows *csvRows, rate *latency.Rate, result *latency.Result) {
	rows.bytes, rows.rate, rows.latencies = strconv.Itoa(rate.Bytes), strconv.FormatUint(rate.PerSecond, 10), text.Reported(result)
	rows.lengths("", &rate.FromIntended)
	if result.Generator == "" {
		rows.count("late", rate.Late)
	}
	rows.count("lost", rate.Load.Lost)
	if rate.AnswersWanted > 0 {
		rows.count("no answer", rate.AnswersLost)
	}
}

// csvAnswer writes the interval of a search, each end in the column of rates; "" for one that there is not.
func csvAnswer(c *csv.Writer, load *latency.Load) {
	for _, end := range []struct {
		what    string
		rate    uint64
		verdict latency.Verdict
	}{{"best pass", load.BestPass, latency.Passed}, {"lowest fail", load.LowestFail, load.Why.Verdict}} {
		rows := &csvRows{to: c}
		if end.rate > 0 {
			rows.rate, rows.verdict = strconv.FormatUint(end.rate, 10), string(end.verdict)
		}
		rows.write(end.what, csvNumber{})
	}
}

func number(value int64) string { return strconv.FormatInt(value, 10) }

// numberOrNone is a number; "" for none.
func numberOrNone(value *int64) string {
	if value == nil {
		return ""
	}
	return number(*value)
}

// writeLatencyHDR writes a histogram log, which the tools of HdrHistogram read: an interval for each histogram, tagged with what it is of. The intervals
// follow each other, a second each: sizes and rates are no times. Comments say what the latencies are of.
func writeLatencyHDR(w io.Writer, result *latency.Result) error {
	var header strings.Builder
	header.WriteString("#[Histogram log format version 1.3]\n")
	if len(result.Sizes) > 0 {
		fmt.Fprintf(&header, "#[latencies of messages that went one at a time: %s]\n", text.ReportedOneAtATime(result))
	}
	if len(result.Rates) > 0 || result.Load != nil {
		fmt.Fprintf(&header, "#[latencies of messages on a schedule: %s]\n", text.Reported(result))
	}
	header.WriteString("\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n")
	if _, err := io.WriteString(w, header.String()); err != nil {
		return err
	}
	for i, one := range histograms(result) {
		if _, err := fmt.Fprintf(w, "Tag=%s,%d.000,1.000,%d.000,%s\n", one.tag, i, one.of.MaximumNanoseconds, one.of.HDR); err != nil {
			return err
		}
	}
	return nil
}

// tagged is a distribution with the tag of its histogram in a log.
type tagged struct {
	tag string
	of  *latency.Distribution
}

// histograms are those of sizes, of rates, and of the trials of a search in their order; of messages on a schedule, from when each was to leave and from
// when it left. Other generators record latencies from when messages left alone. A distribution without a histogram is left out.
func histograms(result *latency.Result) []tagged {
	var all []tagged
	for i := range result.Sizes {
		tag := strconv.Itoa(result.Sizes[i].Bytes) + "bytes"
		all = append(all, tagged{tag, &result.Sizes[i].Distribution})
		if s := result.Sizes[i].Stamps; s != nil {
			all = append(all, tagged{tag + "-wire", &s.Wire}, tagged{tag + "-host", &s.Host})
		}
	}
	for i := range result.Rates {
		all = append(all, ofRate("", &result.Rates[i])...)
	}
	if result.Load != nil {
		for i := range result.Load.Trials {
			trial := &result.Load.Trials[i]
			before := fmt.Sprintf("trial%d-%s-", i+1, strings.ToLower(string(trial.Phase)))
			if result.Generator != "" {
				all = append(all, tagged{fmt.Sprintf("%s%dpersecond-sent", before, trial.Rate.PerSecond), &trial.Rate.FromIntended})
				continue
			}
			all = append(all, ofRate(before, &trial.Rate)...)
		}
	}
	return slices.DeleteFunc(all, func(one tagged) bool { return one.of.HDR == "" })
}

func ofRate(before string, rate *latency.Rate) []tagged {
	tag := fmt.Sprintf("%s%dpersecond-", before, rate.PerSecond)
	return []tagged{{tag + "intended", &rate.FromIntended}, {tag + "sent", &rate.FromActual}}
}
