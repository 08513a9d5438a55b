// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/xdpclient"
)

// transcript asks one after the other and returns the answers; "closed" when the connection ends.
func transcript(t *testing.T, c *xdpclient.Client, requests ...string) string {
	t.Helper()
	answers := make([]string, 0, len(requests))
	for _, request := range requests {
		answer, file, err := c.Ask(request, -1)
		if file >= 0 {
			_ = unix.Close(file)
		}
		if err != nil || answer == "" {
			answer = "closed"
		}
		answers = append(answers, answer)
	}
	return strings.Join(answers, " ")
}

// listening is an allocation without any NIC of the kernel.
func listening(t *testing.T, folder string) *allocation {
	t.Helper()
	a := &allocation{ID: "0123456789abcdef", NICs: []allocatedNIC{{Address: testAddress, Name: "nic0", Queues: []int{3}}}}
	if err := a.listen(folder, mapBoundRings, logr.Discard()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.close)
	return a
}

func dialTest(t *testing.T, folder string, a *allocation) *xdpclient.Client {
	t.Helper()
	one, err := xdpclient.Dial(filepath.Join(folder, a.ID, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = one.Close() })
	return one
}

func TestProtocol(t *testing.T) {
	folder := t.TempDir()
	a := listening(t, folder)
	cases := map[string]struct {
		requests []string
		want     string
	}{
		"DPDK without a NIC":    {[]string{"/connect,trader-1", "/version", "/xsk_map_fd,eth0", "/fin"}, "/host_ok 0.1 /fd_nak /fin_ack"},
		"a buffer of zeros":     {[]string{"/connect,trader-1" + strings.Repeat("\x00", 40), "/version\x00"}, "/host_ok 0.1"},
		"nobody says who it is": {[]string{"/xsk_map_fd,nic0", "/version"}, "/host_nak closed"},
		"nonsense first":        {[]string{"hello", "/connect,a"}, "/nak /host_ok"},
		"nothing after the end": {[]string{"/connect,a", "/fin", "/version"}, "/host_ok /fin_ack closed"},
		"a socket of nothing":   {[]string{"/connect,a", "/xsk_socket,nic0,3,4096,64"}, "/host_ok /fd_nak"},
		"no busy polling":       {[]string{"/connect,a", "/config_busy_poll,20,64"}, "/host_ok /config_busy_poll_nak"},
		"a map without a name":  {[]string{"/connect,a", "/xsk_map_fd,"}, "/host_ok /nak"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if is := transcript(t, dialTest(t, folder, a), tc.requests...); is != tc.want {
				t.Errorf("answers are %q, want %q", is, tc.want)
			}
		})
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	folder := t.TempDir()
	a := listening(t, folder)
	for range sessionLimit {
		if is := transcript(t, dialTest(t, folder, a), "/connect,a"); is != "/host_ok" {
			t.Fatalf("the answer is %q", is)
		}
	}
	if is := transcript(t, dialTest(t, folder, a), "/connect,a"); is != "closed" {
		t.Errorf("one too many is answered %q", is)
	}
}

// TestBusyPolling sets what a container may not set itself, on AF_XDP sockets and no others.
func TestBusyPolling(t *testing.T) {
	kernelFolder(t)
	folder := t.TempDir()
	a := listening(t, folder)
	one := dialTest(t, folder, a)
	if is := transcript(t, one, "/connect,a"); is != "/host_ok" {
		t.Fatalf("the answer is %q", is)
	}
	cases := map[string]struct {
		domain int
		want   string
	}{
		"AF_XDP": {unix.AF_XDP, "/config_busy_poll_ack"},
		"UDP":    {unix.AF_INET, "/config_busy_poll_nak"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kind := unix.SOCK_DGRAM
			if tc.domain == unix.AF_XDP {
				kind = unix.SOCK_RAW
			}
			socket, err := unix.Socket(tc.domain, kind, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(socket) }()
			answer, _, err := one.Ask("/config_busy_poll,20,32", socket)
			if err != nil || answer != tc.want {
				t.Fatalf("the answer is %q, want %q: %v", answer, tc.want, err)
			}
			if is, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_BUSY_POLL); err != nil || (is == 20) != (tc.domain == unix.AF_XDP) {
				t.Errorf("SO_BUSY_POLL is %d, %v", is, err)
			}
		})
	}
}

// memoryOf is a memfd, filled or not.
func memoryOf(t *testing.T, size int64, filled bool) int {
	t.Helper()
	file, err := unix.MemfdCreate("frames", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(file, size); err != nil {
		t.Fatal(err)
	}
	if filled {
		if _, err := unix.Pwrite(file, make([]byte, size), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = unix.Close(file) })
	return file
}

// TestMemory: only memory that the container has paid for becomes that of a socket.
func TestMemory(t *testing.T) {
	kernelFolder(t)
	memfd := func(size int64, filled bool) int { return memoryOf(t, size, filled) }
	kernelFile, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kernelFile.Close() }()
	cases := map[string]struct {
		file int
		want string
	}{
		"filled":     {memfd(64*xdpclient.ChunkBytes, true), ""},
		"not filled": {memfd(64*xdpclient.ChunkBytes, false), "write to every page of it first"},
		"too large":  {memfd(memoryLimit+xdpclient.ChunkBytes, false), "at most 1073741824"},
		"odd":        {memfd(xdpclient.ChunkBytes+1, true), "must be a multiple of 4096 bytes"},
		"empty":      {memfd(0, false), "must be a multiple of 4096 bytes"},
		"no memory":  {int(kernelFile.Fd()), "must be a memfd"},
		"no file":    {-1, "bad file descriptor"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			area, err := mapMemory(tc.file, xdpclient.ChunkBytes)
			if tc.want == "" {
				if err != nil || len(area) != 64*xdpclient.ChunkBytes {
					t.Errorf("%d bytes, %v", len(area), err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// TestSocketsThatWouldCopy: with zero copy required, a driver without it gives no socket.
func TestSocketsThatWouldCopy(t *testing.T) {
	kernelFolder(t)
	makeVeth(t)
	device, err := net.InterfaceByName("nic0")
	if err != nil {
		t.Fatal(err)
	}
	memory, _, err := xdpclient.NewMemory()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newSocket(memory, device.Index, geometry{0, xdpclient.ChunkBytes, xdpclient.RingEntries}, false); err == nil ||
		!strings.Contains(err.Error(), "zero copy true") {
		t.Errorf("error is %v", err)
	}
}

func TestParseRequest(t *testing.T) {
	cases := map[string]struct {
		packet string
		want   string
	}{
		"interface":          {"/xsk_map_fd, nic0 ", ""},
		"socket":             {"/xsk_socket,nic0,3,4096,2048", ""},
		"unknown":            {"/xsk_map", "no such request"},
		"empty":              {"", "no such request"},
		"too few fields":     {"/xsk_socket,nic0,3", "3 fields instead of 5"},
		"too many fields":    {"/fin,now", "2 fields instead of 1"},
		"no host name":       {"/connect, ", "without a name"},
		"a name with a line": {"/connect,a\nb", "without a name"},
		"a negative queue":   {"/xsk_socket,nic0,-1,4096,2048", "a number that is none"},
		"a huge queue":       {"/xsk_socket,nic0,4294967296,4096,2048", "a number that is none"},
		"a budget in words":  {"/config_busy_poll,20,many", "a number that is none"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parseRequest([]byte(tc.packet))
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestGeometry(t *testing.T) {
	cases := map[string]struct {
		chunk, ring int
		want        bool
	}{
		"common": {4096, 2048, true}, "smallest": {2048, 64, true}, "largest": {4096, 8192, true},
		"odd chunk": {3000, 64, false}, "large chunk": {8192, 64, false},
		"odd ring": {2048, 100, false}, "small ring": {2048, 32, false}, "large ring": {2048, 16384, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is, err := request{numbers: []int{5, tc.chunk, tc.ring}}.geometry()
			if (err == nil) != tc.want || tc.want && is != (geometry{5, tc.chunk, tc.ring}) {
				t.Errorf("geometry is %+v, %v", is, err)
			}
		})
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, seed := range []string{"/connect,a", "/version\x00", "/xsk_socket,nic0,3,4096,2048", "/config_busy_poll,20,64", ",,,", "/fin"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, packet []byte) {
		asked, err := parseRequest(packet)
		if err == nil && asked.kind == requestSocket && len(asked.numbers) != 3 {
			t.Errorf("%q gives %+v", packet, asked)
		}
		if err == nil && strings.ContainsAny(asked.name, ", \n\x00") {
			t.Errorf("%q gives the name %q", packet, asked.name)
		}
	})
}

func TestAllocationIsDescribed(t *testing.T) {
	pool := testPool()
	pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice}
	device := testDevice("nic0", 4, 5)
	a := newAllocation(pool, []bypass.Share{{ID: "b", Device: device, Queues: []int{5}}, {ID: "a", Device: device, Queues: []int{4}}})
	same := newAllocation(pool, []bypass.Share{{ID: "a", Device: device}, {ID: "b", Device: device}})
	if a.ID != same.ID || len(a.ID) != 16 {
		t.Errorf("the same units have the identifiers %s and %s", a.ID, same.ID)
	}
	edits := a.edits("/run/afxdp", pool.Name, nil)
	want := []bypass.Mount{
		{HostPath: "/run/afxdp/" + a.ID, ContainerPath: "/tmp/afxdp_dp/nic0"},
		{HostPath: "/run/afxdp/" + a.ID, ContainerPath: "/tmp/afxdp_dp/net1"},
	}
	if len(edits.Mounts) != 2 || edits.Mounts[0] != want[0] || edits.Mounts[1] != want[1] {
		t.Errorf("mounts are %+v", edits.Mounts)
	}
	variables := []bypass.Variable{{Name: "AFXDP_DEVICES_FAST_NICS", Value: "nic0"}, {Name: "AFXDP_QUEUES_FAST_NICS", Value: "nic0:5 nic0:4"}}
	if diff := cmp.Diff(variables, edits.Environment); diff != "" {
		t.Error(diff)
	}
}

// TestStoredAllocations: what a process before this one stored is read, and nothing whose identifier would lead elsewhere.
func TestStoredAllocations(t *testing.T) {
	folder := t.TempDir()
	mine, other := &allocation{Resource: "a/b", Units: []string{"u"}}, &allocation{Resource: "a/c"}
	for _, a := range []*allocation{mine, other} {
		a.ID = a.identifier()
		if err := a.store(folder); err != nil {
			t.Fatal(err)
		}
	}
	refused := map[string]string{
		"3.json":                "{",
		"4.json":                `{"ID": "../../../etc/cron.d/4", "Resource": "a/b", "Units": ["u"]}`,
		"5.json":                `{"ID": "/sys/fs/bpf", "Resource": "a/b", "Units": ["u"]}`,
		"6.json":                `{"ID": "` + mine.ID + `", "Resource": "a/b", "Units": ["u"]}`,
		"7.json":                `{"ID": "", "Resource": "a/b", "Units": ["u"]}`,
		"0123456789abcdef.json": `{"ID": "0123456789abcdef", "Resource": "a/b", "Units": ["u"]}`,
	}
	for name, text := range refused {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// A link to what is fine elsewhere, and something that would block whoever opens it.
	if err := errors.Join(os.Symlink(mine.file(folder), filepath.Join(folder, "8.json")), unix.Mkfifo(filepath.Join(folder, "9.json"), 0o600)); err != nil {
		t.Fatal(err)
	}
	stored, err := readAllocations(folder, "a/b")
	expectNamed(t, err, append(slices.Collect(maps.Keys(refused)), "8.json", "9.json")...)
	if len(stored) != 1 || stored[0].ID != mine.ID || stored[0].Units[0] != "u" {
		t.Errorf("stored are %+v", stored)
	}
}

// expectNamed expects an error that names files.
func expectNamed(t *testing.T, err error, names ...string) {
	t.Helper()
	for _, name := range names {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("nothing is said about %s: %v", name, err)
		}
	}
}

// TestFolders: a folder is closed to others before anything is in it, whatever made it, and one that is not ours is refused.
func TestFolders(t *testing.T) {
	kernelFolder(t)
	base := t.TempDir()
	prepare := map[string]struct {
		make func(path string) error
		want string
	}{
		"new":                   {func(string) error { return nil }, ""},
		"made by the kubelet":   {func(path string) error { return os.Mkdir(path, 0o755) }, ""},
		"open to everybody":     {func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o777)) }, ""},
		"a link":                {func(path string) error { return os.Symlink(base, path) }, "may not be a link"},
		"a file":                {func(path string) error { return os.WriteFile(path, nil, 0o600) }, "not a directory"},
		"made by somebody else": {func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 1234, 0)) }, "belongs to another user"},
	}
	for name, tc := range prepare {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(base, name)
			if err := tc.make(path); err != nil {
				t.Fatal(err)
			}
			err := makeFolder(path)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error is %v, want %q", err, tc.want)
				}
				return
			}
			info, statErr := os.Lstat(path)
			if err := errors.Join(err, statErr); err != nil || info.Mode() != os.ModeDir|privateMode {
				t.Errorf("the folder is %v, %v", info.Mode(), err)
			}
		})
	}
}
