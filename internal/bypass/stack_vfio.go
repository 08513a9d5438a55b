// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	nodeVFIO   = "/dev/vfio/vfio"
	driverVFIO = "vfio-pci"
)

// vfioStack takes every PCI function. Programs bring a driver of their own, and run as root. The NIC has no interface
// that could tell a link.
func vfioStack() Stack {
	return Stack{
		Type: v1alpha1.StackVFIO, Sample: "dataplane/pool.yaml", Section: "DPDK on VFIO",
		// All fields of the section have defaults, so that it may be missing.
		hasSection: func(s *v1alpha1.BypassStack) bool { return s.VFIO != nil || s.Type == v1alpha1.StackVFIO },
		needs:      func(*v1alpha1.BypassStack) needs { return needs{nodes: []string{nodeVFIO}} },
		isolation:  vfioIsolation,
		supported:  (*candidate).bifurcated,
		rules: []rule{
			(*candidate).userDriver, (*candidate).numaNode, (*candidate).pciLink, (*candidate).virtualFunctions,
			(*candidate).deviceNodes, (*candidate).iommuGroup, (*candidate).groupNode, (*candidate).isolation, (*candidate).groupPeers,
		},
		addEdits: addVFIOEdits,
	}
}

// bifurcated notes NICs whose user-space driver works beside the kernel's and not through VFIO.
func (c *candidate) bifurcated() verdict {
	if c.model.Driver != mlx5 {
		return passed()
	}
	return noted("DPDK drives NIC %s (%s) beside the kernel driver mlx5_core and finds none behind vfio-pci; use VFIO "+
		"on it only for a program with a driver of its own.", c.name(), c.model.Series)
}

// userDriver wants the driver by which programs own the NIC.
func (c *candidate) userDriver() verdict {
	return c.boundTo(driverVFIO, "", "the profile that governs the node binds it; see the profile's status")
}

// group returns the IOMMU group of a PCI function.
func (c *candidate) group(address string) (int, bool) {
	group, known := c.bypass().VFIO.Groups[address]
	return group, known
}

// groupPath is the device file of an IOMMU group; the kernel marks groups without an IOMMU in the name
// (drivers/vfio/group.c).
func (c *candidate) groupPath(group int) string {
	if c.withoutIOMMU() {
		return fmt.Sprintf("/dev/vfio/noiommu-%d", group)
	}
	return fmt.Sprintf("/dev/vfio/%d", group)
}

// vfioIsolation fills in the default of the field.
func vfioIsolation(s *v1alpha1.BypassStack) v1alpha1.VFIOIsolation {
	if s.VFIO == nil {
		return v1alpha1.VFIOIsolationIOMMU
	}
	return cmp.Or(s.VFIO.Isolation, v1alpha1.VFIOIsolationIOMMU)
}

// withoutIOMMU reports whether the pool hands out devices that no IOMMU confines.
func (c *candidate) withoutIOMMU() bool {
	return vfioIsolation(&c.in.Pool.Spec.Stack) == v1alpha1.VFIOIsolationNoIOMMU
}

// iommuGroup wants the group whose device file a program opens.
func (c *candidate) iommuGroup() verdict {
	if _, known := c.group(c.nic.PCIAddress); known {
		return passed()
	}
	if c.withoutIOMMU() {
		return unknown("The group of NIC %s cannot be read (no iommu_group in its folder below /sys/bus/pci/devices), "+
			"which exists once the NIC is bound to vfio-pci; see the status of the profile that governs the node.", c.name())
	}
	return unknown("The IOMMU group of NIC %s cannot be read (no iommu_group in its folder below /sys/bus/pci/devices); "+
		"enable the IOMMU in the firmware and in the kernel's arguments, or use spec.stack.vfio.isolation NoIOMMU on "+
		"machines without one.", c.name())
}

// groupNode wants the device file of the group.
func (c *candidate) groupNode() verdict {
	group, known := c.group(c.nic.PCIAddress)
	nodes := c.bypass().DeviceNodes
	if !known || !nodes.Known {
		return passed()
	}
	path := c.groupPath(group)
	if _, ok := nodes.Value[path]; ok {
		return passed()
	}
	return failed("The node has no %s, the device file of NIC %s; it appears when all functions of the group are bound "+
		"to vfio-pci, see the status of the profile that governs the node.", path, c.name())
}

// isolation wants the kernel to allow devices that no IOMMU confines, where the pool asks for that.
func (c *candidate) isolation() verdict {
	if !c.withoutIOMMU() {
		return passed()
	}
	allowed := c.bypass().VFIO.NoIOMMU
	if v := absent(allowed, "enable_unsafe_noiommu_mode of vfio", "programs may be refused the NIC", "load the module vfio"); v.level != levelPassed {
		return v
	}
	if allowed.Value {
		return passed()
	}
	return failed("%s is N and spec.stack.vfio.isolation NoIOMMU needs Y; see the status of the profile that governs the "+
		"node, or use isolation IOMMU.", allowed.Source)
}

// groupPeers looks at the other NICs of the IOMMU group: the kernel opens a group only when none of its functions
// has another driver, and for one program at a time.
func (c *candidate) groupPeers() verdict {
	group, known := c.group(c.nic.PCIAddress)
	if !known {
		return passed()
	}
	peers, bound := c.peersIn(group)
	switch {
	case len(bound) > 0:
		return failed("IOMMU group %d of NIC %s also holds %s, which has another driver, so that the kernel opens the group "+
			"for no program; use a slot with a group of its own, or bind all its functions to vfio-pci.",
			group, c.name(), strings.Join(bound, ", "))
	case len(peers) > 0:
		return noted("IOMMU group %d of NIC %s also holds %s, and one program at a time opens a group: hand them to one "+
			"container, or use slots with groups of their own.", group, c.name(), strings.Join(peers, ", "))
	default:
		return passed()
	}
}

// peersIn returns the other NICs of an IOMMU group, and those of them that another driver than vfio-pci holds.
func (c *candidate) peersIn(group int) (peers, bound []string) {
	for _, nic := range c.in.Facts.NICs {
		other, known := c.group(nic.PCIAddress)
		if !known || other != group || nic.PCIAddress == c.nic.PCIAddress {
			continue
		}
		peers = append(peers, nic.PCIAddress)
		if driver, ok := nic.Driver.Get(); ok && driver != driverVFIO {
			bound = append(bound, nic.PCIAddress+" ("+driver+")")
		}
	}
	return peers, bound
}

// information is what the variable PCIDEVICE_…_INFO tells about a NIC, in the notation of that plugin.
type information struct {
	Generic genericInformation `json:"generic"`
	VFIO    vfioInformation    `json:"vfio"`
}

type genericInformation struct {
	DeviceID string `json:"deviceID"`
}

type vfioInformation struct {
	Group     string `json:"dev-mount"`
	Container string `json:"mount"`
}

func addVFIOEdits(e *Edits, held []*candidate) error {
	resource := held[0].in.Pool.Spec.ResourceName
	told := map[string]information{}
	e.addNodes(nodeVFIO)
	for _, c := range held {
		group, known := c.group(c.nic.PCIAddress)
		if !known {
			return fmt.Errorf("the IOMMU group of NIC %s is not known; bind the NIC to vfio-pci", c.nic.PCIAddress)
		}
		path := c.groupPath(group)
		e.addNodes(path)
		told[c.nic.PCIAddress] = information{
			Generic: genericInformation{DeviceID: c.nic.PCIAddress},
			VFIO:    vfioInformation{Group: path, Container: nodeVFIO},
		}
	}
	text, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("the NICs of the container cannot be described: %w", err)
	}
	e.Environment = append(e.Environment, Variable{addressVariable(resource) + "_INFO", string(text)})
	return nil
}
