// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet

import (
	"context"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/background"
)

const (
	resourceX2 = "lowlatency.dev/x2"
	// deviceTimeout is for machines under load; nothing waits that long when it works.
	deviceTimeout  = 30 * time.Second
	deviceInterval = 5 * time.Millisecond
)

// rig is a kubelet and a device plugin on a machine of two NUMA nodes.
type rig struct {
	*testing.T

	folder  string
	kubelet *Devices

	mutex sync.Mutex
	nics  []bypass.Device
}

func twoNodes() layout {
	return layout{
		vendor: "Intel", architecture: "amd64", packages: 2, nodesPerPackage: 1, coresPerNode: 4, threads: 2, memoryPerNode: 96 << 30,
	}
}

func healthyNIC(address string, node int) bypass.Device {
	return bypass.Device{
		NIC:    host.NIC{PCIAddress: address, NUMANode: host.Fact[int]{Value: node, Known: true}},
		Health: v1alpha1.NICHealthy, Units: 1,
	}
}

// fourNICs are two on each NUMA node.
func fourNICs() []bypass.Device {
	return []bypass.Device{
		healthyNIC("0000:3b:00.0", 0), healthyNIC("0000:5e:00.0", 0), healthyNIC("0000:af:00.0", 1), healthyNIC("0000:d8:00.0", 1),
	}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, folder: t.TempDir(), nics: fourNICs()}
	// A device manager has no end: one that was told of the last change may still write its checkpoint.
	t.Cleanup(func() {
		for range 100 {
			if os.RemoveAll(r.folder) == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	r.startKubelet()
	t.Cleanup(func() {
		if err := r.kubelet.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) startKubelet(pods ...*corev1.Pod) {
	r.Helper()
	kubelet, err := StartDevices(r.folder, MachineInfo(twoNodes().topology()), pods...)
	if err != nil {
		r.Fatal(err)
	}
	r.kubelet = kubelet
}

func (r *rig) evaluate(context.Context) (deviceplugin.Reading, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	pool := bypass.Pool{Name: "trading", Spec: v1alpha1.BypassNICPoolSpec{ResourceName: resourceX2}}
	return deviceplugin.Reading{Pool: pool, Devices: r.nics, Edits: func(devices []bypass.Device) (bypass.Edits, error) {
		addresses := make([]string, 0, len(devices))
		for _, device := range devices {
			addresses = append(addresses, device.NIC.PCIAddress)
		}
		return bypass.Edits{
			DeviceNodes: []bypass.DeviceNode{{Path: "/dev/onload", Permissions: "rw"}},
			Environment: []bypass.Variable{{Name: "NICS", Value: strings.Join(addresses, ",")}},
		}, nil
	}}, nil
}

func (r *rig) set(nics ...bypass.Device) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.nics = nics
}

// plugin runs our device plugin until the returned function is called.
func (r *rig) plugin() (stop func()) {
	plugin := &deviceplugin.Plugin{
		Evaluate: r.evaluate, KubeletFolder: r.folder, CDIFolder: filepath.Join(r.folder, "cdi"), Interval: deviceInterval,
	}
	return background.Run(r.T, "the plugin", plugin.Run)
}

func (r *rig) await(units int64) {
	r.Helper()
	for end := time.Now().Add(deviceTimeout); r.kubelet.Allocatable(resourceX2) != units; time.Sleep(deviceInterval) {
		if time.Now().After(end) {
			r.Fatalf("allocatable is %d, want %d", r.kubelet.Allocatable(resourceX2), units)
		}
	}
}

func podWith(name string, units int64) *corev1.Pod {
	resources := corev1.ResourceList{resourceX2: *resource.NewQuantity(units, resource.DecimalSI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Limits: resources, Requests: resources},
		}}},
	}
}

// held are the devices of a pod by NUMA node, as the PodResources service tells them.
func (r *rig) held(pod *corev1.Pod) map[int64][]string {
	held := map[int64][]string{}
	for id, device := range r.kubelet.Manager.GetDevices(string(pod.UID), "main")[resourceX2] {
		for _, node := range device.GetTopology().GetNodes() {
			held[node.GetID()] = append(held[node.GetID()], id)
		}
	}
	return held
}

func TestDeviceHints(t *testing.T) {
	r := newRig(t)
	r.plugin()
	r.await(4)
	one, three := podWith("one", 1), podWith("three", 3)
	hints := r.kubelet.Manager.GetTopologyHints(logr.Discard(), one, &one.Spec.Containers[0], lifecycle.AddOperation)[resourceX2]
	preferred := map[string]bool{}
	for _, hint := range hints {
		if hint.Preferred {
			preferred[hint.NUMANodeAffinity.String()] = true
		}
	}
	if nodes := slices.Sorted(maps.Keys(preferred)); !slices.Equal(nodes, []string{"01", "10"}) {
		t.Errorf("one unit is preferred on the NUMA nodes %v, want on each of both", nodes)
	}
	hints = r.kubelet.Manager.GetTopologyHints(logr.Discard(), three, &three.Spec.Containers[0], lifecycle.AddOperation)[resourceX2]
	for _, hint := range hints {
		if hint.NUMANodeAffinity.Count() < 2 {
			t.Errorf("three units are offered on the NUMA nodes %s, which have two", hint.NUMANodeAffinity)
		}
	}
}

func TestPodsAreAligned(t *testing.T) {
	r := newRig(t)
	r.plugin()
	r.await(4)
	first, second, third := podWith("first", 2), podWith("second", 2), podWith("third", 1)
	for _, pod := range []*corev1.Pod{first, second} {
		if err := r.kubelet.Admit(t.Context(), pod); err != nil {
			t.Fatalf("pod %s: %v", pod.Name, err)
		}
		if held := r.held(pod); len(held) != 1 {
			t.Errorf("pod %s holds %v, want two units of one NUMA node", pod.Name, held)
		}
	}
	if err := r.kubelet.Admit(t.Context(), third); err == nil {
		t.Errorf("a fifth unit was given: %v", r.held(third))
	}
	r.kubelet.Remove(second)
	if err := r.kubelet.Admit(t.Context(), podWith("across", 3)); err == nil || !strings.Contains(err.Error(), "TopologyAffinityError") {
		t.Errorf("error is %v, want that three units are not on one NUMA node", err)
	}
	r.expectBothNICs(first)
}

// expectBothNICs checks that the runtime is told two devices, and that the environment names the same ones.
func (r *rig) expectBothNICs(pod *corev1.Pod) {
	r.Helper()
	options, err := r.kubelet.Manager.GetDeviceRunContainerOptions(r.Context(), pod, &pod.Spec.Containers[0])
	if err != nil {
		r.Fatal(err)
	}
	names := make([]string, 0, len(options.CDIDevices))
	for _, device := range options.CDIDevices {
		names = append(names, strings.TrimPrefix(device.Name, resourceX2+"="))
	}
	slices.Sort(names)
	if len(names) != 2 || len(options.Envs) != 1 || options.Envs[0].Value != strings.Join(names, ",") {
		r.Errorf("the container gets %+v", options)
	}
}

func TestHealthReachesTheNode(t *testing.T) {
	r := newRig(t)
	r.plugin()
	r.await(4)
	nics := fourNICs()
	nics[0].Health = v1alpha1.NICUnhealthy
	r.set(nics...)
	r.await(3)
	r.set(fourNICs()[2:]...)
	r.await(2)
	r.set(fourNICs()...)
	r.await(4)
}

// TestAllocationsOutliveRestarts: pods keep their units when the plugin, the kubelet, or both start again.
func TestAllocationsOutlive(t *testing.T) {
	r := newRig(t)
	stop := r.plugin()
	r.await(4)
	pod := podWith("first", 2)
	if err := r.kubelet.Admit(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	before := r.held(pod)
	stop()
	r.await(0)
	r.plugin()
	r.await(4)
	for range 3 {
		if err := r.kubelet.Stop(); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		r.startKubelet(pod)
		r.await(4)
		t.Logf("registered %s after the kubelet's start", time.Since(started))
	}
	for node, ids := range r.held(pod) {
		slices.Sort(ids)
		slices.Sort(before[node])
		if !slices.Equal(ids, before[node]) {
			t.Errorf("the pod holds %v of NUMA node %d, held %v before", ids, node, before[node])
		}
	}
	second := podWith("second", 2)
	if err := r.kubelet.Admit(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	for node := range r.held(second) {
		if _, taken := before[node]; taken {
			t.Errorf("the second pod got units of NUMA node %d, which the first holds", node)
		}
	}
}

// TestUpgradeHasNoGap: as long as one of two processes serves, the kubelet has its units.
func TestUpgradeHasNoGap(t *testing.T) {
	r := newRig(t)
	stop := r.plugin()
	r.await(4)
	r.plugin()
	for len(r.sockets()) < 2 {
		time.Sleep(deviceInterval)
	}
	stop()
	for range 40 {
		if units := r.kubelet.Allocatable(resourceX2); units != 4 {
			t.Fatalf("allocatable is %d after the old process has ended", units)
		}
		time.Sleep(deviceInterval)
	}
	if err := r.kubelet.Admit(t.Context(), podWith("first", 1)); err != nil {
		t.Error(err)
	}
}

func (r *rig) sockets() []string {
	r.Helper()
	sockets, err := filepath.Glob(filepath.Join(r.folder, "device-plugins", "lowlatency-*"))
	if err != nil {
		r.Fatal(err)
	}
	return sockets
}

// emptyPlugin is a device plugin without devices.
type emptyPlugin struct {
	pluginapi.UnimplementedDevicePluginServer
}

// GetDevicePluginOptions has none.
func (emptyPlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch lists nothing.
func (emptyPlugin) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	<-stream.Context().Done()
	return nil
}

// TestOneSocketNameIsWedged is why our plugin has a name of its own for every registration: a kubelet that is asked to
// take a name that it has not yet given up refuses it from then on. When this test fails, the kubelet has mended that.
func TestOneSocketNameIsWedged(t *testing.T) {
	r := newRig(t)
	const name = "plugin.sock"
	serve := func() *grpc.Server {
		t.Helper()
		listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(r.folder, "device-plugins", name))
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		pluginapi.RegisterDevicePluginServer(server, emptyPlugin{})
		go func() { _ = server.Serve(listener) }()
		return server
	}
	connection, err := grpc.NewClient("unix:"+filepath.Join(r.folder, "device-plugins", "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	register := func() error {
		_, err := pluginapi.NewRegistrationClient(connection).Register(t.Context(), &pluginapi.RegisterRequest{
			Version: pluginapi.Version, Endpoint: name, ResourceName: resourceX2,
		})
		return err
	}
	server := serve()
	if err := register(); err != nil {
		t.Fatal(err)
	}
	if err := register(); err == nil || !strings.Contains(err.Error(), "already connected") {
		t.Errorf("the second registration gives %v", err)
	}
	server.Stop()
	time.Sleep(time.Second)
	defer serve().Stop()
	if err := register(); err == nil || !strings.Contains(err.Error(), "already connected") {
		t.Errorf("a registration after the end of the first gives %v", err)
	}
}
