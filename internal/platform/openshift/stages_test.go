// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"slices"
	"strings"
	"testing"
)

// TestObjectsBeforeNodes: what is written for a plan that is new does not wait for the nodes of another one.
func TestObjectsBeforeNodes(t *testing.T) {
	c := newCluster(t, "n1", "n2")
	rendered(c)
	steps, _ := c.steps(plannedNodes{"n1": "a1", "n2": "zz"}.intent(c))
	label := slices.IndexFunc(steps, func(s string) bool { return strings.HasPrefix(s, "label n1 ") })
	letGo := slices.Index(steps, "apply MachineConfigPool "+tradingPool)
	if label < 0 || letGo != len(steps)-1 {
		t.Fatalf("steps are %q, want n1 labelled, and its machine config pool let go in the end", steps)
	}
	written := 0
	for i, s := range steps {
		if i == label || i == letGo {
			continue
		}
		written++
		if i > label {
			t.Errorf("%q comes after %q", s, steps[label])
		}
	}
	if want := len(writing()); written != want {
		t.Errorf("steps are %q, want %d of the plan that is new", steps, want)
	}
}
