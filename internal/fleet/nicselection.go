// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// NICSelection is what a pool selects on a node by the node's inventory.
type NICSelection struct {
	// Expected says that the agent has to report a NIC.
	Expected bool
	// Claim is what the pool has of the node's NICs.
	Claim bypass.Claim
}

// Selections remembers what pools select on the nodes that they have, so that the event of one node costs no work for the others.
type Selections struct {
	mutex sync.Mutex
	known memory[selectionKey, NICSelection]
}

type selectionKey struct {
	pool                 types.UID
	pools, inventoryHash string
}

// NewSelections returns a memory that is empty.
func NewSelections() *Selections {
	return &Selections{known: memory[selectionKey, NICSelection]{}}
}

func (s *Selections) of(pool *v1alpha1.BypassNICPool, pools NodePools, node string, inventory *v1alpha1.Inventory) NICSelection {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	from := selectionKey{pool: pool.UID, pools: pools.key(), inventoryHash: inventory.Hash}
	if known, found := s.known.get(pool.Name, node, from); found {
		return known
	}
	result := selectNICs(pool, pools, inventory)
	s.known.put(pool.Name, node, from, result)
	return result
}

// Retain forgets nodes that the pool of that name no longer has; it has none when it is gone.
func (s *Selections) Retain(pool string, nodes ...string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.known.retain(pool, nodes)
}

// selectNICs knows no NIC of an inventory that cannot be read, which the profile reports.
func selectNICs(pool *v1alpha1.BypassNICPool, pools NodePools, inventory *v1alpha1.Inventory) NICSelection {
	nics := nicsOf(inventory)
	return NICSelection{Expected: isExpected(pool, nics), Claim: pools.claim(pool.Name, nics)}
}

// nicsOf are the NICs of an inventory; none when it cannot be read.
func nicsOf(inventory *v1alpha1.Inventory) []topology.NIC {
	hardware, err := topology.FromInventory(inventory)
	if err != nil {
		return nil
	}
	return hardware.NICs
}

// isExpected reports whether an agent has to report a NIC. An inventory does not report links, so the agent need not find a
// NIC that is to have one.
func isExpected(pool *v1alpha1.BypassNICPool, nics []topology.NIC) bool {
	certain := slices.DeleteFunc(slices.Clone(pool.Spec.NICs), func(selector v1alpha1.NICSelector) bool {
		return selector.Link == v1alpha1.LinkUp
	})
	return len(topology.SelectNICs(certain, nics)) > 0
}
