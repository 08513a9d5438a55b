// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package atomicfile_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/renameio/v2"

	"github.com/lowlatency-dev/lowlatency-operator/internal/atomicfile"
)

// TestReplace: the file has the new content and its mode, whatever the umask, and nothing is left beside it.
func TestReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.json")
	for content, mode := range map[string]os.FileMode{"one": 0o644, "two": 0o600} {
		if err := atomicfile.Replace(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("content is %q, %v; want %q", got, err, content)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("mode is %v, %v; want %v", info.Mode(), err, mode)
		}
	}
	expectAlone(t, folder)
}

// TestReaders: a reader that has the old file open goes on to read it.
func TestReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if err := atomicfile.Replace(path, []byte("new and longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16)
	if count, err := reader.Read(got); err != nil || string(got[:count]) != "old" {
		t.Errorf("the reader sees %q, %v", got[:count], err)
	}
}

func TestFailures(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.json")
	if err := os.MkdirAll(filepath.Join(path, "more"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"a folder is in the way": path, "no folder": filepath.Join(folder, "none", "a.json")} {
		t.Run(name, func(t *testing.T) {
			if err := atomicfile.Replace(target, []byte("x"), 0o600); err == nil || !strings.Contains(err.Error(), target) {
				t.Errorf("error is %v, want one that names the file", err)
			}
		})
	}
	expectAlone(t, folder)
}

// TestRemoveLeftovers: what is left of a writer that was killed goes, and nothing else.
func TestRemoveLeftovers(t *testing.T) {
	const killed, writing, others, foreign = ".a.json123456", ".a.json654321", ".b.json123456", "a.json1"
	folder := t.TempDir()
	for _, name := range []string{killed, writing, others, foreign, ".a.json", "a.json", ".a.json12x", ".a.jsonx12"} {
		must(t, os.WriteFile(filepath.Join(folder, name), nil, 0o600))
		if name != writing {
			age(t, filepath.Join(folder, name))
		}
	}
	must(t, os.Mkdir(filepath.Join(folder, ".a.json7"), 0o700))
	age(t, filepath.Join(folder, ".a.json7"))
	steps := []struct {
		pattern string
		gone    []string
	}{{"c*.json", nil}, {"a.json", []string{killed}}, {"*.json", []string{others}}, {"[", nil}}
	want := names(t, folder)
	for _, step := range steps {
		if err := atomicfile.RemoveLeftovers(folder, step.pattern); err != nil {
			t.Fatal(err)
		}
		want = slices.DeleteFunc(want, func(name string) bool { return slices.Contains(step.gone, name) })
		if diff := cmp.Diff(want, names(t, folder)); diff != "" {
			t.Errorf("after pattern %q (-want +got):\n%s", step.pattern, diff)
		}
	}
	if err := atomicfile.RemoveLeftovers(filepath.Join(folder, "none"), "*"); err != nil {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if err := atomicfile.RemoveLeftovers(filepath.Join(folder, "a.json"), "*"); err == nil {
		t.Error("a file is no folder, and no error says so")
	}
}

// TestInterrupted: a writer that is killed leaves a file that RemoveLeftovers knows.
func TestInterrupted(t *testing.T) {
	folder := t.TempDir()
	pending, err := renameio.NewPendingFile(filepath.Join(folder, "a.json"), renameio.WithTempDir(folder))
	if err != nil {
		t.Fatal(err)
	}
	left := pending.Name()
	if err := pending.File.Close(); err != nil {
		t.Fatal(err)
	}
	age(t, left)
	if err := atomicfile.Replace(filepath.Join(folder, "a.json"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.RemoveLeftovers(folder, "a.json"); err != nil {
		t.Fatal(err)
	}
	expectAlone(t, folder)
}

// age makes a file look as if it had been written a minute ago.
func age(t *testing.T, path string) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(path, old, old))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	found := make([]string, 0, len(entries))
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}

func expectAlone(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 || left[0].Name() != "a.json" {
		t.Errorf("the folder holds %v, %v; want a.json alone", left, err)
	}
}
