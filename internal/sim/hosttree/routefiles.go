// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import "fmt"

// NodeAddress is the address of a host with a default route; its network is 10.0.0.0/24 with the gateway 10.0.0.1.
const NodeAddress = "10.0.0.10"

// writeRoutes writes the routes of the host's network namespace, as net/ipv4/fib_trie.c and net/ipv6/route.c do.
func (m Machine) writeRoutes(t *tree) {
	const folder = "/proc/1/net"
	const none, loopback = "00000000000000000000000000000000", "00000000000000000000000000000001"
	routes := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
	routes6 := fmt.Sprintf("%s 80 %s 00 %s 00000100 00000002 00000000 80200001       lo\n", loopback, none, none) +
		fmt.Sprintf("%s 00 %s 00 %s ffffffff 00000001 00000000 00200200       lo\n", none, none, none)
	if nic := m.DefaultRoute; nic != "" {
		routes += fmt.Sprintf("%-127s\n", nic+"\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0") +
			fmt.Sprintf("%-127s\n", nic+"\t0000000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0")
		routes6 += fmt.Sprintf("fe800000000000000000000000000000 40 %s 00 %s 00000100 00000001 00000000 00000001 %8s\n", none, none, nic)
	}
	t.text(folder+"/route", routes)
	t.text(folder+"/ipv6_route", routes6)
}
