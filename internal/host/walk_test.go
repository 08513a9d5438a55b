// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"io/fs"
	"path"
	"testing"
)

// TestNamesAreTakenApartAsPathDoes holds the short ways for clean relative names against package path.
func TestNamesAreTakenApartAsPathDoes(t *testing.T) {
	for _, name := range []string{".", "..", "a", "../a", "a/b", "sys/devices/pci0000:00/net"} {
		if got, want := dirOf(name), path.Dir(name); got != want {
			t.Errorf("dirOf(%q) = %q, want %q", name, got, want)
		}
		for _, base := range []string{"", ".", "..", "a", "a.b"} {
			if got, want := join(name, base), path.Join(name, base); got != want {
				t.Errorf("join(%q, %q) = %q, want %q", name, base, got, want)
			}
		}
	}
}

// looks counts how often a view opens a directory.
type looks struct {
	view
	opened map[string]int
}

func (l looks) openDirectory(name string) error {
	l.opened[name]++
	return l.view.(directoryOpener).openDirectory(name)
}

// TestADirectoryIsLookedForOnce asks for several files of directories that are there and that are not.
func TestADirectoryIsLookedForOnce(t *testing.T) {
	tree, err := openDirectory(files{"/sys/kernel/here": "1"}.write(t))
	must(t, err)
	defer func() { must(t, tree.Close()) }()
	counting := looks{tree.view(), map[string]int{}}
	defer counting.release()
	w := newWalk(counting)
	for _, name := range []string{"sys/kernel/here", "sys/kernel/missing", "sys/none/a", "sys/none/b", "sys/none/c/d"} {
		if _, err := w.resolve(name); (name != "sys/kernel/here") != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("resolve(%q): %v", name, err)
		}
	}
	for name, count := range counting.opened {
		if count != 1 {
			t.Errorf("%s was looked for %d times", name, count)
		}
	}
}
