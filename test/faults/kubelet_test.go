// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

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
		{
			name: "the kubelet keeps hugepages of a NUMA node from pods",
			harm: func(n *node) { n.reserve(0, "hugepages-2Mi", "200Mi") },
			want: "kubelet.memory-manager", says: []string{"reserves 200Mi of hugepages-2Mi on NUMA node 0, which the plan does without"},
		},
		{
			name: "the kubelet reserves less memory of a NUMA node",
			harm: func(n *node) { n.reserve(0, "memory", "64Mi") },
			want: "kubelet.memory-manager", says: []string{"reservedMemory of NUMA node 0 (memory) is 64Mi, not "},
		},
		{
			name: "the kubelet reserves memory of a NUMA node that the plan leaves alone", on: []string{xeon, epyc},
			harm: func(n *node) { n.reserve(1, "memory", "64Mi") },
			want: "kubelet.memory-manager", says: []string{"reserves 64Mi of memory on NUMA node 1, which the plan does without"},
		},
		{
			name: "another file lets the platform's pods run everywhere", on: []string{xeonPartitioned},
			harm: func(n *node) { n.put("/etc/crio/crio.conf.d/99-workload-pinning.conf", platformPods("")) },
			want: "pod.platform-cpus", says: []string{"no CPUs of their own: they run on every CPU"},
		},
		{
			name: "another file lets the platform's pods run on an isolated CPU", on: []string{xeonPartitioned},
			harm: func(n *node) {
				n.put("/etc/crio/crio.conf.d/99-z.conf", platformPods(n.plan.CPUs.Housekeeping.Union(cpus.Of(n.isolated())).String()))
			},
			want: "pod.platform-cpus", says: []string{"run on CPU {cpu}, by /etc/crio/crio.conf.d/99-z.conf"},
		},
		{
			name: "the kubelet's file about the platform's pods is gone", on: []string{xeonPartitioned},
			harm: func(n *node) { n.remove(host.PlatformPodsFile) },
			want: "kubelet.platform-pods", says: []string{host.PlatformPodsFile + " is missing"},
		},
	}
}

// reserve lets the kubelet's configuration keep an amount of a resource of a NUMA node from pods.
func (n *node) reserve(numaNode int32, resource corev1.ResourceName, amount string) {
	n.t.Helper()
	const file = "/etc/kubernetes/kubelet.conf"
	var config kubeletv1beta1.KubeletConfiguration
	n.must(yaml.Unmarshal([]byte(n.text(file)), &config))
	at := slices.IndexFunc(config.ReservedMemory, func(r kubeletv1beta1.MemoryReservation) bool { return r.NumaNode == numaNode })
	if at < 0 {
		at = len(config.ReservedMemory)
		config.ReservedMemory = append(config.ReservedMemory, kubeletv1beta1.MemoryReservation{NumaNode: numaNode, Limits: corev1.ResourceList{}})
	}
	config.ReservedMemory[at].Limits[resource] = apiresource.MustParse(amount)
	text, err := yaml.Marshal(config)
	n.must(err)
	n.put(file, string(text))
}

// platformPods is CRI-O's table about the pods of the platform.
func platformPods(cpuset string) string {
	return fmt.Sprintf("[crio.runtime.workloads.management]\nresources = { \"cpushares\" = 0, \"cpuset\" = %q }\n", cpuset)
}

func variationsOfKubelet() []variation {
	return []variation{
		{name: "the kubelet's file about the platform's pods names other CPUs, which the kubelet does not read", on: []string{xeonPartitioned}, change: func(n *node) {
			n.put(host.PlatformPodsFile, `{"management": {"cpuset": "0-1023"}}`)
		}},
		{name: "the kubelet's file about the platform's pods is that of the installation", on: []string{xeonPartitioned}, change: func(n *node) {
			n.put(host.PlatformPodsFile, "\n{\n  \"management\": {\n    \"cpuset\": \"\"\n  }\n}\n")
		}},
		{name: "the kubelet's file about the platform's pods is missing where the cluster is not partitioned", change: func(n *node) {
			if n.exists(host.PlatformPodsFile) {
				n.t.Error("the machine has the file")
			}
		}},
		{name: "the platform's pods have some housekeeping CPUs only", on: []string{xeonPartitioned}, change: func(n *node) {
			n.put("/etc/crio/crio.conf.d/99-workload-pinning.conf", platformPods(cpus.Of(n.plan.CPUs.Housekeeping.First()).String()))
		}},
		{name: "an earlier file lets the platform's pods run everywhere", on: []string{xeonPartitioned}, change: func(n *node) {
			n.put("/etc/crio/crio.conf.d/01-workload-partitioning", platformPods("0-1023"))
		}},
		{name: "the cluster is not partitioned, and CRI-O knows a workload of its own", change: func(n *node) {
			n.put("/etc/crio/crio.conf.d/50-batch.conf", "[crio.runtime.workloads.batch]\nresources = { \"cpuset\" = \"1\" }\n")
		}},
		{name: "the kubelet reserves nothing of hugepages by name", change: func(n *node) { n.reserve(0, "hugepages-2Mi", "0") }},
		{name: "the kubelet reserves nothing of a NUMA node that the plan does not name", change: func(n *node) { n.reserve(77, "memory", "0") }},
		{name: "the kubelet allows other numbers of pods", change: func(n *node) { n.edit("/etc/kubernetes/kubelet.conf", `"maxPods": 250`, `"maxPods": 500`) }},
	}
}
