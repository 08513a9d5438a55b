// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

func faultsOfKubelet() []fault {
	return []fault{
		{
			name: "the kubelet has the CPU manager policy none",
			harm: func(n *node) { n.edit("/etc/kubernetes/kubelet.conf", `"static"`, `"none"`) },
			want: "kubelet.cpu-manager", says: []string{"none"},
		},
		{
			name: "the kubelet does not align",
			harm: func(n *node) { n.edit("/etc/kubernetes/kubelet.conf", `"single-numa-node"`, `"best-effort"`) },
			want: "kubelet.topology-manager", says: []string{"best-effort"},
		},
		{
			name: "the kubelet reserves no memory by NUMA node",
			harm: func(n *node) { n.edit("/etc/kubernetes/kubelet.conf", `"Static"`, `"None"`) },
			want: "kubelet.memory-manager", says: []string{"None"},
		},
	}
}

func variationsOfKubelet() []variation {
	return []variation{
		{name: "the kubelet allows other numbers of pods", change: func(n *node) { n.edit("/etc/kubernetes/kubelet.conf", `"maxPods": 250`, `"maxPods": 500`) }},
	}
}
