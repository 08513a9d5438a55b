// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// tradingHost is a machine with an X2 on each NUMA node, Onload, and another NIC for its own traffic.
func tradingHost(t testing.TB) string {
	t.Helper()
	machine := hosttree.Xeon()
	machine.NICs = []hosttree.NIC{
		hosttree.IntelE810("eno1", "0000:17:00.0", 0),
		hosttree.SolarflareX2("sf0", nic0, 0), hosttree.SolarflareX2("sf1", nic1, 1),
	}
	machine.DefaultRoute = "eno1"
	machine.Onload = hosttree.NewOnload()
	root := filepath.Join(t.TempDir(), "host")
	if err := machine.Write(root); err != nil {
		t.Fatal(err)
	}
	return root
}

func tradingPool() bypass.Pool {
	pool := poolNamed("trading", resourceX2)
	pool.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}}
	pool.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
		UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
	}}
	return pool
}

func writePool(t testing.TB, path string, pool bypass.Pool) {
	t.Helper()
	text, err := json.Marshal(pool)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestHost changes a host as its operators and its hardware do, and looks at what the kubelet has.
func TestHost(t *testing.T) {
	f := newFixture(t)
	root, poolFile := tradingHost(t), filepath.Join(t.TempDir(), v1alpha1.PoolKey)
	writePool(t, poolFile, tradingPool())
	source := &Source{
		PoolFile: poolFile, Root: root, NodeName: "worker-1", HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)},
	}
	f.run(&Plugin{
		Evaluate: source.Evaluate, PoolFile: poolFile, KubeletFolder: f.kubelet.Folder(), CDIFolder: f.cdi, Interval: often,
	})
	f.awaitUnits(resourceX2, nic0, nic1)
	want := []string{nic0 + " Healthy node 0", nic1 + " Healthy node 1"}
	if diff := cmp.Diff(want, listed(f.kubelet.Devices(resourceX2))); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	_, answer, err := f.kubelet.Admit(t.Context(), fakekubelet.Container{Pod: "feed", Name: container}, resourceX2, 2)
	must(t, err)
	if got := answer.GetEnvs()["PCIDEVICE_LOWLATENCY_DEV_X2"]; got != nic0+","+nic1 {
		t.Errorf("variables are %v", answer.GetEnvs())
	}
	spec := readSpec(t, f.cdi, resourceX2)
	if len(spec.Devices) != 2 || len(spec.Devices[0].ContainerEdits.DeviceNodes) == 0 || len(spec.ContainerEdits.Mounts) == 0 {
		t.Errorf("the specification is %+v", spec)
	}

	must(t, hosttree.SetCarrier(root, "sf1", false))
	f.awaitUnits(resourceX2, nic0)
	must(t, hosttree.SetCarrier(root, "sf1", true))
	f.awaitUnits(resourceX2, nic0, nic1)

	must(t, hosttree.SetOnloadVersion(root, "9.2.0.11", strings.Repeat("a", 32)))
	f.awaitUnits(resourceX2)
	// A look at the host may fall between the files that have changed and those that have not, and the kubelet is not told
	// of another reason.
	for end := time.Now().Add(timeout); ; time.Sleep(often) {
		_, err := f.kubelet.Allocate(t.Context(), fakekubelet.Container{Pod: "late", Name: container}, resourceX2, nic0)
		if err != nil && strings.Contains(err.Error(), hosttree.OnloadVersion) && strings.Contains(err.Error(), "9.2.0.11") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("error is %v, want both versions", err)
		}
	}
	must(t, hosttree.SetOnload(root, hosttree.NewOnload()))
	f.awaitUnits(resourceX2, nic0, nic1)

	must(t, hosttree.UnloadOnload(root))
	f.awaitUnits(resourceX2)
	must(t, hosttree.SetOnload(root, hosttree.NewOnload()))
	f.awaitUnits(resourceX2, nic0, nic1)

	away := root + "-away"
	must(t, os.Rename(root, away))
	f.awaitUnits(resourceX2)
	must(t, os.Rename(away, root))
	f.awaitUnits(resourceX2, nic0, nic1)
}

// TestSourceWithholdsWhatClaimsHold: the kubelet would give such a NIC to a second pod.
func TestSourceWithholdsWhatClaimsHold(t *testing.T) {
	poolFile := filepath.Join(t.TempDir(), v1alpha1.PoolKey)
	pool := tradingPool()
	pool.Spec.Allocation = v1alpha1.AllocationDynamic
	writePool(t, poolFile, pool)
	claimed := host.Known([]allocation.Container{{Namespace: "trading", Pod: "feed", Name: container, Claimed: []allocation.ClaimedDevice{
		{Driver: bypass.DriverName("trading"), Device: bypass.ResourceDeviceName(nic0)},
	}}}, "")
	for answer, want := range map[*host.Fact[[]allocation.Container]]v1alpha1.NICHealth{
		&claimed: v1alpha1.NICUnhealthy, new(host.Absent[[]allocation.Container]("kubelet.sock", "no such file")): v1alpha1.NICHealthy,
	} {
		source := &Source{
			PoolFile: poolFile, Root: tradingHost(t), NodeName: "worker-1", HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)},
			Containers: func(context.Context) host.Fact[[]allocation.Container] { return *answer },
		}
		reading, err := source.Evaluate(t.Context())
		must(t, err)
		if got := reading.Devices[0].Health; got != want || reading.Devices[1].Health != v1alpha1.NICHealthy {
			t.Errorf("with %+v NICs are %s and %s, want %s", answer, got, reading.Devices[1].Health, want)
		}
	}
}

// TestOwnReportIsNoReason: what a plugin of stack AFXDP said of a NIC before does not keep it from trying again.
func TestOwnReportIsNoReason(t *testing.T) {
	root, poolFile := tradingHost(t), filepath.Join(t.TempDir(), v1alpha1.PoolKey)
	pool := tradingPool()
	pool.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{nic0}}}
	pool.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{ZeroCopy: v1alpha1.ZeroCopyPreferred}}
	writePool(t, poolFile, pool)
	report := filepath.Join(root, host.SocketReports, pool.Name)
	must(t, os.MkdirAll(filepath.Dir(report), 0o755))
	must(t, os.WriteFile(report, []byte(nic0+" Another XDP program was on its interface.\n"), 0o600))
	source := &Source{
		PoolFile: poolFile, Root: root, NodeName: "worker-1", HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)},
	}
	reading, err := source.Evaluate(t.Context())
	must(t, err)
	if len(reading.Devices) != 1 || reading.Devices[0].Health != v1alpha1.NICHealthy {
		t.Errorf("devices are %+v", reading.Devices)
	}
	opened, err := host.Open(root)
	must(t, err)
	defer func() { must(t, opened.Close()) }()
	facts, err := opened.Read(t.Context())
	must(t, err)
	if facts.Bypass.SocketReports.Value[pool.Name][nic0] == "" {
		t.Errorf("others do not see the report: %+v", facts.Bypass.SocketReports)
	}
}

func TestSourceErrors(t *testing.T) {
	root := tradingHost(t)
	folder := t.TempDir()
	good, bad := filepath.Join(folder, "good.json"), filepath.Join(folder, "bad.json")
	writePool(t, good, tradingPool())
	must(t, os.WriteFile(bad, []byte(`{"name":`), 0o600))
	cases := map[string]struct {
		source Source
		want   string
	}{
		"no pool":       {Source{PoolFile: "/nowhere/pool.json", Root: root}, "/nowhere/pool.json"},
		"a broken pool": {Source{PoolFile: bad, Root: root}, bad},
		"no host":       {Source{PoolFile: good, Root: "/nowhere", NodeName: "worker-1"}, `node "worker-1"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.source.Evaluate(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %s", err, tc.want)
			}
		})
	}
	if _, err := (&Source{PoolFile: "/nowhere", Root: root}).Evaluate(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// TestLessIsRead: the part of the host that is read every few seconds has all that package bypass looks at.
func TestLessIsRead(t *testing.T) {
	opened, err := host.Open(tradingHost(t))
	must(t, err)
	defer func() { must(t, opened.Close()) }()
	request := host.Request{UserSpaces: []string{"/opt/onload"}}
	part, err := opened.ReadNICs(t.Context(), request)
	must(t, err)
	whole, err := opened.ReadWith(t.Context(), request)
	must(t, err)
	if len(part.CPUs.List) > 0 || part.Interrupts.Lines.Known || len(part.Settings) > 0 {
		t.Errorf("more was read than NICs need: %+v", part)
	}
	want := &host.Facts{
		Name: whole.Name, Kernel: whole.Kernel, NUMANodes: whole.NUMANodes, Hugepages: whole.Hugepages,
		NICs: whole.NICs, Processes: whole.Processes, Bypass: whole.Bypass,
	}
	want.Kernel.PageSizeBytes = part.Kernel.PageSizeBytes
	options := cmp.Options{
		cmpopts.IgnoreFields(host.NIC{}, "Interrupts"),
		cmpopts.EquateComparable(netip.Prefix{}),
	}
	if diff := cmp.Diff(want, part, options...); diff != "" {
		t.Errorf("facts (-of the whole host +of the part):\n%s", diff)
	}
}

// BenchmarkEvaluate is what a device plugin does every few seconds.
func BenchmarkEvaluate(b *testing.B) {
	poolFile := filepath.Join(b.TempDir(), v1alpha1.PoolKey)
	writePool(b, poolFile, tradingPool())
	source := &Source{PoolFile: poolFile, Root: tradingHost(b), NodeName: "worker-1", HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := source.Evaluate(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
