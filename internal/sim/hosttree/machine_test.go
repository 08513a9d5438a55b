// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// written writes a machine's tree.
func written(t testing.TB, m Machine) string {
	t.Helper()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// facts reads a tree.
func facts(t testing.TB, dir string) *host.Facts {
	t.Helper()
	h, err := host.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := h.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

func topologyOf(t testing.TB, dir string) *topology.Topology {
	t.Helper()
	top, err := topology.FromFacts(facts(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	return top
}

func machines() map[string]Machine {
	interleaved := Xeon()
	interleaved.Numbering = NumberingInterleaved
	virtual := EPYC()
	virtual.NICs[1].VirtualFunctions, virtual.NICs[2].VirtualFunctions = 9, 4
	return map[string]Machine{
		"Xeon": Xeon(), "EPYC": EPYC(), "Arm": Arm(), "interleaved Xeon": interleaved, "EPYC with virtual functions": virtual,
	}
}

// outline is a topology in a few numbers.
type outline struct {
	Architecture, Vendor, Online string
	Packages, Cores, L3Domains   int
	NUMANodes                    []string
	NICs                         []string
}

func outlineOf(top *topology.Topology) outline {
	o := outline{
		Architecture: top.Architecture, Vendor: top.Vendor, Online: top.Online.String(),
		Packages: len(top.Packages), Cores: len(top.Cores), L3Domains: len(top.L3Domains),
	}
	for _, node := range top.NUMANodes {
		o.NUMANodes = append(o.NUMANodes, fmt.Sprintf("%d: CPUs %s, %d GiB, distances %v", node.ID, node.CPUs, *node.MemoryBytes>>30, node.Distances))
	}
	for _, nic := range top.NICs {
		o.NICs = append(o.NICs, fmt.Sprintf("%s %s %s:%s %s node %d", nic.PCIAddress, nic.Name, nic.Vendor, nic.Device, nic.Driver, *nic.NUMANode))
	}
	return o
}

func TestConstructorsDescribeTheMachinesTheySay(t *testing.T) {
	cases := map[string]struct {
		machine Machine
		want    outline
	}{
		"Xeon": {machine: Xeon(), want: outline{
			Architecture: "amd64", Vendor: "Intel", Online: "0-63", Packages: 2, Cores: 32, L3Domains: 2,
			NUMANodes: []string{
				"0: CPUs 0-15,32-47, 128 GiB, distances [10 20]",
				"1: CPUs 16-31,48-63, 128 GiB, distances [20 10]",
			},
			NICs: []string{
				"0000:18:00.0 eno1 8086:1572 i40e node 0",
				"0000:18:00.1 eno2 8086:1572 i40e node 0",
				"0000:af:00.0 ens2f0np0 1924:0b03 sfc node 1",
				"0000:af:00.1 ens2f1np1 1924:0b03 sfc node 1",
			},
		}},
		"EPYC": {machine: EPYC(), want: outline{
			Architecture: "amd64", Vendor: "AMD", Online: "0-127", Packages: 2, Cores: 64, L3Domains: 16,
			NUMANodes: []string{
				"0: CPUs 0-7,64-71, 64 GiB, distances [10 12 12 12 32 32 32 32]",
				"1: CPUs 8-15,72-79, 64 GiB, distances [12 10 12 12 32 32 32 32]",
				"2: CPUs 16-23,80-87, 64 GiB, distances [12 12 10 12 32 32 32 32]",
				"3: CPUs 24-31,88-95, 64 GiB, distances [12 12 12 10 32 32 32 32]",
				"4: CPUs 32-39,96-103, 64 GiB, distances [32 32 32 32 10 12 12 12]",
				"5: CPUs 40-47,104-111, 64 GiB, distances [32 32 32 32 12 10 12 12]",
				"6: CPUs 48-55,112-119, 64 GiB, distances [32 32 32 32 12 12 10 12]",
				"7: CPUs 56-63,120-127, 64 GiB, distances [32 32 32 32 12 12 12 10]",
			},
			NICs: []string{
				"0000:21:00.0 ens3f0np0 15b3:1017 mlx5_core node 0",
				"0000:81:00.0 ens1f0np0 1924:0b03 sfc node 3",
				"0000:81:00.1 ens1f1np1 1924:0b03 sfc node 3",
			},
		}},
		"Arm": {machine: Arm(), want: outline{
			Architecture: "arm64", Vendor: "ARM", Online: "0-79", Packages: 1, Cores: 80,
			NUMANodes: []string{
				"0: CPUs 0-39, 128 GiB, distances [10 11]",
				"1: CPUs 40-79, 128 GiB, distances [11 10]",
			},
			NICs: []string{
				"0000:01:00.0 enp1s0f0np0 15b3:1017 mlx5_core node 0",
				"0004:03:00.0 enP4p3s0f0np0 1924:0b03 sfc node 1",
				"0004:03:00.1 enP4p3s0f1np1 1924:0b03 sfc node 1",
			},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			top := topologyOf(t, written(t, tc.machine))
			if diff := cmp.Diff(tc.want, outlineOf(top)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if top.KernelRelease != tc.machine.KernelRelease || top.CommandLine != tc.machine.BaseCommandLine() {
				t.Errorf("kernel %s, command line %s", top.KernelRelease, top.CommandLine)
			}
			if top.MinimumFrequency != tc.machine.MinimumFrequency || top.MaximumFrequency != tc.machine.MaximumFrequency {
				t.Errorf("frequency %d-%d kHz", top.MinimumFrequency, top.MaximumFrequency)
			}
		})
	}
}

// TestTopologyIsThePlaces compares every core of every machine with the place that the builder gave it.
func TestTopologyIsThePlaces(t *testing.T) {
	for name, m := range machines() {
		t.Run(name, func(t *testing.T) {
			top := topologyOf(t, written(t, m))
			for _, p := range m.places() {
				core, ok := top.CoreOf(p.cpu)
				if !ok || core.CPUs.First() != p.core || core.CPUs.Len() != m.ThreadsPerCore {
					t.Errorf("CPU %d is in core %s, want core of CPU %d", p.cpu, core.CPUs, p.core)
				}
				if core.NUMANode != p.numaNode || core.Package != p.pkg {
					t.Errorf("CPU %d is on NUMA node %d of package %d, want %d of %d", p.cpu, core.NUMANode, core.Package, p.numaNode, p.pkg)
				}
				want := m.where(func(other place) bool { return p.l3 >= 0 && other.l3 == p.l3 })
				if got := top.L3Of(p.cpu); !got.Equal(want) {
					t.Errorf("CPU %d shares its L3 cache with %s, want %s", p.cpu, got, want)
				}
			}
		})
	}
}

func TestVirtualFunctions(t *testing.T) {
	top := topologyOf(t, written(t, machines()["EPYC with virtual functions"]))
	functions := map[string][]string{}
	for _, nic := range top.NICs {
		if nic.IsVirtualFunction() {
			functions[nic.PhysicalFunction] = append(functions[nic.PhysicalFunction], nic.PCIAddress)
		}
	}
	want := map[string][]string{
		"0000:81:00.0": {
			"0000:81:02.0", "0000:81:02.1", "0000:81:02.2", "0000:81:02.3", "0000:81:02.4",
			"0000:81:02.5", "0000:81:02.6", "0000:81:02.7", "0000:81:03.0",
		},
		"0000:81:00.1": {"0000:81:03.1", "0000:81:03.2", "0000:81:03.3", "0000:81:03.4"},
	}
	if diff := cmp.Diff(want, functions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// absentFacts are facts that these machines do not give, as patterns of their places in host.Facts.
func absentFacts() map[string]string {
	return map[string]string{
		`\.PhysicalFunction$`:                        "the NICs are physical",
		`EnergyPerformancePreference$`:               "the driver takes none",
		`Processor\.(Microcode|Family|ModelNumber)$`: "arm64 has none",
		`CPUs\.Efficiency$`:                          "the cores are alike; see TestEfficiencyCores",
		`TableMaximum$`:                              "frequencies are not below the hardware's, or the driver has no table",
		`LatencyHolders$`:                            "nobody asked",
		`Throttles$`:                                 "only processors of Intel count them",
		`UncoreDomains$`:                             "only processors of Intel have a driver for them",
		`Tasks.*\.Group$`:                            "threads of the kernel belong to nobody",
		`ManagementCPUs$`:                            "the cluster was installed without CPU partitioning",
		`PodGroups$`:                                 "no pod runs",
		`NICs\[\d+\]\.DriverVersion$`:                "modules of the kernel's own tree state no version; those of Onload do",
		`NICs\[\d+\]\.FirmwareVersion$`:              "the NICs have no RDMA device",
		`VFIO\.NoIOMMU$`:                             "the module vfio is not loaded",
		`Kubelet\.(Flags|DropInFolder|DropIns)$`:     "no process of a kubelet runs",
		`^\.Software\.`:                              "read by ReadInstallation alone",
	}
}

// TestTreesGiveEveryFact fails when the reader asks for something that the builder does not write.
func TestTreesGiveEveryFact(t *testing.T) {
	partitioned := Xeon()
	partitioned.Hostname, partitioned.WorkloadPartitioning = "partitioned", true
	for _, m := range []Machine{Xeon(), EPYC(), Arm(), partitioned} {
		t.Run(m.Hostname, func(t *testing.T) {
			m.Onload = NewOnload()
			f := facts(t, written(t, m))
			f.Settings = nil
			if f.PlatformPods.Value != m.WorkloadPartitioning || f.ManagementCPUs.Known != m.WorkloadPartitioning {
				t.Errorf("pods of the platform: the kubelet knows them: %+v, CRI-O: %+v", f.PlatformPods, f.ManagementCPUs)
			}
			var missing []string
			absent(reflect.ValueOf(*f), "", func(path, why string) {
				for pattern := range absentFacts() {
					if regexp.MustCompile(pattern).MatchString(path) {
						return
					}
				}
				missing = append(missing, path+": "+why)
			})
			if len(missing) > 0 {
				t.Errorf("%d facts are absent:\n%s", len(missing), strings.Join(missing[:min(20, len(missing))], "\n"))
			}
		})
	}
}

// absent reports the facts of a value that are not known.
func absent(v reflect.Value, path string, report func(path, why string)) {
	switch v.Kind() {
	case reflect.Struct:
		if known := v.FieldByName("Known"); known.IsValid() && !known.Bool() {
			report(path, v.FieldByName("Source").String()+" "+v.FieldByName("Reason").String())
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				absent(v.Field(i), path+"."+v.Type().Field(i).Name, report)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			absent(v.Index(i), fmt.Sprintf("%s[%d]", path, i), report)
		}
	default:
	}
}

func TestTreesGiveTheSettings(t *testing.T) {
	notOnEveryHost := []string{
		"/dev/cpu_dma_latency", "/etc/default/irqbalance", "/etc/lowlatency/irqbalance.env", "/sys/kernel/debug/kprobes/list", "/sys/firmware/acpi/platform_profile", "/sys/kernel/realtime",
		"/sys/fs/cgroup/cpuset.cpus.isolated", "/sys/devices/system/cpu/amd_pstate/status", "/sys/devices/system/cpu/cpufreq/boost",
	}
	f := facts(t, written(t, Xeon()))
	for _, path := range host.SettingPaths() {
		if fact := f.Setting(path); !fact.Known && !slices.Contains(notOnEveryHost, path) {
			t.Errorf("%s: %s", path, fact.Reason)
		}
	}
	untuned := map[string]string{
		"/sys/devices/system/cpu/smt/active":                               "1",
		"/sys/kernel/mm/transparent_hugepage/enabled":                      "always [madvise] never",
		"/sys/kernel/mm/ksm/run":                                           "0",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
		"/proc/sys/kernel/numa_balancing":                                  "1",
		"/proc/sys/kernel/nmi_watchdog":                                    "1",
		"/sys/devices/virtual/workqueue/cpumask":                           "ffffffff,ffffffff",
		"/sys/devices/system/machinecheck/machinecheck0/ignore_ce":         "0",
		"/sys/devices/system/cpu/cpuidle/current_driver":                   "intel_idle",
		"/sys/devices/system/cpu/intel_pstate/status":                      "active",
		"/sys/devices/virtual/workqueue/writeback/cpumask":                 "ffffffff,ffffffff",
		"/sys/bus/workqueue/devices/writeback/cpumask":                     "ffffffff,ffffffff",
	}
	for path, want := range untuned {
		if got := f.Setting(path); got.Value != want {
			t.Errorf("%s is %q (%s), want %q", path, got.Value, got.Reason, want)
		}
	}
}

func TestWriteRefusesMachinesThatCannotExist(t *testing.T) {
	cases := map[string]struct {
		change func(*Machine)
		want   string
	}{
		"no core":         {func(m *Machine) { m.CoresPerNUMANode = 0 }, "CoresPerNUMANode"},
		"too many CPUs":   {func(m *Machine) { m.CoresPerNUMANode = 5000 }, "more than 8192 CPUs"},
		"few distances":   {func(m *Machine) { m.Distances = m.Distances[:1] }, "1 rows of distances for 2 NUMA nodes"},
		"odd PCI address": {func(m *Machine) { m.NICs[0].PCIAddress = "3b:00" }, `"3b:00"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := Xeon()
			tc.change(&m)
			if err := m.Write(t.TempDir()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
		})
	}
}

func TestManagedInterruptsCoverTheMachine(t *testing.T) {
	for _, queues := range []int{1, 2, 3, 8, 16, 24} {
		var all cpus.Set
		total := 0
		for _, set := range EPYC().managedSpread(queues) {
			all = all.Union(set)
			total += set.Len()
			for _, cpu := range set.IDs() {
				if !set.Contains((cpu + 64) % 128) {
					t.Errorf("%d queues: siblings of CPU %d are in two groups", queues, cpu)
				}
			}
		}
		if !all.Equal(EPYC().possible()) || total != all.Len() {
			t.Errorf("%d queues cover %s with %d places", queues, all, total)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for name, m := range machines() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				written(b, m)
			}
		})
	}
}
