// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// interrupt is one numbered line of /proc/interrupts.
type interrupt struct {
	number int
	// chip is the controller with the hardware number and trigger, as /proc/interrupts prints them.
	chip string
	// handler is the name of the action.
	handler string
	// numaNode of the device; -1 when there is none.
	numaNode int
	// fixed are the CPUs of an interrupt that the kernel itself has placed.
	fixed cpus.Set
	// managed are the CPUs of a managed interrupt (irq_create_affinity_masks): user space cannot move it.
	managed cpus.Set
	// perCPU interrupts have a counter on every CPU and are routed nowhere (arch_timer of arm64).
	perCPU bool
	// device is the PCI address of the device; "" when there is none.
	device string
	// queue tells an interrupt of a data queue from one for events.
	queue bool
	// perSecond is how often it comes in the simulation.
	perSecond float64
}

// firstMSI is the first number after those of the interrupt controller on x86.
const firstMSI = 24

// interrupts lists the machine's interrupts in ascending order of their numbers.
func (m Machine) interrupts() []interrupt {
	list := m.platformInterrupts()
	add := func(i interrupt) {
		i.number = max(firstMSI, list[len(list)-1].number+1)
		list = append(list, i)
	}
	for _, disk := range m.Disks {
		add(interrupt{
			chip: m.msiChip(disk.PCIAddress, 0), handler: disk.Name + "q0", numaNode: disk.NUMANode, device: disk.PCIAddress,
		})
		for queue, spread := range m.managedSpread(disk.Queues) {
			add(interrupt{
				chip: m.msiChip(disk.PCIAddress, queue+1), handler: fmt.Sprintf("%sq%d", disk.Name, queue+1),
				numaNode: disk.NUMANode, managed: spread, device: disk.PCIAddress, queue: true, perSecond: 3,
			})
		}
	}
	for _, nic := range m.NICs {
		for vector, name := range vectorNames(nic) {
			add(interrupt{
				chip: m.msiChip(nic.PCIAddress, vector), handler: name, numaNode: nic.NUMANode, device: nic.PCIAddress,
				queue: vector != eventVector(nic), perSecond: 20,
			})
		}
	}
	return list
}

// platformInterrupts are those that every machine of the architecture has.
func (m Machine) platformInterrupts() []interrupt {
	if m.Architecture == "arm64" {
		return []interrupt{
			{number: 11, chip: "GICv3  30 Level", handler: "arch_timer", numaNode: -1, perCPU: true},
			{number: 15, chip: "GICv3  23 Level", handler: "arm-pmu", numaNode: -1, perCPU: true},
			{number: 18, chip: "GICv3  88 Level", handler: "ACPI:Ged", numaNode: -1},
		}
	}
	return []interrupt{
		{number: 0, chip: "IO-APIC   2-edge", handler: "timer", numaNode: -1, fixed: cpus.Of(0)},
		{number: 8, chip: "IO-APIC   8-edge", handler: "rtc0", numaNode: -1},
		{number: 9, chip: "IO-APIC   9-fasteoi", handler: "acpi", numaNode: -1},
	}
}

// msiChip is how the vector of a device is printed: MSI of a PCI device, or an event of the ITS.
func (m Machine) msiChip(address string, vector int) string {
	bus, err := strconv.ParseUint(address[5:7], 16, 32)
	if err != nil {
		bus = 0
	}
	hardware := bus<<20 + uint64(vector)
	if m.Architecture == "arm64" {
		return fmt.Sprintf("ITS-MSI %d Edge", hardware)
	}
	return fmt.Sprintf("PCI-MSI %d-edge", hardware)
}

// vectorNames are the handlers of a NIC in the order of its vectors, as the drivers name them
// (efx_set_channel_names, i40e_vsi_request_irq_msix, mlx5_irq_request).
func vectorNames(nic NIC) []string {
	var names []string
	switch nic.Driver {
	case "i40e":
		names = append(names, fmt.Sprintf("i40e-%s:misc", nic.PCIAddress))
		for queue := range nic.Queues {
			names = append(names, fmt.Sprintf("i40e-%s-TxRx-%d", nic.Name, queue))
		}
	case "mlx5_core":
		names = append(names, "mlx5_async0@pci:"+nic.PCIAddress)
		for queue := range nic.Queues {
			names = append(names, fmt.Sprintf("mlx5_comp%d@pci:%s", queue, nic.PCIAddress))
		}
	default:
		for queue := range nic.Queues {
			names = append(names, fmt.Sprintf("%s-%d", nic.Name, queue))
		}
	}
	return names
}

// eventVector is the vector that serves no queue; -1 for drivers without.
func eventVector(nic NIC) int {
	if nic.Driver == "i40e" || nic.Driver == "mlx5_core" {
		return 0
	}
	return -1
}

// managedSpread follows group_cpus_evenly of lib/group_cpus.c: fewer queues than NUMA nodes get several
// whole nodes each; else each node's cores, siblings together, are divided among its share of the queues.
func (m Machine) managedSpread(queues int) []cpus.Set {
	spread := make([]cpus.Set, queues)
	nodes := m.numaNodes()
	for node := range nodes {
		if queues <= nodes {
			spread[node%queues] = spread[node%queues].Union(m.onNode(node))
			continue
		}
		first, share := node*queues/nodes, (node+1)*queues/nodes-node*queues/nodes
		for index := range share {
			spread[first+index] = m.where(func(p place) bool {
				inNode := p.coreID % m.CoresPerNUMANode
				return p.numaNode == node && inNode*share/m.CoresPerNUMANode == index
			})
		}
	}
	return spread
}

// route is where an interrupt may be and is delivered.
type route struct{ allowed, effective cpus.Set }

// routes follows irq_setup_affinity and irq_do_set_affinity of kernel/irq/manage.c: an interrupt may go
// where the default affinity allows, on the NUMA node of its device if that leaves a CPU. A managed one
// may go to its own CPUs, of which those that isolcpus=managed_irq names are avoided if others are
// online. Of the allowed CPUs, the one that has the fewest vectors gets it (matrix_find_best_cpu of
// kernel/irq/matrix.c, cpumask_pick_least_loaded of drivers/irqchip/irq-gic-v3-its.c).
func (m Machine) routes(online, defaultAffinity, managedAway cpus.Set) map[int]route {
	routes, vectors := map[int]route{}, map[int]int{}
	nodes := map[int]cpus.Set{-1: online}
	for node := range m.numaNodes() {
		nodes[node] = m.onNode(node)
	}
	for _, irq := range m.interrupts() {
		allowed, candidates := defaultAffinity, cpus.Set{}
		switch {
		case irq.perCPU:
		case !irq.fixed.IsEmpty():
			allowed, candidates = irq.fixed, irq.fixed
		case !irq.managed.IsEmpty():
			allowed = irq.managed
			candidates = firstNonEmpty(allowed.Difference(managedAway).Intersection(online), allowed.Intersection(online))
		default:
			allowed = firstNonEmpty(defaultAffinity.Intersection(online), online)
			allowed = firstNonEmpty(allowed.Intersection(nodes[irq.numaNode]), allowed)
			candidates = allowed
		}
		routes[irq.number] = route{allowed, leastLoaded(candidates, vectors)}
	}
	return routes
}

func firstNonEmpty(sets ...cpus.Set) cpus.Set {
	at := slices.IndexFunc(sets, func(s cpus.Set) bool { return !s.IsEmpty() })
	return sets[max(at, 0)]
}

// leastLoaded takes the CPU with the fewest vectors, the lowest of several, and counts one more on it.
func leastLoaded(candidates cpus.Set, vectors map[int]int) cpus.Set {
	best := -1
	for _, cpu := range candidates.IDs() {
		if best < 0 || vectors[cpu] < vectors[best] {
			best = cpu
		}
	}
	if best < 0 {
		return cpus.Set{}
	}
	vectors[best]++
	return cpus.Of(best)
}
