// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestMarkdownFindings: one line for all nodes, of two sentences.
func TestMarkdownFindings(t *testing.T) {
	found := plan.Finding{Severity: v1alpha1.SeverityHigh, Field: "spec.cpus", Message: "2 CPUs_are too few.", Remedy: "Take more."}
	nodes := []NodePlan{
		{View: view.Plan{Node: "n1", Findings: []plan.Finding{found}}}, {View: view.Plan{Node: "n2", Findings: []plan.Finding{found}}},
	}
	want := "\n#### Findings\n\n- **High** `spec.cpus`: 2 CPUs\\_are too few. Take more. (n1, n2)\n"
	if diff := cmp.Diff(want, markdownFindings(nodes)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if got := markdownFindings([]NodePlan{{View: view.Plan{Node: "n1"}}}); got != "" {
		t.Errorf("without findings there is %q", got)
	}
}
