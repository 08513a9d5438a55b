// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pciDevice is a PCI device below its root port, with a link in /sys/bus/pci.
func pciDevice(address, class string, attributes files) files {
	folder := "sys/devices/pci0000:00/0000:00:01.0/" + address + "/"
	tree := files{
		"sys/bus/pci/devices/0000:00:01.0":          linkTo + "../../../devices/pci0000:00/0000:00:01.0",
		"sys/devices/pci0000:00/0000:00:01.0/class": "0x060400\n",
		"sys/bus/pci/devices/" + address:            linkTo + "../../../devices/pci0000:00/0000:00:01.0/" + address,
		folder + "class":                            class + "\n",
	}
	for name, content := range attributes {
		tree[folder+name] = content
	}
	return tree
}

// netDevice is a network interface on a PCI device, or on a child of one.
func netDevice(name, address, child string, attributes files) files {
	device := "devices/pci0000:00/0000:00:01.0/" + address + child
	tree := files{
		"sys/class/net/" + name:                      linkTo + "../../" + device + "/net/" + name,
		"sys/" + device + "/net/" + name + "/device": linkTo + "../..",
	}
	for file, content := range attributes {
		tree["sys/"+device+"/net/"+name+"/"+file] = content
	}
	return tree
}

// brief names NICs in short.
func brief(nics []NIC) []string {
	texts := slices.Grow([]string(nil), len(nics))
	for _, nic := range nics {
		text := nic.PCIAddress
		if name, known := nic.Name.Get(); known {
			text += " " + name
		}
		texts = append(texts, text)
	}
	return texts
}

const (
	nicA = "0000:3b:00.0"
	nicB = "0000:3b:00.1"
	vfA0 = "0000:3b:02.0"
	vfA1 = "0000:3b:0a.1"
)

// TestWhichNICs finds NICs through /sys/class/net, /sys/bus/pci and the tree of devices.
func TestWhichNICs(t *testing.T) {
	ethernet := func(address string) files { return pciDevice(address, "0x020000", nil) }
	without := func(tree files, prefix string) files {
		rest := files{}
		for name, content := range tree {
			if !strings.HasPrefix(name, prefix) {
				rest[name] = content
			}
		}
		return rest
	}
	both := ethernet(nicA).with(ethernet(nicB), netDevice("eth0", nicA, "", nil))
	cases := map[string]struct {
		tree files
		want []string
	}{
		"with and without interface": {both, []string{nicA + " eth0", nicB}},
		"no class/net":               {without(both, "sys/class"), []string{nicA, nicB}},
		"no bus/pci":                 {without(both, "sys/bus"), []string{nicA + " eth0", nicB}},
		"no tree of classes":         {without(without(both, "sys/bus"), "sys/class"), []string{nicA, nicB}},
		"bus/pci without devices":    {without(both, "sys/bus").with(files{"sys/bus/pci/devices/": ""}), []string{nicA + " eth0", nicB}},
		"infiniband":                 {pciDevice(nicA, "0x020700", nil), []string{nicA}},
		"other classes":              {pciDevice(nicA, "0x010802", nil).with(pciDevice(nicB, "0x120000", nil)), nil},
		"FPGA with an interface":     {pciDevice(nicA, "0x120000", nil).with(netDevice("exa0", nicA, "", nil)), []string{nicA + " exa0"}},
		"virtio":                     {ethernet(nicA).with(netDevice("eth0", nicA, "/virtio2", nil)), []string{nicA + " eth0"}},
		"virtio without PCI":         {files{"sys/class/net/eth0": linkTo + "../../devices/platform/a.virtio/virtio0/net/eth0", "sys/devices/platform/a.virtio/virtio0/net/eth0/device": linkTo + "../../../virtio0"}, nil},
		"USB adapter":                {pciDevice(nicA, "0x0c0330", nil).with(netDevice("usb0", nicA, "/usb1/1-1/1-1:1.0", nil)), nil},
		"subfunction":                {ethernet(nicA).with(netDevice("eth0", nicA, "", nil), netDevice("sf0", nicA, "/mlx5_core.sf.4", nil)), []string{nicA + " eth0"}},
		"representors": {ethernet(nicA).with(
			netDevice("a_vf0", nicA, "", files{"phys_port_name": "pf0vf0"}), netDevice("b_sf0", nicA, "", files{"phys_port_name": "c1pf0sf0"}),
			netDevice("eth9", nicA, "", files{"phys_port_name": "p0"})), []string{nicA + " eth9"}},
		"two ports": {ethernet(nicA).with(
			netDevice("aa", nicA, "", files{"dev_port": "1"}), netDevice("bb", nicA, "", files{"dev_port": "0"})), []string{nicA + " bb"}},
		"equal ports":         {ethernet(nicA).with(netDevice("bb", nicA, "", nil), netDevice("aa", nicA, "", nil)), []string{nicA + " aa"}},
		"virtual interfaces":  {ethernet(nicA).with(files{"sys/class/net/lo": linkTo + "../../devices/virtual/net/lo", "sys/devices/virtual/net/lo/": "", "sys/class/net/bonding_masters": "bond0"}), []string{nicA}},
		"dangling interface":  {ethernet(nicA).with(files{"sys/class/net/eth0": linkTo + "../../devices/none"}), []string{nicA}},
		"looping interface":   {ethernet(nicA).with(files{"sys/class/net/eth0": linkTo + "eth0"}), []string{nicA}},
		"interface leads out": {ethernet(nicA).with(files{"sys/class/net/eth0/device": linkTo + "../../../../../../" + nicB}), []string{nicA}},
		"interface folder":    {ethernet(nicA).with(files{"sys/class/net/eth0/device": linkTo + "../../../devices/pci0000:00/0000:00:01.0/" + nicA}), []string{nicA + " eth0"}},
		"VMD domain":          {pciDevice("10000:01:00.0", "0x020000", nil), []string{"10000:01:00.0"}},
		"no addresses":        {files{"sys/bus/pci/devices/3b:00.0/class": "0x020000", "sys/bus/pci/devices/0000:3b:00.8/class": "0x020000", "sys/bus/pci/devices/0000:3B:00.0/class": "0x020000", "sys/bus/pci/devices/0000-3b:00.0/class": "0x020000"}, nil},
		"none":                {nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, brief(readAll(t, tc.tree).NICs)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNICAttributes reads everything about one NIC.
func TestNICAttributes(t *testing.T) {
	device := files{
		"vendor": "0x1924\n", "device": "0x0b03\n", "numa_node": "1\n", "local_cpulist": "20-39\n",
		"driver": linkTo + "../../../../bus/pci/drivers/sfc", "sriov_totalvfs": "8\n",
		"current_link_speed": "8.0 GT/s PCIe\n", "max_link_speed": "16.0 GT/s PCIe\n", "current_link_width": "8\n", "max_link_width": "16\n",
		"msi_irqs/101": "msix\n", "msi_irqs/99": "msix\n", "infiniband/sfc_0/fw_ver": "8.4.2.1000\n",
	}
	facts := readAll(t, pciDevice(nicA, "0x020000", device).with(files{"sys/module/sfc/version": "5.3.16.1004\n"}).with(netDevice("ens1f0", nicA, "", files{
		"carrier": "1\n", "speed": "25000\n", "queues/rx-0/rps_cpus": "0\n", "queues/rx-1/rps_cpus": "0\n", "queues/tx-0/xps_cpus": "0\n",
	})))
	nic := facts.NICs[0]
	for what, pair := range map[string]struct {
		fact Fact[string]
		want string
	}{
		"the name": {nic.Name, "ens1f0"}, "the vendor": {nic.Vendor, "0x1924"}, "the device": {nic.Device, "0x0b03"},
		"the driver":       {nic.Driver, "sfc"},
		"its version":      {nic.DriverVersion, "5.3.16.1004"},
		"the firmware":     {nic.FirmwareVersion, "8.4.2.1000"},
		"the root complex": {nic.PCIeRoot, "pci0000:00"},
		"the speed":        {nic.LinkSpeed, "8.0 GT/s PCIe"}, "the highest speed": {nic.MaximumLinkSpeed, "16.0 GT/s PCIe"},
		"the physical function": {nic.PhysicalFunction, "absent: this is a physical function"},
	} {
		expect(t, what, pair.fact, pair.want)
	}
	expect(t, "the NUMA node", nic.NUMANode, "1")
	expect(t, "the local CPUs", nic.LocalCPUs, "20-39")
	expect(t, "the width", nic.LinkWidth, "8")
	expect(t, "the greatest width", nic.MaximumLinkWidth, "16")
	expect(t, "the number of virtual functions", nic.MaximumVirtualFunctions, "8")
	expect(t, "the carrier", nic.Carrier, "true")
	expect(t, "the speed", nic.SpeedMegabits, "25000")
	expect(t, "the queues", nic.ReceiveQueues, "2")
	if diff := cmp.Diff([]int{99, 101}, nic.Interrupts); diff != "" {
		t.Errorf("vectors (-want +got):\n%s", diff)
	}
}

// TestDriverVersionOfAHyphenatedDriver: the names of modules have underscores.
func TestDriverVersionOfAHyphenatedDriver(t *testing.T) {
	device := files{"driver": linkTo + "../../../../bus/pci/drivers/vfio-pci"}
	facts := readAll(t, pciDevice(nicA, "0x020000", device).with(files{"sys/module/vfio_pci/version": "0.2\n"}))
	expect(t, "the version", facts.NICs[0].DriverVersion, "0.2")
}

// TestNICAttributesThatAreUnknown reads what kernels say when they know nothing, and nonsense.
func TestNICAttributesThatAreUnknown(t *testing.T) {
	device := files{
		"vendor": "", "numa_node": "-1\n", "local_cpus": "00000000,000000ff\n", "driver": "i40e", "sriov_totalvfs": "many",
		"current_link_width": "0x8", "physfn": linkTo + "../elsewhere", "virtfn0": linkTo + "../0000:3b:02.9", "virtfn1": linkTo + "../\x01",
	}
	facts := readAll(t, pciDevice(nicA, "0x020000", device).with(netDevice("eth0", nicA, "", files{"carrier": "", "speed": "-1\n"})))
	nic := facts.NICs[0]
	expect(t, "the vendor", nic.Vendor, "absent: empty")
	expect(t, "the device", nic.Device, "absent: no such file")
	expect(t, "the NUMA node", nic.NUMANode, "absent: the firmware reports -1")
	expect(t, "the local CPUs", nic.LocalCPUs, "0-7")
	expect(t, "the driver", nic.Driver, "absent: not a symbolic link")
	expect(t, "its version", nic.DriverVersion, "absent: not a symbolic link")
	expect(t, "the firmware", nic.FirmwareVersion, "absent: the NIC has no RDMA device, and tells its firmware only in the network namespace of its interface")
	expect(t, "the number of virtual functions", nic.MaximumVirtualFunctions, `absent: not a number: "many"`)
	expect(t, "the width", nic.LinkWidth, `absent: not a number: "0x8"`)
	expect(t, "the physical function", nic.PhysicalFunction, `absent: not a PCI address: "elsewhere"`)
	expect(t, "the carrier", nic.Carrier, `absent: not a number: ""`)
	expect(t, "the speed", nic.SpeedMegabits, "absent: the link has no speed (-1): it is down or virtual")
	expect(t, "the queues", nic.ReceiveQueues, "absent: no such file")
	if nic.VirtualFunctions != nil || nic.Interrupts != nil {
		t.Errorf("read virtual functions %v and vectors %v", nic.VirtualFunctions, nic.Interrupts)
	}
	bare := readAll(t, pciDevice(nicA, "0x020000", nil)).NICs[0]
	expect(t, "no driver", bare.Driver, "absent: no driver is bound")
	expect(t, "no interface", bare.Name, "absent: no interface on this device")
	expect(t, "no carrier", bare.Carrier, "absent: no interface on this device")
	expect(t, "no queues", bare.ReceiveQueues, "absent: no interface on this device")
	expect(t, "no speed", bare.SpeedMegabits, "absent: no interface on this device")
}

// TestPCIeRootThatIsUnknown reads trees in which a device is not where the kernel has it.
func TestPCIeRootThatIsUnknown(t *testing.T) {
	const class = "/class"
	trees := map[string]files{
		"a folder instead of a link": {"sys/bus/pci/devices/" + nicA + class: "0x020000\n"},
		"another bus":                {"sys/bus/pci/devices/" + nicA: linkTo + "../../../devices/platform/" + nicA, "sys/devices/platform/" + nicA + class: "0x020000\n"},
		"not an address of a root":   {"sys/bus/pci/devices/" + nicA: linkTo + "../../../devices/pcix/" + nicA, "sys/devices/pcix/" + nicA + class: "0x020000\n"},
	}
	for what, tree := range trees {
		facts := readAll(t, tree)
		if len(facts.NICs) != 1 {
			t.Fatalf("%s: %d NICs", what, len(facts.NICs))
		}
		expect(t, what, facts.NICs[0].PCIeRoot, "absent: its folder is not below a PCIe root of /sys/devices")
	}
}

func TestVirtualFunctions(t *testing.T) {
	tree := pciDevice(nicA, "0x020000", files{
		"virtfn0": linkTo + "../" + vfA0, "virtfn10": linkTo + "../" + vfA1, "virtfn2": linkTo + "../" + nicB,
	}).with(
		pciDevice(vfA0, "0x020000", files{"physfn": linkTo + "../" + nicA, "driver": linkTo + "../../../../bus/pci/drivers/vfio-pci"}),
		pciDevice(vfA1, "0x020000", files{"physfn": linkTo + "../" + nicA}),
		netDevice("ens1f0", nicA, "", nil), netDevice("ens1f0v10", vfA1, "", nil),
	)
	nics := readAll(t, tree).NICs
	if diff := cmp.Diff([]string{nicA + " ens1f0", vfA0, vfA1 + " ens1f0v10"}, brief(nics)); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{vfA0, nicB, vfA1}, nics[0].VirtualFunctions); diff != "" {
		t.Errorf("virtual functions (-want +got):\n%s", diff)
	}
	expect(t, "the physical function", nics[1].PhysicalFunction, nicA)
	expect(t, "the driver", nics[1].Driver, "vfio-pci")
	expect(t, "the physical function", nics[2].PhysicalFunction, nicA)
}

// TestVectorsFromInterrupts: where a device has no msi_irqs, /proc/interrupts may name it.
func TestVectorsFromInterrupts(t *testing.T) {
	tree := pciDevice(nicA, "0x020000", nil).with(pciDevice(nicB, "0x020000", files{"msi_irqs/7": ""}), files{
		"proc/interrupts": "CPU0\n" +
			"  9: 0 IR-IO-APIC 9-fasteoi acpi\n" +
			" 40: 0 IR-PCI-MSIX-0000:3b:00.0    0-edge      eth0\n" +
			" 41: 0 PCI-MSI-0000:3b:00.0    1-edge      eth0-1\n" +
			" 42: 0 IR-PCI-MSIX-0000:3b:00.1    1-edge      eth1\n" +
			"NMI: 0 PCI-MSI-0000:3b:00.0    1-edge      none\n",
	})
	nics := readAll(t, tree).NICs
	if diff := cmp.Diff([]int{40, 41}, nics[0].Interrupts); diff != "" {
		t.Errorf("without msi_irqs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{7}, nics[1].Interrupts); diff != "" {
		t.Errorf("with msi_irqs (-want +got):\n%s", diff)
	}
}

func TestEndlessPCITree(t *testing.T) {
	tree := files{"proc/": "", "sys/devices/pci0000:00/" + strings.Repeat(nicA+"/", maxBridges+2): ""}
	_, err := readPath(t, writeFile(t, tree.pack(t, "")))
	if err == nil || !strings.Contains(err.Error(), errPCITree.Error()) {
		t.Errorf("got %v", err)
	}
	deep := files{"proc/": "", "sys/devices/pci0000:00/" + strings.Repeat(nicA+"/", maxBridges-1) + nicB + "/class": "0x020000"}
	facts, err := readPath(t, writeFile(t, deep.pack(t, "")))
	must(t, err)
	if got := fmt.Sprint(brief(facts.NICs)); got != "["+nicB+"]" {
		t.Errorf("found %s", got)
	}
}
