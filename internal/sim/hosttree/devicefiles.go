// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"path"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// device is a function on PCI.
type device struct {
	address, vendor, id, class, driver string
	numaNode                           int
	nic                                *NIC
	// physical is the address of the physical function of a virtual one; "" otherwise.
	physical string
	// functions are the addresses of the virtual functions.
	functions []string
	// iommuGroup is 0 for a device in none.
	iommuGroup int
}

// devices lists the disks and the NICs. Virtual functions follow each other from slot 2 of their bus on and
// are bound to vfio-pci, so that they have no interface.
func (m Machine) devices() []device {
	var devices []device
	for _, disk := range m.Disks {
		devices = append(devices, device{
			address: disk.PCIAddress, vendor: "0x144d", id: "0xa824", class: "0x010802", driver: "nvme", numaNode: disk.NUMANode,
		})
	}
	enabled := map[string]int{}
	for i := range m.NICs {
		nic := &m.NICs[i]
		physical := device{
			address: nic.PCIAddress, vendor: nic.Vendor, id: nic.Device, class: "0x020000", driver: nic.Driver,
			numaNode: nic.NUMANode, nic: nic, iommuGroup: nic.IOMMUGroup,
		}
		bus := nic.PCIAddress[:len("0000:00:")]
		for number := range nic.VirtualFunctions {
			virtual := physical
			virtual.address = fmt.Sprintf("%s%02x.%d", bus, 2+enabled[bus]/8, enabled[bus]%8)
			virtual.physical, virtual.nic, virtual.driver, virtual.functions = nic.PCIAddress, nil, vfioDriver, nil
			virtual.iommuGroup = virtualGroup(*nic, number)
			physical.functions = append(physical.functions, virtual.address)
			devices = append(devices, virtual)
			enabled[bus]++
		}
		devices = append(devices, physical)
	}
	return devices
}

// addresses are the PCI addresses that the machine states.
func (m Machine) addresses() []string {
	addresses := make([]string, 0, len(m.NICs)+len(m.Disks))
	for _, nic := range m.NICs {
		addresses = append(addresses, nic.PCIAddress)
	}
	for _, disk := range m.Disks {
		addresses = append(addresses, disk.PCIAddress)
	}
	return addresses
}

// folder is the device below the root port of its bus.
func (d device) folder() string {
	return pciFolder(d.address)
}

// pciFolder places a device behind a port on the bus with the number before its own.
func pciFolder(address string) string {
	var domain, bus int
	if _, err := fmt.Sscanf(address, "%04x:%02x:", &domain, &bus); err != nil {
		return path.Join("/sys/devices/pci0000:00", address)
	}
	root := fmt.Sprintf("%04x:%02x", domain, max(bus-1, 0))
	return path.Join("/sys/devices/pci"+root, root+":00.0", address)
}

// writeDevices writes what Documentation/ABI/testing/{sysfs-bus-pci,sysfs-class-net} describe.
func (k *kernel) writeDevices(t *tree) {
	for _, d := range k.devices() {
		k.writeDevice(t, d)
		folder := d.folder()
		for _, irq := range k.interrupts() {
			if irq.device == d.address {
				t.file(fmt.Sprint(folder, "/msi_irqs/", irq.number), "msix")
			}
		}
		k.writeFunctions(t, d)
		if d.nic != nil {
			k.writeInterface(t, folder, d.nic)
		}
	}
}

// writeDevice writes what every device on PCI has.
func (k *kernel) writeDevice(t *tree, d device) {
	folder := d.folder()
	t.file(folder+"/vendor", d.vendor)
	t.file(folder+"/device", d.id)
	t.file(folder+"/class", d.class)
	t.file(folder+"/numa_node", d.numaNode)
	local := k.online
	if d.numaNode >= 0 {
		local = k.onNode(d.numaNode).Intersection(k.online)
	}
	t.masks(folder, "local_cpus", "local_cpulist", notationOf(local))
	if d.driver != "" {
		t.link(folder+"/driver", "/sys/bus/pci/drivers/"+d.driver)
		t.directory("/sys/bus/pci/drivers/" + d.driver)
	}
	if d.physical != "" {
		t.link(folder+"/physfn", pciFolder(d.physical))
	}
	d.writeGroup(t)
	t.link(pciDevices+d.address, folder)
}

// writeFunctions writes the links of a physical function to its virtual functions.
func (k *kernel) writeFunctions(t *tree, d device) {
	for number, address := range d.functions {
		t.link(fmt.Sprint(d.folder(), "/virtfn", number), pciFolder(address))
	}
}

func (k *kernel) writeInterface(t *tree, folder string, nic *NIC) {
	t.file(folder+"/sriov_totalvfs", nic.MaximumVirtualFunctions)
	t.file(folder+"/sriov_numvfs", nic.VirtualFunctions)
	port := path.Dir(folder)
	for _, end := range []string{folder, port} {
		for _, kind := range []string{"current", "max"} {
			t.file(end+"/"+kind+"_link_speed", "8.0 GT/s PCIe")
			t.file(end+"/"+kind+"_link_width", 8)
		}
	}
	t.file(folder+"/link/l0s_aspm", 0)
	t.file(folder+"/link/l1_aspm", 0)
	writeNetwork(t, nic)
}

// link is what the interface of a NIC says about its link, by file.
func (nic NIC) link() map[string]any {
	if nic.SpeedMegabits == 0 {
		// ethtool's SPEED_UNKNOWN, as net/core/net-sysfs.c prints it without a link.
		return map[string]any{"carrier": 0, "operstate": "down", "speed": -1}
	}
	return map[string]any{"carrier": 1, "operstate": "up", "speed": nic.SpeedMegabits}
}

// writeNetwork writes the interface of a NIC.
func writeNetwork(t *tree, nic *NIC) {
	folder := pciFolder(nic.PCIAddress)
	network := path.Join(folder, "net", nic.Name)
	for name, value := range nic.link() {
		t.file(network+"/"+name, value)
	}
	for queue := range nic.Queues {
		t.file(fmt.Sprintf("%s/queues/rx-%d/rps_cpus", network, queue), cpus.Set{}.Mask())
		t.directory(fmt.Sprintf("%s/queues/tx-%d", network, queue))
	}
	for _, name := range []string{"rx_fifo_errors", "rx_missed_errors", "rx_over_errors", "tx_fifo_errors"} {
		t.file(network+"/statistics/"+name, 0)
	}
	t.link(network+"/device", folder)
	t.link("/sys/class/net/"+nic.Name, network)
}

// writeFirmware writes DMI.
func (k *kernel) writeFirmware(t *tree) {
	const folder = "/sys/devices/virtual/dmi/id"
	t.file(folder+"/sys_vendor", k.Firmware.Vendor)
	t.file(folder+"/product_name", k.Firmware.Product)
	t.file(folder+"/bios_vendor", k.Firmware.Vendor)
	t.file(folder+"/bios_version", k.Firmware.BIOSVersion)
	t.link("/sys/class/dmi/id", folder)
}
