// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pipelines tell a measurement that has failed from one that cannot be judged, and both from wrong arguments.
func TestExitCodesOfMeasurements(t *testing.T) {
	file := filepath.Join(t.TempDir(), "samples")
	if err := os.WriteFile(file, []byte(strings.Repeat("2000\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		limit string
		code  int
		says  string
	}{
		"passed":       {"50=2us", ExitOK, ""},
		"failed":       {"50=999ns", ExitFindings, "error: failed (OverBudget)"},
		"inconclusive": {"99.999=2us", ExitUnknown, "error: inconclusive (TooFewSamples)"},
		"wrong limit":  {"50=2", ExitUsage, "error: --limit 50=2"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", "probe", "samples", "--program", "zfudppingpong", "--limit", tc.limit, "64="+file)
			if got.code != tc.code || !strings.HasPrefix(got.err, tc.says) || (got.err == "") != (tc.says == "") {
				t.Errorf("ends with %d: %s", got.code, got.err)
			}
		})
	}
}
