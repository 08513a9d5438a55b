// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPicturesAreUpToDate compares the pictures of the documents with what is drawn now.
func TestPicturesAreUpToDate(t *testing.T) {
	folder := t.TempDir()
	if err := draw(t.Context(), "../..", folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node.svg", "dataflow.svg"} {
		drawn, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		shown, err := os.ReadFile(filepath.Join("../../docs/images", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(drawn, shown) {
			t.Errorf("docs/images/%s is not what is drawn now: make pictures", name)
		}
	}
}
