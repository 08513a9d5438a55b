// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// savedAll are tests in one file.
func savedAll(t *testing.T, tests ...*v1alpha1.LatencyTest) string {
	t.Helper()
	documents := make([]string, 0, len(tests))
	for _, test := range tests {
		data, err := yaml.Marshal(test)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, string(data))
	}
	return write(t, "tests.yaml", strings.Join(documents, "---\n"))
}

// named is the saved test with its first node alone, under other names.
func named(t *testing.T, namespace, test, node string) *v1alpha1.LatencyTest {
	t.Helper()
	one := alone(t)
	one.Namespace, one.Name, one.Status.Results[0].Node = namespace, test, node
	return one
}

// compareFiles compares two files, and returns what was printed as text and the nodes of -o json.
func compareFiles(t *testing.T, before, after string, args ...string) (printed result, compared view.LatencyTest) {
	t.Helper()
	args = append([]string{"test", "compare", before, after}, args...)
	if err := json.Unmarshal([]byte(run(t, "", append(args, "-o", "json")...).out), &compared); err != nil {
		t.Fatal(err)
	}
	return run(t, "", args...), compared
}

// TestCompareFilesMatchesEachNode once, by the names of test and node, and says of which test each is.
func TestCompareFilesMatchesEachNode(t *testing.T) {
	way := pingPongTest(t)
	way.Status.Results = way.Status.Results[:1]
	cases := map[string]struct {
		before, after []*v1alpha1.LatencyTest
		args          []string
		code          int
		titles        []string
		kinds         []v1alpha1.LatencyTestKind
	}{
		"one node in each": {
			[]*v1alpha1.LatencyTest{named(t, "tests", "old", "n0")}, []*v1alpha1.LatencyTest{named(t, "tests", "quiet", "n1")}, nil, ExitOK,
			[]string{"tests/quiet on n1, compared with tests/old on n0: the same"}, []v1alpha1.LatencyTestKind{v1alpha1.LatencyTestJitter, v1alpha1.LatencyTestJitter},
		},
		"a test that is gone": {
			[]*v1alpha1.LatencyTest{named(t, "tests", "a", "n1"), named(t, "tests", "b", "n1")}, []*v1alpha1.LatencyTest{named(t, "tests", "a", "n1")}, nil, ExitUnknown,
			[]string{"tests/a on n1: the same", "tests/b on n1: there are no two measurements of it"},
			[]v1alpha1.LatencyTestKind{v1alpha1.LatencyTestJitter, v1alpha1.LatencyTestJitter, v1alpha1.LatencyTestJitter},
		},
		"tests of two kinds": {
			[]*v1alpha1.LatencyTest{named(t, "tests", "a", "n1"), way}, []*v1alpha1.LatencyTest{named(t, "tests", "a", "n1"), way}, nil, ExitOK,
			[]string{"tests/a on n1: the same", "tests/way on n1: the same"}, []v1alpha1.LatencyTestKind{"", v1alpha1.LatencyTestJitter, v1alpha1.LatencyTestPingPong},
		},
		"of one namespace": {
			[]*v1alpha1.LatencyTest{named(t, "tests", "a", "n1"), named(t, "others", "b", "n1")}, []*v1alpha1.LatencyTest{named(t, "tests", "a", "n1")}, []string{"-n", "tests"}, ExitOK,
			[]string{"tests/a on n1: the same"}, []v1alpha1.LatencyTestKind{v1alpha1.LatencyTestJitter, v1alpha1.LatencyTestJitter},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			printed, compared := compareFiles(t, savedAll(t, tc.before...), savedAll(t, tc.after...), tc.args...)
			if printed.code != tc.code || printed.err != "" {
				t.Errorf("exit code %d, want %d; standard error %q", printed.code, tc.code, printed.err)
			}
			var titles []string
			for line := range strings.Lines(printed.out) {
				if strings.Contains(line, " on n1") {
					titles = append(titles, strings.TrimSuffix(line, "\n"))
				}
			}
			kinds := append(make([]v1alpha1.LatencyTestKind, 0, 1+len(compared.Nodes)), compared.Kind)
			for i := range compared.Nodes {
				kinds = append(kinds, compared.Nodes[i].Kind)
				if test := compared.Nodes[i].Test; i >= len(titles) || test == "" || !strings.HasPrefix(titles[i], test+" on ") {
					t.Errorf("node %d is of test %q", i, test)
				}
			}
			if diff := cmp.Diff([]any{tc.titles, tc.kinds}, []any{titles, kinds}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompareFilesWithEarlierRuns: the run of the older file has runs before it, beyond which a change has to be.
func TestCompareFilesWithEarlierRuns(t *testing.T) {
	hours := func(n int) metav1.Time { return metav1.NewTime(time.Date(2026, 11, 23, n, 0, 0, 0, time.UTC)) }
	older, newer := alone(t), alone(t)
	was, is := &older.Status.Results[0], &newer.Status.Results[0]
	was.Measured, was.Previous = measurement(t, 5000, 5100, 5200), measurement(t, 9000, 9100, 9200)
	was.Earlier = []v1alpha1.LatencyRunSpread{{Least: 10_000, Most: 11_000}}
	was.Previous.CompletedTime, was.Measured.CompletedTime = hours(1), hours(2)
	is.Measured, is.Previous, is.Earlier = measurement(t, 10_500, 10_600, 10_700), measurement(t, 1, 1, 1), nil
	is.Measured.CompletedTime = hours(3)
	trends := map[string]qualification.Trend{}
	of := func(name string, before, after *v1alpha1.LatencyTest) []v1alpha1.LatencyRunSpread {
		_, compared := compareFiles(t, saved(t, before), saved(t, after))
		trends[name] = compared.Nodes[0].Change.Trend
		return compared.Nodes[0].Earlier
	}
	want := []v1alpha1.LatencyRunSpread{{Least: 9000, Most: 9200}, {Least: 10_000, Most: 11_000}}
	if diff := cmp.Diff(want, of("within earlier runs", older, newer)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What was measured before cannot be compared with runs that may hold it.
	newer.Status.Results[0].Earlier, newer.Status.Results[0].Previous = nil, was.Measured
	of("the other way", newer, older)
	was.Previous.Fingerprint.Kernel = "6.11"
	of("another kernel then", older, newer)
	wantTrends := map[string]qualification.Trend{"within earlier runs": qualification.TrendSame, "the other way": qualification.TrendBetter, "another kernel then": qualification.TrendWorse}
	if diff := cmp.Diff(wantTrends, trends); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNamespaceOfFiles: -n chooses among tests of files as it does in a cluster.
func TestNamespaceOfFiles(t *testing.T) {
	file := savedAll(t, named(t, "trading", "q", "n1"), named(t, "others", "q", "n1"), named(t, "others", "r", "n1"))
	for name, tc := range map[string]struct {
		args []string
		want []string
		err  string
	}{
		"one of two":      {[]string{"q", "-n", "trading"}, []string{"trading/q, "}, ""},
		"all of one":      {[]string{"-n", "others"}, []string{"others/q, ", "others/r, "}, ""},
		"of none":         {[]string{"q"}, nil, "error: the files hold 2 LatencyTests of this name, in the namespaces trading, others: choose one with -n\n"},
		"not in this one": {[]string{"r", "-n", "trading"}, nil, "error: namespace trading of the files has no LatencyTest \"r\", but q\n"},
	} {
		got := run(t, "", append([]string{"test", "report", "-f", file}, tc.args...)...)
		if got.err != tc.err || strings.Count(got.out, ": Ready is") != len(tc.want) {
			t.Errorf("%s: %q, %s", name, got.err, got.out)
		}
		expectSaid(t, got.out, tc.want)
	}
	other := savedAll(t, named(t, "others", "q", "n1"))
	if got := run(t, "", "test", "compare", other, other, "-n", "trading"); got.code != ExitUsage || !strings.Contains(got.err, "holds no LatencyTest of namespace trading with a measured node") {
		t.Errorf("exit code %d, %s", got.code, got.err)
	}
}
