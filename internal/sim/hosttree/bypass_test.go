// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const (
	x2Address   = "0000:af:00.0"
	x2Name      = "ens2f0np0"
	e810Address = "0000:5e:00.0"
)

// bypassMachine is the Xeon with Onload, a NIC of each other kind and an IOMMU.
func bypassMachine() Machine {
	m := Xeon()
	m.Onload = NewOnload()
	m.NICs = append(m.NICs, AlveoX4("ens3", "0000:b0:00.0", 1), AlveoX3("ens4", "0000:b1:00.0", 1),
		Solarflare8000("ens5", "0000:3b:00.0", 0), IntelE810("ens6", e810Address, -1))
	for i := range m.NICs {
		m.NICs[i].IOMMUGroup = i + 1
	}
	return m
}

// bypassFacts reads a tree with the user files of the stack.
func bypassFacts(t *testing.T, dir string) *host.Facts {
	t.Helper()
	h, err := host.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	f, err := h.ReadWith(t.Context(), host.Request{UserSpaces: []string{"/opt/onload"}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// do fails the test on an error.
func do(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onloadSummary says in one line what a host shows of Onload.
func onloadSummary(f *host.Facts) string {
	o := f.Bypass.Onload
	library := f.Bypass.UserSpaces["/opt/onload"].Files.Value["libonload.so"]
	nodes := slices.Sorted(maps.Keys(f.Bypass.DeviceNodes.Value))
	return fmt.Sprintf("module %s %s, VI %d of %d, control plane %v, interfaces %v, nodes %v, library %s %v",
		o.Version.Value, o.InterfaceVersion.Value, o.Resources.Value["VI"].Current, o.Resources.Value["VI"].Total.Value,
		o.ControlPlanePIDs.Value, o.Interfaces.Value, nodes, library.Version, library.HoldsChecksum(o.InterfaceVersion.Value))
}

func TestOnloadOfATree(t *testing.T) {
	const loaded = "module 9.1.0.15 " + OnloadInterfaceVersion + ", VI 0 of 2048, control plane [1608], " +
		"interfaces [ens2f0np0 ens2f1np1 ens3 ens4 ens5], nodes [/dev/onload /dev/onload_epoll /dev/sfc_char], library 9.1.0.15 true"
	cases := map[string]struct {
		change func(dir string) error
		want   string
	}{
		"loaded": {func(string) error { return nil }, loaded},
		"unloaded": {UnloadOnload,
			"module  , VI 0 of 0, control plane [], interfaces [], nodes [], library 9.1.0.15 false"},
		"module of another release": {
			func(dir string) error { return SetOnloadVersion(dir, "9.2.0.1", strings.Repeat("a", 32)) },
			strings.NewReplacer("module 9.1.0.15 "+OnloadInterfaceVersion, "module 9.2.0.1 "+strings.Repeat("a", 32), "true", "false").Replace(loaded),
		},
		"without control plane, all VIs in use": {
			func(dir string) error {
				onload := NewOnload()
				onload.ControlPlanePID, onload.VirtualInterfacesInUse = 0, onload.VirtualInterfaces
				return SetOnload(dir, onload)
			},
			strings.NewReplacer("VI 0", "VI 2048", "[1608]", "[]").Replace(loaded),
		},
		"removed": {
			func(dir string) error { return SetOnload(dir, Onload{}) },
			"module  , VI 0 of 0, control plane [], interfaces [], nodes [], library  false",
		},
		"booted":           {func(dir string) error { return Boot(dir, BootOptions{CommandLine: "quiet"}) }, loaded},
		"unloaded, loaded": {func(dir string) error { return firstError(UnloadOnload(dir), SetOnload(dir, NewOnload())) }, loaded},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := written(t, bypassMachine())
			do(t, tc.change(dir))
			if got := onloadSummary(bypassFacts(t, dir)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func firstError(failures ...error) error {
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestDefaultRouteOfATree(t *testing.T) {
	dir := written(t, bypassMachine())
	management := func() map[string]string {
		return topology.ManagementInterfaces(&bypassFacts(t, dir).Bypass, []netip.Addr{netip.MustParseAddr(NodeAddress)})
	}
	if diff := cmp.Diff(map[string]string{"eno1": "the default route"}, management()); diff != "" {
		t.Errorf("as written (-want +got):\n%s", diff)
	}
	do(t, SetDefaultRoute(dir, x2Name))
	do(t, Boot(dir, BootOptions{CommandLine: "quiet"}))
	if diff := cmp.Diff(map[string]string{x2Name: "the default route"}, management()); diff != "" {
		t.Errorf("moved (-want +got):\n%s", diff)
	}
	do(t, SetDefaultRoute(dir, ""))
	if got := management(); len(got) > 0 || !bypassFacts(t, dir).Bypass.Networks.Known {
		t.Errorf("without route: %v", got)
	}
}

// nic returns a NIC of a host.
func nic(t *testing.T, f *host.Facts, address string) host.NIC {
	t.Helper()
	for _, found := range f.NICs {
		if found.PCIAddress == address {
			return found
		}
	}
	t.Fatalf("the host has no NIC %s", address)
	return host.NIC{}
}

func TestLinksOfATree(t *testing.T) {
	dir := written(t, bypassMachine())
	link := func() string {
		n := nic(t, facts(t, dir), x2Address)
		return fmt.Sprintf("carrier %t, %d Mbit/s, PCIe %s x%d of %s x%d", n.Carrier.Value, n.SpeedMegabits.Value,
			n.LinkSpeed.Value, n.LinkWidth.Value, n.MaximumLinkSpeed.Value, n.MaximumLinkWidth.Value)
	}
	steps := []struct {
		change func() error
		want   string
	}{
		{func() error { return nil }, "carrier true, 25000 Mbit/s, PCIe 8.0 GT/s PCIe x8 of 8.0 GT/s PCIe x8"},
		{func() error { return SetCarrier(dir, x2Name, false) }, "carrier false, 0 Mbit/s, PCIe 8.0 GT/s PCIe x8 of 8.0 GT/s PCIe x8"},
		{func() error { return SetCarrier(dir, x2Name, true) }, "carrier true, 25000 Mbit/s, PCIe 8.0 GT/s PCIe x8 of 8.0 GT/s PCIe x8"},
		{func() error { return TrainLink(dir, x2Name, "2.5 GT/s PCIe", 4) }, "carrier true, 25000 Mbit/s, PCIe 2.5 GT/s PCIe x4 of 8.0 GT/s PCIe x8"},
	}
	for _, step := range steps {
		do(t, step.change())
		if got := link(); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
}

func TestVirtualFunctionsOfATree(t *testing.T) {
	dir := written(t, bypassMachine())
	functions := func(address string) string {
		f := facts(t, dir)
		found := nic(t, f, address).VirtualFunctions
		text := make([]string, 0, len(found))
		for _, function := range found {
			virtual := nic(t, f, function)
			text = append(text, fmt.Sprintf("%s %s of %s driver %q group %d", function, virtual.Device.Value, virtual.PhysicalFunction.Value,
				virtual.Driver.Value, f.Bypass.VFIO.Groups[function]))
		}
		return strings.Join(text, "; ")
	}
	do(t, CreateVirtualFunctions(dir, x2Address, 2))
	do(t, CreateVirtualFunctions(dir, "0000:af:00.1", 1))
	do(t, WriteSetting(dir, pciDevices+e810Address+"/sriov_numvfs", "1"))
	want := map[string]string{
		x2Address:      `0000:af:02.0 0x1b03 of 0000:af:00.0 driver "" group 301; 0000:af:02.1 0x1b03 of 0000:af:00.0 driver "" group 302`,
		"0000:af:00.1": `0000:af:02.2 0x1b03 of 0000:af:00.1 driver "" group 401`,
		e810Address:    `0000:5e:02.0 0x1889 of 0000:5e:00.0 driver "" group 801`,
		"0000:b1:00.0": "",
	}
	for address, text := range want {
		if got := functions(address); got != text {
			t.Errorf("%s has %s, want %s", address, got, text)
		}
	}
	do(t, BindDriver(dir, "0000:af:02.0", "vfio-pci"))
	do(t, CreateVirtualFunctions(dir, x2Address, 1))
	if got := functions(x2Address); got != `0000:af:02.0 0x1b03 of 0000:af:00.0 driver "" group 301` {
		t.Errorf("after a change of the number: %s", got)
	}
	do(t, WriteSetting(dir, pciDevices+x2Address+"/sriov_numvfs", "0"))
	if got := functions(x2Address); got != "" {
		t.Errorf("after removal: %s", got)
	}
	if got := facts(t, dir).Bypass.DeviceNodes.Value["/dev/vfio/301"]; got != (host.DeviceNode{}) {
		t.Errorf("the group of a function that is gone is still there: %+v", got)
	}
}

func TestBindDriver(t *testing.T) {
	dir := written(t, bypassMachine())
	steps := []struct {
		change func() error
		want   string
	}{
		{func() error { return nil }, `driver "ice" interface "ens6" group false`},
		{func() error { return BindDriver(dir, e810Address, "vfio-pci") }, `driver "vfio-pci" interface "" group true`},
		{func() error { return WriteSetting(dir, "/sys/bus/pci/drivers/vfio-pci/unbind", e810Address) }, `driver "" interface "" group false`},
		{func() error { return WriteSetting(dir, "/sys/bus/pci/drivers/ice/bind", e810Address) }, `driver "ice" interface "ens6" group false`},
	}
	state := func() string {
		f := facts(t, dir)
		n := nic(t, f, e810Address)
		_, bound := f.Bypass.DeviceNodes.Value["/dev/vfio/8"]
		return fmt.Sprintf("driver %q interface %q group %t", n.Driver.Value, n.Name.Value, bound)
	}
	for _, step := range steps {
		do(t, step.change())
		if got := state(); got != step.want {
			t.Errorf("got %s, want %s", got, step.want)
		}
	}
}

// TestBindWithoutIOMMU: vfio-pci takes a function without a group only in the unsafe mode.
func TestBindWithoutIOMMU(t *testing.T) {
	dir := written(t, Xeon())
	if err := BindDriver(dir, x2Address, "vfio-pci"); err == nil || !strings.Contains(err.Error(), "without an IOMMU: invalid argument") {
		t.Errorf("error %v", err)
	}
	if got := nic(t, facts(t, dir), x2Address); got.Driver.Value != "sfc" || got.Name.Value != x2Name {
		t.Errorf("the NIC is bound to %q with the interface %q", got.Driver.Value, got.Name.Value)
	}
	do(t, WriteSetting(dir, noIOMMUParam, "Y"))
	do(t, BindDriver(dir, x2Address, "vfio-pci"))
	want := []string{"/dev/vfio/noiommu-0", "/dev/vfio/vfio"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(facts(t, dir).Bypass.DeviceNodes.Value))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFunctionsAfterBoot: functions that the machine states are bound to vfio-pci, with their groups.
func TestFunctionsAfterBoot(t *testing.T) {
	m := bypassMachine()
	m.NICs[len(m.NICs)-1].VirtualFunctions = 2
	f := facts(t, written(t, m))
	want := []string{"/dev/onload", "/dev/onload_epoll", "/dev/sfc_char", "/dev/vfio/801", "/dev/vfio/802", "/dev/vfio/vfio"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(f.Bypass.DeviceNodes.Value))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBypassChangesThatFail(t *testing.T) {
	dir := written(t, bypassMachine())
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	numvfs := pciDevices + x2Address + "/sriov_numvfs"
	do(t, CreateVirtualFunctions(dir, x2Address, 2))
	do(t, WriteSetting(dir, numvfs, "2"))
	cases := map[string]struct {
		err  error
		want string
	}{
		"too many functions":       {CreateVirtualFunctions(dir, x2Address, 17), "which can have 16: numerical result out of range"},
		"functions of an unknown":  {CreateVirtualFunctions(dir, "0000:00:00.0", 1), "machine xeon has no such NIC"},
		"functions of an X3":       {CreateVirtualFunctions(dir, "0000:b1:00.0", 1), "which can have 0"},
		"functions while some are": {WriteSetting(dir, numvfs, "3"), "device or resource busy"},
		"functions by word":        {WriteSetting(dir, numvfs, "two"), "invalid argument"},
		"binding an unknown":       {BindDriver(dir, "0000:00:00.0", "vfio-pci"), "no such file"},
		"cable of an unknown":      {SetCarrier(dir, "eth9", true), "machine xeon has no such NIC"},
		"link of an unknown":       {TrainLink(dir, "eth9", "", 1), "machine xeon has no such NIC"},
		"Onload nowhere":           {SetOnload(nowhere, NewOnload()), "no such file"},
		"unloading nowhere":        {UnloadOnload(nowhere), "no such file"},
		"route nowhere":            {SetDefaultRoute(nowhere, "eno1"), "no such file"},
		"cable nowhere":            {SetCarrier(nowhere, "eno1", true), "no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", tc.err, tc.want)
			}
		})
	}
}

// TestNICsOfATree: the readers of facts find the identifiers by which NICs are told apart.
func TestNICsOfATree(t *testing.T) {
	f := facts(t, written(t, bypassMachine()))
	want := map[string]string{
		x2Address: "0x1924:0x0b03 sfc node 1 functions 16", "0000:b0:00.0": "0x1924:0x0c03 sfc node 1 functions 16",
		"0000:b1:00.0": "0x10ee:0x5084 xilinx_efct node 1 functions 0", "0000:3b:00.0": "0x1924:0x0a03 sfc node 0 functions 16",
		e810Address: "0x8086:0x1592 ice node none functions 128",
	}
	for address, text := range want {
		n := nic(t, f, address)
		node := "none"
		if id, known := n.NUMANode.Get(); known {
			node = strconv.Itoa(id)
		}
		got := fmt.Sprintf("%s:%s %s node %s functions %d", n.Vendor.Value, n.Device.Value, n.Driver.Value, node, n.MaximumVirtualFunctions.Value)
		if got != text {
			t.Errorf("%s is %s, want %s", address, got, text)
		}
	}
}
