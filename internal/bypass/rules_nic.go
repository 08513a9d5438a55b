// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/pcie"
)

// seriesDriver wants the driver of the series for Onload's native datapath; that of AF_XDP is a matter of nativeXDP.
func (c *candidate) seriesDriver() verdict {
	if c.model.Driver == "" || c.needs.overXDP {
		return passed()
	}
	return c.boundTo(c.model.Driver, "unbind it from that driver and ", "load the driver of Onload's release")
}

// boundTo wants a driver. The remedy is what to do when there is none, after what to do with another one.
func (c *candidate) boundTo(wanted, unbind, remedy string) verdict {
	if is, known := c.nic.Driver.Get(); known {
		if is == wanted {
			return passed()
		}
		return failed("NIC %s is bound to driver %s and %s needs %s; %s%s.", c.name(), is, c.stack.Type, wanted, unbind, remedy)
	}
	if c.nic.Driver.Reason == noDriver {
		return failed("NIC %s is bound to no driver and %s needs %s; %s.", c.name(), c.stack.Type, wanted, remedy)
	}
	return absent(c.nic.Driver, "The driver of "+c.name(), "it may be another than "+wanted,
		"let the program read /sys of the node")
}

// noDriver is how internal/host says that the driver link of a device does not exist.
const noDriver = "no driver is bound"

// carrier wants a link.
func (c *candidate) carrier() verdict {
	up, known := c.nic.Carrier.Get()
	switch {
	case up:
		return passed()
	case known:
		return failed("Interface %s of NIC %s has no link (%s is 0); plug in the cable, or set the interface up on the "+
			"node and on the switch.", c.nic.Name.Value, c.nic.PCIAddress, cmp.Or(c.nic.Carrier.Source, "carrier"))
	case c.isAway():
		return noted("The interface of NIC %s is in the network namespace of a pod, so its link is not known.",
			c.nic.PCIAddress)
	default:
		return absent(c.nic.Carrier, "The link of "+c.name(), "a pod may get a NIC without one",
			"set the interface up: the kernel reports the link only of such interfaces")
	}
}

// isAway reports whether the interface of the NIC is in a pod: its network driver is bound, the node sees no
// interface, and the pool's network attachment is of a type that moves it.
func (c *candidate) isAway() bool {
	attachment := c.in.Pool.Spec.NetworkAttachment
	moves := attachment != nil && (attachment.Type == v1alpha1.AttachmentHostDevice || attachment.Type == v1alpha1.AttachmentSRIOV)
	return moves && !c.nic.Name.Known && c.nic.Driver.Known && c.nic.Driver.Value != driverVFIO
}

// numaNode notes a NIC whose NUMA node is not known. The kubelet then aligns nothing with it.
func (c *candidate) numaNode() verdict {
	if c.nic.NUMANode.Known {
		return passed()
	}
	return noted("The NUMA node of NIC %s is not known from %s (%s), so the kubelet cannot place CPUs and hugepages "+
		"beside it; look for a NUMA setting in the firmware of the machine.", c.name(),
		cmp.Or(c.nic.NUMANode.Source, "numa_node"), cmp.Or(c.nic.NUMANode.Reason, "not read"))
}

// pciLink notes a PCIe link that was trained below what the NIC and its slot can do. It costs latency and bandwidth, and
// the NIC still works as wanted otherwise, so that it is a reason and not a failure: whether it is worth a visit to the
// machine is for people to decide. Virtual NICs have no link, and virtual machines show none.
func (c *candidate) pciLink() verdict {
	nic := c.nic
	if nic.PortLinkSpeed.Known && pcie.Rate(nic.PortLinkSpeed.Value) == 0 {
		return passed()
	}
	var below []string
	speed, most := pcie.Rate(nic.LinkSpeed.Value), pcie.Most(pcie.Rate(nic.MaximumLinkSpeed.Value), pcie.Rate(nic.PortLinkSpeed.Value))
	if speed > 0 && speed < most {
		below = append(below, fmt.Sprintf("%s of %.1f GT/s PCIe", nic.LinkSpeed.Value, most))
	}
	width, widest := pcie.Lanes(nic.LinkWidth.Value), pcie.Most(pcie.Lanes(nic.MaximumLinkWidth.Value), pcie.Lanes(nic.PortLinkWidth.Value))
	if width > 0 && width < widest {
		below = append(below, fmt.Sprintf("x%.0f of x%.0f", width, widest))
	}
	if len(below) == 0 {
		return passed()
	}
	return noted("The PCIe link of NIC %s is trained to %s (current_link_* and max_link_* in its folder below "+
		"/sys/bus/pci/devices and in that of its port); reseat the card.", c.name(), strings.Join(below, " and "))
}

// virtualFunctions speaks of the number of virtual functions that the pool creates: on the NIC itself while it has
// none, on each of them while there are fewer than wanted.
func (c *candidate) virtualFunctions() verdict {
	wanted := c.in.Pool.Spec.VirtualFunctions
	if wanted == nil {
		return passed()
	}
	nic := c.nic
	if c.creator != nil {
		nic = *c.creator
	}
	is := len(nic.VirtualFunctions)
	format := "NIC %s has %d of the %d virtual functions of spec.virtualFunctions.countPerNIC (sriov_numvfs)%s; the " +
		"profile that governs the node creates them, see the profile's status."
	offers := ""
	if most, known := nic.MaximumVirtualFunctions.Get(); known && most < int(wanted.CountPerNIC) {
		offers = " and offers " + strconv.Itoa(most) + " at most"
	}
	switch {
	case is == 0:
		return failed(format, nameOfNIC(nic), is, wanted.CountPerNIC, offers)
	case is < int(wanted.CountPerNIC):
		return noted(format, nameOfNIC(nic), is, wanted.CountPerNIC, offers)
	default:
		return passed()
	}
}

// deviceNodes wants the device files of the stack. Those of Onload must be open to everybody, as its udev rule makes
// them: a container that runs as another user than root is accelerated or not without a word. Programs of VFIO
// run as root. The mode of a stand-in in a test tree says nothing.
func (c *candidate) deviceNodes() verdict {
	nodes := c.bypass().DeviceNodes
	if v := absent(nodes, "The device files of "+string(c.stack.Type), "the stack may be unreachable",
		"let the program read /dev of the node"); v.level != levelPassed {
		return v
	}
	missing := missingFrom(c.needs.nodes, func(path string) bool { _, ok := nodes.Value[path]; return ok })
	if len(missing) > 0 {
		return failed("The node has no %s, without which programs run on kernel sockets or fail; load the modules of "+
			"the stack.", strings.Join(missing, ", "))
	}
	if !c.needs.nodesForAll {
		return passed()
	}
	const forAll = 0o006
	closed := missingFrom(c.needs.nodes, func(path string) bool {
		node := nodes.Value[path]
		return node.Simulated || node.Mode&forAll == forAll
	})
	if len(closed) == 0 {
		return passed()
	}
	return failed("%s has mode %04o and 0666 is wanted, so that containers without root can open it; restore Onload's "+
		"udev rule.", closed[0], nodes.Value[closed[0]].Mode)
}

// missingFrom returns the names that are not there.
func missingFrom(names []string, isThere func(string) bool) []string {
	var missing []string
	for _, name := range names {
		if !isThere(name) {
			missing = append(missing, name)
		}
	}
	return missing
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// smallPages returns the hugepages of 2 MiB of the NIC's NUMA node, or of the host when the NUMA node is not known.
func (c *candidate) smallPages() (pool host.HugepagePool, where string, found bool) {
	where, pools := "the node", c.in.Facts.Hugepages
	if id, known := c.nic.NUMANode.Get(); known {
		where, pools = "NUMA node "+strconv.Itoa(id), nil
		for _, node := range c.in.Facts.NUMANodes {
			if node.ID == id {
				pools = node.Hugepages
			}
		}
	}
	const smallPage = 2048
	index := slices.IndexFunc(pools, func(p host.HugepagePool) bool { return p.SizeKibibytes == smallPage })
	if index < 0 {
		return host.HugepagePool{}, where, false
	}
	return pools[index], where, true
}
