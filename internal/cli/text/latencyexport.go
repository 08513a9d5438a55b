// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// LatencyCSV writes a row for each node with all figures, or for each size or rate of its messages, for spreadsheets. Lengths are in nanoseconds.
func LatencyCSV(w io.Writer, tests []view.LatencyTest) error {
	out := csv.NewWriter(w)
	percentiles := make([]string, 0, len(qualification.Percentiles()))
	for _, name := range qualification.Percentiles() {
		percentiles = append(percentiles, strings.ToLower(string(name))+"_ns")
	}
	header := slices.Concat(
		[]string{"namespace", "test", "node", "outcome", "freshness", "reason", "completed", "cpus", "interruptions", "maximum_ns", "stolen_ppm"},
		percentiles, []string{"repetition_maximums_ns", "trend", "kernel", "microcode", "bios", "plan"}, networkColumns(), isolationColumns(), []string{"management_interrupts"}, serverColumns())
	if err := out.Write(header); err != nil {
		return err
	}
	for i := range tests {
		for j := range tests[i].Nodes {
			if err := out.WriteAll(csvRows(&tests[i], &tests[i].Nodes[j])); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// networkColumns are those of measurements over the network, at the end of a row.
func networkColumns() []string {
	return slices.Concat([]string{
		"server", "path", "bytes", "samples", "lost", "stray", "minimum_ns", "mean_ns", "deviation_ns", "repetition_medians_ns",
		"rate", "achieved", "sent", "gaps", "duplicates", "reordered", "late", "maximum_lateness_ns", "answers_lost", "sent_p50_ns", "sent_p99_ns", "sent_maximum_ns",
		"trial", "confirmation", "repetition_best_passes",
		"side", "base", "ratio_p50_ppt", "ratio_p50_low_ppt", "ratio_p50_high_ppt", "tail", "ratio_tail_ppt", "ratio_tail_low_ppt", "ratio_tail_high_ppt",
	}, intervalColumns())
}

// intervalColumns are the fewest samples of a repetition, and both ends of the interval of each percentile.
func intervalColumns() []string {
	columns := append(make([]string, 0, 1+2*len(qualification.Percentiles())), "least_samples")
	for _, name := range qualification.Percentiles() {
		columns = append(columns, strings.ToLower(string(name))+"_low_ns", strings.ToLower(string(name))+"_high_ns")
	}
	return columns
}

// intervalCells are the cells of intervalColumns; empty where there is no interval, or no upper end.
func intervalCells(f *v1alpha1.LatencyFigures) []string {
	if len(f.Intervals) == 0 {
		return make([]string, len(intervalColumns()))
	}
	cells := []string{decimal(f.LeastSamples)}
	for _, name := range qualification.Percentiles() {
		low, high := "", ""
		if interval := qualification.IntervalOf(f, name); interval != nil {
			low = decimal(interval.LowNanoseconds)
			if interval.HighNanoseconds != nil {
				high = decimal(*interval.HighNanoseconds)
			}
		}
		cells = append(cells, low, high)
	}
	return cells
}

// isolationColumns are those of what the scheduler and the idle governor counted, after all others.
func isolationColumns() []string {
	return []string{"run_queue_cpu", "run_queue_wait_ns_per_second", "idle_cpu", "idle_state", "idle_entries_per_second", "busy_cpu", "busy_percent"}
}

// serverColumns are what was counted on the CPU of the server, after all others.
func serverColumns() []string {
	columns := append(make([]string, 0, 2+len(isolationColumns())), "server_cpus", "server_causes")
	for _, name := range isolationColumns() {
		columns = append(columns, "server_"+name)
	}
	return columns
}

// serverCells are the cells of serverColumns; causes have semicolons between them.
func serverCells(s *v1alpha1.ServerCounts) []string {
	return append([]string{s.ServerCPUs, strings.Join(s.ServerCauses, "; ")}, isolationCells(s.ServerIsolation)...)
}

// isolationOfRow is what was counted for a row: on its side of a comparison, or during the measurement.
func isolationOfRow(m *v1alpha1.LatencyMeasurement, row *qualification.Row) *v1alpha1.LatencyIsolation {
	if row.Side != nil {
		return row.Side.Isolation
	}
	return m.Isolation
}

// isolationCells are the cells of isolationColumns: empty where nothing was asked, and "unknown" where nobody knows.
func isolationCells(i *v1alpha1.LatencyIsolation) []string {
	cells := make([]string, len(isolationColumns()))
	if i == nil {
		return cells
	}
	number := func(cpu *int32) string {
		if cpu == nil {
			return ""
		}
		return decimal(int64(*cpu))
	}
	cells[1], cells[4] = "unknown", "unknown"
	if i.RunQueue.State == v1alpha1.StateCounted {
		cells[0], cells[1] = number(i.RunQueue.CPU), decimal(qualification.WaitedPerSecond(&i.RunQueue))
	}
	if s := &i.IdleStates; s.State == v1alpha1.StateCounted {
		cells[2], cells[3], cells[4] = number(s.CPU), s.Name, qualification.EntriesPerSecond(s)
	}
	if b := i.Busy; b != nil {
		cells[5], cells[6] = number(b.CPU), cmp.Or(number(b.Percent), "unknown")
	}
	return cells
}

// managementCell is how often the firmware interrupted the CPUs: empty where nothing was asked, and "unknown" where nobody knows.
func managementCell(m *v1alpha1.LatencyManagementInterrupts) string {
	switch {
	case m == nil:
		return ""
	case m.Count == nil:
		return "unknown"
	}
	return decimal(*m.Count)
}

// csvRows are the row of a node, or those of its sizes or rates of messages.
func csvRows(test *view.LatencyTest, node *view.LatencyNode) [][]string {
	if node.Measured == nil || node.Measured.Network == nil {
		var counted *v1alpha1.LatencyIsolation
		firmware := ""
		if node.Measured != nil {
			counted, firmware = node.Measured.Isolation, managementCell(node.Measured.ManagementInterrupts)
		}
		return [][]string{slices.Concat(csvRow(test, node, nil), make([]string, len(networkColumns())), isolationCells(counted), []string{firmware}, make([]string, len(serverColumns())))}
	}
	n := node.Measured.Network
	measured := qualification.Rows(n)
	rows := make([][]string, 0, len(measured))
	for i := range measured {
		row := &measured[i]
		f := row.Figures
		stray, medians := "", ""
		if row.Size != nil {
			stray = decimal(row.Size.Stray)
		}
		if qualification.IsFirstOfSide(measured, i) {
			medians = spaced(mediansOf(n, row))
		}
		rows = append(rows, slices.Concat(csvRow(test, node, f), []string{
			n.Server, string(row.Path(n)), decimal(int64(row.Bytes)), decimal(f.Samples), decimal(row.Lost), stray, figureCell(f, f.MinimumNanoseconds),
			figureCell(f, f.MeanNanoseconds), deviationCell(f), medians,
		}, rateCells(row.Rate), loadCells(n.Load, row.Rate), sideCells(n.Comparison, row), intervalCells(f), isolationCells(isolationOfRow(node.Measured, row)), []string{managementCell(node.Measured.ManagementInterrupts)},
			serverCells(qualification.ServerOf(node.Measured.Network, row))))
	}
	return rows
}

// figureCell is one of the lengths of figures; empty where no message had an answer.
func figureCell(f *v1alpha1.LatencyFigures, nanoseconds int64) string {
	if f.Samples == 0 {
		return ""
	}
	return decimal(nanoseconds)
}

// deviationCell is the standard deviation; empty where the record has none.
func deviationCell(f *v1alpha1.LatencyFigures) string {
	if f.DeviationNanoseconds == 0 {
		return ""
	}
	return decimal(f.DeviationNanoseconds)
}

// mediansOf are the medians of the repetitions, of the side of a comparison where there are several; none where no message had an answer.
func mediansOf(n *v1alpha1.NetworkMeasurement, row *qualification.Row) []int64 {
	if row.Figures.Samples == 0 {
		return nil
	}
	if row.Side != nil {
		return row.Side.RepetitionMediansNanoseconds
	}
	return n.RepetitionMediansNanoseconds
}

// sideCells are the columns of comparisons; empty for others. The base has no ratios.
func sideCells(c *v1alpha1.ComparisonMeasurement, row *qualification.Row) []string {
	const ofSides, ofRatio = 9, 3
	if row.Side == nil {
		return make([]string, ofSides)
	}
	cells := func(r *v1alpha1.LatencyRatio) []string {
		if r == nil {
			return make([]string, ofRatio)
		}
		return []string{decimal(r.PartsPerThousand), decimal(r.LowPartsPerThousand), decimal(r.HighPartsPerThousand)}
	}
	tail, name := qualification.TailRatioOf(row.Side, row.Bytes), ""
	if tail != nil {
		name = string(tail.Percentile)
	}
	return slices.Concat([]string{string(row.Side.Side), string(c.Base)}, cells(qualification.RatioOf(row.Side, row.Bytes, v1alpha1.P50)), []string{name}, cells(tail))
}

// loadCells are the columns of searches; empty for others.
func loadCells(l *v1alpha1.LoadMeasurement, r *v1alpha1.RateMeasurement) []string {
	if l == nil || r == nil {
		const ofLoads = 3
		return make([]string, ofLoads)
	}
	passes := make([]int64, 0, len(l.RepetitionBestPassesPerSecond))
	for _, rate := range l.RepetitionBestPassesPerSecond {
		passes = append(passes, int64(rate))
	}
	return []string{string(r.Trial), string(l.Confirmation), spaced(passes)}
}

// rateCells are the columns of messages on a schedule; empty for others.
func rateCells(r *v1alpha1.RateMeasurement) []string {
	if r == nil {
		const ofRates = 12
		return make([]string, ofRates)
	}
	cells := make([]string, 0, len(networkColumns()))
	for _, number := range []int64{
		int64(r.MessagesPerSecond), r.AchievedPerSecond, r.Sent, r.Gaps, r.Duplicates, r.Reordered, r.Late, r.MaximumLatenessNanoseconds, r.AnswersLost,
	} {
		cells = append(cells, decimal(number))
	}
	for _, name := range []v1alpha1.PercentileName{v1alpha1.P50, v1alpha1.P99} {
		cell := ""
		if value, found := qualification.PercentileOf(r.FromSent.Percentiles, name); found {
			cell = decimal(value)
		}
		cells = append(cells, cell)
	}
	return append(cells, figureCell(&r.FromSent, r.FromSent.MaximumNanoseconds))
}

// spaced are numbers with spaces between them.
func spaced(numbers []int64) string {
	words := make([]string, 0, len(numbers))
	for _, n := range numbers {
		words = append(words, strconv.FormatInt(n, 10))
	}
	return strings.Join(words, " ")
}

// csvRow are the columns before those of messages. Figures are those of a row of messages; nil for interruptions, and where nothing was measured.
func csvRow(test *view.LatencyTest, node *view.LatencyNode, figures *v1alpha1.LatencyFigures) []string {
	row := []string{test.Namespace, test.Name, node.Node, string(node.Outcome), string(node.Freshness), node.Reason}
	m := node.Measured
	if m == nil {
		return append(row, make([]string, 5+len(qualification.Percentiles())+6)...)
	}
	interruptions, maximum, stolen, percentiles := decimal(m.Interruptions), decimal(m.MaximumNanoseconds), strconv.Itoa(int(m.StolenPartsPerMillion)), m.Percentiles
	if figures != nil {
		interruptions, maximum, stolen, percentiles = "", figureCell(figures, figures.MaximumNanoseconds), "", figures.Percentiles
	}
	row = append(row, m.CompletedTime.UTC().Format(time.RFC3339), m.CPUs, interruptions, maximum, stolen)
	for _, name := range qualification.Percentiles() {
		cell := ""
		if value, found := qualification.PercentileOf(percentiles, name); found {
			cell = strconv.FormatInt(value, 10)
		}
		row = append(row, cell)
	}
	trend := ""
	if node.Change != nil {
		trend = string(node.Change.Trend)
	}
	f := m.Fingerprint
	return append(row, spaced(m.RepetitionMaximumsNanoseconds), trend, f.Kernel, f.Microcode, f.BIOSVersion, f.PlanHash)
}

// LatencyLog writes the histograms as a log of HdrHistogram, which its tools read: a line for each node, or for each side of a comparison, with the tag
// namespace/test/node, and after it the side and the size or rate of the messages that it is of. Nodes without a histogram are returned by name.
func LatencyLog(w io.Writer, tests []view.LatencyTest) (without []string, err error) {
	out := hdrhistogram.NewHistogramLogWriter(w)
	if err := out.OutputLogFormatVersion(); err != nil {
		return nil, fmt.Errorf("writing the log: %w", err)
	}
	if err := out.OutputLegend(); err != nil {
		return nil, fmt.Errorf("writing the log: %w", err)
	}
	for i := range tests {
		for j := range tests[i].Nodes {
			node := &tests[i].Nodes[j]
			name := tests[i].Namespace + "/" + tests[i].Name + "/" + node.Node
			found := view.Histograms(node.Measured)
			if len(found) == 0 {
				without = append(without, name)
			}
			for _, one := range found {
				if err := logOf(out, strings.TrimSuffix(name+"/"+one.Tag, "/"), one.Text, node.Measured.CompletedTime.UnixMilli()); err != nil {
					return without, err
				}
			}
		}
	}
	return without, nil
}

// logOf writes a line of a log.
func logOf(out *hdrhistogram.HistogramLogWriter, name, text string, milliseconds int64) error {
	histogram, err := latency.DecodeHDR(text)
	if err != nil {
		return fmt.Errorf("the histogram of %s: %w", name, err)
	}
	histogram.SetTag(name)
	histogram.SetStartTimeMs(milliseconds)
	histogram.SetEndTimeMs(milliseconds)
	if err := out.OutputIntervalHistogram(histogram); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	return nil
}
