// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"maps"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Claimant is a BypassNICPool as far as it claims NICs.
type Claimant struct {
	// Name of the BypassNICPool.
	Name string `json:"name"`
	// ResourceName is the name under which the kubelet hands its NICs out.
	ResourceName string `json:"resourceName"`
	// NICs are its selectors.
	NICs []v1alpha1.NICSelector `json:"nics"`
	// VirtualFunctions is how many virtual functions it creates on each NIC; 0 when it hands out the NICs
	// themselves.
	VirtualFunctions int32 `json:"virtualFunctions,omitempty"`
}

// ClaimantOf returns what a pool claims NICs by.
func ClaimantOf(name string, spec *v1alpha1.BypassNICPoolSpec) Claimant {
	claimant := Claimant{Name: name, ResourceName: spec.ResourceName, NICs: spec.NICs}
	if spec.VirtualFunctions != nil {
		claimant.VirtualFunctions = spec.VirtualFunctions.CountPerNIC
	}
	return claimant
}

// Claimants returns what pools claim NICs by, in their order.
func Claimants(pools []*v1alpha1.BypassNICPool) []Claimant {
	claimants := make([]Claimant, 0, len(pools))
	for _, pool := range pools {
		claimants = append(claimants, ClaimantOf(pool.Name, &pool.Spec))
	}
	return claimants
}

// Claim is what a pool has of the NICs of a node, and why not more.
type Claim struct {
	// Pool is its name.
	Pool string
	// Unserved means that v1alpha1.MaxPoolsPerNode other pools of the node come before it by name. It then claims no NIC.
	Unserved bool
	// SameResource are the other pools of the node with its resource name, ascending. It then has no NIC: the
	// kubelet would serve the pool that registered last, whatever NIC the other has promised.
	SameResource []string
	// NICs are those that it selects and has, in ascending order of PCI address. A pool that creates virtual
	// functions has these with their NIC, without those among Conflicts.
	NICs []topology.NIC
	// Conflicts are the NICs that it claims and that no pool has, in ascending order of PCI address.
	Conflicts []NICConflict
}

// NICConflict is a NIC that a pool claims and does not get, because other pools claim it, too.
type NICConflict struct {
	NIC topology.NIC
	// Pools are the conflicting pools, ascending.
	Pools []string
	// Through is the physical function that the other pools claim in place of the NIC itself, which the pool creates
	// on it; "" when they claim the NIC.
	Through string
}

// Conflict returns the conflict about a NIC; nil when there is none.
func (c *Claim) Conflict(address string) *NICConflict {
	index := slices.IndexFunc(c.Conflicts, func(conflict NICConflict) bool { return conflict.NIC.PCIAddress == address })
	if index < 0 {
		return nil
	}
	return &c.Conflicts[index]
}

// Claims decides what each of the pools that select a node has of its NICs, in the order of the pools. It is the one
// answer to this question: for the plan and the status of pools, for what the device plugin and the DRA driver hand
// out, and for the command line.
//
// A pool claims the NICs that its selectors match and, when it creates virtual functions, all virtual functions of these.
// A NIC that several pools claim is nobody's. A pool that may not have a NIC has no virtual function that it would
// create there either. But a pool keeps a NIC of whose virtual functions another one claims some: without it the
// virtual functions would go, the conflict with them, and they would come back.
func Claims(pools []Claimant, nics []topology.NIC) []Claim {
	served := servedPools(pools)
	claimants := map[string][]string{}
	for _, pool := range served {
		for _, nic := range pool.claimed(nics) {
			claimants[nic.PCIAddress] = append(claimants[nic.PCIAddress], pool.Name)
		}
	}
	claims := make([]Claim, 0, len(pools))
	for _, pool := range pools {
		if served[pool.Name] == nil {
			claims = append(claims, Claim{Pool: pool.Name, Unserved: true})
		} else {
			claims = append(claims, pool.claim(served, claimants, nics))
		}
	}
	return claims
}

// ClaimOf is Claims for one of the pools.
func ClaimOf(pool string, pools []Claimant, nics []topology.NIC) Claim {
	for _, claim := range Claims(pools, nics) {
		if claim.Pool == pool {
			return claim
		}
	}
	return Claim{Pool: pool}
}

// servedPools are the first v1alpha1.MaxPoolsPerNode pools, by name.
func servedPools(pools []Claimant) map[string]*Claimant {
	byName := make(map[string]*Claimant, len(pools))
	for i := range pools {
		byName[pools[i].Name] = &pools[i]
	}
	for i, name := range slices.Sorted(maps.Keys(byName)) {
		if i >= v1alpha1.MaxPoolsPerNode {
			delete(byName, name)
		}
	}
	return byName
}

func (c *Claimant) claim(served map[string]*Claimant, claimants map[string][]string, nics []topology.NIC) Claim {
	claim := Claim{Pool: c.Name, SameResource: c.sameResource(served)}
	for _, nic := range c.claimed(nics) {
		switch others := c.others(claimants, nic.PCIAddress); {
		case len(others) > 0:
			claim.Conflicts = append(claim.Conflicts, NICConflict{NIC: nic, Pools: others})
		case topology.SelectsNIC(c.NICs, nic):
			claim.NICs = append(claim.NICs, nic)
		default:
			if others = c.others(claimants, nic.PhysicalFunction); len(others) > 0 {
				claim.Conflicts = append(claim.Conflicts, NICConflict{NIC: nic, Pools: others, Through: nic.PhysicalFunction})
			}
		}
	}
	if len(claim.SameResource) > 0 {
		claim.NICs = nil
	}
	return claim
}

// sameResource are the other pools with the resource name, ascending.
func (c *Claimant) sameResource(served map[string]*Claimant) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(served)) {
		if name != c.Name && served[name].ResourceName == c.ResourceName {
			names = append(names, name)
		}
	}
	return names
}

// others are the other pools that claim a NIC, ascending.
func (c *Claimant) others(claimants map[string][]string, address string) []string {
	return slices.DeleteFunc(slices.Sorted(slices.Values(claimants[address])), func(name string) bool { return name == c.Name })
}

// claimed are the NICs that the pool takes from other pools, in ascending order of PCI address.
func (c *Claimant) claimed(nics []topology.NIC) []topology.NIC {
	claimed := topology.SelectNICs(c.NICs, nics)
	if c.VirtualFunctions == 0 {
		return claimed
	}
	physical := map[string]bool{}
	for _, nic := range claimed {
		physical[nic.PCIAddress] = true
	}
	for _, nic := range nics {
		if physical[nic.PhysicalFunction] && !physical[nic.PCIAddress] {
			claimed = append(claimed, nic)
		}
	}
	slices.SortFunc(claimed, func(a, b topology.NIC) int { return topology.ComparePCIAddresses(a.PCIAddress, b.PCIAddress) })
	return claimed
}

// claim is what the pool has of the NICs of the node.
func (in *Input) claim() Claim {
	pools := []Claimant{ClaimantOf(in.Pool.Name, &in.Pool.Spec)}
	for _, other := range in.Pool.OtherPools {
		if slices.Contains(other.Nodes, in.Node) {
			pools = append(pools, other.Claimant)
		}
	}
	if len(pools) == 1 {
		return Claim{Pool: in.Pool.Name}
	}
	return ClaimOf(in.Pool.Name, pools, describeAll(in.Facts.NICs))
}

// describeAll returns what selectors look at of the NICs of a host. A virtual function is one of the NIC that lists it,
// also where the host says nothing else about it.
func describeAll(nics []host.NIC) []topology.NIC {
	described := make([]topology.NIC, 0, len(nics))
	index := make(map[string]int, len(nics))
	for _, nic := range nics {
		index[nic.PCIAddress] = len(described)
		described = append(described, topology.OfHostNIC(&nic))
	}
	for _, nic := range nics {
		for _, address := range nic.VirtualFunctions {
			i, known := index[address]
			if !known {
				i = len(described)
				described = append(described, topology.NIC{PCIAddress: address})
			}
			if described[i].PhysicalFunction == "" {
				described[i].PhysicalFunction = nic.PCIAddress
			}
		}
	}
	return described
}
