// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"fmt"
	"regexp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// network converts spec.net and the two annotations on receive packet steering.
func (c *converter) network() error {
	c.spec.Network = v1alpha1.NetworkSpec{
		Queues:                v1alpha1.QueuesKept,
		ReceivePacketSteering: c.packetSteering(),
	}
	c.remark("spec", "a PerformanceProfile lets OVN-Kubernetes spread Open vSwitch over all CPUs that no pod has exclusively "+
		"(ovs.slice, /var/lib/ovn-ic/etc/enable_dynamic_cpu_affinity); this profile keeps it on the housekeeping CPUs, so give it enough of them.")
	net := c.source.Spec.Net
	if net == nil {
		return nil
	}
	if !isTrue(net.UserLevelNetworking, false) {
		if len(net.Devices) > 0 {
			c.remark("spec.net.devices", "without spec.net.userLevelNetworking they have no effect; they were left out.")
		}
		return nil
	}
	if len(net.Devices) > v1alpha1.MaxNetworkNICs {
		return invalid("spec.net.devices", "there are %d; a LowLatencyNodeProfile takes at most %d", len(net.Devices), v1alpha1.MaxNetworkNICs)
	}
	for i, device := range net.Devices {
		if err := c.device(fmt.Sprintf("spec.net.devices[%d]", i), device); err != nil {
			return err
		}
	}
	if len(net.Devices) > 0 && len(c.spec.Network.NICs) == 0 {
		c.remark("spec.net", "no device is left, and an empty list would mean every NIC; the number of queues stays as it is.")
		return nil
	}
	c.spec.Network.Queues = v1alpha1.QueuesHousekeepingCPUs
	return nil
}

// device converts one element of spec.net.devices.
func (c *converter) device(field string, device sourceDevice) error {
	var selector v1alpha1.NICSelector
	if device == (sourceDevice{}) {
		return invalid(field, "it names no interface, vendor or device")
	}
	vendor, err := pciID(field+".vendorID", device.VendorID)
	if err != nil {
		return err
	}
	model, err := pciID(field+".deviceID", device.DeviceID)
	if err != nil {
		return err
	}
	if selector.Vendor = vendor; model != "" {
		selector.Devices = []v1alpha1.PCIID{model}
	}
	if model != "" && vendor == "" {
		return invalid(field+".deviceID", "it may be set only together with vendorID")
	}
	if name := device.InterfaceName; name != nil {
		if !regexp.MustCompile(`^!?[A-Za-z0-9_.*?:-]{1,31}$`).MatchString(*name) {
			c.remark(field+".interfaceName", "%q is not a name of letters, digits and _.:- with the wildcards * and ?; the device was left out.", *name)
			return nil
		}
		selector.Interfaces = []v1alpha1.InterfacePattern{v1alpha1.InterfacePattern(*name)}
	}
	c.spec.Network.NICs = append(c.spec.Network.NICs, selector)
	return nil
}

// pciID reads a vendor or device as a PerformanceProfile writes it, 0x1924, and returns 1924.
func pciID(field string, id *string) (v1alpha1.PCIID, error) {
	if id == nil {
		return "", nil
	}
	if !regexp.MustCompile(`^0x[0-9a-fA-F]{4}$`).MatchString(*id) {
		return "", invalid(field, "%q is not 0x and four hexadecimal digits", *id)
	}
	return v1alpha1.PCIID(topology.PCIID(*id)), nil
}
