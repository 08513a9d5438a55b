// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package atomicfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

func expectAlone(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 || left[0].Name() != "a.json" {
		t.Errorf("the folder holds %v, %v; want a.json alone", left, err)
	}
}
