// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline_test

import "testing"

func TestSwitchesIOMMUOff(t *testing.T) {
	for text, want := range map[string]bool{
		"iommu=off":               true,
		"intel_iommu=off":         true,
		"amd_iommu=off":           true,
		"intel-iommu=off":         true,
		`"amd_iommu=off"`:         true,
		"iommu=pt,off":            true,
		"amd_iommu=fullflush,off": true,
		"intel_iommu=on,off":      true,
		"intel_iommu=off,on":      false,
		"intel_iommu=on":          false,
		"intel_iommu=igfx_off":    false,
		"intel_iommu=sm_off":      false,
		"intel_iommu":             false,
		"amd_iommu=force_enable":  false,
		"iommu=pt":                false,
		"iommu=nopt":              false,
		"iommu.passthrough=1":     false,
		"iommu.passthrough=off":   false,
		"iommu.strict=off":        false,
		"quiet=off":               false,
	} {
		arg := parse(t, text).Args()[0]
		if got := intel().SwitchesIOMMUOff(arg); got != want {
			t.Errorf("%s switches the IOMMU off: %v, want %v", text, got, want)
		}
		if arm().SwitchesIOMMUOff(arg) {
			t.Errorf("%s switches the IOMMU off on arm64, which does not read it", text)
		}
	}
}

func TestSwitchesIntelIOMMUOn(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                  false,
		"quiet":                             false,
		"intel_iommu=on":                    true,
		"intel-iommu=on":                    true,
		`quiet "intel_iommu=on"`:            true,
		"intel_iommu=on,sm_on":              true,
		"intel_iommu=sm_on,on":              true,
		"intel_iommu=sm_on":                 false,
		"intel_iommu=off intel_iommu=on":    true,
		"intel_iommu=on intel_iommu=off":    false,
		"intel_iommu=on intel_iommu=strict": true,
		"intel_iommu=on iommu=pt":           true,
		"intel_iommu=on amd_iommu=off":      true,
		"intel_iommu=on iommu=off":          false,
		"iommu=off intel_iommu=on":          false,
		"iommu=pt":                          false,
		"iommu.passthrough=1":               false,
		"amd_iommu=force_enable":            false,
		"quiet -- intel_iommu=on":           false,
		`note="intel_iommu=on "`:            false,
		"my_intel_iommu=on":                 false,
	} {
		if got := parse(t, text).SwitchesIntelIOMMUOn(); got != want {
			t.Errorf("%q switches Intel's IOMMU on: %v, want %v", text, got, want)
		}
	}
}
