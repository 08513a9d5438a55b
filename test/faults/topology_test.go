// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// device is the folder of a NIC's PCI function.
func device(nic string) string { return "/sys/class/net/" + nic + "/device/" }

func faultsOfTopology() []fault {
	return []fault{
		{
			name: "an isolated CPU is offline", on: []string{xeonExplicit, epycExplicit},
			harm: func(n *node) { n.unplug(n.isolated()) },
			want: "cpu.online", says: []string{"CPU {cpu}", "offline"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "a housekeeping CPU is offline", on: []string{xeonExplicit, epycExplicit},
			harm: func(n *node) { n.unplug(n.plan.CPUs.Housekeeping.Last()) },
			want: "cpu.partition", says: []string{"housekeeping", "not online"}, makes: []string{v1alpha1.ConditionDeJittered},
		},
		{
			name: "siblings are numbered otherwise and share cores over the partition", on: []string{xeonExplicit},
			harm: func(n *node) {
				for pair, ids := range map[string][]int{"0-1": {0, 1}, "4-5": {4, 5}} {
					for _, id := range ids {
						n.put(cpu(id, "topology/thread_siblings_list"), pair+"\n")
						n.put(cpu(id, "topology/core_id"), fmt.Sprintln(id/4))
					}
				}
			},
			want: "cpu.siblings", says: []string{"its core is shared with"},
		},
		{
			name: "caches of level 3 are shared over the partition", on: []string{epycExplicit},
			harm: func(n *node) {
				for _, id := range []int{0, 1, 2, 3, 16, 17, 18, 19} {
					n.put(cpu(id, "cache/index3/shared_cpu_list"), "0-3,16-19\n")
				}
				// The node has another cache besides, else sharing cannot be avoided.
				for _, id := range []int{4, 5} {
					n.put(cpu(id, "cache/index3/shared_cpu_list"), "4-5,20-21\n")
				}
				n.put("/sys/devices/system/node/node0/cpulist", "0-7,16-23\n")
				n.put("/sys/devices/system/node/node1/cpulist", "\n")
			},
			want: "cpu.cache-domains", says: []string{"a third-level cache with housekeeping CPU"},
			agent: "of a NUMA node with one partition's caches the new plan allows what it must",
		},
		{
			name: "the firmware shows one NUMA node", on: []string{xeonExplicit},
			harm: func(n *node) {
				n.remove("/sys/devices/system/node/node1")
				n.put("/sys/devices/system/node/node0/cpulist", "0-7\n")
			},
			want: "numa.nodes", says: []string{"NUMA node"}, anew: "memory.hugepages-numa",
		},
		{
			name: "a bypass NIC is on another NUMA node", on: []string{xeonExplicit},
			harm: func(n *node) { n.put(device(n.bypassNIC())+"numa_node", "0\n") },
			want: "numa.nic-locality", says: []string{"NIC {nic}", "is on NUMA node 0, planned is 1"}, anew: "memory.hugepages-numa",
		},
		{
			name: "the firmware no longer says where a bypass NIC is", on: []string{xeonExplicit, epycExplicit},
			harm: func(n *node) {
				for _, nic := range n.plan.BypassNICs {
					n.put("/sys/bus/pci/devices/"+nic.PCIAddress+"/numa_node", "-1\n")
				}
			},
			want: "numa.nic-locality", unknown: "the firmware reports -1",
		},
	}
}

// functions are the virtual functions of the first bypass NIC.
func (n *node) functions() []string {
	n.t.Helper()
	addresses, err := hosttree.VirtualFunctions(n.host.Dir, n.plan.BypassNICs[0].PCIAddress)
	n.must(err)
	return addresses
}

func faultsOfFunctions() []fault {
	return []fault{
		{
			name: "a NIC of a pool has lost its virtual functions", on: []string{xeonFunctions},
			harm: func(n *node) { n.must(hosttree.CreateVirtualFunctions(n.host.Dir, n.plan.BypassNICs[0].PCIAddress, 0)) },
			want: "nic.functions", says: []string{"NIC {nic}", "has 0 virtual functions, BypassNICPool dpdk wants 2"},
		},
		{
			name: "somebody made more virtual functions", on: []string{xeonFunctions},
			harm: func(n *node) { n.must(hosttree.CreateVirtualFunctions(n.host.Dir, n.plan.BypassNICs[0].PCIAddress, 5)) },
			want: "nic.functions", says: []string{"has 5 virtual functions, BypassNICPool dpdk wants 2"},
		},
		{
			name: "a virtual function has the driver of the kernel", on: []string{xeonFunctions},
			harm: func(n *node) { n.must(hosttree.BindDriver(n.host.Dir, n.functions()[1], "sfc")) },
			want: "nic.functions", says: []string{"virtual function 0000:af:", "of NIC {nic}", "is bound to sfc, planned is vfio-pci"},
		},
		{
			name: "the NIC that a program is to own has its own driver again", on: []string{epycVFIO},
			harm: func(n *node) {
				n.must(hosttree.BindDriver(n.host.Dir, n.plan.BypassNICs[0].PCIAddress, "sfc"))
			},
			want: "nic.functions", says: []string{"is bound to sfc, planned is vfio-pci"},
		},
	}
}

func faultsOfNICs() []fault {
	return []fault{
		{
			name: "no isolated CPU is near a bypass NIC", on: []string{xeonExplicit},
			harm: func(n *node) { n.put(device(n.bypassNIC())+"local_cpulist", n.plan.CPUs.Housekeeping.String()+"\n") },
			want: "numa.near-cpus", says: []string{"NIC {nic}"},
		},
		{
			name: "virtual functions are on another NUMA node", on: []string{xeon},
			harm: func(n *node) {
				n.must(hosttree.CreateVirtualFunctions(n.host.Dir, n.plan.BypassNICs[0].PCIAddress, 2))
				for _, file := range n.files("/sys/bus/pci/devices/" + n.plan.BypassNICs[0].PCIAddress + "/virtfn1/numa_node") {
					n.put(file, "0\n")
				}
			},
			want: "numa.virtual-functions", says: []string{"is on NUMA node 0"},
		},
		{
			name: "the interrupts of a bypass NIC are handled on the other NUMA node", on: []string{xeon, arm},
			harm: func(n *node) { n.moveIRQ(n.irq(n.bypassNIC()), n.housekeeping()) },
			want: "numa.nic-interrupts", says: []string{"NIC {nic}", "is delivered to remote CPU"},
		},
		{
			name: "a bypass NIC is gone", on: x86(),
			harm: func(n *node) {
				address := n.plan.BypassNICs[0].PCIAddress
				n.remove("/sys/class/net/"+n.bypassNIC(), "/sys/bus/pci/devices/"+address)
			},
			want: "numa.nic-locality", unknown: "no such network device", agent: "a host that is planned anew has one NIC less",
		},
		{
			name: "the PCIe link of a bypass NIC is slower than both ends allow",
			harm: func(n *node) { n.must(hosttree.TrainLink(n.host.Dir, n.bypassNIC(), "2.5 GT/s PCIe", 8)) },
			want: "nic.pcie-link", says: []string{"NIC {nic}", "2.5 GT/s"},
		},
		{
			name: "a pool's NIC is served by an isolated CPU", on: []string{xeonPool},
			harm: func(n *node) { n.moveIRQ(n.irq(n.bypassNIC()), n.isolated()) },
			want: "nic.interrupts", says: []string{"NIC {nic}", "BypassNICPool onload wants"},
		},
		{
			name: "a pool's NIC is served on the other NUMA node", on: []string{xeonPool},
			harm: func(n *node) { n.moveIRQ(n.irq(n.bypassNIC()), n.housekeeping()) },
			want: "nic.interrupts", says: []string{"BypassNICPool onload wants"},
		},
		{
			name: "a NIC has more queues than there are housekeeping CPUs", on: []string{xeonQueues},
			harm: func(n *node) {
				for queue := 2; queue < 12; queue++ {
					n.put(fmt.Sprintf("/sys/class/net/%s/queues/rx-%d/rps_cpus", n.bypassNIC(), queue), "00\n")
				}
			},
			want: "nic.queues", says: []string{"NIC {nic}", "12 receive queues"},
		},
		{
			name: "an isolated CPU is offline, and the partition is derived", on: []string{xeon, arm},
			harm: func(n *node) { n.unplug(n.plan.CPUs.Isolated.Last()) },
			want: "cpu.online", says: []string{"offline"},
		},
	}
}

func variationsOfTopology() []variation {
	return []variation{
		{name: "the kernel names packages by another number", change: func(n *node) {
			for _, file := range n.files("/sys/devices/system/cpu/cpu*/topology/physical_package_id") {
				n.put(file, map[string]string{"0": "0", "1": "3"}[n.text(file)[:1]]+"\n")
			}
		}, on: []string{xeon, epyc}},
		{name: "the kernel prints other spellings of lists", change: func(n *node) {
			n.put("/sys/devices/system/cpu/isolated", strings.Join(numbers(n.plan.CPUs.Isolated.IDs()), ",")+"\n")
		}},
		{name: "virtual functions were created on the NIC's NUMA node", on: []string{xeon, epyc}, change: func(n *node) {
			n.must(hosttree.CreateVirtualFunctions(n.host.Dir, n.plan.BypassNICs[0].PCIAddress, 2))
		}},
		{name: "both cables of the bypass NIC are out", change: func(n *node) {
			for _, nic := range n.hardware.NICs[len(n.hardware.NICs)-2:] {
				n.must(hosttree.SetCarrier(n.host.Dir, nic.Name, false))
			}
		}},
		{name: "a NIC of the host trained its link down", change: func(n *node) {
			n.must(hosttree.TrainLink(n.host.Dir, n.otherNIC(), "2.5 GT/s PCIe", 1))
		}},
		{name: "a NIC has fewer queues than planned", on: []string{xeonQueues}, change: func(n *node) {
			n.remove("/sys/class/net/" + n.bypassNIC() + "/queues/rx-1")
		}},
		{name: "an interrupt of a pool's NIC moves within its CPUs", on: []string{xeonPool}, change: func(n *node) {
			n.moveIRQ(n.irq(n.bypassNIC()), n.plan.BypassPools[0].NICs[0].InterruptCPUs.Last())
		}},
		{name: "the caches of level 1 and 2 are shown otherwise", change: func(n *node) {
			n.remove("/sys/devices/system/cpu/cpu*/cache/index2")
		}},
	}
}
