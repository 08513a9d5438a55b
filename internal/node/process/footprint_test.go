// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// smapsOfAgent has the mappings of a program (two that are unchanged, one that the dynamic linker has changed, one that
// may be written), of memory without a file, of a file that others change, and of the kernel.
const smapsOfAgent = `00400000-023ca000 r-xp 00000000 fe:00 26265195                           /lowlatency-operator
Size:              32552 kB
Rss:               21284 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
023ca000-0499d000 r--p 01fca000 fe:00 26265195                           /lowlatency-operator
Rss:               23244 kB
Anonymous:             0 kB
0499d000-0499e000 r--p 0459c000 fe:00 26265195                           /lowlatency-operator
Rss:                   4 kB
Anonymous:             4 kB
0499e000-04a63000 rw-p 0459d000 fe:00 26265195                           /lowlatency-operator
Anonymous:             0 kB
c000000000-c000400000 r--p 00000000 00:00 0 
Anonymous:             0 kB
7f0000000000-7f0000001000 r--s 00000000 fe:00 7                          /shared
Anonymous:             0 kB
7fff0000-7fff1000 r-xp 00000000 00:00 0                                  [vdso]
Anonymous:             0 kB
`

func TestUnchangedMappings(t *testing.T) {
	want := []mapping{{0x400000, 0x23ca000}, {0x23ca000, 0x499d000}}
	if diff := cmp.Diff(want, unchangedMappings(smapsOfAgent), cmp.AllowUnexported(mapping{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := unchangedMappings("x-y r-xp 0 0 7 /program\nAnonymous: 0 kB\n\nAnonymous:\n"); got != nil {
		t.Errorf("nonsense has the mappings %v", got)
	}
}

// TestForgettingTheStart: a program that has given its pages back has fewer, and runs on.
func TestForgettingTheStart(t *testing.T) {
	before := residentFilePages(t)
	if err := forgetStart(); err != nil {
		t.Fatal(err)
	}
	if after := residentFilePages(t); after >= before {
		t.Errorf("%g KiB of files are mapped, before it were %g", after, before)
	}
}

// TestCollectingOften: what the environment says is kept.
func TestCollectingOften(t *testing.T) {
	cases := map[string]struct {
		environment string
		want        int
	}{
		"by itself":         {"", agentGCPercent},
		"as it was told to": {"77", 77},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", tc.environment)
			defer debug.SetGCPercent(debug.SetGCPercent(77))
			collectOften()
			got := debug.SetGCPercent(77)
			if got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// residentFilePages is how much of files is mapped into this process, in KiB; those of a tmpfs count as RssShmem.
func residentFilePages(t *testing.T) float64 {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var pages float64
	for line := range strings.Lines(string(status)) {
		fields := append(strings.Fields(line), "", "")
		if fields[0] == "RssFile:" || fields[0] == "RssShmem:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			pages += kib
		}
	}
	return pages
}
