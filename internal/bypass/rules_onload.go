// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const remedyProc = "let the program read /proc/driver of the node"

// modules wants the kernel modules of the stack. The in-tree module sfc drives the NIC and knows nothing of Onload.
func (c *candidate) modules() verdict {
	if !c.stack.isOnloads() {
		return passed()
	}
	loaded := c.bypass().Onload.Modules
	if v := absent(loaded, "The list of loaded modules", "those of "+string(c.stack.kind)+" may be missing",
		"let the program read /proc/modules of the node"); v.level != levelPassed {
		return v
	}
	missing := missingFrom(c.stack.modules, func(name string) bool { _, ok := loaded.Value[name]; return ok })
	if len(missing) == 0 {
		return passed()
	}
	return failed("The kernel of the node has not loaded %s (%s), which %s needs; install the release of Onload that "+
		"belongs to this kernel and load the module onload.", strings.Join(missing, ", "), loaded.Source, c.stack.kind)
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

// deviceNodes wants the device files of the stack. Those of Onload must be open to everybody, as its udev rule makes
// them: a container that runs as another user than root is accelerated or not without a word. Programs of VFIO
// run as root. The mode of a stand-in in a test tree says nothing.
func (c *candidate) deviceNodes() verdict {
	if len(c.stack.nodes) == 0 {
		return passed()
	}
	nodes := c.bypass().DeviceNodes
	if v := absent(nodes, "The device files of "+string(c.stack.kind), "the stack may be unreachable",
		"let the program read /dev of the node"); v.level != levelPassed {
		return v
	}
	missing := missingFrom(c.stack.nodes, func(path string) bool { _, ok := nodes.Value[path]; return ok })
	if len(missing) > 0 {
		return failed("The node has no %s, without which programs run on kernel sockets or fail; load the modules of "+
			"the stack.", strings.Join(missing, ", "))
	}
	if c.stack.isVFIO() {
		return passed()
	}
	const forAll = 0o006
	closed := missingFrom(c.stack.nodes, func(path string) bool {
		node := nodes.Value[path]
		return node.Simulated || node.Mode&forAll == forAll
	})
	if len(closed) == 0 {
		return passed()
	}
	return failed("%s has mode %04o and 0666 is wanted, so that containers without root can open it; restore Onload's "+
		"udev rule.", closed[0], nodes.Value[closed[0]].Mode)
}

// controlPlane wants the control plane while there are stacks. Without stacks none need run: the kernel starts it
// with the first one.
func (c *candidate) controlPlane() verdict {
	if !slices.Contains(c.stack.modules, moduleOnload) || !c.isLoaded() {
		return passed()
	}
	onload := c.bypass().Onload
	if v := absent(onload.ControlPlanePIDs, "The processes of Onload's control plane", "it may be dead", remedyProc); v.level != levelPassed {
		return v
	}
	if len(onload.ControlPlanePIDs.Value) > 0 || onload.Stacks.Value == 0 {
		return passed()
	}
	return failed("%d stacks of Onload run without a control plane (%s is empty), so routes and neighbours do not "+
		"change any more; see why onload_cp_server ended, and that /sys/module/onload/parameters/cplane_server_path "+
		"names it.", onload.Stacks.Value, onload.ControlPlanePIDs.Source)
}

// registered wants the NIC among those that sfc_resource knows. A NIC under the kernel's own sfc driver is not.
func (c *candidate) registered() verdict {
	if !c.stack.isOnloads() || !c.isLoaded() {
		return passed()
	}
	names := c.bypass().Onload.Interfaces
	if v := absent(names, "The NICs that sfc_resource knows", "the NIC may not be accelerated", remedyProc); v.level != levelPassed {
		return v
	}
	if slices.Contains(names.Value, c.nic.PCIAddress) || c.nic.Name.Known && slices.Contains(names.Value, c.nic.Name.Value) {
		return passed()
	}
	if c.isAway() {
		return noted("The interface of NIC %s is in the network namespace of a pod, from where sfc_resource does not "+
			"name it.", c.nic.PCIAddress)
	}
	return failed("NIC %s is not registered with sfc_resource (%s has %s), so programs run on kernel sockets; %s.",
		c.name(), names.Source, listOrNone(names.Value), c.registration())
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// registration is the way out of registered.
func (c *candidate) registration() string {
	if c.stack.experimental {
		return "write the interface's name to /sys/module/sfc_resource/afxdp/register, which is lost when Onload is " +
			"loaded again"
	}
	if version, loaded := c.bypass().Onload.Modules.Value[c.model.Driver]; loaded && version == "" {
		return "the loaded module " + c.model.Driver + " has no version, so it is the kernel's own: load the one of " +
			"Onload's release"
	}
	return "load the driver " + c.model.Driver + " of Onload's release and set the interface up"
}

// virtualInterfaces wants VIs. That all are in use is noted only, because the users may be the pods of the pool:
// every stack holds one on each NIC that it can reach.
func (c *candidate) virtualInterfaces() verdict {
	if !c.stack.isOnloads() || !c.isLoaded() {
		return passed()
	}
	resources := c.bypass().Onload.Resources
	if v := absent(resources, "The number of virtual interfaces (VIs)", "there may be none", remedyProc); v.level != levelPassed {
		return v
	}
	table, ok := resources.Value[tableVI]
	total, known := table.Total.Get()
	switch {
	case !ok || !known:
		return unknown("%s does not say how many virtual interfaces (VIs) there are, as long as no NIC is registered "+
			"with sfc_resource; register the NIC.", resources.Source)
	case total == 0:
		return failed("sfc_resource has no virtual interfaces (total of VI in %s is 0), so programs run on kernel "+
			"sockets; see the options num_vis and rss_cpus of the NIC's driver.", resources.Source)
	case table.Current >= total:
		return noted("All %d virtual interfaces (VIs) of the node's NICs are in use (%s); another program would run on "+
			"kernel sockets.", total, resources.Source)
	default:
		return passed()
	}
}

// tableVI is the name of the table of virtual interfaces in /proc/driver/sfc_resource/resources.
const tableVI = "VI"

// shares wants to know how many virtual interfaces this NIC has when it is shared.
func (c *candidate) shares() verdict {
	if !isShared(&c.in.Pool.Spec) || !c.stack.isOnloads() || !c.isLoaded() {
		return passed()
	}
	if _, known := Units(c.in, c.nic); known {
		return passed()
	}
	return unknown("How many virtual interfaces (VIs) NIC %s has is not known: %s counts those of all registered NICs "+
		"together, which tells the share of one only when all are of one model; use spec.sharing.mode Exclusive.",
		c.name(), "/proc/driver/sfc_resource/resources")
}

func isShared(spec *v1alpha1.BypassNICPoolSpec) bool {
	return spec.Sharing.Mode == v1alpha1.SharingShared && spec.VirtualFunctions == nil
}
