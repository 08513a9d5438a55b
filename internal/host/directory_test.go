// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"os"
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
