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

// writeLatencyCSV writes a line for each number of each size, rate, or trial.
func writeLatencyCSV(w io.Writer, result *latency.Result) error {
	c := csv.NewWriter(w)
	_ = c.Write([]string{"bytes", "rate", "what", "nanoseconds", "low", "high", "samples"})
	for i := range result.Sizes {
		size := strconv.Itoa(result.Sizes[i].Bytes)
		csvRows(c, size, "", "", &result.Sizes[i].Distribution)
		if s := result.Sizes[i].Stamps; s != nil {
			csvRows(c, size, "", "wire ", &s.Wire)
			csvRows(c, size, "", "host ", &s.Host)
		}
	}
	rates := result.Rates
	if result.Load != nil {
		for i := range result.Load.Trials {
			rates = append(rates, result.Load.Trials[i].Rate)
		}
	}
	for i := range rates {
		csvRows(c, strconv.Itoa(rates[i].Bytes), strconv.FormatUint(rates[i].PerSecond, 10), "", &rates[i].FromIntended)
	}
	c.Flush()
	return c.Error()
}

// csvRows writes a line for each number of a distribution. What it is of stands before the name of the number.
func csvRows(c *csv.Writer, bytes, rate, of string, d *latency.Distribution) {
	row := func(what, nanoseconds, low, high string) {
		_ = c.Write([]string{bytes, rate, of + what, nanoseconds, low, high, strconv.FormatUint(d.Samples, 10)})
	}
	row("minimum", number(d.MinimumNanoseconds), "", "")
	row("mean", strconv.FormatFloat(d.MeanNanoseconds, 'f', 1, 64), "", "")
	for _, p := range d.Percentiles {
		row(strconv.FormatFloat(p.Percent, 'g', -1, 64)+"%", number(p.Nanoseconds), number(p.LowNanoseconds), numberOrNone(p.HighNanoseconds))
	}
	row("maximum", number(d.MaximumNanoseconds), "", "")
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
// follow each other, a second each: sizes and rates are no times.
func writeLatencyHDR(w io.Writer, result *latency.Result) error {
	if _, err := io.WriteString(w, "#[Histogram log format version 1.3]\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"); err != nil {
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
