// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hostfile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	. "github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

func open(t *testing.T) (*Root, string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root, folder
}

func read(t *testing.T, root *Root, name string) State {
	t.Helper()
	s, err := root.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// own is a state whose owner is who runs the test.
func own(s State) State {
	s.UID, s.GID = os.Getuid(), os.Getgid()
	return s
}

func TestReplace(t *testing.T) {
	root, folder := open(t)
	steps := []struct {
		name string
		s    State
	}{
		{"/etc/a", File("one", 0o640)}, {"/etc/a", File("two", 0o4755)}, {"/etc/a", LinkTo("/dev/null")}, {"/etc/a", File("", 0o600)},
		{"/etc/a", State{}}, {"/etc/b", NewFolder()}, {"/etc/b/c", File("x", 0o644)}, {"/etc/b/c", State{}}, {"/etc/b", State{}},
	}
	for i, step := range steps {
		want := step.s
		if want.Type != Absent {
			want = own(want)
		}
		if err := Replace(root, step.name, want); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		got := read(t, root, step.name)
		got.Label = ""
		if len(got.Content) == 0 && len(want.Content) == 0 {
			got.Content, want.Content = nil, nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
	if left, err := os.ReadDir(filepath.Join(folder, "etc")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestLabels: the labels of SELinux are read and put back, those of links, too.
func TestLabels(t *testing.T) {
	root, _ := open(t)
	for i, s := range []State{File("one", 0o644), LinkTo("/dev/null"), NewFolder()} {
		name := fmt.Sprintf("/etc/%d", i)
		want := own(s)
		want.Label = fmt.Sprintf("system_u:object_r:lab%d_t:s0", i)
		err := Replace(root, name, want)
		if os.Getuid() != 0 {
			if !errors.Is(err, unix.EPERM) {
				t.Errorf("who is not root sets a label: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := read(t, root, name); got.Label != want.Label {
			t.Errorf("the label of a %s is %q, want %q", s.Type, got.Label, want.Label)
		}
	}
}

// refused reports whether a link was not followed: the kernel takes it for none of the folders that are looked for.
func refused(err error) bool { return errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) }

func TestNoLinkIsFollowed(t *testing.T) {
	root, folder := open(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(folder, "etc", "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "file"), filepath.Join(folder, "etc", "link")); err != nil {
		t.Fatal(err)
	}
	if err := Replace(root, "/etc/out/a", own(File("x", 0o644))); !refused(err) {
		t.Errorf("writing over a link in the way: %v", err)
	}
	if _, err := root.Read("/etc/out/a"); !refused(err) {
		t.Errorf("reading over a link in the way: %v", err)
	}
	if err := root.Append("/etc/link", []byte("x")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("appending to what a link points to: %v", err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("written outside: %v, %v", left, err)
	}
}

func TestLinksAreReplaced(t *testing.T) {
	root, folder := open(t)
	if err := os.Symlink("/outside", filepath.Join(folder, "etc", "link")); err != nil {
		t.Fatal(err)
	}
	if s := read(t, root, "/etc/link"); s.Type != Link {
		t.Errorf("a link is read as %v", s)
	}
	for _, name := range []string{"/etc/link", "/../../outside"} {
		if err := Replace(root, name, own(File("x", 0o644))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/etc/link", "/outside"} {
		if s := read(t, root, name); s.Type != Regular {
			t.Errorf("%s was not replaced, or not in the root: %v", name, s)
		}
	}
}

// TestVariables are played by files: no file system here protects them, or wants them written with one call.
func TestVariables(t *testing.T) {
	const name = VariablesFolder + "/LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
	root, folder := open(t)
	if err := os.MkdirAll(filepath.Join(folder, VariablesFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"\x07\x00\x00\x00a", "\x07\x00\x00\x00b"} {
		if err := Replace(root, name, File(content, 0o644)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(own(File(content, 0o644)), read(t, root, name)); diff != "" {
			t.Errorf("the variable (-want +got):\n%s", diff)
		}
	}
	if left, err := os.ReadDir(filepath.Join(folder, VariablesFolder)); err != nil || len(left) != 1 {
		t.Errorf("something is beside it: %v, %v", left, err)
	}
	if err := RemoveLeftover(root, name); err != nil {
		t.Error(err)
	}
	if err := Replace(root, name, State{}); err != nil || read(t, root, name).Type != Absent {
		t.Errorf("it is not removed: %v", err)
	}
	if err := Replace(root, "/sys/firmware/efi/efivars/none/a", File("x", 0o644)); err == nil {
		t.Error("something is written where no variable is")
	}
}

func TestAppendAndTruncate(t *testing.T) {
	root, _ := open(t)
	if err := Replace(root, "/etc/a", own(File("one", 0o600))); err != nil {
		t.Fatal(err)
	}
	if err := root.Append("/etc/a", []byte(" two")); err != nil {
		t.Fatal(err)
	}
	if err := root.Truncate("/etc/a", 5); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, root, "/etc/a").Content); got != "one t" {
		t.Errorf("content %q", got)
	}
	if err := root.Append("/etc/absent", nil); !errors.Is(err, unix.ENOENT) {
		t.Errorf("appending to nothing: %v", err)
	}
	// What an interrupted write has left is in nobody's way.
	if err := root.Create(Beside("/etc/a"), own(File("left", 0o600))); err != nil {
		t.Fatal(err)
	}
	if err := Replace(root, "/etc/a", own(File("new", 0o600))); err != nil {
		t.Fatal(err)
	}
	if s := read(t, root, Beside("/etc/a")); s.Type != Absent {
		t.Error("what an interrupted write has left is still there")
	}
}
