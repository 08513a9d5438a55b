// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hostfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEachWriteIsSynced: what is written, and each change of names, is made to survive a power cut before the next step. The tests of power cuts
// take that for granted.
func TestEachWriteIsSynced(t *testing.T) {
	folder := t.TempDir()
	root, err := OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	var synced []string
	root.sync = func(file *os.File) error {
		synced = append(synced, filepath.Base(file.Name()))
		return file.Sync()
	}
	root.settle = func(file *os.File) error {
		synced = append(synced, "file system of "+filepath.Base(file.Name()))
		return syncFileSystem(file)
	}
	owned := func(s State) State {
		s.UID, s.GID = os.Getuid(), os.Getgid()
		return s
	}
	for _, step := range []struct {
		what string
		do   func() error
		want []string
	}{
		{"a file is put", func() error { return Replace(root, "/a", owned(File("one", 0o600))) }, []string{filepath.Base(Beside("/a")), "/"}},
		{"a record is added", func() error { return root.Append("/a", []byte("two")) }, []string{"a"}},
		{"a record is cut off", func() error { return root.Truncate("/a", 3) }, []string{"a"}},
		{"a folder is made", func() error { return Replace(root, "/b", owned(NewFolder())) }, []string{"b", "/"}},
		{"a folder of boot files is made", func() error { return Replace(root, "/boot", owned(NewFolder())) }, []string{"boot", "/"}},
		{"a boot file is put", func() error { return Replace(root, "/boot/a", owned(File("one", 0o600))) },
			[]string{filepath.Base(Beside("/boot/a")), "boot", "file system of boot"}},
		{"a boot file is removed", func() error { return Replace(root, "/boot/a", State{}) }, []string{"boot", "file system of boot"}},
		{"a file is removed", func() error { return Replace(root, "/a", State{}) }, []string{"/"}},
	} {
		synced = nil
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if diff := cmp.Diff(step.want, synced); diff != "" {
			t.Errorf("%s: synced are (-want +got):\n%s", step.what, diff)
		}
	}
}
