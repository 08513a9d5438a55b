// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// contest decides which of the pools that select a node has which of its NICs.
type contest struct {
	nics []topology.NIC
	// functions are the virtual functions of each NIC, by its address.
	functions map[string][]topology.NIC
	// served are the pools that may claim NICs by their names, and inOrder the same from the oldest to the youngest.
	served  map[string]*contestant
	inOrder []*contestant
	// owners are the pools that have NICs, by the address of the NIC; those of one NIC share it by agreement.
	owners map[string][]*contestant
	// unserved are pools for which the node has too many.
	unserved map[string]bool
}

// contestant is a pool with the NICs that its selectors match, in ascending order of PCI address.
type contestant struct {
	*Claimant

	nics []topology.NIC
	at   map[string]bool
}

func (c *contestant) creates() bool { return c.VirtualFunctions > 0 }

func newContest(pools []Claimant, nics []topology.NIC) *contest {
	c := &contest{
		nics: nics, functions: map[string][]topology.NIC{}, served: map[string]*contestant{}, owners: map[string][]*contestant{},
		unserved: map[string]bool{},
	}
	for _, nic := range nics {
		if nic.PhysicalFunction != "" {
			c.functions[nic.PhysicalFunction] = append(c.functions[nic.PhysicalFunction], nic)
		}
	}
	byAgeFirst := make([]*Claimant, 0, len(pools))
	for i := range pools {
		byAgeFirst = append(byAgeFirst, &pools[i])
	}
	slices.SortFunc(byAgeFirst, CompareStanding)
	servable := min(len(byAgeFirst), v1alpha1.MaxPoolsPerNode)
	for _, pool := range byAgeFirst[servable:] {
		c.unserved[pool.Name] = true
	}
	byAgeFirst = byAgeFirst[:servable]
	slices.SortFunc(byAgeFirst, CompareAge)
	for _, pool := range byAgeFirst {
		if pool.ResourceOwner == "" {
			c.add(pool)
		}
	}
	return c
}

func (c *contest) add(pool *Claimant) {
	added := &contestant{Claimant: pool, nics: topology.SelectNICs(pool.NICs, c.nics), at: map[string]bool{}}
	for _, nic := range added.nics {
		added.at[nic.PCIAddress] = true
	}
	c.served[pool.Name] = added
	c.inOrder = append(c.inOrder, added)
}

// keep gives the pools what they have had and still claim. Virtual functions come first, so that nobody can have had the
// virtual functions of a NIC that somebody else keeps a part of.
func (c *contest) keep(held Held) {
	for _, functions := range []bool{true, false} {
		for _, nic := range c.nics {
			if nic.IsVirtualFunction() != functions {
				continue
			}
			for _, pool := range c.inOrder {
				if pool.at[nic.PCIAddress] && slices.Contains(held[nic.PCIAddress], pool.Name) {
					c.give(pool, nic)
				}
			}
		}
	}
}

// share gives what nobody has to the oldest pool that may have it, and to those that share it with all that have it.
func (c *contest) share() {
	for _, pool := range c.inOrder {
		for _, nic := range pool.nics {
			c.give(pool, nic)
		}
	}
}

// give lets a pool have a NIC where it may.
func (c *contest) give(pool *contestant, nic topology.NIC) {
	owners := c.owners[nic.PCIAddress]
	stranger := func(owner *contestant) bool { return owner == pool || !agree(owner.Claimant, pool.Claimant) }
	if !slices.ContainsFunc(owners, stranger) && c.mayHave(pool, nic) {
		c.owners[nic.PCIAddress] = append(owners, pool)
	}
}

func (c *contest) has(pool *contestant, address string) bool {
	return slices.Contains(c.owners[address], pool)
}

// mayHave reports whether a pool does not get into the way of another one when it has a NIC that nobody has.
func (c *contest) mayHave(pool *contestant, nic topology.NIC) bool {
	foreignCreator := func(owner *contestant) bool { return owner.creates() && owner != pool }
	if nic.PhysicalFunction != "" && slices.ContainsFunc(c.owners[nic.PhysicalFunction], foreignCreator) {
		return false
	}
	return !pool.creates() || c.foreignFunction(pool, nic.PCIAddress) == ""
}

// foreignFunction is a virtual function on a NIC that another pool has; "" when there is none.
func (c *contest) foreignFunction(pool *contestant, address string) string {
	for _, function := range c.functions[address] {
		if owners := c.owners[function.PCIAddress]; len(owners) > 0 && !slices.Contains(owners, pool) {
			return function.PCIAddress
		}
	}
	return ""
}

// claim is what a pool has in the end.
func (c *contest) claim(of *Claimant) Claim {
	claim := Claim{Pool: of.Name, Unserved: c.unserved[of.Name], ResourceOwner: of.ResourceOwner}
	pool := c.served[of.Name]
	if pool == nil {
		return claim
	}
	for _, nic := range pool.nics {
		c.enter(&claim, pool, nic)
		if !pool.creates() {
			continue
		}
		for _, function := range c.functions[nic.PCIAddress] {
			if !pool.at[function.PCIAddress] {
				c.enterFunction(&claim, pool, function)
			}
		}
	}
	for _, conflicts := range [][]NICConflict{claim.Kept, claim.Conflicts} {
		slices.SortFunc(conflicts, func(a, b NICConflict) int {
			return topology.ComparePCIAddresses(a.NIC.PCIAddress, b.NIC.PCIAddress)
		})
	}
	return claim
}

// enter notes whether the pool has a NIC that it selects.
func (c *contest) enter(claim *Claim, pool *contestant, nic topology.NIC) {
	if c.has(pool, nic.PCIAddress) {
		claim.NICs = append(claim.NICs, nic)
		if shared := c.shared(pool, nic.PCIAddress); len(shared.Pools) > 0 {
			claim.Shared = append(claim.Shared, shared)
		}
		if others := c.conflicting(pool, nic); len(others) > 0 {
			claim.Kept = append(claim.Kept, NICConflict{
				NIC: nic, Pools: others, Held: nic.PCIAddress, Disagreement: c.disagreements(pool, others),
			})
		}
		return
	}
	claim.Conflicts = append(claim.Conflicts, c.lost(pool, nic))
}

// enterFunction notes whether the pool has a virtual function that it creates.
func (c *contest) enterFunction(claim *Claim, pool *contestant, function topology.NIC) {
	switch owners := c.owners[function.PCIAddress]; {
	case len(owners) > 0:
		claim.Conflicts = append(claim.Conflicts, NICConflict{NIC: function, Pools: namesOf(owners), Held: function.PCIAddress})
	case c.has(pool, function.PhysicalFunction):
		if others := c.conflicting(pool, function); len(others) > 0 {
			claim.Kept = append(claim.Kept, NICConflict{NIC: function, Pools: others, Held: function.PhysicalFunction})
		}
	default:
		conflict := c.lost(pool, topology.NIC{PCIAddress: function.PhysicalFunction})
		claim.Conflicts = append(claim.Conflicts, NICConflict{
			NIC: function, Pools: conflict.Pools, Held: conflict.Held, Through: function.PhysicalFunction,
		})
	}
}

// lost says who keeps a pool from having a NIC.
func (c *contest) lost(pool *contestant, nic topology.NIC) NICConflict {
	conflict := NICConflict{NIC: nic, Held: nic.PCIAddress}
	if c.owners[conflict.Held] == nil {
		conflict.Held = nic.PhysicalFunction
	}
	if c.owners[conflict.Held] == nil {
		conflict.Function = c.foreignFunction(pool, nic.PCIAddress)
		conflict.Held = conflict.Function
	}
	conflict.Pools = namesOf(c.owners[conflict.Held])
	if conflict.Held == nic.PCIAddress {
		conflict.Disagreement = c.disagreements(pool, conflict.Pools)
	}
	return conflict
}

// disagreements says why the first of other pools that offers a pool to share, or to which it offers it, does not.
func (c *contest) disagreements(pool *contestant, others []string) string {
	for _, name := range others {
		if why, offered := disagreement(pool.Claimant, c.served[name].Claimant); offered && why != "" {
			return why
		}
	}
	return ""
}

// shared is what a pool has of a NIC together with others.
func (c *contest) shared(pool *contestant, address string) SharedNIC {
	shared := SharedNIC{PCIAddress: address}
	var others []*contestant
	for _, owner := range c.owners[address] {
		if owner == pool {
			continue
		}
		others = append(others, owner)
		if CompareAge(owner.Claimant, pool.Claimant) < 0 {
			shared.Reserved += int(owner.SharesPerNIC)
		}
	}
	shared.Pools = namesOf(others)
	return shared
}

// namesOf are the names of pools, ascending.
func namesOf(pools []*contestant) []string {
	names := make([]string, 0, len(pools))
	for _, pool := range pools {
		names = append(names, pool.Name)
	}
	slices.Sort(names)
	return names
}

// conflicting are the other pools that claim a NIC or a virtual function of a pool, ascending.
func (c *contest) conflicting(of *contestant, nic topology.NIC) []string {
	var names []string
	for _, pool := range c.inOrder {
		claims := pool.at[nic.PCIAddress] || pool.creates() && pool.at[nic.PhysicalFunction]
		if pool != of && claims && !c.has(pool, nic.PCIAddress) && !c.createsBelow(of, pool, nic) {
			names = append(names, pool.Name)
		}
	}
	slices.Sort(names)
	return names
}

// createsBelow reports whether a pool claims a virtual function only because it would create it on a NIC of the first one:
// the conflict is then about that NIC.
func (c *contest) createsBelow(of, pool *contestant, nic topology.NIC) bool {
	return !pool.at[nic.PCIAddress] && c.has(of, nic.PhysicalFunction)
}

// claim is what the pool has of the NICs of the node.
func (in *Input) claim() Claim { return in.Pool.ClaimOn(in.Node, describeAll(in.Facts.NICs)) }

// ClaimOn is what the pool has of the NICs of a node.
func (p *Pool) ClaimOn(node string, nics []topology.NIC) Claim {
	pools := []Claimant{claimantOf(p.Name, &p.Spec, p.Standing)}
	for _, other := range p.OtherPools {
		if slices.Contains(other.Nodes, node) {
			pools = append(pools, other.Claimant)
		}
	}
	return ClaimOf(p.Name, pools, p.heldOn(node), nics)
}

// heldOn is which pools have the NICs of a node that several claim.
func (p *Pool) heldOn(node string) Held {
	held := Held{}
	for _, holding := range p.Holdings {
		if slices.Contains(holding.Nodes, node) {
			held[holding.PCIAddress] = append(held[holding.PCIAddress], holding.Pool)
		}
	}
	return held
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
