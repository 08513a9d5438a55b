// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package objects

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// GoldenPlans are the planner's own golden plans for the machines of its tests, by the names of their files: with them, what
// is judged is what comes out of planning. The folder is internal/plan/testdata as seen from the test.
func GoldenPlans(t testing.TB, folder string) map[string]*plan.NodePlan {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("golden plans in %s: %v, %v", folder, files, err)
	}
	plans := map[string]*plan.NodePlan{}
	for _, file := range files {
		content, err := os.ReadFile(file) // #nosec G304 -- a file of this repository
		if err != nil {
			t.Fatal(err)
		}
		var golden struct {
			Plan *plan.NodePlan `json:"plan"`
		}
		if err := json.Unmarshal(content, &golden); err != nil || golden.Plan == nil {
			t.Fatalf("reading %s: plan %v, %v", file, golden.Plan, err)
		}
		plans[strings.TrimSuffix(filepath.Base(file), ".json")] = golden.Plan
	}
	return plans
}
