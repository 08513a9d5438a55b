// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package pcie_test

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/pcie"
)

func TestRate(t *testing.T) {
	for text, want := range map[string]float64{
		"2.5 GT/s PCIe": 2.5, "8.0 GT/s PCIe": 8, "8 GT/s": 8, "64.0 GT/s PCIe": 64, "Unknown": 0, "Unknown speed": 0, "": 0, "NaN": 0, "-1 GT/s": 0, "1e9": 0,
	} {
		if got := pcie.Rate(text); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

func TestLanes(t *testing.T) {
	for width, want := range map[int]float64{0: 0, 1: 1, 16: 16, 255: 0, -1: 0} {
		if got := pcie.Lanes(width); got != want {
			t.Errorf("%d is %v, want %v", width, got, want)
		}
	}
}

func TestMost(t *testing.T) {
	for ends, want := range map[[2]float64]float64{{16, 8}: 8, {8, 16}: 8, {16, 0}: 16, {0, 8}: 8, {0, 0}: 0} {
		if got := pcie.Most(ends[0], ends[1]); got != want {
			t.Errorf("%v: %v, want %v", ends, got, want)
		}
	}
}
