// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"net/netip"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// ManagementInterfaces returns the interfaces that carry the node's own traffic, each with what it carries in
// words such as "the default route" or "the node's address 10.0.0.5": the interface of a default route of
// IPv4 or IPv6, the one whose directly connected network holds an address by which the cluster knows the
// node, and all interfaces below them (the ports of a bond or bridge, the parent of a VLAN). An absent fact
// gives none: the caller must not take that as a proof that a NIC is free.
func ManagementInterfaces(b *host.Bypass, addresses []netip.Addr) map[string]string { return nil }
