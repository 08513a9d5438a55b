// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Model is what follows from the PCI identifiers of a NIC.
type Model struct {
	// Series such as X2.
	Series string
	// Driver is the kernel driver that the native datapath of the stacks needs.
	Driver string
	// Onload means that the vendor supports Onload, TCPDirect and ef_vi on the series, by their native datapath.
	Onload bool
	// SuperBuffers means that packets are received into buffers of 2 MiB, which are always hugepages (EFCT, the
	// datapath of X3 and of X4's express mode).
	SuperBuffers bool
}

// ModelOf returns what is known about a NIC by its PCI vendor and device, with or without 0x: never by a description,
// which differs between versions of the PCI ID database. The numbers are those that the drivers sfc,
// xilinx_efct and Onload's resource driver (src/lib/efhw/nic.c) look for, which refuses series 7000 and earlier.
func ModelOf(vendor, device string) (Model, bool) {
	for _, entry := range models() {
		if entry.vendor == topology.PCIID(vendor) && slices.Contains(entry.devices, topology.PCIID(device)) {
			return entry.model, true
		}
	}
	return Model{}, false
}

type modelEntry struct {
	vendor  string
	devices []string
	model   Model
}

func models() []modelEntry {
	return []modelEntry{
		{"1924", []string{"0901", "0903", "1903", "0923", "1923"}, Model{Series: "7000", Driver: "sfc"}},
		{"1924", []string{"0a03", "1a03"}, Model{Series: "8000", Driver: "sfc", Onload: true}},
		{"1924", []string{"0b03", "1b03"}, Model{Series: "X2", Driver: "sfc", Onload: true}},
		{
			"1924", []string{"0c03", "1c03", "2c03", "3c03"},
			Model{Series: "X4", Driver: "sfc", Onload: true, SuperBuffers: true},
		},
		{"10ee", []string{"5084"}, Model{Series: "X3", Driver: "xilinx_efct", Onload: true, SuperBuffers: true}},
		{"10ee", []string{"0100", "1100"}, Model{Series: "EF100", Driver: "sfc"}},
		{"15b3", []string{"1017", "1018"}, Model{Series: "ConnectX-5", Driver: mlx5}},
		{"15b3", []string{"1019", "101a"}, Model{Series: "ConnectX-5 Ex", Driver: mlx5}},
		{"15b3", []string{"101b", "101c"}, Model{Series: "ConnectX-6", Driver: mlx5}},
		{"15b3", []string{"101d"}, Model{Series: "ConnectX-6 Dx", Driver: mlx5}},
		{"15b3", []string{"1021"}, Model{Series: "ConnectX-7", Driver: mlx5}},
		{"15b3", []string{"1023"}, Model{Series: "ConnectX-8", Driver: mlx5}},
		{"8086", []string{"1572"}, Model{Series: "X710", Driver: "i40e"}},
		{"8086", []string{"158b"}, Model{Series: "XXV710", Driver: "i40e"}},
		{"8086", []string{"1591", "1592", "1593", "159b"}, Model{Series: "E810", Driver: "ice"}},
	}
}

// mlx5 is the driver of ConnectX-4 and later.
const mlx5 = "mlx5_core"
