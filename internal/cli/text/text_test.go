// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

func set(t *testing.T, list string) cpus.Set {
	t.Helper()
	parsed, err := cpus.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// server has two packages of four cores with two threads each, and a NIC on either NUMA node.
func server(t *testing.T) *topology.Topology {
	t.Helper()
	first, second := set(t, "0-3,8-11"), set(t, "4-7,12-15")
	server := &topology.Topology{
		Architecture: "amd64", Vendor: "Intel", Model: "Some Processor", KernelRelease: "6.6.0", KernelRealTime: new(true),
		Online: first.Union(second), Present: first.Union(second),
		Packages: []cpus.Set{first, second}, L3Domains: []cpus.Set{first, second},
		NUMANodes: []topology.NUMANode{
			{ID: 0, CPUs: first, MemoryBytes: new(int64(64 << 30)), Distances: []int{10, 21}, Hugepages: []topology.HugepagePool{
				{SizeKibibytes: 2048, Total: 512, Free: 500}, {SizeKibibytes: 1 << 20, Total: 4, Free: 4},
			}},
			{ID: 1, CPUs: second, MemoryBytes: new(int64(96 << 29)), Distances: []int{21, 10}, Hugepages: []topology.HugepagePool{
				{SizeKibibytes: 2048},
			}},
		},
		NICs: []topology.NIC{
			{PCIAddress: "0000:18:00.0", Name: "eno1", Vendor: "8086", Device: "1572", Driver: "i40e", NUMANode: new(0)},
			{PCIAddress: "0000:af:00.0", Name: "ens2f0", Vendor: "1924", Device: "0b03", Driver: "sfc", NUMANode: new(1)},
			{PCIAddress: "0000:af:00.2", Name: "ens2f0v0", Vendor: "1924", Device: "1b03", NUMANode: new(1), PhysicalFunction: "0000:af:00.0"},
			{PCIAddress: "0000:b0:00.0", Vendor: "1af4", Device: "1041"},
		},
	}
	for id := range 8 {
		server.Cores = append(server.Cores, topology.Core{CPUs: cpus.Of(id, id+8), NUMANode: id / 4, Package: id / 4, L3: id / 4})
	}
	return server
}

// tangled is a host whose firmware tells little: no NUMA, CPUs offline, cores unknown, a node without CPUs.
func tangled(t *testing.T) *topology.Topology {
	t.Helper()
	return &topology.Topology{
		Architecture: "arm64", Vendor: "ARM", Hypervisor: "KVM",
		Online: set(t, "0-5"), Offline: set(t, "6-7,9"), Present: set(t, "0-7,9"),
		Packages: []cpus.Set{set(t, "0-3"), set(t, "4-6")},
		Cores: []topology.Core{
			{CPUs: set(t, "0-1"), Package: 0, L3: -1}, {CPUs: set(t, "2-3"), Package: 0, L3: 0},
			{CPUs: set(t, "4,6"), Package: 1, L3: -1},
			{CPUs: set(t, "7"), Package: -1, L3: -1},
		},
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: set(t, "0-5")}, {ID: 5, MemoryBytes: new(int64(1536))}},
	}
}

func TestTopology(t *testing.T) {
	golden.Assert(t, Topology("server", server(t), NewPalette(false), 90), "server.txt")
	golden.Assert(t, Topology("tangled", tangled(t), NewPalette(false), 0), "tangled.txt")
	golden.Assert(t, Topology("tangled", tangled(t), NewPalette(true), 80), "coloured.txt")
}

// TestDrawingsFit draws big machines and measures the lines.
func TestDrawingsFit(t *testing.T) {
	for _, columns := range []int{60, 80, 100, 120} {
		big := server(t)
		big.Cores = nil
		for id := range 64 {
			big.Cores = append(big.Cores, topology.Core{CPUs: cpus.Of(id, id+64), NUMANode: id / 32, Package: id / 32, L3: id / 4})
		}
		for number, line := range strings.Split(Topology("big", big, NewPalette(true), columns), "\n") {
			if width(line) > columns {
				t.Errorf("with %d columns, line %d has %d: %s", columns, number+1, width(line), line)
			}
		}
	}
}

func origin(source plan.Source, detail string) plan.Origin {
	return plan.Origin{Source: source, Detail: detail}
}

// nodePlan is a plan for server with everything in it.
func nodePlan(t *testing.T) *plan.NodePlan {
	t.Helper()
	field := origin(plan.FromField, "spec.a")
	return &plan.NodePlan{
		Profile: "trading", Architecture: "amd64", Vendor: "Intel",
		CPUs: plan.CPUPlan{
			Housekeeping: set(t, "0-1,8-9"), Isolated: set(t, "2-6,10-14"), Shared: set(t, "1,9"), DataPlane: set(t, "6,14"),
			Offline: set(t, "7"), SMT: v1alpha1.SMTKept, Isolation: v1alpha1.IsolationStatic, Tick: v1alpha1.TickStopped,
			DataPlaneBalancing: v1alpha1.LoadBalancingKept, Origin: origin(plan.FromTopology, "2 of 8 cores"),
		},
		Kernel: plan.KernelPlan{Type: v1alpha1.KernelRealTime, PageSize: v1alpha1.PageSize4Ki, Origin: field},
		KernelArguments: []plan.Argument{
			{Text: "nohz=on", Origin: origin(plan.FromDefault, "spec.cpus.tick")},
			{Text: "isolcpus=domain,managed_irq,2,3,4,5,6,10,11,12,13,14,2,3,4,5,6,10,11,12,13,14", Origin: field},
		},
		Hugepages: []plan.HugepagePlan{
			{Size: "1Gi", SizeKibibytes: 1 << 20, Count: 4, Method: plan.ByKernelArgument, Origin: field},
			{Size: "2Mi", SizeKibibytes: 2048, Count: 512, NUMANode: new(1), Method: plan.ByUnit, Origin: field},
		},
		Interrupts: plan.InterruptPlan{Placement: v1alpha1.InterruptsHousekeeping, DefaultAffinity: set(t, "0-1,8-9"), Balancer: v1alpha1.BalancerRestricted, Banned: set(t, "2-6,10-14")},
		Power: plan.PowerPlan{
			IdleStates: v1alpha1.IdlePolling, FrequencyDriver: v1alpha1.FrequencyDriverActive, Governor: v1alpha1.GovernorPerformance,
			Turbo: v1alpha1.TurboKept, IsolatedMaximum: 2500000, HousekeepingMaximum: 2000000,
		},
		Sysctls: []plan.Setting{{Name: "vm.stat_interval", Value: "10", Origin: origin(plan.FromPreset, "preset X")}},
		Sysfs:   []plan.Setting{{Name: "/sys/kernel/mm/ksm/run", Value: "2", Origin: field}},
		Network: plan.NetworkPlan{Queues: 4, Steering: v1alpha1.PacketSteeringOff},
		Kubelet: plan.KubeletPlan{CPUManagerPolicy: "static", ReservedMemory: []plan.MemoryReservation{{NUMANode: 1, Limits: map[string]string{"memory": "1100Mi"}}}},
		ContainerRuntime: plan.ContainerRuntimePlan{InfrastructureCPUs: set(t, "0-1,8-9"), ExecPlacement: v1alpha1.ExecFirstCPU,
			PodRequests: []plan.PodRequest{plan.RequestIdleStates, plan.RequestCPUQuota}},
		Files: []plan.File{{Path: "/etc/a", Mode: 0o644, Content: "a\n", Origin: field}},
		Units: []plan.Unit{
			{Name: "enabled.service", Content: "x", Enabled: true, Origin: field},
			{Name: "masked.service", Masked: true, Origin: field},
			{Name: "dropin.service", DropIns: map[string]string{"a.conf": "b"}, Origin: field},
			{Name: "static@.service", Content: "x", Origin: field},
		},
		StopServices:  []plan.Setting{{Name: "fwupd-refresh.timer", Origin: field}},
		UnloadModules: []plan.Setting{{Name: "ip_tables", Origin: field}},
		BypassNICs:    []plan.NICPlan{{PCIAddress: "0000:af:00.0"}},
	}
}

func planOf(t *testing.T, node string, p *plan.NodePlan, changes plan.Changes, findings ...plan.Finding) NodePlan {
	t.Helper()
	profile := &v1alpha1.LowLatencyNodeProfile{}
	profile.Name = "trading"
	profile.Spec.Power.Turbo = v1alpha1.TurboKept
	v, err := view.OfPlan(node, profile, p, findings, "running", changes)
	if err != nil {
		t.Fatal(err)
	}
	if p != nil {
		v.PlanHash = new("0123456789abcdef")
	}
	return NodePlan{View: v, Topology: server(t), Plan: p}
}

func doubt(severity v1alpha1.Severity, message string) plan.Finding {
	return plan.Finding{Rule: "plan.rule", Severity: severity, Field: "spec.a", Message: message, Remedy: "Do otherwise."}
}

func TestPlans(t *testing.T) {
	changes := plan.Changes{Items: []plan.Change{
		{What: "kernel argument nohz", From: "", To: "nohz=on", Reboot: v1alpha1.RebootRequired, Why: "the kernel reads its command line at boot only"},
		{What: "kernel type", From: "unknown", To: "RealTime", Reboot: v1alpha1.RebootUnknown, Why: "the host does not report"},
		{What: "sysctl vm.stat_interval", From: "1", To: "10", Reboot: v1alpha1.RebootNotRequired, Why: "it takes effect at once"},
		{What: "sysctl vm.swappiness", From: "unknown", To: "10", Reboot: v1alpha1.RebootNotRequired, Why: "the host does not report"},
		{What: "kernel argument mce", From: "mce=off", To: "", Reboot: v1alpha1.RebootRequired, Why: "the kernel reads its command line at boot only"},
		{What: "firmware", From: "a", To: "b", Reboot: v1alpha1.RebootUnknown, Why: "nobody knows"},
	}}
	nodes := []NodePlan{
		planOf(t, "first", nodePlan(t), changes, doubt(v1alpha1.SeverityLow, "it is small.")),
		planOf(t, "second", nodePlan(t), changes, doubt(v1alpha1.SeverityLow, "it is small."), doubt(v1alpha1.SeverityHigh, "it is slow.")),
		planOf(t, "third", nil, plan.Changes{}, doubt(v1alpha1.SeverityCritical, "it is absent.")),
		planOf(t, "fourth", nodePlan(t), plan.Changes{}),
	}
	golden.Assert(t, Plans(nodes, "running", NewPalette(false), 100), "plans.txt")
	golden.Assert(t, Plans(nodes[1:3], "older.yaml", NewPalette(true), 80), "plans-coloured.txt")

	quiet := Plans(nodes[3:], "", NewPalette(false), 100)
	if strings.Contains(quiet, "change") || strings.Contains(quiet, "finding") && !strings.Contains(quiet, "FINDINGS") {
		t.Errorf("changes or findings of a node that has none:\n%s", quiet)
	}
}

func TestChecks(t *testing.T) {
	check := view.Check{
		Node: "first", Profile: "trading", PlanHash: new("0123456789abcdef"), WindowSeconds: new(2.5),
		Counts: v1alpha1.CheckCounts{Passed: 3, Failed: 2, Unknown: 1, Waived: 1},
		Conditions: []view.Condition{
			{Type: "Applied", Status: "True", Reason: "Verified", Message: "all is well"},
			{Type: "DeJittered", Status: "False", Reason: "ChecksFailed", Message: strings.Repeat("an interrupt came; ", 20)},
			{Type: "NUMAAligned", Status: "Unknown", Reason: "ChecksUnknown"},
		},
		Findings: []finding.Finding{
			{Check: "irq.effective", Outcome: v1alpha1.OutcomeFailed, Severity: v1alpha1.SeverityCritical, Message: "IRQ 45 is delivered to CPU 3.", Observed: "3", Expected: "0-1", Fix: "Move it.", Reboot: v1alpha1.RebootNotRequired, Decides: []string{"DeJittered", "NUMAAligned"}},
			{Check: "cpu.tick", Outcome: v1alpha1.OutcomeUnknown, Severity: v1alpha1.SeverityCritical, Message: "no such file"},
			{Check: "kernel.type", Outcome: v1alpha1.OutcomeFailed, Severity: v1alpha1.SeverityHigh, Message: "wrong kernel", Fix: "Install it.", Reboot: v1alpha1.RebootRequired},
			{Check: "power.turbo", Outcome: v1alpha1.OutcomeWaived, Severity: v1alpha1.SeverityLow, Message: "turbo is on (waived: fixed in BIOS)"},
		},
		Skipped: []view.Skip{{Check: "irq.counters", Reason: "read once"}},
		NUMANodes: []view.CheckNUMANode{
			{ID: 0, Housekeeping: set(t, "0-1"), Isolated: set(t, "2-3"), Hugepages: []view.HugepageState{
				{SizeKibibytes: 2048, Promised: new(int64(512)), Total: new(int64(500)), Free: new(int64(500))},
				{SizeKibibytes: 1 << 20, Total: new(int64(4))},
			}, NICs: []string{"eno1", "eno2"}, Vectors: new(12), IsolatedVectors: new(3),
				Reserved: []view.SettingState{{Name: "memory", Planned: "1Gi", Configured: new("0"), Text: "memory 0, planned 1Gi"}}},
			{ID: 1, Hugepages: []view.HugepageState{}, Vectors: new(2), IsolatedVectors: new(0)},
			{ID: 2, Hugepages: []view.HugepageState{}},
		},
		Kubelet: []view.SettingState{
			{Name: "cpuManagerPolicy", Planned: "static", Configured: new("static")},
			{Name: "topologyManagerPolicy", Planned: "single-numa-node", Configured: new("restricted")},
			{Name: "topologyManagerScope", Planned: "pod"}, {Name: "reservedSystemCPUs", Configured: new("0-1")},
		},
		PlanFindings: []plan.Finding{doubt(v1alpha1.SeverityMedium, "it is doubtful.")},
	}
	unfit := view.Unplanned("second", "trading", []plan.Finding{doubt(v1alpha1.SeverityCritical, "it is absent.")})
	golden.Assert(t, Checks([]view.Check{check, unfit}, NewPalette(false), 100), "checks.txt")
	golden.Assert(t, Checks([]view.Check{check, unfit}, NewPalette(true), 80), "checks-coloured.txt")

	clean := view.Check{Node: "third", Profile: "trading", PlanHash: new("0123456789abcdef")}
	golden.Assert(t, Checks([]view.Check{clean}, NewPalette(false), 80), "check-clean.txt")
}

func TestLayout(t *testing.T) {
	cases := map[string]struct{ got, want string }{
		"bytes":             {layout.Bytes(512), "512 B"},
		"kibibytes":         {layout.Bytes(1536), "1.5 KiB"},
		"a hugepage":        {layout.Bytes(2 << 20), "2 MiB"},
		"a lot of memory":   {layout.Bytes(3 << 60), "3072 PiB"},
		"one":               {layout.Plural(1, "core"), "1 core"},
		"none":              {layout.Plural(0, "core"), "0 cores"},
		"join":              {layout.Join("a", "", "b"), "a · b"},
		"flow":              {strings.Join(flow([]string{"aa", "bb", "cc"}, " ", 5), "|"), "aa bb|cc"},
		"flow of nothing":   {strings.Join(flow(nil, " ", 5), "|"), ""},
		"flow, too wide":    {strings.Join(flow([]string{"aaaaaaa", "b"}, " ", 5), "|"), "aaaaaaa|b"},
		"wrap":              {strings.Join(wrap("one two three", "  ", 9), "|"), "one two|  three"},
		"fold":              {strings.Join(fold("a=1,2,3,4 b", 6), "|"), "a=1,2,|3,4|b"},
		"fold, nowhere":     {strings.Join(fold("abcdefgh", 3), "|"), "abc|def|gh"},
		"fold a cell":       {foldCell("  a=1,2,3,4\nb", 8), "  a=1,\n    2,3,\n    4\nb"},
		"inline":            {inline(map[string]any{"b": []any{1, "x"}, "a": true}), "{a: true, b: [1, x]}"},
		"pad with a colour": {padRight(NewPalette(true).Bad("a"), 3), NewPalette(true).Bad("a") + "  "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got %q, want %q", tc.got, tc.want)
			}
		})
	}
}

func TestTableFitsAndKeepsSmallColumns(t *testing.T) {
	rows := [][]string{{"a", strings.Repeat("word ", 40)}, {strings.Repeat("x", 30), "b"}}
	for line := range strings.Lines(Table([]string{"FIRST", "SECOND"}, rows, NewPalette(true), 60)) {
		if width(strings.TrimRight(line, "\n")) > 60 {
			t.Errorf("the line is wider than 60 columns: %q", line)
		}
	}
	tiny := Table([]string{"FIRST", "SECOND"}, [][]string{{"abcdefghijklmno", "ABCDEFGHIJKLMNO"}}, NewPalette(false), 1)
	if want := "FIRST         SECOND\nabcdefghijkl  ABCDEFGHIJKL\nmno           MNO\n"; tiny != want {
		t.Errorf("a table without room:\n%s", tiny)
	}
}
