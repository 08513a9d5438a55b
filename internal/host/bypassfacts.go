// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"net/netip"
	"slices"
	"strings"
)

// Bypass is what a host says about kernel-bypass stacks, and about the interfaces that carry its own traffic.
type Bypass struct {
	Onload Onload
	VFIO   VFIO
	// DeviceNodes are the device files of bypass stacks that exist, by path: /dev/onload, /dev/onload_epoll,
	// /dev/sfc_char, /dev/vfio/vfio and the groups below /dev/vfio. Absent when /dev cannot be read.
	DeviceNodes Fact[map[string]DeviceNode]
	// Networks are the routes of the main table of the host, from /proc/1/net/route and ipv6_route (or
	// /proc/net/… in snapshots).
	Networks Fact[[]Route]
	// Lower are the interfaces directly below an interface: the slaves of a bond, the ports of a bridge, the
	// parent of a VLAN; from /sys/class/net/*/lower_*.
	Lower map[string][]string
	// UserSpaces are the user files of a stack below each folder that was asked for.
	UserSpaces map[string]UserSpace
	// SocketReports are those of device plugins of stack AFXDP, by the name of the pool.
	SocketReports Fact[map[string]SocketReport]
}

// Route is a route of the host.
type Route struct {
	Destination netip.Prefix
	Interface   string
	// Gateway is invalid when the destination is directly connected, else the address of none: which it is, is not looked at.
	Gateway netip.Addr
}

// Equal reports whether two routes are the same. Comparisons field by field stop at the addresses, whose fields
// are private to their package.
func (r Route) Equal(other Route) bool { return r == other }

// DeviceNode is a character device file.
type DeviceNode struct {
	// Mode holds the permission bits.
	Mode uint32
	// Major and Minor are the device numbers.
	Major, Minor uint32
	// Simulated tells that the file is a regular file of a test tree or snapshot, without device numbers.
	Simulated bool
}

// Onload is the state of the modules of Onload.
type Onload struct {
	// Version is onload_version of /proc/driver/onload/version, or /sys/module/onload/version.
	Version Fact[string]
	// InterfaceVersion is uk_intf_ver of /proc/driver/onload/version, which the user library must equal.
	InterfaceVersion Fact[string]
	// ControlPlanePIDs are the processes of the control plane, ascending: /proc/driver/onload/cp_server_pids,
	// and since that hides the processes of other PID namespaces from a container, the processes of that name
	// that /proc shows.
	ControlPlanePIDs Fact[[]int]
	// ControlPlanes are the same processes with their network namespaces: each that has a stack has a control plane.
	ControlPlanes []NamespacedProcess
	// Stacks is the number of stacks, from /proc/driver/onload/stacks.
	Stacks Fact[int]
	// StackOwners are the processes that made the stacks, by the number of the stack. Stacks are left out whose process has
	// ended, and all of them for a reader in a PID namespace of its own, to whom the kernel names no process.
	StackOwners map[int]NamespacedProcess
	// Resources are the tables of /proc/driver/sfc_resource/resources by name, such as VI.
	Resources Fact[map[string]ResourceCount]
	// Interfaces are those that sfc_resource has registered: the folders of /proc/driver/sfc_resource besides
	// devices, and what its devices folder lists.
	Interfaces Fact[[]string]
	// Modules are the loaded modules of the stack by name (onload, sfc_char, sfc_resource, sfc, xilinx_efct),
	// each with its version; "" for a module without one.
	Modules Fact[map[string]string]
}

// NamespacedProcess is a process and where it is.
type NamespacedProcess struct {
	PID int
	// Namespace tells its network namespace from others of the same Facts, such as net:[4026531840]; "" when it is not known.
	Namespace string
}

// ResourceCount is a table of /proc/driver/sfc_resource/resources.
type ResourceCount struct {
	// Total is what the hardware has; absent for resources that do not report.
	Total Fact[int]
	// Current is how many are in use.
	Current int
}

// VFIO is the state of the kernel's VFIO drivers.
type VFIO struct {
	// Groups are the IOMMU groups of PCI functions by PCI address; of none when no NIC is in one.
	Groups map[string]int
	// NoIOMMU is /sys/module/vfio/parameters/enable_unsafe_noiommu_mode.
	NoIOMMU Fact[bool]
}

// UserSpace are the user files of a stack below one folder.
type UserSpace struct {
	// Files are the files of the stack by name (libonload.so, libonload_ext.so, libonload_zf.so, libefcp.so.1,
	// libciul.so.1, onload, onload_stackdump), each with its path on the host. Absent when the folder cannot be read.
	Files Fact[map[string]UserFile]
}

// UserFile is one file of a stack's user space.
type UserFile struct {
	// Path is the absolute path on the host.
	Path string
	// Unreadable says why the file could not be read, such as "permission denied"; "" when it could.
	Unreadable string
	// Digits are runs of hexadecimal digits that the loaded part of a library holds, in the order of the file: those of 16
	// digits and more, which may be checksums of interfaces or halves of them. See HoldsChecksum.
	Digits []string
	// Version is the release that the file names; "" when it names none. libonload.so names that of Onload, which
	// the module's must equal as well (oo_version_check_impl of src/include/onload/version_check.h), and
	// libonload_zf.so that of TCPDirect; the others name none that could be told from other texts.
	Version string
	// BuiltWith is the release of Onload that libonload_zf.so was built with; "" for other files.
	BuiltWith string
}

// checksumDigits is the length of a checksum of an interface: CI_CHSUM_STR_LEN.
const checksumDigits = 32

// HoldsChecksum reports whether a library holds a checksum of an interface: as a text, or as two halves of 16 bytes each,
// which is how a compiler copies it. libonload.so holds that of the kernel module which it belongs to (oo_uk_intf_ver of
// Onload's src/lib/transport/ip/netif_init.c, the same as uk_intf_ver of the module), that of the control plane and that of
// ef_vi. A compiler may also make immediate operands of it, so that a checksum which is not found may be there.
func (f UserFile) HoldsChecksum(checksum string) bool {
	if len(checksum) != checksumDigits {
		return false
	}
	holds := func(digits string) bool {
		return slices.ContainsFunc(f.Digits, func(run string) bool { return strings.Contains(run, digits) })
	}
	return holds(checksum) || holds(checksum[:checksumDigits/2]) && holds(checksum[checksumDigits/2:])
}

// Checksums are the texts of a library that can be nothing but checksums of interfaces. They are not all when the library
// has more texts of digits than are kept.
func (f UserFile) Checksums() (checksums []string, areAll bool) {
	for _, digits := range f.Digits {
		if len(digits) == checksumDigits {
			checksums = append(checksums, digits)
		}
	}
	return checksums, len(f.Digits) <= maxDigits
}
