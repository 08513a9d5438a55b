// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

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

// SolarflareX2 is a port of an X2522 (1924:0b03, driver sfc) with 16 virtual functions at most. The
// identifiers of this and the other NICs are those of the public PCI ID database and of the drivers' own
// tables.
func SolarflareX2(name, pciAddress string, numaNode int) NIC { return NIC{} }

// Solarflare8000 is a port of an SFN8522 (1924:0a03, driver sfc).
func Solarflare8000(name, pciAddress string, numaNode int) NIC { return NIC{} }

// AlveoX4 is a port of an Alveo X4 (1924:0c03, driver sfc).
func AlveoX4(name, pciAddress string, numaNode int) NIC { return NIC{} }

// AlveoX3 is a port of an Alveo X3522 (10ee:5084, driver xilinx_efct).
func AlveoX3(name, pciAddress string, numaNode int) NIC { return NIC{} }

// IntelE810 is a port of an E810-C (8086:1592, driver ice) with 128 virtual functions at most.
func IntelE810(name, pciAddress string, numaNode int) NIC { return NIC{} }

// SetOnload gives the host another installation of Onload, as loading, unloading or upgrading it does; it
// lasts over Boot. UserFolder of the old one is removed.
func SetOnload(dir string, onload Onload) error { return nil }

// UnloadOnload takes the modules out of the kernel; the user files stay. It does what "onload_tool unload" does.
func UnloadOnload(dir string) error { return nil }

// SetOnloadVersion loads other modules than the user files belong to.
func SetOnloadVersion(dir, version, interfaceVersion string) error { return nil }

// SetCarrier plugs the cable of a NIC in or out. The NIC is given by its interface.
func SetCarrier(dir, nicName string, up bool) error { return nil }

// TrainLink sets what the PCIe link of a NIC runs with, such as "8.0 GT/s PCIe" and 4 lanes; what it could
// run with stays.
func TrainLink(dir, nicName, speed string, width int) error { return nil }

// CreateVirtualFunctions does what writing a number to sriov_numvfs of a NIC does: the old virtual functions go,
// new ones appear without a driver, each in an IOMMU group of its own. It fails for more than sriov_totalvfs.
func CreateVirtualFunctions(dir, pciAddress string, count int) error { return nil }

// BindDriver binds a PCI function to another driver, such as vfio-pci, whose group then appears below /dev/vfio;
// "" unbinds it. A physical function that leaves its driver loses its interface.
func BindDriver(dir, pciAddress, driver string) error { return nil }

// SetDefaultRoute gives the host a default route through an interface; "" takes it away. It lasts over Boot.
func SetDefaultRoute(dir, nicName string) error { return nil }
