// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Agreement is what a pool offers to other pools that want the same NICs.
type Agreement struct {
	// WithPools are the names of the pools that it shares its NICs with.
	WithPools []string `json:"withPools,omitempty"`
	// SharesPerNIC is how many containers of its own may hold one NIC.
	SharesPerNIC int32 `json:"sharesPerNIC,omitempty"`
	// Interrupts is where the interrupts of its NICs are to be: a NIC has them in one place only.
	Interrupts v1alpha1.NICInterruptPlacement `json:"interrupts,omitempty"`
}

// agreementOf returns what a pool offers; the zero value for one that shares its NICs with no other pool.
func agreementOf(spec *v1alpha1.BypassNICPoolSpec) Agreement {
	if len(spec.Sharing.WithPools) == 0 || !isShared(spec) {
		return Agreement{}
	}
	return Agreement{
		WithPools: spec.Sharing.WithPools, SharesPerNIC: spec.Sharing.MaximumSharesPerNIC, Interrupts: spec.Interrupts.Placement,
	}
}

func (a *Agreement) names(pool string) bool { return slices.Contains(a.WithPools, pool) }

// disagreement says why two pools do not share a NIC that both claim. It is empty when they do, and offered is whether one of them
// offers it at all.
func disagreement(a, b *Claimant) (why string, offered bool) {
	byA, byB := a.names(b.Name), b.names(a.Name)
	switch {
	case !byA && !byB:
		return "neither offers to share it", false
	case !byA:
		return fmt.Sprintf("spec.sharing.withPools of BypassNICPool %s does not name %s", a.Name, b.Name), true
	case !byB:
		return fmt.Sprintf("spec.sharing.withPools of BypassNICPool %s does not name %s", b.Name, a.Name), true
	case a.Interrupts != b.Interrupts:
		return fmt.Sprintf("spec.interrupts.placement of BypassNICPools %s and %s differ", a.Name, b.Name), true
	}
	return "", true
}

// agree reports whether two pools share the NICs that both claim.
func agree(a, b *Claimant) bool {
	why, _ := disagreement(a, b)
	return why == ""
}

// SharedNIC is a NIC that a pool has together with others.
type SharedNIC struct {
	PCIAddress string
	// Pools are the others, ascending.
	Pools []string
	// Reserved is how many containers of older ones among them may hold the NIC.
	Reserved int
}

// Reserved is how many containers of other pools, which are older, may hold a NIC that the pool has.
func (c *Claim) Reserved(address string) int {
	return c.sharedAt(address).Reserved
}

// Partners are the names of the other pools that have a NIC together with this pool, ascending.
func (c *Claim) Partners(address string) []string {
	return c.sharedAt(address).Pools
}

func (c *Claim) sharedAt(address string) SharedNIC {
	for _, shared := range c.Shared {
		if shared.PCIAddress == address {
			return shared
		}
	}
	return SharedNIC{}
}
