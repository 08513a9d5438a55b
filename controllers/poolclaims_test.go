// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/dradriver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/background"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const (
	firstFunction  = "0000:af:02.0"
	secondFunction = "0000:af:02.1"

	claimsNode = "xeon-1"
	// often is an interval between two looks that no test waits for.
	often = 5 * time.Millisecond
	// claimsTimeout is for machines under load.
	claimsTimeout = 30 * time.Second
)

// claimsScene is a host on which pool creator creates two virtual functions, of which pool picker selects the first.
type claimsScene struct {
	*testing.T

	root  string
	pools []*v1alpha1.BypassNICPool
	world *poolWorld
}

func newClaimsScene(t *testing.T) *claimsScene {
	t.Helper()
	machine := hosttree.Xeon()
	for i := range machine.NICs {
		if nic := &machine.NICs[i]; nic.PCIAddress == objects.FirstPort {
			nic.VirtualFunctions, nic.IOMMUGroup = 2, 7
		}
	}
	creator, picker := objects.MakePool("creator").NICs(objects.FirstPort).Obj(), objects.MakePool("picker").NICs(firstFunction).Obj()
	creator.Spec.VirtualFunctions = &v1alpha1.VirtualFunctionsSpec{CountPerNIC: 2}
	picker.Spec.NICs[0].Role = v1alpha1.RoleVirtualFunction
	scene := &claimsScene{T: t, root: t.TempDir(), pools: []*v1alpha1.BypassNICPool{creator, picker}}
	if err := machine.Write(scene.root); err != nil {
		t.Fatal(err)
	}
	scene.world = servedWorld(t, creator, objects.MakeNode(claimsNode, "role", "trading"))
	scene.world.Pools = scene.pools
	scene.world.Reports[claimsNode].Spec.BypassPools = []string{"creator", "picker"}
	scene.world.Reports[claimsNode].Status.Inventory = objects.InventoryOf(t, machine)
	return scene
}

// poolFile is what the controller tells the nodes of a pool.
func (s *claimsScene) poolFile(pool *v1alpha1.BypassNICPool) string {
	s.Helper()
	s.world.Pool = pool
	text, err := json.Marshal(fleet.DecidePool(&s.world.PoolWorld, fleet.NewSelections()).Content)
	if err != nil {
		s.Fatal(err)
	}
	file := filepath.Join(s.TempDir(), v1alpha1.PoolKey)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

func (s *claimsScene) source(pool *v1alpha1.BypassNICPool) *deviceplugin.Source {
	s.Helper()
	return &deviceplugin.Source{
		PoolFile: s.poolFile(pool), Root: s.root, NodeName: claimsNode,
		HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)},
	}
}

// byController are the virtual functions that the pool selects or creates and that no conflict takes from it.
func (s *claimsScene) byController(pool *v1alpha1.BypassNICPool) []string {
	s.Helper()
	s.world.Pool = pool
	claim := &fleet.DecidePool(&s.world.PoolWorld, fleet.NewSelections()).Nodes[0].Selection.Claim
	selected := map[string][]string{"creator": {firstFunction, secondFunction}, "picker": {firstFunction}}[pool.Name]
	left := []string{}
	for _, address := range selected {
		if claim.Conflict(address) == nil {
			left = append(left, address)
		}
	}
	return left
}

// byDevicePlugin are the units that the kubelet may hand out.
func (s *claimsScene) byDevicePlugin(pool *v1alpha1.BypassNICPool) []string {
	s.Helper()
	kubelet := fakekubelet.New(s.folderOfSockets())
	if err := kubelet.Start(); err != nil {
		s.Fatal(err)
	}
	defer kubelet.Stop()
	plugin := &deviceplugin.Plugin{
		Evaluate: s.source(pool).Evaluate, KubeletFolder: kubelet.Folder(), CDIFolder: s.TempDir(), Interval: often,
	}
	defer background.Run(s, "the device plugin", plugin.Run)()
	ctx, cancel := context.WithTimeout(s.Context(), claimsTimeout)
	defer cancel()
	if err := kubelet.Wait(ctx, func() bool { return kubelet.Lists(pool.Spec.ResourceName) > 0 }); err != nil {
		s.Fatalf("the device plugin of pool %s lists nothing: %v", pool.Name, err)
	}
	return append([]string{}, kubelet.Allocatable(pool.Spec.ResourceName)...)
}

// folderOfSockets is a folder with a short name: a socket's path has at most 107 bytes, and a folder named after a test may leave
// too few.
func (s *claimsScene) folderOfSockets() string {
	s.Helper()
	folder, err := os.MkdirTemp("", "claims")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			s.Error(err)
		}
	})
	return folder
}

// byDRADriver are the devices that the driver publishes as healthy.
func (s *claimsScene) byDRADriver(pool *v1alpha1.BypassNICPool) []string {
	s.Helper()
	folder := s.folderOfSockets()
	if err := os.MkdirAll(filepath.Join(folder, "plugins_registry"), 0o750); err != nil {
		s.Fatal(err)
	}
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: claimsNode, UID: "node-uid"}})
	driver := &dradriver.Driver{
		Pool: pool.Name, NodeName: claimsNode, Evaluate: s.source(pool).Evaluate, Client: client,
		Containers: func(context.Context) host.Fact[[]allocation.Container] {
			return host.Known([]allocation.Container{}, "")
		},
		KubeletFolder: folder, CDIFolder: filepath.Join(folder, "cdi"), Interval: often,
	}
	defer background.Run(s, "the DRA driver", driver.Run)()
	for end := time.Now().Add(claimsTimeout); time.Now().Before(end); time.Sleep(often) {
		list, err := client.ResourceV1().ResourceSlices().List(s.Context(), metav1.ListOptions{})
		if err != nil {
			s.Fatal(err)
		}
		healthy := []string{}
		for _, slice := range list.Items {
			for _, device := range slice.Spec.Devices {
				if address, ok := allocation.OfResourceDeviceName(device.Name); ok && len(device.Taints) == 0 {
					healthy = append(healthy, address)
				}
			}
		}
		if len(list.Items) > 0 {
			return healthy
		}
	}
	s.Fatalf("the DRA driver of pool %s publishes nothing", pool.Name)
	return nil
}

// byCommandLine are the healthy NICs that the command line shows.
func (s *claimsScene) byCommandLine(pool *v1alpha1.BypassNICPool) []string {
	s.Helper()
	var files, out, problems bytes.Buffer
	for _, one := range s.pools {
		one = one.DeepCopy()
		one.APIVersion, one.Kind = v1alpha1.GroupVersion.String(), "BypassNICPool"
		text, err := yaml.Marshal(one)
		if err != nil {
			s.Fatal(err)
		}
		files.WriteString("---\n" + string(text))
	}
	cli.Run(s.Context(), "", []string{
		"pool", pool.Name, "-f", "-", "-o", "json", "--host-ip", hosttree.NodeAddress, "--root", claimsNode + "=" + s.root,
	}, cli.Streams{In: &files, Out: &out, Err: &problems})
	var shown []view.Pool
	if err := json.Unmarshal(out.Bytes(), &shown); err != nil {
		s.Fatalf("%v: %s", err, problems.String())
	}
	healthy := []string{}
	for _, nic := range shown[0].Nodes[0].NICs {
		if nic.Health == v1alpha1.NICHealthy {
			healthy = append(healthy, nic.PCIAddress)
		}
	}
	return healthy
}

// TestClaimsAreOneAnswer: what the controller says about a virtual function that one pool creates and another one
// selects is what the device plugin, the DRA driver and the command line do.
func TestClaimsAreOneAnswer(t *testing.T) {
	picked := map[string][]string{"creator": {}, "picker": {firstFunction}}
	created := map[string][]string{"creator": {firstFunction, secondFunction}, "picker": {}}
	cases := map[string]struct {
		// ages are how many seconds ago the pools were created.
		ages map[string]int64
		held []v1alpha1.BypassNICClaim
		want map[string][]string
	}{
		"the pool that creates is the older one": {ages: map[string]int64{"creator": 2, "picker": 1}, want: created},
		"the pool that selects is the older one": {ages: map[string]int64{"creator": 1, "picker": 2}, want: picked},
		"the pool that creates has had the NIC": {
			ages: map[string]int64{"creator": 1, "picker": 2}, want: created,
			held: []v1alpha1.BypassNICClaim{{PCIAddress: objects.FirstPort, Pool: "creator"}},
		},
		"the pool that selects has had the virtual function": {
			ages: map[string]int64{"creator": 2, "picker": 1}, want: picked,
			held: []v1alpha1.BypassNICClaim{{PCIAddress: firstFunction, Pool: "picker"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scene := newClaimsScene(t)
			scene.world.Reports[claimsNode].Spec.BypassNICs = tc.held
			for _, pool := range scene.pools {
				pool.CreationTimestamp = metav1.Unix(1_800_000_000-tc.ages[pool.Name], 0)
			}
			callers := map[string]func(*v1alpha1.BypassNICPool) []string{
				"controller": scene.byController, "device plugin": scene.byDevicePlugin, "DRA driver": scene.byDRADriver,
			}
			if tc.held == nil {
				// Hosts and files do not tell what was before.
				callers["command line"] = scene.byCommandLine
			}
			for caller, handsOut := range callers {
				got := map[string][]string{}
				for _, pool := range scene.pools {
					got[pool.Name] = handsOut(pool)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("by the %s the pools hand out (-want +got):\n%s", caller, diff)
				}
			}
		})
	}
}
