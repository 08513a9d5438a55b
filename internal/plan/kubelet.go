// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Names of the kubelet's policies (pkg/kubelet/apis/config/types.go and the managers' own packages).
const (
	policyNone           = "none"
	cpuPolicyStatic      = "static"
	memoryPolicyNone     = "None"
	memoryPolicyStatic   = "Static"
	optionFullPCPUsOnly  = "full-pcpus-only"
	optionMaxNUMANodes   = "max-allowable-numa-nodes"
	resourceMemory       = "memory"
	evictMemoryAvailable = "memory.available"
	// defaultMaxNUMANodes is how many NUMA nodes the topology manager accepts unless told otherwise
	// (defaultMaxAllowableNUMANodes in pkg/kubelet/cm/topologymanager/topology_manager.go).
	defaultMaxNUMANodes = 8
)

// planKubelet decides the settings of the kubelet.
func (p *planner) planKubelet() {
	k := &p.plan.Kubelet
	k.Origin = p.origin("spec.kubelet.resourceManagement")
	k.ReservedSystemCPUs = p.plan.CPUs.Housekeeping.Union(p.plan.CPUs.DataPlane).String()
	p.planManagers()
	p.planReservedMemory()
	p.planAdditionalConfiguration()
}

// topologyPolicies are the names of the topology manager's policies.
func topologyPolicies() map[v1alpha1.TopologyPolicy]string {
	return map[v1alpha1.TopologyPolicy]string{
		v1alpha1.TopologyNone:           policyNone,
		v1alpha1.TopologyBestEffort:     "best-effort",
		v1alpha1.TopologyRestricted:     "restricted",
		v1alpha1.TopologySingleNUMANode: "single-numa-node",
	}
}

// planManagers chooses the policies of the CPU, memory and topology managers. A driver of Dynamic Resource
// Allocation replaces all three. The memory manager works with the two strict topology policies only: with
// the others it would not get hints that bind.
func (p *planner) planManagers() {
	k := &p.plan.Kubelet
	k.CPUManagerPolicy, k.TopologyManagerPolicy, k.MemoryManagerPolicy = policyNone, policyNone, memoryPolicyNone
	if p.spec.Kubelet.ResourceManagement == v1alpha1.ResourceManagementDRA {
		return
	}
	policy := p.spec.NUMA.TopologyPolicy
	k.CPUManagerPolicy, k.CPUManagerReconcilePeriod = cpuPolicyStatic, "5s"
	k.TopologyManagerPolicy = topologyPolicies()[policy]
	if p.spec.Kubelet.FullCores == v1alpha1.FullCoresRequired {
		k.CPUManagerPolicyOptions = map[string]string{optionFullPCPUsOnly: "true"}
	}
	if policy == v1alpha1.TopologyNone {
		return
	}
	k.TopologyManagerScope = map[v1alpha1.TopologyScope]string{
		v1alpha1.TopologyScopeContainer: "container",
		v1alpha1.TopologyScopePod:       "pod",
	}[p.spec.NUMA.Scope]
	if policy == v1alpha1.TopologyRestricted || policy == v1alpha1.TopologySingleNUMANode {
		k.MemoryManagerPolicy = memoryPolicyStatic
	}
	if count := len(p.topology.NUMANodes); count > defaultMaxNUMANodes {
		k.TopologyManagerPolicyOptions = map[string]string{optionMaxNUMANodes: strconv.Itoa(count)}
		p.report(v1alpha1.SeverityLow, ruleNUMANodeCount, "spec.numa.topologyPolicy",
			"Use fewer NUMA nodes per socket in the firmware, or spec.numa.topologyPolicy None.",
			"the topology manager is configured to accept %d NUMA nodes, which slows pod admission and needs Kubernetes 1.31", count)
	}
}

// planReservedMemory sets aside memory for the system. Stating evictionHard replaces all of the kubelet's
// own thresholds (cmd/kubelet/app/server.go, loadConfigFile), so the others are repeated from
// pkg/kubelet/eviction/defaults_linux.go.
func (p *planner) planReservedMemory() {
	k := &p.plan.Kubelet
	total := resource.NewQuantity(0, resource.BinarySI)
	reserve := func(field string, quantity v1alpha1.MemoryQuantity) string {
		parsed, ok := p.quantity(field, quantity)
		if ok {
			total.Add(parsed)
		}
		return parsed.String()
	}
	k.SystemReserved = map[string]string{
		resourceMemory: reserve("spec.kubelet.systemReservedMemory", p.spec.Kubelet.SystemReservedMemory),
	}
	k.KubeReserved = map[string]string{
		resourceMemory: reserve("spec.kubelet.kubeReservedMemory", p.spec.Kubelet.KubeReservedMemory),
	}
	k.EvictionHard = map[string]string{
		evictMemoryAvailable: reserve("spec.kubelet.evictionHardMemory", p.spec.Kubelet.EvictionHardMemory),
		"nodefs.available":   "10%",
		"nodefs.inodesFree":  "5%",
		"imagefs.available":  "15%",
		"imagefs.inodesFree": "5%",
	}
	if k.MemoryManagerPolicy == memoryPolicyStatic {
		k.ReservedMemory = []MemoryReservation{{
			NUMANode: int32(p.systemNUMANode()),
			Limits:   map[string]string{resourceMemory: total.String()},
		}}
	}
}

// quantity reads an amount of memory. The kubelet needs whole bytes (AsInt64 in convertReserved of
// pkg/kubelet/cm/memorymanager); a percentage is no amount that can be put on a NUMA node.
func (p *planner) quantity(field string, text v1alpha1.MemoryQuantity) (resource.Quantity, bool) {
	parsed, err := resource.ParseQuantity(string(text))
	if bytes, whole := parsed.AsInt64(); err == nil && whole && bytes > 0 {
		return parsed, true
	}
	p.critical(ruleQuantity, field, "Write a whole number with Ki, Mi or Gi, for example 500Mi.",
		"%q is not a whole, positive number of bytes", text)
	return resource.Quantity{}, false
}

// systemNUMANode is where the kubelet's reserved memory is counted: the lowest NUMA node with memory and
// housekeeping CPUs, since the system's daemons run there, and one without a bypass NIC if there is one,
// since memory near a NIC is worth more.
func (p *planner) systemNUMANode() int {
	local := byNUMANode(p.machine.cores)
	nodes := slices.Clone(p.topology.NUMANodes)
	rank := func(n topology.NUMANode) int {
		switch {
		case !hasMemory(n):
			return 3
		case !cpusOf(local[n.ID]).Overlaps(p.plan.CPUs.Housekeeping):
			return 2
		case p.near[n.ID]:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(nodes, func(a, b topology.NUMANode) int { return rank(a) - rank(b) })
	if len(nodes) == 0 {
		return 0
	}
	return nodes[0].ID
}

// hasMemory reports whether a NUMA node has memory, as far as the host tells.
func hasMemory(n topology.NUMANode) bool { return n.MemoryBytes == nil || *n.MemoryBytes > 0 }

// reservedOn is the memory in bytes that the kubelet keeps back on a NUMA node.
func (p *planner) reservedOn(numa int) int64 {
	var bytes int64
	for _, reservation := range p.plan.Kubelet.ReservedMemory {
		if int(reservation.NUMANode) != numa {
			continue
		}
		for _, limit := range slices.Sorted(maps.Keys(reservation.Limits)) {
			quantity, err := resource.ParseQuantity(reservation.Limits[limit])
			if err == nil {
				bytes += quantity.Value()
			}
		}
	}
	return bytes
}
