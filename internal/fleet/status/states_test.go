// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"slices"
	"testing"

	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// recorder collects the conditions of the cases of a test, by their names. In testdata/states they are what other programs are
// tried on that judge conditions: test/gitops reads them.
type recorder map[string][]metav1.Condition

func (r recorder) record(name string, conditions []metav1.Condition) {
	recorded := slices.Clone(conditions)
	for i := range recorded {
		recorded[i].LastTransitionTime = metav1.Time{}
	}
	r[name] = recorded
}

func (r recorder) assert(t *testing.T, kind string) {
	t.Helper()
	content, err := yaml.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(content), "states/"+kind+"/"+t.Name()+".yaml")
}
