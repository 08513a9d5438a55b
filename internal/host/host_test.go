// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOpenRefuses(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	sound := zip(t, files{"proc/cmdline": strings.Repeat("quiet ", 1000)}.pack(t, ""))
	damaged := bytes.Clone(sound)
	damaged[len(damaged)-6] ^= 0xff
	link := func(name, target string) []byte {
		return packHeaders(t, []tar.Header{{Name: name, Linkname: target, Typeflag: tar.TypeLink}}, nil)
	}
	cases := map[string]struct {
		path        string
		wantMessage string
	}{
		"missing":              {"/nonexistent/host", "no such file or directory"},
		"pipe":                 {pipe, "neither a directory nor a file"},
		"empty directory":      {t.TempDir(), "neither proc nor sys"},
		"empty file":           {writeFile(t, nil), "neither a directory nor a tar archive"},
		"text":                 {writeFile(t, []byte(strings.Repeat("text ", 100))), "neither a directory nor a tar archive"},
		"gzip of a text":       {writeFile(t, zip(t, []byte(strings.Repeat("text ", 500)))), "damaged archive"},
		"gzip header only":     {writeFile(t, []byte{0x1f, 0x8b}), "not a sound gzip file"},
		"bzip2 header only":    {writeFile(t, []byte("BZh9")), "damaged archive"},
		"truncated":            {writeFile(t, sound[:len(sound)-12]), "damaged archive"},
		"wrong checksum":       {writeFile(t, damaged), "damaged archive"},
		"truncated plain":      {writeFile(t, files{"proc/cmdline": "quiet"}.pack(t, "")[:514]), "damaged archive"},
		"archive of no host":   {writeFile(t, files{"etc/passwd": "root"}.pack(t, "")), "neither proc nor sys"},
		"two top folders":      {writeFile(t, files{"a/proc/": "", "b/proc/": ""}.pack(t, "")), "neither proc nor sys"},
		"two folders deep":     {writeFile(t, files{"a/b/proc/": ""}.pack(t, "")), "neither proc nor sys"},
		"fsroot of no host":    {writeFile(t, files{"a/fsroot/etc/": "", "a/cpuid/pu0": ""}.pack(t, "")), "neither proc nor sys"},
		"proc is a file":       {writeFile(t, files{"proc": "x"}.pack(t, "")), "neither proc nor sys"},
		"name leads out":       {writeFile(t, files{"proc/x": ""}.pack(t, "../")), "../proc/x: the name leads out"},
		"name leads out later": {writeFile(t, files{"x": ""}.pack(t, "proc/../../")), "leads out of the archive"},
		"below a file":         {writeFile(t, files{"proc/x": "", "proc/x/y": ""}.pack(t, "")), "proc/x is both a directory and"},
		"hard link to nothing": {writeFile(t, link("proc/x", "proc/y")), "hard link to proc/y, which the archive does not hold"},
		"hard link out":        {writeFile(t, link("proc/x", "../y")), "leads out of the archive"},
		"long name":            {writeFile(t, files{"proc/" + strings.Repeat("x/", 3000): ""}.pack(t, "")), "longer than 4096 bytes"},
		"long link target":     {writeFile(t, files{"proc/x": linkTo + strings.Repeat("x", 5000)}.pack(t, "")), "link target is longer than 4096"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			opened, err := Open(tc.path)
			if err == nil {
				t.Fatalf("opened %v", opened)
			}
			if !strings.Contains(err.Error(), tc.path) || !strings.Contains(err.Error(), tc.wantMessage) {
				t.Errorf("the message %q should name %q and say %q", err, tc.path, tc.wantMessage)
			}
		})
	}
}

// TestArchiveLimits checks each limit with an archive that is just beyond it.
func TestArchiveLimits(t *testing.T) {
	sound := archiveLimits{stream: 1 << 20, kept: 1000, file: 600, nodes: 4, name: 100}
	cases := map[string]struct {
		tree        files
		limits      func(*archiveLimits)
		wantMessage string
	}{
		"within all":      {tree: files{"proc/a": strings.Repeat("x", 500), "proc/b": strings.Repeat("x", 500)}},
		"stream":          {files{"proc/a": "x"}, func(l *archiveLimits) { l.stream = 1500 }, "longer than 1500 bytes"},
		"contents":        {files{"proc/a": "12345", "proc/b": "12345"}, func(l *archiveLimits) { l.kept = 9 }, "proc/b: the archive holds more"},
		"number of files": {files{"proc/a": "", "proc/b": "", "proc/c": ""}, nil, "holds more than 4 entries"},
		"implied folders": {files{"a/b/c/d/e": ""}, nil, "holds more than 4 entries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limits := sound
			if tc.limits != nil {
				tc.limits(&limits)
			}
			_, err := readArchive(bytes.NewReader(tc.tree.pack(t, "")), limits)
			switch {
			case tc.wantMessage == "" && err != nil:
				t.Error(err)
			case tc.wantMessage != "" && (err == nil || !strings.Contains(err.Error(), tc.wantMessage)):
				t.Errorf("got the error %v, want %q", err, tc.wantMessage)
			}
		})
	}
}

// TestArchiveSkipsLargeFiles: one useless large file does not spoil a dump.
func TestArchiveSkipsLargeFiles(t *testing.T) {
	limits := defaultArchiveLimits()
	limits.file = 10
	tree, err := readArchive(bytes.NewReader(files{"proc/kcore": strings.Repeat("x", 100), "proc/cmdline": "quiet"}.pack(t, "")), limits)
	must(t, err)
	if content, err := tree.readFile("proc/cmdline", smallFile); err != nil || content != "quiet" {
		t.Errorf("read %q, %v", content, err)
	}
	if _, err := tree.readFile("proc/kcore", smallFile); !errors.As(err, &tooLargeError{}) {
		t.Errorf("reading the large file gave %v", err)
	}
}

// TestArchiveEntries reads the kinds of entries that archives of hosts have beside plain files.
func TestArchiveEntries(t *testing.T) {
	headers := []tar.Header{
		{Name: "pax_global_header", Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
		{Name: "proc/", Typeflag: tar.TypeDir},
		{Name: "proc/", Typeflag: tar.TypeDir},
		{Name: "proc/cmdline", Typeflag: tar.TypeReg, Size: 5},
		{Name: "proc/copy", Typeflag: tar.TypeLink, Linkname: "proc/cmdline"},
		{Name: "proc/pipe", Typeflag: tar.TypeFifo},
		{Name: "proc/device", Typeflag: tar.TypeChar},
		{Name: "proc/cmdline", Typeflag: tar.TypeReg, Size: 6},
	}
	contents := []string{"first", "second"}
	tree, err := readArchive(bytes.NewReader(packHeaders(t, headers, func(string) string {
		content := contents[0]
		contents = contents[1:]
		return content
	})), defaultArchiveLimits())
	must(t, err)
	want := map[string]string{"cmdline": "second", "copy": "first", "pipe": errNotRegular.Error(), "device": errNotRegular.Error()}
	got := map[string]string{}
	entries, err := tree.readDir("proc", 10)
	must(t, err)
	for _, e := range entries {
		content, err := tree.readFile("proc/"+e.name, smallFile)
		if err != nil {
			content = err.Error()
		}
		got[e.name] = content
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestViewsAgree compares both kinds of trees in what they say about the same names.
func TestViewsAgree(t *testing.T) {
	tree := files{
		"proc/file": "12345", "proc/dir/below": "x", "proc/link": linkTo + "file", "proc/empty/": "",
		"proc/dir2/below": "y",
	}
	root := tree.write(t)
	dir, err := openDirectory(root)
	must(t, err)
	t.Cleanup(func() { must(t, dir.Close()) })
	asCopy := openAsCopy(t, root).tree.view()
	archive, err := readArchive(bytes.NewReader(tree.pack(t, "")), defaultArchiveLimits())
	must(t, err)
	// One view sees them all, and must not mix up the directories that it keeps open.
	view := dir.view()
	defer view.release()
	for _, name := range []string{
		".", "proc", "proc/file", "proc/dir", "proc/dir/below", "proc/dir2/below", "proc/dir", "proc/link", "proc/empty",
		"proc/none", "proc/dir/none", "none/none", "proc/dir/below",
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(describe(view, name), describe(archive, name)); diff != "" {
				t.Errorf("(-directory +archive):\n%s", diff)
			}
			if diff := cmp.Diff(describe(view, name), describe(asCopy, name)); diff != "" {
				t.Errorf("(-directory +copy):\n%s", diff)
			}
		})
	}
}

// describe puts all that a view says about a name into words.
func describe(v view, name string) map[string]string {
	said := map[string]string{}
	found, err := v.lstat(name)
	said["kind"] = reasonOrNone(err)
	if err == nil {
		said["kind"] = map[kind]string{kindFile: "file", kindDirectory: "directory", kindLink: "link"}[found.kind] + found.target
	}
	for what, limit := range map[string]int{"read": 5, "read too much": 4} {
		// A view reads only what its caller has seen to be a file.
		if found.kind == kindFile {
			content, err := v.readFile(name, limit)
			said[what] = content + reasonOrNone(err)
		}
	}
	for what, limit := range map[string]int{"list": 4, "list too much": 3} {
		if found.kind == kindDirectory {
			entries, err := v.readDir(name, limit)
			slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
			said[what] = reasonOrNone(err)
			for _, e := range entries {
				said[what] += e.name + " "
			}
		}
	}
	return said
}

func reasonOrNone(err error) string {
	if err == nil {
		return ""
	}
	return reasonOf(err)
}

// TestSymbolicLinks follows links as a process would that was chrooted into the root, and never out of it.
func TestSymbolicLinks(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("secret"), 0o600))
	const file = "proc/sys/kernel/osrelease"
	// chain is a chain of links that ends in a file.
	chain := func(links int) files {
		tree := files{file: linkTo + "/proc/1", fmt.Sprintf("proc/%d", links): "6.1.0"}
		for i := 1; i < links; i++ {
			tree[fmt.Sprintf("proc/%d", i)] = linkTo + strconv.Itoa(i+1)
		}
		return tree
	}
	cases := map[string]struct {
		tree files
		want string
	}{
		"relative":                   {files{file: linkTo + "version", "proc/sys/kernel/version": "6.1.0"}, "6.1.0"},
		"relative with dots":         {files{file: linkTo + "../../x", "proc/x": "6.1.0"}, "6.1.0"},
		"with empty elements":        {files{file: linkTo + "..//./../x", "proc/x": "6.1.0"}, "6.1.0"},
		"through a linked directory": {files{"proc/sys": linkTo + "real", "proc/real/kernel/osrelease": "6.1.0"}, "6.1.0"},
		"dots after a link":          {files{file: linkTo + "d/../x", "proc/sys/kernel/d": linkTo + "/sys/e/", "sys/e/": "", "sys/x": "6.1.0"}, "6.1.0"},
		"absolute in the root":       {files{file: linkTo + "/sys/x", "sys/x": "6.1.0"}, "6.1.0"},
		"chain":                      {files{file: linkTo + "../../B", "proc/B": linkTo + "C", "proc/C": "6.1.0"}, "6.1.0"},
		"absolute out of the root":   {files{file: linkTo + outside}, "absent: no such file"},
		"relative out of the root":   {files{file: linkTo + "../../../../../../../../../.." + outside}, "absent: a symbolic link leads out of the root"},
		"out of the root and back":   {files{file: linkTo + "../../../../proc/x", "proc/x": "6.1.0"}, "absent: a symbolic link leads out of the root"},
		"loop of one":                {files{file: linkTo + "osrelease"}, "absent: too many symbolic links, perhaps a loop"},
		"loop of two":                {files{file: linkTo + "x", "proc/sys/kernel/x": linkTo + "osrelease"}, "absent: too many symbolic links, perhaps a loop"},
		"loop of directories":        {files{"proc/sys/kernel": linkTo + "kernel/kernel"}, "absent: too many symbolic links, perhaps a loop"},
		"longest chain":              {chain(maxLinks), "6.1.0"},
		"too long a chain":           {chain(maxLinks + 1), "absent: too many symbolic links, perhaps a loop"},
		"dangling":                   {files{file: linkTo + "none"}, "absent: no such file"},
		"to a directory":             {files{file: linkTo + "/proc"}, "absent: not a regular file"},
		"through a file":             {files{file: linkTo + "/proc/x/y", "proc/x": "6.1.0"}, "absent: not a directory"},
		"below a file":               {files{"proc/sys": "6.1.0"}, "absent: not a directory"},
		"dots after a file":          {files{file: linkTo + "/proc/x/../x", "proc/x": "6.1.0"}, "absent: not a directory"},
		"very deep":                  {files{file: linkTo + strings.Repeat("d/", maxDepth+2), "proc/sys/kernel/" + strings.Repeat("d/", maxDepth+2): ""}, "absent: more directories deep than any file of the kernel"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readAll(t, tc.tree)
			expect(t, "the release", facts.Kernel.Release, tc.want)
		})
	}
}

// TestStructuralFilesMustMakeSense breaks, one by one, the files on which everything hangs.
func TestStructuralFilesMustMakeSense(t *testing.T) {
	sound := files{
		"sys/devices/system/cpu/online": "0-1", "sys/devices/system/cpu/cpu0/": "", "sys/devices/system/cpu/cpu1/": "",
		"sys/devices/system/node/node0/cpulist": "0-1",
		"proc/interrupts":                       "CPU0 CPU1\n 0: 1 2 timer\n",
		"proc/softirqs":                         "CPU0 CPU1\nTIMER: 1 2\n",
	}
	if _, err := readPath(t, sound.write(t)); err != nil {
		t.Fatalf("the sound tree gives %v", err)
	}
	outside := linkTo + "../../../../../../../../../../etc/passwd"
	cases := map[string]struct {
		name, content string
		wantMessage   string
	}{
		"online is binary":          {"sys/devices/system/cpu/online", "\x7fELF\x02\x00\x01", "binary content"},
		"online is no list":         {"sys/devices/system/cpu/online", "both", `CPU list "both": "both" is not a CPU number`},
		"online is huge":            {"sys/devices/system/cpu/online", strings.Repeat("1,", 5<<20), "longer than 1048576 bytes"},
		"online loops":              {"sys/devices/system/cpu/online", linkTo + "online", "too many symbolic links"},
		"online leads out":          {"sys/devices/system/cpu/online", outside, "leads out of the root"},
		"online is a directory":     {"sys/devices/system/cpu/online/", "", "not a regular file"},
		"offline is no list":        {"sys/devices/system/cpu/offline", "-", "is not a CPU number"},
		"present is no list":        {"sys/devices/system/cpu/present", "0-", "is not a CPU number"},
		"present is beyond NR_CPUS": {"sys/devices/system/cpu/present", "0-4294967295", "is not a CPU number"},
		"possible is backwards":     {"sys/devices/system/cpu/possible", "7-0", "runs backwards"},
		"CPU folder too high":       {"sys/devices/system/cpu/cpu8192/", "", "above the largest possible CPU 8191"},
		"NUMA node list":            {"sys/devices/system/node/node0/cpulist", "x", `"x" is not a CPU number`},
		"interrupts without CPUs":   {"proc/interrupts", "", "the header names no CPU"},
		"interrupts is binary":      {"proc/interrupts", "\x7fELF\x02\x00\x01", "the header names"},
		"interrupts truncated":      {"proc/interrupts", "CPU0 CPU1\n 0: 1 2 timer\n 1", `line 3: " 1" is not of the form NAME: COUNTERS`},
		"interrupts binary later":   {"proc/interrupts", "CPU0 CPU1\n 0: 1 2 timer\n 1: \x00\n", "line 3:"},
		"softirqs is a text":        {"proc/softirqs", "hello world\n", `the header names "hello" where a CPU belongs`},
		"softirqs is a directory":   {"proc/softirqs/", "", "not a regular file"},
		"proc/irq is a file":        {"proc/irq", "x", "not a directory"},
		"interface names loop":      {"sys/class/net", linkTo + "net", "too many symbolic links"},
		"index of a snapshot":       {indexFile, "{", "not the index of a snapshot"},
		"index is a directory":      {indexFile + "/", "", "not a regular file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := strings.TrimSuffix(tc.name, "/")
			tree := maps.Clone(sound)
			delete(tree, path)
			tree[tc.name] = tc.content
			for form, root := range map[string]string{"directory": tree.write(t), "archive": writeFile(t, zip(t, tree.pack(t, "")))} {
				facts, err := readPath(t, root)
				if err == nil {
					t.Fatalf("%s gives %v", form, facts)
				}
				for _, want := range []string{root, "/" + path + ": ", tc.wantMessage} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the message for the %s lacks %q: %v", form, want, err)
					}
				}
			}
		})
	}
}

// TestSettingsMayBeNonsense: a single value that makes no sense is absent and says why.
func TestSettingsMayBeNonsense(t *testing.T) {
	const file = "proc/sys/kernel/timer_migration"
	cases := map[string]struct {
		tree files
		want string
	}{
		"value":             {files{file: "1\n"}, "1"},
		"lines":             {files{file: " a\n\tb \n"}, "a\n\tb"},
		"empty":             {files{file: ""}, ""},
		"zeros at the end":  {files{file: "0-3\n\x00"}, "0-3"},
		"binary":            {files{file: "\x00\x01"}, "absent: binary content"},
		"not UTF-8":         {files{file: "\xff\xfe"}, "absent: binary content"},
		"escape sequence":   {files{file: "\x1b[2J"}, "absent: binary content"},
		"too long":          {files{file: strings.Repeat("1", smallFile+1)}, "absent: longer than 1048576 bytes"},
		"as long as can be": {files{file: strings.Repeat(" ", smallFile-1) + "1"}, "1"},
		"directory":         {files{file + "/": ""}, "absent: not a regular file"},
		"missing":           {nil, "absent: no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readAll(t, tc.tree)
			expect(t, "the setting", facts.Setting("/"+file), tc.want)
		})
	}
}

// TestPipesAreNotOpened would hang if they were.
func TestPipesAreNotOpened(t *testing.T) {
	root := files{"proc/": "", "sys/devices/system/cpu/": ""}.write(t)
	for _, name := range []string{"proc/cpuinfo", "proc/cmdline", "sys/class", "sys/devices/system/cpu/isolated"} {
		must(t, syscall.Mkfifo(filepath.Join(root, name), 0o600))
	}
	_, err := readInTime(t, root)
	if err == nil || !strings.Contains(err.Error(), "/sys/class/net: not a directory") {
		t.Errorf("a pipe in place of /sys/class gives %v", err)
	}
	must(t, os.Remove(filepath.Join(root, "sys/class")))
	facts, err := readInTime(t, root)
	must(t, err)
	expect(t, "the command line", facts.Kernel.CommandLine, "absent: not a regular file")
	expect(t, "the vendor", facts.Processor.Vendor, "absent: not a regular file")
	expect(t, "isolated", facts.CPUs.Isolated, "absent: not a regular file")

	for name, want := range map[string]string{"proc/irq": "not a directory", "proc/interrupts": "not a regular file"} {
		pipe := filepath.Join(root, name)
		must(t, syscall.Mkfifo(pipe, 0o600))
		if _, err = readInTime(t, root); err == nil || !strings.Contains(err.Error(), "/"+name+": "+want) {
			t.Errorf("a pipe in place of /%s gives %v", name, err)
		}
		must(t, os.Remove(pipe))
	}
}

// watchedView fails the test when something else than a file or directory is opened.
type watchedView struct {
	view

	t *testing.T
}

func (v watchedView) copyFile(name string, limit int, to io.Writer) error {
	v.check(name, kindFile)
	return v.view.copyFile(name, limit, to)
}

func (v watchedView) readFile(name string, limit int) (string, error) {
	v.check(name, kindFile)
	return v.view.readFile(name, limit)
}

func (v watchedView) readDir(name string, limit int) ([]entry, error) {
	v.check(name, kindDirectory)
	return v.view.readDir(name, limit)
}

func (v watchedView) check(name string, want kind) {
	v.t.Helper()
	if found, err := v.lstat(name); err != nil || found.kind != want {
		v.t.Errorf("%s was opened; it is of kind %d (%v), want %d", name, found.kind, err, want)
	}
}

type watchedTree struct {
	tree

	t *testing.T
}

func (w watchedTree) view() view { return watchedView{w.tree.view(), w.t} }

// TestOnlyFilesAreOpened puts a device in the place of every setting and of some directories: opening a
// device may do anything.
func TestOnlyFilesAreOpened(t *testing.T) {
	paths := SettingPaths()
	settings := make([]tar.Header, len(paths))
	for i, path := range paths {
		settings[i] = tar.Header{Name: path[1:], Typeflag: tar.TypeChar}
	}
	headers := slices.Concat(settings, []tar.Header{
		{Name: "proc/cpuinfo", Typeflag: tar.TypeChar}, {Name: "sys/devices/system/cpu/cpu0/cache", Typeflag: tar.TypeBlock},
		{Name: "sys/devices/system/cpu/isolated", Typeflag: tar.TypeSymlink, Linkname: "/proc/cpuinfo"},
		{Name: "proc/7/comm", Typeflag: tar.TypeFifo}, {Name: "etc/kubernetes/kubelet.conf", Typeflag: tar.TypeFifo},
	})
	opened, err := openTree(writeFile(t, packHeaders(t, headers, nil)))
	must(t, err)
	_, err = (&Host{tree: watchedTree{opened, t}}).Read(t.Context())
	if err == nil || !strings.Contains(err.Error(), "/sys/devices/system/cpu/cpu0/cache: not a directory") {
		t.Errorf("a device in place of a directory gives %v", err)
	}
}

// TestFileBecomesPipe: between looking at a file and opening it, it may be replaced.
func TestFileBecomesPipe(t *testing.T) {
	root := files{"proc/": ""}.write(t)
	must(t, syscall.Mkfifo(filepath.Join(root, "proc/cmdline"), 0o600))
	tree, err := openDirectory(root)
	must(t, err)
	t.Cleanup(func() { must(t, tree.Close()) })
	view := tree.view()
	defer view.release()
	if _, err := view.readFile("proc/cmdline", smallFile); !errors.Is(err, errNotRegular) {
		t.Errorf("reading a pipe gives %v", err)
	}
}

func readInTime(t *testing.T, root string) (facts *Facts, err error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		facts, err = readPath(t, root)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("reading hangs")
	}
	return facts, err
}

func TestPermissionDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	root := files{"proc/cmdline": "quiet", "sys/devices/system/cpu/online": "0", "sys/devices/system/cpu/cpu0/topology/": ""}.write(t)
	for _, name := range []string{"proc/cmdline", "sys/devices/system/cpu/online"} {
		must(t, os.Chmod(filepath.Join(root, name), 0))
	}
	facts, err := readPath(t, root)
	must(t, err)
	expect(t, "the command line", facts.Kernel.CommandLine, "absent: permission denied")
	expect(t, "the online CPUs, concluded from the folders,", facts.CPUs.Online, "0")
	again, err := readPath(t, snapshot(t, root))
	must(t, err)
	if diff := cmp.Diff(facts, again); diff != "" {
		t.Errorf("the snapshot gives other facts (-host +snapshot):\n%s", diff)
	}
}

// TestRecordedPermissionDenied does the same as root: a snapshot says what its maker was not permitted.
func TestRecordedPermissionDenied(t *testing.T) {
	facts := readAll(t, files{
		"sys/devices/system/cpu/online":         "0-1",
		"sys/devices/system/cpu/cpu0/topology/": "",
		indexFile: `{"unreadable": {"/sys/devices/system/cpu/online": "permission denied", "/proc/swaps": "input/output error",
			"/proc/irq": "permission denied", "/sys/bus/pci/devices/0000:3b:00.0/driver": "permission denied"}}`,
		"sys/bus/pci/devices/0000:3b:00.0/class":  "0x020000",
		"sys/bus/pci/devices/0000:3b:00.0/driver": linkTo + "../drivers/sfc",
	})
	expect(t, "the online CPUs, concluded from the folders,", facts.CPUs.Online, "0")
	expect(t, "swaps", facts.Setting("/proc/swaps"), "absent: input/output error")
	expect(t, "the driver", facts.NICs[0].Driver, "absent: permission denied")
}

func TestCanceled(t *testing.T) {
	root := xeon{cpus: 2}.files().write(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(t, root).Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Read gives %v", err)
	}
	var taken bytes.Buffer
	if err := open(t, root).Snapshot(ctx, &taken); !errors.Is(err, context.Canceled) || taken.Len() > 0 {
		t.Errorf("Snapshot gives %v and %d bytes", err, taken.Len())
	}
}

// TestSnapshotOfThisHost compares a snapshot with the very Read that made it, on whatever runs the test.
func TestSnapshotOfThisHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /proc and /sys")
	}
	h := open(t, "/")
	taken := newRecording()
	facts, err := h.read(t.Context(), Request{}, taken)
	must(t, err)
	expect(t, "the architecture", facts.Architecture, runtime.GOARCH)
	if facts.CPUs.Online.Value.IsEmpty() || len(facts.CPUs.List) == 0 || !facts.Kernel.Release.Known {
		t.Errorf("this host has CPUs %v, kernel %v", facts.CPUs.Online, facts.Kernel.Release)
	}
	view := h.tree.view()
	defer view.release()
	var written bytes.Buffer
	must(t, taken.write(newWalk(view), &written))
	again, err := readPath(t, writeFile(t, written.Bytes()))
	must(t, err)
	if diff := cmp.Diff(facts, again); diff != "" {
		t.Errorf("the snapshot gives other facts (-host +snapshot):\n%s", diff)
	}
}

// TestSnapshotHoldsNothingElse checks what a snapshot holds, and that equal hosts give equal bytes.
func TestSnapshotHoldsNothingElse(t *testing.T) {
	tree := files{
		"etc/shadow":                     "secret",
		"etc/kubernetes/kubelet.conf":    "kind: Config\nusers: [{user: {token: secret}}]\n",
		"var/lib/kubelet/config.yaml":    "kind: KubeletConfiguration\n",
		"proc/1/comm":                    "systemd\n",
		"proc/1/environ":                 "TOKEN=secret\x00",
		"proc/300/comm":                  "trader-secret\n",
		"proc/500/stat":                  taskLine("app", "S", 1, 0x400100, 1, 0),
		"proc/500/status":                "Name:\tapp\nGroups:\tsecret\nCpus_allowed_list:\t0\n",
		"proc/500/cmdline":               "app\x00--password=secret\x00",
		"proc/500/environ":               "TOKEN=secret\x00",
		"proc/400/comm":                  "irqbalance\n",
		"proc/400/environ":               "TOKEN=secret\x00IRQBALANCE_BANNED_CPULIST=2-3\x00",
		"proc/self":                      linkTo + "300",
		"proc/300/smaps":                 "secret-address rw-p\nKernelPageSize:        4 kB\n",
		"sys/devices/system/cpu/online":  "0",
		"sys/devices/system/cpu/unused":  "secret",
		"sys/devices/system/cpu/present": "0",
		"sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us": "0\n",
		"proc/sys/net/core/netdev_budget":                            "300\n",
		"sys/class/net/eth0":                                         linkTo + "../../devices/pci0000:00/0000:00:03.0/net/eth0",
		"sys/devices/pci0000:00/0000:00:03.0/class":                  "0x020000\n",
		"sys/devices/pci0000:00/0000:00:03.0/secret":                 "secret",
		"sys/devices/pci0000:00/0000:00:03.0/msi_irqs/24":            "msix\n",
		"sys/devices/pci0000:00/0000:00:03.0/net/eth0/device":        linkTo + "../../../0000:00:03.0",
	}
	root := tree.write(t)
	var first, second bytes.Buffer
	must(t, open(t, root).Snapshot(t.Context(), &first))
	must(t, open(t, tree.write(t)).Snapshot(t.Context(), &second))
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("equal hosts give different snapshots")
	}
	unpacked, err := decompressAll(first.Bytes())
	must(t, err)
	if strings.Contains(unpacked, "secret") {
		t.Error("the snapshot holds a secret")
	}
	want := []string{
		"etc", indexFile,
		"proc", "proc/1", "proc/400", "proc/400/comm", "proc/400/environ",
		"proc/500", "proc/500/stat", "proc/500/status", "proc/self", "proc/self/smaps",
		"proc/sys", "proc/sys/net", "proc/sys/net/core", "proc/sys/net/core/netdev_budget",
		"sys", "sys/class", "sys/class/net", "sys/class/net/eth0", "sys/devices",
		"sys/devices/pci0000:00", "sys/devices/pci0000:00/0000:00:03.0", "sys/devices/pci0000:00/0000:00:03.0/class",
		"sys/devices/pci0000:00/0000:00:03.0/msi_irqs", "sys/devices/pci0000:00/0000:00:03.0/msi_irqs/24",
		"sys/devices/pci0000:00/0000:00:03.0/net", "sys/devices/pci0000:00/0000:00:03.0/net/eth0",
		"sys/devices/pci0000:00/0000:00:03.0/net/eth0/device",
		"sys/devices/system", "sys/devices/system/cpu", "sys/devices/system/cpu/cpu0", "sys/devices/system/cpu/cpu0/power",
		"sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us",
		"sys/devices/system/cpu/online", "sys/devices/system/cpu/present",
		"var", "var/lib", "var/lib/kubelet", "var/lib/kubelet/config.yaml",
	}
	read, err := readArchive(bytes.NewReader(first.Bytes()), defaultArchiveLimits())
	must(t, err)
	delete(read.nodes, ".")
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(read.nodes))); diff != "" {
		t.Errorf("the snapshot holds (-want +got):\n%s", diff)
	}
	if content, err := read.readFile("sys/devices/pci0000:00/0000:00:03.0/msi_irqs/24", smallFile); err != nil || content != "msix\n" {
		t.Errorf("a file that was only listed holds %q, %v", content, err)
	}
}

func decompressAll(packed []byte) (string, error) {
	archive, err := readArchive(bytes.NewReader(packed), defaultArchiveLimits())
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for name, found := range archive.nodes {
		all.WriteString(name + found.target + found.content + "\n")
	}
	return all.String(), nil
}

// TestSnapshotOfWhatVanishes: devices come and go between reading them and laying out the snapshot.
func TestSnapshotOfWhatVanishes(t *testing.T) {
	root := files{"proc/cmdline": "quiet", "proc/version": linkTo + "v", "proc/v": "Linux version 6.1.0 x", "proc/irq/5/": "", "sys/": ""}.write(t)
	h := open(t, root)
	taken := newRecording()
	facts, err := h.read(t.Context(), Request{}, taken)
	must(t, err)
	for _, name := range []string{"proc/version", "proc/v", "proc/irq"} {
		must(t, os.RemoveAll(filepath.Join(root, name)))
	}
	view := h.tree.view()
	defer view.release()
	var written bytes.Buffer
	must(t, taken.write(newWalk(view), &written))
	again, err := readPath(t, writeFile(t, written.Bytes()))
	must(t, err)
	if diff := cmp.Diff(facts.Kernel, again.Kernel); diff != "" {
		t.Errorf("what was read is not in the snapshot (-host +snapshot):\n%s", diff)
	}
}

func TestSnapshotReportsWriteErrors(t *testing.T) {
	err := open(t, xeon{cpus: 2}.files().write(t)).Snapshot(t.Context(), brokenWriter{})
	if !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, fs.ErrClosed }

func TestReadWith(t *testing.T) {
	root := files{
		"proc/sys/net/ipv4/tcp_low_latency":                                 "1",
		"proc/sys/kernel/timer_migration":                                   "0",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq":              "2100000",
		"sys/devices/system/cpu/cpu1/power/energy_perf_bias":                "0",
		"sys/devices/system/cpu/cpu1/cpufreq/energy_performance_preference": "performance",
		"etc/shadow": "secret",
	}.write(t)
	cases := map[string]struct{ path, want string }{
		"sysctl":               {SysctlPath("net.ipv4.tcp_low_latency"), "1"},
		"read anyway":          {SysctlPath("kernel.timer_migration"), "0"},
		"missing":              {"/sys/none", "absent: no such file"},
		"energy bias in copy":  {"/sys/devices/system/cpu/cpu1/power/energy_perf_bias", "0"},
		"file of the host":     {"/etc/shadow", "absent: not read: neither below /proc/sys nor below /sys"},
		"relative":             {"proc/sys/kernel/timer_migration", "absent: not read: neither below /proc/sys nor below /sys"},
		"climbs":               {"/proc/sys/../../etc/shadow", "absent: not read: neither below /proc/sys nor below /sys"},
		"only looks like /sys": {"/sysfs/x", "absent: not read: neither below /proc/sys nor below /sys"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts, err := open(t, root).ReadWith(t.Context(), Request{Settings: []string{tc.path}})
			must(t, err)
			if got := shown(facts.Settings[tc.path]); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	facts, err := readPath(t, root)
	must(t, err)
	expect(t, "what nobody asked for", facts.Setting("/proc/sys/net/ipv4/tcp_low_latency"), "absent: not read")
}

func TestSettingPaths(t *testing.T) {
	paths := SettingPaths()
	if !slices.IsSorted(paths) || len(slices.Compact(slices.Clone(paths))) != len(paths) {
		t.Error("the paths are not ascending and distinct")
	}
	for _, want := range []string{
		"/sys/devices/system/cpu/smt/active", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/kernel/mm/ksm/run",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource", "/sys/devices/virtual/workqueue/cpumask",
		"/sys/bus/workqueue/devices/writeback/cpumask", "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/nmi_watchdog",
		"/proc/sys/kernel/watchdog_cpumask", "/proc/sys/kernel/numa_balancing", "/proc/sys/vm/stat_interval", "/proc/swaps",
		"/sys/devices/system/cpu/intel_pstate/no_turbo", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
		"/etc/sysconfig/irqbalance", "/etc/default/irqbalance", "/sys/fs/cgroup/cpuset.cpus.isolated", "/proc/1/status",
	} {
		if !slices.Contains(paths, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, path := range paths {
		if interrupts(path) {
			t.Errorf("reading %s interrupts a CPU", path)
		}
	}
}

func TestSysctlPath(t *testing.T) {
	for name, want := range map[string]string{
		"kernel.timer_migration":              "/proc/sys/kernel/timer_migration",
		"kernel/timer_migration":              "/proc/sys/kernel/timer_migration",
		"net.ipv4.conf.enp3s0/200.forwarding": "/proc/sys/net/ipv4/conf/enp3s0.200/forwarding",
		"net/ipv4/conf/enp3s0.200/forwarding": "/proc/sys/net/ipv4/conf/enp3s0.200/forwarding",
		"swappiness":                          "/proc/sys/swappiness",
		"../../etc/shadow":                    "/proc/sys/.etc.shadow",
		"kernel/../../../etc/shadow":          "/proc/sys/etc/shadow",
		"kernel.//.//.//etc/shadow":           "/proc/sys/..etc.shadow",
	} {
		if got := SysctlPath(name); got != want {
			t.Errorf("SysctlPath(%q) = %q, want %q", name, got, want)
		}
	}
}
