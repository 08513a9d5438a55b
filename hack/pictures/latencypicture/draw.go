// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencypicture

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/page"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// The measures of a picture, in pixels.
const (
	wide, margin, line, head = 920.0, 20.0, 18.0, 34.0
	rowHeight                = 22.0
	// perLetter is about how wide a letter is, and perWordLetter one of the sentences below.
	perLetter, perWordLetter = 7.4, 6.3
	// plotWide and plotHigh are those of the plots of package picture.
	plotWide, plotHigh = 600.0, 300.0
)

const style = `<style>
text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: #1f2328; font-variant-numeric: tabular-nums; }
.title { font-size: 17px; font-weight: 600; }
.head { font-weight: 600; fill: #57606a; }
.words { font-size: 12px; fill: #57606a; }
</style>
`

// Draw draws a recording of a sample: the table, the plots, and below them what was measured, how and where. It is a complete SVG document.
func Draw(name string, r *Recording) []byte {
	d := &drawing{y: margin}
	node := &view.OfLatencyTest(&r.Test).Nodes[0]
	d.y += line
	d.text("title", "start", margin, title(node))
	d.y += line / 2
	d.table(columns(node), cells(node))
	for _, plot := range []string{string(page.Way(node)), string(page.Ratios(node))} {
		d.plot(plot)
	}
	for _, sentence := range caption(name, r, node) {
		d.words(sentence)
	}
	high := d.y + margin
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`+"\n%s"+
		`<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n%s</svg>\n", wide, high, wide, high, html.EscapeString(title(node)), style, d.String())
}

// drawing grows downwards.
type drawing struct {
	strings.Builder
	y float64
}

func (d *drawing) text(class, anchor string, x float64, words string) {
	fmt.Fprintf(&d.Builder, `<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`+"\n", class, x, d.y, anchor, html.EscapeString(words))
}

// table draws columns as wide as their words, all but the first aligned at their right.
func (d *drawing) table(header []string, rows [][]string) {
	widths := make([]float64, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], perLetter*float64(utf8.RuneCountInString(cell)))
		}
	}
	used := 0.0
	for _, width := range widths {
		used += width
	}
	gap := min((wide-2*margin-used)/float64(max(1, len(widths)-1)), head)
	for i, row := range append([][]string{header}, rows...) {
		d.y += rowHeight
		x, class := margin, "cell"
		if i == 0 {
			class = "head"
		}
		for j, cell := range row {
			if j == 0 {
				d.text(class, "start", x, cell)
			} else {
				d.text(class, "end", x+widths[j], cell)
			}
			x += widths[j] + gap
		}
		fmt.Fprintf(&d.Builder, `<path d="M%.1f %.1fH%.1f" stroke="#d0d7de"/>`+"\n", margin, d.y+rowHeight/3, x-gap)
	}
	d.y += line
}

// plot puts a plot, which is a document of its own, below what is there; "" is none.
func (d *drawing) plot(svg string) {
	if svg == "" {
		return
	}
	const root = `<svg xmlns="http://www.w3.org/2000/svg"`
	fmt.Fprintf(&d.Builder, `<svg x="%.1f" y="%.1f"%s`, margin, d.y, strings.TrimPrefix(svg, root))
	d.y += plotHigh + line/2
}

// words draws a paragraph.
func (d *drawing) words(paragraph string) {
	begun := ""
	flush := func() {
		d.y += line
		d.text("words", "start", margin, begun)
		begun = ""
	}
	for word := range strings.FieldsSeq(paragraph) {
		if begun != "" && perWordLetter*float64(utf8.RuneCountInString(begun+" "+word)) > wide-2*margin {
			flush()
		}
		begun = strings.TrimSpace(begun + " " + word)
	}
	flush()
	d.y += line / 3
}

func title(node *view.LatencyNode) string {
	n := node.Measured.Network
	switch {
	case n.Load != nil:
		return "The highest stable load: " + qualification.LoadWords(n.Load)
	case len(n.Rates) > 0:
		return "Latency of one way over rates of messages"
	case n.Comparison != nil && node.Measured.Network.Comparison.Sides[0].WantedPath != "":
		return "Half round trip of the kernel's sockets and of frames of AF_XDP"
	case n.Comparison != nil:
		return "Half round trip from a container and from its host"
	default:
		return "Half round trip over sizes of messages"
	}
}

// percentiles are those that a row of the measurement carries.
func percentiles(node *view.LatencyNode) []v1alpha1.PercentileName {
	most := 0
	for _, row := range qualification.Rows(node.Measured.Network) {
		most = max(most, len(row.Figures.Percentiles))
	}
	return qualification.Percentiles()[:most]
}

// columns are the header of the table, and cells its rows.
func columns(node *view.LatencyNode) []string {
	n := node.Measured.Network
	header := []string{"bytes", "samples", "lost"}
	switch {
	case n.Load != nil:
		header = []string{"trial", "messages a second", "reached", "lost"}
	case len(n.Rates) > 0:
		header = []string{"messages a second", "reached", "lost", "late"}
	case n.Comparison != nil:
		header = append([]string{"side"}, header...)
	}
	header = append(header, "shortest")
	for _, name := range percentiles(node) {
		header = append(header, qualification.Words(name))
	}
	header = append(header, "longest")
	if n.Comparison != nil {
		return append(header, "50 %, times as long")
	}
	return header
}

func cells(node *view.LatencyNode) [][]string {
	n, names := node.Measured.Network, percentiles(node)
	measured := qualification.Rows(n)
	rows := make([][]string, 0, len(measured))
	for i := range measured {
		row := &measured[i]
		cells := append(beginOf(row, n), rounded(row.Figures.MinimumNanoseconds))
		for _, name := range names {
			if value, carried := qualification.PercentileOf(row.Figures.Percentiles, name); carried {
				cells = append(cells, rounded(value))
			} else {
				cells = append(cells, "-")
			}
		}
		cells = append(cells, rounded(row.Figures.MaximumNanoseconds))
		if row.Side != nil {
			cells = append(cells, ratioWords(row))
		}
		rows = append(rows, cells)
	}
	return rows
}

// beginOf says what was sent in a row, and what became of it.
func beginOf(row *qualification.Row, n *v1alpha1.NetworkMeasurement) []string {
	lost := strconv.FormatInt(row.Lost, 10)
	switch {
	case n.Load != nil:
		return []string{row.Name, row.PerSecond(), strconv.FormatInt(row.Rate.AchievedPerSecond, 10), lost}
	case row.Rate != nil:
		return []string{row.PerSecond(), strconv.FormatInt(row.Rate.AchievedPerSecond, 10), lost, strconv.FormatInt(row.Rate.Late, 10)}
	}
	cells := []string{strconv.Itoa(int(row.Bytes)), strconv.FormatInt(row.Figures.Samples, 10), lost}
	if row.Side != nil {
		return append([]string{strings.ToLower(string(row.Side.Side))}, cells...)
	}
	return cells
}

func ratioWords(row *qualification.Row) string {
	if ratio := qualification.RatioOf(row.Side, row.Bytes, v1alpha1.P50); ratio != nil {
		return qualification.RatioWords(ratio)
	}
	return "-"
}

// rounded is a length to three digits, which is more than two runs on one machine agree in.
func rounded(nanoseconds int64) string {
	unit := int64(1)
	for nanoseconds/unit >= 1000 {
		unit *= 10
	}
	return latency.Length((nanoseconds + unit/2) / unit * unit)
}

// caption says what was measured, how and where.
func caption(name string, r *Recording, node *view.LatencyNode) []string {
	m, spec := node.Measured, &r.Test.Spec
	said := []string{
		fmt.Sprintf("Outcome of the node: %s (%s).", node.Outcome, node.Reason),
		fmt.Sprintf("LatencyTest %s of %s/%s.yaml, changed for one machine: %s.", r.Test.Name, samples, name, shortened(spec)),
		fmt.Sprintf("Measured on %s between two network namespaces of one %s machine, joined by a pair of virtual interfaces (veth): no NIC and no cable. %d CPUs (%s), kernel %s, which nobody "+
			"has tuned, with a load average of %s from other work, before which the programs that send and answer had priority. It shows the form of the result; the numbers are those of this machine in that minute.",
			m.CompletedTime.UTC().Format(time.DateOnly), r.Machine.Kind, r.Machine.CPUs, r.Machine.Processor, m.Fingerprint.Kernel, r.Machine.LoadAverage),
	}
	if len(m.Network.Rates) > 0 && len(m.Network.Sizes) > 0 {
		said = append(said, fmt.Sprintf("One way is the time until the answer, less the mean half round trip while nothing else is sent (%s here): where that mean is longer than a way, 0 ns is shown.",
			rounded(m.Network.Sizes[0].MeanNanoseconds)))
	}
	if m.Network.Comparison != nil {
		said = append(said, "Of the latencies, the worst repetition of each side is shown; a ratio compares the medians of all repetitions, pair by pair, and stands with the interval that holds it with 95 % confidence.")
	}
	if spec.StackComparison != nil {
		said = append(said, "Frames go through sockets of AF_XDP that copy, for a pair of virtual interfaces has no driver that hands its memory over, as those of some NICs do.")
	}
	return said
}

// shortened says for how long and over what was measured.
func shortened(spec *v1alpha1.LatencyTestSpec) string {
	if l := spec.LoadSearch; l != nil {
		return fmt.Sprintf("a rate passes by its loss alone; trials of %d s, %d probes a second, the best rate held for %d s, its bounds within %g %%; messages of %d bytes over %s; the server sleeps in the kernel while it waits",
			l.TrialSeconds, l.ProbesPerSecond, l.ConfirmSeconds, float64(l.GranularityPartsPerThousand)/10, l.Bytes, spec.Traffic.Transport)
	}
	what := fmt.Sprintf("%d s for all sizes", spec.DurationSeconds)
	if spec.RateSweep != nil {
		what = fmt.Sprintf("%d s for all rates, messages of %d bytes", spec.DurationSeconds, spec.RateSweep.Bytes)
	}
	of := "times"
	if slices.Contains([]v1alpha1.LatencyTestKind{v1alpha1.LatencyTestContainerVersusHost, v1alpha1.LatencyTestStackComparison}, spec.Kind) {
		of = "times each side, in turns"
	}
	return fmt.Sprintf("%s, %d %s, over %s; who waits sleeps in the kernel", what, spec.Repetitions, of, spec.Traffic.Transport)
}
