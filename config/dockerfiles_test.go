// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"os"
	"strings"
	"testing"
)

// TestDockerfilesCopyWhatIsThere: the build's context is what .dockerignore leaves of the repository.
func TestDockerfilesCopyWhatIsThere(t *testing.T) {
	ignored, err := os.ReadFile("../.dockerignore")
	if err != nil {
		t.Fatal(err)
	}
	isLeft := func(path string) bool {
		for line := range strings.Lines(string(ignored)) {
			kept, isKept := strings.CutPrefix(strings.TrimSpace(line), "!")
			if isKept && (kept == path || strings.HasPrefix(path, strings.TrimSuffix(kept, "**")) && strings.HasSuffix(kept, "/**")) {
				return true
			}
		}
		return false
	}
	for _, name := range []string{"../Dockerfile", "must-gather/Dockerfile"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		copied := 0
		for line := range strings.Lines(string(content)) {
			fields := strings.Fields(line)
			if len(fields) < 3 || fields[0] != "COPY" || strings.HasPrefix(fields[1], "--from") {
				continue
			}
			for _, path := range fields[1 : len(fields)-1] {
				copied++
				if _, err := os.Stat("../" + path); err != nil || !isLeft(path) {
					t.Errorf("%s copies %s, which is not in the context: %v", name, path, err)
				}
			}
		}
		if copied < 5 {
			t.Errorf("%s copies %d paths", name, copied)
		}
	}
}
