// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// measurement is one of three repetitions on kernel 6.12.
func measurement(t *testing.T, maximums ...int64) *v1alpha1.LatencyMeasurement {
	t.Helper()
	histogram, err := latency.EncodeHDR(slices.Values(append([]int64{600, 700, 1500}, maximums...)))
	if err != nil {
		t.Fatal(err)
	}
	longest := slices.Max(maximums)
	m := &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)), ParametersHash: "p1", CPUs: "2-3", WorstCPU: new(int32(2)),
		Fingerprint: v1alpha1.LatencyFingerprint{Kernel: "6.12", Microcode: "0x1", PlanHash: "plan-1"}, Interruptions: int64(3 + len(maximums)),
		MaximumNanoseconds: longest, StolenPartsPerMillion: 7, RepetitionMaximumsNanoseconds: maximums, Causes: []string{"LOC ×3"}, Histogram: histogram,
	}
	for _, name := range qualification.Percentiles() {
		value := int64(0)
		if name == v1alpha1.P99999 {
			value = longest
		}
		m.Percentiles = append(m.Percentiles, v1alpha1.LatencyPercentile{Percentile: name, Nanoseconds: value})
	}
	return m
}

// savedTest has two nodes: n1 has passed and become worse, n2 has failed.
func savedTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := &v1alpha1.LatencyTest{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LatencyTest"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "quiet", Generation: 1},
		Spec:       v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter, Nodes: v1alpha1.LatencyTestNodes{Profile: "trading"}},
	}
	test.Status.ObservedGeneration = 1
	test.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTestsFailed, Message: "1 of 2 nodes: Failed",
		LastTransitionTime: metav1.NewTime(time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)), ObservedGeneration: 1,
	}}
	before := measurement(t, 4000, 4500, 5000)
	before.Fingerprint.Kernel, before.Histogram = "6.11", ""
	test.Status.Results = []v1alpha1.LatencyTestResult{
		{
			Node: "n1", Activity: v1alpha1.LatencyIdle, Outcome: v1alpha1.LatencyPassed, Freshness: v1alpha1.LatencyFresh, Reason: v1alpha1.TestWithinBudget,
			Message: "within the budget", Measured: measurement(t, 6000, 8000, 7000), Previous: before,
		},
		{
			Node: "n2", Activity: v1alpha1.LatencyIdle, Outcome: v1alpha1.LatencyFailed, Freshness: v1alpha1.LatencyFresh, Reason: v1alpha1.TestMaximumExceeded,
			Message: "the longest interruption (CPU 2) was 90 µs, more than 10 µs", Measured: measurement(t, 90_000, 50_000, 60_000),
		},
	}
	return test
}

func saved(t *testing.T, test *v1alpha1.LatencyTest) string {
	t.Helper()
	data, err := yaml.Marshal(test)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, test.Name+".yaml", string(data))
}

func TestReportOfSavedTests(t *testing.T) {
	file := saved(t, savedTest(t))
	report := func(args ...string) result {
		return run(t, "", append([]string{"test", "report", "-f", file}, args...)...)
	}
	got := report()
	golden.Assert(t, got.out, "latencytest.txt")
	if got.code != ExitFindings || got.err != "" {
		t.Errorf("exit code %d, standard error %q", got.code, got.err)
	}

	var views []view.LatencyTest
	if err := json.Unmarshal([]byte(report("-o", "json").out), &views); err != nil {
		t.Fatal(err)
	}
	if len(views) != 1 || len(views[0].Nodes) != 2 || views[0].Nodes[0].Change.Trend != qualification.TrendWorse {
		t.Errorf("%+v", views)
	}

	rows, err := csv.NewReader(strings.NewReader(report("-o", "csv").out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(rows[0], "maximum_ns")
	if len(rows) != 3 || rows[1][at] != "8000" || rows[2][at] != "90000" {
		t.Errorf("%v", rows)
	}
}

func TestReportAsALogOfHistograms(t *testing.T) {
	test := savedTest(t)
	test.Status.Results[1].Measured.Histogram = ""
	got := run(t, "", "test", "report", "-f", saved(t, test), "-o", "hdr")
	if got.err != "tests/quiet/n2 has no histogram\n" {
		t.Errorf("%q", got.err)
	}
	reader := hdrhistogram.NewHistogramLogReader(strings.NewReader(got.out))
	first, err := reader.NextIntervalHistogram()
	if err != nil || first == nil {
		t.Fatalf("%v: %s", err, got.out)
	}
	if first.TotalCount() != 6 || first.Tag() != "tests/quiet/n1" || !first.ValuesAreEquivalent(first.Max(), 8000) {
		t.Errorf("%d values up to %d with tag %q", first.TotalCount(), first.Max(), first.Tag())
	}
	if next, _ := reader.NextIntervalHistogram(); next != nil {
		t.Error("there is another histogram")
	}
}

// TestReportAsAPage: the page loads nothing, shows both plots of each node, and nothing of it is taken for markup.
func TestReportAsAPage(t *testing.T) {
	test, other := savedTest(t), savedTest(t)
	test.Status.Results[1].Message = "<script>alert(1)</script>"
	other.Name, other.Status.Results = "golden", other.Status.Results[:1]
	got := run(t, "", "test", "report", "-f", saved(t, test), "-o", "html", "--reference", saved(t, other))
	if got.code != ExitFindings || got.err != "" {
		t.Fatalf("exit code %d, standard error %q", got.code, got.err)
	}
	// Two plots of each node, and one of all nodes.
	if count := strings.Count(got.out, "<svg "); count != 5 {
		t.Errorf("%d plots", count)
	}
	for _, want := range []string{"golden on n1", "<td class=\"n\">8 µs</td><td class=\"n\">5 µs</td><td class=\"n\">8 µs</td><td class=\"n\">8 µs</td>", "99.999 % (decided by one interruption)", "<td>the kernel</td><td>6.11</td><td>6.12</td>", "&lt;script&gt;"} {
		if !strings.Contains(got.out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for _, unwanted := range []string{"<script", "src=", "url("} {
		if strings.Contains(got.out, unwanted) {
			t.Errorf("%q is there", unwanted)
		}
	}
}

func TestReportOfABrokenHistogram(t *testing.T) {
	test := savedTest(t)
	test.Status.Results[0].Measured.Histogram = "QUFBQQ=="
	file := saved(t, test)
	if got := run(t, "", "test", "report", "-f", file, "-o", "html"); !strings.Contains(got.out, "no distribution: the text is no HDR histogram") {
		t.Errorf("the page does not say what is wrong: %s", got.err)
	}
	if got := run(t, "", "test", "report", "-f", file, "-o", "hdr"); got.code != ExitUsage || !strings.Contains(got.err, "the histogram of tests/quiet/n1: ") {
		t.Errorf("exit code %d, standard error %q", got.code, got.err)
	}
}

// alone is the saved test with its first node alone.
func alone(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := savedTest(t)
	test.Status.Results = test.Status.Results[:1]
	return test
}

func TestCompareTests(t *testing.T) {
	test := savedTest(t)
	now := saved(t, test)
	older := savedTest(t)
	older.Status.Results[0].Measured, older.Status.Results[1].Measured = older.Status.Results[0].Previous, measurement(t, 91_000, 95_000, 99_000)
	before := saved(t, older)
	cases := map[string]struct {
		args []string
		code int
		want []string
		err  string
	}{
		"with the run before": {
			[]string{"quiet", "-f", now}, ExitFindings,
			[]string{"n1: worse\n", "longest        5 µs", "8 µs", "the kernel     6.11", "has changed meanwhile: the kernel (6.12, was 6.11)", "n2: there are no two measurements of it"}, "",
		},
		"two files":      {[]string{before, now}, ExitFindings, []string{"n1: worse\n", "n2: better\n", "nothing that the operator knows of has changed meanwhile"}, ""},
		"the other way":  {[]string{now, before}, ExitFindings, []string{"n1: better\n", "n2: worse\n"}, ""},
		"a file, itself": {[]string{now, now}, ExitOK, []string{"n1: the same\n", "n2: the same\n"}, ""},
		"a node that was not measured before": {
			[]string{saved(t, alone(t)), now}, ExitUnknown, []string{"n1: the same\n", "n2: there are no two measurements of it"}, "",
		},
		"a node that is not measured any more": {
			[]string{now, saved(t, alone(t))}, ExitUnknown, []string{"n1: the same\n", "n2: there are no two measurements of it"}, "",
		},
		"a wrong name":      {[]string{"quite", "-f", now}, ExitUsage, nil, "error: the files hold no LatencyTest \"quite\", but quiet\n"},
		"files and files":   {[]string{now, before, "-f", now}, ExitUsage, nil, "error: give either two files, or -f FILE with one test\n"},
		"nothing to match":  {[]string{now, saved(t, &v1alpha1.LatencyTest{TypeMeta: test.TypeMeta, ObjectMeta: test.ObjectMeta, Spec: test.Spec})}, ExitUsage, nil, "holds no LatencyTest with a measured node\n"},
		"a profile instead": {[]string{"-f", write(t, "p.yaml", profileText)}, ExitUsage, nil, "error: the files hold no LatencyTest\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"test", "compare"}, tc.args...)...)
			if got.code != tc.code || tc.err == "" && got.err != "" || !strings.Contains(got.err, tc.err) {
				t.Errorf("exit code %d, standard error %q", got.code, got.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q is missing in:\n%s", want, got.out)
				}
			}
		})
	}
}

func TestRunTestWithoutACluster(t *testing.T) {
	file := saved(t, savedTest(t))
	withLabels := savedTest(t)
	withLabels.Labels = map[string]string{"team": "trading"}
	labelled := saved(t, withLabels)
	cases := map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"as a manifest": {
			args: []string{"quiet", "--profile", "trading", "--duration", "10m", "--repetitions", "3", "--maximum", "10us", "--percentile", "p9999=5us", "--dry-run"},
			out: `apiVersion: lowlatency.dev/v1alpha1
kind: LatencyTest
metadata:
  name: quiet
  namespace: lowlatency-operator-agents
spec:
  nodes:
    profile: trading
  kind: Jitter
  durationSeconds: 600
  repetitions: 3
  budget:
    maximumNanoseconds: 10000
    percentiles:
      - percentile: P9999
        nanoseconds: 5000
`,
		},
		"of a file":             {args: []string{"-f", file, "--dry-run"}, out: "apiVersion: lowlatency.dev/v1alpha1\nkind: LatencyTest\nmetadata:\n  name: quiet\n  namespace: tests\nspec:\n  nodes:\n    profile: trading\n  kind: Jitter\n"},
		"nothing":               {code: ExitUsage, err: "error: name the LatencyTest that is to be run, or give one with -f FILE\n"},
		"no nodes":              {args: []string{"quiet", "--maximum", "10us"}, code: ExitUsage, err: "error: a LatencyTest that exists is run as it is: "},
		"two ways":              {args: []string{"quiet", "--profile", "a", "--pool", "b", "--dry-run"}, code: ExitUsage, err: "needs exactly one of profile, bypassNICPool, nodeSelector and names."},
		"a wrong percentile":    {args: []string{"quiet", "--profile", "a", "--percentile", "P98=5us", "--dry-run"}, code: ExitUsage, err: `Unsupported value: "P98"`},
		"no length":             {args: []string{"quiet", "--profile", "a", "--percentile", "P99", "--dry-run"}, code: ExitUsage, err: "error: --percentile: \"P99\" is not written as P9999=5us\n"},
		"too long":              {args: []string{"quiet", "--profile", "a", "--duration", "48h", "--dry-run"}, code: ExitUsage, err: "spec.durationSeconds"},
		"a fraction":            {args: []string{"quiet", "--profile", "a", "--duration", "1500ms", "--dry-run"}, code: ExitUsage, err: "--duration: 1.5s are no whole seconds"},
		"a file and flags":      {args: []string{"-f", file, "--cpus", "2"}, code: ExitUsage, err: "-f FILE says all about the LatencyTest"},
		"a file without a test": {args: []string{"-f", write(t, "p.yaml", profileText)}, code: ExitUsage, err: "the files hold 0 LatencyTests, and one is run"},
		"another namespace": {
			args: []string{"-f", file, "-n", "other", "--dry-run"}, code: ExitUsage,
			err: "error: -n other: the file has LatencyTest quiet of namespace tests: leave -n out, or change the file\n",
		},
		"the same namespace": {
			args: []string{"-f", labelled, "-n", "tests", "--dry-run"},
			out: "apiVersion: lowlatency.dev/v1alpha1\nkind: LatencyTest\nmetadata:\n  name: quiet\n  namespace: tests\n  labels:\n    team: trading\n" +
				"spec:\n  nodes:\n    profile: trading\n  kind: Jitter\n",
		},
		"nothing stolen":                     {args: []string{"quiet", "--profile", "a", "--stolen", "0", "--dry-run"}, code: ExitUsage, err: "error: --stolen: 0 cannot be asked for: the least bound is 1 part per million"},
		"no interruption":                    {args: []string{"quiet", "--profile", "a", "--maximum", "0", "--dry-run"}, code: ExitUsage, err: "error: --maximum: 0 cannot be asked for: the least bound is 1ns"},
		"no CPUs":                            {args: []string{"quiet", "--profile", "a", "--cpus=0", "--dry-run"}, code: ExitUsage, err: "error: --cpus: 0 cannot be asked for: without the flag, the operator chooses\n"},
		"a bound of 0 of a test that exists": {args: []string{"quiet", "--maximum", "0s"}, code: ExitUsage, err: "error: --maximum: 0 cannot be asked for"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append([]string{"test", "run"}, tc.args...)...)
			if got.code != tc.code || got.out != tc.out || tc.err == "" && got.err != "" || !strings.Contains(got.err, tc.err) {
				t.Errorf("exit code %d, standard error %q\n%s", got.code, got.err, got.out)
			}
		})
	}
}

// testServer is an API server with one LatencyTest, which goes on with each look at it.
type testServer struct {
	mutex sync.Mutex
	test  *v1alpha1.LatencyTest
	// becomes are what is made of the test before each look.
	becomes []func(*v1alpha1.LatencyTest)
	// written are the bodies of requests that write.
	written []string
	// log is that of the pod of job-1, and shut says that nobody may read it.
	log  string
	shut bool
	// reads are how often the test was asked for; all after brokenAfter reads are answered by an error, up to brokenUntil, where they are set.
	reads, brokenAfter, brokenUntil int
}

// isBroken counts a look at the test, and reports whether it is answered by an error.
func (s *testServer) isBroken() bool {
	s.reads++
	return s.brokenAfter > 0 && s.reads > s.brokenAfter && s.reads <= s.brokenUntil
}

// isOfPods answers what is asked about the pods of Jobs.
func (s *testServer) isOfPods(w http.ResponseWriter, r *http.Request) bool {
	const pods = "/api/v1/namespaces/tests/pods"
	switch {
	case !strings.HasPrefix(r.URL.Path, pods):
		return false
	case s.shut:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "pods is forbidden"})
	case r.URL.Path == pods && r.URL.Query().Get("labelSelector") == "batch.kubernetes.io/job-name=job-1":
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "job-1-x"}}]}`)
	case r.URL.Path == pods+"/job-1-x/log" && r.URL.Query().Get("tailLines") != "" && r.URL.Query().Get("limitBytes") != "":
		_, _ = io.WriteString(w, s.log)
	default:
		w.WriteHeader(http.StatusBadRequest)
	}
	return true
}

func (s *testServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.isOfPods(w, r) {
		s.serveTest(w, r)
	}
}

// serveTest answers what is asked about the test.
func (s *testServer) serveTest(w http.ResponseWriter, r *http.Request) {
	const collection = "/apis/lowlatency.dev/v1alpha1/namespaces/tests/latencytests"
	answer := func(code int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(value)
	}
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodPost && r.URL.Path == collection && s.test != nil:
		answer(http.StatusConflict, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Code: http.StatusConflict})
	case r.Method == http.MethodPost && r.URL.Path == collection:
		s.written, s.test = append(s.written, string(body)), &v1alpha1.LatencyTest{}
		_ = json.Unmarshal(body, s.test)
		s.test.Generation = 1
		answer(http.StatusCreated, s.test)
	case s.test == nil || r.URL.Path != collection+"/"+s.test.Name:
		answer(http.StatusNotFound, metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	case r.Method == http.MethodPatch:
		s.written = append(s.written, string(body))
		s.test.Generation++
		s.test.Spec.Run++
		answer(http.StatusOK, s.test)
	default:
		s.serveStatus(answer)
	}
}

// serveStatus answers with the test, which becomes another then, or with an error where the server is broken.
func (s *testServer) serveStatus(answer func(code int, value any)) {
	if s.isBroken() {
		answer(http.StatusInternalServerError, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError, Message: "etcd is away",
		})
		return
	}
	answer(http.StatusOK, s.test)
	if len(s.becomes) > 0 {
		s.becomes[0](s.test)
		s.becomes = s.becomes[1:]
	}
}

// expectModest wants a missing right to be said once, and nothing that a terminal would obey.
func expectModest(t *testing.T, complaints string) {
	t.Helper()
	if strings.Count(complaints, "may not read") > 1 || strings.Contains(complaints, "\x1b") {
		t.Errorf("the standard error is %q", complaints)
	}
}

// expectSaid wants words in what was written.
func expectSaid(t *testing.T, written string, words []string) {
	t.Helper()
	for _, want := range words {
		if !strings.Contains(written, want) {
			t.Errorf("%q is missing in:\n%s", want, written)
		}
	}
}

func TestRunAndWatch(t *testing.T) {
	seen := func(test *v1alpha1.LatencyTest) {
		test.Status.ObservedGeneration = test.Generation
		test.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Activity: v1alpha1.LatencyRunning, Message: "pod x measures"}}
	}
	done := func(test *v1alpha1.LatencyTest) {
		test.Status.Results = []v1alpha1.LatencyTestResult{{
			Node: "n1", Activity: v1alpha1.LatencyIdle, Outcome: v1alpha1.LatencyPassed, Freshness: v1alpha1.LatencyFresh, Measured: measurement(t, 6000),
		}}
		test.Status.Results[0].Measured.Run = test.Spec.Run
	}
	measures := func(job string) *v1alpha1.LatencyTest {
		test := savedTest(t)
		seen(test)
		test.Status.Results[0].Job = job
		return test
	}
	inVain := func(test *v1alpha1.LatencyTest) {
		done(test)
		test.Status.Results[0].Measured.Run--
	}
	cases := map[string]struct {
		server  *testServer
		args    []string
		code    int
		out     []string
		err     []string
		written string
	}{
		"made and watched": {
			&testServer{becomes: []func(*v1alpha1.LatencyTest){seen, done}}, []string{"run", "quiet", "--nodes", "n1", "--maximum", "10us"}, ExitOK,
			[]string{"n1    Passed   6 µs"}, []string{"LatencyTest tests/quiet was made\n", "n1  Running  pod x measures\n", "n1  Idle  Passed\n"}, `"names":["n1"]`,
		},
		"followed by the log of its pod": {
			&testServer{test: measures("job-1"), becomes: []func(*v1alpha1.LatencyTest){done}, log: "so far: warming up\nelse\nso far: 64 bytes: 7 half round trips \x1b[2J\nand more\n"},
			[]string{"watch", "quiet"}, ExitOK, []string{"Passed"}, []string{"n1  so far: 64 bytes: 7 half round trips �[2J\n"}, "",
		},
		"followed without a right": {
			&testServer{test: measures("job-1"), becomes: []func(*v1alpha1.LatencyTest){seen, done}, shut: true},
			[]string{"watch", "quiet"}, ExitOK, []string{"Passed"}, []string{"n1  Running", "which you may not read: pods is forbidden\n"}, "",
		},
		"followed before it starts": {
			&testServer{test: measures("job-2"), becomes: []func(*v1alpha1.LatencyTest){done}},
			[]string{"watch", "quiet"}, ExitOK, []string{"Passed"}, []string{"n1  Running"}, "",
		},
		"run again": {
			&testServer{test: savedTest(t), becomes: []func(*v1alpha1.LatencyTest){func(test *v1alpha1.LatencyTest) { test.ResourceVersion = "7" }, seen, done}},
			[]string{"run", "quiet"}, ExitOK, []string{"Passed"}, []string{"run 1 of LatencyTest tests/quiet\n"}, `"spec":{"run":1}`,
		},
		"run again in vain": {
			&testServer{test: savedTest(t), becomes: []func(*v1alpha1.LatencyTest){seen, seen, inVain}},
			[]string{"run", "quiet"}, ExitUnknown, []string{"n1: run 1 gave no result; what is shown is of run 0"}, nil, `"spec":{"run":1}`,
		},
		"detached":           {&testServer{}, []string{"run", "quiet", "--nodes", "n1", "--detach"}, ExitOK, nil, []string{"was made"}, `"n1"`},
		"it is there":        {&testServer{test: savedTest(t)}, []string{"run", "quiet", "--nodes", "n1"}, ExitUsage, nil, []string{"there is a LatencyTest tests/quiet: run it again by its name alone"}, ""},
		"it is not there":    {&testServer{}, []string{"run", "quiet"}, ExitUsage, nil, []string{"there is no LatencyTest tests/quiet: say with -n"}, ""},
		"watched to the end": {&testServer{test: savedTest(t)}, []string{"watch", "quiet"}, ExitFindings, []string{"n2    Failed"}, []string{"n2  Idle  Failed"}, ""},
		"it takes too long": {
			&testServer{test: &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "quiet", Generation: 1}}},
			[]string{"watch", "quiet", "--timeout", "50ms"}, ExitUsage, nil, []string{"error: not all nodes have a result after 50ms"}, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			t.Cleanup(server.Close)
			got := run(t, "", append([]string{"test", tc.args[0], "--kubeconfig", kubeconfig(t, server.URL), "-n", "tests"}, tc.args[1:]...)...)
			if got.code != tc.code {
				t.Errorf("exit code %d, want %d", got.code, tc.code)
			}
			expectSaid(t, got.out, tc.out)
			expectSaid(t, got.err, tc.err)
			expectModest(t, got.err)
			if written := strings.Join(tc.server.written, "\n"); !strings.Contains(written, tc.written) || tc.written == "" && written != "" {
				t.Errorf("written was %q", written)
			}
		})
	}
}

// pingPongTest has one node whose way to a server was measured twice.
func pingPongTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := savedTest(t)
	test.Name, test.Spec.Kind = "way", v1alpha1.LatencyTestPingPong
	test.Spec.Traffic = &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}}
	over := func(median int64) *v1alpha1.LatencyMeasurement {
		m := measurement(t, 40_000, 45_000, 50_000)
		m.WorstCPU, m.Interruptions, m.StolenPartsPerMillion, m.Causes = nil, 0, 0, nil
		m.Percentiles = []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 2 * median}, {Percentile: v1alpha1.P99, Nanoseconds: 30_000}}
		m.Network = &v1alpha1.NetworkMeasurement{
			Server: "n9", ServerKernel: "6.12", Path: v1alpha1.LatencyPathKernel, PathMessage: "the kernel counted 2 for 2 messages",
			RepetitionMediansNanoseconds: []int64{median, median + 1, median + 2},
			Sizes: []v1alpha1.SizeMeasurement{
				{
					Bytes: 64, Lost: 1, LatencyFigures: v1alpha1.LatencyFigures{
						Samples: 300_000, MinimumNanoseconds: 900, MeanNanoseconds: median + 100, MaximumNanoseconds: 45_000, DeviationNanoseconds: 1300,
						Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: median}, {Percentile: v1alpha1.P99, Nanoseconds: 20_000}},
					},
				},
				{
					Bytes: 1024, LatencyFigures: v1alpha1.LatencyFigures{
						Samples: 200, MinimumNanoseconds: 1900, MeanNanoseconds: 2 * median, MaximumNanoseconds: 50_000,
						Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 2 * median}},
					},
				},
			},
		}
		return m
	}
	test.Status.Results = test.Status.Results[:1]
	test.Status.Results[0].Measured, test.Status.Results[0].Previous = over(5000), over(4000)
	test.Status.Results = append(test.Status.Results, v1alpha1.LatencyTestResult{
		Node: "n2", Activity: v1alpha1.LatencyIdle, Outcome: v1alpha1.LatencyInconclusive, Reason: v1alpha1.TestPeerVanished, Message: "the server went away",
	})
	return test
}

func TestReportOfPingPong(t *testing.T) {
	file := saved(t, pingPongTest(t))
	got := run(t, "", "test", "report", "-f", file)
	compared := run(t, "", "test", "compare", "-f", file)
	golden.Assert(t, got.out+"\n"+compared.out, "latencytest-pingpong.txt")
	if got.code != ExitUnknown || compared.code != ExitFindings {
		t.Errorf("exit codes %d and %d", got.code, compared.code)
	}
}

func TestRowsOfPingPong(t *testing.T) {
	file := saved(t, pingPongTest(t))
	rows, err := csv.NewReader(strings.NewReader(run(t, "", "test", "report", "-f", file, "-o", "csv").out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got := make([][]string, 0, len(rows))
	for _, row := range rows {
		at := func(name string) string { return row[slices.Index(rows[0], name)] }
		got = append(got, []string{at("bytes"), at("p99_ns"), at("maximum_ns"), at("stolen_ppm"), at("reason")})
	}
	want := [][]string{
		{"bytes", "p99_ns", "maximum_ns", "stolen_ppm", "reason"},
		{"64", "20000", "45000", "", v1alpha1.TestWithinBudget},
		{"1024", "", "50000", "", v1alpha1.TestWithinBudget},
		{"", "", "", "", v1alpha1.TestPeerVanished},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPageOfPingPong(t *testing.T) {
	file := saved(t, pingPongTest(t))
	page := run(t, "", "test", "report", "-f", file, "-o", "html").out
	for _, want := range []string{"64 bytes: 99 %", "1024 bytes: longest", "to a server on node n9", "path Kernel", "bytes of a message<", "50 %, the run before<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "stolen") {
		t.Error("the page says what was stolen, which was not measured")
	}
}

func TestPingPongOfFlags(t *testing.T) {
	got := run(t, "", "test", "run", "way", "--nodes=n1", "--kind=PingPong", "--server-nodes=n2,n3", "--transport=UDP", "--wait=Block", "--sizes=64,1472",
		"--percentile=P99=20us", "--loss=0", "--path=Kernel", "--repetitions=3", "--dry-run")
	golden.Assert(t, got.out, "latencytest-pingpong.yaml")
	for name, args := range map[string][]string{
		"messages without a kind": {"--transport=UDP"},
		"no size of a datagram":   {"--kind=PingPong", "--transport=UDP", "--sizes=65536"},
		"stolen time of messages": {"--kind=PingPong", "--stolen=5"},
	} {
		if got := run(t, "", append([]string{"test", "run", "way", "--nodes=n1", "--dry-run"}, args...)...); got.code != ExitUsage || got.err == "" {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.err)
		}
	}
}

// rateSweepTest has one node that was measured twice at two rates, of which the second was not reached the second time.
func rateSweepTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := pingPongTest(t)
	test.Name, test.Spec.Kind = "rates", v1alpha1.LatencyTestRateSweep
	result := &test.Status.Results[0]
	for i, m := range []*v1alpha1.LatencyMeasurement{result.Previous, result.Measured} {
		m.Network.Sizes = m.Network.Sizes[:1]
		figures := m.Network.Sizes[0].LatencyFigures
		reached := []int64{50_000, 41_234}[i]
		m.Network.Rates = []v1alpha1.RateMeasurement{
			{MessagesPerSecond: 10_000, AchievedPerSecond: 10_000, Bytes: 64, Sent: 600_000, FromIntended: figures, FromSent: figures},
			{
				MessagesPerSecond: 50_000, AchievedPerSecond: reached, Bytes: 64, Sent: 3_000_000, Lost: 7, Gaps: 2, Duplicates: 1, Reordered: 3, Late: 900,
				MaximumLatenessNanoseconds: 80_000, AnswersLost: 4, FromIntended: figures, FromSent: v1alpha1.LatencyFigures{Samples: figures.Samples, MaximumNanoseconds: 30_000},
			},
		}
	}
	result.Outcome, result.Reason = v1alpha1.LatencyInconclusive, v1alpha1.TestGeneratorLimit
	result.Message = "50000 messages a second: the generator was the limit: it sent 41234"
	return test
}

// expectReports holds what report and compare print of a test, with its rows, against a golden file, and wants words on its page. The file has the
// test for other reports.
func expectReports(t *testing.T, test *v1alpha1.LatencyTest, goldenFile string, onPage ...string) (file string) {
	t.Helper()
	file = saved(t, test)
	report, compared := run(t, "", "test", "report", "-f", file), run(t, "", "test", "compare", "-f", file)
	rows := run(t, "", "test", "report", "-f", file, "-o", "csv")
	golden.Assert(t, report.out+"\n"+compared.out+"\n"+rows.out, goldenFile)
	page := run(t, "", "test", "report", "-f", file, "-o", "html").out
	for _, want := range onPage {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	return file
}

func TestReportOfARateSweep(t *testing.T) {
	expectReports(t, rateSweepTest(t), "latencytest-ratesweep.txt",
		"10000 a second: 99 %", "50000 a second: late messages", "50000 a second: messages a second", "from when it left", ">messages a second<", ">50000<")
}

func TestRateSweepOfFlags(t *testing.T) {
	got := run(t, "", "test", "run", "rates", "--nodes=n1", "--kind=RateSweep", "--server-nodes=n2", "--transport=UDP", "--duration=200s", "--rates=1000,20000", "--bytes=256",
		"--answers=200000", "--percentile=P999=50us", "--loss=10", "--late=100", "--dry-run")
	golden.Assert(t, got.out, "latencytest-ratesweep.yaml")
	for name, args := range map[string][]string{
		"rates without a kind":     {"--rates=1000"},
		"a schedule over TCP":      {"--kind=RateSweep", "--transport=TCP"},
		"rates of a ping-pong":     {"--kind=PingPong", "--rates=1000"},
		"late without a schedule":  {"--kind=PingPong", "--late=1"},
		"its own node as a server": {"--kind=RateSweep", "--transport=UDP", "--server-nodes=n1"},
		"a rate beyond all":        {"--kind=RateSweep", "--transport=UDP", "--rates=5000001"},
		"sizes of a rate sweep":    {"--kind=RateSweep", "--transport=UDP", "--sizes=64"},
	} {
		if got := run(t, "", append([]string{"test", "run", "rates", "--nodes=n1", "--dry-run"}, args...)...); got.code != ExitUsage || got.err == "" {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.err)
		}
	}
}

// loadSearchTest has one node on which a search was made twice, and found a lower rate the second time.
func loadSearchTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := rateSweepTest(t)
	test.Name, test.Spec.Kind = "load", v1alpha1.LatencyTestLoadSearch
	result := &test.Status.Results[0]
	for i, m := range []*v1alpha1.LatencyMeasurement{result.Previous, result.Measured} {
		best := []int32{49_800, 41_000}[i]
		m.Network.Load = &v1alpha1.LoadMeasurement{
			BestPassPerSecond: best, LowestFailPerSecond: best + 300, Confirmation: v1alpha1.LoadConfirmed, FailReason: v1alpha1.TestLoss, FailMessage: "7 were lost",
			Trials: 22, RepetitionBestPassesPerSecond: []int32{best + 20, best, best + 10},
		}
		low, pass := m.Network.Rates[0], m.Network.Rates[0]
		fail := m.Network.Rates[1]
		low.Trial, pass.Trial, fail.Trial = v1alpha1.LoadTrialLow, v1alpha1.LoadTrialBestPass, v1alpha1.LoadTrialLowestFail
		pass.MessagesPerSecond, pass.AchievedPerSecond, fail.MessagesPerSecond = best, int64(best), best+300
		m.Network.Rates = []v1alpha1.RateMeasurement{low, pass, fail}
	}
	result.Outcome, result.Reason = v1alpha1.LatencyFailed, v1alpha1.TestRate
	result.Message = "41000 messages a second passed, and the budget asks for 45000: 7 were lost"
	return test
}

func TestReportOfASearch(t *testing.T) {
	expectReports(t, loadSearchTest(t), "latencytest-loadsearch.txt",
		"highest rate that passed, messages a second", "lowest rate above it that did not", "best pass: 99 %", "lowest fail: lost messages")
}

func TestSearchOfFlags(t *testing.T) {
	got := run(t, "", "test", "run", "load", "--nodes=n1", "--kind=LoadSearch", "--server-nodes=n2", "--transport=UDP", "--bytes=256", "--percentile=P99=50us", "--loss=10",
		"--growth=300", "--confirm=10m", "--highest=500000", "--at-least=200000", "--path=Kernel", "--dry-run")
	golden.Assert(t, got.out, "latencytest-loadsearch.yaml")
	if plain := run(t, "", "test", "run", "load", "--nodes=n1", "--kind=LoadSearch", "--transport=UDP", "--dry-run"); strings.Contains(plain.out, "budget") || strings.Contains(plain.out, "loadSearch") {
		t.Errorf("what nobody asks for is written: %s", plain.out)
	}
	for name, args := range map[string][]string{
		"a rate without a kind":      {"--at-least=1000"},
		"a search of a sweep":        {"--kind=RateSweep", "--transport=UDP", "--growth=300"},
		"rates of a search":          {"--kind=LoadSearch", "--transport=UDP", "--rates=1000"},
		"a search over TCP":          {"--kind=LoadSearch", "--transport=TCP"},
		"a bound on single messages": {"--kind=LoadSearch", "--transport=UDP", "--maximum=1ms"},
		"parts of seconds":           {"--kind=LoadSearch", "--transport=UDP", "--trial=1500ms"},
		"trials that descend":        {"--kind=LoadSearch", "--transport=UDP", "--trial=20s", "--confirm=10s"},
		"more than the highest":      {"--kind=LoadSearch", "--transport=UDP", "--highest=10", "--at-least=11"},
		"more than all probes carry": {"--kind=LoadSearch", "--transport=UDP", "--percentile=P99999=1ms"},
	} {
		if got := run(t, "", append([]string{"test", "run", "load", "--nodes=n1", "--dry-run"}, args...)...); got.code != ExitUsage || got.err == "" {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.err)
		}
	}
}

// TestNumberOfMessages: a flag raises it, so that a percentile of the budget is carried.
func TestNumberOfMessages(t *testing.T) {
	args := []string{"test", "run", "way", "--nodes=n1", "--kind=PingPong", "--sizes=64", "--percentile=P99999=1ms", "--dry-run"}
	if got := run(t, "", args...); got.code != ExitUsage || !strings.Contains(got.err, "P99999 10000000; raise it (1000000 when omitted)") {
		t.Errorf("%d, %s", got.code, got.err)
	}
	if got := run(t, "", slices.Concat(args, []string{"--messages=12000000"})...); got.code != 0 || !strings.Contains(got.out, "messagesPerSize: 12000000") {
		t.Errorf("%d, %s, %s", got.code, got.out, got.err)
	}
	if got := run(t, "", "test", "run", "quiet", "--nodes=n1", "--messages=1000", "--dry-run"); got.code != ExitUsage {
		t.Errorf("messages of jitter: %d, %s", got.code, got.out)
	}
}

// comparisonTest has one node on which a container was compared with its host twice, and became slower than it the second time.
func comparisonTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := pingPongTest(t)
	test.Name, test.Spec.Kind = "pods", v1alpha1.LatencyTestContainerVersusHost
	result := &test.Status.Results[0]
	for i, m := range []*v1alpha1.LatencyMeasurement{result.Previous, result.Measured} {
		parts := []int64{1010, 1240}[i]
		container, host := v1alpha1.SideMeasurement{Side: v1alpha1.LatencySideContainer}, v1alpha1.SideMeasurement{Side: v1alpha1.LatencySideHost}
		for _, side := range []*v1alpha1.SideMeasurement{&container, &host} {
			side.Path, side.PathMessage, side.CPUs, side.Histogram = v1alpha1.LatencyPathKernel, "the kernel counted 2 for 2 messages", "2", m.Histogram
			side.Sizes, side.RepetitionMediansNanoseconds = m.Network.Sizes, []int64{5000, 5000, 5000, 5000, 5000}
		}
		container.RepetitionMediansNanoseconds = nil
		for _, more := range []int64{0, 1, 2, 3, 4} {
			container.RepetitionMediansNanoseconds = append(container.RepetitionMediansNanoseconds, 5*parts+more)
		}
		for _, ratio := range []v1alpha1.LatencyRatio{{Bytes: 64, Percentile: v1alpha1.P50}, {Bytes: 64, Percentile: v1alpha1.P99}, {Bytes: 1024, Percentile: v1alpha1.P50}} {
			ratio.PartsPerThousand, ratio.LowPartsPerThousand, ratio.HighPartsPerThousand = parts, parts-12, parts+9
			container.Ratios = append(container.Ratios, ratio)
		}
		m.Network.Sizes, m.Histogram = nil, ""
		m.Network.Comparison = &v1alpha1.ComparisonMeasurement{Base: v1alpha1.LatencySideHost, Sides: []v1alpha1.SideMeasurement{container, host}}
	}
	result.Outcome, result.Reason = v1alpha1.LatencyFailed, v1alpha1.TestRatio
	result.Message = "container to host, 64 bytes, 50 %: 1.240 (1.228 to 1.249) times as long, and the budget has 1.050"
	return test
}

func TestReportOfAComparison(t *testing.T) {
	file := expectReports(t, comparisonTest(t), "latencytest-comparison.txt",
		"container to host, 64 bytes: 99 %", ">1.240<", "host, 1024 bytes: longest", ">container to host, 50 %<", ">container to host, tail<", "times as long, and the interval",
		">container, 50 %<", ">host, 50 %<", ">container<", ">host<")
	log := run(t, "", "test", "report", "-f", file, "-o", "hdr").out
	for _, want := range []string{"Tag=tests/pods/n1/container/64bytes,", "Tag=tests/pods/n1/host/64bytes,"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

// stacksTest has one node on which the kernel's sockets, first, were compared with Onload and with a side that fell back to them.
func stacksTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := comparisonTest(t)
	test.Name, test.Spec.Kind = "stacks", v1alpha1.LatencyTestStackComparison
	pool := v1alpha1.TestEnd{BypassNICPool: "x2"}
	test.Spec.Traffic.Client, test.Spec.StackComparison = nil, &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
		{Name: "kernel", Path: v1alpha1.LatencyPathKernel},
		{Name: "onload", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: pool}, Server: v1alpha1.StackServer{TestEnd: pool}},
		{Name: "onload-host", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: pool, Network: v1alpha1.TestNetworkHost}, Server: v1alpha1.StackServer{TestEnd: pool}},
	}}
	result := &test.Status.Results[0]
	for _, m := range []*v1alpha1.LatencyMeasurement{result.Previous, result.Measured} {
		c := m.Network.Comparison
		onload, kernel := c.Sides[0], c.Sides[1]
		kernel.Side, kernel.WantedPath, c.Base = "kernel", v1alpha1.LatencyPathKernel, "kernel"
		onload.Side, onload.WantedPath, onload.Path, onload.PathMessage = "onload", v1alpha1.LatencyPathAccelerated, v1alpha1.LatencyPathAccelerated, "the kernel counted 0 for 2 messages"
		other := kernel
		other.Side, other.WantedPath, other.Causes = "onload-host", v1alpha1.LatencyPathAccelerated, []string{"eth0 (7 a second)", "softirq NET_RX (9 a second)"}
		c.Sides = []v1alpha1.SideMeasurement{kernel, onload, other}
	}
	result.Outcome, result.Reason = v1alpha1.LatencyInconclusive, v1alpha1.TestPathsDiffer
	result.Message = "messages did not go the way that their side says, so that nothing can be compared: onload-host was to go Accelerated and went Kernel (the kernel counted 2 for 2 messages)"
	return test
}

// TestReportOfStacks: all sides are in one table, each with its path, and one that took another has no ratio.
func TestReportOfStacks(t *testing.T) {
	file := expectReports(t, stacksTest(t), "latencytest-stacks.txt",
		"onload to kernel, 64 bytes: 99 %", ">onload to kernel, 50 %<", ">kernel, 50 %<", ">onload-host, 50 %<", "onload: path Accelerated, and Accelerated was wanted: the kernel counted 0 for 2 messages<",
		"onload-host: path Kernel, and Accelerated was wanted: the kernel counted 2 for 2 messages; counted with the longest: eth0 (7 a second), softirq NET_RX (9 a second)<")
	log := run(t, "", "test", "report", "-f", file, "-o", "hdr").out
	if !strings.Contains(log, "Tag=tests/stacks/n1/onload/64bytes,") {
		t.Errorf("the log lacks a side:\n%s", log)
	}
}

func TestComparisonOfFlags(t *testing.T) {
	got := run(t, "", "test", "run", "pods", "--nodes=n1", "--kind=ContainerVersusHost", "--server-nodes=n2", "--transport=UDP", "--sizes=64,1472",
		"--ratio=P50=1.05", "--ratio=p99=1.2", "--path=Kernel", "--repetitions=8", "--dry-run")
	golden.Assert(t, got.out, "latencytest-comparison.yaml")
	for name, args := range map[string][]string{
		"a ratio without a kind":     {"--ratio=P50=1.05"},
		"a ratio of a ping-pong":     {"--kind=PingPong", "--ratio=P50=1.05"},
		"a ratio of a search":        {"--kind=LoadSearch", "--transport=UDP", "--ratio=P50=1.05"},
		"no ratio":                   {"--kind=ContainerVersusHost", "--ratio=P50=fast"},
		"a ratio that is no number":  {"--kind=ContainerVersusHost", "--ratio=P50=NaN"},
		"a ratio beyond all":         {"--kind=ContainerVersusHost", "--ratio=P50=1001"},
		"a ratio of nought":          {"--kind=ContainerVersusHost", "--ratio=P50=0"},
		"too few repetitions":        {"--kind=ContainerVersusHost", "--ratio=P50=1.05", "--repetitions=4"},
		"a bound on single messages": {"--kind=ContainerVersusHost", "--maximum=1ms"},
		"rates":                      {"--kind=ContainerVersusHost", "--rates=1000"},
		"sides that no flag says":    {"--kind=StackComparison", "--ratio=P50=0.7"},
	} {
		if got := run(t, "", append([]string{"test", "run", "pods", "--nodes=n1", "--dry-run"}, args...)...); got.code != ExitUsage || got.err == "" {
			t.Errorf("%s: exit code %d, %s", name, got.code, got.err)
		}
	}
}

// TestManagementInterruptsAreReported in every form, and never as none where nobody knows.
func TestManagementInterruptsAreReported(t *testing.T) {
	for words, counted := range map[string]*v1alpha1.LatencyManagementInterrupts{
		"over the measurement, no system management interrupt":                     {State: v1alpha1.StateCounted, Count: new(int64(0))},
		"over the measurement, system management interrupts of CPU 2: 3":           {State: v1alpha1.StateCounted, CPU: new(int32(2)), Count: new(int64(3))},
		"over the measurement, system management interrupts unknown (CAP_PERFMON)": {State: v1alpha1.StateUnknown, UnknownReason: "CAP_PERFMON"},
	} {
		test := pingPongTest(t)
		measured := test.Status.Results[0].Measured
		measured.ManagementInterrupts, measured.Network = counted, nil
		file := saved(t, test)
		for form, want := range map[string]string{"text": "n1: " + words, "html": "<p>" + words + "</p>"} {
			if got := run(t, "", "test", "report", "-f", file, "-o", form).out; !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
				t.Errorf("%s lacks %q:\n%s", form, want, got)
			}
		}
		rows, err := csv.NewReader(strings.NewReader(run(t, "", "test", "report", "-f", file, "-o", "csv").out)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		want := "unknown"
		if counted.Count != nil {
			want = strconv.FormatInt(*counted.Count, 10)
		}
		if got := rows[1][slices.Index(rows[0], "management_interrupts")]; got != want {
			t.Errorf("%s: csv has %q", words, got)
		}
	}
}

// hasWords wants a report of a form to have words, however they are broken into lines.
func hasWords(t *testing.T, file, form, want string) {
	t.Helper()
	if got := run(t, "", "test", "report", "-f", file, "-o", form).out; !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
		t.Errorf("%s lacks %q:\n%s", form, want, got)
	}
}

// TestIsolationIsReported in every form, by the same words.
func TestIsolationIsReported(t *testing.T) {
	test := pingPongTest(t)
	test.Status.Results[0].Measured.Isolation = &v1alpha1.LatencyIsolation{
		RunQueue:   v1alpha1.LatencyRunQueue{State: v1alpha1.StateCounted, CPU: new(int32(3)), WaitedNanoseconds: 24e6, CountedNanoseconds: 2e9},
		IdleStates: v1alpha1.LatencyIdleStates{State: v1alpha1.StateUnknown, UnknownReason: "no idle states are listed"},
		Busy:       &v1alpha1.LatencyBusy{State: v1alpha1.StateCounted, CPU: new(int32(3)), Percent: new(int32(97))},
	}
	test.Status.Results[0].Measured.Network.ServerCounts = v1alpha1.ServerCounts{
		ServerCPUs: "7", ServerCauses: []string{"Interrupt 9 sdb 60 a second", "Softirq NET_RX 9 a second"}, ServerCountedInterrupts: v1alpha1.CountedInterruptsAll,
		ServerIsolation: &v1alpha1.LatencyIsolation{
			RunQueue:   v1alpha1.LatencyRunQueue{State: v1alpha1.StateCounted, CPU: new(int32(7)), WaitedNanoseconds: 5e6, CountedNanoseconds: 1e9},
			IdleStates: v1alpha1.LatencyIdleStates{State: v1alpha1.StateCounted, CountedNanoseconds: 1e9},
		},
	}
	file := saved(t, test)
	const atServer = "at the server, over the measurement, threads waited 5 ms a second in the run queue of CPU 7, no idle state was entered"
	for form, want := range map[string]string{
		"text": "n1: " + atServer, "html": "<p>" + atServer + "</p>", "json": `"serverCauses": [ "Interrupt 9 sdb 60 a second", "Softirq NET_RX 9 a second" ]`,
	} {
		hasWords(t, file, form, want)
	}
	hasWords(t, file, "html", "<p>counted at the server: Interrupt 9 sdb 60 a second, Softirq NET_RX 9 a second</p>")
	const words = "at the client, over the measurement, threads waited 12 ms a second in the run queue of CPU 3, idle states unknown (no idle states are listed), CPU 3 was at work for 97 % of the time"
	for form, want := range map[string]string{"text": "n1: " + words, "html": "<p>" + words + "</p>", "json": `"waitedNanoseconds": 24000000`} {
		hasWords(t, file, form, want)
	}
	rows, err := csv.NewReader(strings.NewReader(run(t, "", "test", "report", "-f", file, "-o", "csv").out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	columns := []string{"run_queue_cpu", "run_queue_wait_ns_per_second", "idle_cpu", "idle_state", "idle_entries_per_second", "busy_cpu", "busy_percent", "server_cpus", "server_causes", "server_run_queue_cpu", "server_run_queue_wait_ns_per_second", "server_idle_cpu", "server_busy_percent"}
	got := make([][]string, 0, len(rows))
	for _, row := range rows[1:] {
		cells := make([]string, 0, len(columns))
		for _, column := range columns {
			cells = append(cells, row[slices.Index(rows[0], column)])
		}
		got = append(got, cells)
	}
	counted := []string{"3", "12000000", "", "", "unknown", "3", "97", "7", "Interrupt 9 sdb 60 a second; Softirq NET_RX 9 a second", "7", "5000000", "", ""}
	if diff := cmp.Diff([][]string{counted, counted, make([]string, len(columns))}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
