// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

func describeTruth(truth Truth) []string {
	number := func(fact host.Fact[int]) string {
		if !fact.Known {
			return "unknown"
		}
		return strconv.Itoa(fact.Value)
	}
	lines := make([]string, 0, len(truth.Nodes)+len(truth.Kubelet))
	for _, node := range truth.Nodes {
		reserved := make([]string, 0, len(node.Reserved))
		for _, setting := range node.Reserved {
			reserved = append(reserved, setting.String())
		}
		lines = append(lines, fmt.Sprintf("NUMA node %d: %s vectors, %s isolated; %s", node.ID, number(node.Vectors), number(node.IsolatedVectors), strings.Join(reserved, ", ")))
	}
	for _, setting := range truth.Kubelet {
		lines = append(lines, setting.String())
	}
	return lines
}

func TestTruth(t *testing.T) {
	asPlanned := []string{"cpuManagerPolicy static", "reservedSystemCPUs 0-1,4-5", "memoryManagerPolicy Static", "topologyManagerPolicy single-numa-node", "topologyManagerScope pod"}
	with := func(nodes []string, kubelet ...string) []string { return append(nodes, kubelet...) }
	cases := map[string]struct {
		change func(fixture)
		want   []string
	}{
		"as planned": {
			func(fixture) {},
			with([]string{"NUMA node 0: 2 vectors, 0 isolated; memory 1100Mi", "NUMA node 1: 0 vectors, 0 isolated; "}, asPlanned...),
		},
		"an interrupt on an isolated CPU of the other node": {
			func(f fixture) { f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list("7")) },
			with([]string{"NUMA node 0: 1 vectors, 0 isolated; memory 1100Mi", "NUMA node 1: 1 vectors, 1 isolated; "}, asPlanned...),
		},
		"another reservation": {
			func(f fixture) {
				f.plan.Kubelet.ReservedMemory = []plan.MemoryReservation{{NUMANode: 1, Limits: map[string]string{"memory": "1Gi"}}}
			},
			with([]string{"NUMA node 0: 2 vectors, 0 isolated; memory 1153433600", "NUMA node 1: 0 vectors, 0 isolated; memory 0, planned 1Gi"}, asPlanned...),
		},
		"no configuration, no affinity, no CPUs": {
			func(f fixture) {
				f.facts.Kubelet.Config = absent[string]("/etc/kubernetes/kubelet.conf")
				f.facts.Interrupts.Routes[0].EffectiveAffinity = absent[cpus.Set]("effective_affinity_list")
				f.facts.NUMANodes[1].CPUs = absent[cpus.Set]("cpulist")
			},
			[]string{
				"NUMA node 0: unknown vectors, unknown isolated; memory unknown, planned 1100Mi", "NUMA node 1: unknown vectors, unknown isolated; ",
				"cpuManagerPolicy unknown, planned static", "reservedSystemCPUs unknown, planned 0-1,4-5", "memoryManagerPolicy unknown, planned Static",
				"topologyManagerPolicy unknown, planned single-numa-node", "topologyManagerScope unknown, planned pod",
			},
		},
		"no interrupt files": {
			func(f fixture) {
				f.facts.Interrupts = host.Interrupts{Lines: absent[[]host.InterruptLine]("/proc/interrupts")}
			},
			with([]string{"NUMA node 0: unknown vectors, unknown isolated; memory 1100Mi", "NUMA node 1: unknown vectors, unknown isolated; "}, asPlanned...),
		},
		"defaults, nothing planned": {
			func(f fixture) {
				f.plan.Kubelet = plan.KubeletPlan{}
				f.facts.Kubelet.Config = known("kind: KubeletConfiguration\n")
			},
			[]string{
				"NUMA node 0: 2 vectors, 0 isolated; ", "NUMA node 1: 0 vectors, 0 isolated; ",
				"cpuManagerPolicy none", "reservedSystemCPUs empty", "memoryManagerPolicy None", "topologyManagerPolicy none", "topologyManagerScope container",
			},
		},
		"another policy": {
			configured("single-numa-node", "restricted"),
			[]string{
				"NUMA node 0: 2 vectors, 0 isolated; memory 1100Mi", "NUMA node 1: 0 vectors, 0 isolated; ",
				"cpuManagerPolicy static", "reservedSystemCPUs 0-1,4-5", "memoryManagerPolicy Static",
				"topologyManagerPolicy restricted, planned single-numa-node", "topologyManagerScope pod",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := sound()
			tc.change(f)
			if diff := cmp.Diff(tc.want, describeTruth(TruthOf(f.plan, f.facts))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
