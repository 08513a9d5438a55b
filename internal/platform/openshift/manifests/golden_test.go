// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"testing"

	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
)

// TestGolden compares every byte of what would be applied or printed with a file that a person has read.
func TestGolden(t *testing.T) {
	for name, in := range examples(t) {
		t.Run(name, func(t *testing.T) {
			objects, err := Objects(in)
			if err != nil {
				t.Fatalf("Objects: %v", err)
			}
			got, err := manifest.YAML(objects)
			if err != nil {
				t.Fatalf("YAML: %v", err)
			}
			golden.Assert(t, string(got), name+".yaml")
		})
	}
}
