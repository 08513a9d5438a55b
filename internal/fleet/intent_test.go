// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import "testing"

func TestGoverns(t *testing.T) {
	intent := Intent{Selected: []string{"a", "c"}}
	for node, want := range map[string]bool{"a": true, "b": false, "c": true, "d": false} {
		if got := intent.Governs(node); got != want {
			t.Errorf("Governs(%s) = %v, want %v", node, got, want)
		}
	}
}
