// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// What an inventory tells of the running kernel decides whether the plan needs a reboot.
func TestRebootOfAnInventory(t *testing.T) {
	planned := &NodePlan{
		Architecture: "amd64", Kernel: KernelPlan{Type: v1alpha1.KernelDefault},
		KernelArguments: []Argument{{Text: "nohz_full=2-3"}, {Text: "isolcpus=managed_irq,domain,2-3"}},
	}
	const running = "quiet nohz_full=2-3 isolcpus=domain,managed_irq,2-3"
	with := func(kernel v1alpha1.KernelType, line string) *v1alpha1.Inventory {
		return &v1alpha1.Inventory{KernelType: kernel, KernelCommandLine: line, OnlineCPUs: "0-3"}
	}
	cases := map[string]struct {
		inventory *v1alpha1.Inventory
		want      v1alpha1.RebootRequirement
	}{
		"none":                          {nil, v1alpha1.RebootUnknown},
		"as planned":                    {with(v1alpha1.KernelDefault, running), v1alpha1.RebootNotRequired},
		"the kernel's type is not told": {with("", running), v1alpha1.RebootNotRequired},
		"another kernel":                {with(v1alpha1.KernelRealTime, running), v1alpha1.RebootRequired},
		"no command line":               {with(v1alpha1.KernelDefault, ""), v1alpha1.RebootUnknown},
		"an argument is missing":        {with(v1alpha1.KernelDefault, "quiet nohz_full=2-3"), v1alpha1.RebootRequired},
		"an argument contradicts":       {with(v1alpha1.KernelDefault, running+" idle=poll"), v1alpha1.RebootRequired},
		"an argument says nothing":      {with(v1alpha1.KernelDefault, running+" rhgb"), v1alpha1.RebootNotRequired},
		"all but the CPUs of the plan":  {with(v1alpha1.KernelDefault, "nohz_full=2-N isolcpus=managed_irq,domain,2-3"), v1alpha1.RebootNotRequired},
	}
	for name, tc := range cases {
		if got := RebootOf(tc.inventory, planned); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
	// A plan for any kernel is at home on each.
	planned.Kernel.Type = ""
	if got := RebootOf(with(v1alpha1.KernelRealTime, running), planned); got != v1alpha1.RebootNotRequired {
		t.Errorf("any kernel: %s", got)
	}
}

// What a host says about the machine decides how the kernel reads its arguments: without /sys/.../possible the present CPUs
// are all that there are.
func TestMachineOf(t *testing.T) {
	p := &NodePlan{Architecture: "arm64", CPUs: CPUPlan{Housekeeping: set("0"), Isolated: set("1-2"), Offline: set("3")}}
	facts := func() *host.Facts {
		return &host.Facts{
			CPUs: host.CPUs{
				Possible: host.Known(set("0-7"), "possible"), Present: host.Known(set("0-3"), "present"), Offline: host.Known(set("2-3"), "offline"),
			},
			NUMANodes: []host.NUMANode{
				{ID: 0, MemoryTotalBytes: host.Known(int64(1<<30), "meminfo")}, {ID: 1, MemoryTotalBytes: host.Known(int64(0), "meminfo")},
				{ID: 4, MemoryTotalBytes: host.Known(int64(1<<30), "meminfo")},
			},
		}
	}
	want := cmdline.Machine{Architecture: "arm64", Possible: set("0-7"), Gone: set("3"), MemoryNodes: []int{0, 4}}
	if diff := gocmp.Diff(want, MachineOf(facts(), p)); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}
	older := facts()
	older.CPUs.Possible = host.Absent[cpus.Set]("possible", "no such file")
	want.Possible = set("0-3")
	if diff := gocmp.Diff(want, MachineOf(older, p)); diff != "" {
		t.Errorf("machine without possible CPUs (-want +got):\n%s", diff)
	}
	// N is the last possible CPU, not the last present one (kernel-parameters.rst, cpu lists).
	isolated := &NodePlan{Architecture: "amd64", KernelArguments: []Argument{{Text: "nohz_full=2-7"}}}
	line, err := cmdline.Parse("nohz_full=2-N")
	if err != nil {
		t.Fatal(err)
	}
	if changes := ArgumentChanges(line, MachineOf(facts(), isolated), isolated); len(changes) > 0 {
		t.Errorf("2-N of 8 possible CPUs differs from 2-7: %+v", changes)
	}
}

func TestObserveGovernor(t *testing.T) {
	const fast, slow, follows = "performance", "powersave", "schedutil"
	for _, tc := range []struct {
		governors []string
		want      string
	}{
		{nil, ""}, {[]string{fast}, "Performance"}, {[]string{fast, fast}, "Performance"}, {[]string{slow}, slow},
		{[]string{slow, fast}, "performance, powersave"}, {[]string{follows, slow, follows}, "powersave, schedutil"},
	} {
		facts := &host.Facts{CPUs: host.CPUs{List: []host.CPU{{Frequency: host.Frequency{Governor: host.Absent[string]("g", "offline")}}}}}
		for _, governor := range tc.governors {
			facts.CPUs.List = append(facts.CPUs.List, host.CPU{Frequency: host.Frequency{Governor: host.Known(governor, "g")}})
		}
		if got, reason := observeGovernor(facts); got != tc.want || (reason == "") != (tc.want != "") {
			t.Errorf("%v: %q (%s), want %q", tc.governors, got, reason, tc.want)
		}
	}
}

// Of arguments in two spellings of one parameter, the one in the same spelling is found first; else whichever sets the same.
func TestFindByParameter(t *testing.T) {
	machine := cmdline.Machine{Architecture: "amd64"}
	known := byParameter{}
	for _, text := range []string{"iommu=pt", "hugepagesz=2M", "nohz_full=1-3"} {
		known.add(machine, Argument{Text: text})
	}
	for text, want := range map[string]string{
		"iommu=nopt": "iommu=pt", "iommu.passthrough=0": "iommu=pt", "hugepagesz=1G": "hugepagesz=2M", "nohz_full=2": "nohz_full=1-3", "isolcpus=2": "",
	} {
		if got := known.find(machine, Argument{Text: text}); got.Text != want {
			t.Errorf("%s: %q, want %q", text, got.Text, want)
		}
	}
}

func TestSameQuantity(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"1Gi", "1024Mi", true}, {"1Gi", "1G", false}, {"1Gi", "much", false}, {"much", "1Gi", false}, {"0", "much", false}, {"much", "0", false}, {"much", "more", false},
	} {
		if got := sameQuantity(tc.a, tc.b); got != tc.want {
			t.Errorf("%s and %s: %t", tc.a, tc.b, got)
		}
	}
}

func TestSameHexadecimal(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"0x1924", "1924", true}, {"0x0A03", "a03", true}, {"1924", "1925", false}, {"0xg", "g", false}, {"x", "1924", false}, {"1924", "x", false},
	} {
		if got := sameHexadecimal(tc.a, tc.b); got != tc.want {
			t.Errorf("%s and %s: %t", tc.a, tc.b, got)
		}
	}
}

// Plans that set nothing have nothing that differs.
func TestDiffOfEmptyPlans(t *testing.T) {
	if changes := Diff(&NodePlan{}, &NodePlan{}); len(changes.Items) > 0 || changes.Reboot() != v1alpha1.RebootNotRequired {
		t.Errorf("%v, reboot %s", changesOf(changes), changes.Reboot())
	}
}

// A NIC whose NUMA node has no memory gets no pages near it, and the finding says why.
func TestPoolPagesNearANodeWithoutMemory(t *testing.T) {
	machine := xeon()
	nic := machine.NICs[0]
	for i := range machine.NUMANodes {
		if node := &machine.NUMANodes[i]; node.ID == *nic.NUMANode {
			node.MemoryBytes = new(int64(0))
		}
	}
	_, findings := New(Input{Profile: profileWith(), Topology: machine, Pools: []Pool{poolWith("feed", []topology.NIC{nic}, pagesPerNIC("2Mi", 4))}})
	want := fmt.Sprintf("but its NUMA node %d has no memory", *nic.NUMANode)
	if !slices.ContainsFunc(findings, func(f Finding) bool { return f.Rule == ruleHugepagePlace && strings.Contains(f.Message, want) }) {
		t.Errorf("%q is not in %s", want, describe(findings))
	}
}
