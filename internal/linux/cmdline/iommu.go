// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import "strings"

// Arguments that switch an IOMMU on or off: intel_iommu_setup of drivers/iommu/intel/iommu.c, parse_amd_iommu_options of
// drivers/iommu/amd/init.c, and iommu_setup of arch/x86/kernel/pci-dma.c. Each takes words behind commas, and compares as
// many letters of a word as "on" or "off" has. iommu=pt, iommu.passthrough= and iommu.strict= only say how a driver of
// the kernel reaches memory through an IOMMU that is on.
const (
	anyIOMMU   = "iommu"
	amdIOMMU   = "amd_iommu"
	intelIOMMU = "intel_iommu"
)

// SwitchesIOMMUOff reports whether the kernel of the machine leaves an IOMMU off for the argument. Only x86 reads such
// arguments (Documentation/admin-guide/kernel-parameters.txt): on arm64 there is none.
func (m Machine) SwitchesIOMMUOff(a Arg) bool { return m.Architecture == amd64 && a.switchesIOMMUOff() }

func (a Arg) switchesIOMMUOff() bool {
	switch underscored(a.Name) {
	case anyIOMMU, amdIOMMU:
		return a.hasWord("off")
	case intelIOMMU:
		on, decided := a.intelIOMMU()
		return decided && !on
	default:
		return false
	}
}

// SwitchesIntelIOMMUOn reports whether the kernel switches Intel's IOMMU on for the arguments, whatever it was built to do
// without them: the last intel_iommu= that says so counts, and iommu=off counts more.
func (l Line) SwitchesIntelIOMMUOn() bool {
	on := false
	for _, arg := range l.All(intelIOMMU) {
		if last, decided := arg.intelIOMMU(); decided {
			on = last
		}
	}
	for _, arg := range l.All(anyIOMMU) {
		on = on && !arg.switchesIOMMUOff()
	}
	return on
}

// intelIOMMU is what an intel_iommu= decides; the last word counts.
func (a Arg) intelIOMMU() (on, decided bool) {
	for word := range strings.SplitSeq(a.Value, ",") {
		switch {
		case strings.HasPrefix(word, "on"):
			on, decided = true, true
		case strings.HasPrefix(word, "off"):
			on, decided = false, true
		}
	}
	return on, decided
}

// hasWord reports whether one of the words of the value begins with the text.
func (a Arg) hasWord(text string) bool {
	return strings.HasPrefix(a.Value, text) || strings.Contains(a.Value, ","+text)
}
