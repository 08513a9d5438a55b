// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fakekubelet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Container names a container of a pod.
type Container struct{ Namespace, Pod, Name string }

// SetPods replaces what the PodResources service lists.
func (k *Kubelet) SetPods(pods ...*podresources.PodResources) {
	k.update(func() { k.pods = slices.Clone(pods) })
}

// SetAllocatable sets the CPUs and the memory that GetAllocatableResources tells besides the devices.
func (k *Kubelet) SetAllocatable(cpus []int64, memory ...*podresources.ContainerMemory) {
	k.update(func() { k.cpus, k.memory = slices.Clone(cpus), slices.Clone(memory) })
}

// Call calls the plugin that serves a resource, as the kubelet does.
func (k *Kubelet) Call(resource string) (deviceplugin.DevicePluginClient, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	endpoints := k.endpoints[resource]
	if len(endpoints) == 0 {
		return nil, fmt.Errorf("unknown Device Plugin %s", resource)
	}
	return endpoints[len(endpoints)-1].client, nil
}

// Admit gives a container a number of units of a resource: those that the plugin prefers among the healthy ones that
// no container holds. The PodResources service lists them from then on.
func (k *Kubelet) Admit(ctx context.Context, holder Container, resource string, count int) ([]string, *deviceplugin.ContainerAllocateResponse, error) {
	plugin, err := k.Call(resource)
	if err != nil {
		return nil, nil, err
	}
	free := k.free(resource)
	if len(free) < count {
		return nil, nil, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource, count, len(free))
	}
	preferred, err := plugin.GetPreferredAllocation(ctx, &deviceplugin.PreferredAllocationRequest{
		ContainerRequests: []*deviceplugin.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: free, AllocationSize: int32(count)},
		},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
	}
	ids := preferred.GetContainerResponses()[0].GetDeviceIDs()
	answer, err := k.Allocate(ctx, holder, resource, ids...)
	return ids, answer, err
}

// Allocate gives a container exactly these units.
func (k *Kubelet) Allocate(ctx context.Context, holder Container, resource string, ids ...string) (*deviceplugin.ContainerAllocateResponse, error) {
	plugin, err := k.Call(resource)
	if err != nil {
		return nil, err
	}
	answer, err := plugin.Allocate(ctx, &deviceplugin.AllocateRequest{
		ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil {
		return nil, fmt.Errorf("allocating %s: %w", resource, err)
	}
	k.update(func() { k.hold(holder, resource, ids) })
	return answer.GetContainerResponses()[0], nil
}

// Release removes a pod.
func (k *Kubelet) Release(namespace, pod string) {
	k.update(func() {
		k.pods = slices.DeleteFunc(k.pods, func(p *podresources.PodResources) bool {
			return p.GetNamespace() == namespace && p.GetName() == pod
		})
	})
}

func (k *Kubelet) hold(holder Container, resource string, ids []string) {
	held := &podresources.ContainerResources{Name: holder.Name, Devices: k.containerDevices(resource, ids)}
	for _, pod := range k.pods {
		if pod.GetNamespace() == holder.Namespace && pod.GetName() == holder.Pod {
			pod.Containers = append(pod.Containers, held)
			return
		}
	}
	k.pods = append(k.pods, &podresources.PodResources{
		Namespace: holder.Namespace, Name: holder.Pod, Containers: []*podresources.ContainerResources{held},
	})
}

// free are the healthy units that no container holds.
func (k *Kubelet) free(resource string) []string {
	healthy := k.Allocatable(resource)
	k.mutex.Lock()
	defer k.mutex.Unlock()
	held := map[string]bool{}
	for _, pod := range k.pods {
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				for _, id := range devices.GetDeviceIds() {
					held[devices.GetResourceName()+" "+id] = true
				}
			}
		}
	}
	return slices.DeleteFunc(healthy, func(id string) bool { return held[resource+" "+id] })
}

// containerDevices lists one entry for each device, as the kubelet does (podDevices.getContainerDevices and
// ContainerDevicesFromResourceDeviceInstances).
func (k *Kubelet) containerDevices(resource string, ids []string) []*podresources.ContainerDevices {
	known := map[string]*deviceplugin.Device{}
	for _, device := range k.devices[resource] {
		known[device.GetID()] = device
	}
	devices := make([]*podresources.ContainerDevices, 0, len(ids))
	for _, id := range ids {
		devices = append(devices, &podresources.ContainerDevices{
			ResourceName: resource, DeviceIds: []string{id}, Topology: topologyOf(known[id]),
		})
	}
	return devices
}

func topologyOf(device *deviceplugin.Device) *podresources.TopologyInfo {
	if device.GetTopology() == nil {
		return nil
	}
	info := &podresources.TopologyInfo{}
	for _, node := range device.GetTopology().GetNodes() {
		info.Nodes = append(info.Nodes, &podresources.NUMANode{ID: node.GetID()})
	}
	return info
}

type podResourcesServer struct {
	podresources.UnsafePodResourcesListerServer

	kubelet *Kubelet
}

// List lists the pods with their devices, CPUs and memory.
func (s *podResourcesServer) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	k := s.kubelet
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return &podresources.ListPodResourcesResponse{PodResources: copies(k.pods)}, nil
}

// GetAllocatableResources lists the healthy devices of all resources, and what SetAllocatable has set.
func (s *podResourcesServer) GetAllocatableResources(
	context.Context, *podresources.AllocatableResourcesRequest,
) (*podresources.AllocatableResourcesResponse, error) {
	k := s.kubelet
	k.mutex.Lock()
	resources := slices.Sorted(maps.Keys(k.devices))
	answer := &podresources.AllocatableResourcesResponse{CpuIds: slices.Clone(k.cpus), Memory: slices.Clone(k.memory)}
	k.mutex.Unlock()
	for _, resource := range resources {
		healthy := k.Allocatable(resource)
		k.mutex.Lock()
		answer.Devices = append(answer.Devices, k.containerDevices(resource, healthy)...)
		k.mutex.Unlock()
	}
	return answer, nil
}

// Get lists one pod.
func (s *podResourcesServer) Get(_ context.Context, request *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	k := s.kubelet
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for _, pod := range k.pods {
		if pod.GetNamespace() == request.GetPodNamespace() && pod.GetName() == request.GetPodName() {
			return &podresources.GetPodResourcesResponse{PodResources: copies([]*podresources.PodResources{pod})[0]}, nil
		}
	}
	return nil, fmt.Errorf("pod %s in namespace %s not found", request.GetPodName(), request.GetPodNamespace())
}

// copies keeps what is sent apart from what a test changes meanwhile; the containers of a pod are only added to.
func copies(pods []*podresources.PodResources) []*podresources.PodResources {
	copied := make([]*podresources.PodResources, 0, len(pods))
	for _, pod := range pods {
		copied = append(copied, &podresources.PodResources{
			Namespace: pod.GetNamespace(), Name: pod.GetName(), Containers: slices.Clone(pod.GetContainers()),
			CpuIds: pod.GetCpuIds(), Memory: pod.GetMemory(),
		})
	}
	return copied
}
