// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet

import (
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// layout describes a regular machine: the threads of a core are numbered as Linux does on x86, all first threads
// before all second ones.
type layout struct {
	vendor, architecture                    string
	packages, nodesPerPackage, coresPerNode int
	threads                                 int
	memoryPerNode                           int64
}

// topology is the host of this layout.
func (l layout) topology() *topology.Topology {
	nodes := l.packages * l.nodesPerPackage
	total := nodes * l.coresPerNode
	host := &topology.Topology{
		Architecture: l.architecture, Vendor: l.vendor, Model: "layout", KernelRelease: "5.14.0-570.el9",
		MinimumFrequency: 800000, MaximumFrequency: 3500000,
	}
	sizes := []int64{2048, 1048576}
	for node := range nodes {
		memory := l.memoryPerNode
		ids := make([]int, 0, l.coresPerNode*l.threads)
		for core := node * l.coresPerNode; core < (node+1)*l.coresPerNode; core++ {
			threads := make([]int, l.threads)
			for thread := range l.threads {
				threads[thread] = core + thread*total
			}
			ids = append(ids, threads...)
			host.Cores = append(host.Cores, topology.Core{
				CPUs: cpus.Of(threads...), NUMANode: node, Package: node / l.nodesPerPackage, L3: node,
			})
		}
		host.L3Domains = append(host.L3Domains, cpus.Of(ids...))
		host.Online = host.Online.Union(cpus.Of(ids...))
		host.NUMANodes = append(host.NUMANodes, topology.NUMANode{
			ID: node, CPUs: cpus.Of(ids...), MemoryBytes: &memory, HugepageSizes: sizes, Distances: nodeDistances(nodes, node),
		})
	}
	for p := range l.packages {
		var members cpus.Set
		for node := p * l.nodesPerPackage; node < (p+1)*l.nodesPerPackage; node++ {
			members = members.Union(host.NUMANodes[node].CPUs)
		}
		host.Packages = append(host.Packages, members)
	}
	host.Present = host.Online
	return host
}

func nodeDistances(nodes, from int) []int {
	distances := make([]int, nodes)
	for to := range nodes {
		distances[to] = 20
	}
	distances[from] = 10
	return distances
}
