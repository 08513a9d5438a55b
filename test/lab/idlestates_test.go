// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestIdleTable: every CPU has a scope of its own, each as long as it says, with both states in it. That a kernel takes the
// table for what it is meant to be shows make lab-short.
func TestIdleTable(t *testing.T) {
	table, cpus := idleTable(12), 0
	for ; len(table) > 0; cpus++ {
		length := int(table[1]&0xf) | int(table[2])<<4
		if table[0] != 0x10 || table[1]>>6 != 1 || length+1 > len(table) {
			t.Fatalf("scope %d begins with % x and has %d bytes, of which %d are left", cpus, table[:3], length, len(table))
		}
		scope := table[:length+1]
		for _, wanted := range []string{fmt.Sprintf("\\/\x03_SB_CPUSC%03X", cpus), "_CST", "\x0b\x02\x00", "\x0b\x85\x00"} {
			if !bytes.Contains(scope, []byte(wanted)) {
				t.Errorf("scope %d lacks %q: % x", cpus, wanted, scope)
			}
		}
		table = table[length+1:]
	}
	if cpus != 12 {
		t.Errorf("%d CPUs have idle states, want 12", cpus)
	}
}

// TestIdleTableIsGiven: a machine without idle states gets no table.
func TestIdleTableIsGiven(t *testing.T) {
	spec := machineSpec()
	given := func() bool {
		m := &Machine{spec: spec, dir: "/run"}
		args := (emulator{}).machine(spec, spec.Boot, files{disk: "/run/disk.qcow2", idle: m.idleTable()})
		at := slices.Index(args, "-acpitable")
		return at >= 0 && strings.HasSuffix(args[at+1], "data=/run/idle.aml")
	}
	if given() {
		t.Error("a machine that did not ask for idle states gets a table")
	}
	if spec.IdleStates = Present; !given() {
		t.Error("the table is not given to QEMU")
	}
}
