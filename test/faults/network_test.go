// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

func faultsOfNetwork() []fault {
	return []fault{
		{
			name: "a receive queue steers packets to an isolated CPU",
			harm: func(n *node) {
				n.put("/sys/class/net/"+n.otherNIC()+"/queues/rx-0/rps_cpus", n.plan.CPUs.Isolated.Mask()+"\n")
			},
			want: "nic.receive-steering",
		},
		{
			name: "packets follow programs",
			harm: func(n *node) { n.write("/proc/sys/net/core/rps_sock_flow_entries", "32768") },
			want: "net.flow-steering",
		},
	}
}

func variationsOfNetwork() []variation {
	return []variation{
		{
			name: "a receive queue steers packets to housekeeping CPUs",
			change: func(n *node) {
				n.put("/sys/class/net/"+n.otherNIC()+"/queues/rx-0/rps_cpus", n.plan.CPUs.Housekeeping.Mask()+"\n")
			},
		},
	}
}
