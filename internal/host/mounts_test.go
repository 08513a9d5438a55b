// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// spy is a tree that remembers for which names it was asked.
type spy struct {
	tree

	asked map[string]bool
}

func (s spy) view() view { return spyView{s.tree.view(), s.asked} }

type spyView struct {
	view

	asked map[string]bool
}

func (v spyView) lstat(name string) (node, error) {
	v.asked["/"+name] = true
	return v.view.lstat(name)
}

func (v spyView) readFile(name string, limit int) (string, error) {
	v.asked["/"+name] = true
	return v.view.readFile(name, limit)
}

func (v spyView) copyFile(name string, limit int, to io.Writer) error {
	v.asked["/"+name] = true
	return v.view.copyFile(name, limit, to)
}

func (v spyView) readDir(name string, limit int) ([]entry, error) {
	v.asked["/"+name] = true
	return v.view.readDir(name, limit)
}

// usedFolders are those in which one of the names is.
func usedFolders(t *testing.T, asked map[string]bool) map[string]bool {
	t.Helper()
	used := map[string]bool{}
	for name := range asked {
		below := slices.IndexFunc(Folders(), func(folder string) bool { return isBelow(name, folder) })
		onTheWay := slices.ContainsFunc(Folders(), func(folder string) bool { return isBelow(folder, name) })
		first, _, _ := strings.Cut(name[1:], "/")
		isLink := slices.Contains([]string{"bin", "lib", "lib64"}, first)
		switch {
		case below >= 0:
			used[Folders()[below]] = true
		case !onTheWay && !isLink && name != "/"+indexFile:
			t.Errorf("%s is asked for, and no container has it mounted: add it to Folders and to config/agent", name)
		}
	}
	return used
}

// TestFolders: whatever is asked for is below the folders that containers have mounted, on the way to them, or in what are
// links into /usr. Each of the folders is asked for something.
func TestFolders(t *testing.T) {
	opened, err := openDirectory("/")
	if err != nil {
		t.Fatal(err)
	}
	watched := spy{opened, map[string]bool{}}
	h := &Host{path: "/", tree: watched}
	defer func() { _ = h.Close() }()
	request := Request{
		UserSpaces: defaultUserSpaces(), Tasks: cpus.Of(0), LatencyHolders: true, Units: []string{"a.service", "b.timer"},
		Settings: []string{"/proc/sys/kernel/ostype", "/sys/kernel/oops_count", "/etc/shadow"},
	}
	if _, err := h.ReadWith(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	isUsed := usedFolders(t, watched.asked)
	for _, folder := range Folders() {
		// The walk ends at the first folder on the way that is not there.
		if !isUsed[folder] && !slices.ContainsFunc(slices.Collect(maps.Keys(watched.asked)), func(name string) bool { return name != "/." && isBelow(folder, name) }) {
			t.Errorf("%s is mounted for nothing", folder)
		}
	}
}

const mountinfo = `20 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
21 20 0:5 / /host/proc ro,nosuid - proc none rw
22 21 0:30 / /host/proc/sys/fs/binfmt_misc rw,relatime - autofs systemd-1 rw,fd=29
23 20 8:1 /etc/kubernetes/kubelet.conf//deleted /host/etc/kubernetes/kubelet.conf ro - ext4 /dev/sda1 rw
24 20 0:31 / /host/with\040space rw - iso9660 /dev/sr0 ro
25 20 8:1 /var/lib/kubelet /host/var/lib/kubelet ro,relatime master:1 - ext4 /dev/sda1 rw
26 25 0:40 / /host/var/lib/kubelet/pods/1/volumes/token rw - tmpfs none rw
27 25 0:41 / /host/var/lib/kubelet/pods ro - tmpfs none rw
28 26 0:42 / /host/var/lib/kubelet/pods/1/volumes/token/more rw - tmpfs none rw
no mount at all
29 20 0:43 /
`

func TestParseMounts(t *testing.T) {
	want := []Mount{
		{"20", "1", "/", "/", false},
		{"21", "20", "/host/proc", "/", true},
		{"22", "21", "/host/proc/sys/fs/binfmt_misc", "/", false},
		{"23", "20", "/host/etc/kubernetes/kubelet.conf", "/etc/kubernetes/kubelet.conf//deleted", true},
		{"24", "20", "/host/with space", "/", true},
		{"25", "20", "/host/var/lib/kubelet", "/var/lib/kubelet", true},
		{"27", "25", "/host/var/lib/kubelet/pods", "/", true},
	}
	got := visible(ParseMounts([]byte(mountinfo)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("visible mounts (-want +got):\n%s", diff)
	}
	for _, mount := range got {
		if mount.IsStale() != (mount.ID == "23") {
			t.Errorf("%+v: stale is %t", mount, mount.IsStale())
		}
	}
}

func FuzzParseMounts(f *testing.F) {
	f.Add([]byte(mountinfo))
	f.Add([]byte(`1 2 3 \777 \04 rw -  - `))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			t.Skip("nothing more to find in a longer one")
		}
		parsed := ParseMounts(text)
		if len(visible(parsed)) > len(parsed) {
			t.Errorf("more mounts are visible than there are: %q", text)
		}
	})
}

// TestParts: what is not mounted is not missing.
func TestParts(t *testing.T) {
	mounted := parts{"proc", "etc/default", "usr", "etc/kubernetes/kubelet.conf"}
	cases := map[string]struct {
		mounted parts
		name    string
		want    error
	}{
		"in a mount":              {mounted, "proc/sys/kernel/none", fs.ErrNotExist},
		"the mount itself":        {mounted, "etc/kubernetes/kubelet.conf", fs.ErrNotExist},
		"beside a mount":          {mounted, "etc/sysconfig/irqbalance", notMountedError{}},
		"a name that begins like": {mounted, "etc/default2", notMountedError{}},
		"a link into /usr":        {mounted, "lib/systemd/system/a.service", fs.ErrNotExist},
		"the whole host":          {nil, "etc/sysconfig/irqbalance", fs.ErrNotExist},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.mounted.explain(tc.name, fs.ErrNotExist)
			if !errors.Is(err, tc.want) {
				t.Errorf("error is %v, want %v", err, tc.want)
			}
			isHidden := !errors.Is(tc.want, fs.ErrNotExist)
			if isHidden != (reasonOf(err) == ReasonNotMounted) || isHidden == errors.Is(err, fs.ErrNotExist) || !isAbsent(err) {
				t.Errorf("%v has the reason %q", err, reasonOf(err))
			}
		})
	}
	if err := mounted.explain("etc/x", fs.ErrPermission); !errors.Is(err, fs.ErrPermission) || reasonOf(err) != reasonPermission {
		t.Errorf("another error becomes %v", err)
	}
}
