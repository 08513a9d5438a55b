// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strings"

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
	if !c.needs.overXDP {
		return passed()
	}
	const remedy = "bind the NIC to its network driver"
	if v := absent(c.nic.Driver, "The driver of "+c.name(), "whether it has native XDP is not known", remedy); v.level != levelPassed {
		return v
	}
	driver := c.nic.Driver.Value
	if _, known := xdpDriverOf(driver); !known {
		consequence := "without which AF_XDP sockets get no frames from the driver"
		if c.needs.experimental {
			consequence = "without which an accelerated program makes the kernel panic"
		}
		return refused("Driver %s of NIC %s is not known to have native XDP, %s; select NICs with one of the drivers %s.",
			driver, c.name(), consequence, driversWith(func(xdpDriver) bool { return true }))
	}
	if !c.needs.experimental {
		return passed()
	}
	return noted("Onload reaches NIC %s by AF_XDP (spec.stack.onload.datapath ExperimentalAFXDP): experimental, without "+
		"the vendor's support, hugepages or hardware timestamps.", c.name())
}

// lacksXDP reports whether Onload can reach a NIC neither by its own driver nor by XDP.
func lacksXDP(nic host.NIC) bool {
	model, _ := ModelOf(nic.Vendor.Value, nic.Device.Value)
	_, hasXDP := xdpDriverOf(nic.Driver.Value)
	return nic.Driver.Known && !hasXDP && nic.Driver.Value != model.Driver
}
