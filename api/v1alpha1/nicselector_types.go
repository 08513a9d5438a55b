// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// PCIID is a vendor or device of PCI: four lower-case hexadecimal digits, as lspci -n prints them. The bound
// of its length leaves room for 0x, so that the rule refuses it, with a sentence.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=8
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{4}$')",message="a PCI vendor or device is written as four lower-case hexadecimal digits without 0x, as lspci -n prints them, for example 1924."
type PCIID string

// DriverName is the name of a kernel driver.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9_-]*$')",message="a driver name begins with a letter or digit and consists of letters, digits, _ and -."
type DriverName string

// InterfacePattern is the name of a network interface, or a pattern with the shell wildcards * and ?. A leading !
// excludes the interfaces that match the rest.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^!?[A-Za-z0-9_.*?:-]+$')",message="an interface name consists of letters, digits and _.:- with the wildcards * and ?, and may begin with an exclamation mark."
// +kubebuilder:validation:XValidation:rule="self.matches('^!?([*]*[^*]){0,15}[*]*$')",message="an interface name has at most 15 characters."
type InterfacePattern string

// PCIAddress is the address of a PCI function, such as 0000:3b:00.0.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$')",message="a PCI address is written as in sysfs, for example 0000:3b:00.0."
type PCIAddress string

// LinkState says which link a NIC must have to be selected.
//
// +kubebuilder:validation:Enum=Any;Up
type LinkState string

const (
	// LinkAny takes a NIC with and without a link.
	LinkAny LinkState = "Any"
	// LinkUp takes a NIC only while it has a link.
	LinkUp LinkState = "Up"
)

// NICRole is the part a PCI function plays in SR-IOV.
//
// +kubebuilder:validation:Enum=PhysicalFunction;VirtualFunction
type NICRole string

const (
	// RolePhysicalFunction is a NIC itself, whether or not it can have virtual functions.
	RolePhysicalFunction NICRole = "PhysicalFunction"
	// RoleVirtualFunction is a virtual function of a NIC.
	RoleVirtualFunction NICRole = "VirtualFunction"
)

// NICSelector describes NICs, in the profile and in the pool alike. A NIC matches when it satisfies every field that is
// given; a field that is omitted takes any NIC, except role.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="!has(self.devices) || has(self.vendor)",message="devices need the vendor beside them, because device numbers are the vendor's own."
// +kubebuilder:validation:XValidation:rule="has(self.vendor) || has(self.drivers) || has(self.interfaces) || has(self.pciAddresses)",message="a selector of NICs must name a vendor, drivers, interfaces or pciAddresses: numaNodes, link and role alone would take every NIC."
type NICSelector struct {
	// vendor is the PCI vendor, four hexadecimal digits without 0x: 1924 is Solarflare, 10ee Xilinx, 8086 Intel, 15b3
	// Mellanox.
	// +optional
	Vendor PCIID `json:"vendor,omitempty"`

	// devices are PCI devices of the vendor, 1 to 32, each four hexadecimal digits without 0x; a NIC has one of them. Of
	// Solarflare (1924), 0a03 is the 8000 series, 0b03 the X2, 0c03 and 2c03 the X4; of Xilinx (10ee), 5084 is the X3.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Devices []PCIID `json:"devices,omitempty"`

	// drivers are kernel drivers such as sfc, xilinx_efct or vfio-pci, 1 to 8; a NIC is bound to one of them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +optional
	Drivers []DriverName `json:"drivers,omitempty"`

	// interfaces are names of network interfaces, or patterns with the shell wildcards * and ? such as ens*f0, 1 to 32;
	// a NIC has one of them. One with a leading ! excludes: a NIC must match none of these, and where all patterns
	// exclude, any other interface will do. A NIC without an interface, such as one bound to vfio-pci, matches no
	// pattern.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +optional
	Interfaces []InterfacePattern `json:"interfaces,omitempty"`

	// pciAddresses are addresses on PCI as sysfs writes them, such as 0000:3b:00.0, 1 to 64; a NIC has one of them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	PCIAddresses []PCIAddress `json:"pciAddresses,omitempty"`

	// numaNodes are NUMA nodes, 1 to 64; the NIC is local to one of them. A NIC whose NUMA node the firmware
	// does not report does not match.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=1023
	// +listType=set
	// +optional
	NUMANodes []int32 `json:"numaNodes,omitempty"`

	// link is Any or Up. Up takes a NIC only while it has a link; a LowLatencyNodeProfile cannot ask for it, because its
	// plan does not change when a cable is pulled. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current default is
	// Any: a NIC without link stays in a pool and is reported unhealthy.
	// +optional
	Link LinkState `json:"link,omitempty"`

	// role is PhysicalFunction or VirtualFunction. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is
	// PhysicalFunction, also where pciAddresses name a virtual function.
	// +optional
	Role NICRole `json:"role,omitempty"`
}
