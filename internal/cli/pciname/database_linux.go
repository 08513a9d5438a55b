// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package pciname

import (
	"slices"
	"strconv"
	"strings"

	"github.com/u-root/u-root/pkg/pci"
)

// Of is the name of a device with its vendor's, "Intel Ethernet Controller XXV710 for 25GbE SFP28"; "" when the database does not
// have the device. Vendor and device are four hexadecimal digits, as sysfs and the API write them without "0x".
func Of(vendor, device string) string {
	vendorID, vendorOK := number(vendor)
	deviceID, deviceOK := number(device)
	if !vendorOK || !deviceOK {
		return ""
	}
	at := slices.IndexFunc(pci.IDs, func(v pci.Vendor) bool { return v.ID == vendorID })
	if at < 0 {
		return ""
	}
	devices := pci.IDs[at].Devices
	found := slices.IndexFunc(devices, func(d pci.Device) bool { return d.ID == deviceID })
	if found < 0 {
		return ""
	}
	return shortVendor(pci.IDs[at].Name) + " " + devices[found].Name
}

func number(digits string) (uint16, bool) {
	value, err := strconv.ParseUint(strings.TrimPrefix(digits, "0x"), 16, 16)
	return uint16(value), err == nil
}

// shortVendor leaves out the legal form of a company: the name stands in a table.
func shortVendor(name string) string {
	for _, form := range []string{", Inc.", " Inc.", " Corporation", " Technologies", " Limited", " Ltd.", " Co.,"} {
		name, _, _ = strings.Cut(name, form)
	}
	return name
}
