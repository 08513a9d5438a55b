// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
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

// TestExplainSaysWhatIsNotDecided: a check whose failure makes no condition False is not shown as if it did.
func TestExplainSaysWhatIsNotDecided(t *testing.T) {
	deciding, lesser := 0, 0
	for _, check := range verify.Catalogue() {
		decides := check.Decides(v1alpha1.OutcomeFailed, v1alpha1.FailOnImpact) != nil
		shown := strings.Join(strings.Fields(run(t, "", "explain", string(check.ID)).out), " ")
		if said := strings.Contains(shown, "lesser findings that its message counts"); said == decides {
			t.Errorf("a failure of %s decides its conditions: %v; explain says that it does not: %v", check.ID, decides, said)
		}
		if decides {
			deciding++
		} else {
			lesser++
		}
	}
	if deciding == 0 || lesser == 0 {
		t.Errorf("%d checks decide, and %d do not", deciding, lesser)
	}
}
