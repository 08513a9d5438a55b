// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
)

// TestModulesDisk: the disk with the modules of a kernel comes last, so that the others keep their names, and only with a
// kernel that has one.
func TestModulesDisk(t *testing.T) {
	const want = "file=/cache/modules.raw,if=none,id=modules,format=raw,readonly=on"
	spec, f := machineSpec(), files{disk: "/run/disk.qcow2", second: "/run/files.raw"}
	if args := (emulator{}).machine(spec, spec.Boot, f); strings.Contains(strings.Join(args, " "), "id=modules") {
		t.Errorf("a kernel of the image has a disk with modules: %q", args)
	}
	f.modules = "/cache/modules.raw"
	var drives []string
	for _, arg := range (emulator{}).machine(spec, spec.Boot, f) {
		if strings.HasPrefix(arg, "file=") {
			drives = append(drives, arg)
		}
	}
	if len(drives) != 3 || drives[2] != want {
		t.Errorf("the disks are %q, want the last to be %q", drives, want)
	}
}

// TestKernelFiles: kernels of the image are in its folder, and need no other.
func TestKernelFiles(t *testing.T) {
	m := &Machine{image: &Image{Dir: "/image"}, spec: machineSpec()}
	f, err := m.kernelFiles(t.Context(), Standard)
	want := files{kernel: "/image/vmlinuz-standard", initrd: "/image/initrd-standard"}
	if err != nil || f != want {
		t.Errorf("got %+v, %v, want %+v", f, err, want)
	}
}

func machineSpec() Spec {
	return Spec{
		Name:     "pair",
		Topology: Topology{Packages: 2, CoresPerPackage: 2, ThreadsPerCore: 2, NUMANodes: 2, MebibytesPerNode: 1024},
		NICs: []NIC{
			{ID: "near", Model: E1000e, NUMANode: 0},
			{ID: "far", Model: Virtio, NUMANode: 1},
		},
		Boot:  Boot{Kernel: RealTime, Arguments: []string{"nohz_full=1-3"}},
		IOMMU: Present,
	}
}

func TestArguments(t *testing.T) {
	spec := machineSpec()
	args := emulator{threads: "multi"}.machine(spec, spec.Boot, files{
		kernel: "/image/vmlinuz-rt", initrd: "/image/initrd-rt", disk: "/run/disk.qcow2",
		serial: "/run/serial.log", qmp: "/run/qmp", sshPort: 12022,
	})
	golden.Assert(t, strings.Join(args, "\n")+"\n", "arguments.txt")
}

// TestWiredArguments: each end of a wire sends to where the other listens, and has a MAC address of its own.
func TestWiredArguments(t *testing.T) {
	one, other := NewWire("/run/wire")
	args := make([]string, 0, 12)
	for _, end := range []Wire{one, other} {
		spec := machineSpec()
		spec.NICs = append(spec.NICs, NIC{ID: "wired", Model: Virtio, Wire: end})
		all := (emulator{}).machine(spec, spec.Boot, files{})
		args = append(args, all[len(all)-6:]...)
	}
	golden.Assert(t, strings.Join(args, "\n")+"\n", "wired.txt")
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		change    func(*Spec)
		wantError string
	}{
		"whole machine": {change: func(*Spec) {}},
		"newer kernel":  {change: func(s *Spec) { s.Boot.Kernel = RealTimeBackports }},
		"no name":       {change: func(s *Spec) { s.Name = "" }, wantError: "needs a name"},
		"no threads":    {change: func(s *Spec) { s.Topology.ThreadsPerCore = 0 }, wantError: "must each be at least 1"},
		"uneven nodes":  {change: func(s *Spec) { s.Topology.NUMANodes = 3 }, wantError: "8 CPUs cannot be divided over 3 NUMA nodes"},
		"little memory": {change: func(s *Spec) { s.Topology.MebibytesPerNode = 64 }, wantError: "64 MiB per NUMA node is too little"},
		"many NICs":     {change: func(s *Spec) { s.NICs = make([]NIC, 13) }, wantError: "13 NICs are more than 12"},
		"no kernel":     {change: func(s *Spec) { s.Boot.Kernel = "newest" }, wantError: `the lab has no kernel "newest", only ["standard" "rt" "rt-backports" "installed"]`},
		"same ID twice": {change: func(s *Spec) { s.NICs[1].ID = "near" }, wantError: `the ID "near" of a NIC is empty or taken`},
		"no such node":  {change: func(s *Spec) { s.NICs[1].NUMANode = 2 }, wantError: "NIC far is on NUMA node 2"},
		"wire":          {change: func(s *Spec) { s.NICs[0].Wire, s.NICs[1].Wire = NewWire("/" + strings.Repeat("a", 101)) }},
		"third end":     {change: func(s *Spec) { s.NICs[1].Wire = Wire{"/run", 3} }, wantError: "machine pair: NIC far: a wire has the ends 1 and 2, and no end 3"},
		"wire nowhere":  {change: func(s *Spec) { s.NICs[1].Wire.End = 1 }, wantError: `the folder "" of a wire must be an absolute path`},
		"wire, comma":   {change: func(s *Spec) { s.NICs[1].Wire = Wire{"/a,b", 1} }, wantError: `the folder "/a,b" of a wire must be an absolute path`},
		"long wire":     {change: func(s *Spec) { s.NICs[0].Wire, _ = NewWire("/" + strings.Repeat("a", 102)) }, wantError: "is too long a path for a socket: give one of up to 102 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := machineSpec()
			tc.change(&spec)
			err := spec.Validate()
			if tc.wantError == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("got %v, want an error with %q", err, tc.wantError)
			}
		})
	}
}

func TestRequirementsNamesPackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Requirements()
	if err == nil {
		t.Fatal("got no error with an empty PATH")
	}
	for _, debian := range []string{"qemu-system-x86", "qemu-utils", "mmdebstrap", "e2fsprogs"} {
		if !strings.Contains(err.Error(), debian) {
			t.Errorf("%q does not name Debian's %s", err, debian)
		}
	}
}

func TestHashTreesFollowContentAndNames(t *testing.T) {
	write := func(dir, name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hash := func(roots ...string) string {
		t.Helper()
		sum, err := hashTrees(roots...)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	one, two := t.TempDir(), t.TempDir()
	write(one, "a", "x")
	write(two, "a", "x")
	if hash(one) != hash(two) {
		t.Error("equal folders have different hashes")
	}
	write(two, "a", "y")
	if hash(one) == hash(two) {
		t.Error("another content has the same hash")
	}
	file := filepath.Join(two, "a")
	before := hash(one, file)
	write(two, "a", "z")
	if hash(one, file) == before {
		t.Error("another content of a file beside the folder has the same hash")
	}
	write(two, "a", "x")
	if err := os.Rename(filepath.Join(two, "a"), filepath.Join(two, "b")); err != nil {
		t.Fatal(err)
	}
	if hash(one) == hash(two) {
		t.Error("another name has the same hash")
	}
}

// TestKeysOpenTheImage writes the keys of an image and reads them as a machine's user does.
func TestKeysOpenTheImage(t *testing.T) {
	dir := t.TempDir()
	if err := writeKeys(dir); err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(filepath.Join(dir, "authorized_keys"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "host_key.pub"), public, 0o644); err != nil {
		t.Fatal(err)
	}
	image, err := loadImage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(image.machine.Marshal(), image.user.PublicKey().Marshal()); diff != "" {
		t.Errorf("the key and its public half differ:\n%s", diff)
	}
}

// fakeQEMU answers each command in turn, after the greeting, as QEMU's monitor does.
func fakeQEMU(t *testing.T, answers ...string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "qmp")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = connection.Close() }()
		decoder := json.NewDecoder(connection)
		_, _ = connection.Write([]byte(`{"QMP":{"version":{}}}`))
		for _, answer := range append([]string{`{"return":{}}`}, answers...) {
			var request map[string]any
			if decoder.Decode(&request) != nil {
				return
			}
			_, _ = connection.Write([]byte(answer))
		}
		// The other end hangs up.
		_ = decoder.Decode(&map[string]any{})
	}()
	return socket
}

func TestUnplug(t *testing.T) {
	const deleted = `{"event":"DEVICE_DELETED","data":{"device":"near"}}`
	cases := map[string]struct {
		answer    string
		wantError string
	}{
		"answered, then gone": {answer: `{"return":{}}{"event":"DEVICE_DELETED","data":{"path":"/x"}}` + deleted},
		"an event before the answer": {
			answer: `{"event":"NIC_RX_FILTER_CHANGED","data":{}}{"return":{}}` + deleted,
		},
		"refused": {
			answer:    `{"error":{"class":"DeviceNotFound","desc":"Device 'near' not found"}}`,
			wantError: "machine pair: QEMU refuses device_del: Device 'near' not found",
		},
		"never gone": {answer: `{"return":{}}`, wantError: "waiting for the machine to let near go: too slow"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cause := errText("too slow")
			ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, cause)
			defer cancel()
			m := &Machine{spec: machineSpec(), process: &process{files: files{qmp: fakeQEMU(t, tc.answer)}}}
			err := m.Unplug(ctx, "near")
			if tc.wantError == "" {
				if err != nil {
					t.Errorf("got %v, want no error", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("got %v, want an error with %q", err, tc.wantError)
			}
		})
	}
}

type errText string

func (e errText) Error() string { return string(e) }

func TestQuote(t *testing.T) {
	if got, want := quote("a b'c"), `'a b'\''c'`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLastLines(t *testing.T) {
	if got, want := lastLines("a\nb\nc\n", 2), "b\nc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
