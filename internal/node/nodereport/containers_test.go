// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package nodereport

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// twoNodes has CPUs 0-3 on NUMA node 0 and 4-7 on 1, of which 7 is off.
func twoNodes() *topology.Topology {
	t := &topology.Topology{
		Online: cpus.Of(0, 1, 2, 3, 4, 5, 6), Offline: cpus.Of(7),
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: cpus.Of(0, 1, 2, 3)}, {ID: 1, CPUs: cpus.Of(4, 5, 6)}},
	}
	for id := range 8 {
		t.Cores = append(t.Cores, topology.Core{CPUs: cpus.Of(id), NUMANode: id / 4})
	}
	return t
}

func TestOfCPUManagerState(t *testing.T) {
	got, err := ofCPUManagerState(`{"entries":{"0d51f1ce-7c11":{"b":"3-4","a":"1"},"x":{"c":"0"}}}`, twoNodes())
	if err != nil {
		t.Fatal(err)
	}
	uid, x := "0d51f1ce-7c11", "x"
	want := []Container{
		{UID: &x, Container: "c", CPUs: cpus.Of(0), NUMANodes: []int{0}},
		{UID: &uid, Container: "a", CPUs: cpus.Of(1), NUMANodes: []int{0}},
		{UID: &uid, Container: "b", CPUs: cpus.Of(3, 4), NUMANodes: []int{0, 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if names := got[0].Name() + " " + got[1].Name() + " " + (Container{Container: "d"}).Name(); names != "pod x…/c pod 0d51f1ce…/a d" {
		t.Error(names)
	}
	for text, want := range map[string]string{
		"{": "reading the state of the CPU manager: ", `{"entries":{"u":{"c":"a"}}}`: `CPUs of container "c" in the state of the CPU manager: `,
	} {
		if _, err := ofCPUManagerState(text, twoNodes()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzOfCPUManagerState looks for state files that make containers of nothing.
func FuzzOfCPUManagerState(f *testing.F) {
	f.Add(`{"policyName":"static","defaultCpuSet":"0","entries":{"uid":{"app":"2-3"}},"checksum":1}`)
	f.Add(`{"entries":{"":{"":""}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		containers, err := ofCPUManagerState(text, twoNodes())
		if err != nil && containers != nil {
			t.Error("an error and containers")
		}
		for _, container := range containers {
			for _, node := range container.NUMANodes {
				if node != 0 && node != 1 {
					t.Errorf("NUMA node %d does not exist", node)
				}
			}
		}
	})
}

func TestOfContainers(t *testing.T) {
	got := ofContainers([]allocation.Container{
		{Namespace: "n", Pod: "late", Name: "c", CPUs: cpus.Of(4, 5)}, {Namespace: "n", Pod: "shares", Name: "c"}, {Namespace: "n", Pod: "early", Name: "c", CPUs: cpus.Of(2)},
	}, twoNodes())
	if len(got) != 2 || got[0].Name() != "n/early/c" || got[1].Name() != "n/late/c" || !cmp.Equal(got[1].NUMANodes, []int{1}) {
		t.Errorf("got %+v", got)
	}
}

func TestOwnersOf(t *testing.T) {
	const state = `{"entries":{"uid":{"app":"2"}}}`
	owns := func(count int) []allocation.Container {
		containers := make([]allocation.Container, 0, count)
		for i := range count {
			containers = append(containers, allocation.Container{Namespace: "n", Pod: strconv.Itoa(i), Name: "c", CPUs: cpus.Of(3)})
		}
		return containers
	}
	const unknown = "which container owns which CPU is not known: "
	unreadable := host.Absent[[]allocation.Container]("kubelet.sock", "no such file")
	cases := map[string]struct {
		containers host.Fact[[]allocation.Container]
		state      host.Fact[string]
		want       int
		first      string
		problem    string
	}{
		"the kubelet tells":         {host.Known(owns(2), "kubelet.sock"), host.Known(state, "state"), 2, "n/0/c", ""},
		"nobody owns a CPU":         {host.Known(owns(0), "kubelet.sock"), host.Known(state, "state"), 0, "", ""},
		"only the state file tells": {unreadable, host.Known(state, "state"), 1, "pod uid…/app", ""},
		"nothing tells":             {unreadable, host.Absent[string]("state", "permission denied"), -1, "", unknown + "state cannot be read: permission denied"},
		"the state file is broken":  {unreadable, host.Known("{", "state"), -1, "", unknown + "reading the state of the CPU manager: unexpected end of JSON input"},
		"too many": {
			host.Known(owns(1025), "kubelet.sock"), host.Known(state, "state"), 1024, "n/0/c", "1025 containers own CPUs, of which 1024 are listed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := OwnersOf(tc.containers, tc.state, twoNodes())
			count := len(got.Containers)
			if got.Containers == nil {
				count = -1
			}
			if count != tc.want || got.ContainersProblem != tc.problem || count > 0 && got.Containers[0].Name() != tc.first {
				t.Errorf("%d containers, problem %q, %+v", count, got.ContainersProblem, got.Containers[:min(1, len(got.Containers))])
			}
		})
	}
}
