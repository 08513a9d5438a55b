// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package podresources

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// kubelet answers what a test wants it to.
type kubelet struct {
	podresourcesv1.UnimplementedPodResourcesListerServer

	list        *podresourcesv1.ListPodResourcesResponse
	allocatable *podresourcesv1.AllocatableResourcesResponse
	err         error
}

func (k *kubelet) List(context.Context, *podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	return k.list, k.err
}

func (k *kubelet) GetAllocatableResources(context.Context, *podresourcesv1.AllocatableResourcesRequest) (*podresourcesv1.AllocatableResourcesResponse, error) {
	return k.allocatable, k.err
}

// serve starts the kubelet on a socket and returns its path.
func serve(t *testing.T, k *kubelet) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresourcesv1.RegisterPodResourcesListerServer(server, k)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return socket
}

func on(nodes ...int64) *podresourcesv1.TopologyInfo {
	topology := &podresourcesv1.TopologyInfo{}
	for _, node := range nodes {
		topology.Nodes = append(topology.Nodes, &podresourcesv1.NUMANode{ID: node})
	}
	return topology
}

func pod(containers ...*podresourcesv1.ContainerResources) *podresourcesv1.PodResources {
	return &podresourcesv1.PodResources{Namespace: "trading", Name: "feed", Containers: containers}
}

func TestList(t *testing.T) {
	nic := &podresourcesv1.ContainerDevices{ResourceName: "lowlatency.dev/x2", DeviceIds: []string{"0000:3b:00.0"}, Topology: on(1)}
	pages := &podresourcesv1.ContainerMemory{MemoryType: "hugepages-2Mi", Size: 4 << 20, Topology: on(1)}
	cases := map[string]struct {
		pods       []*podresourcesv1.PodResources
		err        error
		want       []allocation.Container
		wantReason string
	}{
		"no pod": {},
		"a container with everything": {
			pods: []*podresourcesv1.PodResources{pod(&podresourcesv1.ContainerResources{
				Name: "app", CpuIds: []int64{3, 2}, Devices: []*podresourcesv1.ContainerDevices{nic}, Memory: []*podresourcesv1.ContainerMemory{pages},
			})},
			want: []allocation.Container{{
				Namespace: "trading", Pod: "feed", Name: "app", CPUs: cpus.Of(2, 3),
				Devices: []allocation.HeldDevices{{Resource: "lowlatency.dev/x2", IDs: []string{"0000:3b:00.0"}, NUMANodes: []int{1}}},
				Memory:  []allocation.MemoryBlock{{Type: "hugepages-2Mi", Bytes: 4 << 20, NUMANodes: []int{1}}},
			}},
		},
		"resources of the pod": {
			pods: []*podresourcesv1.PodResources{{
				Namespace: "trading", Name: "feed", CpuIds: []int64{4, 5, 6}, Memory: []*podresourcesv1.ContainerMemory{pages},
				Containers: []*podresourcesv1.ContainerResources{{Name: "app", CpuIds: []int64{4}}, {Name: "sidecar"}},
			}},
			want: []allocation.Container{
				{
					Namespace: "trading", Pod: "feed", Name: "app", CPUs: cpus.Of(4),
					Memory: []allocation.MemoryBlock{{Type: "hugepages-2Mi", Bytes: 4 << 20, NUMANodes: []int{1}}},
				},
				{
					Namespace: "trading", Pod: "feed", Name: "sidecar", CPUs: cpus.Of(4, 5, 6),
					Memory: []allocation.MemoryBlock{{Type: "hugepages-2Mi", Bytes: 4 << 20, NUMANodes: []int{1}}},
				},
			},
		},
		"devices without a NUMA node": {
			pods: []*podresourcesv1.PodResources{pod(&podresourcesv1.ContainerResources{Name: "app", Devices: []*podresourcesv1.ContainerDevices{
				{ResourceName: "a.example/b", DeviceIds: []string{"1"}, Topology: on(-1)}, {ResourceName: "a.example/c", DeviceIds: []string{"2"}},
			}})},
			want: []allocation.Container{{Namespace: "trading", Pod: "feed", Name: "app", Devices: []allocation.HeldDevices{
				{Resource: "a.example/b", IDs: []string{"1"}}, {Resource: "a.example/c", IDs: []string{"2"}},
			}}},
		},
		"a CPU that cannot be": {
			pods:       []*podresourcesv1.PodResources{pod(&podresourcesv1.ContainerResources{Name: "app", CpuIds: []int64{1 << 40}})},
			wantReason: "container trading/feed/app: the kubelet names CPU 1099511627776, which cannot be",
		},
		"a NUMA node that cannot be": {
			pods: []*podresourcesv1.PodResources{pod(&podresourcesv1.ContainerResources{Name: "app", Memory: []*podresourcesv1.ContainerMemory{
				{MemoryType: "memory", Topology: on(-7)},
			}})},
			wantReason: "container trading/feed/app: memory: the kubelet names NUMA node -7, which cannot be",
		},
		"a device on a NUMA node that cannot be": {
			pods: []*podresourcesv1.PodResources{pod(&podresourcesv1.ContainerResources{Name: "app", Devices: []*podresourcesv1.ContainerDevices{
				{ResourceName: "a.example/b", Topology: on(1024)},
			}})},
			wantReason: "container trading/feed/app: resource a.example/b: the kubelet names NUMA node 1024, which cannot be",
		},
		"a kubelet that refuses": {
			err:        status.Error(codes.ResourceExhausted, "rejected by rate limit"),
			wantReason: "the kubelet did not answer: ResourceExhausted: rejected by rate limit",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			socket := serve(t, &kubelet{list: &podresourcesv1.ListPodResourcesResponse{PodResources: tc.pods}, err: tc.err})
			want := host.Known(tc.want, socket)
			if tc.wantReason != "" {
				want = host.Absent[[]allocation.Container](socket, tc.wantReason)
			}
			if diff := cmp.Diff(want, List(t.Context(), socket)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListDevicesOfClaims(t *testing.T) {
	answer := &podresourcesv1.ListPodResourcesResponse{PodResources: []*podresourcesv1.PodResources{pod(&podresourcesv1.ContainerResources{
		Name: "app", DynamicResources: []*podresourcesv1.DynamicResource{
			{ClaimName: "nics", ClaimNamespace: "trading", ClaimResources: []*podresourcesv1.ClaimResource{
				{DriverName: "x2.bypass.lowlatency.dev", PoolName: "node-1", DeviceName: "0000-3b-00-0"},
				{DriverName: "gpu.example", PoolName: "node-1", DeviceName: "gpu-0"},
			}},
			{ClaimName: "empty", ClaimNamespace: "trading"},
		},
	})}}
	want := []allocation.Container{{Namespace: "trading", Pod: "feed", Name: "app", Claimed: []allocation.ClaimedDevice{
		{Driver: "x2.bypass.lowlatency.dev", Device: "0000-3b-00-0"}, {Driver: "gpu.example", Device: "gpu-0"},
	}}}
	if diff := cmp.Diff(want, List(t.Context(), serve(t, &kubelet{list: answer})).Value); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
}

func TestGetAllocatable(t *testing.T) {
	socket := serve(t, &kubelet{allocatable: &podresourcesv1.AllocatableResourcesResponse{
		CpuIds:  []int64{2, 3},
		Devices: []*podresourcesv1.ContainerDevices{{ResourceName: "lowlatency.dev/x2", DeviceIds: []string{"0000:3b:00.0"}, Topology: on(0)}},
		Memory:  []*podresourcesv1.ContainerMemory{{MemoryType: "memory", Size: 1 << 30, Topology: on(0)}},
	}})
	want := host.Known(Allocatable{
		CPUs:    cpus.Of(2, 3),
		Devices: []allocation.HeldDevices{{Resource: "lowlatency.dev/x2", IDs: []string{"0000:3b:00.0"}, NUMANodes: []int{0}}},
		Memory:  []allocation.MemoryBlock{{Type: "memory", Bytes: 1 << 30, NUMANodes: []int{0}}},
	}, socket)
	if diff := cmp.Diff(want, GetAllocatable(t.Context(), socket)); diff != "" {
		t.Error(diff)
	}
	refusing := serve(t, &kubelet{err: status.Error(codes.Unimplemented, "off")})
	if got := GetAllocatable(t.Context(), refusing); got.Known || got.Reason != "the kubelet did not answer: Unimplemented: off" {
		t.Errorf("%+v", got)
	}
}

func TestNobodyServes(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing.sock")
	if got := List(t.Context(), missing); got.Known || got.Source != missing || got.Reason != "no such file: the kubelet does not serve PodResources here" {
		t.Errorf("%+v", got)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, socket := range map[string]string{"a file": file, "a folder of a file": filepath.Join(file, "kubelet.sock")} {
		if got := List(t.Context(), socket); got.Known || got.Reason == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	huge := pod(&podresourcesv1.ContainerResources{Name: strings.Repeat("a", maximumAnswer)})
	socket := serve(t, &kubelet{list: &podresourcesv1.ListPodResourcesResponse{PodResources: []*podresourcesv1.PodResources{huge}}})
	if got := List(t.Context(), socket); got.Known || !strings.Contains(got.Reason, "ResourceExhausted") {
		t.Errorf("known: %t, reason: %.200s", got.Known, got.Reason)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := List(ended, socket); got.Known || !strings.Contains(got.Reason, "Canceled") {
		t.Errorf("known: %t, reason: %.200s", got.Known, got.Reason)
	}
}
