// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/hack/pictures/latencypicture"
)

// TestPicturesAreUpToDate compares the pictures of the documents with what is drawn now.
func TestPicturesAreUpToDate(t *testing.T) {
	pictures, err := draw(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, drawn := range pictures {
		shown, err := os.ReadFile(filepath.Join("../../docs/images", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(drawn, shown) {
			t.Errorf("docs/images/%s is not what is drawn now: make pictures", name)
		}
	}
}

// TestRecordingsAreOfTheSamples: a sample that has become another is measured anew.
func TestRecordingsAreOfTheSamples(t *testing.T) {
	for _, name := range latencypicture.Samples() {
		sample, err := latencypicture.ReadSample("../..", name)
		if err != nil {
			t.Fatal(err)
		}
		recording, err := latencypicture.Read("../..", name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(latencypicture.Scaled(sample), recording.Test.Spec); diff != "" {
			t.Errorf("the sample %s is not what was recorded: make latency-pictures (-sample +recorded):\n%s", name, diff)
		}
	}
}

// TestEverySampleHasAPicture but the one of jitter, which docs/images/jitter.svg shows, and that of Onload, of which no figure is published: frames of AF_XDP
// show the form.
func TestEverySampleHasAPicture(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/qualification/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	without := []string{"jitter", "stack-comparison", "kustomization"}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".yaml"); !slices.Contains(without, name) && !slices.Contains(latencypicture.Samples(), name) {
			t.Errorf("the sample %s has no picture", name)
		}
	}
}

// TestKeepDemo keeps the shown act of a recording, and refuses a recording without it.
func TestKeepDemo(t *testing.T) {
	repository := t.TempDir()
	if err := os.MkdirAll(filepath.Join(repository, recorded), 0o755); err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join(repository, "recording")
	for text, want := range map[string]string{
		"one\r\n── 4. A node goes wrong ──\r\ntwo\x1b[K\r\n\x1b[1A\rthree\x1b[K\r\n": "── 4. A node goes wrong ──\nthree\n", "one\r\n": "",
	} {
		if err := os.WriteFile(recording, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := keepDemo(repository, recording); (err != nil) != (want == "") {
			t.Errorf("%q: %v", text, err)
		} else if want != "" {
			if kept, err := os.ReadFile(filepath.Join(repository, recorded, demoFile)); err != nil || string(kept) != want {
				t.Errorf("kept %q, %v, want %q", kept, err, want)
			}
		}
	}
}
