// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/background"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
)

const (
	// timeout is for machines under load; nothing waits that long when it works.
	timeout = 30 * time.Second
	// often makes the interval no part of what a test waits for.
	often = 5 * time.Millisecond

	resourceX2 = "lowlatency.dev/x2"
	nic0       = "0000:3b:00.0"
	nic0port1  = "0000:3b:00.1"
	nic1       = "0000:af:00.0"
	container  = "main"
)

// nic is a NIC of the pool.
func nic(address string, node int, health v1alpha1.NICHealth, reasons ...string) bypass.Device {
	device := bypass.Device{NIC: host.NIC{PCIAddress: address}, Health: health, Reasons: reasons, Units: 1}
	if node >= 0 {
		device.NIC.NUMANode = host.Fact[int]{Value: node, Known: true}
	}
	if health == v1alpha1.NICIneligible {
		device.Units = 0
	}
	return device
}

func shared(device bypass.Device, units int) bypass.Device {
	device.Shared, device.Units = true, units
	return device
}

// poolNamed is a pool with nothing but what the plugin itself looks at.
func poolNamed(name, resource string) bypass.Pool {
	return bypass.Pool{Name: name, Spec: v1alpha1.BypassNICPoolSpec{ResourceName: resource}}
}

// editsOf stands for the edits of a stack: one mount for all, a device file for each NIC, and a variable that depends
// on all of them.
func editsOf(devices []bypass.Device) (bypass.Edits, error) {
	edits := bypass.Edits{Mounts: []bypass.Mount{{HostPath: "/opt/onload/lib", ContainerPath: "/opt/onload/lib"}}}
	addresses := make([]string, 0, len(devices))
	for _, device := range devices {
		address := device.NIC.PCIAddress
		addresses = append(addresses, address)
		edits.DeviceNodes = append(edits.DeviceNodes, bypass.DeviceNode{Path: "/dev/nic-" + address, Permissions: "rw"})
	}
	edits.Environment = []bypass.Variable{{Name: "PCIDEVICE", Value: strings.Join(addresses, ",")}}
	return edits, nil
}

// node is what the plugin under test finds.
type node struct {
	mutex   sync.Mutex
	reading Reading
	err     error
}

func nodeWith(pool bypass.Pool, devices ...bypass.Device) *node {
	return &node{reading: Reading{Pool: pool, Devices: devices, Edits: editsOf}}
}

func (n *node) set(devices ...bypass.Device) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.reading.Devices, n.err = devices, nil
}

func (n *node) change(change func(*bypass.Pool)) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	change(&n.reading.Pool)
}

func (n *node) rename(resource string) {
	n.change(func(pool *bypass.Pool) { pool.Spec.ResourceName = resource })
}

func (n *node) fail(err error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.err = err
}

func (n *node) evaluate(context.Context) (Reading, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.reading, n.err
}

// fixture is a kubelet and a folder for specifications.
type fixture struct {
	testing.TB

	kubelet *fakekubelet.Kubelet
	cdi     string
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{TB: t, kubelet: fakekubelet.New(t.TempDir()), cdi: t.TempDir()}
	if err := f.kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.kubelet.Stop)
	return f
}

// start runs a plugin until the returned function is called, or the test ends.
func (f *fixture) start(n *node) (stop func()) {
	f.Helper()
	return f.run(&Plugin{Evaluate: n.evaluate, KubeletFolder: f.kubelet.Folder(), CDIFolder: f.cdi, Interval: often})
}

func (f *fixture) run(plugin *Plugin) (stop func()) {
	f.Helper()
	if t, ok := f.TB.(*testing.T); ok {
		plugin.Log = testr.New(t)
	}
	return background.Run(f.TB, "the plugin", plugin.Run)
}

// await waits until the kubelet is in a state.
func (f *fixture) await(what string, condition func() bool) {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := f.kubelet.Wait(ctx, condition); err != nil {
		f.Fatalf("%s: %v; devices are %v", what, err, f.kubelet.Devices(resourceX2))
	}
}

// awaitUnits waits until exactly these units can be handed out.
func (f *fixture) awaitUnits(resource string, ids ...string) {
	f.Helper()
	f.await("waiting for "+strings.Join(ids, ", "), func() bool {
		return slices.Equal(f.kubelet.Allocatable(resource), ids)
	})
}

func (f *fixture) sockets() []string {
	f.Helper()
	sockets, err := filepath.Glob(filepath.Join(f.kubelet.PluginsFolder(), "lowlatency-*"))
	if err != nil {
		f.Fatal(err)
	}
	return sockets
}

func errHost() error { return errors.New("/proc/interrupts: line 3 has no number") }
