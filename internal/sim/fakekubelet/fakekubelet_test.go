// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fakekubelet

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	resource = "example.com/nic"
	// pluginName is the name of the plugin's socket.
	pluginName = "p.sock"
	timeout    = 30 * time.Second
)

// plugin lists two devices, of which the second is unhealthy, and prefers the first ones.
type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
}

// GetDevicePluginOptions tells that there is a preference.
func (plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true}, nil
}

// ListAndWatch lists once.
func (plugin) ListAndWatch(_ *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: []*deviceplugin.Device{
		{ID: "b", Health: deviceplugin.Unhealthy},
		{ID: "a", Health: deviceplugin.Healthy, Topology: &deviceplugin.TopologyInfo{Nodes: []*deviceplugin.NUMANode{{ID: 1}}}},
	}}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

// GetPreferredAllocation prefers the first ones.
func (plugin) GetPreferredAllocation(
	_ context.Context, request *deviceplugin.PreferredAllocationRequest,
) (*deviceplugin.PreferredAllocationResponse, error) {
	asked := request.GetContainerRequests()[0]
	return &deviceplugin.PreferredAllocationResponse{ContainerResponses: []*deviceplugin.ContainerPreferredAllocationResponse{
		{DeviceIDs: asked.GetAvailableDeviceIDs()[:asked.GetAllocationSize()]},
	}}, nil
}

// Allocate answers with a variable.
func (plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	ids := strings.Join(request.GetContainerRequests()[0].GetDevicesIds(), ",")
	return &deviceplugin.AllocateResponse{ContainerResponses: []*deviceplugin.ContainerAllocateResponse{
		{Envs: map[string]string{"IDS": ids}},
	}}, nil
}

func start(t *testing.T) *Kubelet {
	t.Helper()
	k := New(t.TempDir())
	if err := k.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	return k
}

func serve(t *testing.T, k *Kubelet) *grpc.Server {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(k.PluginsFolder(), pluginName))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, plugin{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func register(t *testing.T, k *Kubelet, version string) error {
	t.Helper()
	client := deviceplugin.NewRegistrationClient(dial(t, filepath.Join(k.PluginsFolder(), socketName)))
	_, err := client.Register(t.Context(), &deviceplugin.RegisterRequest{Version: version, Endpoint: pluginName, ResourceName: resource})
	return err
}

func await(t *testing.T, k *Kubelet, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := k.Wait(ctx, condition); err != nil {
		t.Fatal(err)
	}
}

func TestPluginComesAndGoes(t *testing.T) {
	k := start(t)
	server := serve(t, k)
	if err := register(t, k, "v1alpha"); err == nil || !strings.Contains(err.Error(), "v1alpha") {
		t.Errorf("error of an old version is %v", err)
	}
	if err := register(t, k, deviceplugin.Version); err != nil {
		t.Fatal(err)
	}
	await(t, k, func() bool { return len(k.Devices(resource)) == 2 })
	if diff := cmp.Diff([]string{"a"}, k.Allocatable(resource)); diff != "" {
		t.Errorf("allocatable (-want +got):\n%s", diff)
	}
	server.Stop()
	await(t, k, func() bool { return k.Connected(resource) == 0 })
	if got := k.Allocatable(resource); len(k.Devices(resource)) != 2 || got != nil {
		t.Errorf("allocatable without a plugin is %v of %v", got, k.Devices(resource))
	}
	if _, err := k.Call(resource); err == nil {
		t.Error("a plugin that is gone can be called")
	}
}

func TestStartDeletesSockets(t *testing.T) {
	k := start(t)
	serve(t, k)
	file := filepath.Join(k.PluginsFolder(), "kubelet_internal_checkpoint")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Restart(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(k.PluginsFolder())
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v; want the new socket and the file", entries, err)
	}
}

// TestOneNameIsWedged is what a real kubelet does, see test/kubelet.
func TestOneNameIsWedged(t *testing.T) {
	k := start(t)
	server := serve(t, k)
	if err := register(t, k, deviceplugin.Version); err != nil {
		t.Fatal(err)
	}
	if err := register(t, k, deviceplugin.Version); err == nil {
		t.Error("one name was taken twice")
	}
	server.Stop()
	await(t, k, func() bool { return k.Connected(resource) == 0 })
	serve(t, k)
	if err := register(t, k, deviceplugin.Version); err == nil {
		t.Error("the name was taken again")
	}
}

func TestPodResources(t *testing.T) {
	k := start(t)
	serve(t, k)
	if err := register(t, k, deviceplugin.Version); err != nil {
		t.Fatal(err)
	}
	await(t, k, func() bool { return k.Lists(resource) == 1 })
	k.SetAllocatable([]int64{2, 3}, &podresources.ContainerMemory{MemoryType: "memory", Size: 1})
	holder := Container{Namespace: "trading", Pod: "feed", Name: "main"}
	ids, answer, err := k.Admit(t.Context(), holder, resource, 1)
	if err != nil || answer.GetEnvs()["IDS"] != "a" || len(ids) != 1 {
		t.Fatalf("admitting gives %v, %v, %v", ids, answer, err)
	}
	if _, _, err := k.Admit(t.Context(), holder, resource, 1); err == nil {
		t.Error("a unit was given twice")
	}
	client := podresources.NewPodResourcesListerClient(dial(t, k.PodResourcesSocket()))
	t.Run("list", func(t *testing.T) { expectHeld(t, client) })
	t.Run("allocatable", func(t *testing.T) {
		all, err := client.GetAllocatableResources(t.Context(), &podresources.AllocatableResourcesRequest{})
		if err != nil || len(all.GetDevices()) != 1 || len(all.GetCpuIds()) != 2 || len(all.GetMemory()) != 1 {
			t.Errorf("allocatable is %v, %v", all, err)
		}
	})
	t.Run("release", func(t *testing.T) { expectReleased(t, k, client) })
}

// expectHeld checks that the list tells the device of the only pod with its NUMA node.
func expectHeld(t *testing.T, client podresources.PodResourcesListerClient) {
	list, err := client.List(t.Context(), &podresources.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	held := list.GetPodResources()[0].GetContainers()[0].GetDevices()[0]
	if held.GetResourceName() != resource || held.GetDeviceIds()[0] != "a" || held.GetTopology().GetNodes()[0].GetID() != 1 {
		t.Errorf("the list has %v", list)
	}
}

// expectReleased checks that a pod is there until it is released, and that other pods can be put in its place.
func expectReleased(t *testing.T, k *Kubelet, client podresources.PodResourcesListerClient) {
	feed := &podresources.GetPodResourcesRequest{PodNamespace: "trading", PodName: "feed"}
	if _, err := client.Get(t.Context(), feed); err != nil {
		t.Error(err)
	}
	k.Release("trading", "feed")
	if _, err := client.Get(t.Context(), feed); err == nil {
		t.Error("a pod that is gone is still there")
	}
	k.SetPods(&podresources.PodResources{Name: "other"})
	if list, err := client.List(t.Context(), &podresources.ListPodResourcesRequest{}); err != nil || len(list.GetPodResources()) != 1 {
		t.Errorf("the list has %v, %v", list, err)
	}
}
