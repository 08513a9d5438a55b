// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDockerfilesCopyWhatIsThere: the build's context is what .dockerignore leaves of the repository.
func TestDockerfilesCopyWhatIsThere(t *testing.T) {
	left := leftBy(t, "../.dockerignore")
	for _, name := range []string{"../Dockerfile", "../traffic.Dockerfile", "must-gather/Dockerfile"} {
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

// TestEnginesBuildBothImages: each target that has an engine do something does it to the image of the operator and to that of measurements.
func TestEnginesBuildBothImages(t *testing.T) {
	for target, want := range map[string][]string{
		"docker-build":  {"engine build … -t one:1 .", "engine build … -f traffic.Dockerfile -t two:2 ."},
		"docker-push":   {"engine push one:1", "engine push two:2"},
		"docker-buildx": {"engine buildx build --push --platform=linux/s390x … -t one:1 .", "engine buildx build --push --platform=linux/s390x … -f traffic.Dockerfile -t two:2 ."},
	} {
		t.Run(target, func(t *testing.T) {
			make := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", target, "CONTAINER_TOOL=engine", "IMG=one:1", "TRAFFIC_IMG=two:2",
				"VERSION=v1", "COMMIT=abc", "PLATFORMS=linux/s390x")
			make.Dir = ".."
			printed, err := make.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, printed)
			}
			got := strings.ReplaceAll(strings.TrimSpace(string(printed)), "--build-arg VERSION=v1 --build-arg COMMIT=abc", "…")
			if diff := cmp.Diff(want, strings.Split(got, "\n")); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDeploymentsHaveBothImages: what a target applies runs the images that it was told.
func TestDeploymentsHaveBothImages(t *testing.T) {
	for _, target := range []string{"deploy", "undeploy", "build-installer"} {
		make := exec.CommandContext(t.Context(), "make", "--no-print-directory", "-n", target, "IMG=one:1", "TRAFFIC_IMG=two:2", "CONFIG=openshift", "COMPONENTS=a b", "KUSTOMIZE=Makefile")
		make.Dir = ".."
		printed, err := make.CombinedOutput()
		if err != nil || !strings.Contains(string(printed), "hack/kustomize-build.sh Makefile openshift one:1 two:2 a b ") {
			t.Errorf("make %s: %s, %v", target, printed, err)
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
