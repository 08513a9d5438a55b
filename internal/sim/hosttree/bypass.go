// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"os"
	"path/filepath"
)

// OnloadState says how much of Onload a machine has.
type OnloadState string

const (
	// OnloadAbsent is a machine without Onload.
	OnloadAbsent OnloadState = ""
	// OnloadInstalled has the user files, and the modules are not loaded.
	OnloadInstalled OnloadState = "Installed"
	// OnloadLoaded has the user files and the loaded modules.
	OnloadLoaded OnloadState = "Loaded"
)

// The release and the interface version of NewOnload.
const (
	// OnloadVersion is what both the modules and the user files call themselves.
	OnloadVersion = "9.1.0.15"
	// OnloadInterfaceVersion is the checksum of the interface between onload.ko and libonload.so.
	OnloadInterfaceVersion = "3f9c2d7a51b84e60a7c1d2e3f4059687"
)

// Onload is an installation of Onload.
type Onload struct {
	// State says how much of it is there.
	State OnloadState `json:"state,omitempty"`
	// Version and InterfaceVersion of the loaded modules, such as 9.1.0.15 and 32 hexadecimal digits.
	Version          string `json:"version,omitempty"`
	InterfaceVersion string `json:"interfaceVersion,omitempty"`
	// UserVersion and UserInterfaceVersion are those of the user files; "" for those of the modules.
	UserVersion          string `json:"userVersion,omitempty"`
	UserInterfaceVersion string `json:"userInterfaceVersion,omitempty"`
	// UserFolder is the folder, as an absolute path of the host, below whose usr the user files are: "/" for
	// the host's own, /opt/onload for an unpacked image; "" for a machine without user files.
	UserFolder string `json:"userFolder,omitempty"`
	// VirtualInterfaces is the number of VIs of all NICs together, VirtualInterfacesInUse how many are in use.
	VirtualInterfaces      int `json:"virtualInterfaces,omitempty"`
	VirtualInterfacesInUse int `json:"virtualInterfacesInUse,omitempty"`
	// ControlPlanePID is the process of the control plane; 0 when none runs.
	ControlPlanePID int `json:"controlPlanePID,omitempty"`
}

// NewOnload is an installation that works: OnloadVersion loaded, its user files below /opt/onload, a control
// plane and 2048 virtual interfaces.
func NewOnload() Onload {
	return Onload{
		State: OnloadLoaded, Version: OnloadVersion, InterfaceVersion: OnloadInterfaceVersion,
		UserFolder: "/opt/onload", VirtualInterfaces: 2048, ControlPlanePID: 1608,
	}
}

// SolarflareX2 is a port of an X2522 with 25 Gb/s. The identifiers of this and the other NICs are those of the public
// PCI ID database and of the tables of the drivers.
func SolarflareX2(name, pciAddress string, numaNode int) NIC {
	return NIC{
		Name: name, PCIAddress: pciAddress, Vendor: "0x1924", Device: "0x0b03", Driver: "sfc", NUMANode: numaNode,
		Queues: 8, SpeedMegabits: 25000, MaximumVirtualFunctions: 16,
	}
}

// Solarflare8000 is a port of an SFN8522 with 10 Gb/s.
func Solarflare8000(name, pciAddress string, numaNode int) NIC {
	nic := SolarflareX2(name, pciAddress, numaNode)
	nic.Device, nic.SpeedMegabits = "0x0a03", 10000
	return nic
}

// AlveoX4 is a port of an X4 with 100 Gb/s.
func AlveoX4(name, pciAddress string, numaNode int) NIC {
	nic := SolarflareX2(name, pciAddress, numaNode)
	nic.Device, nic.SpeedMegabits = "0x0c03", 100000
	return nic
}

// AlveoX3 is a port of an X3522 with 25 Gb/s. It has no virtual functions.
func AlveoX3(name, pciAddress string, numaNode int) NIC {
	return NIC{
		Name: name, PCIAddress: pciAddress, Vendor: "0x10ee", Device: "0x5084", Driver: "xilinx_efct", NUMANode: numaNode,
		Queues: 8, SpeedMegabits: 25000,
	}
}

// IntelE810 is a port of an E810-C with 100 Gb/s.
func IntelE810(name, pciAddress string, numaNode int) NIC {
	return NIC{
		Name: name, PCIAddress: pciAddress, Vendor: "0x8086", Device: "0x1592", Driver: "ice", NUMANode: numaNode,
		Queues: 8, SpeedMegabits: 100000, MaximumVirtualFunctions: 128,
	}
}

// SetOnload gives the host another installation of Onload, as loading, unloading or upgrading it does; it
// lasts over Boot. The user files of the old one go.
func SetOnload(dir string, onload Onload) error {
	d, err := describe(dir)
	if err != nil {
		return err
	}
	for _, path := range d.Machine.onloadPaths() {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			return fmt.Errorf("removing Onload from a host tree: %w", err)
		}
	}
	d.Machine.Onload = onload
	t := newTree(dir)
	d.Machine.writeOnload(t)
	d.Machine.writeOnloadFiles(t)
	if t.err != nil {
		return fmt.Errorf("installing Onload on a host tree: %w", t.err)
	}
	return d.save(dir)
}

// changeOnload changes the installation that the host has.
func changeOnload(dir string, change func(*Onload)) error {
	d, err := describe(dir)
	if err != nil {
		return err
	}
	change(&d.Machine.Onload)
	return SetOnload(dir, d.Machine.Onload)
}

// UnloadOnload takes the modules out of the kernel; the user files stay. It does what "onload_tool unload" does.
func UnloadOnload(dir string) error {
	return changeOnload(dir, func(o *Onload) { o.State = OnloadInstalled })
}

// SetOnloadVersion loads other modules than the user files belong to.
func SetOnloadVersion(dir, version, interfaceVersion string) error {
	return changeOnload(dir, func(o *Onload) {
		o.UserVersion, o.UserInterfaceVersion = o.userVersion(), o.userInterfaceVersion()
		o.State, o.Version, o.InterfaceVersion = OnloadLoaded, version, interfaceVersion
	})
}

// SetDefaultRoute gives the host a default route through an interface, and NodeAddress in its network; "" takes
// both away. It lasts over Boot.
func SetDefaultRoute(dir, nicName string) error {
	d, err := describe(dir)
	if err != nil {
		return err
	}
	d.Machine.DefaultRoute = nicName
	t := newTree(dir)
	d.Machine.writeRoutes(t)
	if t.err != nil {
		return fmt.Errorf("setting the default route of a host tree: %w", t.err)
	}
	return d.save(dir)
}

// SetCarrier plugs the cable of a NIC in or out. The NIC is given by its interface.
func SetCarrier(dir, nicName string, up bool) error {
	_, nic, err := findNIC(dir, func(nic NIC) bool { return nic.Name == nicName })
	if err != nil {
		return fmt.Errorf("plugging a cable: %w", err)
	}
	if !up {
		nic.SpeedMegabits = 0
	}
	f := &files{root: dir}
	for name, value := range nic.link() {
		f.replace("/sys/class/net/"+nicName+"/"+name, fmt.Sprintln(value))
	}
	return f.err
}

// TrainLink sets what the PCIe link of a NIC runs with, such as "5.0 GT/s PCIe" and 4 lanes; what it could
// run with stays. The NIC is given by its interface.
func TrainLink(dir, nicName, speed string, width int) error {
	_, nic, err := findNIC(dir, func(nic NIC) bool { return nic.Name == nicName })
	if err != nil {
		return fmt.Errorf("training a link: %w", err)
	}
	f := &files{root: dir}
	f.replace(pciFolder(nic.PCIAddress)+"/current_link_speed", speed+"\n")
	f.replace(pciFolder(nic.PCIAddress)+"/current_link_width", fmt.Sprintln(width))
	return f.err
}

// findNIC finds a NIC that the machine states.
func findNIC(dir string, wanted func(NIC) bool) (description, NIC, error) {
	d, err := describe(dir)
	if err != nil {
		return d, NIC{}, err
	}
	for _, nic := range d.Machine.NICs {
		if wanted(nic) {
			return d, nic, nil
		}
	}
	return d, NIC{}, fmt.Errorf("machine %s has no such NIC", d.Machine.Hostname)
}
