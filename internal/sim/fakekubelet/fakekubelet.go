// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package fakekubelet is the part of a kubelet that device plugins and readers of its PodResources service meet, on
// real unix sockets, for tests. It does what pkg/kubelet/cm/devicemanager of Kubernetes 1.37 does, including what
// makes plugins fail there: a start deletes every socket of the plugins' folder, a second registration from a socket
// that is still connected wedges the resource, and a plugin whose stream ends loses all its devices.
package fakekubelet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

const (
	pluginsFolder      = "device-plugins"
	podResourcesFolder = "pod-resources"
	socketName         = "kubelet.sock"
)

// Registration is one call of Register that succeeded.
type Registration struct {
	// Resource and Endpoint are what the plugin said; the endpoint is a file name in the plugins' folder.
	Resource, Endpoint string
	// Options are the plugin's own answer.
	Options *deviceplugin.DevicePluginOptions
	// At is when it succeeded.
	At time.Time
}

// Kubelet is the fake. Its methods may be called concurrently, except Start, Stop and Restart.
type Kubelet struct {
	// failing lets the next stream fail.
	failing atomic.Bool

	folder  string
	servers []*grpc.Server
	running sync.WaitGroup

	mutex sync.Mutex
	// changed is closed and replaced whenever something below changes.
	changed       chan struct{}
	endpoints     map[string][]*endpoint
	wedged        map[string]bool
	devices       map[string][]*deviceplugin.Device
	lists         map[string]int
	registrations []Registration
	pods          []*podresources.PodResources
	cpus          []int64
	memory        []*podresources.ContainerMemory
}

// New returns a kubelet, not yet started, whose folder stands for /var/lib/kubelet. The path must be short: the one
// of a unix socket has at most 107 bytes.
func New(folder string) *Kubelet {
	return &Kubelet{
		folder: folder, changed: make(chan struct{}), endpoints: map[string][]*endpoint{}, wedged: map[string]bool{},
		devices: map[string][]*deviceplugin.Device{}, lists: map[string]int{},
	}
}

// Folder is what stands for /var/lib/kubelet.
func (k *Kubelet) Folder() string { return k.folder }

// PluginsFolder is the folder of the plugins' sockets.
func (k *Kubelet) PluginsFolder() string { return filepath.Join(k.folder, pluginsFolder) }

// PodResourcesSocket is the socket of the PodResources service.
func (k *Kubelet) PodResourcesSocket() string {
	return filepath.Join(k.folder, podResourcesFolder, socketName)
}

// Start deletes all sockets of the plugins' folder, as a starting kubelet does, and serves Registration and
// PodResources. Devices and pods of an earlier run are kept, as the kubelet's checkpoint keeps allocations; the
// devices of no resource are allocatable until its plugin has registered.
func (k *Kubelet) Start() error {
	if err := removeSockets(k.PluginsFolder()); err != nil {
		return err
	}
	k.mutex.Lock()
	k.devices, k.wedged = map[string][]*deviceplugin.Device{}, map[string]bool{}
	k.mutex.Unlock()
	registration, resources := grpc.NewServer(), grpc.NewServer()
	deviceplugin.RegisterRegistrationServer(registration, &registrationServer{kubelet: k})
	podresources.RegisterPodResourcesListerServer(resources, &podResourcesServer{kubelet: k})
	if err := k.serve(resources, k.PodResourcesSocket()); err != nil {
		return err
	}
	return k.serve(registration, filepath.Join(k.PluginsFolder(), socketName))
}

// Stop ends the process: connections to plugins break, sockets stay behind as they do when a kubelet is killed.
func (k *Kubelet) Stop() {
	for _, server := range k.servers {
		server.Stop()
	}
	k.servers = nil
	k.mutex.Lock()
	all := k.endpoints
	k.endpoints = map[string][]*endpoint{}
	k.mutex.Unlock()
	for _, endpoints := range all {
		for _, endpoint := range endpoints {
			endpoint.close()
		}
	}
	k.running.Wait()
}

// Restart stops and starts.
func (k *Kubelet) Restart() error {
	k.Stop()
	return k.Start()
}

func (k *Kubelet) serve(server *grpc.Server, socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
		return fmt.Errorf("creating the folder of a socket: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an old socket: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	listener.SetUnlinkOnClose(false)
	k.servers = append(k.servers, server)
	k.running.Go(func() { _ = server.Serve(listener) })
	return nil
}

// removeSockets is CleanupPluginDirectory: it removes what is there when it starts.
func removeSockets(folder string) error {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("creating the plugins' folder: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("listing the plugins' folder: %w", err)
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSocket == 0 {
			continue
		}
		// Its plugin may have removed it in between.
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing an old socket: %w", err)
		}
	}
	return nil
}

// Devices are the devices of a resource by ID, as its plugin listed them last; all unhealthy after its stream has
// ended; nil when no plugin has listed any since the start.
func (k *Kubelet) Devices(resource string) []*deviceplugin.Device {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Clone(k.devices[resource])
}

// Allocatable are the IDs of the healthy devices of a resource.
func (k *Kubelet) Allocatable(resource string) []string {
	var healthy []string
	for _, device := range k.Devices(resource) {
		if device.GetHealth() == deviceplugin.Healthy {
			healthy = append(healthy, device.GetID())
		}
	}
	return healthy
}

// Registrations are the successful ones, the oldest first.
func (k *Kubelet) Registrations() []Registration {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return slices.Clone(k.registrations)
}

// Lists is how many lists the plugins of a resource have sent.
func (k *Kubelet) Lists(resource string) int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.lists[resource]
}

// Drop ends the connections to the plugins of a resource, as a kubelet does that has lost its account of them.
func (k *Kubelet) Drop(resource string) {
	k.mutex.Lock()
	endpoints := slices.Clone(k.endpoints[resource])
	k.mutex.Unlock()
	for _, endpoint := range endpoints {
		endpoint.close()
	}
}

// FailNextStream lets the next plugin register, and ends the connection before its units are asked for, as a kubelet does that
// cannot open the stream.
func (k *Kubelet) FailNextStream() { k.failing.Store(true) }

// Connected is the number of plugins that serve a resource.
func (k *Kubelet) Connected(resource string) int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return len(k.endpoints[resource])
}

// Wait waits until the condition, which is evaluated after every change, holds. The error is the context's.
func (k *Kubelet) Wait(ctx context.Context, condition func() bool) error {
	for {
		k.mutex.Lock()
		changed := k.changed
		k.mutex.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the kubelet: %w", ctx.Err())
		case <-changed:
		}
	}
}

// update changes the state under the lock and wakes those who wait.
func (k *Kubelet) update(change func()) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	change()
	close(k.changed)
	k.changed = make(chan struct{})
}

func sortDevices(devices []*deviceplugin.Device) []*deviceplugin.Device {
	return slices.SortedFunc(slices.Values(devices), func(a, b *deviceplugin.Device) int {
		return cmp.Compare(a.GetID(), b.GetID())
	})
}
