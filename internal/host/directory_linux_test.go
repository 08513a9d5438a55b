// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestManyDirectories: a view may look into more directories than it keeps open, in any order.
func TestManyDirectories(t *testing.T) {
	tree := files{"proc/": "", "sys/": ""}
	for i := range 3 * maxOpenDirectories {
		tree[fmt.Sprintf("proc/%d/value", i)] = strconv.Itoa(i)
		tree[fmt.Sprintf("sys/"+strings.Repeat("x/", i%maxDepth)+"%d/value", i)] = strconv.Itoa(i)
	}
	opened, err := openDirectory(tree.write(t))
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	view := opened.view()
	defer view.release()
	for name, want := range tree {
		if want == "" {
			continue
		}
		if got, err := view.readFile(name, smallFile); got != want || err != nil {
			t.Fatalf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
}

// TestWhatWasListedMayChange: a name that stands for something else than when its directory was listed neither leads elsewhere nor
// blocks, and one that the listing does not know is looked at.
func TestWhatWasListedMayChange(t *testing.T) {
	root := files{
		"proc/version": "Linux\n", "proc/a/file": "x", "proc/a/pipe": "x", "proc/a/link": "x", "proc/a/was-link": linkTo + "file", "secret": "s",
	}.write(t)
	opened, err := openDirectory(root)
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	r := newReader(t.Context(), opened.view(), nil)
	defer r.walk.view.release()
	_, err = r.peekList("/proc/a", func(entry) bool { return true })
	must(t, err)
	for _, name := range []string{"pipe", "link", "was-link"} {
		must(t, os.Remove(filepath.Join(root, "proc/a", name)))
	}
	must(t, unix.Mkfifo(filepath.Join(root, "proc/a/pipe"), 0o600))
	must(t, os.Symlink("../../secret", filepath.Join(root, "proc/a/link")))
	must(t, os.WriteFile(filepath.Join(root, "proc/a/was-link"), []byte("y"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, "proc/a/new"), []byte("z"), 0o600))
	for name, want := range map[string]string{"file": "x", "was-link": "y", "new": "z"} {
		if got, err := r.peek("/proc/a/"+name, smallFile); got != want || err != nil {
			t.Errorf("%s holds %q, %v, want %q", name, got, err, want)
		}
	}
	for _, name := range []string{"pipe", "link", "missing"} {
		if got, err := r.peek("/proc/a/"+name, smallFile); err == nil {
			t.Errorf("%s holds %q", name, got)
		}
	}
}

// TestListThroughLinks: directories are listed and worked in whatever links lead there, in any order and again.
func TestListThroughLinks(t *testing.T) {
	tree := files{
		"sys/devices/a/file": "x", "sys/devices/a/b/file": "y", "sys/class/a": linkTo + "../devices/a", "sys/bus/class": linkTo + "/sys/class",
		"sys/loop": linkTo + "loop", "sys/value": "1",
	}
	opened, err := openDirectory(tree.write(t))
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	r := newReader(t.Context(), opened.view(), nil)
	defer r.walk.view.release()
	want := map[string]string{
		"/sys/bus/class/a": "[b file] <nil>", "/sys/bus/class": "[a] <nil>", "/sys/bus/class/a/b": "[file] <nil>", "/sys/devices/a": "[b file] <nil>",
		"/sys/loop": "[] " + errLoop.Error(), "/sys/value": "[] " + errNotDirectory.Error(), "/sys/value/x": "[] " + errNotDirectory.Error(),
		"/sys/missing/x": "[] no such file or directory", "/": "[sys] <nil>",
	}
	for _, dir := range slices.Concat(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(want))) {
		names, err := r.peekList(dir, func(entry) bool { return true })
		if got := fmt.Sprint(names, " ", err); got != want[dir] {
			t.Errorf("%s lists %s, want %s", dir, got, want[dir])
		}
		if content, err := r.peek(dir+"/file", smallFile); (err == nil) != slices.Contains(names, "file") {
			t.Errorf("%s/file holds %q, %v", dir, content, err)
		}
	}
}

// TestNoNameLeadsUpwards, even one that is not clean.
func TestNoNameLeadsUpwards(t *testing.T) {
	opened, err := openDirectory(files{"proc/file": "x"}.write(t))
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	view := opened.view()
	defer view.release()
	for _, name := range []string{"..", "../proc/file", "proc/.."} {
		if _, err := view.lstat(name); !errors.Is(err, errOutside) {
			t.Errorf("looking at %s gives %v", name, err)
		}
	}
}

// TestAwaitContent: a file that has nothing to say is given up, one that has is not.
func TestAwaitContent(t *testing.T) {
	reading, writing, err := os.Pipe()
	must(t, err)
	t.Cleanup(func() { _, _ = reading.Close(), writing.Close() })
	file := int(reading.Fd())
	if _, err := awaitContent(file, time.Now().Add(-time.Second)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline it gives %v", err)
	}
	_, err = writing.WriteString("x")
	must(t, err)
	began := time.Now()
	deadline, err := awaitContent(file, time.Time{})
	must(t, err)
	if ahead := deadline.Sub(began); ahead < readDeadline || ahead > 2*readDeadline {
		t.Errorf("the deadline is %s ahead", ahead)
	}
}

// TestAppendEntries: records that make no sense are no entries.
func TestAppendEntries(t *testing.T) {
	record := func(length byte, name string) []byte {
		made := make([]byte, direntName+len(name)+1)
		made[direntLength], made[direntType] = length, unix.DT_REG
		copy(made[direntName:], name)
		return made
	}
	sound := record(22, "ab")
	cases := map[string]struct {
		records []byte
		want    []entry
	}{
		"two":            {append(append([]byte{}, sound...), sound...), []entry{{"ab", kindFile}, {"ab", kindFile}}},
		"itself":         {record(21, "."), nil},
		"no length":      {record(0, "ab"), nil},
		"beyond the end": {record(200, "ab"), nil},
		"cut off":        {sound[:10], nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, appendEntries(nil, 0, tc.records), cmp.AllowUnexported(entry{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
