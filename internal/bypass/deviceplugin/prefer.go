// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"cmp"
	"slices"
	"strings"
)

// prefer chooses size units out of the available ones, those that must be included among them. It keeps them on one
// NUMA node: the one of the units that must be included, or else the node that just suffices, which leaves the other
// for a larger container; if none suffices, the fewest nodes. On a node it spreads over cards, over the ports of a
// card, and then over NICs with the most free units, so that neighbours share a NIC as late as possible.
func prefer(v *inventory, available, must []string, size int) []string {
	choice := &choice{inventory: v, perCard: map[string]int{}, perNIC: map[string]int{}, free: map[string]int{}}
	for _, id := range must {
		choice.take(id)
	}
	groups := choice.group(available)
	for len(choice.ids) < size && len(groups) > 0 {
		node := choice.nextNode(groups, size-len(choice.ids))
		choice.fill(groups[node], size)
		delete(groups, node)
	}
	return choice.ids
}

// choice is what has been chosen so far.
type choice struct {
	inventory *inventory
	ids       []string
	// nodes are the NUMA nodes of what was chosen.
	nodes []int
	// perCard and perNIC count what was chosen, free counts the available units of each NIC.
	perCard, perNIC, free map[string]int
}

func (c *choice) take(id string) {
	c.ids = append(c.ids, id)
	unit, known := c.inventory.unit(id)
	if !known {
		return
	}
	c.nodes = append(c.nodes, unit.node)
	c.perNIC[unit.nic]++
	c.perCard[card(unit.nic)]++
	c.free[unit.nic]--
}

// group sorts what is still to be had by NUMA node. Unknown units are left out: the kubelet then chooses itself.
func (c *choice) group(available []string) map[int][]unit {
	groups := map[int][]unit{}
	for _, id := range available {
		unit, known := c.inventory.unit(id)
		if !known {
			continue
		}
		c.free[unit.nic]++
		if !slices.Contains(c.ids, id) {
			groups[unit.node] = append(groups[unit.node], unit)
		}
	}
	return groups
}

// nextNode is the node to take the next units from.
func (c *choice) nextNode(groups map[int][]unit, needed int) int {
	nodes := make([]int, 0, len(groups))
	for node := range groups {
		nodes = append(nodes, node)
	}
	return slices.MinFunc(nodes, func(a, b int) int {
		inA, inB := len(groups[a]), len(groups[b])
		order := cmp.Or(
			first(slices.Contains(c.nodes, a), slices.Contains(c.nodes, b)),
			first(a != noNUMANode, b != noNUMANode),
			first(inA >= needed, inB >= needed),
		)
		if order != 0 {
			return order
		}
		if inA >= needed {
			return cmp.Or(cmp.Compare(inA, inB), cmp.Compare(a, b))
		}
		return cmp.Or(cmp.Compare(inB, inA), cmp.Compare(a, b))
	})
}

// fill takes units until there are enough or none is left.
func (c *choice) fill(units []unit, size int) {
	for len(c.ids) < size && len(units) > 0 {
		best := 0
		for i := range units {
			if c.better(units[i], units[best]) {
				best = i
			}
		}
		c.take(units[best].id)
		units = slices.Delete(units, best, best+1)
	}
}

func (c *choice) better(a, b unit) bool {
	return cmp.Or(
		cmp.Compare(c.perCard[card(a.nic)], c.perCard[card(b.nic)]),
		cmp.Compare(c.perNIC[a.nic], c.perNIC[b.nic]),
		cmp.Compare(c.free[b.nic], c.free[a.nic]),
		compareIDs(a.id, b.id),
	) < 0
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// card is the PCI address without the function: the ports of one card differ in the function.
func card(nic string) string {
	address, _, _ := strings.Cut(nic, ".")
	return address
}
