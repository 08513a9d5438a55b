// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Inventory reports a topology, and the firmware and microcode of the facts that it was made from,
// within the bounds of the API. Longer text is cut, and virtual functions beyond 256 NICs are left out.
// When a CPU list cannot be written in 1024 characters even in stride notation, or there are more
// cores than the bounds allow, onlineCPUs is left out, and FromInventory refuses the inventory rather than plan on a part of the machine.
func Inventory(f *host.Facts, t *Topology) *v1alpha1.Inventory {
	w := &writer{}
	inventory := &v1alpha1.Inventory{
		Architecture:              t.Architecture,
		ProcessorVendor:           t.Vendor,
		ProcessorModel:            t.Model,
		ProcessorFamily:           toInt32(t.Family),
		ProcessorModelNumber:      toInt32(t.ModelNumber),
		Microcode:                 shorten.Value(f.Processor.Microcode.Value, v1alpha1.MaxMicrocodeLength),
		BIOSVersion:               shorten.Value(f.Firmware.BIOSVersion.Value, v1alpha1.MaxInventoryTextLength),
		Product:                   shorten.Value(f.Firmware.Product.Value, v1alpha1.MaxInventoryTextLength),
		KernelRelease:             t.KernelRelease,
		KernelType:                kernelType(t.KernelRealTime),
		KernelCommandLine:         t.CommandLine,
		Hypervisor:                t.Hypervisor,
		TimestampCounter:          t.TimestampCounter,
		WorkloadPartitioning:      t.WorkloadPartitioning,
		OnlineCPUs:                w.list(t.Online),
		OfflineCPUs:               w.list(t.Offline),
		Cores:                     w.lists(t.threads(), v1alpha1.MaxCores),
		EfficiencyCPUs:            w.list(t.Efficiency),
		Packages:                  w.lists(t.Packages, v1alpha1.MaxPackages),
		L3Domains:                 w.lists(t.L3Domains, v1alpha1.MaxL3Domains),
		NUMANodes:                 each(t.NUMANodes, w.numaNode),
		MitigationsHash:           mitigationsHash(f),
		NICs:                      each(reportedNICs(t.NICs), w.nic),
		MinimumFrequencyKilohertz: t.MinimumFrequency,
		MaximumFrequencyKilohertz: t.MaximumFrequency,
	}
	addVersions(inventory.NICs, f.NICs)
	if w.overflow {
		inventory.OnlineCPUs = ""
	}
	inventory.Hash = inventoryHash(inventory)
	return inventory
}

// inventoryHash covers every field but the hash itself.
func inventoryHash(inventory *v1alpha1.Inventory) string {
	plain := *inventory
	plain.Hash = ""
	// Marshalling fails only for values that JSON cannot hold; the type has none.
	data, err := json.Marshal(plain)
	if err != nil {
		panic(fmt.Errorf("writing an inventory as JSON: %w", err))
	}
	return digest(data)
}

func kernelType(realTime *bool) v1alpha1.KernelType {
	switch {
	case realTime == nil:
		return ""
	case *realTime:
		return v1alpha1.KernelRealTime
	default:
		return v1alpha1.KernelDefault
	}
}

// writer writes CPU lists and remembers whether one did not fit.
type writer struct{ overflow bool }

func (w *writer) list(set cpus.Set) string {
	text, fits := listText(set)
	w.overflow = w.overflow || !fits
	return text
}

func (w *writer) lists(sets []cpus.Set, limit int) []string {
	w.overflow = w.overflow || len(sets) > limit
	return each(shorten.List(sets, limit), w.list)
}

func (w *writer) numaNode(node NUMANode) v1alpha1.InventoryNUMANode {
	return v1alpha1.InventoryNUMANode{
		ID:                     toInt32(node.ID),
		CPUs:                   w.list(node.CPUs),
		MemoryBytes:            clone(node.MemoryBytes),
		Distances:              each(node.Distances, toInt32),
		HugepageSizesKibibytes: slices.Clone(node.HugepageSizes),
	}
}

// addVersions adds what no plan depends on. Virtual functions come and go with pods, and have the versions of their NIC.
func addVersions(nics []v1alpha1.InventoryNIC, facts []host.NIC) {
	byAddress := make(map[string]*host.NIC, len(facts))
	for i := range facts {
		byAddress[facts[i].PCIAddress] = &facts[i]
	}
	for i := range nics {
		if from := byAddress[nics[i].PCIAddress]; from != nil && nics[i].PhysicalFunction == "" {
			nics[i].DriverVersion = shorten.Value(from.DriverVersion.Value, v1alpha1.MaxNICVersionLength)
			nics[i].FirmwareVersion = shorten.Value(from.FirmwareVersion.Value, v1alpha1.MaxNICVersionLength)
		}
	}
}

// toInt32 keeps numbers of the firmware within the type of the API.
func toInt32(number int) int32 { return int32(min(number, math.MaxInt32)) }

// reportedNICs drops virtual functions, the highest addresses first, where there are too many NICs.
func reportedNICs(nics []NIC) []NIC {
	if len(nics) <= v1alpha1.MaxInventoryNICs {
		return nics
	}
	kept := slices.Clone(nics)
	slices.SortStableFunc(kept, func(a, b NIC) int { return cmp.Compare(a.PhysicalFunction, b.PhysicalFunction) })
	kept = shorten.List(kept, v1alpha1.MaxInventoryNICs)
	slices.SortFunc(kept, func(a, b NIC) int { return ComparePCIAddresses(a.PCIAddress, b.PCIAddress) })
	return kept
}

func (w *writer) nic(nic NIC) v1alpha1.InventoryNIC {
	reported := v1alpha1.InventoryNIC{
		PCIAddress:       nic.PCIAddress,
		InterfaceName:    nic.Name,
		Vendor:           nic.Vendor,
		Device:           nic.Device,
		Driver:           nic.Driver,
		LocalCPUs:        w.list(nic.LocalCPUs),
		PhysicalFunction: nic.PhysicalFunction,
		Management:       nic.Management,

		MaximumVirtualFunctions: toInt32(nic.MaximumVirtualFunctions),
	}
	if nic.NUMANode != nil {
		reported.NUMANode = new(toInt32(*nic.NUMANode))
	}
	return reported
}

// FromInventory rebuilds the topology that Inventory reported, without the current hugepage pools. It
// fails on an inventory that FromFacts would not have let pass, with the field or file.
func FromInventory(inventory *v1alpha1.Inventory) (*Topology, error) {
	r := &reader{}
	t := &Topology{
		Architecture:         inventory.Architecture,
		Vendor:               inventory.ProcessorVendor,
		Model:                inventory.ProcessorModel,
		Family:               int(inventory.ProcessorFamily),
		ModelNumber:          int(inventory.ProcessorModelNumber),
		Hypervisor:           inventory.Hypervisor,
		TimestampCounter:     inventory.TimestampCounter,
		KernelRelease:        inventory.KernelRelease,
		WorkloadPartitioning: inventory.WorkloadPartitioning,
		CommandLine:          inventory.KernelCommandLine,
		Online:               r.set("onlineCPUs", inventory.OnlineCPUs),
		Offline:              r.set("offlineCPUs", inventory.OfflineCPUs),
		Efficiency:           r.set("efficiencyCPUs", inventory.EfficiencyCPUs),
		Packages:             r.sets("packages", inventory.Packages),
		L3Domains:            r.sets("l3Domains", inventory.L3Domains),
		NUMANodes:            each(inventory.NUMANodes, r.numaNode),
		NICs:                 each(inventory.NICs, r.nic),
		MinimumFrequency:     inventory.MinimumFrequencyKilohertz,
		MaximumFrequency:     inventory.MaximumFrequencyKilohertz,
	}
	if inventory.KernelType != "" {
		t.KernelRealTime = new(inventory.KernelType == v1alpha1.KernelRealTime)
	}
	t.Cores = each(r.sets("cores", inventory.Cores), func(threads cpus.Set) Core { return Core{CPUs: threads} })
	t.Present = t.Online.Union(t.Offline)
	if r.err == nil {
		r.err = t.complete()
	}
	if r.err != nil {
		return nil, fmt.Errorf("reading an inventory: %w", r.err)
	}
	t.locateCores()
	return t, nil
}

// complete finds what an inventory must say and does not, and contradictions.
func (t *Topology) complete() error {
	if t.Online.IsEmpty() {
		return errors.New("onlineCPUs is empty")
	}
	return t.validate()
}

// reader parses CPU lists and keeps the first error.
type reader struct{ err error }

func (r *reader) set(field, text string) cpus.Set {
	set, err := cpus.Parse(text)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", field, err)
	}
	return set
}

func (r *reader) sets(field string, texts []string) []cpus.Set {
	index := -1
	return each(texts, func(text string) cpus.Set {
		index++
		return r.set(fmt.Sprintf("%s[%d]", field, index), text)
	})
}

func (r *reader) numaNode(from v1alpha1.InventoryNUMANode) NUMANode {
	return NUMANode{
		ID:            int(from.ID),
		CPUs:          r.set(fmt.Sprintf("numaNodes[id=%d].cpus", from.ID), from.CPUs),
		MemoryBytes:   clone(from.MemoryBytes),
		Distances:     each(from.Distances, func(distance int32) int { return int(distance) }),
		HugepageSizes: slices.Clone(from.HugepageSizesKibibytes),
	}
}

func (r *reader) nic(from v1alpha1.InventoryNIC) NIC {
	nic := NIC{
		PCIAddress:       from.PCIAddress,
		Name:             from.InterfaceName,
		Vendor:           from.Vendor,
		Device:           from.Device,
		Driver:           from.Driver,
		LocalCPUs:        r.set(fmt.Sprintf("nics[%s].localCPUs", from.PCIAddress), from.LocalCPUs),
		PhysicalFunction: from.PhysicalFunction,
		Management:       from.Management,

		MaximumVirtualFunctions: int(from.MaximumVirtualFunctions),
	}
	if from.NUMANode != nil {
		nic.NUMANode = new(int(*from.NUMANode))
	}
	return nic
}

func clone[T any](value *T) *T {
	if value == nil {
		return nil
	}
	return new(*value)
}
