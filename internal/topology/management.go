// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"cmp"
	"fmt"
	"net/netip"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// ManagementInterfaces returns the interfaces that carry the node's own traffic, each with what it carries in
// words such as "the default route" or "the node's address 10.0.0.5": the interface of a default route of
// IPv4 or IPv6, the one by which the node reaches the network of an address under which the cluster knows the
// node, and all interfaces below them (the ports of a bond or bridge, the parent of a VLAN). An absent fact
// gives none: the caller must not take that as a proof that a NIC is free.
func ManagementInterfaces(b *host.Bypass, addresses []netip.Addr) map[string]string {
	carried := map[string]string{}
	for _, route := range b.Networks.Value {
		if route.Destination.Bits() == 0 {
			carry(b, carried, route.Interface, "the default route")
		}
	}
	for _, address := range addresses {
		for _, name := range connected(b.Networks.Value, address.Unmap().WithZone("")) {
			carry(b, carried, name, fmt.Sprintf("the node's address %s", address))
		}
	}
	return carried
}

// connected returns the interfaces whose directly connected network holds an address; of several networks the
// smallest, as the kernel chooses.
func connected(routes []host.Route, address netip.Addr) []string {
	var names []string
	longest := 0
	for _, route := range routes {
		length := route.Destination.Bits()
		if route.Gateway.IsValid() || length < max(longest, 1) || !route.Destination.Contains(address) {
			continue
		}
		if length > longest {
			names, longest = nil, length
		}
		names = append(names, route.Interface)
	}
	return names
}

// carry notes what an interface and all below it carry. What was noted first stays.
func carry(b *host.Bypass, carried map[string]string, name, traffic string) {
	if _, known := carried[name]; known {
		return
	}
	carried[name] = traffic
	for _, below := range b.Lower[name] {
		carry(b, carried, below, traffic)
	}
}

// unknownTraffic is what a NIC may carry for all that the host tells.
func unknownTraffic(routes host.Fact[[]host.Route]) string {
	return fmt.Sprintf("perhaps the node's own traffic (%s: %s)", cmp.Or(routes.Source, "routes"), cmp.Or(routes.Reason, "not read"))
}

// MarkManagement notes in NIC.Management what the NICs carry of the node's own traffic, as
// ManagementInterfaces says. FromFacts has done so for default routes; who knows the addresses of the node calls
// it once more. What is noted already stays.
//
// Where the host does not report its routes, any NIC with an interface may carry the node's traffic. It counts as one
// that does: a NIC that is wrongly left alone can be had by letting the agent read the routes, a node that is cut
// off cannot be had back.
func MarkManagement(t *Topology, b *host.Bypass, addresses []netip.Addr) {
	carried := ManagementInterfaces(b, addresses)
	for i := range t.NICs {
		nic := &t.NICs[i]
		switch {
		case nic.Name == "" || nic.Management != "":
		case !b.Networks.Known:
			nic.Management = shorten.Value(unknownTraffic(b.Networks), v1alpha1.MaxInventoryTextLength)
		default:
			nic.Management = shorten.Value(carried[nic.Name], v1alpha1.MaxInventoryTextLength)
		}
	}
}
