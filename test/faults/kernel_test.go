// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

func faultsOfKernel() []fault {
	return []fault{
		{
			name: "the node came up without its arguments",
			harm: func(n *node) { n.reboot(func([]string) []string { return nil }) },
			want: "kernel.command-line", says: []string{"isolcpus"},
		},
		{
			name: "one argument is missing",
			harm: func(n *node) { n.reboot(argument("nohz_full")) },
			want: "kernel.command-line", says: []string{"nohz_full"},
		},
		{
			name: "isolcpus is given twice, and the kernel keeps the first",
			harm: func(n *node) {
				n.reboot(argument("isolcpus", "isolcpus=managed_irq,domain,1", "isolcpus="+n.planned("isolcpus")))
			},
			want: "kernel.command-line", says: []string{"isolcpus"},
		},
		{
			name: "the real-time kernel was planned, the other runs", on: []string{xeonRT, epycRT},
			harm: func(n *node) {
				n.rendered.Spec.KernelType = ""
				n.reboot(more())
			},
			want: "kernel.type", says: []string{"not RealTime"},
		},
	}
}

func variationsOfKernel() []variation {
	return []variation{
		{name: "nothing changes", on: allMachines()},
		{
			name: "the flags of isolcpus have another order",
			change: func(n *node) {
				n.reboot(argument("isolcpus", "isolcpus=managed_irq,domain,"+n.plan.CPUs.Isolated.String()))
			},
		},
		{
			name:   "somebody added an argument that changes nothing",
			change: func(n *node) { n.reboot(more("console=ttyS0,115200n8")) },
		},
	}
}
