// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package pcie reads how Linux writes the speed and the width of PCIe links. It is pure.
package pcie

import (
	"strconv"
	"strings"
)

// Rate reads the speed of a link such as "8.0 GT/s PCIe" (pci_speed_string of drivers/pci/probe.c); 0 is unknown.
func Rate(text string) float64 {
	number, _, _ := strings.Cut(text, " ")
	rate, err := strconv.ParseFloat(number, 64)
	if err != nil || !(rate > 0 && rate < 1e6) {
		return 0
	}
	return rate
}

// Lanes is the width of a link; 0 where the kernel has none (PCIE_LNK_WIDTH_RESRVD and PCIE_LNK_WIDTH_UNKNOWN of
// include/linux/pci.h).
func Lanes(width int) float64 {
	const unknown = 0xff
	if width < 0 || width == unknown {
		return 0
	}
	return float64(width)
}

// Most is what a link can do of one quantity: the least of what its device and the port at its other end can do, where both
// are known. 0 is unknown.
func Most(device, port float64) float64 {
	if device == 0 || port == 0 {
		return max(device, port)
	}
	return min(device, port)
}
