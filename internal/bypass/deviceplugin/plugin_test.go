// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
)

// listed is a device in words.
func listed(devices []*deviceplugin.Device) []string {
	lines := make([]string, 0, len(devices))
	for _, device := range devices {
		node := "no node"
		if nodes := device.GetTopology().GetNodes(); len(nodes) > 0 {
			node = "node " + string(rune('0'+nodes[0].GetID()))
		}
		lines = append(lines, strings.Join([]string{device.GetID(), device.GetHealth(), node}, " "))
	}
	return lines
}

func TestRegister(t *testing.T) {
	f := newFixture(t)
	f.start(nodeWith(
		poolNamed("trading", resourceX2), shared(nic(nic0, 0, v1alpha1.NICHealthy), 2), nic(nic0port1, 0, v1alpha1.NICIneligible),
		nic(nic1, -1, v1alpha1.NICUnhealthy), nic("0000:d8:00.0", 1, v1alpha1.NICUnknown),
	))
	f.awaitUnits(resourceX2, nic0+"-0", nic0+"-1")
	want := []string{
		nic0 + "-0 Healthy node 0", nic0 + "-1 Healthy node 0", nic1 + " Unhealthy no node", "0000:d8:00.0 Unhealthy node 1",
	}
	if diff := cmp.Diff(want, listed(f.kubelet.Devices(resourceX2))); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	registrations := f.kubelet.Registrations()
	if len(registrations) != 1 || !registrations[0].Options.GetGetPreferredAllocationAvailable() ||
		registrations[0].Options.GetPreStartRequired() {
		t.Errorf("registrations are %+v", registrations)
	}
	if !strings.HasPrefix(registrations[0].Endpoint, "lowlatency-trading_") {
		t.Errorf("the socket is called %s", registrations[0].Endpoint)
	}
}

func TestOnlyChangesAreSent(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	f.start(n)
	f.awaitUnits(resourceX2, nic0)
	for range 20 {
		n.set(nic(nic0, 0, v1alpha1.NICHealthy, "The PCIe link has 8 of 16 lanes."))
		time.Sleep(often)
	}
	n.set(nic(nic0, 0, v1alpha1.NICUnhealthy))
	f.awaitUnits(resourceX2)
	if lists := f.kubelet.Lists(resourceX2); lists != 2 {
		t.Errorf("%d lists were sent, want 2: at first and after the change", lists)
	}
}

func TestHealthBothWays(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy), nic(nic1, 1, v1alpha1.NICHealthy))
	f.start(n)
	f.awaitUnits(resourceX2, nic0, nic1)

	n.set(nic(nic0, 0, v1alpha1.NICUnhealthy, "The link is down."), nic(nic1, 1, v1alpha1.NICHealthy))
	f.awaitUnits(resourceX2, nic1)
	n.set(nic(nic0, 0, v1alpha1.NICHealthy), nic(nic1, 1, v1alpha1.NICHealthy))
	f.awaitUnits(resourceX2, nic0, nic1)

	n.set(nic(nic1, 1, v1alpha1.NICHealthy))
	f.await("unplugging", func() bool { return len(f.kubelet.Devices(resourceX2)) == 1 })
	n.set(nic(nic0, 0, v1alpha1.NICHealthy), nic(nic1, 1, v1alpha1.NICHealthy))
	f.awaitUnits(resourceX2, nic0, nic1)

	n.fail(errHost())
	f.awaitUnits(resourceX2)
	if devices := f.kubelet.Devices(resourceX2); len(devices) != 2 {
		t.Errorf("a host that cannot be read lists %v, want both NICs unhealthy", devices)
	}
	n.set(nic(nic0, 0, v1alpha1.NICHealthy), nic(nic1, 1, v1alpha1.NICHealthy))
	f.awaitUnits(resourceX2, nic0, nic1)
}

// TestUnknownKeepsItsUnits: without the number of virtual interfaces nobody knows how many units there are, but those
// that containers hold do not vanish from the kubelet's account.
func TestUnknownKeepsItsUnits(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(poolNamed("p", resourceX2), shared(nic(nic0, 0, v1alpha1.NICHealthy), 3))
	f.start(n)
	f.awaitUnits(resourceX2, nic0+"-0", nic0+"-1", nic0+"-2")
	n.set(shared(nic(nic0, 0, v1alpha1.NICUnknown), 0))
	f.awaitUnits(resourceX2)
	if devices := f.kubelet.Devices(resourceX2); len(devices) != 3 {
		t.Errorf("devices are %v, want three unhealthy ones", devices)
	}
	n.set(shared(nic(nic0, 0, v1alpha1.NICHealthy), 1))
	f.await("fewer units", func() bool { return len(f.kubelet.Devices(resourceX2)) == 1 })
}

func TestKubeletRestart(t *testing.T) {
	f := newFixture(t)
	f.start(nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy), nic(nic1, 1, v1alpha1.NICHealthy)))
	f.awaitUnits(resourceX2, nic0, nic1)
	for range 5 {
		f.kubelet.Stop()
		time.Sleep(20 * time.Millisecond)
		if err := f.kubelet.Start(); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		f.awaitUnits(resourceX2, nic0, nic1)
		t.Logf("registered %s after the kubelet had started", time.Since(started))
	}
	f.await("one registration to stay", func() bool { return f.kubelet.Connected(resourceX2) == 1 })
	if sockets := f.sockets(); len(sockets) != 1 {
		t.Errorf("sockets are %v, want the current one", sockets)
	}
}

func TestKubeletStartsLater(t *testing.T) {
	f := newFixture(t)
	f.kubelet.Stop()
	f.start(nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy)))
	time.Sleep(20 * often)
	if err := f.kubelet.Start(); err != nil {
		t.Fatal(err)
	}
	f.awaitUnits(resourceX2, nic0)
}

func TestRegistersAgain(t *testing.T) {
	cases := map[string]func(*fixture){
		"when its socket is deleted": func(f *fixture) {
			for _, socket := range f.sockets() {
				if err := os.Remove(socket); err != nil {
					f.Fatal(err)
				}
			}
		},
		"when the kubelet drops it": func(f *fixture) { f.kubelet.Drop(resourceX2) },
	}
	for name, disturb := range cases {
		t.Run(name[len(name)-7:], func(t *testing.T) {
			f := newFixture(t)
			f.start(nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy)))
			f.awaitUnits(resourceX2, nic0)
			disturb(f)
			f.await("registering again "+name, func() bool {
				return len(f.kubelet.Registrations()) == 2 && f.kubelet.Connected(resourceX2) == 1
			})
			f.awaitUnits(resourceX2, nic0)
		})
	}
}

// TestRegistersAgainUnheard: a kubelet took the registration, and its stream failed before the plugin knew of one.
func TestRegistersAgainUnheard(t *testing.T) {
	f := newFixture(t)
	f.kubelet.FailNextStream()
	f.start(nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy)))
	f.awaitUnits(resourceX2, nic0)
	if got := len(f.kubelet.Registrations()); got != 2 {
		t.Errorf("the plugin has registered %d times, want twice", got)
	}
}

func TestRestartKeepsIDs(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(poolNamed("p", resourceX2), shared(nic(nic0, 0, v1alpha1.NICHealthy), 12))
	stop := f.start(n)
	f.await("units", func() bool { return len(f.kubelet.Allocatable(resourceX2)) == 12 })
	before := listed(f.kubelet.Devices(resourceX2))
	stop()
	f.awaitUnits(resourceX2)
	if sockets := f.sockets(); len(sockets) != 0 {
		t.Errorf("sockets %v stay behind", sockets)
	}
	if _, err := os.Stat(filepath.Join(f.cdi, specName(resourceX2))); err != nil {
		t.Errorf("the specification is gone with the process: %v", err)
	}
	f.start(n)
	f.await("units", func() bool { return len(f.kubelet.Allocatable(resourceX2)) == 12 })
	if diff := cmp.Diff(before, listed(f.kubelet.Devices(resourceX2))); diff != "" {
		t.Errorf("devices after a restart (-before +after):\n%s", diff)
	}
}

// TestUpgrade: the process of the new version starts before that of the old one ends. There is no moment without units.
func TestUpgrade(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	stop := f.start(n)
	f.awaitUnits(resourceX2, nic0)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		_ = f.kubelet.Wait(ctx, func() bool {
			if !slices.Equal(f.kubelet.Allocatable(resourceX2), []string{nic0}) {
				t.Errorf("the kubelet has %v during the upgrade", f.kubelet.Devices(resourceX2))
			}
			return false
		})
	})
	f.start(n)
	f.await("the new process", func() bool { return f.kubelet.Connected(resourceX2) == 2 })
	stop()
	f.await("the end of the old process", func() bool { return f.kubelet.Connected(resourceX2) == 1 })
	cancel()
	watching.Wait()
	if _, _, err := f.kubelet.Admit(t.Context(), fakekubelet.Container{Pod: "a", Name: container}, resourceX2, 1); err != nil {
		t.Errorf("allocating from the new process: %v", err)
	}
}

func TestSeveralPools(t *testing.T) {
	f := newFixture(t)
	const other = "lowlatency.dev/x3"
	stopFirst := f.start(nodeWith(poolNamed("a", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy)))
	f.start(nodeWith(poolNamed("a-b", other), nic(nic1, 1, v1alpha1.NICHealthy)))
	f.awaitUnits(resourceX2, nic0)
	f.awaitUnits(other, nic1)
	if err := f.kubelet.Restart(); err != nil {
		t.Fatal(err)
	}
	f.awaitUnits(resourceX2, nic0)
	f.awaitUnits(other, nic1)
	stopFirst()
	f.awaitUnits(resourceX2)
	f.awaitUnits(other, nic1)
}

func TestResourceChanges(t *testing.T) {
	f := newFixture(t)
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	f.start(n)
	f.awaitUnits(resourceX2, nic0)
	n.rename("lowlatency.dev/25g")
	f.awaitUnits("lowlatency.dev/25g", nic0)
	f.awaitUnits(resourceX2)
}

// TestResourceOfAnotherPool: the pool was made again with a name that another one has, and a plugin of the former one is still there.
func TestResourceOfAnotherPool(t *testing.T) {
	f := newFixture(t)
	f.start(nodeWith(poolNamed("owner", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy)))
	const former = "lowlatency.dev/former"
	n := nodeWith(poolNamed("newcomer", former), nic(nic1, 1, v1alpha1.NICHealthy))
	f.start(n)
	f.awaitUnits(resourceX2, nic0)
	f.awaitUnits(former, nic1)
	n.change(func(pool *bypass.Pool) { pool.Spec.ResourceName, pool.ResourceOwner = resourceX2, "owner" })
	f.awaitUnits(former)
	if got := f.kubelet.Connected(resourceX2); got != 1 {
		t.Errorf("%d plugins serve %s, want one", got, resourceX2)
	}
	f.awaitUnits(resourceX2, nic0)
	n.change(func(pool *bypass.Pool) { pool.Spec.ResourceName, pool.ResourceOwner = former, "" })
	f.awaitUnits(former, nic1)
}

// TestPoolFile puts a new version in place as the kubelet does for a ConfigMap.
func TestPoolFile(t *testing.T) {
	f := newFixture(t)
	folder := t.TempDir()
	point := func(version string) {
		if err := os.Symlink(version, filepath.Join(folder, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(folder, "..tmp"), filepath.Join(folder, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	point("..1")
	n := nodeWith(poolNamed("p", resourceX2), nic(nic0, 0, v1alpha1.NICHealthy))
	f.run(&Plugin{
		Evaluate: n.evaluate, PoolFile: filepath.Join(folder, v1alpha1.PoolKey), KubeletFolder: f.kubelet.Folder(),
		CDIFolder: f.cdi, Interval: time.Hour,
	})
	f.awaitUnits(resourceX2, nic0)
	n.set(nic(nic0, 0, v1alpha1.NICHealthy), nic(nic1, 1, v1alpha1.NICHealthy))
	point("..2")
	f.awaitUnits(resourceX2, nic0, nic1)
}

func TestDeadSockets(t *testing.T) {
	f := newFixture(t)
	live := filepath.Join(f.kubelet.PluginsFolder(), "kubelet.sock")
	for _, name := range []string{"lowlatency-p_dead.sock", "lowlatency-p-q_dead.sock", "other.sock"} {
		if err := os.WriteFile(filepath.Join(f.kubelet.PluginsFolder(), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(live, filepath.Join(f.kubelet.PluginsFolder(), "lowlatency-p_live.sock")); err != nil {
		t.Fatal(err)
	}
	if err := removeDeadSockets(t.Context(), f.kubelet.PluginsFolder(), "p"); err != nil {
		t.Fatal(err)
	}
	sockets := f.sockets()
	names := make([]string, 0, len(sockets))
	for _, socket := range sockets {
		names = append(names, filepath.Base(socket))
	}
	if diff := cmp.Diff([]string{"lowlatency-p-q_dead.sock", "lowlatency-p_live.sock"}, names); diff != "" {
		t.Errorf("sockets that stay (-want +got):\n%s", diff)
	}
}

func TestRunNeedsTheKubeletsFolder(t *testing.T) {
	plugin := &Plugin{Evaluate: nodeWith(poolNamed("p", resourceX2)).evaluate, KubeletFolder: "/nowhere", CDIFolder: t.TempDir()}
	err := plugin.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "/nowhere/device-plugins") {
		t.Errorf("error is %v, want one that names the folder", err)
	}
}
