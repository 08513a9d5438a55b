// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package states records the conditions that the tests of statuses come by. What other programs make of conditions, such as Argo CD and
// Flux, is tried on the records: test/gitops reads them.
package states

import (
	"slices"
	"testing"

	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Recorder holds the conditions of the cases of a test, by their names.
type Recorder map[string][]metav1.Condition

// Record notes the conditions of a case, without their times.
func (r Recorder) Record(name string, conditions []metav1.Condition) {
	recorded := slices.Clone(conditions)
	for i := range recorded {
		recorded[i].LastTransitionTime = metav1.Time{}
	}
	r[name] = recorded
}

// Assert compares what was recorded with the test's file in testdata/states, in the folder of the kind that has the conditions.
func (r Recorder) Assert(t *testing.T, kind string) {
	t.Helper()
	content, err := yaml.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(content), "states/"+kind+"/"+t.Name()+".yaml")
}
