// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64

package jitter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// smiTree is a folder with files below it, in which a processor says what it is.
func smiTree(t *testing.T, vendor, flags string, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: "+vendor+"\nflags\t\t: fpu "+flags+"\n\n")
	for name, content := range files {
		write(name, content)
	}
	return root
}

// register is the content of /dev/cpu/0/msr up to MSR_SMI_COUNT, whose upper half is reserved.
func register(count byte) string {
	return strings.Repeat("x", msrSMICount) + string([]byte{count, 0, 0, 0, count, 9, 9, 9})
}

const smiFolder = "sys/bus/event_source/devices/msr/"

// TestSMIsByTheRegister: a processor that tells no event is asked for its register, and what cannot be counted is unknown and never 0.
func TestSMIsByTheRegister(t *testing.T) {
	const register0 = "dev/cpu/0/msr"
	for name, tc := range map[string]struct {
		vendor, flags string
		files         map[string]string
		changed       byte
		count         uint64
		unknown       string
	}{
		"none":              {"GenuineIntel", "", map[string]string{register0: register(4)}, 4, 0, ""},
		"some":              {"GenuineIntel", "", map[string]string{register0: register(4)}, 7, 3, ""},
		"virtual, and none": {"GenuineIntel", "hypervisor", map[string]string{register0: register(4)}, 4, 0, "/dev/cpu/0/msr counted none, and this is a virtual machine, which does not see those of the machine below"},
		"virtual, and some": {"GenuineIntel", "hypervisor", map[string]string{register0: register(4)}, 5, 1, ""},
		"of AMD":            {"AuthenticAMD", "", map[string]string{register0: register(4)}, 7, 0, "only processors of Intel count them, and this is none"},
		"nothing counts":    {"GenuineIntel", "", nil, 0, 0, "perf event msr/smi/: no such file or directory; /dev/cpu/0/msr: no such file or directory"},
		"a short register":  {"GenuineIntel", "", map[string]string{register0: "x"}, 0, 0, "EOF"},
		"a PMU of another kind": {"GenuineIntel", "", map[string]string{smiFolder + "type": "x\n", smiFolder + "events/smi": "event=0x04\n"}, 0, 0,
			`perf event msr/smi/: its type is "x"; /dev/cpu/0/msr: no such file or directory`},
		"an event of another kind": {"GenuineIntel", "", map[string]string{smiFolder + "type": "9\n", smiFolder + "events/smi": "umask=1\n"}, 0, 0,
			`perf event msr/smi/: it is "umask=1"; /dev/cpu/0/msr: no such file or directory`},
	} {
		root := smiTree(t, tc.vendor, tc.flags, tc.files)
		ran := false
		found := findSMIs(root)
		// To read it again would interrupt CPUs that are measured.
		if err := os.Remove(filepath.Join(root, "proc/cpuinfo")); err != nil {
			t.Fatal(err)
		}
		counter := found.open(0)
		got := counter.while(func() {
			ran = true
			if len(tc.files[register0]) <= 1 {
				return
			}
			if err := os.WriteFile(filepath.Join(root, register0), []byte(register(tc.changed)), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		counter.close()
		if !ran || got.Count != tc.count || (got.Unknown == "") != (tc.unknown == "") || !strings.Contains(got.Unknown, tc.unknown) {
			t.Errorf("%s: %+v, ran %t", name, got, ran)
		}
	}
}

// TestSMIsByTheEvent opens events of the kernel's own software PMU in place of msr/smi/: one that counts nothing and one that counts time. It takes the
// right to open events of a CPU (root, or CAP_PERFMON).
func TestSMIsByTheEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		event string
		some  bool
	}{
		// PERF_COUNT_SW_DUMMY and PERF_COUNT_SW_CPU_CLOCK of linux/perf_event.h.
		"none": {"event=0x09\n", false}, "some": {"event=0x00\n", true},
	} {
		root := smiTree(t, "GenuineIntel", "", map[string]string{smiFolder + "type": "1\n", smiFolder + "events/smi": tc.event})
		counter := findSMIs(root).open(0)
		got := counter.while(func() {})
		counter.close()
		if strings.Contains(got.Unknown, "CAP_PERFMON") {
			if os.Getenv("CI") != "" {
				t.Fatal(got.Unknown + ", and in CI no test is skipped")
			}
			t.Skip(got.Unknown)
		}
		if got.Unknown != "" || got.From != smiEventName || (got.Count > 0) != tc.some {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
