// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	moduleInterface = "00112233445566778899aabbccddeeff"
	otherInterface  = "ffeeddccbbaa99887766554433221100"
)

// onloadHost is what a host shows on which a release of Onload is loaded.
func onloadHost() files {
	return files{
		"proc/driver/onload/version":               "onload_product: Onload\nonload_version: 9.1.0.15 \nuk_intf_ver: " + moduleInterface + "\n",
		"proc/driver/onload/cp_server_pids":        "1608\n1700\n",
		"proc/driver/onload/stacks":                "0: 2001 0 135 17 0 1\n3: 2002 0 1 1 0 1\n",
		"proc/driver/sfc_resource/resources":       "*** VI ***\n  total = 2048\ncurrent = 12\n    max = 40\n\n*** PIO ***\ncurrent = 3\n    max = 4\n\n",
		"proc/driver/sfc_resource/ens1f0/rules":    "",
		"proc/driver/sfc_resource/devices/af:00.0": "",
		"proc/driver/sfc_resource/devices/ens1f1/": "",
		"sys/module/onload/version":                "9.1.0.15 \n",
		"sys/module/sfc_char/initstate":            "live\n",
		"sys/module/sfc_resource/initstate":        "live\n",
		"sys/module/sfc/version":                   "6.2.0.1000\n",
		"sys/module/ext4/version":                  "1.0\n",
		"dev/onload":                               "character device 245:0 mode 666\n",
		"dev/sfc_char":                             "",
		"dev/null":                                 "",
		"dev/vfio/vfio":                            "character device 10:196 mode 666",
		"dev/vfio/17":                              "",
		"dev/vfio/noiommu-0":                       "",
		"dev/vfio/devices/vfio0":                   "",
		"dev/vfio/notes":                           "",
	}
}

func TestOnloadFacts(t *testing.T) {
	got := readAll(t, onloadHost()).Bypass.Onload
	expect(t, "the version", got.Version, "9.1.0.15")
	expect(t, "the interface version", got.InterfaceVersion, moduleInterface)
	expect(t, "the control planes", got.ControlPlanePIDs, "[1608 1700]")
	expect(t, "the stacks", got.Stacks, "2")
	expect(t, "the interfaces", got.Interfaces, "[ens1f0 ens1f1]")
	expect(t, "the modules", got.Modules, "map[onload:9.1.0.15 sfc:6.2.0.1000 sfc_char: sfc_resource:]")
	want := map[string]ResourceCount{
		"VI":  {Total: Known(2048, resourceRoot+"/resources"), Current: 12},
		"PIO": {Total: Absent[int](resourceRoot+"/resources", "no total for PIO"), Current: 3},
	}
	if diff := cmp.Diff(want, got.Resources.Value); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
}

// TestStackOwners: each stack and each control plane has a network namespace; the kernel names no process that has ended, or
// that is not in the reader's PID namespace.
func TestStackOwners(t *testing.T) {
	const hostNamespace, podNamespace = "net:[4026531840]", "net:[4026532523]"
	tree := onloadHost().with(files{
		"proc/driver/onload/stacks":         "0: 1104 0 135 17\n1: 1372 0 59 0\n2: 0 0 59 0\n3: 1500 1001 59 0\n",
		"proc/driver/onload/cp_server_pids": "608\n1391\n",
		"proc/1104/ns/net":                  linkTo + hostNamespace,
		"proc/1372/ns/net":                  linkTo + podNamespace,
		"proc/608/ns/net":                   linkTo + hostNamespace,
		"proc/1391/ns/net":                  linkTo + podNamespace,
	})
	check := func(t *testing.T, got Onload) {
		t.Helper()
		expect(t, "the number of stacks", got.Stacks, "4")
		if diff := cmp.Diff(map[int]NamespacedProcess{0: {1104, hostNamespace}, 1: {1372, podNamespace}, 3: {PID: 1500}}, got.StackOwners); diff != "" {
			t.Errorf("the owners of stacks (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]NamespacedProcess{{608, hostNamespace}, {1391, podNamespace}}, got.ControlPlanes); diff != "" {
			t.Errorf("the control planes (-want +got):\n%s", diff)
		}
	}
	check(t, readAll(t, tree).Bypass.Onload)
	t.Run("from a snapshot", func(t *testing.T) {
		opened := open(t, snapshot(t, tree.write(t)))
		facts, err := opened.Read(t.Context())
		must(t, err)
		check(t, facts.Bypass.Onload)
	})
}

// TestNamespacesWithoutPrivileges tells the network namespaces of processes apart by what everybody may see.
func TestNamespacesWithoutPrivileges(t *testing.T) {
	opened, err := openDirectory("/")
	must(t, err)
	defer closeRead(opened)
	own, parent := os.Getpid(), os.Getppid()
	got := newReader(t.Context(), opened.view(), nil).inodesOfNamespaces([]int{own, parent})
	if got[own] == "" || got[own] != got[parent] {
		t.Errorf("this process and the one that started it are in %q and %q", got[own], got[parent])
	}
}

// TestOnloadIsAbsent: a host without Onload says so by what is missing, and the modules are known to be none.
func TestOnloadIsAbsent(t *testing.T) {
	got := readAll(t, files{"sys/module/ext4/": "", "dev/": ""}).Bypass
	for what, fact := range map[string]string{
		"version": shown(got.Onload.Version), "interface version": shown(got.Onload.InterfaceVersion), "stacks": shown(got.Onload.Stacks),
		"control planes": shown(got.Onload.ControlPlanePIDs), "interfaces": shown(got.Onload.Interfaces),
		"resources": shown(got.Onload.Resources),
	} {
		if fact != "absent: no such file" {
			t.Errorf("%s: %s", what, fact)
		}
	}
	expect(t, "the modules", got.Onload.Modules, "map[]")
	expect(t, "the device nodes", got.DeviceNodes, "map[]")
	nothing := readAll(t, files{}).Bypass
	expect(t, "the modules of nothing", nothing.Onload.Modules, "absent: no such file")
	expect(t, "the device nodes of nothing", nothing.DeviceNodes, "absent: no such file")
	if nothing.UserSpaces != nil {
		t.Errorf("user spaces that nobody asked for: %v", nothing.UserSpaces)
	}
}

// TestOnloadOfHalfAHost takes each fact from the next best place, or none.
func TestOnloadOfHalfAHost(t *testing.T) {
	cases := map[string]struct {
		tree files
		get  func(*Bypass) string
		want string
	}{
		"version of the module": {
			files{"sys/module/onload/version": "24d0c2a7 2026-07-24 v9_2 \n"},
			func(b *Bypass) string { return shown(b.Onload.Version) }, "24d0c2a7 2026-07-24 v9_2",
		},
		"version file without version": {
			files{"proc/driver/onload/version": "onload_product: Onload\n"},
			func(b *Bypass) string { return shown(b.Onload.Version) }, "absent: no line onload_version",
		},
		"no control plane": {
			files{"proc/driver/onload/cp_server_pids": "", "proc/7/comm": "init"},
			func(b *Bypass) string { return shown(b.Onload.ControlPlanePIDs) }, "[]",
		},
		"control plane of another PID namespace": {
			files{"proc/driver/onload/cp_server_pids": "", "proc/608/comm": "onload_cp_serve\n"},
			func(b *Bypass) string { return shown(b.Onload.ControlPlanePIDs) }, "[608]",
		},
		"control plane that both show": {
			files{"proc/driver/onload/cp_server_pids": "608\n", "proc/608/comm": "onload_cp_serve\n", "proc/2/comm": "onload_cp_serve\n"},
			func(b *Bypass) string { return shown(b.Onload.ControlPlanePIDs) }, "[2 608]",
		},
		"control plane without module": {
			files{"proc/608/comm": "onload_cp_serve\n"},
			func(b *Bypass) string { return shown(b.Onload.ControlPlanePIDs) }, "absent: no such file",
		},
		"odd PIDs": {
			files{"proc/driver/onload/cp_server_pids": "x"},
			func(b *Bypass) string { return shown(b.Onload.ControlPlanePIDs) }, `absent: not a number: "x"`,
		},
		"odd stacks": {
			files{"proc/driver/onload/stacks": "stack one"},
			func(b *Bypass) string { return shown(b.Onload.Stacks) }, `absent: not a line of a stack: "stack one"`,
		},
		"unsafe VFIO": {
			files{"sys/module/vfio/parameters/enable_unsafe_noiommu_mode": "Y\n"},
			func(b *Bypass) string { return shown(b.VFIO.NoIOMMU) }, "true",
		},
		"safe VFIO": {
			files{"sys/module/vfio/parameters/enable_unsafe_noiommu_mode": "N\n"},
			func(b *Bypass) string { return shown(b.VFIO.NoIOMMU) }, "false",
		},
		"odd VFIO": {
			files{"sys/module/vfio/parameters/enable_unsafe_noiommu_mode": "1\n"},
			func(b *Bypass) string { return shown(b.VFIO.NoIOMMU) }, `absent: neither Y nor N: "1"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.get(&readAll(t, tc.tree).Bypass); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestParseResources(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"nothing":         {"", "map[]"},
		"number first":    {"current = 1", `a number without a title: "current = 1"`},
		"not a number":    {"*** VI ***\ncurrent = x", `not a number of a resource: "current = x"`},
		"no equals sign":  {"*** VI ***\ncurrent", `not a number of a resource: "current"`},
		"negative number": {"*** VI ***\ncurrent = -1", `not a number of a resource: "current = -1"`},
		"unknown number":  {"*** VI ***\nfuture = 7\nmax = 2", "map[VI:{{0 false /proc/driver/sfc_resource/resources no total for VI false} 0}]"},
		"too many":        {strings.Join(titles(maxResources+1), "\n"), "holds more than 64 entries"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parsed, err := parseResources(tc.text)
			got := fmt.Sprint(parsed)
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func titles(count int) []string {
	lines := make([]string, count)
	for i := range lines {
		lines[i] = fmt.Sprintf("*** R%d ***", i)
	}
	return lines
}

func TestIOMMUGroups(t *testing.T) {
	tree := pciDevice(nicA, "0x020000", files{"iommu_group": linkTo + "../../../../kernel/iommu_groups/17"}).
		with(pciDevice("0000:01:00.0", "0x010802", files{"iommu_group": linkTo + "../../../../kernel/iommu_groups/3"})).
		with(pciDevice(nicB, "0x020000", nil), pciDevice(vfA0, "0x020000", files{"iommu_group": linkTo + "nowhere"}))
	want := map[string]int{nicA: 17, "0000:01:00.0": 3}
	if diff := cmp.Diff(want, readAll(t, tree).Bypass.VFIO.Groups); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	without := pciDevice(nicA, "0x020000", nil).
		with(pciDevice("0000:01:00.0", "0x010802", files{"iommu_group": linkTo + "../../../../kernel/iommu_groups/3"}))
	if got := readAll(t, without).Bypass.VFIO.Groups; len(got) > 0 {
		t.Errorf("groups are %v where no NIC is in one", got)
	}
}

func TestDeviceNodes(t *testing.T) {
	got := readAll(t, onloadHost()).Bypass.DeviceNodes
	want := map[string]DeviceNode{
		"/dev/onload":         {Mode: 0o666, Major: 245},
		"/dev/sfc_char":       {Mode: 0o644, Simulated: true},
		"/dev/vfio/vfio":      {Mode: 0o666, Major: 10, Minor: 196},
		"/dev/vfio/17":        {Mode: 0o644, Simulated: true},
		"/dev/vfio/noiommu-0": {Mode: 0o644, Simulated: true},
	}
	if diff := cmp.Diff(want, got.Value); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRealDeviceNodes describes devices of an archive and, where the test may make one, of a directory.
func TestRealDeviceNodes(t *testing.T) {
	want := map[string]DeviceNode{"/dev/onload": {Mode: 0o640, Major: 245, Minor: 7}}
	archive := packHeaders(t, []tar.Header{
		{Name: "proc/", Typeflag: tar.TypeDir},
		{Name: "dev/onload", Typeflag: tar.TypeChar, Mode: 0o640, Devmajor: 245, Devminor: 7},
		{Name: "dev/sfc_char", Typeflag: tar.TypeFifo},
		{Name: "dev/onload_epoll", Typeflag: tar.TypeDir},
	}, nil)
	forms := map[string]string{"archive": writeFile(t, archive)}
	forms["snapshot"] = snapshot(t, forms["archive"])
	dir := files{"proc/": "", "dev/": ""}.write(t)
	device := filepath.Join(dir, "dev/onload")
	if err := syscall.Mknod(device, syscall.S_IFCHR|0o600, 245<<8|7); err == nil {
		must(t, os.Chmod(device, 0o640))
		forms["directory"], forms["snapshot of the directory"] = dir, snapshot(t, dir)
	}
	for name, path := range forms {
		t.Run(name, func(t *testing.T) {
			facts, err := readPath(t, path)
			must(t, err)
			if diff := cmp.Diff(want, facts.Bypass.DeviceNodes.Value); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFilesAreNoDevicesOnARunningHost: what lies in /dev of a running host and is no device is none.
func TestFilesAreNoDevicesOnARunningHost(t *testing.T) {
	tree := newMemoryTree()
	must(t, tree.add("dev/onload", &memoryNode{node: node{kind: kindFile}}))
	r := newReader(t.Context(), tree, nil)
	if got := r.deviceNodes(); len(got.Value) != 1 {
		t.Errorf("a copy has %v", got)
	}
	r.live = true
	if got := r.deviceNodes(); len(got.Value) != 0 || !got.Known {
		t.Errorf("a running host has %v", got)
	}
}

func TestLowerInterfaces(t *testing.T) {
	tree := files{
		"sys/class/net/bond0":                                  linkTo + "../../devices/virtual/net/bond0",
		"sys/devices/virtual/net/bond0/lower_ens1f0":           linkTo + "../../../pci/ens1f0",
		"sys/devices/virtual/net/bond0/lower_ens1f1":           linkTo + "../../../pci/ens1f1",
		"sys/devices/virtual/net/bond0/type":                   "1\n",
		"sys/class/net/bond0.100":                              linkTo + "../../devices/virtual/net/bond0.100",
		"sys/devices/virtual/net/bond0.100/lower_bond0":        linkTo + "../bond0",
		"sys/class/net/lo":                                     linkTo + "../../devices/virtual/net/lo",
		"sys/devices/virtual/net/lo/type":                      "772\n",
		"sys/class/net/bonding_masters":                        "bond0\n",
		"sys/devices/virtual/net/bond0/lower_file_not_a_link":  "",
		"sys/devices/virtual/net/bond0/statistics/rx_packets":  "0\n",
		"sys/devices/virtual/net/bond0.100/upper_bond0_is_not": linkTo + "../bond0",
	}
	want := map[string][]string{"bond0": {"ens1f0", "ens1f1"}, "bond0.100": {"bond0"}}
	if diff := cmp.Diff(want, readAll(t, tree).Bypass.Lower); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLowerOfOpenVSwitch: the bridge br-ex of OpenShift carries the node's traffic over a NIC that the kernel
// links to the datapath only.
func TestLowerOfOpenVSwitch(t *testing.T) {
	virtual := func(name string, attributes files) files {
		tree := files{"sys/class/net/" + name: linkTo + "../../devices/virtual/net/" + name}
		for file, content := range attributes {
			tree["sys/devices/virtual/net/"+name+"/"+file] = content
		}
		return tree
	}
	bridges := virtual("br-ex", files{"type": "1"}).
		with(virtual("veth1", files{"type": "1", "master": linkTo + "../ovs-system"}), virtual("lo", files{"type": "772"})).
		with(netDevice("ens1", nicA, "", files{"type": "1"}))
	cases := map[string]struct {
		tree files
		want map[string][]string
	}{
		"without datapath": {bridges, map[string][]string{}},
		"with datapath": {
			bridges.with(virtual("ovs-system", files{"type": "1", "lower_ens1": linkTo + "../ens1", "lower_veth1": linkTo + "../veth1"})),
			map[string][]string{"ovs-system": {"ens1", "veth1"}, "br-ex": {"ens1", "veth1"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, readAll(t, tc.tree).Bypass.Lower); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// routedHost is a host with routes of both families.
func routedHost() files {
	const title = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT                                                       \n"
	const none = "00000000000000000000000000000000"
	return files{
		"proc/1/net/route": title +
			"br-ex\t00000000\t0100000A\t0003\t0\t0\t48\t00000000\t0\t0\t0      \n" +
			"br-ex\t0000000A\t00000000\t0001\t0\t0\t48\t0000FFFF\t0\t0\t0      \n" +
			"ens9\t0005A8C0\t00000000\t0000\t0\t0\t0\t00FFFFFF\t0\t0\t0        \n" +
			"*\t000010AC\t00000000\t0201\t0\t0\t1024\t0000FFFF\t0\t0\t0        \n",
		"proc/1/net/ipv6_route": "00000000000000000000000000000001 80 " + none + " 00 " + none + " 00000100 00000002 00000000 80200001       lo\n" +
			"fe800000000000000000000000000000 40 " + none + " 00 " + none + " 00000100 00000001 00000000 00000001     ens1\n" +
			none + " 00 " + none + " 00 fe800000000000000000000000000001 00000400 00000001 00000000 00000003     ens1\n" +
			"fe80000000000000546e81fffe0a5a2b 80 " + none + " 00 " + none + " 00000000 00000002 00000000 80200001     ens1\n" +
			"ff000000000000000000000000000000 08 " + none + " 00 " + none + " 00000100 00000004 00000000 00000001     ens1\n" +
			none + " 00 " + none + " 00 " + none + " ffffffff 00000001 00000000 00200200       lo\n",
		"proc/net/route": title + "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
	}
}

func TestNetworkRoutes(t *testing.T) {
	shownRoutes := func(fact Fact[[]Route]) string {
		var text strings.Builder
		for _, route := range fact.Value {
			fmt.Fprintf(&text, "%s dev %s", route.Destination, route.Interface)
			if route.Gateway != (netip.Addr{}) {
				fmt.Fprintf(&text, " via %s", route.Gateway)
			}
			text.WriteString("; ")
		}
		return text.String() + fact.Reason
	}
	const both = "0.0.0.0/0 dev br-ex via 0.0.0.0; 10.0.0.0/16 dev br-ex; fe80::/64 dev ens1; ::/0 dev ens1 via ::; "
	without := func(names ...string) files {
		tree := routedHost()
		for _, name := range names {
			delete(tree, name)
		}
		return tree
	}
	cases := map[string]struct {
		tree files
		want string
	}{
		"process 1":          {routedHost(), both},
		"without IPv6":       {without("proc/1/net/ipv6_route"), "0.0.0.0/0 dev br-ex via 0.0.0.0; 10.0.0.0/16 dev br-ex; "},
		"without process 1":  {without("proc/1/net/route", "proc/1/net/ipv6_route"), "0.0.0.0/0 dev eth0 via 0.0.0.0; "},
		"no routes at all":   {files{"proc/1/comm": "init"}, "no such file"},
		"title only":         {files{"proc/1/net/route": "Iface\tDestination\n"}, ""},
		"IPv4 makes none":    {files{"proc/1/net/route": "ens1 x"}, "line 1 is no route: fewer than 8 columns"},
		"IPv6 makes none":    {routedHost().with(files{"proc/1/net/ipv6_route": "x"}), "line 1 is no route: fewer than 10 columns"},
		"binary":             {files{"proc/1/net/route": "\x00\x01"}, "binary content"},
		"IPv6 no file":       {without("proc/1/net/ipv6_route").with(files{"proc/1/net/ipv6_route/": ""}), "not a regular file"},
		"mask with holes":    {files{"proc/1/net/route": "e 0 0 1 0 0 0 00FF00FF"}, "line 1 is no route: not a mask: ff00ff00"},
		"address of letters": {files{"proc/1/net/route": "e x 0 1 0 0 0 0"}, `line 1 is no route: not an address: "x"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := shownRoutes(readAll(t, tc.tree).Bypass.Networks); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// TestRoutesOfTheReader: on a running host /proc/net belongs to the reader, who may be in a container.
func TestRoutesOfTheReader(t *testing.T) {
	tree := newMemoryTree()
	must(t, tree.add("proc/net/route", &memoryNode{node: node{kind: kindFile}, content: routedHost()["proc/net/route"]}))
	r := newReader(t.Context(), tree, nil)
	if got := r.routes(); len(got.Value) != 1 {
		t.Errorf("a copy has the routes %v", got)
	}
	r.live = true
	if got := r.routes(); got.Known || got.Source != "/proc/1/net/route" {
		t.Errorf("a running host has the routes %v", got)
	}
}

func TestTooManyRoutes(t *testing.T) {
	line := "e 0 0 1 0 0 0 0\n"
	if _, err := parseRoutes(strings.Repeat(line, routeMaxLength+1)); err == nil || err.Error() != "holds more than 65536 entries" {
		t.Errorf("error %v", err)
	}
	if routes, err := parseRoutes(strings.Repeat(line, routeMaxLength)); err != nil || len(routes) != routeMaxLength {
		t.Errorf("%d routes, %v", len(routes), err)
	}
}

// library is a binary file with texts as C has them.
func library(texts ...string) string {
	return "\x7fELF\x02\x01\x01\x00" + strings.Join(texts, "\x00") + "\x00"
}

const copyright = "Copyright (c) 2002-2026 Advanced Micro Devices, Inc.\nBuilt: Nov 20 2026 21:41:43 (release)\n"

func TestUserSpaces(t *testing.T) {
	tree := files{
		"opt/onload/usr/lib64/libonload.so": library("oo_stack", moduleInterface, "Onload 9.1.0.15 \n"+copyright, otherInterface),
		"opt/onload/usr/lib/libonload.so":   library("Onload 1.0 \n" + copyright),
		"opt/onload/usr/lib64/libonload_zf.so.1.2": library(otherInterface,
			"TCPDirect Library version: 9.1.0.29 ab12 \nTCPDirect built with Onload version: 9.1.0.15 \n"+copyright),
		"opt/onload/usr/lib64/libonload_zf.so.1": linkTo + "libonload_zf.so.1.2",
		"opt/onload/usr/lib64/libefcp.so.1":      linkTo + "/usr/lib/libefcp.so.1",
		"opt/onload/lib/libciul.so":              linkTo + "../../../../../../etc/passwd",
		"opt/onload/usr/bin/onload":              "#!/bin/bash\n",
		"opt/onload/bin/onload_stackdump":        "\x00\x00",
		"usr/lib/libefcp.so.1":                   library(otherInterface),
		"usr/lib/libonload_ext.so.1/":            "",
		"opt/file":                               "",
		"opt/none/":                              "",
	}
	folders := []string{"/opt/onload", "/", "/opt/missing", "/opt/file", "/opt/none", "opt/onload", "/opt/../opt/onload", "/opt/onload"}
	dir := tree.with(files{"proc/": "", "sys/": ""}).write(t)
	for name, root := range map[string]string{"directory": dir, "archive": writeFile(t, tree.with(files{"proc/": ""}).pack(t, ""))} {
		t.Run(name, func(t *testing.T) {
			facts, err := open(t, root).ReadWith(t.Context(), Request{UserSpaces: folders})
			must(t, err)
			checkUserSpaces(t, facts.Bypass.UserSpaces)
		})
	}
	t.Run("defaults in a snapshot", func(t *testing.T) {
		facts := readAllWith(t, tree, Request{UserSpaces: defaultUserSpaces()})
		if len(facts.Bypass.UserSpaces["/opt/onload"].Files.Value) != 6 {
			t.Errorf("found %v", facts.Bypass.UserSpaces)
		}
	})
}

func checkUserSpaces(t *testing.T, got map[string]UserSpace) {
	t.Helper()
	const folder = "/opt/onload/usr/lib64/"
	want := map[string]Fact[map[string]UserFile]{
		"/opt/onload": Known(map[string]UserFile{
			"libonload.so": {Path: folder + "libonload.so", Digits: []string{moduleInterface, otherInterface}, Version: "9.1.0.15"},
			"libonload_zf.so.1": {
				Path: folder + "libonload_zf.so.1", Digits: []string{otherInterface}, Version: "9.1.0.29 ab12", BuiltWith: "9.1.0.15",
			},
			"libefcp.so.1":     {Path: folder + "libefcp.so.1", Digits: []string{otherInterface}},
			"libciul.so":       {Path: "/opt/onload/lib/libciul.so", Unreadable: "a symbolic link leads out of the root"},
			"onload":           {Path: "/opt/onload/usr/bin/onload"},
			"onload_stackdump": {Path: "/opt/onload/bin/onload_stackdump"},
		}, "/opt/onload"),
		"/": Known(map[string]UserFile{
			"libefcp.so.1":       {Path: "/usr/lib/libefcp.so.1", Digits: []string{otherInterface}},
			"libonload_ext.so.1": {Path: "/usr/lib/libonload_ext.so.1", Unreadable: "not a regular file"},
		}, "/"),
		"/opt/missing":       Absent[map[string]UserFile]("/opt/missing", "no such file"),
		"/opt/file":          Absent[map[string]UserFile]("/opt/file", "not a directory"),
		"/opt/none":          Known(map[string]UserFile{}, "/opt/none"),
		"opt/onload":         Absent[map[string]UserFile]("opt/onload", "not an absolute path without detours"),
		"/opt/../opt/onload": Absent[map[string]UserFile]("/opt/../opt/onload", "not an absolute path without detours"),
	}
	if len(got) != len(want) {
		t.Errorf("the folders are %v", slices.Sorted(maps.Keys(got)))
	}
	for name, files := range want {
		if diff := cmp.Diff(files, got[name].Files); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestSnapshotKeepsNoLibraries: what a library holds besides its versions stays on the host.
func TestSnapshotKeepsNoLibraries(t *testing.T) {
	dir := files{"proc/": "", "opt/onload/usr/lib64/libonload.so": library("secret", moduleInterface, "Onload 9.1 \n"+copyright)}.write(t)
	file, err := os.Open(snapshot(t, dir))
	must(t, err)
	defer closeRead(file)
	tree, err := readArchive(file, defaultArchiveLimits())
	must(t, err)
	content, err := tree.readFile("opt/onload/usr/lib64/libonload.so", smallFile)
	must(t, err)
	if want := moduleInterface + "\x00Onload 9.1\nCopyright (c)\x00"; content != want {
		t.Errorf("the snapshot holds %q, want %q", content, want)
	}
}

// TestUserFileThatIsTooLong shows the limit through a view that claims a long file.
func TestUserFileThatIsTooLong(t *testing.T) {
	tree := newMemoryTree()
	must(t, tree.add("usr/lib64/libonload.so", &memoryNode{node: node{kind: kindFile}, oversized: maxUserFile}))
	r := newReader(t.Context(), tree, nil)
	got := r.userFiles("/").Value["libonload.so"]
	if want := "longer than 67108864 bytes"; got.Unreadable != want {
		t.Errorf("unreadable because %q, want %q", got.Unreadable, want)
	}
}

func TestUnreadableUserSpace(t *testing.T) {
	r := newReader(t.Context(), newMemoryTree(), newRecording())
	r.unreadable = map[string]string{"/opt/onload": reasonPermission, "/dev": reasonPermission}
	expect(t, "the user files", r.userFiles("/opt/onload"), "absent: permission denied")
	expect(t, "the devices", r.deviceNodes(), "absent: permission denied")
}

// scan is what a scanner finds in a file that comes in pieces of a size.
func scan(t *testing.T, content string, size int) UserFile {
	t.Helper()
	scanner := newTextScanner()
	for piece := range slices.Chunk([]byte(content), size) {
		if _, err := scanner.Write(piece); err != nil && !errors.Is(err, errEnough) {
			t.Fatal(err)
		}
	}
	return scanner.found()
}

// elfFile is a library as linkers write it: a header, program headers for what is loaded, and then symbols for debuggers,
// which are not.
func elfFile(loaded, debug string) string {
	const header, entries = 64, 3
	begin := uint64(header + entries*elfEntry)
	file := make([]byte, begin)
	copy(file, elfMagic)
	binary.LittleEndian.PutUint64(file[32:], header)
	binary.LittleEndian.PutUint16(file[54:], elfEntry)
	binary.LittleEndian.PutUint16(file[56:], entries)
	put := func(entry int, kind uint32, offset, length uint64) {
		at := file[header+entry*elfEntry:]
		binary.LittleEndian.PutUint32(at, kind)
		binary.LittleEndian.PutUint64(at[8:], offset)
		binary.LittleEndian.PutUint64(at[32:], length)
	}
	put(0, elfLoad, 0, begin)
	put(1, elfLoad, begin, uint64(len(loaded)))
	put(2, 4, begin, uint64(len(loaded)+len(debug))) // a note, which is part of something else
	return string(file) + loaded + debug
}

func TestTextScanner(t *testing.T) {
	long := strings.Repeat("x", maxUserText+1)
	first, second := moduleInterface[:minDigits], moduleInterface[minDigits:]
	digits := func(runs ...string) UserFile { return UserFile{Digits: runs} }
	cases := map[string]struct {
		content string
		want    UserFile
	}{
		"nothing":                  {"", UserFile{}},
		"no zero at the end":       {moduleInterface, digits(moduleInterface)},
		"ended by another byte":    {moduleInterface + "\x01\x00", digits(moduleInterface)},
		"another text behind it":   {"pshot> \x00" + moduleInterface + "%lx \x00", digits(moduleInterface)},
		"two constants":            {"\x00" + second + "usage of\x00" + first + "\xf0", digits(second, first)},
		"after printable junk":     {"\x01A{" + moduleInterface + "\x00", digits(moduleInterface)},
		"in a longer run":          {"e" + moduleInterface + "\x00", digits("e" + moduleInterface)},
		"capitals are no checksum": {strings.ToUpper(moduleInterface) + "\x00", digits(moduleInterface[:20])},
		"15 digits":                {moduleInterface[:minDigits-1] + "\x00", UserFile{}},
		"twice":                    {library(moduleInterface, moduleInterface), digits(moduleInterface)},
		"in a long text":           {long + moduleInterface + "\x00", UserFile{}},
		"after a long text":        {long + "\x00" + moduleInterface + "\x00", digits(moduleInterface)},
		"in what is loaded":        {elfFile(moduleInterface+"%lx", otherInterface+"\x00"), digits(moduleInterface)},
		"loaded from a large file": {elfFile(strings.Repeat("\xff", 1<<17)+moduleInterface, strings.Repeat(otherInterface+"\x00", 1<<12)), digits(moduleInterface)},
		"a header that lies":       {strings.Replace(elfFile("", otherInterface), "\x38\x00\x03\x00", "\x38\x00\xff\xff", 1), digits(otherInterface)},
		"other product": {
			library("OpenOnload 201811-u1 \n" + copyright), UserFile{Version: "201811-u1"},
		},
		"developer's version": {
			library("Onload 24d0c2a7 2026-07-24 v9_2 \n" + copyright), UserFile{Version: "24d0c2a7 2026-07-24 v9_2"},
		},
		"the first version counts":      {library("Onload 1 \n"+copyright, "Onload 2 \n"+copyright), UserFile{Version: "1"}},
		"blank version":                 {library("Onload  \n" + copyright), UserFile{}},
		"a usage text":                  {library("Onload stacks in use"), UserFile{}},
		"a message without its zero":    {"Onload 1 \n" + copyright + "\x01", UserFile{}},
		"a message that ends with file": {"Onload 1 \n" + copyright, UserFile{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 7, 4096, 1 << 20} {
				if diff := cmp.Diff(tc.want, scan(t, tc.content, size)); diff != "" {
					t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
				}
			}
		})
	}
}

// TestLibraryIsReadAsFarAsItIsLoaded: symbols for debuggers are nine tenths of a library that has them.
func TestLibraryIsReadAsFarAsItIsLoaded(t *testing.T) {
	scanner := newTextScanner()
	file := elfFile(strings.Repeat("\xff", 1<<16)+moduleInterface, strings.Repeat("\x01", 1<<20))
	read := 0
	for piece := range slices.Chunk([]byte(file), 1<<14) {
		read += len(piece)
		if _, err := scanner.Write(piece); errors.Is(err, errEnough) {
			break
		}
	}
	if loaded := loadedBytes([]byte(file)); read > loaded+1<<14 || loaded > 1<<17 {
		t.Errorf("%d of %d bytes were read, %d are loaded", read, len(file), loaded)
	}
}

func TestTextScannerIsBounded(t *testing.T) {
	scanner := newTextScanner()
	must(t, ignore(scanner.Write(make([]byte, elfHead))))
	for number := range 2 * maxDigits {
		must(t, ignore(fmt.Fprintf(scanner, "%032x\x00%s", number, strings.Repeat("y", 2*maxUserText))))
	}
	if len(scanner.file.Digits) != 1 || cap(scanner.text) > 4*maxUserText {
		t.Errorf("%d texts of digits, a text of %d bytes", len(scanner.file.Digits), cap(scanner.text))
	}
	if _, areAll := scanner.file.Checksums(); !areAll {
		t.Error("one text of digits is said to be too many")
	}
	for number := range 2 * maxDigits {
		must(t, ignore(fmt.Fprintf(scanner, "\x00%032x\x00", number)))
	}
	got, areAll := scanner.file.Checksums()
	if len(got) != maxDigits+1 || areAll {
		t.Errorf("%d checksums, which are all: %v", len(got), areAll)
	}
}

func ignore(_ int, err error) error { return err }

func TestHoldsChecksum(t *testing.T) {
	first, second := moduleInterface[:minDigits], moduleInterface[minDigits:]
	cases := map[string]struct {
		digits []string
		want   bool
	}{
		"nothing":           {nil, false},
		"another":           {[]string{otherInterface}, false},
		"the text":          {[]string{otherInterface, moduleInterface}, true},
		"within a text":     {[]string{"ad" + moduleInterface + "d0"}, true},
		"two halves":        {[]string{second, first}, true},
		"halves with more":  {[]string{"ab" + second, first + "cd"}, true},
		"the first half":    {[]string{first, otherInterface}, false},
		"the second half":   {[]string{second}, false},
		"halves of another": {[]string{otherInterface[:minDigits], second}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (UserFile{Digits: tc.digits}).HoldsChecksum(moduleInterface); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if (UserFile{Digits: []string{moduleInterface}}).HoldsChecksum(first) {
		t.Error("half a checksum is none")
	}
}

// FuzzTextScanner: whatever the pieces in which a file comes, the same is found, a snapshot keeps it, and a checksum that
// is put into the data is held.
func FuzzTextScanner(f *testing.F) {
	f.Add([]byte(library(moduleInterface, "Onload 9.1.0.15 \n"+copyright)), 7)
	f.Add([]byte(library("TCPDirect Library version: 9 \nTCPDirect built with Onload version: 8 \n", otherInterface)), 1)
	f.Add([]byte(elfFile("\x00"+moduleInterface[16:]+"x"+moduleInterface[:16]+"\x00", otherInterface)), 9)
	f.Fuzz(func(t *testing.T, content []byte, size int) {
		whole := scan(t, string(content), len(content)+1)
		pieces := scan(t, string(content), max(1, size%(1<<16)))
		again := scan(t, whole.extract(), maxUserText)
		if diff := cmp.Diff(whole, pieces) + cmp.Diff(whole, again); diff != "" {
			t.Errorf("different findings:\n%s", diff)
		}
		longer := string(content) + "\x00" + moduleInterface + "~"
		isWhole := loadedBytes([]byte(longer[:min(len(longer), elfHead)])) == maxUserFile
		behind := scan(t, longer, len(longer))
		if _, areAll := behind.Checksums(); areAll && isWhole && !behind.HoldsChecksum(moduleInterface) {
			t.Errorf("a checksum is not found behind %q", content)
		}
	})
}

// BenchmarkTextScanner goes through a library of some 6 MB, of which nine tenths are for debuggers.
func BenchmarkTextScanner(b *testing.B) {
	code := strings.Repeat("\x48\x89\xe5\x00\x00ci_netif_poll\x00\x0f\x1f", 1<<15)
	file := []byte(elfFile(code+moduleInterface+"%lx\x00Onload 9.1.0.15 \n"+copyright+"\x00", strings.Repeat("oo_cp_create\x00\x00\x00\x00", 1<<18)))
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		scanner := newTextScanner()
		for piece := range slices.Chunk(file, 64<<10) {
			if _, err := scanner.Write(piece); errors.Is(err, errEnough) {
				break
			}
		}
		if found := scanner.found(); found.Version == "" || !found.HoldsChecksum(moduleInterface) {
			b.Fatalf("found %+v", found)
		}
	}
}

// FuzzRoutes: a table is refused or gives sensible routes.
func FuzzRoutes(f *testing.F) {
	for name, content := range routedHost() {
		f.Add(content, strings.Contains(name, "ipv6"))
	}
	f.Fuzz(func(t *testing.T, content string, isIPv6 bool) {
		parse := parseRoutes
		if isIPv6 {
			parse = parseIPv6Routes
		}
		routes, err := parse(content)
		if err != nil {
			return
		}
		for _, route := range routes {
			if !route.Destination.IsValid() || route.Destination != route.Destination.Masked() || route.Interface == "" ||
				route.Destination.Addr().Is4() == isIPv6 || strings.ContainsAny(route.Interface, " \t\n") {
				t.Errorf("the route %+v of %q", route, content)
			}
		}
	})
}

// FuzzResources: a table is refused or counts nothing below 0.
func FuzzResources(f *testing.F) {
	f.Add(onloadHost()["proc/driver/sfc_resource/resources"])
	f.Add("*** ***\n= 1")
	f.Fuzz(func(t *testing.T, content string) {
		resources, err := parseResources(content)
		if err != nil {
			return
		}
		for name, count := range resources {
			if count.Current < 0 || count.Total.Value < 0 {
				t.Errorf("%q counts %+v", name, count)
			}
		}
	})
}

// FuzzDescribedDevice: what stands for a device in a copy says the same in a copy of the copy.
func FuzzDescribedDevice(f *testing.F) {
	f.Add("character device 245:0 mode 666\n", uint32(0o644))
	f.Add("simulated device mode 644", uint32(0))
	f.Fuzz(func(t *testing.T, content string, permissions uint32) {
		device := describedDevice(content, permissions)
		if again := describedDevice(device.text(), 0); again != device {
			t.Errorf("%+v became %+v", device, again)
		}
	})
}

// TestUserFilesAreStreamed reads a library piece by piece.
func TestUserFilesAreStreamed(t *testing.T) {
	var content bytes.Buffer
	content.WriteString(library(moduleInterface))
	content.Write(make([]byte, 1<<20))
	dir := files{"proc/": "", "usr/lib64/libonload.so": content.String()}.write(t)
	opened, err := openDirectory(dir)
	must(t, err)
	defer closeRead(opened)
	longest := 0
	must(t, opened.view().copyFile("usr/lib64/libonload.so", maxUserFile, writerFunc(func(piece []byte) { longest = max(longest, len(piece)) })))
	if longest == 0 || longest > 64<<10 {
		t.Errorf("the longest piece has %d bytes", longest)
	}
}

type writerFunc func([]byte)

func (w writerFunc) Write(piece []byte) (int, error) {
	w(piece)
	return len(piece), nil
}
