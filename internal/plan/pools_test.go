// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// poolChange changes a pool.
type poolChange = func(*v1alpha1.BypassNICPoolSpec)

// poolWith is a pool of NICs of the machine.
func poolWith(name string, nics []topology.NIC, change ...poolChange) Pool {
	spec := &v1alpha1.BypassNICPoolSpec{
		NICs:         []v1alpha1.NICSelector{{Vendor: "1924"}},
		Stack:        v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{}},
		ResourceName: "lowlatency.dev/" + name,
	}
	for _, c := range change {
		c(spec)
	}
	return Pool{Name: name, Spec: spec, NICs: nics, Isolation: isolationOf(spec)}
}

// isolationOf is what package bypass says of the stack.
func isolationOf(spec *v1alpha1.BypassNICPoolSpec) v1alpha1.VFIOIsolation {
	switch {
	case spec.Stack.VFIO == nil:
		return ""
	case spec.Stack.VFIO.Isolation == "":
		return v1alpha1.VFIOIsolationIOMMU
	default:
		return spec.Stack.VFIO.Isolation
	}
}

func pagesPerNIC(size v1alpha1.HugepageSize, count int32) poolChange {
	return func(s *v1alpha1.BypassNICPoolSpec) {
		s.Hugepages = append(s.Hugepages, v1alpha1.NICHugepages{Size: size, CountPerNIC: count})
	}
}

func vfio(s *v1alpha1.BypassNICPoolSpec) {
	s.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}}
}

func withoutIOMMU(s *v1alpha1.BypassNICPoolSpec) {
	vfio(s)
	s.Stack.VFIO.Isolation = v1alpha1.VFIOIsolationNoIOMMU
}

func functions(count int32) poolChange {
	return func(s *v1alpha1.BypassNICPoolSpec) {
		s.VirtualFunctions = &v1alpha1.VirtualFunctionsSpec{CountPerNIC: count}
	}
}

func placed(placement v1alpha1.NICInterruptPlacement) poolChange {
	return func(s *v1alpha1.BypassNICPoolSpec) { s.Interrupts.Placement = placement }
}

func terms(terms ...v1alpha1.NICSelector) poolChange {
	return func(s *v1alpha1.BypassNICPoolSpec) { s.NICs = terms }
}

// functionsOffered is a NIC that can have 16 virtual functions.
func functionsOffered(nic topology.NIC) topology.NIC {
	nic.MaximumVirtualFunctions = 16
	return nic
}

// poolsOn plans with pools.
func poolsOn(machine *topology.Topology, pools []Pool, change ...change) (*NodePlan, []Finding) {
	profile := profileWith()
	for _, c := range change {
		c(&profile.Spec)
	}
	return New(Input{Profile: profile, Topology: machine, Pools: pools})
}

func describePoolNIC(n PoolNICPlan) string {
	text := []string{n.PCIAddress}
	if n.VirtualFunctions > 0 {
		text = append(text, "functions "+number(int32(n.VirtualFunctions)))
	}
	if n.Driver != "" {
		text = append(text, n.Driver)
	}
	return strings.Join(append(text, string(n.Interrupts), n.InterruptCPUs.String()), " ")
}

func ruleAndMessage(f Finding) string {
	return string(f.Severity) + " " + f.Rule + ": " + f.Field + ": " + f.Message
}

// poolCase is what becomes of the NICs of pools, and what is said about those that cannot be had.
type poolCase struct {
	pools         []Pool
	profile       change
	want          []string
	wantUnits     []string
	wantFindings  []string
	wantPages     []string
	wantBypassNIC []string
}

const local = "NICLocalHousekeeping"

func firstNIC() topology.NIC { return functionsOffered(xeon().NICs[0]) }

func secondNIC() topology.NIC { return functionsOffered(xeon().NICs[1]) }

// shared is a pool that shares its NICs with other pools.
func shared(pool Pool) Pool {
	for _, nic := range pool.NICs {
		pool.Shared = append(pool.Shared, nic.PCIAddress)
	}
	return pool
}

// claimCases are about NICs that pools may have, and their hugepages.
func claimCases() map[string]poolCase {
	unplaced := nic("0000:5e:00.0", "ens9f0", "1924", nil)
	managed := secondNIC()
	managed.Management = "the default route"
	return map[string]poolCase{
		"pages follow each NIC to its NUMA node": {
			pools:         []Pool{poolWith("feed", []topology.NIC{secondNIC(), firstNIC()}, pagesPerNIC("2Mi", 400), pagesPerNIC("1Gi", 2))},
			want:          []string{"0000:3b:00.0 " + local + " 0,40", "0000:af:00.0 " + local + " 20,60"},
			wantUnits:     []string{nicInterruptsUnit},
			wantPages:     []string{"400 x 2Mi on 0 by Unit", "400 x 2Mi on 1 by Unit", "2 x 1Gi on 0 by Unit", "2 x 1Gi on 1 by Unit"},
			wantBypassNIC: []string{"0000:3b:00.0", "0000:af:00.0"},
		},
		"pages of pools and profile add up": {
			pools: []Pool{poolWith("feed", []topology.NIC{secondNIC()}, pagesPerNIC("2Mi", 400)),
				poolWith("order", []topology.NIC{xeon().NICs[2]}, pagesPerNIC("2Mi", 30), placed(v1alpha1.NICInterruptsKept))},
			profile:       hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 8}),
			want:          []string{"0000:af:00.0 " + local + " 20,60", "0000:af:00.1 Kept "},
			wantUnits:     []string{nicInterruptsUnit},
			wantPages:     []string{"4 x 2Mi on 0 by Unit", "434 x 2Mi on 1 by Unit"},
			wantBypassNIC: []string{"0000:af:00.0", "0000:af:00.1"},
		},
		"a NIC of the node's own traffic is refused": {
			pools: []Pool{poolWith("feed", []topology.NIC{managed}, vfio, pagesPerNIC("2Mi", 400))},
			wantFindings: []string{"High plan.pool-nic: BypassNICPool feed spec.nics: NIC 0000:af:00.0 (ens2f0) carries " +
				"the default route and is left alone."},
		},
		"a NIC that two pools share has the pages of both and one place for its interrupts": {
			pools: []Pool{shared(poolWith("feed", []topology.NIC{firstNIC()}, pagesPerNIC("2Mi", 400))),
				shared(poolWith("order", []topology.NIC{firstNIC()}, pagesPerNIC("2Mi", 30)))},
			want:          []string{"0000:3b:00.0 " + local + " 0,40", "0000:3b:00.0 " + local + " 0,40"},
			wantUnits:     []string{nicInterruptsUnit},
			wantPages:     []string{"430 x 2Mi on 0 by Unit"},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"a NIC of two pools is given to neither": {
			pools:     []Pool{poolWith("feed", []topology.NIC{secondNIC()}), poolWith("order", []topology.NIC{firstNIC(), secondNIC()})},
			want:      []string{"0000:3b:00.0 " + local + " 0,40"},
			wantUnits: []string{nicInterruptsUnit},
			wantFindings: []string{
				"High plan.pool-nic: BypassNICPool feed spec.nics: BypassNICPool order selects NIC 0000:af:00.0 (ens2f0), too, so neither pool has it.",
				"High plan.pool-nic: BypassNICPool order spec.nics: BypassNICPool feed selects NIC 0000:af:00.0 (ens2f0), too, so neither pool has it.",
			},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"an address that would break out of a command is refused": {
			pools: []Pool{poolWith("feed", []topology.NIC{nic("x; reboot", "e", "1924", new(0))})},
			wantFindings: []string{"High plan.pool-nic: BypassNICPool feed spec.nics: " +
				"\"x; reboot\" is no address on PCI."},
		},
		"pages for a NIC without a place": {
			pools:     []Pool{poolWith("feed", []topology.NIC{unplaced}, pagesPerNIC("2Mi", 400))},
			want:      []string{"0000:5e:00.0 Housekeeping 0,20,40,60"},
			wantUnits: []string{nicInterruptsUnit},
			wantFindings: []string{
				"High plan.hugepage-place: BypassNICPool feed spec.hugepages[0]: the pages are to be near NIC 0000:5e:00.0 " +
					"(ens9f0), but the firmware does not say which NUMA node it is on.",
				"High plan.nic-locality: BypassNICPool feed spec.nics: the firmware does not say which NUMA node NIC " +
					"0000:5e:00.0 (ens9f0) is on, and the host has 2 of them.",
			},
			wantBypassNIC: []string{"0000:5e:00.0"},
		},
		"more pages than the NUMA node has memory": {
			pools: []Pool{poolWith("feed", []topology.NIC{secondNIC()}, pagesPerNIC("1Gi", 193))},
			wantFindings: []string{"Critical plan.hugepage-memory: BypassNICPool feed spec.hugepages[0]: 193 pages of 1Gi, " +
				"193 GiB, are asked for on NUMA node 1, which has 192 GiB, of which 0 GiB go to other hugepages and 0 GiB are reserved by the kubelet."},
		},
		"a size that the kernel has not": {
			pools: []Pool{poolWith("feed", []topology.NIC{secondNIC()}, pagesPerNIC("32Mi", 1))},
			wantFindings: []string{"Critical plan.hugepage-size: BypassNICPool feed spec.hugepages[0]: amd64 kernels with " +
				"4Ki pages have no hugepages of 32Mi."},
		},
	}
}

// functionCases are about virtual functions and NICs for user space.
func functionCases() map[string]poolCase {
	return map[string]poolCase{
		"virtual functions for user space": {
			pools:         []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, functions(8))},
			want:          []string{"0000:3b:00.0 functions 8 vfio-pci " + local + " 0,40"},
			wantUnits:     []string{"lowlatency-bypass-nic-0000-3b-00.0.service", nicInterruptsUnit},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"virtual functions for the kernel": {
			pools:         []Pool{poolWith("feed", []topology.NIC{firstNIC()}, functions(16), placed(v1alpha1.NICInterruptsHousekeeping))},
			want:          []string{"0000:3b:00.0 functions 16 Housekeeping 0,20,40,60"},
			wantUnits:     []string{"lowlatency-bypass-nic-0000-3b-00.0.service", nicInterruptsUnit},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"more virtual functions than the NIC has": {
			pools:     []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, functions(17))},
			want:      []string{"0000:3b:00.0 " + local + " 0,40"},
			wantUnits: []string{nicInterruptsUnit},
			wantFindings: []string{"High plan.pool-virtual-functions: BypassNICPool dpdk spec.virtualFunctions.countPerNIC: " +
				"17 virtual functions are wanted on NIC 0000:3b:00.0 (ens1f0), which offers 16; none is created."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"the NIC itself for user space": {
			pools:         []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept))},
			want:          []string{"0000:3b:00.0 vfio-pci Kept "},
			wantUnits:     []string{"lowlatency-bypass-nic-0000-3b-00.0.service"},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"terms that lose the NIC once it is bound": {
			pools: []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept), terms(
				v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"sfc"}}, v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"sfc", "vfio-pci"}}))},
			want: []string{"0000:3b:00.0 Kept "},
			wantFindings: []string{"High plan.pool-nic: BypassNICPool dpdk spec.nics[0]: a NIC that is bound to vfio-pci has no " +
				"interface, no link and another driver, so this term would not find it again; the NICs are left as they are."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
	}
}

// isolationCases are about what stack VFIO needs.
func isolationCases() map[string]poolCase {
	return map[string]poolCase{
		"no IOMMU by the profile": {
			pools:   []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, functions(2), placed(v1alpha1.NICInterruptsKept))},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.IOMMU = v1alpha1.IOMMUDisabled },
			want:    []string{"0000:3b:00.0 Kept "},
			wantFindings: []string{"High plan.iommu: spec.kernel.iommu: Disabled in LowLatencyNodeProfile trading switches the " +
				"IOMMU off, which BypassNICPool dpdk needs for stack VFIO; its NICs are left as they are."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"no IOMMU by an argument": {
			pools: []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept))},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Kernel.IOMMU, s.Kernel.AdditionalArguments = v1alpha1.IOMMUKept, []v1alpha1.KernelArgument{"intel_iommu=off"}
			},
			want: []string{"0000:3b:00.0 Kept "},
			wantFindings: []string{"High plan.iommu: spec.kernel.iommu: the additional argument intel_iommu=off in " +
				"LowLatencyNodeProfile trading switches the IOMMU off, which BypassNICPool dpdk needs for stack VFIO; its NICs are left as they are."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"no IOMMU by one word of an argument": {
			pools: []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept))},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Kernel.IOMMU, s.Kernel.AdditionalArguments = v1alpha1.IOMMUKept, []v1alpha1.KernelArgument{"intel-iommu=strict,off"}
			},
			want: []string{"0000:3b:00.0 Kept "},
			wantFindings: []string{"High plan.iommu: spec.kernel.iommu: the additional argument intel-iommu=strict,off in " +
				"LowLatencyNodeProfile trading switches the IOMMU off, which BypassNICPool dpdk needs for stack VFIO; its NICs are left as they are."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"an IOMMU that is left to the kernel": {
			pools:     []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept))},
			profile:   func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.IOMMU = v1alpha1.IOMMUKept },
			want:      []string{"0000:3b:00.0 vfio-pci Kept "},
			wantUnits: []string{"lowlatency-bypass-nic-0000-3b-00.0.service"},
			wantFindings: []string{"Medium plan.iommu: spec.kernel.iommu: with Kept in LowLatencyNodeProfile trading the kernel " +
				"decides about Intel's IOMMU, and most leave it off; BypassNICPool dpdk needs it for stack VFIO."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"an IOMMU that the user's own argument switches on": {
			pools: []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept))},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Kernel.IOMMU, s.Kernel.AdditionalArguments = v1alpha1.IOMMUKept, []v1alpha1.KernelArgument{"intel_iommu=on"}
			},
			want:          []string{"0000:3b:00.0 vfio-pci Kept "},
			wantUnits:     []string{"lowlatency-bypass-nic-0000-3b-00.0.service"},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"an IOMMU that one word of the user's own argument switches on": {
			pools: []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept))},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.Kernel.IOMMU, s.Kernel.AdditionalArguments = v1alpha1.IOMMUKept, []v1alpha1.KernelArgument{"intel_iommu=sm_on,on"}
			},
			want:          []string{"0000:3b:00.0 vfio-pci Kept "},
			wantUnits:     []string{"lowlatency-bypass-nic-0000-3b-00.0.service"},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"without an IOMMU on purpose": {
			pools:     []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, withoutIOMMU, placed(v1alpha1.NICInterruptsKept))},
			profile:   func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.IOMMU = v1alpha1.IOMMUDisabled },
			want:      []string{"0000:3b:00.0 vfio-pci Kept "},
			wantUnits: []string{"lowlatency-bypass-nic-0000-3b-00.0.service"},
			wantFindings: []string{"High plan.pool-driver: BypassNICPool dpdk spec.stack.vfio.isolation: with NoIOMMU a program " +
				"that owns a NIC of the pool can read and write all memory of the node, and the kernel is tainted."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
		"a module that the profile unloads": {
			pools: []Pool{poolWith("dpdk", []topology.NIC{firstNIC()}, vfio, placed(v1alpha1.NICInterruptsKept))},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.System.UnloadModules = []v1alpha1.ModuleName{"vfio-pci"}
			},
			want: []string{"0000:3b:00.0 Kept "},
			wantFindings: []string{"High plan.pool-driver: spec.system.unloadModules[0]: LowLatencyNodeProfile trading keeps module " +
				"vfio-pci from loading, which BypassNICPool dpdk needs for stack VFIO; its NICs are left as they are."},
			wantBypassNIC: []string{"0000:3b:00.0"},
		},
	}
}

// interruptCases are about the CPUs that handle interrupts.
func interruptCases() map[string]poolCase {
	return map[string]poolCase{
		"interrupts near a NIC without housekeeping CPUs": {
			pools: []Pool{poolWith("feed", []topology.NIC{secondNIC()}, placed(v1alpha1.NICInterruptsLocalHousekeeping))},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				derived(v1alpha1.DerivedCPUs{HousekeepingCores: 2, Spread: v1alpha1.SpreadFirstNUMANode})(s)
			},
			want:      []string{"0000:af:00.0 Housekeeping 0-1,40-41"},
			wantUnits: []string{nicInterruptsUnit},
			wantFindings: []string{"Medium plan.pool-interrupts: BypassNICPool feed spec.interrupts.placement: no housekeeping CPU " +
				"is known to be near NIC 0000:af:00.0 (ens2f0), so other housekeeping CPUs 0-1,40-41 handle its interrupts."},
			wantBypassNIC: []string{"0000:af:00.0"},
		},
		"the same without an opinion": {
			pools: []Pool{poolWith("feed", []topology.NIC{secondNIC()})},
			profile: func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				derived(v1alpha1.DerivedCPUs{HousekeepingCores: 2, Spread: v1alpha1.SpreadFirstNUMANode})(s)
			},
			want:          []string{"0000:af:00.0 Housekeeping 0-1,40-41"},
			wantUnits:     []string{nicInterruptsUnit},
			wantBypassNIC: []string{"0000:af:00.0"},
		},
		"interrupts beside an irqbalance that may use all CPUs": {
			pools:     []Pool{poolWith("feed", []topology.NIC{secondNIC()})},
			profile:   func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Interrupts.Balancer = v1alpha1.BalancerKept },
			want:      []string{"0000:af:00.0 " + local + " 20,60"},
			wantUnits: []string{nicInterruptsUnit},
			wantFindings: []string{"Medium plan.pool-interrupts: spec.interrupts.balancer: with Kept irqbalance may move the " +
				"interrupts of bypass NICs to any CPU, from where they are put back within 5 seconds only."},
			wantBypassNIC: []string{"0000:af:00.0"},
		},
	}
}

func TestPools(t *testing.T) {
	cases := claimCases()
	for _, more := range []map[string]poolCase{functionCases(), isolationCases(), interruptCases()} {
		maps.Copy(cases, more)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, findings := poolsOn(xeon(), tc.pools, append([]change{}, nonNil(tc.profile)...)...)
			checkFindings(t, findings)
			about := slices.DeleteFunc(findings, func(f Finding) bool { return f.Rule == ruleNUMAHousekeeping })
			if diff := cmp.Diff(tc.wantFindings, list(about, ruleAndMessage)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			if plan == nil {
				if tc.want != nil {
					t.Error("there is no plan")
				}
				return
			}
			var nics []PoolNICPlan
			for _, pool := range plan.BypassPools {
				nics = append(nics, pool.NICs...)
			}
			units := slices.DeleteFunc(unitNames(plan), func(name string) bool {
				return !strings.Contains(name, "bypass-nic") && name != nicInterruptsUnit
			})
			got := [][]string{list(nics, describePoolNIC), list(units, func(u string) string { return u }), list(plan.Hugepages, describePlan),
				list(plan.BypassNICs, func(n NICPlan) string { return n.PCIAddress })}
			if diff := cmp.Diff([][]string{tc.want, tc.wantUnits, tc.wantPages, tc.wantBypassNIC}, got); diff != "" {
				t.Errorf("NICs, units, pages, bypass NICs (-want +got):\n%s", diff)
			}
		})
	}
}

// No argument switches the IOMMU of arm64 off, whatever it does on x86, so that functions for user space are made.
func TestIOMMUOfArm(t *testing.T) {
	for name, profile := range map[string]change{
		"an argument of x86": func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kernel.IOMMU, s.Kernel.AdditionalArguments = v1alpha1.IOMMUKept, []v1alpha1.KernelArgument{"iommu=off"}
		},
		"a mode that arm64 does not have": func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.IOMMU = v1alpha1.IOMMUDisabled },
	} {
		t.Run(name, func(t *testing.T) {
			plan, findings := poolsOn(arm(), []Pool{poolWith("dpdk", arm().NICs, vfio, placed(v1alpha1.NICInterruptsKept))}, profile)
			if plan == nil {
				t.Fatal(describe(findings))
			}
			if got := describePoolNIC(plan.BypassPools[0].NICs[0]); got != "0003:01:00.0 vfio-pci Kept " {
				t.Errorf("the NIC is planned as %q; %s", got, describe(findings))
			}
		})
	}
}

// TestPoolConflicts: what a pool claims and another one has changes nothing of the plan, which says so.
func TestPoolConflicts(t *testing.T) {
	pool := poolWith("dpdk", nil)
	pool.Conflicts = []PoolConflict{{NICs: []topology.NIC{firstNIC(), secondNIC()}, Pools: []string{"feed"}}}
	pool.ResourceOwner = "orders"
	pool.Spec.ResourceName = "lowlatency.dev/x2"
	with, findings := poolsOn(xeon(), []Pool{pool})
	without, _ := poolsOn(xeon(), nil)
	if with.Hash() != without.Hash() {
		t.Error("a pool that has no NIC changes the plan")
	}
	about := slices.DeleteFunc(findings, func(f Finding) bool { return f.Rule != RulePoolConflict })
	want := []string{
		"High plan.pool-conflict: BypassNICPool dpdk spec.nics: NIC 0000:3b:00.0 (ens1f0), 0000:af:00.0 (ens2f0) belongs to BypassNICPool feed, " +
			"which had it first, so BypassNICPool dpdk does not get it.",
		"High plan.pool-conflict: BypassNICPool dpdk spec.resourceName: resource name lowlatency.dev/x2 belongs to BypassNICPool orders, " +
			"which had it first, so BypassNICPool dpdk has no NIC.",
	}
	if diff := cmp.Diff(want, list(about, ruleAndMessage)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func nonNil(c change) []change {
	if c == nil {
		return nil
	}
	return []change{c}
}

// TestPoolNICsAreBypassNICs: what the profile says about bypass NICs counts for those of pools.
func TestPoolNICsAreBypassNICs(t *testing.T) {
	pools := []Pool{poolWith("feed", xeon().NICs[1:2])}
	plan, findings := poolsOn(xeon(), pools, func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.CPUs.Derived = &v1alpha1.DerivedCPUs{HousekeepingCores: 3, KeepNearBypassNICs: v1alpha1.NearNICIsolated}
		hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 64, Placement: v1alpha1.HugepagesBypassNICLocal})(s)
	})
	if plan == nil {
		t.Fatal(describe(findings))
	}
	if got := plan.CPUs.Housekeeping.String(); got != "0-2,20,40-42,60" {
		t.Errorf("housekeeping %s, want one core only on NUMA node 1", got)
	}
	if diff := cmp.Diff([]string{"64 x 2Mi on 1 by Unit"}, list(plan.Hugepages, describePlan)); diff != "" {
		t.Errorf("hugepages (-want +got):\n%s", diff)
	}
}

// TestPoolsWithoutNICsChangeNothing: neither pools that select no NIC, nor those that may have none.
func TestPoolsWithoutNICsChangeNothing(t *testing.T) {
	want := planOf(t, xeon(), rich)
	managed := xeon().NICs[0]
	managed.Management = "the address of the kubelet"
	got, _ := poolsOn(xeon(), []Pool{poolWith("none", nil, pagesPerNIC("2Mi", 9)), poolWith("own", []topology.NIC{managed}, vfio)}, rich)
	if diff := cmp.Diff(want, got); diff != "" || want.Hash() != got.Hash() {
		t.Errorf("the plan changes (-want +got):\n%s", diff)
	}
}

// TestPoolOrigins: the origin of pages names the field of the pool and the NIC.
func TestPoolOrigins(t *testing.T) {
	plan, findings := poolsOn(xeon(), []Pool{poolWith("feed", xeon().NICs[1:2], pagesPerNIC("2Mi", 400))},
		hugepages(v1alpha1.HugepageReservation{Size: "2Mi", Count: 2}))
	if plan == nil {
		t.Fatal(describe(findings))
	}
	want := []Origin{
		{Source: FromField, Detail: "spec.memory.hugepages"},
		{Source: FromPool, Detail: "spec.memory.hugepages and BypassNICPool feed spec.hugepages[0] for NIC 0000:af:00.0"},
	}
	got := make([]Origin, 0, len(plan.Hugepages))
	for _, pages := range plan.Hugepages {
		got = append(got, pages.Origin)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
}

// TestVFIOFiles: the module is loaded at boot, and without an IOMMU where a pool says so only.
func TestVFIOFiles(t *testing.T) {
	cases := map[string]struct {
		pool        Pool
		wantModules string
		wantOptions string
	}{
		"with an IOMMU":    {poolWith("dpdk", xeon().NICs[:1], vfio), "vfio-pci\n", ""},
		"without an IOMMU": {poolWith("dpdk", xeon().NICs[:1], withoutIOMMU), "vfio-pci\n", "options vfio enable_unsafe_noiommu_mode=1\n"},
		"another stack":    {poolWith("feed", xeon().NICs[:1]), "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, findings := poolsOn(xeon(), []Pool{tc.pool})
			if plan == nil {
				t.Fatal(describe(findings))
			}
			if got := file(plan, "/etc/modules-load.d/10-lowlatency-vfio.conf"); got != tc.wantModules {
				t.Errorf("modules %q, want %q", got, tc.wantModules)
			}
			if got := file(plan, "/etc/modprobe.d/10-lowlatency-vfio.conf"); got != tc.wantOptions {
				t.Errorf("options %q, want %q", got, tc.wantOptions)
			}
		})
	}
}

// TestDiffOfPools: what is new is made while the kernel runs, what pods may hold is not.
func TestDiffOfPools(t *testing.T) {
	of := func(change ...poolChange) *NodePlan { return vfioPlan(t, change...) }
	cases := map[string]struct {
		from, to *NodePlan
		want     []string
	}{
		"a new pool": {
			from: planOf(t, xeon()), to: of(functions(2)),
			want: []string{
				// Memory is reserved where no bypass NIC is.
				"kubelet setting reservedMemory NotRequired",
				"file /etc/modules-load.d/10-lowlatency-vfio.conf NotRequired",
				"file /usr/local/bin/lowlatency-bypass-nic NotRequired",
				"file /usr/local/bin/lowlatency-nic-interrupts NotRequired",
				"unit lowlatency-bypass-nic-0000-3b-00.0.service NotRequired",
				"unit lowlatency-nic-interrupts.service NotRequired",
				"BypassNICPool dpdk NotRequired",
				"interrupts of NIC 0000:3b:00.0 NotRequired",
				"virtual functions of NIC 0000:3b:00.0 NotRequired",
				"driver of the virtual functions of NIC 0000:3b:00.0 NotRequired",
				"bypass NICs NotRequired",
			},
		},
		"more virtual functions": {
			from: of(functions(2)), to: of(functions(3)),
			want: []string{"unit lowlatency-bypass-nic-0000-3b-00.0.service NotRequired", "virtual functions of NIC 0000:3b:00.0 Required"},
		},
		"the NIC instead of its functions": {
			from: of(functions(2)), to: of(),
			want: []string{
				"unit lowlatency-bypass-nic-0000-3b-00.0.service NotRequired",
				"driver of NIC 0000:3b:00.0 NotRequired",
				"virtual functions of NIC 0000:3b:00.0 Required",
				"driver of the virtual functions of NIC 0000:3b:00.0 Required",
			},
		},
		"other CPUs for interrupts": {
			from: of(functions(2)), to: of(functions(2), placed(v1alpha1.NICInterruptsHousekeeping)),
			want: []string{"unit lowlatency-nic-interrupts.service NotRequired", "interrupts of NIC 0000:3b:00.0 NotRequired"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := list(Diff(tc.from, tc.to).Items, func(c Change) string { return c.What + " " + string(c.Reboot) })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDiffRunningOfPools compares what a host has with the plan of a pool.
func TestDiffRunningOfPools(t *testing.T) {
	function := func(driver string) host.NIC {
		return host.NIC{PCIAddress: "0000:3b:08.0", Driver: host.Known(driver, "")}
	}
	with := func(driver string, functions ...string) host.NIC {
		return host.NIC{PCIAddress: testNIC, Driver: host.Known(driver, ""), VirtualFunctions: functions}
	}
	cases := map[string]struct {
		plan *NodePlan
		nics []host.NIC
		want []string
	}{
		"as planned":     {vfioPlan(t, functions(1)), []host.NIC{with("sfc", "0000:3b:08.0"), function("vfio-pci")}, nil},
		"nothing yet":    {vfioPlan(t, functions(1)), []host.NIC{with("sfc")}, []string{"virtual functions of NIC 0000:3b:00.0: 0 -> 1 (NotRequired)", "driver of the virtual functions of NIC 0000:3b:00.0:  -> vfio-pci (NotRequired)"}},
		"another driver": {vfioPlan(t, functions(1)), []host.NIC{with("sfc", "0000:3b:08.0"), function("iavf")}, []string{"driver of the virtual functions of NIC 0000:3b:00.0: iavf -> vfio-pci (Required)"}},
		"the NIC itself": {vfioPlan(t), []host.NIC{with("sfc")}, []string{"driver of NIC 0000:3b:00.0: sfc -> vfio-pci (Required)"}},
		"no such NIC":    {vfioPlan(t), nil, []string{"driver of NIC 0000:3b:00.0: unknown -> vfio-pci (Unknown)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := slices.DeleteFunc(changesOf(DiffRunning(&host.Facts{NICs: tc.nics}, tc.plan)), func(change string) bool {
				return !strings.Contains(change, "of NIC") && !strings.Contains(change, "of the virtual functions")
			})
			if len(got) == 0 {
				got = nil
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}
