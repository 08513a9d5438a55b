// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	pciDevices   = "/sys/bus/pci/devices/"
	iommuGroups  = "/sys/kernel/iommu_groups/"
	vfioFolder   = "/dev/vfio/"
	vfioDriver   = "vfio-pci"
	noIOMMUParam = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode"

	// vfioMajor is a dynamic major number, which differs from boot to boot on real hosts.
	vfioMajor = 241
	// vfioContainer is the device of /dev/vfio/vfio (VFIO_MINOR of include/linux/miscdevice.h).
	vfioContainer = 196
)

// virtualDevice is the PCI device of the virtual functions of a NIC: of Solarflare's, the number with one added to
// its first digit (the table of drivers/net/ethernet/sfc/efx.c); of Intel's, that of the adaptive driver iavf or of
// its predecessor; else the one after the physical function's.
func virtualDevice(nic NIC) string {
	known := map[string]string{"0x8086:0x1592": "0x1889", "0x8086:0x1572": "0x154c"}
	number, err := strconv.ParseUint(nic.Device, 0, 16)
	if err != nil {
		return nic.Device
	}
	next := number + 1
	if nic.Vendor == "0x1924" {
		next = number + 0x1000
	}
	return cmp.Or(known[nic.Vendor+":"+nic.Device], fmt.Sprintf("0x%04x", next))
}

// virtualGroup is the IOMMU group of the virtual function with the number; 0 without an IOMMU.
func virtualGroup(nic NIC, number int) int {
	if nic.IOMMUGroup == 0 {
		return 0
	}
	return 100*nic.IOMMUGroup + 1 + number
}

// writeGroup puts a device into its IOMMU group.
func (d device) writeGroup(t *tree) {
	if d.iommuGroup == 0 {
		return
	}
	group := fmt.Sprint(iommuGroups, d.iommuGroup)
	t.link(group+"/devices/"+d.address, d.folder())
	t.link(d.folder()+"/iommu_group", group)
}

// CreateVirtualFunctions does what writing a number to sriov_numvfs of a NIC does, after 0 where there are virtual
// functions: the old ones go, new ones appear without a driver, each in an IOMMU group of its own where the NIC
// has one. It fails for more than sriov_totalvfs. They do not last over Boot.
func CreateVirtualFunctions(dir, pciAddress string, count int) error {
	d, nic, err := findNIC(dir, func(nic NIC) bool { return nic.PCIAddress == pciAddress })
	if err != nil {
		return fmt.Errorf("creating virtual functions of %s: %w", pciAddress, err)
	}
	if count < 0 || count > nic.MaximumVirtualFunctions {
		return fmt.Errorf("creating %d virtual functions of %s, which can have %d: numerical result out of range",
			count, pciAddress, nic.MaximumVirtualFunctions)
	}
	if err := removeVirtualFunctions(dir, pciAddress); err != nil {
		return err
	}
	k, err := d.kernel()
	if err != nil {
		return err
	}
	t := newTree(dir)
	for number := range count {
		virtual := device{
			address: freeAddress(dir, pciAddress), vendor: nic.Vendor, id: virtualDevice(nic), class: "0x020000",
			numaNode: nic.NUMANode, physical: pciAddress, iommuGroup: virtualGroup(nic, number),
		}
		k.writeDevice(t, virtual)
		t.link(fmt.Sprint(pciFolder(pciAddress), "/virtfn", number), virtual.folder())
	}
	t.file(pciFolder(pciAddress)+"/sriov_numvfs", count)
	if t.err != nil {
		return fmt.Errorf("creating virtual functions of %s: %w", pciAddress, t.err)
	}
	return nil
}

// VirtualFunctions are the PCI addresses of the virtual functions of a NIC, in the order of their numbers.
func VirtualFunctions(dir, pciAddress string) ([]string, error) {
	var addresses []string
	for number := 0; ; number++ {
		target, err := os.Readlink(filepath.Join(dir, pciFolder(pciAddress), fmt.Sprint("virtfn", number)))
		switch {
		case errors.Is(err, os.ErrNotExist):
			return addresses, nil
		case err != nil:
			return nil, fmt.Errorf("listing the virtual functions of %s: %w", pciAddress, err)
		}
		addresses = append(addresses, path.Base(target))
	}
}

// freeAddress is the first address from slot 2 of the bus on that no function has.
func freeAddress(dir, pciAddress string) string {
	bus := pciAddress[:len("0000:00:")]
	for number := 0; ; number++ {
		address := fmt.Sprintf("%s%02x.%d", bus, 2+number/8, number%8)
		if _, err := os.Lstat(filepath.Join(dir, pciDevices+address)); errors.Is(err, os.ErrNotExist) {
			return address
		}
	}
}

func removeVirtualFunctions(dir, pciAddress string) error {
	links, err := filepath.Glob(filepath.Join(dir, pciFolder(pciAddress), "virtfn*"))
	if err != nil {
		return fmt.Errorf("removing virtual functions of %s: %w", pciAddress, err)
	}
	for _, link := range links {
		target, err := os.Readlink(link)
		if err != nil {
			return fmt.Errorf("removing virtual functions of %s: %w", pciAddress, err)
		}
		address := path.Base(target)
		gone := []string{pciDevices + address, pciFolder(address)}
		if group := groupOf(dir, address); group != "" {
			gone = append(gone, iommuGroups+group, vfioFolder+group)
		}
		if err := errors.Join(os.Remove(link), removeAll(dir, gone...)); err != nil {
			return fmt.Errorf("removing virtual functions of %s: %w", pciAddress, err)
		}
	}
	return nil
}

func removeAll(dir string, paths ...string) error {
	for _, name := range paths {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// groupOf is the IOMMU group of a function; "" for none.
func groupOf(dir, pciAddress string) string {
	target, err := os.Readlink(filepath.Join(dir, pciFolder(pciAddress), "iommu_group"))
	if err != nil {
		return ""
	}
	return path.Base(target)
}

// BindDriver binds a PCI function to another driver, such as vfio-pci, whose group then appears below /dev/vfio;
// "" unbinds it. A physical function that leaves its driver loses its interface. Without an IOMMU group, vfio-pci
// takes a function only with enable_unsafe_noiommu_mode, and the host then has the device noiommu-0.
func BindDriver(dir, pciAddress, driver string) error {
	folder := filepath.Join(dir, pciFolder(pciAddress))
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("binding %s to the driver %q: %w", pciAddress, driver, err)
	}
	f := &files{root: dir}
	node := groupOf(dir, pciAddress)
	if node == "" {
		node = "noiommu-0"
	}
	if driver == vfioDriver && strings.HasPrefix(node, "noiommu") && f.value(noIOMMUParam) != "Y" {
		return fmt.Errorf("binding %s to the driver %s without an IOMMU: invalid argument", pciAddress, driver)
	}
	if err := unbind(dir, pciAddress, node); err != nil {
		return fmt.Errorf("unbinding %s: %w", pciAddress, err)
	}
	if err := bind(dir, pciAddress, driver, node); err != nil {
		return fmt.Errorf("binding %s to the driver %q: %w", pciAddress, driver, err)
	}
	return nil
}

// bind gives a function without a driver to one, which makes a group device or an interface.
func bind(dir, pciAddress, driver, node string) error {
	t := newTree(dir)
	if driver != "" {
		t.directory("/sys/bus/pci/drivers/" + driver)
		t.link(pciFolder(pciAddress)+"/driver", "/sys/bus/pci/drivers/"+driver)
	}
	if driver == vfioDriver {
		t.text(vfioFolder+"vfio", deviceFile(10, vfioContainer))
		t.text(vfioFolder+node, deviceFile(vfioMajor, 0))
	}
	if _, nic, err := findNIC(dir, func(nic NIC) bool { return nic.PCIAddress == pciAddress }); err == nil && driver == nic.Driver {
		writeNetwork(t, &nic)
	}
	return t.err
}

// unbind takes a function from its driver, with what that driver made.
func unbind(dir, pciAddress, node string) error {
	folder := pciFolder(pciAddress)
	interfaces, err := filepath.Glob(filepath.Join(dir, folder, "net", "*"))
	for _, name := range interfaces {
		err = errors.Join(err, removeAll(dir, "/sys/class/net/"+filepath.Base(name)))
	}
	return errors.Join(err, removeAll(dir, folder+"/driver", folder+"/net", folder+"/msi_irqs", vfioFolder+node))
}

// writeVFIO writes the device files of the functions that are bound to vfio-pci right after boot.
func (m Machine) writeVFIO(t *tree) {
	for _, d := range m.devices() {
		if d.driver == vfioDriver && d.iommuGroup > 0 {
			t.text(vfioFolder+"vfio", deviceFile(10, vfioContainer))
			t.text(fmt.Sprint(vfioFolder, d.iommuGroup), deviceFile(vfioMajor, d.iommuGroup))
		}
	}
}

// writeSRIOV is what writing to sriov_numvfs does: another number than 0 is refused while there are virtual
// functions (sriov_numvfs_store of drivers/pci/iov.c).
func writeSRIOV(f *files, name string, match []string, value string) error {
	count, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Errorf("writing %q to %s: invalid argument", value, name)
	}
	if now := f.value(name); count != 0 && now != "0" {
		if now == value {
			return nil
		}
		return fmt.Errorf("writing %q to %s, which is %s: device or resource busy", value, name, now)
	}
	return CreateVirtualFunctions(f.root, match[1], count)
}

// writeBinding is what writing an address to bind or unbind of a driver does.
func writeBinding(f *files, _ string, match []string, value string) error {
	driver := match[1]
	if match[2] == "unbind" {
		driver = ""
	}
	return BindDriver(f.root, value, driver)
}
