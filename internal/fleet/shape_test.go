// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

func TestShapes(t *testing.T) {
	first, second := &plan.NodePlan{Profile: "a"}, &plan.NodePlan{Profile: "b"}
	var shapes Shapes
	shapes.Add("n1", &Planned{Plan: second, Hash: "2", Signature: "x"})
	shapes.Add("n2", &Planned{Plan: first, Hash: "1", Signature: "z"})
	shapes.Add("n3", &Planned{Plan: second, Hash: "2", Signature: "w"})
	shapes.Add("impossible", &Planned{Findings: []plan.Finding{{Rule: "plan.cpus-exist"}}})
	shapes.Add("unknown", nil)
	want := []Shape{
		{Hash: "1", Plan: first, Signature: "z", Nodes: []string{"n2"}},
		{Hash: "2", Plan: second, Signature: "w", Nodes: []string{"n1", "n3"}},
	}
	if diff := cmp.Diff(want, shapes.List()); diff != "" {
		t.Errorf("shapes mismatch (-want +got):\n%s", diff)
	}
	if got := (&Shapes{}).List(); len(got) > 0 {
		t.Errorf("without nodes there are the shapes %v", got)
	}
}
