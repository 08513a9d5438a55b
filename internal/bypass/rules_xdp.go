// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
)

// xdpDriver is a driver of NICs on PCI with native XDP.
type xdpDriver struct {
	// name is the one in sysfs; a network device of virtio-pci has the driver virtio_net.
	name string
	// zeroCopy is the first release of Linux, as major and minor number, in which the driver receives into the memory
	// of AF_XDP sockets; the zero value for a driver that copies.
	zeroCopy release.Release
}

// xdpDrivers are the PCI drivers with native XDP for AF_XDP sockets in every kernel from 6.1: those whose network
// device sets ndo_bpf. Zero copy is the driver's answer to XDP_SETUP_XSK_POOL there: i40e_xsk_pool_setup in
// drivers/net/ethernet/intel/i40e/i40e_xsk.c, ice_xsk_pool_setup in ice/ice_xsk.c, igb_xsk_pool_setup in igb/igb_xsk.c,
// igc_xdp_setup_pool in igc/igc_xdp.c, ixgbe_xsk_pool_setup in ixgbe/ixgbe_xsk.c, mlx5e_xsk_setup_pool in
// mellanox/mlx5/core/en/xsk/pool.c, nfp_net_xsk_setup_pool in netronome/nfp/nfp_net_xsk.c, virtnet_xsk_pool_setup in
// drivers/net/virtio_net.c. The others have no such case.
func xdpDrivers() []xdpDriver {
	return []xdpDriver{
		{name: "bnxt_en"},
		{name: "ena"},
		{"i40e", release.Release{Major: 4, Minor: 20}},
		{"ice", release.Release{Major: 5, Minor: 5}},
		{"igb", release.Release{Major: 6, Minor: 14}},
		{"igc", release.Release{Major: 5, Minor: 14}},
		{"ixgbe", release.Release{Major: 4, Minor: 20}},
		{name: "ixgbevf"},
		{mlx5, release.Release{Major: 5, Minor: 3}},
		{"nfp", release.Release{Major: 5, Minor: 18}},
		{name: "qede"},
		{name: "sfc"},
		{"virtio-pci", release.Release{Major: 6, Minor: 11}},
	}
}

// xdpDriverOf returns what is known about a driver.
func xdpDriverOf(name string) (xdpDriver, bool) {
	drivers := xdpDrivers()
	index := slices.IndexFunc(drivers, func(d xdpDriver) bool { return d.name == name })
	if index < 0 {
		return xdpDriver{}, false
	}
	return drivers[index], true
}

// driversWith lists the names of drivers for sentences.
func driversWith(has func(xdpDriver) bool) string {
	var names []string
	for _, driver := range xdpDrivers() {
		if has(driver) {
			names = append(names, driver.name)
		}
	}
	return strings.Join(names, ", ")
}

func (d xdpDriver) hasZeroCopy() bool { return d.zeroCopy.IsKnown() }

// nativeXDP refuses a NIC whose driver has no native XDP. Registering such a NIC with Onload succeeds, and the next
// accelerated program makes the kernel panic with a null pointer in af_xdp_vi_alloc.
func (c *candidate) nativeXDP() verdict {
	if !c.stack.usesXDP() {
		return passed()
	}
	const remedy = "bind the NIC to its network driver"
	if v := absent(c.nic.Driver, "The driver of "+c.name(), "whether it has native XDP is not known", remedy); v.level != levelPassed {
		return v
	}
	driver := c.nic.Driver.Value
	if _, known := xdpDriverOf(driver); !known {
		consequence := "without which AF_XDP sockets get no frames from the driver"
		if c.stack.experimental {
			consequence = "without which an accelerated program makes the kernel panic"
		}
		return refused("Driver %s of NIC %s is not known to have native XDP, %s; select NICs with one of the drivers %s.",
			driver, c.name(), consequence, driversWith(func(xdpDriver) bool { return true }))
	}
	if c.stack.isAFXDP() {
		return passed()
	}
	return noted("Onload reaches NIC %s by AF_XDP (spec.stack.onload.datapath ExperimentalAFXDP): experimental, without "+
		"the vendor's support, hugepages or hardware timestamps.", c.name())
}

// zeroCopy wants a driver that receives into the memory of sockets, unless the pool is content with one that copies.
// Distributors bring drivers to older kernels, so that a release before the driver's says nothing for sure.
func (c *candidate) zeroCopy() verdict {
	driver, known := xdpDriverOf(c.nic.Driver.Value)
	if !c.stack.isAFXDP() || !known {
		return passed()
	}
	required := effectiveZeroCopy(c.in.Pool.Spec.Stack.AFXDP) == v1alpha1.ZeroCopyRequired
	switch {
	case !driver.hasZeroCopy() && required:
		return refused("Driver %s of NIC %s copies every frame, and spec.stack.afxdp.zeroCopy is Required; select NICs with "+
			"one of the drivers %s, or set it to Preferred.", driver.name, c.name(), driversWith(xdpDriver.hasZeroCopy))
	case !driver.hasZeroCopy():
		return noted("Driver %s of NIC %s copies every frame between its own memory and that of the program.", driver.name, c.name())
	case !required:
		return passed()
	}
	running := c.in.Facts.Kernel.Release
	if v := absent(running, "The release of the kernel", "whether driver "+driver.name+" has zero copy is not known",
		"let the program read /proc of the node"); v.level != levelPassed {
		return v
	}
	if is, _ := release.Parse(running.Value); is.AtLeast(driver.zeroCopy.Major, driver.zeroCopy.Minor) {
		return passed()
	}
	return unknown("Driver %s of NIC %s has zero copy since Linux %s and the node runs %s, so it may copy; run a newer kernel, "+
		"or set spec.stack.afxdp.zeroCopy to Preferred.", driver.name, c.name(), driver.zeroCopy, running.Value)
}

// effectiveZeroCopy fills in the default of the field.
func effectiveZeroCopy(spec *v1alpha1.AFXDPStack) v1alpha1.AFXDPZeroCopy {
	return cmp.Or(spec.ZeroCopy, v1alpha1.ZeroCopyRequired)
}

// queuesOf returns the queues of a NIC that a pool hands out, in ascending order: none when the NIC has not all of
// them. They are not known when the host does not tell how many the NIC has.
func queuesOf(spec *v1alpha1.AFXDPStack, nic host.NIC) (queues []int, known bool) {
	total, known := nic.ReceiveQueues.Get()
	first, count := wantedQueues(spec)
	if !known {
		return nil, false
	}
	if count == 0 {
		count = max(total-first, 0)
	}
	if first+count > total {
		return nil, true
	}
	for queue := first; queue < first+count; queue++ {
		queues = append(queues, queue)
	}
	return queues, true
}

// wantedQueues are the fields of the spec; a count of 0 stands for all from the first on.
func wantedQueues(spec *v1alpha1.AFXDPStack) (first, count int) {
	if spec.Queues.First != nil {
		first = int(*spec.Queues.First)
	}
	return first, int(spec.Queues.Count)
}

// handedQueues are the queues behind the units of a NIC.
func (c *candidate) handedQueues(units int) []int {
	if !c.stack.isAFXDP() {
		return nil
	}
	queues, _ := queuesOf(c.in.Pool.Spec.Stack.AFXDP, c.nic)
	if isShared(&c.in.Pool.Spec) {
		return queues[:min(units, len(queues))]
	}
	return queues
}

// queues wants the queues that the pool names.
func (c *candidate) queues() verdict {
	if !c.stack.isAFXDP() {
		return passed()
	}
	if c.isAway() {
		return noted("The interface of NIC %s is in the network namespace of a pod, from where its queues are not told.",
			c.nic.PCIAddress)
	}
	if v := absent(c.nic.ReceiveQueues, "The number of receive queues of "+c.name(), "nobody knows how many containers may hold it",
		"let the program read /sys of the node"); v.level != levelPassed {
		return v
	}
	first, count := wantedQueues(c.in.Pool.Spec.Stack.AFXDP)
	if queues, _ := queuesOf(c.in.Pool.Spec.Stack.AFXDP, c.nic); len(queues) > 0 {
		return passed()
	}
	return failed("NIC %s has %d receive queues (%s) and spec.stack.afxdp.queues asks for %d from number %d on; give it more "+
		"with ethtool -L, or ask for fewer.", c.name(), c.nic.ReceiveQueues.Value, c.nic.ReceiveQueues.Source, max(count, 1), first)
}

// attached is what the device plugin found out when it attached its XDP program to the NIC. Nothing is known of it before
// the plugin has run, which forbids nothing: the plugin hands out what it has attached and nothing else.
func (c *candidate) attached() verdict {
	if problem := c.reported(c.nic.PCIAddress); problem != "" {
		return failed("%s", problem)
	}
	return passed()
}

// boundSockets is what the device plugin found out about the node's kernel.
func (c *candidate) boundSockets() verdict {
	if problem := c.reported(""); problem != "" {
		return noted("%s", problem)
	}
	return passed()
}

// reported is what the pool's device plugin says of a NIC, or under "" of the node; "" for nothing, and for other stacks.
func (c *candidate) reported(subject string) string {
	if !c.stack.isAFXDP() {
		return ""
	}
	return c.bypass().SocketReports.Value[c.in.Pool.Name][subject]
}

// registeredOthers looks at the other NICs that Onload was told of. A stack takes a virtual interface on every one, so
// that a NIC without native XDP among them brings the kernel down when any program of any pool is accelerated.
func (c *candidate) registeredOthers() verdict {
	if !c.stack.isOnloads() || !c.isLoaded() {
		return passed()
	}
	const remedy = "load the modules of Onload again without registering it"
	for _, name := range c.bypass().Onload.Interfaces.Value {
		if name == "lo" {
			return failed("Interface lo is registered with sfc_resource and has no native XDP, so the next accelerated program "+
				"makes the kernel panic; %s.", remedy)
		}
		for _, nic := range c.in.Facts.NICs {
			if isNamed := nic.PCIAddress == name || nic.Name.Known && nic.Name.Value == name; isNamed && lacksXDP(nic) {
				return failed("NIC %s with driver %s is registered with sfc_resource and not known to have native XDP, so the next "+
					"accelerated program may make the kernel panic; %s.", nameOfNIC(nic), nic.Driver.Value, remedy)
			}
		}
	}
	return passed()
}

// lacksXDP tells whether Onload can reach a NIC neither by its own driver nor by XDP.
func lacksXDP(nic host.NIC) bool {
	model, _ := ModelOf(nic.Vendor.Value, nic.Device.Value)
	_, hasXDP := xdpDriverOf(nic.Driver.Value)
	return nic.Driver.Known && !hasXDP && nic.Driver.Value != model.Driver
}
