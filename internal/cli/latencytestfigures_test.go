// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// cellsOf are columns of all rows of -o csv.
func cellsOf(t *testing.T, file string, columns ...string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(run(t, "", "test", "report", "-f", file, "-o", "csv").out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	cells := make([][]string, 0, len(rows))
	for _, row := range rows[1:] {
		of := make([]string, 0, len(columns))
		for _, column := range columns {
			of = append(of, row[slices.Index(rows[0], column)])
		}
		cells = append(cells, of)
	}
	return cells
}

// lostTest has a node on which no message of the second size came back, one on which none did at all, and one on which all did.
func lostTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := pingPongTest(t)
	whole := test.Status.Results[0]
	for i, node := range []string{"n1", "n2"} {
		result := whole.DeepCopy()
		result.Node, result.Previous = node, nil
		n := result.Measured.Network
		for j := range n.Sizes {
			if i == 1 || j == 1 {
				n.Sizes[j] = v1alpha1.SizeMeasurement{Bytes: n.Sizes[j].Bytes, Lost: 500}
			}
		}
		test.Status.Results = append(test.Status.Results[:i], *result)
	}
	gone := test.Status.Results[1].Measured
	gone.MaximumNanoseconds, gone.Percentiles, gone.RepetitionMaximumsNanoseconds, gone.Histogram = 0, nil, []int64{0, 0, 0}, ""
	gone.Network.RepetitionMediansNanoseconds = []int64{0, 0, 0}
	whole.Node, whole.Previous = "n3", nil
	test.Status.Results = append(test.Status.Results, whole)
	return test
}

// TestNothingMeasuredIsNoZero: where no message had an answer there is no latency, in no form, and none in the median of the nodes.
func TestNothingMeasuredIsNoZero(t *testing.T) {
	file := saved(t, lostTest(t))
	got := [][]string{}
	for line := range strings.SplitSeq(run(t, "", "test", "report", "-f", file).out, "\n") {
		if cells := strings.Fields(line); len(cells) > 6 && slices.Contains([]string{"n1", "n2"}, cells[0]) {
			got = append(got, slices.Concat(cells[:1], cells[4:]))
		}
	}
	want := [][]string{
		{"n1", "64", "300000", "1", "900", "ns", "5.1", "µs", "5", "µs", "-", "20", "µs", "-", "-", "-", "45", "µs", "1.3", "µs", "3:", "5", "µs", "to", "-"},
		{"n1", "1024", "0", "500", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"},
		{"n2", "64", "0", "500", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"},
		{"n2", "1024", "0", "500", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cells := cellsOf(t, file, "node", "bytes", "samples", "lost", "minimum_ns", "mean_ns", "deviation_ns", "maximum_ns", "repetition_medians_ns")
	wantCells := [][]string{
		{"n1", "64", "300000", "1", "900", "5100", "1300", "45000", "5000 5001 5002"}, {"n1", "1024", "0", "500", "", "", "", "", ""},
		{"n2", "64", "0", "500", "", "", "", "", ""}, {"n2", "1024", "0", "500", "", "", "", "", ""},
		{"n3", "64", "300000", "1", "900", "5100", "1300", "45000", "5000 5001 5002"}, {"n3", "1024", "200", "0", "1900", "10000", "", "50000", ""},
	}
	if diff := cmp.Diff(wantCells, cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	page := run(t, "", "test", "report", "-f", file, "-o", "html").out
	const nothing = `<td class="n">-</td>`
	for _, want := range []string{
		`<td>64 bytes: longest</td><td class="n">45 µs</td><td class="n">-</td><td class="n">45 µs</td>`,
		`<td>64 bytes: longest</td>` + nothing + nothing + `<td class="n">45 µs</td>`,
		`<td>64 bytes: shortest</td>` + nothing + nothing + `<td class="n">900 ns</td>`,
		`<td>1024 bytes: mean</td><td class="n">-</td>`, "longest of each repetition: -, -, -<",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "0 ns</td>") && !strings.Contains(page, "900 ns</td>") || strings.Contains(page, ">0 ns<") {
		t.Error("the page has latencies of 0 ns")
	}
}

// TestCompareWithNothingMeasured: what had no answer has no longest latency.
func TestCompareWithNothingMeasured(t *testing.T) {
	test := lostTest(t)
	test.Status.Results = test.Status.Results[1:2]
	test.Status.Results[0].Previous = pingPongTest(t).Status.Results[0].Measured
	got := run(t, "", "test", "compare", "-f", saved(t, test))
	lines := [][]string{}
	for line := range strings.Lines(got.out) {
		if cells := strings.Fields(line); slices.Contains(cells, "longest") {
			lines = append(lines, cells)
		}
	}
	want := [][]string{{"longest", "50", "µs", "-"}, {"64", "bytes,", "longest", "45", "µs", "-"}, {"1024", "bytes,", "longest", "50", "µs", "-"}}
	if diff := cmp.Diff(want, lines); diff != "" || got.code != ExitUnknown {
		t.Errorf("exit code %d (-want +got):\n%s", got.code, diff)
	}
}

// TestMediansOfRepetitions stand in the row that they are of.
func TestMediansOfRepetitions(t *testing.T) {
	const medians = "5000 5001 5002"
	for name, tc := range map[string]struct {
		test *v1alpha1.LatencyTest
		want []string
	}{
		"rates":  {rateSweepTest(t), []string{medians, "", ""}},
		"search": {loadSearchTest(t), []string{medians, "", "", ""}},
		"sides":  {comparisonTest(t), []string{"6200 6201 6202 6203 6204", "", "5000 5000 5000 5000 5000", "", ""}},
	} {
		got := make([]string, 0, len(tc.want))
		for _, cells := range cellsOf(t, saved(t, tc.test), "repetition_medians_ns") {
			got = append(got, cells[0])
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestDistributionsSayWhatTheyAreOf: log and page name the size or rate, and the page that of a reference, too, where it is another.
func TestDistributionsSayWhatTheyAreOf(t *testing.T) {
	larger := pingPongTest(t)
	larger.Status.Results = larger.Status.Results[:1]
	larger.Status.Results[0].Measured.Network.Sizes[0].Bytes = 128
	larger.Status.Results[0].Measured.ParametersHash = "p2"
	reference := saved(t, larger)
	for name, tc := range map[string]struct {
		test *v1alpha1.LatencyTest
		tag  string
		page []string
		args []string
	}{
		"sizes": {pingPongTest(t), "Tag=tests/way/n1/64bytes,", []string{">latency of a message, 64 bytes<", ">now<", ">way on n1, 128 bytes<", "<th>way on n1, measured with other parameters</th>"},
			[]string{"--reference", reference}},
		"the same": {larger, "Tag=tests/way/n1/128bytes,", []string{">latency of a message, 128 bytes<", ">way on n1<", "<th>way on n1</th>"}, []string{"--reference", reference}},
		"rates":    {rateSweepTest(t), "Tag=tests/rates/n1/10000persecond-intended,", []string{">latency of a message, 10000 a second<"}, nil},
		"search":   {loadSearchTest(t), "Tag=tests/load/n1/41000persecond-intended,", []string{">latency of a message, 41000 a second<"}, nil},
		"sides":    {comparisonTest(t), "Tag=tests/pods/n1/host/64bytes,", []string{">latency of a message, 64 bytes<", ">host<"}, nil},
		"jitter":   {savedTest(t), "Tag=tests/quiet/n1,", []string{">length of an interruption<"}, nil},
	} {
		file := saved(t, tc.test)
		expectSaid(t, run(t, "", "test", "report", "-f", file, "-o", "hdr").out, []string{tc.tag})
		page := run(t, "", append([]string{"test", "report", "-f", file, "-o", "html"}, tc.args...)...)
		for _, want := range tc.page {
			if !strings.Contains(page.out, want) {
				t.Errorf("%s: the page lacks %q: %s", name, want, page.err)
			}
		}
	}
}

// TestReferenceOfAnotherKind has no figure in common with what stands beside it.
func TestReferenceOfAnotherKind(t *testing.T) {
	first := func(test *v1alpha1.LatencyTest) *v1alpha1.LatencyTest {
		test.Status.Results = test.Status.Results[:1]
		return test
	}
	for name, tc := range map[string]struct {
		test, reference *v1alpha1.LatencyTest
		want            string
	}{
		"jitter beside messages":  {pingPongTest(t), alone(t), "quiet on n1 has measured interruptions of CPUs, and tests/way on n1 messages one at a time"},
		"a search beside sizes":   {pingPongTest(t), first(loadSearchTest(t)), "load on n1 has measured the highest rate of messages, and tests/way on n1 messages one at a time"},
		"sizes beside rates":      {rateSweepTest(t), first(pingPongTest(t)), "way on n1 has measured messages one at a time, and tests/rates on n1 messages on a schedule"},
		"sizes beside comparison": {comparisonTest(t), first(pingPongTest(t)), "way on n1 has measured messages one at a time, and tests/pods on n1 messages on sides in turns"},
	} {
		got := run(t, "", "test", "report", "-f", saved(t, tc.test), "-o", "html", "--reference", saved(t, tc.reference))
		want := "error: --reference: " + tc.want + ": a reference stands beside measurements of its own kind\n"
		if got.code != ExitUsage || got.out != "" || got.err != want {
			t.Errorf("%s: exit code %d, %q", name, got.code, got.err)
		}
	}
}

// TestReportSaysWhatLatenciesAre, in the words of the probes.
func TestReportSaysWhatLatenciesAre(t *testing.T) {
	for kind, tc := range map[v1alpha1.LatencyTestKind]struct {
		test  *v1alpha1.LatencyTest
		probe latency.Kind
	}{
		v1alpha1.LatencyTestPingPong:            {pingPongTest(t), latency.KindPingPong},
		v1alpha1.LatencyTestRateSweep:           {rateSweepTest(t), latency.KindRateSweep},
		v1alpha1.LatencyTestLoadSearch:          {loadSearchTest(t), latency.KindLoadSearch},
		v1alpha1.LatencyTestContainerVersusHost: {comparisonTest(t), latency.KindPingPong},
		v1alpha1.LatencyTestStackComparison:     {stacksTest(t), latency.KindPingPong},
	} {
		want := view.LatenciesOf(kind)
		if reported := text.Reported(&latency.Result{Kind: tc.probe}); !strings.HasPrefix(want, reported+", ") {
			t.Errorf("%s: %s, and of a probe %s", kind, want, reported)
		}
		file := saved(t, tc.test)
		hasWords(t, file, "text", "latencies are "+want+" NODE")
		hasWords(t, file, "html", "Latencies are "+want+".</p>")
	}
	if got := run(t, "", "test", "report", "-f", saved(t, savedTest(t))).out; strings.Contains(got, "latencies are") {
		t.Errorf("jitter has latencies:\n%s", got)
	}
}
