// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestDockerfilesCopyWhatIsThere: the build's context is what .dockerignore leaves of the repository.
func TestDockerfilesCopyWhatIsThere(t *testing.T) {
	left := leftBy(t, "../.dockerignore")
	for _, name := range []string{"../Dockerfile", "must-gather/Dockerfile"} {
		paths := copiedBy(t, name)
		const least = 5
		if len(paths) < least {
			t.Errorf("%s copies %d paths", name, len(paths))
		}
		for _, path := range paths {
			if _, err := os.Stat("../" + path); err != nil {
				t.Errorf("%s copies %s: %v", name, path, err)
			}
			if !slices.ContainsFunc(left, func(pattern string) bool { return leaves(pattern, path) }) {
				t.Errorf("%s copies %s, which .dockerignore keeps out of the context", name, path)
			}
		}
	}
}

// leftBy are the patterns of what an ignore file leaves in the context.
func leftBy(t *testing.T, file string) []string {
	t.Helper()
	var left []string
	for line := range strings.Lines(text(t, file)) {
		if pattern, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			left = append(left, pattern)
		}
	}
	return left
}

// leaves reports whether a pattern is a path, or that of the folder it is in.
func leaves(pattern, path string) bool {
	folder, isFolder := strings.CutSuffix(pattern, "**")
	return pattern == path || isFolder && strings.HasSuffix(folder, "/") && strings.HasPrefix(path, folder)
}

// copiedBy are the paths of the context that a Dockerfile copies.
func copiedBy(t *testing.T, file string) []string {
	t.Helper()
	var paths []string
	for line := range strings.Lines(text(t, file)) {
		fields := strings.Fields(line)
		const shortest = 3 // COPY FROM TO.
		if len(fields) >= shortest && fields[0] == "COPY" && !strings.HasPrefix(fields[1], "--from") {
			paths = append(paths, fields[1:len(fields)-1]...)
		}
	}
	return paths
}

func text(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
