// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// randomTopology is a regular machine with some disorder: offline CPUs, a memory-only NUMA node, NICs
// anywhere or nowhere, nosmt in force.
func randomTopology(r *rand.Rand) *topology.Topology {
	l := layout{
		architecture: []string{"amd64", "arm64"}[r.IntN(2)], vendor: []string{"Intel", "AMD", "ARM", ""}[r.IntN(4)],
		release:   []string{"4.18.0", "5.14.0", "6.15.2", ""}[r.IntN(4)],
		numaNodes: 1 + r.IntN(10), coresPerNode: 1 + r.IntN(12), threads: 1 + r.IntN(3), cachesPerNode: r.IntN(4),
		memoryPerNode: int64(r.IntN(64)) * gibibyte, first: r.IntN(2), stride: 1 + r.IntN(3),
		minimumFrequency: int64(r.IntN(2)) * 800000, maxFrequency: 3500000,
	}
	t := l.topology()
	if r.IntN(4) == 0 {
		withMemoryNode(t)
	}
	if r.IntN(4) == 0 {
		withoutSMT(t, r.IntN(2) == 0)
	}
	if ids := t.Online.IDs(); len(ids) > 2 && r.IntN(4) == 0 {
		offlined(t, ids[1+r.IntN(len(ids)-1)])
	}
	for range r.IntN(3) {
		var numa *int
		if r.IntN(3) > 0 {
			numa = new(r.IntN(len(t.NUMANodes)))
		}
		withNIC(t, numa)
	}
	return t
}

// randomSpec is a profile with values in every section.
func randomSpec(r *rand.Rand, t *topology.Topology) change {
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.CPUs.SimultaneousMultithreading = v1alpha1.SMTMode(pick("", "Kept", "Disabled"))
		s.CPUs.Tick, s.CPUs.Isolation = v1alpha1.TickMode(pick("", "Stopped", "Periodic")), v1alpha1.CPUIsolation(pick("", "Static", "PerPod"))
		s.CPUs.Derived = &v1alpha1.DerivedCPUs{
			HousekeepingCores:  int32(r.IntN(5)),
			Spread:             v1alpha1.CoreSpread(pick("", "PerNUMANode", "FirstNUMANode")),
			KeepNearBypassNICs: v1alpha1.NearNICPreference(pick("", "Isolated", "NoPreference")),
			SharedCaches:       v1alpha1.CacheSharing(pick("", "Avoided", "Allowed")),
		}
		if ids := t.Online.IDs(); r.IntN(4) == 0 && len(ids) > 1 {
			cut := 1 + r.IntN(len(ids)-1)
			explicit(v1alpha1.ExplicitCPUs{Housekeeping: v1alpha1.CPUList(cpus.Of(ids[:cut]...).String()),
				Isolated: v1alpha1.CPUList(cpus.Of(ids[cut:]...).String())})(s)
			s.CPUs.Derived = nil
		}
		if r.IntN(2) == 0 {
			s.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens2f0"}}}
		}
		if r.IntN(2) == 0 {
			s.Memory.DefaultHugepageSize = "2Mi"
			s.Memory.Hugepages = []v1alpha1.HugepageReservation{
				{Size: "2Mi", Count: int32(1 + r.IntN(4000)), Placement: v1alpha1.HugepagePlacement(pick("", "Spread", "EveryNUMANode", "BypassNICLocal"))},
				{Size: v1alpha1.HugepageSize(pick("2Mi", "1Gi", "32Mi")), Count: int32(1 + r.IntN(40)), NUMANode: new(int32(r.IntN(8)))},
			}
		}
		s.Interrupts.Placement = v1alpha1.InterruptPlacement(pick("", "Housekeeping", "PerPod"))
		s.NUMA.TopologyPolicy = v1alpha1.TopologyPolicy(pick("", "None", "BestEffort", "Restricted", "SingleNUMANode"))
		s.Power.Preset = v1alpha1.PowerPreset(pick("", "MaximumDeterminism", "HighPerformance", "LowLatency", "PerPod", "Kept"))
		s.Power.Turbo = v1alpha1.TurboMode(pick("", "Enabled", "Disabled"))
		s.Kernel.Type = v1alpha1.KernelType(pick("", "Default", "RealTime"))
		s.Kernel.IOMMU = v1alpha1.IOMMUMode(pick("", "Passthrough", "Translated", "Disabled", "Kept"))
		s.Kubelet.SystemReservedMemory = v1alpha1.MemoryQuantity(pick("", "1Gi", "1000M", "123456789"))
	}
}

// randomPools share out the NICs of the machine.
func randomPools(r *rand.Rand, t *topology.Topology) []Pool {
	pools := make([]Pool, 0, len(t.NICs))
	stacks := []poolChange{vfio, withoutIOMMU, func(*v1alpha1.BypassNICPoolSpec) {}}
	for _, nic := range t.NICs {
		nic.MaximumVirtualFunctions = r.IntN(3)
		if r.IntN(5) == 0 {
			nic.Management = "the default route"
		}
		placement := []v1alpha1.NICInterruptPlacement{"", "NICLocalHousekeeping", "Housekeeping", "Kept"}[r.IntN(4)]
		pool := poolWith("pool"+number(int32(1+len(pools))), []topology.NIC{nic}, stacks[r.IntN(len(stacks))], placed(placement))
		if r.IntN(2) == 0 {
			functions(int32(1 + r.IntN(3)))(pool.Spec)
		}
		if r.IntN(2) == 0 {
			pagesPerNIC([]v1alpha1.HugepageSize{"2Mi", "1Gi"}[r.IntN(2)], int32(1+r.IntN(20)))(pool.Spec)
		}
		pools = append(pools, pool)
	}
	return pools
}

// checkPools: interrupts go to housekeeping CPUs or stay, and each NIC that is changed has its unit.
func checkPools(t *testing.T, plan *NodePlan) {
	t.Helper()
	for _, pool := range plan.BypassPools {
		for _, nic := range pool.NICs {
			if !nic.InterruptCPUs.IsSubsetOf(plan.CPUs.Housekeeping) || nic.InterruptCPUs.IsEmpty() != (nic.Interrupts == v1alpha1.NICInterruptsKept) {
				t.Errorf("interrupts of %s are %s on %s, housekeeping is %s", nic.PCIAddress, nic.Interrupts, nic.InterruptCPUs, plan.CPUs.Housekeeping)
			}
			changed := nic.VirtualFunctions > 0 || nic.Driver != ""
			if unit := unitOf(plan, bypassNICUnitName(nic.PCIAddress)); (unit.Name != "") != changed {
				t.Errorf("NIC %+v with unit %q", nic, unit.Name)
			}
		}
	}
}

// FuzzNew: whatever the machine and the profile, there is a plan that keeps its promises, or a Critical
// finding that says why there is none.
func FuzzNew(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed, seed*7919)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		machine := randomTopology(r)
		in := Input{Profile: profileWith(randomSpec(r, machine)), Topology: machine}
		in.Pools = randomPools(r, machine)
		plan, findings := New(in)
		checkFindings(t, findings)
		critical := len(findings) > 0 && findings[0].Severity == v1alpha1.SeverityCritical
		if critical != (plan == nil) {
			t.Fatalf("critical %t, plan %v", critical, plan)
		}
		if plan == nil {
			return
		}
		checkPartition(t, machine, plan)
		if in.Profile.Spec.CPUs.Explicit == nil {
			checkCores(t, machine, in.Profile.Spec.CPUs.Derived.Spread, plan.CPUs)
		}
		checkReservedMemory(t, plan.Kubelet)
		checkHugepages(t, machine, plan)
		checkPools(t, plan)
		checkOrigins(t, plan)
		again, _ := New(in)
		if plan.Hash() != again.Hash() || !cmp.Equal(plan, again) {
			t.Errorf("planning twice differs:\n%s", cmp.Diff(plan, again))
		}
		if changes := Diff(plan, again); len(changes.Items) != 0 {
			t.Errorf("a plan differs from itself: %v", changesOf(changes))
		}
	})
}

// checkFindings: every finding says all it should, and the most severe come first.
// checkObjects wants the objects to hold what the sentence names. Only this test reads sentences.
func checkObjects(t *testing.T, f Finding) {
	t.Helper()
	named := func(pattern string) []string { return regexp.MustCompile(pattern).FindStringSubmatch(f.Message) }
	if match := named(`\bCPUs? ([0-9][0-9,-]*[0-9]|[0-9])`); match != nil {
		if set, err := cpus.Parse(match[1]); err != nil || !set.IsSubsetOf(f.Objects.CPUs) {
			t.Errorf("the objects of %s lack CPUs %s: %+v", f.Rule, match[1], f)
		}
	}
	if match := named(`\bNUMA node ([0-9]+)`); match != nil {
		if id, err := strconv.Atoi(match[1]); err != nil || !slices.Contains(f.Objects.NUMANodes, int32(id)) {
			t.Errorf("the objects of %s lack NUMA node %s: %+v", f.Rule, match[1], f)
		}
	}
	if match := named(`\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]`); match != nil && !slices.Contains(f.Objects.NICs, match[0]) {
		t.Errorf("the objects of %s lack NIC %s: %+v", f.Rule, match[0], f)
	}
}

func checkFindings(t *testing.T, findings []Finding) {
	t.Helper()
	for i, f := range findings {
		if slices.Contains([]string{f.Message, f.Remedy, f.Field, f.Rule}, "") {
			t.Errorf("finding %+v lacks something", f)
		}
		checkObjects(t, f)
		if i > 0 && severityRank(f.Severity) < severityRank(findings[i-1].Severity) {
			t.Errorf("finding %+v is more severe than the one before", f)
		}
	}
}

// checkPartition: housekeeping and isolated CPUs are all there is, and share nothing.
func checkPartition(t *testing.T, machine *topology.Topology, plan *NodePlan) {
	t.Helper()
	c := plan.CPUs
	if c.Housekeeping.Overlaps(c.Isolated) || c.Housekeeping.IsEmpty() || c.Isolated.IsEmpty() {
		t.Fatalf("housekeeping %s and isolated %s", c.Housekeeping, c.Isolated)
	}
	divided := machine.Online
	if c.SMT == v1alpha1.SMTDisabled {
		divided = machineOf(machine, c.SMT).usable
	}
	all := c.Housekeeping.Union(c.Isolated, c.Offline)
	if !divided.IsSubsetOf(all) {
		t.Errorf("CPUs %s are divided, want %s", all, divided)
	}
	for _, core := range machine.Cores {
		if threads := core.CPUs.Intersection(all); c.SMT == v1alpha1.SMTDisabled && threads.Len() > 1 {
			t.Errorf("core %s has threads %s", core.CPUs, threads)
		}
	}
}

// checkCores: a derived partition splits no core, keeps the boot CPU, and leaves no NUMA node with isolated
// CPUs to others.
func checkCores(t *testing.T, machine *topology.Topology, spread v1alpha1.CoreSpread, c CPUPlan) {
	t.Helper()
	served := map[int]bool{}
	for _, core := range machine.Cores {
		kept, isolated := core.CPUs.Intersection(c.Housekeeping), core.CPUs.Intersection(c.Isolated)
		if !kept.IsEmpty() && !isolated.IsEmpty() {
			t.Errorf("core %s is split", core.CPUs)
		}
		served[core.NUMANode] = served[core.NUMANode] || !kept.IsEmpty()
	}
	for _, core := range machine.Cores {
		if spread != v1alpha1.SpreadFirstNUMANode && core.CPUs.Overlaps(c.Isolated) && !served[core.NUMANode] {
			t.Errorf("NUMA node %d has isolated CPUs but no housekeeping CPU", core.NUMANode)
		}
	}
	if boot := c.Housekeeping.Union(c.Isolated).First(); !c.Housekeeping.Contains(boot) {
		t.Errorf("boot CPU %d is isolated", boot)
	}
}

// checkHugepages: no NUMA node gives more than it has.
func checkHugepages(t *testing.T, machine *topology.Topology, plan *NodePlan) {
	t.Helper()
	total := map[int]int64{}
	for _, h := range plan.Hugepages {
		if h.Count <= 0 || (h.Method == ByUnit) != (unitOf(plan, unitNameOf(h)).Name != "") {
			t.Errorf("hugepages %+v with units %v", h, unitNames(plan))
		}
		if h.NUMANode != nil {
			total[*h.NUMANode] += h.Count * h.SizeKibibytes * 1024
		}
	}
	for numa, bytes := range total {
		node, ok := machine.NUMANode(numa)
		if !ok || *node.MemoryBytes < bytes {
			t.Errorf("NUMA node %d is to give %d bytes", numa, bytes)
		}
	}
}

func unitNameOf(h HugepagePlan) string {
	if h.NUMANode == nil {
		return "none"
	}
	return "lowlatency-hugepages-" + number(int32(h.SizeKibibytes)) + "kB-numa" + cpus.Of(*h.NUMANode).String() + ".service"
}

// checkOrigins: every value says where it came from.
func checkOrigins(t *testing.T, plan *NodePlan) {
	t.Helper()
	data, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch v := node.(type) {
		case map[string]any:
			if origin, ok := v["origin"].(map[string]any); ok && (origin["source"] == "" || origin["detail"] == "") {
				t.Errorf("%s has no origin", path)
			}
			for name, child := range v {
				walk(path+"."+name, child)
			}
		case []any:
			for _, child := range v {
				walk(path+"[]", child)
			}
		}
	}
	walk("plan", tree)
}

// TestPlanOfNoRunningKernel: the kernel that runs while a plan is made is another one after the next upgrade of the
// operating system, and a plan that changed with it would reboot the node again and close its gate.
func TestPlanOfNoRunningKernel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		machine := randomTopology(r)
		in := Input{Profile: profileWith(randomSpec(r, machine)), Topology: machine}
		hashes := map[string]string{}
		for _, release := range []string{"4.18.0-553.el8.x86_64", "5.14.0-570.el9.x86_64", "5.14.0-570.el9.x86_64+rt", "6.12.0", "6.18.3-rt1", "odd"} {
			machine.KernelRelease = release
			plan, _ := New(in)
			hashes[plan.Hash()] += " " + release
		}
		if len(hashes) > 1 {
			t.Errorf("seed %d: plans differ by the running kernel: %v", seed, hashes)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for name, machine := range map[string]*topology.Topology{"80 CPUs": xeon(), "512 CPUs": large()} {
		b.Run(name, func(b *testing.B) {
			in := Input{Profile: profileWith(rich), Topology: machine}
			if machine.NICs == nil {
				in.BypassNICs = xeon().NICs
			}
			b.ReportAllocs()
			for b.Loop() {
				if plan, findings := New(in); plan == nil {
					b.Fatal(describe(findings))
				}
			}
		})
	}
}

func BenchmarkHash(b *testing.B) {
	plan := planOf(b, large())
	b.ReportAllocs()
	for b.Loop() {
		plan.Hash()
	}
}
