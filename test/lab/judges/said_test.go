// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package judges

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAbsentServers(t *testing.T) {
	const some = "udp   UNCONN 0      0          192.0.2.2:11111      0.0.0.0:*\ntcp   LISTEN 0      8            0.0.0.0:2048       0.0.0.0:*\n" +
		"tcp   LISTEN 0      128          0.0.0.0:22         192.0.2.9:19765\n"
	if diff := cmp.Diff([]string{"tcp 19765", "tcp 11111"}, absentServers(some)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := absentServers(""); len(got) != 4 {
		t.Errorf("where nothing listens, these are absent: %q", got)
	}
	all := some + "tcp LISTEN 0 5 *:19765 *:*\ntcp LISTEN 0 100 192.0.2.2:11111 0.0.0.0:*\n"
	if got := absentServers(all); got != nil {
		t.Errorf("%q", got)
	}
}

func TestBusyness(t *testing.T) {
	const seconds = time.Second
	for _, tc := range []struct {
		client, server time.Duration
		want           string
	}{
		{seconds, seconds / 2, "In 100 s, the emulator of the client was ready and without a CPU of this machine for 1.0 s, that of the server for 0.5 s.\n"},
		{30 * seconds, 9 * seconds, "In 100 s, the emulator of the client was ready and without a CPU of this machine for 30.0 s, that of the server for 9.0 s: " +
			"where an interval is too wide, the machine was busy.\n"},
	} {
		if got := busyness(tc.client, tc.server, 100*seconds); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// wholeTable is what the judges print between two machines, without its numbers.
const wholeTable = `| What | Holds |
| delay that netem added to the fastest round trip, in 7 turns | yes |
| delay that netem added to the fastest round trip, in 7 turns | **no**: the whole interval is beyond it |
| median of 64 bytes over UDP, beside sockperf in 7 turns | yes |
| median of 1024 bytes over UDP, beside sockperf in 7 turns | **no**: interval too wide   |
| median of 64 bytes over TCP, beside sockperf in 7 turns | yes |
| median of 1024 bytes over TCP, beside sockperf in 7 turns | yes |
| mean of 64 bytes over UDP, beside qperf in 7 turns | yes |
| mean of 1024 bytes over UDP, beside qperf in 7 turns | yes |
| mean of 64 bytes over TCP, beside qperf in 7 turns | yes |
| mean of 1024 bytes over TCP, beside qperf in 7 turns | yes |
`

func TestIncomplete(t *testing.T) {
	if got := incomplete(wholeTable); got != nil {
		t.Errorf("a whole table lacks %q", got)
	}
	for line := range strings.Lines(wholeTable) {
		if got := incomplete(strings.Replace(wholeTable, line, "", 1)); (len(got) == 1) != strings.Contains(line, "turns") {
			t.Errorf("without %q it lacks %q", line, got)
		}
	}
	silent := strings.Replace(wholeTable, "**no**: interval too wide", "**no**", 1)
	if got := incomplete(silent); len(got) != 1 || !strings.Contains(got[0], "does not say why") {
		t.Errorf("a row without its reason: %q", got)
	}
}

func TestLoaded(t *testing.T) {
	const text = "\tlinux-vdso.so.1 (0x00007febb5622000)\n\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007febb5615000)\n" +
		"\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007febb5111000)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007febb5624000)\n\tlibnone.so => not found\n"
	loader, libraries := loaded(text)
	if diff := cmp.Diff([]string{"/lib/x86_64-linux-gnu/libdl.so.2", "/lib/x86_64-linux-gnu/libm.so.6"}, libraries); loader != "/lib64/ld-linux-x86-64.so.2" || diff != "" {
		t.Errorf("%q (-want +got):\n%s", loader, diff)
	}
	if loader, libraries := loaded("\tnot a dynamic executable\n"); loader != "" || libraries != nil {
		t.Errorf("%q, %q", loader, libraries)
	}
}

func TestStarter(t *testing.T) {
	const want = "#!/bin/sh\nexec /opt/carried/ld-linux-x86-64.so.2 --library-path /opt/carried /opt/carried/qperf \"$@\"\n"
	if diff := cmp.Diff(want, starter("/opt/carried", "/lib64/ld-linux-x86-64.so.2", "qperf")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzLoaded(f *testing.F) {
	f.Add("\tlibm.so.6 => /lib/libm.so.6 (0x0)\n\t/lib64/ld-linux-x86-64.so.2 (0x0)\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		loader, libraries := loaded(text)
		for _, file := range append(libraries, loader) {
			if file != "" && (file[0] != '/' || !strings.Contains(text, file)) {
				t.Errorf("%q has a file %q", text, file)
			}
		}
	})
}
