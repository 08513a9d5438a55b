// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// hugepages reserves pages; the size of the first is the default size.
func hugepages(reservations ...v1alpha1.HugepageReservation) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Memory.DefaultHugepageSize = reservations[0].Size
		s.Memory.Hugepages = reservations
	}
}

func TestHugepages(t *testing.T) {
	const every, nearNIC = v1alpha1.HugepagesEveryNUMANode, v1alpha1.HugepagesBypassNICLocal
	cases := map[string]struct {
		machine       *topology.Topology
		pages         []v1alpha1.HugepageReservation
		want          []string
		wantArguments string
	}{
		"spread by the kernel": {
			machine: xeon(), pages: []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 16}, {Size: "2Mi", Count: 512}},
			want:          []string{"512 x 2Mi by KernelArgument", "16 x 1Gi by KernelArgument"},
			wantArguments: "default_hugepagesz=1G hugepagesz=2M hugepages=512 hugepagesz=1G hugepages=16",
		},
		"on one NUMA node": {
			machine: xeon(), pages: []v1alpha1.HugepageReservation{{Size: "2Mi", Count: 400, NUMANode: new(int32(1))}},
			want:          []string{"400 x 2Mi on 1 by Unit"},
			wantArguments: "default_hugepagesz=2M hugepagesz=2M hugepages=0",
		},
		"on every NUMA node with CPUs": {
			machine: withMemoryNode(xeon()), pages: []v1alpha1.HugepageReservation{{Size: "2Mi", Count: 400, Placement: every}},
			want:          []string{"400 x 2Mi on 0 by Unit", "400 x 2Mi on 1 by Unit"},
			wantArguments: "default_hugepagesz=2M hugepagesz=2M hugepages=0",
		},
		"near the bypass NIC": {
			machine: xeon(), pages: []v1alpha1.HugepageReservation{{Size: "2Mi", Count: 400, Placement: nearNIC}},
			want:          []string{"400 x 2Mi on 1 by Unit"},
			wantArguments: "default_hugepagesz=2M hugepagesz=2M hugepages=0",
		},
		"one size in two ways is summed and reserved by units": {
			machine: xeon(), pages: []v1alpha1.HugepageReservation{{Size: "2Mi", Count: 101},
				{Size: "2Mi", Count: 400, Placement: nearNIC}, {Size: "2Mi", Count: 7, NUMANode: new(int32(1))}, {Size: "1Gi", Count: 2}},
			want:          []string{"51 x 2Mi on 0 by Unit", "457 x 2Mi on 1 by Unit", "2 x 1Gi by KernelArgument"},
			wantArguments: "default_hugepagesz=2M hugepagesz=2M hugepages=0 hugepagesz=1G hugepages=2",
		},
		"a host without NUMA reserves all by arguments": {
			machine: withNIC(small(4, 1), nil), pages: []v1alpha1.HugepageReservation{{Size: "2Mi", Count: 100},
				{Size: "2Mi", Count: 400, Placement: nearNIC}, {Size: "1Gi", Count: 1, NUMANode: new(int32(0))}},
			want:          []string{"100 x 2Mi by KernelArgument", "400 x 2Mi on 0 by KernelArgument", "1 x 1Gi on 0 by KernelArgument"},
			wantArguments: "default_hugepagesz=2M hugepagesz=2M hugepages=500 hugepagesz=1G hugepages=1",
		},
		"sizes of arm64": {
			machine: arm(), pages: []v1alpha1.HugepageReservation{{Size: "32Mi", Count: 4}, {Size: "64Ki", Count: 8}},
			want:          []string{"8 x 64Ki by KernelArgument", "4 x 32Mi by KernelArgument"},
			wantArguments: "default_hugepagesz=32M hugepagesz=64K hugepages=8 hugepagesz=32M hugepages=4",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, tc.machine, solarflare, hugepages(tc.pages...))
			if diff := cmp.Diff(tc.want, list(plan.Hugepages, describePlan)); diff != "" {
				t.Errorf("hugepages (-want +got):\n%s", diff)
			}
			var got []string
			for _, text := range arguments(plan) {
				if strings.Contains(text, "hugepages") {
					got = append(got, text)
				}
			}
			if diff := cmp.Diff(tc.wantArguments, strings.Join(got, " ")); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
		})
	}
}

func describePlan(h HugepagePlan) string {
	r := v1alpha1.HugepageReservation{Size: h.Size, Count: int32(h.Count)}
	text := strings.TrimSpace(describeReservation(r))
	if h.NUMANode != nil {
		text += " on " + strconv.Itoa(*h.NUMANode)
	}
	return text + " by " + string(h.Method)
}

// withNIC adds a NIC that solarflare selects.
func withNIC(t *topology.Topology, numa *int) *topology.Topology {
	t.NICs = append(t.NICs, nic("0000:b0:00.0", "ens2f0", "1924", numa))
	return t
}

// findingCase is a machine, a profile, the findings that they make and words of the first one.
type findingCase struct {
	machine   *topology.Topology
	profile   []change
	want      []string
	wantWords []string
}

func runFindingCases(t *testing.T, cases map[string]findingCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findingsOf(tc.machine, tc.profile...)); diff != "" {
				t.Fatalf("findings (-want +got):\n%s", diff)
			}
			_, findings := New(Input{Profile: profileWith(tc.profile...), Topology: tc.machine})
			checkFindings(t, findings)
			for _, word := range tc.wantWords {
				if !strings.Contains(findings[0].Message, word) {
					t.Errorf("message %q does not say %q", findings[0].Message, word)
				}
			}
		})
	}
}

// TestHugepagePlaces refuses sizes and places that the host has not.
func TestHugepagePlaces(t *testing.T) {
	const nearNIC = v1alpha1.HugepagesBypassNICLocal
	noPages := small(4, 1)
	noPages.NUMANodes[0].HugepageSizes = []int64{2048}
	olderKernel := small(4, 1)
	olderKernel.NUMANodes[0].HugepageSizes, olderKernel.KernelRelease = []int64{2048}, ""
	noMemory := xeon()
	noMemory.NUMANodes[1].MemoryBytes = new(int64(0))
	runFindingCases(t, map[string]findingCase{
		"a size that the architecture has not": {
			machine: xeon(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "32Mi", Count: 1})},
			want: []string{"plan.hugepage-size Critical spec.memory.defaultHugepageSize", "plan.hugepage-size Critical spec.memory.hugepages[0]"},
		},
		"a size that the architecture has not, on a NUMA node that does not exist": {
			machine: xeon(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "32Mi", Count: 1, NUMANode: new(int32(4))})},
			want: []string{"plan.hugepage-size Critical spec.memory.defaultHugepageSize", "plan.hugepage-size Critical spec.memory.hugepages[0]"},
		},
		"a size that the page size has not": {
			machine: arm(), profile: []change{gigabytePages, func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Memory.KernelPageSize = "64Ki" }},
			want: []string{"plan.hugepage-size Critical spec.memory.defaultHugepageSize"},
		},
		"a size that the processor has not": {
			machine: noPages, profile: []change{gigabytePages},
			want: []string{"plan.hugepage-size Critical spec.memory.defaultHugepageSize"},
		},
		"a size that an older kernel does not list": {
			machine: olderKernel, profile: []change{gigabytePages},
			want: []string{"plan.hugepage-size Medium spec.memory.defaultHugepageSize"},
		},
		"a NUMA node that does not exist": {
			machine: xeon(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, NUMANode: new(int32(4))})},
			want:      []string{"plan.hugepage-place Critical spec.memory.hugepages[0]"},
			wantWords: []string{"NUMA node 4 does not exist", "0, 1"},
		},
		"a NUMA node without memory": {
			machine: noMemory, profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, NUMANode: new(int32(1))})},
			want: []string{"plan.hugepage-place Critical spec.memory.hugepages[0]"},
		},
		"near no NIC": {
			machine: xeon(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, Placement: nearNIC})},
			want: []string{"plan.hugepage-place Critical spec.memory.hugepages[0]"},
		},
		"near a NIC whose place is unknown": {
			machine: withNIC(epyc(), nil), profile: []change{solarflare, hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, Placement: nearNIC})},
			want: []string{"plan.hugepage-place Critical spec.memory.hugepages[0]", "plan.nic-locality High spec.network.nics",
				"plan.shared-cache Low spec.cpus.derived"},
			wantWords: []string{"0000:b0:00.0"},
		},
		"near a NIC without memory": {
			machine: noMemory, profile: []change{solarflare, hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, Placement: nearNIC})},
			want: []string{"plan.hugepage-place Critical spec.memory.hugepages[0]"},
		},
	})
}

// TestHugepageMemory refuses more pages than a NUMA node can give.
func TestHugepageMemory(t *testing.T) {
	const every = v1alpha1.HugepagesEveryNUMANode
	unknownMemory := xeon()
	unknownMemory.NUMANodes[0].MemoryBytes = nil
	runFindingCases(t, map[string]findingCase{
		"more than the NUMA node has": {
			machine: xeon(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 100, NUMANode: new(int32(1))},
				v1alpha1.HugepageReservation{Size: "2Mi", Count: 48128, NUMANode: new(int32(1))}, v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, NUMANode: new(int32(0))})},
			want:      []string{"plan.hugepage-memory Critical spec.memory.hugepages[1]"},
			wantWords: []string{"48128 pages of 2Mi, 94 GiB", "NUMA node 1, which has 192 GiB", "100 GiB go to other hugepages", "0 GiB are reserved"},
		},
		"more than the kubelet leaves": {
			machine: xeon(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 191, NUMANode: new(int32(0))})},
			want:      []string{"plan.hugepage-memory Critical spec.memory.hugepages[0]"},
			wantWords: []string{"1.1 GiB are reserved by the kubelet"},
		},
		"an uneven share that does not fit": {
			machine: xeon(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 382})},
			want: []string{"plan.hugepage-memory Critical spec.memory.hugepages[0]"},
		},
		"more than a number holds": {
			machine: epyc(), profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 1 << 24, Placement: every})},
			want: append(manyTimes("plan.hugepage-memory Critical spec.memory.hugepages[0]", 8), "plan.shared-cache Low spec.cpus.derived"),
		},
		"memory that the host does not report": {
			machine: unknownMemory, profile: []change{hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 8})},
			want: []string{"plan.hugepage-memory Low spec.memory.hugepages[0]"},
		},
	})
}

func manyTimes(text string, count int) []string {
	many := make([]string, count)
	for i := range many {
		many[i] = text
	}
	return many
}

// TestMemoryNeverChangesThePlan: hosts that differ in memory only share a plan.
func TestMemoryNeverChangesThePlan(t *testing.T) {
	pages := hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 20})
	hash := planOf(t, xeon(), pages).Hash()
	for _, memory := range []*int64{new(64 * gibibyte), new(65*gibibyte - 12345), nil} {
		machine := xeon()
		machine.NUMANodes[0].MemoryBytes = memory
		if got := planOf(t, machine, pages).Hash(); got != hash {
			t.Errorf("with %v bytes the plan is %s, want %s", memory, got, hash)
		}
	}
}

// Since Linux 4.18 a kernel lists a size only where the processor has it (arch/x86/mm/hugetlbpage.c), so that what it does not
// list cannot be had; an older one lists what its command line names.
func TestHugepagesThatTheKernelDoesNotOffer(t *testing.T) {
	for running, want := range map[string]v1alpha1.Severity{
		"3.10.0-1160.el7": v1alpha1.SeverityMedium, "4.17.19": v1alpha1.SeverityMedium, "4.18.0-553.el8": v1alpha1.SeverityCritical,
		"5.14.0-427.el9": v1alpha1.SeverityCritical, "6.1.0": v1alpha1.SeverityCritical, "": v1alpha1.SeverityMedium,
	} {
		machine := xeon()
		machine.KernelRelease = running
		for i := range machine.NUMANodes {
			machine.NUMANodes[i].HugepageSizes = []int64{2048}
		}
		profile := profileWith(hugepages(v1alpha1.HugepageReservation{Size: "1Gi", Count: 1}))
		planned, findings := New(Input{Profile: profile, Topology: machine})
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Rule == ruleHugepageSize })
		if i < 0 || findings[i].Severity != want || (planned == nil) != (want == v1alpha1.SeverityCritical) {
			t.Errorf("Linux %q: a plan %t, %s", running, planned != nil, describe(findings))
		}
	}
}

// TestHugepageSizes reads the sizes as the API server reads quantities.
func TestHugepageSizes(t *testing.T) {
	for size, kibibytes := range hugepageKibibytes() {
		want := resource.MustParse(string(size))
		if want.Value() != kibibytes<<10 {
			t.Errorf("%s is %d KiB, not %d", size, want.Value()>>10, kibibytes)
		}
	}
	for _, architecture := range []string{architectureAMD64, "arm64"} {
		for _, pages := range []v1alpha1.PageSize{v1alpha1.PageSize4Ki, v1alpha1.PageSize64Ki} {
			for _, size := range offeredSizes(architecture, pages) {
				if hugepageKibibytes()[size] == 0 {
					t.Errorf("%s with pages of %s: the size %s has no number", architecture, pages, size)
				}
			}
		}
	}
}
