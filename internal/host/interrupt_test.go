// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const x86Interrupts = `           CPU0       CPU2
  0:         57          0  IR-IO-APIC    2-edge      timer
 16:          0          3  IR-IO-APIC   16-fasteoi   i801_smbus, ehci_hcd:usb1
 24:          0          0  IR-PCI-MSI-0000:17:00.0    0-edge      PCIe PME
 30:          5         10  PCI-MSI 1572864-edge      eth0-TxRx-0
 31:          5         10  PCI-MSI 1572865-edge
 32:          0          1   xen-dyn    -event     blkif
NMI:          1          2   Non-maskable interrupts
LOC:   70738457   70758248   Local timer interrupts
ERR:          0
MIS:          0
`

const armInterrupts = `           CPU0       CPU1       CPU2       CPU3
 11:       1234       1235       1236       1237     GICv3  27 Level     arch_timer
 40:          0          0          0          9   ITS-MSI 524288 Edge      nvme0q0
IPI0:         1          2          3          4       Rescheduling interrupts
Err:          0
`

// parseCounters reads a table from a text that comes in pieces.
func parseCounters(text string, piece int, earlier counterTable) (counterTable, error) {
	parser := &counterParser{earlier: earlier}
	for part := range slices.Chunk([]byte(text), piece) {
		if _, err := parser.Write(part); err != nil {
			return counterTable{}, err
		}
	}
	return parser.finish()
}

func TestParseCounters(t *testing.T) {
	cases := map[string]struct {
		text        string
		wantColumns []int
		wantLines   []InterruptLine
	}{
		"x86": {x86Interrupts, []int{0, 2}, []InterruptLine{
			{"0", []uint64{57, 0}, "IR-IO-APIC    2-edge      timer"},
			{"16", []uint64{0, 3}, "IR-IO-APIC   16-fasteoi   i801_smbus, ehci_hcd:usb1"},
			{"24", []uint64{0, 0}, "IR-PCI-MSI-0000:17:00.0    0-edge      PCIe PME"},
			{"30", []uint64{5, 10}, "PCI-MSI 1572864-edge      eth0-TxRx-0"},
			{"31", []uint64{5, 10}, "PCI-MSI 1572865-edge"},
			{"32", []uint64{0, 1}, "xen-dyn    -event     blkif"},
			{"NMI", []uint64{1, 2}, "Non-maskable interrupts"},
			{"LOC", []uint64{70738457, 70758248}, "Local timer interrupts"},
			{"ERR", []uint64{0}, ""},
			{"MIS", []uint64{0}, ""},
		}},
		"arm": {armInterrupts, []int{0, 1, 2, 3}, []InterruptLine{
			{"11", []uint64{1234, 1235, 1236, 1237}, "GICv3  27 Level     arch_timer"},
			{"40", []uint64{0, 0, 0, 9}, "ITS-MSI 524288 Edge      nvme0q0"},
			{"IPI0", []uint64{1, 2, 3, 4}, "Rescheduling interrupts"},
			{"Err", []uint64{0}, ""},
		}},
		"softirqs":           {"      CPU0       CPU1\n  HI:  0  1\n\nRCU: 18446744073709551615 2", []int{0, 1}, []InterruptLine{{"HI", []uint64{0, 1}, ""}, {"RCU", []uint64{1<<64 - 1, 2}, ""}}},
		"header only":        {"CPU0\n", []int{0}, nil},
		"a number too large": {"CPU0 CPU1\n 0: 18446744073709551616 7 x\n", []int{0, 1}, []InterruptLine{{"0", []uint64{}, "18446744073709551616 7 x"}}},
		"as wide as it gets": {"CPU0 CPU1\n 0:          0 4294967295\n 1: 4294967295          0\n", []int{0, 1}, []InterruptLine{{"0", []uint64{0, 1<<32 - 1}, ""}, {"1", []uint64{1<<32 - 1, 0}, ""}}},
		"zeros at the end":   {"CPU0\n 0: 5 dev\x00\x00", []int{0}, []InterruptLine{{"0", []uint64{5}, "dev"}}},
		"too few counters":   {"CPU0 CPU1\n 0: 5 dev 7\n", []int{0, 1}, []InterruptLine{{"0", []uint64{5}, "dev 7"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			table, err := parseCounters(tc.text, 1000, counterTable{})
			must(t, err)
			if diff := cmp.Diff(tc.wantColumns, table.columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.wantLines, table.lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseCountersRefuses(t *testing.T) {
	cases := map[string]struct{ text, wantMessage string }{
		"nothing":           {"", "names no CPU"},
		"blank header":      {"   \n 0: 1\n", "names no CPU"},
		"no header":         {" 0: 1 timer\n", `names "0:" where a CPU belongs`},
		"descending header": {"CPU1 CPU0\n", "names CPU0 after CPU1"},
		"repeated CPU":      {strings.Repeat("CPU1 ", 2), "names CPU1 after CPU1"},
		"CPU too high":      {"CPU8192\n", `names "CPU8192" where`},
		"leading zero":      {"CPU00\n", `names "CPU00" where`},
		"no name":           {"CPU0\n: 1\n", "line 2:"},
		"no colon":          {"CPU0\n 0: 1\n\n 1 2\n", "line 3:"},
		"binary":            {"CPU0\n 0: 1 \x01\n", "line 2:"},
		"a binary name":     {"CPU0\n\xff: 1\n", "line 2:"},
		"endless lines":     {"CPU0\n" + strings.Repeat("0:\n", maxEntries+1), "holds more than 65536 entries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := parseCounters(tc.text, 50, counterTable{}); err == nil || !strings.Contains(err.Error(), tc.wantMessage) {
				t.Errorf("got %v, want %q", err, tc.wantMessage)
			}
		})
	}
}

// TestCountersThatStayNeedNoMemory: of a large host, a reading that finds nothing new keeps nothing new.
func TestCountersThatStayNeedNoMemory(t *testing.T) {
	earlier, err := parseCounters(x86Interrupts, 1000, counterTable{})
	must(t, err)
	changed := strings.NewReplacer("16:          0          3", "16:          0          4", "Local timer", "Local clock").Replace(x86Interrupts)
	later, err := parseCounters(changed, 1000, earlier)
	must(t, err)
	if &later.columns[0] != &earlier.columns[0] {
		t.Error("the columns are kept twice")
	}
	for i, line := range later.lines {
		if shared := &line.Counts[0] == &earlier.lines[i].Counts[0]; shared != (line.Name != "16") {
			t.Errorf("line %s: the counts are shared: %t", line.Name, shared)
		}
	}
	if got := earlier.lines[1].Counts; !slices.Equal(got, []uint64{0, 3}) {
		t.Errorf("the earlier counts of interrupt 16 have become %v", got)
	}
	if got := later.lines[1].Counts; !slices.Equal(got, []uint64{0, 4}) {
		t.Errorf("interrupt 16 has %v", got)
	}
	if got := later.lines[7].Description; got != "Local clock interrupts" {
		t.Errorf("LOC is described as %q", got)
	}
}

// TestInterruptsComeAndGo: what a host read before does not show in what it reads now.
func TestInterruptsComeAndGo(t *testing.T) {
	tree := newMemoryTree()
	h := &Host{path: "test", tree: tree}
	for i, text := range []string{x86Interrupts, armInterrupts, "CPU0\n NMI: 1\n", x86Interrupts} {
		delete(tree.nodes, "proc/interrupts")
		must(t, tree.add("proc/interrupts", &memoryNode{node: node{kind: kindFile}, content: text}))
		want, err := parseCounters(text, 1000, counterTable{})
		must(t, err)
		counters, err := h.ReadCounters(t.Context())
		must(t, err)
		if diff := cmp.Diff(want.lines, counters.Interrupts.Lines.Value); diff != "" {
			t.Errorf("reading %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestRoutes(t *testing.T) {
	tree := files{
		"proc/interrupts":                      x86Interrupts,
		"proc/irq/default_smp_affinity":        "0,0000000f\n",
		"proc/irq/0/smp_affinity_list":         "0-3\n",
		"proc/irq/0/effective_affinity_list":   "2\n",
		"proc/irq/16/smp_affinity":             "00000003\n",
		"proc/irq/16/effective_affinity":       "1\n",
		"proc/irq/30/":                         "",
		"proc/irq/32/smp_affinity_list":        "x",
		"proc/irq/100/virtio0-input.0/":        "",
		"proc/irq/100/virtio0-config/":         "",
		"proc/irq/100/effective_affinity_list": "\n",
		"proc/irq/31/affinity_hint":            "0",
		"proc/irq/prof_cpu_mask":               "f",
	}
	interrupts := readAll(t, tree).Interrupts
	got := make([]string, 0, len(interrupts.Routes))
	for _, route := range interrupts.Routes {
		got = append(got, fmt.Sprintf("%d allowed %s, at %s, for %q", route.Number,
			shown(route.Affinity), shown(route.EffectiveAffinity), route.Actions))
	}
	want := []string{
		`0 allowed 0-3, at 2, for ["timer"]`,
		`16 allowed 0-1, at 0, for ["i801_smbus" "ehci_hcd:usb1"]`,
		`30 allowed absent: no such file, at absent: no such file, for ["eth0-TxRx-0"]`,
		`31 allowed absent: no such file, at absent: no such file, for []`,
		`32 allowed absent: CPU list "x": "x" is not a CPU number, at absent: no such file, for ["blkif"]`,
		`100 allowed absent: no such file, at , for ["virtio0-config" "virtio0-input.0"]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	expect(t, "the default", interrupts.DefaultAffinity, "0-3")
	if diff := cmp.Diff([]int{0, 2}, interrupts.Columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestActionsByName(t *testing.T) {
	cases := map[string]struct {
		description string
		want        []string
	}{
		"edge":          {"IR-IO-APIC    2-edge      timer", []string{"timer"}},
		"shared":        {"IO-APIC   16-fasteoi   a, b:usb1", []string{"a", "b:usb1"}},
		"with spaces":   {"IR-PCI-MSI-0000:17:00.0    0-edge      PCIe PME", []string{"PCIe PME"}},
		"mlx5":          {"IR-PCI-MSIX-0000:5e:00.0    1-edge      mlx5_comp0@pci:0000:5e:00.0", []string{"mlx5_comp0@pci:0000:5e:00.0"}},
		"arm":           {"GICv3  27 Level     arch_timer", []string{"arch_timer"}},
		"arm edge":      {"ITS-MSI 524288 Edge      nvme0q0", []string{"nvme0q0"}},
		"xen":           {"xen-dyn    -event     blkif", []string{"blkif"}},
		"no action":     {"IO-APIC    2-edge", nil},
		"not a trigger": {"Local timer  interrupts", nil},
		"none":          {"", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := actionsByName([]InterruptLine{{Name: "7", Description: tc.description}})["7"]
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzDescription compares how the descriptions of interrupts are taken apart with regular expressions, which say what is meant
// and take thirty times as long.
func FuzzDescription(f *testing.F) {
	for _, seed := range []string{
		"IR-IO-APIC    2-edge      timer", "IO-APIC   16-fasteoi   a, b:usb1", "IR-PCI-MSI-0000:17:00.0    0-edge      PCIe PME",
		"IR-PCI-MSIX-0000:5e:00.0    1-edge      mlx5_comp0@pci:0000:5e:00.0", "PCI-MSI-10000:5e:00.7 ", "PCI-MSIX-0000:5e:00.8 1-edge  x",
		"GICv3  27 Level     arch_timer", "ITS-MSI 524288 Edge      nvme0q0", "xen-dyn    -event     blkif", "IO-APIC    2-edge",
		"IO-APIC    2-edge  ", "a 1-edge  b 2-edge \t c  d", "-edge  a", " --  a", "Edge  a", " Edge a", "PCI-MSI-PCI-MSI-0000:01:00.0\fx", "",
	} {
		f.Add(seed)
	}
	trigger := regexp.MustCompile(`^.*(?:[0-9\s]-[a-z-]+|\s(?:Edge|Level))\s{2,}(\S.*)$`)
	message := regexp.MustCompile(`^\S*PCI-MSIX?-([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s`)
	f.Fuzz(func(t *testing.T, description string) {
		if !utf8.ValidString(description) || strings.ContainsRune(description, '\n') {
			return // A line of a text.
		}
		want := append(trigger.FindStringSubmatch(description), "", "")[1]
		if got := actionsIn(description); got != want {
			t.Errorf("the actions in %q are %q, want %q", description, got, want)
		}
		want = append(message.FindStringSubmatch(description), "", "")[1]
		if got, ok := vectorDevice(description); ok != (want != "") || ok && got != want {
			t.Errorf("the device in %q is %q, %t, want %q", description, got, ok, want)
		}
	})
}

func TestNoCounters(t *testing.T) {
	facts := readAll(t, nil)
	expect(t, "interrupts", facts.Interrupts.Lines, "absent: no such file")
	expect(t, "softirqs", facts.Softirqs.Lines, "absent: no such file")
	if facts.Interrupts.Routes != nil {
		t.Errorf("read routes %v", facts.Interrupts.Routes)
	}
}

// FuzzInterrupts checks that whatever is accepted is within the bounds of its text, that every number that was read
// stands in it, and that neither the pieces in which it came nor what was read before make a difference.
func FuzzInterrupts(f *testing.F) {
	for _, seed := range []string{
		x86Interrupts, armInterrupts, "", "CPU0\n", "CPU0 CPU1 CPU8191\n0: 1 2 3 4\n", "CPU0\n0:1\n:\n", "CPU0\n\xff\xfe: 1\n",
		" CPU0\r\n 0: 1\r\n", "CPU0\n" + strings.Repeat("0:\n", 100), "CPU0 CPU1\n  5:  1", "CPU0\n0: 18446744073709551616\n",
		x86Interrupts[:100], strings.ReplaceAll(x86Interrupts, " ", "\t"),
	} {
		f.Add(seed, x86Interrupts)
		f.Add(seed, strings.ReplaceAll(seed, "1", "2"))
	}
	f.Fuzz(func(t *testing.T, text, before string) {
		table, err := parseCounters(text, max(1, len(text)), counterTable{})
		earlier, problem := parseCounters(before, 1000, counterTable{})
		if problem != nil {
			earlier = counterTable{}
		}
		again, same := parseCounters(text, 1, earlier)
		if err != nil {
			if same == nil || same.Error() != err.Error() {
				t.Fatalf("as a whole: %v, in pieces: %v", err, same)
			}
			return
		}
		if !slices.Equal(again.columns, table.columns) || !cmp.Equal(again.lines, table.lines) {
			t.Fatalf("other in pieces after another table (-whole +pieces):\n%s", cmp.Diff(table.lines, again.lines))
		}
		if len(table.columns) == 0 || len(table.lines) > strings.Count(text, "\n")+1 {
			t.Fatalf("%d columns and %d lines", len(table.columns), len(table.lines))
		}
		for _, line := range table.lines {
			checkLine(t, text, line, len(table.columns))
		}
		actionsByName(table.lines)
		vectorsByDevice(table.lines)
	})
}

func checkLine(t *testing.T, text string, line InterruptLine, columns int) {
	t.Helper()
	if len(line.Counts) > columns || cap(line.Counts) > len(text) {
		t.Fatalf("line %s has %d counters (room for %d) in %d columns", line.Name, len(line.Counts), cap(line.Counts), columns)
	}
	for _, count := range line.Counts {
		// Leading zeros apart, each number stands in the text.
		if !strings.Contains(text, strconv.FormatUint(count, 10)) {
			t.Fatalf("counter %d is not in the text", count)
		}
	}
	if !strings.Contains(text, line.Description) || !strings.Contains(text, line.Name) {
		t.Fatalf("%q or %q is not in the text", line.Name, line.Description)
	}
}
