// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"cmp"
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// The files of Documentation/ABI/{testing,stable}/sysfs-devices-{system-cpu,node} that errors name.
const (
	onlineFile  = "/sys/devices/system/cpu/online"
	presentFile = "/sys/devices/system/cpu/present"
)

func nodeFile(id int) string { return fmt.Sprintf("/sys/devices/system/node/node%d/cpulist", id) }

func cpuFile(cpu int, name string) string {
	return fmt.Sprintf("/sys/devices/system/cpu/cpu%d/%s", cpu, name)
}

// validate finds contradictions between sets that must not overlap.
func (t *Topology) validate() error {
	nodeOf, err := t.nodeOfCPUs()
	if err != nil {
		return err
	}
	for _, core := range t.Cores {
		if err := withinOneNode(core.CPUs, nodeOf); err != nil {
			return err
		}
	}
	return cmp.Or(
		t.validateGroup("core", "topology/thread_siblings_list", t.threads()),
		t.validateGroup("package", "topology/core_siblings_list", t.Packages),
		t.validateGroup("L3 cache", "cache/index*/shared_cpu_list", t.L3Domains),
	)
}

// nodeOfCPUs gives the NUMA node of each CPU.
func (t *Topology) nodeOfCPUs() (map[int]int, error) {
	nodeOf := map[int]int{}
	for _, node := range t.NUMANodes {
		if missing := node.CPUs.Difference(t.Online); !missing.IsEmpty() {
			return nil, fmt.Errorf("NUMA node %d (%s) holds CPUs %s, which are not online according to %s",
				node.ID, nodeFile(node.ID), missing, onlineFile)
		}
		for _, cpu := range node.CPUs.IDs() {
			if other, taken := nodeOf[cpu]; taken {
				return nil, fmt.Errorf("CPU %d is in the NUMA nodes %d and %d (%s and %s), as the kernel shows with numa=fake; "+
					"a plan needs NUMA nodes that do not overlap", cpu, other, node.ID, nodeFile(other), nodeFile(node.ID))
			}
			nodeOf[cpu] = node.ID
		}
	}
	return nodeOf, nil
}

// validateGroup finds CPUs that do not exist or that two sets share.
func (t *Topology) validateGroup(kind, file string, sets []cpus.Set) error {
	owner := map[int]cpus.Set{}
	for _, set := range sets {
		if missing := set.Difference(t.Present); !missing.IsEmpty() {
			return fmt.Errorf("%s: the %s of CPUs %s holds CPUs %s, which are not present according to %s",
				cpuFile(set.First(), file), kind, set, missing, presentFile)
		}
		for _, cpu := range set.IDs() {
			if other, taken := owner[cpu]; taken {
				return fmt.Errorf("CPU %d has two different sets of CPUs with the same %s, %s (%s) and %s (%s)",
					cpu, kind, other, cpuFile(other.First(), file), set, cpuFile(set.First(), file))
			}
			owner[cpu] = set
		}
	}
	return nil
}

// withinOneNode finds threads of one core in different NUMA nodes.
func withinOneNode(core cpus.Set, nodeOf map[int]int) error {
	first := -1
	for _, cpu := range core.IDs() {
		node, known := nodeOf[cpu]
		if !known {
			continue
		}
		if first >= 0 && node != nodeOf[first] {
			return fmt.Errorf("CPUs %d and %d share a core (%s) but are in the NUMA nodes %d and %d (%s and %s)",
				first, cpu, cpuFile(first, "topology/thread_siblings_list"), nodeOf[first], node,
				nodeFile(nodeOf[first]), nodeFile(node))
		}
		first = cpu
	}
	return nil
}

// locateCores fills in where each core is.
func (t *Topology) locateCores() {
	for i := range t.Cores {
		core := &t.Cores[i]
		core.NUMANode = -1
		for _, node := range t.NUMANodes {
			if node.CPUs.Overlaps(core.CPUs) {
				core.NUMANode = node.ID
			}
		}
		core.Package = overlapping(t.Packages, core.CPUs)
		core.L3 = overlapping(t.L3Domains, core.CPUs)
	}
}

// overlapping returns the index of the first set that shares a CPU with the core, or -1.
func overlapping(sets []cpus.Set, core cpus.Set) int {
	for _, cpu := range core.IDs() {
		if at := indexOf(sets, cpu); at >= 0 {
			return at
		}
	}
	return -1
}
