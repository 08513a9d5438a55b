// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"archive/tar"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hiddenInterrupts is a container on a host with two possible CPUs, whose runtime hides /proc/interrupts.
func hiddenInterrupts() files {
	return files{
		"proc/version": "Linux", "proc/softirqs": "CPU0 CPU1\nTIMER: 1 2\n", "sys/devices/system/cpu/possible": "0-1\n",
		"sys/kernel/irq/24/actions": "eth0-rx,eth0-tx\n", "sys/kernel/irq/24/chip_name": "PCI-MSIX-0000:00:04.0\n",
		"sys/kernel/irq/24/hwirq": "3\n", "sys/kernel/irq/24/type": "edge\n", "sys/kernel/irq/24/per_cpu_count": "7,0\n",
		"sys/kernel/irq/9/actions": "acpi\n", "sys/kernel/irq/9/chip_name": "IO-APIC\n", "sys/kernel/irq/9/hwirq": "9\n",
		"sys/kernel/irq/9/type": "level\n", "sys/kernel/irq/9/per_cpu_count": "0,1\n",
		"sys/kernel/irq/30/actions": "\n", "sys/kernel/irq/30/per_cpu_count": "0,0\n",
	}
}

// openHidden packs the files, with the device of /dev/null in the place of one.
func openHidden(t *testing.T, in files, hidden string) *Host {
	t.Helper()
	headers := make([]tar.Header, 0, len(in)+1)
	headers = append(headers, tar.Header{Name: hidden, Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3})
	for _, name := range slices.Sorted(maps.Keys(in)) {
		headers = append(headers, tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(in[name]))})
	}
	opened, err := Open(writeFile(t, packHeaders(t, headers, func(name string) string { return in[name] })))
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	return opened
}

func TestDeviceInterrupts(t *testing.T) {
	want := []InterruptLine{
		{"9", []uint64{0, 1}, "IO-APIC 9-level  acpi"},
		{"24", []uint64{7, 0}, "PCI-MSIX-0000:00:04.0 3-edge  eth0-rx, eth0-tx"},
	}
	opened := openHidden(t, hiddenInterrupts(), "proc/interrupts")
	// The second reading takes from the first what has not changed.
	for range 2 {
		counters, err := opened.ReadCounters(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, counters.Interrupts.Lines.Value); diff != "" || !slices.Equal(counters.Interrupts.Columns, []int{0, 1}) {
			t.Errorf("columns %v, lines (-want +got):\n%s", counters.Interrupts.Columns, diff)
		}
	}
	if got := actionsIn(want[1].Description); got != "eth0-rx, eth0-tx" {
		t.Errorf("handlers %q", got)
	}
	// What judges a node needs the counters of the kernel, too, so for it they are not known.
	facts, err := opened.Read(t.Context())
	must(t, err)
	expect(t, "interrupts of a node", facts.Interrupts.Lines, "absent: "+reasonHidden)
}

func TestDeviceInterruptsMissing(t *testing.T) {
	for name, in := range map[string]files{
		"no folder":      {"proc/version": "Linux", "sys/devices/system/cpu/possible": "0-1\n"},
		"too few counts": hiddenInterrupts().with(files{"sys/kernel/irq/24/per_cpu_count": "7\n", "sys/kernel/irq/9/per_cpu_count": "x,1\n"}),
		"no CPUs":        hiddenInterrupts().with(files{"sys/devices/system/cpu/possible": "none\n"}),
	} {
		counters, err := openHidden(t, in, "proc/interrupts").ReadCounters(t.Context())
		must(t, err)
		if counters.Interrupts.Lines.Known {
			t.Errorf("%s: %v", name, counters.Interrupts.Lines.Value)
		}
	}
}

// TestHiddenFile reads what a container runtime puts over a file, as the kernel shows it.
func TestHiddenFile(t *testing.T) {
	tree, err := openDirectory("/dev")
	must(t, err)
	t.Cleanup(func() { must(t, tree.Close()) })
	view := tree.view()
	defer view.release()
	for name, want := range map[string]error{"null": errHidden, "zero": errNotRegular} {
		if _, err := view.readFile(name, smallFile); !errors.Is(err, want) {
			t.Errorf("reading /dev/%s gives %v", name, err)
		}
		if _, err := newWalk(view).regular(name); !errors.Is(err, want) {
			t.Errorf("finding /dev/%s gives %v", name, err)
		}
	}
}
