// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"net/netip"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	testNode      = "trader-1"
	testInterface = "3f9c2d7a51b84e60a7c1d2e3f4059687"
	testRelease   = "9.1.1.37"
	// controlPlaneInterface is a checksum that libonload.so and libefcp.so hold.
	controlPlaneInterface = "0123456789abcdef0123456789abcdef"
	firstX2               = "0000:3b:00.0"
	secondX2              = "0000:3b:00.1"
	managementNIC         = "0000:18:00.0"
	firstE810             = "0000:af:00.0"
)

// nicOf is a NIC that has a link at 10 Gbit/s on NUMA node 0.
func nicOf(address, name, id, driver string) host.NIC {
	vendor, device, _ := strings.Cut(id, ":")
	return host.NIC{
		PCIAddress: address, Name: host.Known(name, "/sys/class/net"),
		Vendor: host.Known("0x"+vendor, "vendor"), Device: host.Known("0x"+device, "device"),
		Driver: host.Known(driver, "driver"), NUMANode: host.Known(0, "numa_node"),
		Carrier: host.Known(true, "/sys/class/net/"+name+"/carrier"), SpeedMegabits: host.Known[int64](10000, "speed"),
		LinkSpeed: host.Known("8.0 GT/s PCIe", ""), MaximumLinkSpeed: host.Known("8.0 GT/s PCIe", ""),
		LinkWidth: host.Known(8, ""), MaximumLinkWidth: host.Known(8, ""),
		PhysicalFunction: host.Absent[string]("physfn", "no such file"),
	}
}

// tradingHost is a machine with two ports of an X2 under Onload, a port for the node's own traffic and an E810.
func tradingHost() *host.Facts {
	const resources = "/proc/driver/sfc_resource/resources"
	version := "/proc/driver/onload/version"
	library := func(name string) host.UserFile { return host.UserFile{Path: "/opt/onload/usr/lib64/" + name} }
	onload := library("libonload.so")
	onload.Version, onload.Digits = testRelease, []string{controlPlaneInterface, testInterface}
	plane := library("libefcp.so.1")
	plane.Digits = []string{controlPlaneInterface}
	direct := library("libonload_zf.so.1")
	direct.Version, direct.BuiltWith = "9.1.2.8", "9.1.1.40"
	device := host.DeviceNode{Mode: 0o666, Major: 245}
	return &host.Facts{
		NICs: []host.NIC{
			nicOf(managementNIC, "eno1", "8086:1572", "i40e"),
			nicOf(firstX2, "ens1f0", "1924:0b03", "sfc"),
			nicOf(secondX2, "ens1f1", "1924:0b03", "sfc"),
			nicOf(firstE810, "ens2f0", "8086:1592", "ice"),
		},
		NUMANodes: []host.NUMANode{{ID: 0, Hugepages: []host.HugepagePool{
			{SizeKibibytes: 2048, Total: host.Known[int64](400, ""), Free: host.Known[int64](400, "")},
		}}},
		Bypass: host.Bypass{
			Onload: host.Onload{
				Version: host.Known(testRelease, version), InterfaceVersion: host.Known(testInterface, version),
				ControlPlanePIDs: host.Known([]int{608}, "/proc/driver/onload/cp_server_pids"),
				Stacks:           host.Known(0, "/proc/driver/onload/stacks"),
				Resources: host.Known(map[string]host.ResourceCount{
					"VI": {Total: host.Known(64, resources), Current: 2},
				}, resources),
				Interfaces: host.Known([]string{"ens1f0", "ens1f1"}, "/proc/driver/sfc_resource"),
				Modules: host.Known(map[string]string{
					"onload": testRelease, "sfc_char": "", "sfc_resource": "", "sfc": "6.4.0.1002",
				}, "/sys/module"),
			},
			VFIO: host.VFIO{Groups: map[string]int{firstE810: 42}, NoIOMMU: host.Known(false, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode")},
			DeviceNodes: host.Known(map[string]host.DeviceNode{
				"/dev/onload": device, "/dev/onload_epoll": device, "/dev/sfc_char": device,
				"/dev/vfio/vfio": {Mode: 0o666}, "/dev/vfio/42": {Mode: 0o600},
			}, "/dev"),
			Networks: host.Known([]host.Route{
				{Destination: netip.MustParsePrefix("0.0.0.0/0"), Interface: "eno1", Gateway: netip.MustParseAddr("10.0.0.1")},
				{Destination: netip.MustParsePrefix("10.0.0.0/24"), Interface: "eno1"},
			}, "/proc/1/net/route"),
			UserSpaces: map[string]host.UserSpace{"/opt/onload": {Files: host.Known(map[string]host.UserFile{
				"libonload.so": onload, "libonload_ext.so.1": library("libonload_ext.so.1"),
				"libonload_zf.so.1": direct, "libefcp.so.1": plane,
				"libciul.so.1":     library("libciul.so.1"),
				"onload":           {Path: "/opt/onload/usr/bin/onload"},
				"onload_stackdump": {Path: "/opt/onload/usr/bin/onload_stackdump"},
			}, "/opt/onload")}},
		},
	}
}

func fromHost() v1alpha1.UserSpaceSpec {
	return v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"}
}

// inputOf is a pool with a stack for the X2 ports of the trading host; VFIO pools are for the E810.
func inputOf(stack v1alpha1.BypassStack) Input {
	spec := v1alpha1.BypassNICPoolSpec{
		NICs: []v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}}, Stack: stack,
		ResourceName: "lowlatency.dev/fast-nic",
	}
	facts := tradingHost()
	if stack.Type == v1alpha1.StackVFIO {
		spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{firstE810}}}
		nic := &facts.NICs[3]
		nic.Driver = host.Known("vfio-pci", "driver")
		nic.Name = host.Absent[string]("/sys/class/net", "no interface on this device")
		nic.Carrier = host.Absent[bool]("/sys/class/net", "no interface on this device")
	}
	return Input{
		Pool: Pool{Name: "fast", Generation: 3, Spec: spec}, Node: testNode,
		HostAddresses: []netip.Addr{netip.MustParseAddr("10.0.0.17")}, Facts: facts,
	}
}

func onloadInput() Input {
	return inputOf(v1alpha1.BypassStack{
		Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{UserSpace: fromHost()},
	})
}

func tcpDirectInput() Input {
	return inputOf(v1alpha1.BypassStack{
		Type: v1alpha1.StackTCPDirect, TCPDirect: &v1alpha1.TCPDirectStack{UserSpace: fromHost()},
	})
}

func efviInput() Input {
	return inputOf(v1alpha1.BypassStack{
		Type: v1alpha1.StackEFVI, EFVI: &v1alpha1.EFVIStack{UserSpace: fromHost()},
	})
}

func vfioInput() Input {
	return inputOf(v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}})
}

// experimentalInput reaches the E810 by AF_XDP.
func experimentalInput() Input {
	in := onloadInput()
	in.Pool.Spec.Stack.Onload.Datapath = v1alpha1.DatapathExperimentalAFXDP
	in.Pool.Spec.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens2f0"}}}
	in.Facts.Bypass.Onload.Interfaces.Value = []string{"ens2f0"}
	delete(in.Facts.Bypass.Onload.Modules.Value, "sfc")
	return in
}

// nicAt is a NIC of the facts, to change it.
func nicAt(in Input, address string) *host.NIC {
	for i := range in.Facts.NICs {
		if in.Facts.NICs[i].PCIAddress == address {
			return &in.Facts.NICs[i]
		}
	}
	panic("no NIC " + address)
}

// firstDevice is what becomes of the first NIC of the pool.
func firstDevice(t *testing.T, in Input) Device {
	t.Helper()
	devices := Devices(in)
	if len(devices) == 0 {
		t.Fatal("the pool has no device on the node")
	}
	return devices[0]
}
