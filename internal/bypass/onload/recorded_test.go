// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package onload

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecorded judges what onload_stackdump lots of Onload 9.2 printed in containers of make lab-onload, which records it.
func TestRecorded(t *testing.T) {
	// The network namespace of the recorded containers.
	pods := uint64(4026532431)
	cases := map[string]struct {
		in    Container
		want  State
		words []string
	}{
		"beside": {Container{}, Accelerated, []string{"5 datagrams", "Onload has handed 1 socket to the kernel (tcp_handover_connect 1)"}},
		"probed": {Container{}, Accelerated, []string{"20 datagrams", "1 connection of TCP came in through an interface that is not accelerated (1 to 0.0.0.0:9000)"}},
		// No virtual interface was left for the second, which has EF_NO_FAIL=1 and sees the stack of the first.
		"neighbour": {Container{}, Accelerated, []string{"5 datagrams", "none through the kernel"}},
		"late": {
			Container{Namespace: &pods, ShowsAll: true}, NoStack,
			[]string{"are those of the kernel, although stack 4 is in its network namespace", "that a virtual interface (VI) was free when it started"},
		},
		"alone": {
			Container{Namespace: &pods, ShowsAll: true}, NoStack,
			[]string{"are those of the kernel, although stack 2 is in its network namespace", "handed sockets to the kernel (tcp_handover_connect 1)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			stacks, err := ParseStackdump(string(text))
			if err != nil {
				t.Fatal(err)
			}
			got := Judge(stacks, tc.in)
			if got.State != tc.want {
				t.Errorf("got %s: %s", got.State, got.Message)
			}
			for _, words := range tc.words {
				if !strings.Contains(got.Message, words) {
					t.Errorf("%q does not say %q", got.Message, words)
				}
			}
		})
	}
}
