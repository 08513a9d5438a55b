// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/licences"
)

// TestDockerfilesNotices runs what the Dockerfiles do for the licences of third-party modules, with the files that they copy and no others:
// images that an engine builds carry the same text as those of this program.
func TestDockerfilesNotices(t *testing.T) {
	operator, err := recipeOf(operatorImage)
	must(t, err)
	for name, packages := range map[string][]string{
		"Dockerfile":                    operator.packages(),
		"config/must-gather/Dockerfile": {"./cmd/kubectl-lowlatency"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.Abs("../..")
			must(t, err)
			instructions := instructionsOf(t, filepath.Join(root, name))
			step := slices.IndexFunc(instructions, func(one []string) bool { return one[0] == "RUN" && slices.Contains(one, "./thirdparty") })
			if step < 0 || !carriesNotices(instructions) {
				t.Fatalf("%s does not write /licenses/THIRD-PARTY", name)
			}
			workspace := t.TempDir()
			for _, one := range instructions[:step] {
				if one[0] == "COPY" {
					copyAll(t, root, workspace, one[1:])
				}
			}
			on := "linux/" + runtime.GOARCH
			command := exec.Command("sh", "-c", strings.ReplaceAll(strings.Join(instructions[step][1:], " "), "/workspace", workspace))
			command.Dir = workspace
			command.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "GOFLAGS=")
			if text, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, text)
			}
			got, err := os.ReadFile(filepath.Join(workspace, "THIRD-PARTY"))
			must(t, err)
			modules, err := licences.Of(t.Context(), root, []string{on}, packages...)
			must(t, err)
			if want := licences.Texts(modules); !bytes.Equal(got, want) || len(modules) < 10 {
				t.Errorf("%s writes %d bytes, make image %d for %d modules", name, len(got), len(want), len(modules))
			}
		})
	}
}

// carriesNotices reports whether the last stage takes the text over.
func carriesNotices(instructions [][]string) bool {
	return slices.ContainsFunc(instructions, func(one []string) bool {
		return slices.Equal(one, []string{"COPY", "--from=builder", "/workspace/THIRD-PARTY", "/licenses/THIRD-PARTY"})
	})
}

// instructionsOf are the instructions of a Dockerfile, split into words.
func instructionsOf(t *testing.T, path string) [][]string {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	var instructions [][]string
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", " ")) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			instructions = append(instructions, words)
		}
	}
	return instructions
}

// copyAll copies files and folders of the repository, as COPY does.
func copyAll(t *testing.T, root, workspace string, paths []string) {
	t.Helper()
	last := len(paths) - 1
	into := filepath.Join(workspace, paths[last])
	must(t, os.MkdirAll(into, 0o755))
	for _, path := range paths[:last] {
		from := filepath.Join(root, path)
		if strings.HasSuffix(path, "/") {
			must(t, os.CopyFS(into, os.DirFS(from)))
			continue
		}
		content, err := os.ReadFile(from)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(into, filepath.Base(path)), content, 0o644))
	}
}
