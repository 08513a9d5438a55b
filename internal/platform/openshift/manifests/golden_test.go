// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
)

const updateFlag = "update"

func TestMain(m *testing.M) {
	flag.Bool(updateFlag, false, "rewrite the golden files in testdata")
	flag.Parse()
	os.Exit(m.Run())
}

func updating() bool { return flag.Lookup(updateFlag).Value.String() == "true" }

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
			path := filepath.Join("testdata", name+".yaml")
			if updating() {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatalf("writing the golden file: %v", err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("reading the golden file (go test ./internal/platform/openshift/manifests -update writes it): %v", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs (-want +got):\n%s", path, diff)
			}
		})
	}
}
