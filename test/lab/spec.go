// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package lab boots real kernels for tests: virtual machines of a chosen CPU, NUMA and NIC layout under QEMU,
// in which the project's own programs run. QEMU emulates the processors in software (TCG), so the lab needs no
// hardware virtualisation. It shows what a kernel does with a setting, and says nothing about time: latency
// measured in it means nothing.
package lab

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Kernel is a kernel that machines of the lab boot.
type Kernel string

const (
	// Standard is Debian's linux-image-amd64.
	Standard Kernel = "standard"
	// RealTime is Debian's linux-image-rt-amd64, built with PREEMPT_RT.
	RealTime Kernel = "rt"
	// RealTimeBackports is the linux-image-rt-amd64 of Debian's backports, for what Linux 6.1 cannot do. It is not in the
	// image: it is built into the cache when the first machine wants it, and has its modules on a disk of its own.
	RealTimeBackports Kernel = "rt-backports"
	// Installed is the kernel that the boot loader on the machine's own disk starts, for machines of a bootable image only.
	Installed Kernel = "installed"
)

// kernels are all of them.
func kernels() []Kernel { return []Kernel{Standard, RealTime, RealTimeBackports, Installed} }

// Models of NICs. Igb is the only one with virtual functions, 7 of them; where the installed QEMU is older than 8,
// which brought it, the lab unpacks a newer one.
const (
	E1000e Model = "e1000e"
	Igb    Model = "igb"
	Virtio Model = "virtio-net-pci"
)

// Model is QEMU's name of an emulated NIC.
type Model string

// Spec is what a machine is made of.
type Spec struct {
	// Name is the host name, and what progress and errors call the machine.
	Name     string
	Topology Topology
	NICs     []NIC
	Boot     Boot
	// IOMMU adds Intel's DMA remapping. Interrupt remapping stays off: with it, QEMU 10.0.2 was seen to end
	// in an assertion (iotlb_to_section) while the guest enumerated PCI.
	IOMMU Presence
	// IdleStates adds a shallow and a deep idle state to each CPU; without, an idle CPU halts, and the kernel has no idle driver.
	IdleStates Presence
	// Files, where given, is a folder of this machine that the virtual one has at FilesPath as it is when the machine
	// starts: read-only, and without the way through the shell, which is slow for large programs.
	Files string
}

// FilesPath is where a machine has the folder Files of its Spec.
const FilesPath = "/opt/lab"

// Presence says whether a part is there.
type Presence int

const (
	// Absent parts are left out; it is the zero value.
	Absent Presence = iota
	// Present parts are there.
	Present
)

// Topology is the layout of processors and memory. QEMU numbers CPUs consecutively by package, core and
// thread, so the threads of one core are neighbours, and so are the CPUs of one NUMA node.
type Topology struct {
	Packages, CoresPerPackage, ThreadsPerCore int
	// NUMANodes divides the CPUs and the memory evenly. At most 7: each has a PCI host bridge of its own. With 0
	// the firmware describes no NUMA nodes, and every NIC of the Spec is on NUMA node 0.
	NUMANodes int
	// MebibytesPerNode is the memory of each NUMA node, or of the machine without NUMA nodes.
	MebibytesPerNode int
}

// CPUs is the number of CPUs of the machine.
func (t Topology) CPUs() int { return t.Packages * t.CoresPerPackage * t.ThreadsPerCore }

// parts is the number of equal parts of CPUs and memory.
func (t Topology) parts() int { return max(1, t.NUMANodes) }

// NIC is a network device behind a PCIe port of one NUMA node. All NICs of a machine without a wire hang on one hub inside
// QEMU, so what one sends the others receive, and nothing leaves the machine.
type NIC struct {
	// ID names the device towards QEMU: lower-case letters and digits.
	ID       string
	Model    Model
	NUMANode int
	// Wire leads to a NIC of another machine; the zero value is the machine's own hub.
	Wire Wire
}

// Wire is one of the two ends of a cable between NICs of two machines.
type Wire struct {
	// Folder of this machine in which the ends have their sockets. It belongs to one wire.
	Folder string
	// End is 1 or 2, and part of the NIC's MAC address, so that the NICs of a wire have different ones.
	End int
}

// NewWire is a wire with its sockets in an existing folder that is empty.
func NewWire(folder string) (one, other Wire) { return Wire{folder, 1}, Wire{folder, 2} }

// MAC is the address of a NIC at an end of a wire, or on the hub of its machine, by its NUMA node and its place among the NICs of the machine.
func (w Wire) MAC(numaNode, index int) string {
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", w.End, numaNode+1, index+1)
}

func (w Wire) socket(end int) string { return filepath.Join(w.Folder, fmt.Sprintf("end%d", end)) }
func (w Wire) other() int            { return 3 - w.End }

// longestSocket is the longest path of a socket: sun_path of unix(7) without its last zero.
const longestSocket = 107

func (w Wire) validate() error {
	switch {
	case w == Wire{}:
		return nil
	case w.End != 1 && w.End != 2:
		return fmt.Errorf("a wire has the ends 1 and 2, and no end %d", w.End)
	case !filepath.IsAbs(w.Folder) || strings.ContainsAny(w.Folder, ",="):
		return fmt.Errorf("the folder %q of a wire must be an absolute path without commas and equals signs", w.Folder)
	case len(w.socket(w.End)) > longestSocket:
		return fmt.Errorf("the folder %s of a wire is too long a path for a socket: give one of up to %d bytes", w.Folder, longestSocket-len("/end1"))
	default:
		return nil
	}
}

// Boot is what a machine is started with.
type Boot struct {
	Kernel Kernel
	// Arguments are added to the kernel's command line.
	Arguments []string
}

// More NUMA nodes than this have no bus numbers, of which 32 belong to each node and which end at 255; each NIC
// takes one, and its virtual functions another.
const (
	maximumNodes = 7
	maximumNICs  = 12
)

// Validate tells what is wrong with a spec in one sentence.
func (s Spec) Validate() error {
	t := s.Topology
	switch {
	case s.Name == "":
		return errors.New("a machine of the lab needs a name")
	case t.Packages < 1 || t.CoresPerPackage < 1 || t.ThreadsPerCore < 1:
		return fmt.Errorf("machine %s: packages, cores and threads must each be at least 1", s.Name)
	case t.NUMANodes < 0 || t.NUMANodes > maximumNodes || t.CPUs()%t.parts() != 0:
		return fmt.Errorf("machine %s: %d CPUs cannot be divided over %d NUMA nodes (0 to %d)", s.Name, t.CPUs(), t.NUMANodes, maximumNodes)
	case t.MebibytesPerNode < 256:
		return fmt.Errorf("machine %s: %d MiB per NUMA node is too little to boot: give at least 256", s.Name, t.MebibytesPerNode)
	case len(s.NICs) > maximumNICs:
		return fmt.Errorf("machine %s: %d NICs are more than %d", s.Name, len(s.NICs), maximumNICs)
	}
	return errors.Join(s.Boot.validate(s.Name), s.validateNICs())
}

func (b Boot) validate(name string) error {
	if !slices.Contains(kernels(), b.Kernel) {
		return fmt.Errorf("machine %s: the lab has no kernel %q, only %q", name, b.Kernel, kernels())
	}
	return nil
}

func (s Spec) validateNICs() error {
	seen := map[string]bool{}
	for _, nic := range s.NICs {
		if nic.ID == "" || seen[nic.ID] {
			return fmt.Errorf("machine %s: the ID %q of a NIC is empty or taken", s.Name, nic.ID)
		}
		if nic.NUMANode < 0 || nic.NUMANode >= s.Topology.parts() {
			return fmt.Errorf("machine %s: NIC %s is on NUMA node %d, which the machine does not have", s.Name, nic.ID, nic.NUMANode)
		}
		if err := nic.Wire.validate(); err != nil {
			return fmt.Errorf("machine %s: NIC %s: %w", s.Name, nic.ID, err)
		}
		seen[nic.ID] = true
	}
	return nil
}
