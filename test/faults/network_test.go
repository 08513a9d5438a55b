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
			name: "a bond steers packets to an isolated CPU",
			harm: func(n *node) { n.put("/sys/class/net/bond0/queues/rx-0/rps_cpus", n.plan.CPUs.Isolated.Mask()+"\n") },
			want: "nic.receive-steering", says: []string{"queue 0 of interface bond0"},
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
			name: "a VLAN and the host's end of a pod's network steer packets to housekeeping CPUs",
			change: func(n *node) {
				for _, name := range []string{"vlan100", "veth1a2b3c4d"} {
					n.put("/sys/class/net/"+name+"/queues/rx-0/rps_cpus", n.plan.CPUs.Housekeeping.Mask()+"\n")
				}
			},
		},
		{
			name:   "the host's end of a pod's network has gone while it was read",
			change: func(n *node) { n.put("/sys/class/net/veth1a2b3c4d/queues/rx-0/byte_queue_limits", "") },
		},
		{
			name: "a receive queue steers packets to housekeeping CPUs",
			change: func(n *node) {
				n.put("/sys/class/net/"+n.otherNIC()+"/queues/rx-0/rps_cpus", n.plan.CPUs.Housekeeping.Mask()+"\n")
			},
		},
	}
}
