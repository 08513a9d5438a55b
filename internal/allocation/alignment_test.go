// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package allocation

import (
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const (
	nearZero = "0000:3b:00.0"
	nearOne  = "0000:81:00.0"
	nowhere  = "0000:c1:00.0"
)

// twoNodes is a host with four CPUs and a NIC on each of two NUMA nodes, and a NIC of which nobody knows.
func twoNodes() *topology.Topology {
	zero, one := 0, 1
	return &topology.Topology{
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: cpus.Of(0, 1, 2, 3)}, {ID: 1, CPUs: cpus.Of(4, 5, 6, 7)}},
		NICs: []topology.NIC{
			{PCIAddress: nearZero, Name: "ens1", NUMANode: &zero},
			{PCIAddress: nearOne, NUMANode: &one},
			{PCIAddress: nowhere, Name: "ens3"},
		},
	}
}

func pinned(kind string, nodes ...int) MemoryBlock {
	return MemoryBlock{Type: kind, Bytes: 1 << 20, NUMANodes: nodes}
}

func TestAlignment(t *testing.T) {
	const (
		shared = "no CPUs of its own (that takes whole CPUs, with limits equal to requests in every container of the pod)"
		free   = "no pinned memory (that takes memoryManagerPolicy Static, with limits equal to requests in every container of the pod)"
	)
	cases := map[string]struct {
		cpus   cpus.Set
		nics   []string
		memory []MemoryBlock
		// single is a host with one NUMA node.
		single      bool
		want        v1alpha1.Alignment
		wantMessage string
	}{
		"all on one NUMA node": {
			cpus: cpus.Of(4, 5), nics: []string{nearOne}, memory: []MemoryBlock{pinned("memory", 1), pinned("hugepages-2Mi", 1)},
			want: v1alpha1.AlignmentAligned,
		},
		"the NIC is elsewhere": {
			cpus: cpus.Of(4, 5), nics: []string{nearZero}, memory: []MemoryBlock{pinned("memory", 1), pinned("hugepages-2Mi", 1)},
			want: v1alpha1.AlignmentSplit, wantMessage: "CPUs 4-5 on NUMA node 1, hugepages-2Mi on NUMA node 1, memory on NUMA node 1, NIC ens1 (0000:3b:00.0) on NUMA node 0",
		},
		"the hugepages are elsewhere": {
			cpus: cpus.Of(4), nics: []string{nearOne}, memory: []MemoryBlock{pinned("hugepages-1Gi", 0)},
			want: v1alpha1.AlignmentSplit, wantMessage: "CPU 4 on NUMA node 1, hugepages-1Gi on NUMA node 0, NIC 0000:81:00.0 on NUMA node 1",
		},
		"CPUs of both": {
			cpus: cpus.Of(3, 4), nics: []string{nearOne}, memory: []MemoryBlock{pinned("memory", 1)},
			want: v1alpha1.AlignmentSplit, wantMessage: "CPUs 3-4 on NUMA nodes 0 and 1, memory on NUMA node 1, NIC 0000:81:00.0 on NUMA node 1",
		},
		"memory of both": {
			cpus: cpus.Of(4), nics: []string{nearOne}, memory: []MemoryBlock{pinned("memory", 1), pinned("memory", 1, 0)},
			want: v1alpha1.AlignmentSplit, wantMessage: "CPU 4 on NUMA node 1, memory on NUMA nodes 0 and 1, NIC 0000:81:00.0 on NUMA node 1",
		},
		"two NICs": {
			cpus: cpus.Of(4), nics: []string{nearOne, nearZero}, memory: []MemoryBlock{pinned("memory", 1)},
			want:        v1alpha1.AlignmentSplit,
			wantMessage: "CPU 4 on NUMA node 1, memory on NUMA node 1, NIC ens1 (0000:3b:00.0) on NUMA node 0, NIC 0000:81:00.0 on NUMA node 1",
		},
		"shares of one NIC": {
			cpus: cpus.Of(4), nics: []string{nearOne + "-0", nearOne + "-11"}, memory: []MemoryBlock{pinned("memory", 1)},
			want: v1alpha1.AlignmentAligned,
		},
		"no CPUs of its own": {
			nics: []string{nearOne}, memory: []MemoryBlock{pinned("memory", 1)}, want: v1alpha1.AlignmentUnknown, wantMessage: shared,
		},
		"no pinned memory": {
			cpus: cpus.Of(4), nics: []string{nearOne}, memory: []MemoryBlock{{Type: "memory", NUMANodes: []int{1}}},
			want: v1alpha1.AlignmentUnknown, wantMessage: free,
		},
		"memory that is somewhere": {
			cpus: cpus.Of(4), nics: []string{nearOne}, memory: []MemoryBlock{pinned("hugepages-2Mi")},
			want: v1alpha1.AlignmentUnknown, wantMessage: "hugepages-2Mi on a NUMA node that the kubelet does not report",
		},
		"a NIC that is somewhere": {
			cpus: cpus.Of(4), nics: []string{nowhere}, memory: []MemoryBlock{pinned("memory", 1)},
			want: v1alpha1.AlignmentUnknown, wantMessage: "NIC ens3 (0000:c1:00.0) on a NUMA node that the firmware does not report",
		},
		"CPUs that the host does not list": {
			cpus: cpus.Of(4, 9), nics: []string{nearOne}, memory: []MemoryBlock{pinned("memory", 1)},
			want: v1alpha1.AlignmentUnknown, wantMessage: "CPUs 4,9 on a NUMA node that the host does not report",
		},
		"what is known is apart already": {
			cpus: cpus.Of(4), nics: []string{nearZero}, want: v1alpha1.AlignmentSplit,
			wantMessage: "CPU 4 on NUMA node 1, " + free + ", NIC ens1 (0000:3b:00.0) on NUMA node 0",
		},
		"one NUMA node": {nics: []string{nowhere}, single: true, want: v1alpha1.AlignmentAligned},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			machine := twoNodes()
			if tc.single {
				machine.NUMANodes = machine.NUMANodes[:1]
			}
			container := Container{CPUs: tc.cpus, Memory: tc.memory, Devices: []HeldDevices{{Resource: "lowlatency.dev/x2", IDs: tc.nics}}}
			got, message := Alignment(container, machine)
			if got != tc.want || message != tc.wantMessage {
				t.Errorf("got %s, %s\nwant %s, %s", got, message, tc.want, tc.wantMessage)
			}
		})
	}
}

// TestAlignmentOfClaims: a NIC of a claim counts as one of the device plugin does; devices of other drivers do not.
func TestAlignmentOfClaims(t *testing.T) {
	const name = "0000-3b-00-0"
	for driver, want := range map[string]v1alpha1.Alignment{
		"x2.bypass.lowlatency.dev": v1alpha1.AlignmentSplit, "nic.example.com": v1alpha1.AlignmentUnknown,
	} {
		container := Container{CPUs: cpus.Of(4), Claimed: []ClaimedDevice{{Driver: driver, Device: name}}}
		got, message := Alignment(container, twoNodes())
		if got != want || strings.Contains(message, nearZero) != (want == v1alpha1.AlignmentSplit) {
			t.Errorf("%s: %s, %s", driver, got, message)
		}
	}
}
