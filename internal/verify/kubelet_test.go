// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// configured changes the text of the kubelet's configuration.
func configured(old, replacement string) func(fixture) {
	return func(f fixture) {
		f.facts.Kubelet.Config = known(strings.Replace(f.facts.Kubelet.Config.Value, old, replacement, 1))
	}
}

func withoutConfiguration(f fixture) {
	f.facts.Kubelet.Config = host.Absent[string]("/etc/kubernetes/kubelet.conf", "no such file")
}

func kubeletCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"kubelet.cpu-manager": cpuManagerCases(),
		"kubelet.topology-manager": {
			"as planned": {want: passes},
			"left alone": {change: func(f fixture) { f.plan.Kubelet.TopologyManagerPolicy = "" }, want: doesNotApply},
			"another policy": {
				change: configured("single-numa-node", "best-effort"),
				want:   fails, wantMessage: "the kubelet's topologyManagerPolicy is best-effort, not single-numa-node",
			},
			"its defaults": {
				change: configured("topologyManagerPolicy: single-numa-node\ntopologyManagerScope: pod\n", ""),
				want:   fails, wantMessage: "the kubelet's topologyManagerPolicy is none, not single-numa-node; " +
					"the kubelet's topologyManagerScope is container, not pod",
			},
			"an option is missing": {
				change: func(f fixture) {
					f.plan.Kubelet.TopologyManagerPolicyOptions = map[string]string{"prefer-closest-numa-nodes": "true"}
				},
				want: fails, wantMessage: "the kubelet's topologyManagerPolicyOptions.prefer-closest-numa-nodes is empty, not true",
			},
			"no file": {change: withoutConfiguration, want: isUnknown, wantMessage: "/etc/kubernetes/kubelet.conf"},
			"not a configuration": {
				change: func(f fixture) { f.facts.Kubelet.Config = host.Known("{", "/etc/kubernetes/kubelet.conf") },
				want:   isUnknown, wantMessage: "not a KubeletConfiguration",
			},
		},
		"kubelet.memory-manager": {
			"as planned": {want: passes},
			"left alone": {change: func(f fixture) { f.plan.Kubelet.MemoryManagerPolicy = "" }, want: doesNotApply},
			"none as planned": {
				change: func(f fixture) {
					f.plan.Kubelet.MemoryManagerPolicy = "None"
					configured("memoryManagerPolicy: Static", "")(f)
					f.facts.Kubelet.MemoryManagerState = absent[string]("memory_manager_state")
				},
				want: passes,
			},
			"another policy": {
				change: configured("memoryManagerPolicy: Static", "memoryManagerPolicy: None"),
				want:   fails, wantMessage: "the kubelet's memoryManagerPolicy is None, not Static",
			},
			"another amount": {
				change: configured("1153433600", "500Mi"),
				want:   fails, wantMessage: "the kubelet's reservedMemory of NUMA node 0 (memory) is 500Mi, not 1100Mi",
			},
			"hugepages that the plan lacks": {
				change: configured("memory: 1153433600", "memory: 1100Mi, hugepages-1Gi: 4Gi, hugepages-2Mi: 0"),
				want:   fails, wantMessage: "the kubelet reserves 4Gi of hugepages-1Gi on NUMA node 0, which the plan does without",
			},
			"memory of a NUMA node that the plan leaves alone": {
				change: configured("]\n", ", {numaNode: 1, limits: {memory: 1Gi}}]\n"),
				want:   fails, wantMessage: "the kubelet reserves 1Gi of memory on NUMA node 1, which the plan does without",
			},
			"nothing reserved": {
				change: configured("reservedMemory", "ignored"),
				want:   fails, wantMessage: "the kubelet's reservedMemory of NUMA node 0 (memory) is 0, not 1100Mi",
			},
			"a state of another policy": {
				change: func(f fixture) { f.facts.Kubelet.MemoryManagerState = known(`{"policyName":"None"}`) },
				want:   fails, wantMessage: "the kubelet's memory manager state policy is None, not Static",
			},
			"no file": {change: withoutConfiguration, want: isUnknown, wantMessage: "/etc/kubernetes/kubelet.conf"},
			"no state": {
				change: func(f fixture) { f.facts.Kubelet.MemoryManagerState = absent[string]("memory_manager_state") },
				want:   isUnknown, wantMessage: "memory_manager_state",
			},
		},
	}
}

func cpuManagerCases() checkCases {
	state := func(text string) func(fixture) {
		return func(f fixture) {
			f.facts.Kubelet.CPUManagerState = host.Known(text, "/var/lib/kubelet/cpu_manager_state")
		}
	}
	return checkCases{
		"as planned": {want: passes},
		"left alone": {change: func(f fixture) { f.plan.Kubelet.CPUManagerPolicy = "" }, want: doesNotApply},
		"none as planned": {
			change: func(f fixture) {
				f.plan.Kubelet.CPUManagerPolicy, f.plan.Kubelet.CPUManagerPolicyOptions = "none", nil
				configured("cpuManagerPolicy: static", "")(f)
				f.facts.Kubelet.CPUManagerState = absent[string]("cpu_manager_state")
			},
			want: passes,
		},
		"another policy": {
			change: configured("cpuManagerPolicy: static", "cpuManagerPolicy: none"),
			want:   fails, wantMessage: "the kubelet's cpuManagerPolicy is none, not static",
		},
		"an option is missing": {
			change: configured("full-pcpus-only: \"true\"", ""),
			want:   fails, wantMessage: "the kubelet's cpuManagerPolicyOptions.full-pcpus-only is empty, not true",
		},
		"other CPUs are reserved": {
			change: configured("reservedSystemCPUs: 0,1,4,5", "reservedSystemCPUs: 0-1"),
			want:   fails, wantMessage: "the kubelet's reservedSystemCPUs is 0-1, not 0-1,4-5",
		},
		"reserved CPUs are left alone": {
			change: func(f fixture) {
				f.plan.Kubelet.ReservedSystemCPUs = ""
				configured("reservedSystemCPUs: 0,1,4,5", "reservedSystemCPUs: 0-1")(f)
			},
			want: passes,
		},
		"a state of another policy": {
			change: state(`{"policyName":"none","defaultCpuSet":""}`),
			want:   fails, wantMessage: "the kubelet's CPU manager state policy is none, not static",
		},
		"a state of another partition": {
			change: state(`{"policyName":"static","defaultCpuSet":"0-5"}`),
			want:   fails, wantMessage: "the kubelet does not know isolated CPUs 6-7",
		},
		"CPUs of the data plane are not for pods": {
			change: func(f fixture) {
				f.plan.CPUs.DataPlane = list("7")
				state(`{"policyName":"static","defaultCpuSet":"0-6"}`)(f)
			},
			want: passes,
		},
		"a pod owns housekeeping CPUs": {
			change: state(`{"policyName":"static","defaultCpuSet":"2-7","entries":{"pod-a":{"engine":"1-3"}}}`),
			want:   fails, wantMessage: "container engine of pod pod-a owns CPU 1, which is not isolated for pods",
		},
		"unreadable CPUs of a pod": {
			change: state(`{"policyName":"static","defaultCpuSet":"2-7","entries":{"pod-a":{"engine":"x"}}}`),
			want:   isUnknown, wantMessage: "cpu_manager_state",
		},
		"an unreadable default set": {
			change: state(`{"policyName":"static","defaultCpuSet":"x"}`), want: isUnknown, wantMessage: "cpu_manager_state",
		},
		"not a state": {change: state("{"), want: isUnknown, wantMessage: "not the kubelet's state"},
		"no file":     {change: withoutConfiguration, want: isUnknown, wantMessage: "/etc/kubernetes/kubelet.conf"},
		"no state": {
			change: func(f fixture) { f.facts.Kubelet.CPUManagerState = absent[string]("cpu_manager_state") },
			want:   isUnknown, wantMessage: "cpu_manager_state",
		},
	}
}
