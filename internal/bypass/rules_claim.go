// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// management refuses a NIC that carries the node's own traffic: rebinding it or giving it to a pod cuts the node off.
func (c *candidate) management() verdict {
	b := c.bypass()
	const without = "the NIC may carry the node's own traffic"
	if v := absent(b.Networks, "The routes of the node", without, "let the program read /proc/1/net of the node"); v.level != levelPassed {
		return v
	}
	if len(c.in.HostAddresses) == 0 {
		return unknown("The addresses by which the cluster knows the node were not given, so %s; give the program "+
			"status.hostIPs of its pod, or the addresses of the Node.", without)
	}
	carried := topology.ManagementInterfaces(b, c.in.HostAddresses)
	if len(carried) == 0 {
		return unknown("No route of the node in %s is a default route or leads to an address of the node, so %s; see "+
			"by which interface the node is reached.", b.Networks.Source, without)
	}
	for _, nic := range c.handled() {
		if v := c.carries(nic, carried); v.level != levelPassed {
			return v
		}
	}
	return passed()
}

// handled are the NICs that are touched when the candidate is handed out: itself and the one that its pool
// creates it on. A virtual function that somebody else made leaves its NIC alone.
func (c *candidate) handled() []host.NIC {
	if c.creator != nil {
		return []host.NIC{c.nic, *c.creator}
	}
	return []host.NIC{c.nic}
}

func (c *candidate) carries(nic host.NIC, carried map[string]string) verdict {
	name, known := nic.Name.Get()
	if !known {
		return passed()
	}
	if what, ok := carried[name]; ok {
		return refused("Interface %s carries %s, so its NIC is never handed out or bound to another driver; exclude it "+
			"in spec.nics, or move that traffic to another NIC.", name, what)
	}
	upper := upperOf(c.bypass().Lower, name)
	if upper == "" || c.isTraced(carried) {
		return passed()
	}
	return refused("Interface %s is a port of %s, and the node's own traffic leaves by %s, which the host traces to no "+
		"NIC, so it may be this one; exclude the NIC in spec.nics.", name, upper,
		strings.Join(slices.Sorted(maps.Keys(carried)), ", "))
}

// isTraced reports whether one of the interfaces is a NIC. A bridge of Open vSwitch has no lower interfaces in sysfs:
// its ports are below ovs-system, another interface.
func (c *candidate) isTraced(carried map[string]string) bool {
	return slices.ContainsFunc(c.in.Facts.NICs, func(nic host.NIC) bool {
		_, ok := carried[nic.Name.Value]
		return nic.Name.Known && ok
	})
}

// upperOf returns an interface that is directly above another; "" when there is none.
func upperOf(lower map[string][]string, name string) string {
	for _, upper := range slices.Sorted(maps.Keys(lower)) {
		if slices.Contains(lower[upper], name) {
			return upper
		}
	}
	return ""
}

// claimedByOthers refuses a NIC that another pool has: two plugins would hand it to two containers.
func (c *candidate) claimedByOthers() verdict {
	if c.claim.Unserved {
		return refused("The node is selected by more than %d BypassNICPools, of which the oldest are served; narrow "+
			"spec.nodeSelector of some of them.", v1alpha1.MaxPoolsPerNode)
	}
	if c.claim.ResourceOwner != "" {
		return refused("Resource %s belongs to BypassNICPool %s, which had it first, so this pool hands out no NIC, not NIC %s either; "+
			"create it again with another spec.resourceName.", c.in.Pool.Spec.ResourceName, c.claim.ResourceOwner, c.name())
	}
	conflict := c.claim.Conflict(c.nic.PCIAddress)
	if conflict == nil {
		return passed()
	}
	const remedy = "make the selectors of spec.nics exclude each other"
	pools := strings.Join(conflict.Pools, ", ")
	switch {
	case conflict.Through != "":
		return refused("NIC %s, on which NIC %s is created, belongs to BypassNICPool %s, so this pool does not hand it out; %s.",
			conflict.Through, c.name(), pools, remedy)
	case conflict.Function != "":
		return refused("NIC %s on NIC %s belongs to BypassNICPool %s, so this pool creates no virtual functions there; %s.",
			conflict.Function, c.name(), pools, remedy)
	case conflict.Disagreement != "":
		return refused("NIC %s belongs to BypassNICPool %s, which had it first and does not share it, because %s; mend that, or %s.",
			c.name(), pools, conflict.Disagreement, remedy)
	default:
		return refused("NIC %s belongs to BypassNICPool %s, which had it first, so this pool does not hand it out; %s.",
			c.name(), pools, remedy)
	}
}
