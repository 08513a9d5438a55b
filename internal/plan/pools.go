// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// DriverVFIO is the driver by which user space owns a PCI function (Documentation/driver-api/vfio.rst).
const DriverVFIO = "vfio-pci"

// addressPattern is that of PCIAddress in the API: addresses become words of commands.
var addressPattern = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// poolField is a field of a BypassNICPool in findings and origins, where fields of the profile have no such
// prefix.
func poolField(pool, field string) string { return "BypassNICPool " + pool + " " + field }

// fromPool is the origin of what a pool asks for one of its NICs.
func fromPool(pool, field, address string) Origin {
	return Origin{Source: FromPool, Detail: poolField(pool, field) + " for NIC " + address}
}

func hasNIC(nics []topology.NIC, address string) bool {
	return slices.ContainsFunc(nics, func(nic topology.NIC) bool { return nic.PCIAddress == address })
}

// claimNICs decides which NICs each pool may have. What a pool cannot have costs the pool that NIC and never the
// node its plan: the NIC stays as it is, nobody is given it, and a finding says so. Hugepages are different: a size
// that the kernel has not, or too little memory, leaves the node without a plan, because a plan does not depend on
// the amount of memory.
func (p *planner) claimNICs() {
	for _, pool := range p.input.Pools {
		p.reportConflicts(pool)
		nics := slices.DeleteFunc(slices.Clone(pool.NICs), func(nic topology.NIC) bool {
			return !p.mayClaim(pool, nic)
		})
		if len(nics) == 0 {
			continue
		}
		slices.SortFunc(nics, func(a, b topology.NIC) int { return cmp.Compare(a.PCIAddress, b.PCIAddress) })
		nics = slices.CompactFunc(nics, func(a, b topology.NIC) bool { return a.PCIAddress == b.PCIAddress })
		p.pools = append(p.pools, Pool{Name: pool.Name, Spec: pool.Spec, NICs: nics, Isolation: pool.Isolation})
	}
	slices.SortFunc(p.pools, func(a, b Pool) int { return cmp.Compare(a.Name, b.Name) })
}

// reportConflicts speaks of what a pool does not get because other pools have it. Nothing of the plan changes by it.
func (p *planner) reportConflicts(pool Pool) {
	for _, conflict := range pool.Conflicts {
		objects := make([]finding.Objects, 0, len(conflict.NICs))
		for _, nic := range conflict.NICs {
			objects = append(objects, finding.OfNICs(nic.PCIAddress))
		}
		others := strings.Join(conflict.Pools, " and ")
		p.report(v1alpha1.SeverityHigh, RulePoolConflict, poolField(pool.Name, "spec.nics"),
			fmt.Sprintf("Let BypassNICPool %s not select them, or take them out of BypassNICPool %s.", pool.Name, others),
			"NIC %s belongs to BypassNICPool %s, which had it first, so BypassNICPool %s does not get it",
			joined(conflict.NICs, nicText), others, pool.Name).
			about(objects...)
	}
	if pool.ResourceOwner != "" {
		p.report(v1alpha1.SeverityHigh, RulePoolConflict, poolField(pool.Name, "spec.resourceName"),
			fmt.Sprintf("Create BypassNICPool %s again with another resource name.", pool.Name),
			"resource name %s belongs to BypassNICPool %s, which had it first, so BypassNICPool %s has no NIC",
			pool.Spec.ResourceName, pool.ResourceOwner, pool.Name)
	}
}

func (p *planner) mayClaim(pool Pool, nic topology.NIC) bool {
	field := poolField(pool.Name, "spec.nics")
	other := slices.IndexFunc(p.input.Pools, func(o Pool) bool {
		return o.Name != pool.Name && hasNIC(o.NICs, nic.PCIAddress) &&
			(!slices.Contains(pool.Shared, nic.PCIAddress) || !slices.Contains(o.Shared, nic.PCIAddress))
	})
	switch {
	case nic.Management != "":
		p.report(v1alpha1.SeverityHigh, rulePoolNIC, field, "Take the NIC out of the pool, or move the node's own traffic to another NIC.",
			"NIC %s carries %s and is left alone", nicText(nic), nic.Management).
			about(finding.OfNICs(nic.PCIAddress))
	case !addressPattern.MatchString(nic.PCIAddress):
		p.report(v1alpha1.SeverityHigh, rulePoolNIC, field, "Let the agent report the node again, or take a new snapshot.",
			"%q is no address on PCI", nic.PCIAddress).
			about(finding.OfNICs(nic.PCIAddress))
	case other >= 0:
		p.report(v1alpha1.SeverityHigh, rulePoolNIC, field, "Let one of the pools select it only.",
			"BypassNICPool %s selects NIC %s, too, so neither pool has it", p.input.Pools[other].Name, nicText(nic)).
			about(finding.OfNICs(nic.PCIAddress))
	default:
		return true
	}
	return false
}

func nicText(nic topology.NIC) string {
	return fmt.Sprintf("%s (%s)", nic.PCIAddress, cmp.Or(nic.Name, "no interface"))
}

// poolReservations are the hugepages of the pools, for each NIC on its own NUMA node. Without that node's number
// there is no place for them, and pages elsewhere would be worse than none: the pod would get them.
func (p *planner) poolReservations() []reservation {
	var reservations []reservation
	for _, pool := range p.pools {
		for i, wanted := range pool.Spec.Hugepages {
			field := element("spec.hugepages", i)
			if !p.checkSize(poolField(pool.Name, field), wanted.Size) {
				continue
			}
			for _, nic := range pool.NICs {
				numa, ok := p.pagesNear(pool, field, nic)
				if !ok {
					continue
				}
				reservations = append(reservations, reservation{
					field:     poolField(pool.Name, field),
					remedy:    fmt.Sprintf("Lower countPerNIC, put NIC %s into another slot, or exclude the node by the pool's spec.nodeSelector.", nic.PCIAddress),
					origin:    fromPool(pool.Name, field, nic.PCIAddress),
					size:      wanted.Size,
					kibibytes: hugepageKibibytes()[wanted.Size],
					count:     int64(wanted.CountPerNIC),
					shares:    []share{{numa, int64(wanted.CountPerNIC)}},
				})
			}
		}
	}
	return reservations
}

// pagesNear is the NUMA node for the pages of a NIC.
func (p *planner) pagesNear(pool Pool, field string, nic topology.NIC) (int, bool) {
	at := p.numaOf(nic.PCIAddress)
	if at == nil {
		p.report(v1alpha1.SeverityHigh, ruleHugepagePlace, poolField(pool.Name, field),
			"Set the NUMA locality of the slot in the firmware, or move the NIC to another slot.",
			"the pages are to be near NIC %s, but the firmware does not say which NUMA node it is on", nicText(nic)).
			about(finding.OfNICs(nic.PCIAddress))
		return 0, false
	}
	if node, ok := p.topology.NUMANode(*at); !ok || !hasMemory(*node) {
		p.report(v1alpha1.SeverityHigh, ruleHugepagePlace, poolField(pool.Name, field), "Move the NIC to a slot of another NUMA node.",
			"the pages are to be near NIC %s, but its NUMA node %d has no memory", nicText(nic), *at).
			about(finding.OfNICs(nic.PCIAddress), finding.OfNUMANodes(*at))
		return 0, false
	}
	return *at, true
}

// numaOf is the planned NUMA node of a bypass NIC; nil when it is unknown.
func (p *planner) numaOf(address string) *int {
	for _, nic := range p.plan.BypassNICs {
		if nic.PCIAddress == address {
			return nic.NUMANode
		}
	}
	return nil
}

// planPools decides virtual functions, drivers and interrupts of the pools' NICs.
func (p *planner) planPools() {
	for _, pool := range p.pools {
		driver, usable := p.driverOf(pool)
		planned := PoolPlan{Name: pool.Name}
		for _, nic := range pool.NICs {
			n := PoolNICPlan{PCIAddress: nic.PCIAddress, Origin: Origin{Source: FromPool, Detail: "BypassNICPool " + pool.Name}}
			if functions, possible := p.functionsOf(pool, nic); possible && usable {
				n.VirtualFunctions, n.Driver = functions, driver
			}
			n.Interrupts, n.InterruptCPUs = p.interruptsOf(pool, nic)
			planned.NICs = append(planned.NICs, n)
		}
		p.plan.BypassPools = append(p.plan.BypassPools, planned)
	}
}

// functionsOf is the number of virtual functions for a NIC, and whether it can have them. A NIC that offers fewer
// gets none: with some of them, which pods find one would be a matter of luck.
func (p *planner) functionsOf(pool Pool, nic topology.NIC) (count int, possible bool) {
	wanted := pool.Spec.VirtualFunctions
	if wanted == nil {
		return 0, true
	}
	count = int(wanted.CountPerNIC)
	if count <= nic.MaximumVirtualFunctions {
		return count, true
	}
	p.report(v1alpha1.SeverityHigh, rulePoolFunctions, poolField(pool.Name, "spec.virtualFunctions.countPerNIC"),
		"Lower the count, or switch SR-IOV on in the firmware of the NIC and of the host.",
		"%d virtual functions are wanted on NIC %s, which offers %d; none is created", count, nicText(nic), nic.MaximumVirtualFunctions).
		about(finding.OfNICs(nic.PCIAddress))
	return 0, false
}

// driverOf is the driver for the NICs of a pool, or for their virtual functions; "" leaves the kernel's choice. Where
// it is not usable, the NICs are left as they are.
func (p *planner) driverOf(pool Pool) (driver string, usable bool) {
	if pool.Isolation == "" {
		return "", true
	}
	// Each is asked, so that one look tells all that is wrong.
	isolated, stable, loadable := p.checkIsolation(pool), p.checkTerms(pool), p.checkModule(pool)
	return DriverVFIO, isolated && stable && loadable
}

// checkIsolation: VFIO needs an IOMMU, and says so late, when a pod opens the device
// (Documentation/driver-api/vfio.rst).
func (p *planner) checkIsolation(pool Pool) bool {
	const own = "spec.stack.vfio.isolation"
	const field = "spec.kernel.iommu"
	if pool.Isolation == v1alpha1.VFIOIsolationNoIOMMU {
		p.report(v1alpha1.SeverityHigh, rulePoolDriver, poolField(pool.Name, own),
			"Set it to IOMMU on machines that have one, and let trusted programs only use the pool.",
			"with NoIOMMU a program that owns a NIC of the pool can read and write all memory of the node, and the kernel is tainted")
		return true
	}
	if why := p.iommuIsOff(); why != "" {
		p.report(v1alpha1.SeverityHigh, ruleIOMMU, field,
			fmt.Sprintf("Set spec.kernel.iommu of LowLatencyNodeProfile %s to Passthrough, or exclude the node from BypassNICPool %s.",
				p.plan.Profile, pool.Name),
			"%s in LowLatencyNodeProfile %s switches the IOMMU off, which BypassNICPool %s needs for stack VFIO; its NICs are left as they are",
			why, p.plan.Profile, pool.Name)
		return false
	}
	if p.iommuIsDoubtful() {
		p.report(v1alpha1.SeverityMedium, ruleIOMMU, field,
			fmt.Sprintf("Set spec.kernel.iommu of LowLatencyNodeProfile %s to Passthrough.", p.plan.Profile),
			"with Kept in LowLatencyNodeProfile %s the kernel decides about Intel's IOMMU, and most leave it off; BypassNICPool %s needs it for stack VFIO",
			p.plan.Profile, pool.Name)
	}
	return true
}

// iommuIsOff names what in the profile switches the IOMMU off; "" when nothing does, as on arm64, whatever the profile says.
func (p *planner) iommuIsOff() string {
	if _, possible := iommuArguments()[p.platform()][v1alpha1.IOMMUDisabled]; possible && p.spec.Kernel.IOMMU == v1alpha1.IOMMUDisabled {
		return "Disabled"
	}
	on := cmdline.Machine{Architecture: p.topology.Architecture}
	for _, argument := range p.spec.Kernel.AdditionalArguments {
		if on.SwitchesIOMMUOff(parsed(string(argument))) {
			return "the additional argument " + string(argument)
		}
	}
	return ""
}

// iommuIsDoubtful: the kernel switches Intel's IOMMU on by itself only where it was built so
// (CONFIG_INTEL_IOMMU_DEFAULT_ON), AMD's and that of arm64 wherever there is one.
func (p *planner) iommuIsDoubtful() bool {
	if p.spec.Kernel.IOMMU != v1alpha1.IOMMUKept || p.platform() != vendorIntel {
		return false
	}
	texts := []string{p.topology.CommandLine}
	for _, argument := range p.spec.Kernel.AdditionalArguments {
		texts = append(texts, string(argument))
	}
	return !slices.ContainsFunc(texts, func(text string) bool {
		line, err := cmdline.Parse(text)
		return err == nil && line.SwitchesIntelIOMMUOn()
	})
}

// checkTerms: a NIC that is bound to vfio-pci has no interface, no link and another driver, so terms that name
// these would lose it, and the next plan would give it back, and so on.
func (p *planner) checkTerms(pool Pool) bool {
	if pool.Spec.VirtualFunctions != nil {
		return true
	}
	stable := true
	for i, term := range pool.Spec.NICs {
		byDriver := len(term.Drivers) > 0 && !slices.Contains(term.Drivers, DriverVFIO)
		if !byDriver && len(term.Interfaces) == 0 && term.Link != v1alpha1.LinkUp {
			continue
		}
		stable = false
		p.report(v1alpha1.SeverityHigh, rulePoolNIC, poolField(pool.Name, element("spec.nics", i)),
			"Select the NICs by vendor and devices or by pciAddresses, add vfio-pci to drivers, or set spec.virtualFunctions.",
			"a NIC that is bound to vfio-pci has no interface, no link and another driver, so this term would not find it again; the NICs are left as they are")
	}
	return stable
}

// checkModule: the profile may keep the very modules from loading that the pool needs.
func (p *planner) checkModule(pool Pool) bool {
	for i, module := range p.spec.System.UnloadModules {
		if !slices.Contains([]string{"vfio", "vfio_pci", "vfio_pci_core", "vfio_iommu_type1"}, strings.ReplaceAll(string(module), "-", "_")) {
			continue
		}
		p.report(v1alpha1.SeverityHigh, rulePoolDriver, element("spec.system.unloadModules", i), "Remove it.",
			"LowLatencyNodeProfile %s keeps module %s from loading, which BypassNICPool %s needs for stack VFIO; its NICs are left as they are",
			p.plan.Profile, module, pool.Name)
		return false
	}
	return true
}

// interruptsOf decides which CPUs handle the interrupts of a NIC. Where its NUMA node has no housekeeping CPU, those
// of other NUMA nodes do: an isolated CPU never does.
func (p *planner) interruptsOf(pool Pool, nic topology.NIC) (v1alpha1.NICInterruptPlacement, cpus.Set) {
	const field = "spec.interrupts.placement"
	wanted, housekeeping := pool.Spec.Interrupts.Placement, p.plan.CPUs.Housekeeping
	local := cpus.Set{}
	if at := p.numaOf(nic.PCIAddress); at != nil {
		if node, ok := p.topology.NUMANode(*at); ok {
			local = node.CPUs.Intersection(housekeeping)
		}
	}
	switch {
	case wanted == v1alpha1.NICInterruptsKept:
		return wanted, cpus.Set{}
	case wanted == v1alpha1.NICInterruptsHousekeeping || wanted == "" && local.IsEmpty():
		return v1alpha1.NICInterruptsHousekeeping, housekeeping
	case local.IsEmpty():
		p.report(v1alpha1.SeverityMedium, rulePoolInterrupts, poolField(pool.Name, field),
			"Make a core of the NIC's NUMA node housekeeping, or set it to Housekeeping.",
			"no housekeeping CPU is known to be near NIC %s, so other housekeeping CPUs %s handle its interrupts", nicText(nic), housekeeping).
			about(finding.OfNICs(nic.PCIAddress), finding.OfCPUs(housekeeping))
		return v1alpha1.NICInterruptsHousekeeping, housekeeping
	}
	return v1alpha1.NICInterruptsLocalHousekeeping, local
}
