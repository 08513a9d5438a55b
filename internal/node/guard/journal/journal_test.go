// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package journal_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	. "github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

func records() []Record {
	return []Record{
		{Begin: &Begin{Number: 3, Hash: "0123", Operations: []operation.Operation{operation.SetSysctl("vm.stat_interval", "10")}, BootID: "a", DeadlineSeconds: 600}},
		{Change: &Change{Path: "/etc/a", Before: hostfile.State{Type: hostfile.Regular, Mode: 0o640, UID: 1, GID: 2, Label: "etc_t", Content: []byte{0, '\n', 0xff}}}},
		{Change: &Change{Path: "/boot/grub/grubenv", Role: Environment, After: hostfile.File("x", 0o600)}},
		{Stage: &Reached{Stage: Reverted, BootID: "b", Reason: "it\nwas", Differences: []string{"one"}}},
	}
}

func encoded(t *testing.T) (all []byte, ends []int) {
	t.Helper()
	for _, record := range records() {
		line, err := Encode(record)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line...)
		ends = append(ends, len(all))
	}
	return all, ends
}

// TestEveryPrefix: whatever a power cut leaves of a journal, the whole records in it are read, and nothing else.
func TestEveryPrefix(t *testing.T) {
	all, ends := encoded(t)
	for length := range len(all) + 1 {
		var want []Record
		end := 0
		for i, record := range records() {
			if ends[i] <= length {
				want, end = append(want, record), ends[i]
			}
		}
		got, whole, err := Decode(all[:length])
		if diff := cmp.Diff(want, got); diff != "" || whole != end || err != nil {
			t.Fatalf("of %d bytes: %d whole ones, %v (-want +got):\n%s", length, whole, err, diff)
		}
	}
}

// TestEveryDamagedByte: a byte that was changed in a record that is not the last is no power cut, and is told. Without the
// end of its line a record is one with the last, which may be unfinished.
func TestEveryDamagedByte(t *testing.T) {
	all, ends := encoded(t)
	for at := range ends[len(ends)-2] {
		damaged := bytes.Clone(all)
		if damaged[at] == '\n' {
			continue
		}
		damaged[at] ^= 1
		got, whole, err := Decode(damaged)
		if err == nil || !strings.Contains(err.Error(), "the journal is damaged at byte") || got != nil || whole != 0 {
			t.Fatalf("with a changed byte at %d: %d records, %d, %v", at, len(got), whole, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte("0 {}\n\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		got, whole, err := Decode(content)
		if err != nil {
			return
		}
		again, length, err := Decode(content[:whole])
		if err != nil || length != whole {
			t.Fatalf("what was whole is read as %d of %d bytes: %v", length, whole, err)
		}
		if diff := cmp.Diff(got, again); diff != "" {
			t.Fatalf("what was whole is read otherwise:\n%s", diff)
		}
	})
}
