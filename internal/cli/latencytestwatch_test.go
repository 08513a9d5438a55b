// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"net/http/httptest"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// runningTest is one whose only node is measured.
func runningTest(t *testing.T) *v1alpha1.LatencyTest {
	t.Helper()
	test := savedTest(t)
	test.UID = "first"
	test.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Activity: v1alpha1.LatencyRunning, Message: "pod x measures"}}
	return test
}

// TestWatchGoesOn: what the cluster does not tell for a moment ends no watch, and what is no result of the run that is watched is none.
func TestWatchGoesOn(t *testing.T) {
	passed := func(test *v1alpha1.LatencyTest) {
		test.Status.Results = []v1alpha1.LatencyTestResult{{
			Node: "n1", Activity: v1alpha1.LatencyIdle, Outcome: v1alpha1.LatencyPassed, Freshness: v1alpha1.LatencyFresh, Measured: measurement(t, 6000),
		}}
	}
	inVain := runningTest(t)
	inVain.Spec.Run = 1
	goesOn := func(*v1alpha1.LatencyTest) {}
	const away = "etcd is away; the test goes on, and is looked at again until that works\n"
	cases := map[string]struct {
		server *testServer
		args   []string
		code   int
		out    string
		err    []string
		// unsaid is no word of the standard error.
		unsaid string
	}{
		"a run in vain": {
			&testServer{test: inVain, becomes: []func(*v1alpha1.LatencyTest){goesOn, passed}}, []string{"quiet"}, ExitUnknown,
			"n1: run 1 gave no result; what is shown is of run 0", nil, "error",
		},
		"away for a moment": {
			&testServer{test: runningTest(t), becomes: []func(*v1alpha1.LatencyTest){goesOn, passed}, brokenAfter: 2, brokenUntil: 4}, []string{"quiet"}, ExitOK,
			"Passed", []string{away, "reading LatencyTest quiet works again\n"}, "error",
		},
		"away for too long": {
			&testServer{test: runningTest(t), brokenAfter: 1, brokenUntil: 1000}, []string{"quiet", "--timeout", "3s"}, ExitUsage,
			"", []string{away, "error: it is not known after 3s whether all nodes have a result: reading LatencyTest quiet: "}, "works again",
		},
		"deleted": {
			&testServer{test: runningTest(t), becomes: []func(*v1alpha1.LatencyTest){func(test *v1alpha1.LatencyTest) { test.Name = "gone" }}}, []string{"quiet"}, ExitUnknown,
			"", []string{"LatencyTest tests/quiet was deleted while it was watched\n"}, "error",
		},
		"made anew": {
			&testServer{test: runningTest(t), becomes: []func(*v1alpha1.LatencyTest){goesOn, func(test *v1alpha1.LatencyTest) {
				passed(test)
				test.UID = "second"
			}}},
			[]string{"quiet"}, ExitUnknown, "", []string{"LatencyTest tests/quiet was deleted while it was watched, and another one has its name\n"}, "error",
		},
		"not there": {
			&testServer{}, []string{"quiet"}, ExitUsage, "", []string{"error: there is no LatencyTest tests/quiet: say with -n in which namespace it is\n"}, "--profile",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			t.Cleanup(server.Close)
			got := run(t, "", append([]string{"test", "watch", "--kubeconfig", kubeconfig(t, server.URL), "-n", "tests"}, tc.args...)...)
			if got.code != tc.code {
				t.Errorf("exit code %d, want %d", got.code, tc.code)
			}
			if tc.out == "" && got.out != "" {
				t.Errorf("printed: %s", got.out)
			}
			expectSaid(t, got.out, []string{tc.out})
			expectSaid(t, got.err, tc.err)
			if strings.Contains(got.err, tc.unsaid) || strings.Count(got.err, away) > 1 {
				t.Errorf("the standard error is %q", got.err)
			}
		})
	}
}
