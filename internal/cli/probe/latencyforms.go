// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

func writeLatencyText(w io.Writer, result *latency.Result) error {
	_, err := io.WriteString(w, text.Latency(result))
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
		csvRows(c, strconv.Itoa(result.Sizes[i].Bytes), "", &result.Sizes[i].Distribution)
	}
	rates := result.Rates
	if result.Load != nil {
		for i := range result.Load.Trials {
			rates = append(rates, result.Load.Trials[i].Rate)
		}
	}
	for i := range rates {
		csvRows(c, strconv.Itoa(rates[i].Bytes), strconv.FormatUint(rates[i].PerSecond, 10), &rates[i].FromIntended)
	}
	c.Flush()
	return c.Error()
}

func csvRows(c *csv.Writer, bytes, rate string, d *latency.Distribution) {
	row := func(what, nanoseconds, low, high string) {
		_ = c.Write([]string{bytes, rate, what, nanoseconds, low, high, strconv.FormatUint(d.Samples, 10)})
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

// writeLatencyHDR writes a histogram log, which the tools of HdrHistogram read: an interval for each size, tagged with it. The intervals
// follow each other, a second each: sizes are no times.
func writeLatencyHDR(w io.Writer, result *latency.Result) error {
	if _, err := io.WriteString(w, "#[Histogram log format version 1.3]\n\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"); err != nil {
		return err
	}
	for i := range result.Sizes {
		one := &result.Sizes[i]
		if _, err := fmt.Fprintf(w, "Tag=%dbytes,%d.000,1.000,%d.000,%s\n", one.Bytes, i, one.Distribution.MaximumNanoseconds, one.Distribution.HDR); err != nil {
			return err
		}
	}
	return nil
}
