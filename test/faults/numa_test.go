// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import "github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"

func faultsOfNUMA() []fault {
	return []fault{
		{
			name: "the PCIe link of a bypass NIC lost lanes",
			harm: func(n *node) { n.must(hosttree.TrainLink(n.host.Dir, n.bypassNIC(), "8.0 GT/s PCIe", 4)) },
			want: "nic.pcie-link", says: []string{"4"},
		},
	}
}

func variationsOfNUMA() []variation {
	return []variation{
		{name: "the cable of a bypass NIC is out", change: func(n *node) { n.must(hosttree.SetCarrier(n.host.Dir, n.bypassNIC(), false)) }},
	}
}
