// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

func TestExplain(t *testing.T) {
	got := run(t, "", "explain", "cpu.nohz-full")
	if got.code != ExitOK || got.err != "" {
		t.Fatalf("exit code %d: %s", got.code, got.err)
	}
	golden.Assert(t, got.out, "explain.txt")
}

// TestExplainOfAGroup lists the checks of a group, with and without its dot, and no others.
func TestExplainOfAGroup(t *testing.T) {
	for _, name := range []string{"irq", "irq."} {
		got := run(t, "", "explain", name, "-o", "jsonpath={range [*]}{.check} {end}")
		checks := strings.Fields(got.out)
		if got.code != ExitOK || len(checks) < 2 {
			t.Fatalf("explain %s = %d, %q, %q", name, got.code, got.out, got.err)
		}
		for _, check := range checks {
			if !strings.HasPrefix(check, "irq.") {
				t.Errorf("explain %s lists %s", name, check)
			}
		}
	}
}

func TestExplainListsEveryCheck(t *testing.T) {
	got := run(t, "", "explain")
	for _, check := range verify.Catalogue() {
		if !strings.Contains(got.out, string(check.ID)+" ") {
			t.Errorf("explain does not list %s", check.ID)
		}
		one := run(t, "", "explain", string(check.ID), "-o", "jsonpath={.check}: {.fix}")
		if want := string(check.ID) + ": " + check.Fix; one.code != ExitOK || strings.TrimSpace(one.out) != want {
			t.Errorf("explain %s = %d, %q, %q, want %q", check.ID, one.code, one.out, one.err, want)
		}
	}
}
