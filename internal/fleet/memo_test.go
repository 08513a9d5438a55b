// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import "testing"

func TestMemo(t *testing.T) {
	m := newMemo[int, string](2)
	for i, text := range []string{"a", "b", "c"} {
		m.put(i, text)
	}
	if got, found := m.get(0); !found || got != "a" {
		t.Errorf("get(0) = %q, %v, want a", got, found)
	}
	m.put(3, "d")
	if _, found := m.get(1); found {
		t.Error("what was not asked for is still remembered")
	}
	for i, want := range map[int]string{0: "a", 2: "c", 3: "d"} {
		if got, found := m.get(i); !found || got != want {
			t.Errorf("get(%d) = %q, %v, want %s", i, got, found, want)
		}
	}
	for i := range 1000 {
		m.put(i, "x")
		if size := len(m.young) + len(m.old); size > 4 {
			t.Fatalf("%d values are remembered, want at most 4", size)
		}
	}
}
