// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package samples

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes empty files into a folder of the test and returns it.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindsFilesAndJobs(t *testing.T) {
	dir := tree(
		t, "config/samples/minimal.yaml", "config/samples/kustomization.yaml", "config/samples/README.md", "config/samples/b/pool.yaml",
		"config/samples/b/x/pool.yaml", "config/samples/b/profile.yaml", "config/samples/b/kustomization.yaml", "config/samples/a/jitter.yaml",
	)
	folder := filepath.Join(dir, "config/samples")
	files, err := Files(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"a/jitter.yaml", "b/pool.yaml", "b/profile.yaml", "b/x/pool.yaml", "minimal.yaml"}
	for i := range want {
		want[i] = filepath.Join(folder, want[i])
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	jobs, err := Jobs(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(folder, "b")}, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	for pool, want := range map[string]string{"b/pool.yaml": "b/profile.yaml", "b/x/pool.yaml": "b/profile.yaml", "a/pool.yaml": ""} {
		got, err := ProfileFor(filepath.Join(folder, pool))
		if want == "" {
			if err == nil {
				t.Errorf("%s has the profile %s", pool, got)
			}
		} else if err != nil || got != filepath.Join(folder, want) {
			t.Errorf("the profile of %s is %s (%v), want %s", pool, got, err, want)
		}
	}
}

func TestNothingIsAnError(t *testing.T) {
	dir := tree(t, "config/samples/kustomization.yaml")
	if files, err := Files(dir); err == nil {
		t.Errorf("found %v", files)
	}
	if jobs, err := Jobs(dir); err == nil {
		t.Errorf("found %v", jobs)
	}
	if files, err := Files(filepath.Join(dir, "absent")); err == nil {
		t.Errorf("found %v", files)
	}
}
