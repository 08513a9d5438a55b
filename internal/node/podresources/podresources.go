// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package podresources asks the kubelet which devices, exclusive CPUs and memory each container of its node holds:
// the PodResources service, version v1, on a unix socket. Kubelets tell the devices of ResourceClaims since Kubernetes
// 1.34. What the kubelet does not answer is an absent fact with the reason.
package podresources

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	// Socket is where the kubelet serves, on its host (kubelet: cmd/kubelet/app, --pod-resources below the root
	// directory /var/lib/kubelet).
	Socket = "/var/lib/kubelet/pod-resources/kubelet.sock"
	// timeout bounds one question, so that a kubelet that hangs does not hold up a pass over the host.
	timeout = 5 * time.Second
	// maximumAnswer is the size in bytes of the largest answer that is read: that which the kubelet's own clients
	// allow (kubelet: pkg/kubelet/apis/podresources, 16 MiB).
	maximumAnswer = 16 << 20

	// maximumCPUs and maximumNUMANodes bound the numbers in an answer; the kernel knows no higher ones.
	maximumCPU      = cpus.MaxCPU
	maximumNUMANode = v1alpha1.MaxNUMANodeID
)

// Allocatable is what the kubelet may give to containers.
type Allocatable struct {
	// Devices of device plugins that are healthy, one entry for each resource and NUMA node.
	Devices []allocation.HeldDevices
	// CPUs that the kubelet may give to containers.
	CPUs cpus.Set
	// Memory of the NUMA nodes that the memory manager may pin; empty unless its policy is Static.
	Memory []allocation.MemoryBlock
}

// List returns the containers of the node with what they hold. The fact is absent when the kubelet does not serve
// at the socket, does not answer in time, or answers nonsense.
func List(ctx context.Context, socket string) host.Fact[[]allocation.Container] {
	return ask(ctx, socket, func(ctx context.Context, kubelet podresourcesv1.PodResourcesListerClient) ([]allocation.Container, error) {
		answer, err := kubelet.List(ctx, &podresourcesv1.ListPodResourcesRequest{})
		if err != nil {
			return nil, err
		}
		return containers(answer)
	})
}

// GetAllocatable returns what the kubelet may give to containers. It is absent for the same reasons as List.
func GetAllocatable(ctx context.Context, socket string) host.Fact[Allocatable] {
	return ask(ctx, socket, func(ctx context.Context, kubelet podresourcesv1.PodResourcesListerClient) (Allocatable, error) {
		answer, err := kubelet.GetAllocatableResources(ctx, &podresourcesv1.AllocatableResourcesRequest{})
		if err != nil {
			return Allocatable{}, err
		}
		return allocatable(answer)
	})
}

// ask puts one question to the kubelet over a connection of its own: a kubelet that was restarted has a new socket.
func ask[T any](ctx context.Context, socket string, question func(context.Context, podresourcesv1.PodResourcesListerClient) (T, error)) host.Fact[T] {
	if _, err := os.Stat(socket); err != nil {
		return host.Absent[T](socket, reason(err))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := grpc.NewClient("unix:"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maximumAnswer)))
	if err != nil {
		return host.Absent[T](socket, reason(err))
	}
	// Nothing was written, so nothing can be lost on closing.
	defer func() { _ = connection.Close() }()
	answer, err := question(ctx, podresourcesv1.NewPodResourcesListerClient(connection))
	if err != nil {
		return host.Absent[T](socket, reason(err))
	}
	return host.Known(answer, socket)
}

// reason says in a few words why the kubelet gave no answer.
func reason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "no such file: the kubelet does not serve PodResources here"
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err.Error()
	}
	if answer, ok := status.FromError(err); ok {
		return fmt.Sprintf("the kubelet did not answer: %s: %s", answer.Code(), answer.Message())
	}
	return err.Error()
}

func containers(answer *podresourcesv1.ListPodResourcesResponse) ([]allocation.Container, error) {
	var all []allocation.Container
	for _, pod := range answer.GetPodResources() {
		for _, container := range pod.GetContainers() {
			converted, err := containerOf(pod, container)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", converted, err)
			}
			all = append(all, converted)
		}
	}
	return all, nil
}

// containerOf converts one container. With resources of the whole pod, a container without CPUs or memory of its
// own has those of the pod.
func containerOf(pod *podresourcesv1.PodResources, container *podresourcesv1.ContainerResources) (allocation.Container, error) {
	converted := allocation.Container{
		Namespace: pod.GetNamespace(), Pod: pod.GetName(), Name: container.GetName(), Claimed: claimed(container.GetDynamicResources()),
	}
	ids, memory := container.GetCpuIds(), container.GetMemory()
	if len(ids) == 0 {
		ids = pod.GetCpuIds()
	}
	if len(memory) == 0 {
		memory = pod.GetMemory()
	}
	var err error
	converted.CPUs, converted.Devices, converted.Memory, err = convert(ids, container.GetDevices(), memory)
	return converted, err
}

// claimed are the devices of a container's claims. Claims for extended resources are among them.
func claimed(claims []*podresourcesv1.DynamicResource) []allocation.ClaimedDevice {
	var devices []allocation.ClaimedDevice
	for _, claim := range claims {
		for _, device := range claim.GetClaimResources() {
			devices = append(devices, allocation.ClaimedDevice{Driver: device.GetDriverName(), Device: device.GetDeviceName()})
		}
	}
	return devices
}

func allocatable(answer *podresourcesv1.AllocatableResourcesResponse) (Allocatable, error) {
	var converted Allocatable
	var err error
	converted.CPUs, converted.Devices, converted.Memory, err = convert(answer.GetCpuIds(), answer.GetDevices(), answer.GetMemory())
	return converted, err
}

func convert(ids []int64, devices []*podresourcesv1.ContainerDevices, memory []*podresourcesv1.ContainerMemory) (
	cpus.Set, []allocation.HeldDevices, []allocation.MemoryBlock, error,
) {
	set, err := cpuSet(ids)
	if err != nil {
		return cpus.Set{}, nil, nil, err
	}
	var held []allocation.HeldDevices
	for _, device := range devices {
		nodes, err := numaNodes(device.GetTopology())
		if err != nil {
			return cpus.Set{}, nil, nil, fmt.Errorf("resource %s: %w", device.GetResourceName(), err)
		}
		held = append(held, allocation.HeldDevices{Resource: device.GetResourceName(), IDs: device.GetDeviceIds(), NUMANodes: nodes})
	}
	var blocks []allocation.MemoryBlock
	for _, block := range memory {
		nodes, err := numaNodes(block.GetTopology())
		if err != nil {
			return cpus.Set{}, nil, nil, fmt.Errorf("%s: %w", block.GetMemoryType(), err)
		}
		blocks = append(blocks, allocation.MemoryBlock{Type: block.GetMemoryType(), Bytes: block.GetSize(), NUMANodes: nodes})
	}
	return set, held, blocks, nil
}

func cpuSet(ids []int64) (cpus.Set, error) {
	list := make([]int, 0, len(ids))
	for _, id := range ids {
		if id < 0 || id > maximumCPU {
			return cpus.Set{}, fmt.Errorf("the kubelet names CPU %d, which cannot be", id)
		}
		list = append(list, int(id))
	}
	return cpus.Of(list...), nil
}

// numaNodes are those of a topology. The kubelet gives none, or -1, for what is on no NUMA node in particular.
func numaNodes(topology *podresourcesv1.TopologyInfo) ([]int, error) {
	var nodes []int
	for _, node := range topology.GetNodes() {
		switch id := node.GetID(); {
		case id == -1:
		case id < 0 || id > maximumNUMANode:
			return nil, fmt.Errorf("the kubelet names NUMA node %d, which cannot be", id)
		default:
			nodes = append(nodes, int(id))
		}
	}
	return nodes, nil
}
