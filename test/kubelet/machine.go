// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet

import (
	cadvisorapi "github.com/google/cadvisor/lib/model"

	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// MachineInfo says of a host what the kubelet's cAdvisor says of it: online CPUs only, by NUMA node and core.
func MachineInfo(host *topology.Topology) *cadvisorapi.MachineInfo {
	machine := &cadvisorapi.MachineInfo{
		NumCores:         host.Online.Len(),
		NumPhysicalCores: len(host.Cores),
		NumSockets:       max(1, len(host.Packages)),
	}
	for _, node := range host.NUMANodes {
		var memory uint64
		if node.MemoryBytes != nil {
			memory = uint64(*node.MemoryBytes)
		}
		machine.MemoryCapacity += memory
		machine.Topology = append(machine.Topology, cadvisorapi.Node{
			Id: node.ID, Memory: memory, Cores: cores(host, node.ID), Distances: distances(node.Distances),
		})
	}
	return machine
}

func cores(host *topology.Topology, numaNode int) []cadvisorapi.Core {
	var out []cadvisorapi.Core
	for _, core := range host.Cores {
		online := core.CPUs.Intersection(host.Online)
		if core.NUMANode != numaNode || online.IsEmpty() {
			continue
		}
		out = append(out, cadvisorapi.Core{
			Id: core.CPUs.First(), Threads: online.IDs(), SocketID: max(0, core.Package),
			UncoreCaches: []cadvisorapi.Cache{{Id: core.L3, Level: 3, Type: "Unified"}},
		})
	}
	return out
}

func distances(from []int) []uint64 {
	out := make([]uint64, len(from))
	for i, distance := range from {
		out[i] = uint64(distance)
	}
	return out
}
