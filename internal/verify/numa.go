// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// numaChecks ask whether CPUs, hugepages and NICs meet on one NUMA node.
func numaChecks() []Check {
	return append([]Check{
		{
			ID: "numa.nodes", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement, Conditions: []string{v1alpha1.ConditionNUMAAligned},
			Title:  "The host has the NUMA nodes that the plan was made for, with their CPUs and memory",
			Why:    "Placement was computed for another layout: firmware options such as sub-NUMA clustering change it.",
			Reads:  []string{"/sys/devices/system/node/node*/{cpulist,meminfo}"},
			Fix:    "Restore the firmware's NUMA options and look for memory that has failed, or let the operator plan again from the new inventory.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/admin-guide/mm/numa_memory_policy.rst",
			run:    numaNodesArePlanned,
		},
		{
			ID: "memory.hugepages-numa", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement,
			Conditions: []string{v1alpha1.ConditionApplied, v1alpha1.ConditionNUMAAligned},
			Title:      "Every NUMA node holds the planned hugepages",
			Applies:    "spec.memory.hugepages is set, or spec.hugepages of a BypassNICPool with a NIC on the node",
			Why:        "A pod that finds no hugepage beside its CPUs and NIC does not start, or reads remote memory at twice the latency.",
			Reads:      []string{"/sys/devices/system/node/node*/hugepages/hugepages-*/{nr,free,surplus}_hugepages"},
			Fix:        "See the log of the lowlatency-hugepages units (journalctl -u 'lowlatency-hugepages-*') and what else takes memory of that NUMA node; after a reboot they reserve the pages before memory is fragmented.",
			Reboot:     v1alpha1.RebootRequired,
			Source:     "kernel: Documentation/admin-guide/mm/hugetlbpage.rst",
			run:        hugepagesAreReserved,
		},
		{
			ID: "memory.hugepages-unplanned", Severity: v1alpha1.SeverityMedium, Impact: ImpactNone, Conditions: []string{v1alpha1.ConditionApplied},
			Title:   "The host holds no more hugepages than planned",
			Applies: "the plan reserves hugepages",
			Why:     "Memory in hugepages is lost to all that does not ask for them: pods are evicted, and the kernel reclaims and compacts what is left.",
			Reads:   []string{"/sys/kernel/mm/hugepages/hugepages-*/{nr,surplus}_hugepages"},
			Fix:     "Find what else reserves hugepages (sysctl vm.nr_hugepages, a start script of an application, hugepages= of another MachineConfig) and remove it, or plan them in spec.memory.hugepages.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/mm/hugetlbpage.rst (nr_hugepages)",
			run:     noOtherHugepages,
		},
	}, slices.Concat(nicChecks(), poolChecks())...)
}

const forBypassNICs = "the plan names bypass NICs"

// nicChecks ask where the bypass NICs of the plan are.
func nicChecks() []Check {
	aligned := []string{v1alpha1.ConditionNUMAAligned}
	return []Check{
		{
			ID: "numa.nic-locality", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement, Conditions: aligned,
			Title:   "Every bypass NIC is on its planned NUMA node",
			Applies: forBypassNICs + ", and the host has several NUMA nodes",
			Why:     "Without it nothing can be placed near the NIC: each packet may cross the link between sockets.",
			Reads:   []string{"/sys/bus/pci/devices/*/numa_node"},
			Fix:     "Look for the firmware option that describes PCI locality, or put the NIC into another slot.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-bus-pci (numa_node; -1 is unknown)",
			run:     eachBypassNIC((*state).nicIsLocal),
		},
		{
			ID: "numa.near-cpus", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement, Conditions: aligned,
			Title:   "There are isolated CPUs near every bypass NIC",
			Applies: forBypassNICs,
			Why:     "A pod cannot get its CPUs and the NIC on one NUMA node.",
			Reads:   []string{"/sys/bus/pci/devices/*/local_cpulist"},
			Fix:     "Isolate CPUs of the NIC's NUMA node (spec.cpus), or put the NIC into a slot of another one.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-bus-pci (local_cpulist)",
			run:     eachBypassNIC((*state).nicHasCPUs),
		},
		{
			ID: "numa.virtual-functions", Severity: v1alpha1.SeverityHigh, Impact: ImpactPlacement, Conditions: aligned,
			Title:   "Virtual functions are on the NUMA node of their physical function",
			Applies: "a bypass NIC has virtual functions",
			Why:     "Device plugins place a pod by the virtual function's NUMA node.",
			Reads:   []string{"/sys/bus/pci/devices/*/numa_node"},
			Fix:     "Unbind and recreate the virtual functions; update the firmware.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/PCI/pci-iov-howto.rst",
			run:     eachBypassNIC((*state).virtualFunctionsAreLocal),
		},
		{
			ID: "numa.nic-interrupts", Severity: v1alpha1.SeverityHigh, Impact: ImpactPlacement, Conditions: aligned,
			Title:   "Interrupts of bypass NICs are handled on the NIC's NUMA node",
			Applies: forBypassNICs + ", spec.interrupts.placement is Housekeeping, the NIC's NUMA node has housekeeping CPUs, and the NIC is in no BypassNICPool",
			Why:     "The handler reads descriptors that the NIC wrote into the cache of its own NUMA node.",
			Reads:   []string{"/sys/bus/pci/devices/*/msi_irqs", "/proc/irq/*/effective_affinity_list"},
			Fix:     "Write the housekeeping CPUs of that NUMA node to /proc/irq/N/smp_affinity_list.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/core-api/irq/irq-affinity.rst",
			run: where(func(s *state) bool { return s.plan.Interrupts.Placement != v1alpha1.InterruptsPerPod },
				eachBypassNIC((*state).nicInterruptsAreLocal)),
		},
		{
			ID: "nic.pcie-link", Severity: v1alpha1.SeverityHigh, Impact: ImpactNone, Conditions: aligned,
			Title:   "The PCIe link of every bypass NIC runs at the full speed and width that both of its ends can do",
			Applies: forBypassNICs,
			Why:     "A link that trained down adds latency to every packet and drops them under load.",
			Reads:   []string{"/sys/bus/pci/devices/*/{current,max}_link_{speed,width}", "/sys/bus/pci/devices/*/../max_link_{speed,width}"},
			Fix:     "Reseat the card, look for dirt and for errors of the link in the kernel's log (AER), check the firmware's link options.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-bus-pci (current_link_speed, max_link_speed)",
			run:     eachBypassNIC((*state).linkIsFull),
		},
	}
}

// multipleNUMANodes reports whether the host has several NUMA nodes with CPUs.
func (s *state) multipleNUMANodes() host.Fact[bool] {
	withCPUs := 0
	for _, node := range s.facts.NUMANodes {
		if !node.CPUs.Known {
			return host.Absent[bool](node.CPUs.Source, node.CPUs.Reason)
		}
		if !node.CPUs.Value.IsEmpty() {
			withCPUs++
		}
	}
	if withCPUs == 0 && s.plan.Verification.MultipleNUMANodes {
		return host.Absent[bool]("/sys/devices/system/node", "no NUMA nodes are listed")
	}
	return host.Known(withCPUs > 1, "/sys/devices/system/node")
}

func numaNodesArePlanned(s *state) verdict {
	describe := map[bool]string{true: "several NUMA nodes with CPUs", false: "one NUMA node with CPUs"}
	want := s.plan.Verification.MultipleNUMANodes
	return judge(s.multipleNUMANodes(), describe[want], func(found bool) verdict {
		if found == want {
			return s.numaLayoutIsPlanned(describe[found])
		}
		return failed(fmt.Sprintf("the host has %s, the plan was made for %s", describe[found], describe[want]), describe[found], describe[want])
	})
}

// nic is a bypass NIC of the plan as the host has it.
type nic struct {
	*host.NIC
	planned plan.NICPlan
	// name is "NIC ens2f0 (0000:3b:00.0)".
	name string
}

// eachBypassNIC judges every bypass NIC of the plan and names those that the host does not have.
func eachBypassNIC(rule func(*state, nic) verdict) func(*state) verdict {
	return func(s *state) verdict {
		verdicts := make([]verdict, 0, len(s.plan.BypassNICs))
		for _, planned := range s.plan.BypassNICs {
			found, ok := s.nic(planned.PCIAddress)
			if !ok {
				verdicts = append(verdicts, unknown("/sys/bus/pci/devices/"+planned.PCIAddress, "no such network device", "present").
					about(finding.OfNICs(planned.PCIAddress)))
				continue
			}
			verdicts = append(verdicts, rule(s, nic{NIC: found, planned: planned, name: nicName(found)}).about(finding.OfNICs(planned.PCIAddress)))
		}
		return worst(verdicts...)
	}
}

func (s *state) nic(address string) (*host.NIC, bool) {
	for i := range s.facts.NICs {
		if s.facts.NICs[i].PCIAddress == address {
			return &s.facts.NICs[i], true
		}
	}
	return nil, false
}

func nicName(n *host.NIC) string {
	if name, ok := n.Name.Get(); ok {
		return fmt.Sprintf("NIC %s (%s)", name, n.PCIAddress)
	}
	return "NIC " + n.PCIAddress
}

// nicIsLocal judges where the NIC is. On a host with one NUMA node, everything is local.
func (s *state) nicIsLocal(n nic) verdict {
	if multiple := s.multipleNUMANodes(); multiple.Known && !multiple.Value {
		return notApplicable()
	}
	return judge(n.NUMANode, "a known NUMA node", func(node int) verdict {
		observed := fmt.Sprintf("%s: NUMA node %d", n.PCIAddress, node)
		if n.planned.NUMANode != nil && *n.planned.NUMANode != node {
			return failed(fmt.Sprintf("%s is on NUMA node %d, planned is %d", n.name, node, *n.planned.NUMANode), observed,
				fmt.Sprintf("%s: NUMA node %d", n.PCIAddress, *n.planned.NUMANode)).about(finding.OfNUMANodes(node))
		}
		return passed(observed)
	})
}

// nicHasCPUs looks for isolated CPUs beside the NIC. Where the firmware does not place the NIC, the
// kernel calls every CPU local, which says nothing.
func (s *state) nicHasCPUs(n nic) verdict {
	expected := "isolated CPUs beside the NIC"
	if multiple := s.multipleNUMANodes(); !multiple.Known || multiple.Value {
		if !n.NUMANode.Known {
			return unknown(n.NUMANode.Source, n.NUMANode.Reason, expected)
		}
	}
	return judge(n.LocalCPUs, expected, func(local cpus.Set) verdict {
		near := local.Intersection(s.plan.CPUs.Isolated)
		if near.IsEmpty() {
			return failed(fmt.Sprintf("no isolated CPU is near %s, whose local CPUs are %s", n.name, local), local.String(), expected)
		}
		return passed(fmt.Sprintf("%s: isolated %s", n.PCIAddress, near.Name()))
	})
}

func (s *state) virtualFunctionsAreLocal(n nic) verdict {
	verdicts := make([]verdict, 0, len(n.VirtualFunctions))
	for _, address := range n.VirtualFunctions {
		function, ok := s.nic(address)
		if !ok {
			continue
		}
		verdicts = append(verdicts, judge(n.NUMANode, "", func(want int) verdict {
			expected := fmt.Sprintf("NUMA node %d", want)
			return judge(function.NUMANode, expected, func(found int) verdict {
				if found == want {
					return passed(expected)
				}
				return failed(fmt.Sprintf("virtual function %s is on NUMA node %d, its %s on %d", address, found, n.name, want),
					fmt.Sprintf("NUMA node %d", found), expected).about(finding.OfNICs(address), finding.OfNUMANodes(found))
			})
		}))
	}
	return worst(verdicts...)
}

// nicInterruptsAreLocal judges nearness only; that interrupts stay off isolated CPUs is a check of its
// own, and so is what a BypassNICPool says about its NICs.
func (s *state) nicInterruptsAreLocal(n nic) verdict {
	local, ok := n.LocalCPUs.Get()
	near := local.Intersection(s.plan.CPUs.Housekeeping)
	if !ok || near.IsEmpty() || s.isInPool(n.PCIAddress) {
		return notApplicable()
	}
	verdicts := make([]verdict, 0, len(n.Interrupts))
	for i := range s.facts.Interrupts.Routes {
		route := &s.facts.Interrupts.Routes[i]
		if !slices.Contains(n.Interrupts, route.Number) {
			continue
		}
		verdicts = append(verdicts, judge(route.EffectiveAffinity, near.String(), func(effective cpus.Set) verdict {
			if remote := effective.Difference(local).Difference(s.plan.CPUs.Isolated); !remote.IsEmpty() {
				return failed(fmt.Sprintf("%s of %s is delivered to remote %s; wanted %s",
					interruptName(route.Number, route.Actions), n.name, remote.Name(), near), effective.String(), near.String()).
					about(finding.OfCPUs(remote), s.interrupt(route.Number, route.Actions))
			}
			return passed(near.String())
		}))
	}
	return worst(verdicts...)
}
