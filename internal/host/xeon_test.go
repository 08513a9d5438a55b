// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// xeon is a host with two packages of cores with two threads each, CPU numbers alternating between the
// packages, a NUMA node for each package, two NICs, and a number of interrupts.
type xeon struct{ cpus, irqs int }

func (x xeon) files() files {
	tree := files{
		"proc/sys/kernel/hostname":        "worker-1\n",
		"proc/sys/kernel/arch":            "x86_64\n",
		"proc/sys/kernel/osrelease":       "5.14.0-570.el9.x86_64\n",
		"proc/version":                    "Linux version 5.14.0-570.el9.x86_64 (builder) #1 SMP PREEMPT_DYNAMIC\n",
		"proc/cmdline":                    "BOOT_IMAGE=/vmlinuz quiet isolcpus=managed_irq,domain,2-7\n",
		"proc/meminfo":                    "MemTotal:       196633688 kB\nMemFree:        180000000 kB\n",
		"sys/devices/system/cpu/online":   x.online(),
		"sys/devices/system/cpu/offline":  "\n",
		"sys/devices/system/cpu/present":  x.online(),
		"sys/devices/system/cpu/isolated": "2-7\n",
		"proc/irq/default_smp_affinity":   "0,00000000,00000003\n",
	}
	x.addProcessors(tree)
	x.addNodes(tree)
	x.addInterrupts(tree)
	for i, address := range []string{"0000:3b:00.0", "0000:86:00.0"} {
		addNIC(tree, address, fmt.Sprintf("ens%df0", i+1), i, x.onPackage(i))
	}
	return tree
}

func (x xeon) online() string { return fmt.Sprintf("0-%d\n", x.cpus-1) }

// onPackage are the CPUs of a package in list format.
func (x xeon) onPackage(pkg int) string {
	var members []int
	for id := pkg; id < x.cpus; id += 2 {
		members = append(members, id)
	}
	return cpus.Of(members...).String() + "\n"
}

func (x xeon) addProcessors(tree files) {
	var cpuinfo strings.Builder
	for id := range x.cpus {
		fmt.Fprintf(&cpuinfo, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n"+
			"microcode\t: 0x5003707\ncpu MHz\t\t: 2100.000\nflags\t\t: fpu lm constant_tsc nonstop_tsc\n\n", id)
		x.addCPU(tree, id)
	}
	tree["proc/cpuinfo"] = cpuinfo.String()
}

func (x xeon) addCPU(tree files, id int) {
	folder := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", id)
	cores := x.cpus / 2
	siblings := cpus.Of(id%cores, id%cores+cores).String() + "\n"
	for name, content := range map[string]string{
		"topology/physical_package_id":   fmt.Sprintln(id % 2),
		"topology/die_id":                "0\n",
		"topology/cluster_id":            "65535\n",
		"topology/core_id":               fmt.Sprintln(id % cores / 2),
		"topology/core_cpus_list":        siblings,
		"topology/package_cpus_list":     x.onPackage(id % 2),
		"power/pm_qos_resume_latency_us": "0\n",
	} {
		tree[folder+name] = content
	}
	for index, cache := range []struct{ level, kind, size, shared string }{
		{"1", "Data", "32K", siblings}, {"1", "Instruction", "32K", siblings},
		{"2", "Unified", "1024K", siblings}, {"3", "Unified", "28160K", x.onPackage(id % 2)},
	} {
		file := fmt.Sprintf("%scache/index%d/", folder, index)
		tree[file+"level"], tree[file+"type"] = cache.level+"\n", cache.kind+"\n"
		tree[file+"size"], tree[file+"shared_cpu_list"] = cache.size+"\n", cache.shared
	}
	for index, name := range []string{"POLL", "C1", "C1E", "C6"} {
		file := fmt.Sprintf("%scpuidle/state%d/", folder, index)
		tree[file+"name"], tree[file+"latency"], tree[file+"disable"] = name+"\n", fmt.Sprintln(index*10), "0\n"
		tree[file+"usage"], tree[file+"time"] = "12345\n", "678901\n"
	}
	policy := fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d/", id)
	tree[folder+"cpufreq"] = linkTo + fmt.Sprintf("../cpufreq/policy%d", id)
	for name, content := range map[string]string{
		"scaling_driver": "intel_pstate\n", "scaling_governor": "performance\n",
		"cpuinfo_min_freq": "800000\n", "cpuinfo_max_freq": "3900000\n",
		"scaling_min_freq": "800000\n", "scaling_max_freq": "3900000\n", "energy_performance_preference": "performance\n",
	} {
		tree[policy+name] = content
	}
}

func (x xeon) addNodes(tree files) {
	for node := range 2 {
		folder := fmt.Sprintf("sys/devices/system/node/node%d/", node)
		tree[folder+"cpulist"] = x.onPackage(node)
		tree[folder+"distance"] = []string{"10 21\n", "21 10\n"}[node]
		tree[folder+"meminfo"] = fmt.Sprintf("Node %d MemTotal:       98316844 kB\nNode %d MemFree:        90000000 kB\n", node, node)
		for _, size := range []string{"1048576", "2048"} {
			for _, name := range []string{"nr_hugepages", "free_hugepages", "surplus_hugepages"} {
				tree[folder+"hugepages/hugepages-"+size+"kB/"+name] = "0\n"
				tree["sys/kernel/mm/hugepages/hugepages-"+size+"kB/"+name] = "0\n"
			}
		}
	}
}

func (x xeon) addInterrupts(tree files) {
	var interrupts, softirqs strings.Builder
	header := "  " + strings.Join(numbered(x.cpus, "CPU%-7d"), " ")
	counts := strings.Repeat("          7", x.cpus)
	interrupts.WriteString(header + "\n")
	for irq := range x.irqs {
		fmt.Fprintf(&interrupts, "%4d:%s  IR-PCI-MSIX-0000:3b:00.0  %3d-edge      ens1f0-TxRx-%d\n", irq, counts, irq, irq)
		folder := fmt.Sprintf("proc/irq/%d/", irq)
		tree[folder+"smp_affinity_list"], tree[folder+"effective_affinity_list"], tree[folder+"node"] = "0-1\n", "0\n", "0\n"
	}
	interrupts.WriteString("LOC:" + counts + "   Local timer interrupts\nERR:          0\n")
	softirqs.WriteString("   " + header + "\n  TIMER:" + counts + "\n")
	tree["proc/interrupts"], tree["proc/softirqs"] = interrupts.String(), softirqs.String()
}

// addNIC adds a NIC with an interface.
func addNIC(tree files, address, name string, node int, local string) {
	device := "devices/pci0000:00/" + address
	for file, content := range map[string]string{
		"class": "0x020000\n", "vendor": "0x8086\n", "device": "0x1572\n", "numa_node": fmt.Sprintln(node),
		"local_cpulist": local, "sriov_totalvfs": "64\n", "msi_irqs/24": "msix\n", "msi_irqs/7": "msix\n",
		"current_link_speed": "8.0 GT/s PCIe\n", "max_link_speed": "16.0 GT/s PCIe\n",
		"current_link_width": "8\n", "max_link_width": "16\n",
		"driver":                    linkTo + "../../../bus/pci/drivers/i40e",
		"net/" + name + "/device":   linkTo + "../../../" + address,
		"net/" + name + "/carrier":  "1\n",
		"net/" + name + "/speed":    "10000\n",
		"net/" + name + "/dev_port": "0\n",
	} {
		tree["sys/"+device+"/"+file] = content
	}
	tree["sys/bus/pci/devices/"+address] = linkTo + "../../../" + device
	tree["sys/class/net/"+name] = linkTo + "../../" + device + "/net/" + name
}

// TestReadXeon reads a whole host and compares samples of every section.
func TestReadXeon(t *testing.T) {
	x := xeon{cpus: 8, irqs: 20}
	facts := readAll(t, x.files())
	expect(t, "the name", facts.Name, "worker-1")
	expect(t, "the architecture", facts.Architecture, "amd64")
	expect(t, "the release", facts.Kernel.Release, "5.14.0-570.el9.x86_64")
	expect(t, "real time", facts.Kernel.RealTime, "false")
	expect(t, "the command line", facts.Kernel.CommandLine, "BOOT_IMAGE=/vmlinuz quiet isolcpus=managed_irq,domain,2-7")
	expect(t, "the page size", facts.Kernel.PageSizeBytes, "4096")
	expect(t, "the memory", facts.MemoryTotalBytes, "201352896512")
	expect(t, "the isolated CPUs", facts.CPUs.Isolated, "2-7")
	if len(facts.CPUs.List) != x.cpus || len(facts.NUMANodes) != 2 || len(facts.Hugepages) != 2 || len(facts.NICs) != 2 {
		t.Fatalf("read %d CPUs, %d NUMA nodes, %d pools, %d NICs",
			len(facts.CPUs.List), len(facts.NUMANodes), len(facts.Hugepages), len(facts.NICs))
	}
	checkXeonCPU(t, facts.CPUs.List[5])
	checkXeonNode(t, facts.NUMANodes[1])
	if routes := facts.Interrupts.Routes; len(routes) != x.irqs || routes[10].Number != 10 {
		t.Errorf("read %d routes", len(routes))
	}
}

func checkXeonCPU(t *testing.T, cpu CPU) {
	t.Helper()
	expect(t, "online", cpu.Online, "true")
	expect(t, "the package", cpu.Package, "1")
	expect(t, "the die", cpu.Die, "0")
	expect(t, "the core", cpu.Core, "0")
	expect(t, "the siblings", cpu.Siblings, "1,5")
	expect(t, "the CPUs of the package", cpu.PackageCPUs, "1,3,5,7")
	expect(t, "the driver", cpu.Frequency.Driver, "intel_pstate")
	expect(t, "the governor", cpu.Frequency.Governor, "performance")
	expect(t, "the least frequency", cpu.Frequency.HardwareMinimum, "800000")
	expect(t, "the highest frequency", cpu.Frequency.ScalingMaximum, "3900000")
	expect(t, "the preference", cpu.Frequency.EnergyPerformancePreference, "performance")
	if len(cpu.Caches) != 4 || len(cpu.IdleStates) != 4 {
		t.Fatalf("read %d caches and %d idle states", len(cpu.Caches), len(cpu.IdleStates))
	}
	expect(t, "the level", cpu.Caches[3].Level, "3")
	expect(t, "the type", cpu.Caches[1].Type, "Instruction")
	expect(t, "the sharing", cpu.Caches[2].SharedCPUs, "1,5")
	expect(t, "the idle state", cpu.IdleStates[3].Name, "C6")
	expect(t, "its latency", cpu.IdleStates[3].LatencyMicros, "30")
	expect(t, "its switch", cpu.IdleStates[3].Disabled, "false")
	expect(t, "its usage", cpu.IdleStates[3].Usage, "12345")
}

func checkXeonNode(t *testing.T, node NUMANode) {
	t.Helper()
	expect(t, "the distances", node.Distances, "[21 10]")
	expect(t, "the memory", node.MemoryTotalBytes, "100676448256")
	sizes := make([]int64, 0, len(node.Hugepages))
	for _, pool := range node.Hugepages {
		sizes = append(sizes, pool.SizeKibibytes)
		expect(t, "the pool", pool.Total, "0")
	}
	if diff := cmp.Diff([]int64{2048, 1048576}, sizes); diff != "" {
		t.Errorf("sizes of hugepages (-want +got):\n%s", diff)
	}
}

// BenchmarkRead reads a host with 80 CPUs and 500 interrupts, some 7,000 files.
func BenchmarkRead(b *testing.B) {
	tree := xeon{cpus: 80, irqs: 500}.files()
	for name, path := range map[string]string{
		"directory": tree.write(b),
		"archive":   writeFile(b, zip(b, tree.pack(b, ""))),
	} {
		b.Run(name, func(b *testing.B) {
			host := open(b, path)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := host.Read(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(tree)), "files")
		})
	}
}

// BenchmarkOpen unpacks a snapshot of the same host.
func BenchmarkOpen(b *testing.B) {
	path := writeFile(b, zip(b, xeon{cpus: 80, irqs: 500}.files().pack(b, "")))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(path); err != nil {
			b.Fatal(err)
		}
	}
}
