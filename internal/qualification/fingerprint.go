// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Told is what the kubelet of a node tells of it, in the status of the Node.
type Told struct {
	Kernel, SystemUUID string
	// IsNewer says that the agent has reported nothing since the node has booted.
	IsNewer bool
}

// FingerprintOf is what decides about the latency of a node, from what its kubelet tells of it, and from what its agent has reported. The report is nil for a
// node that no profile governs: then machine and kernel alone are known.
func FingerprintOf(told Told, report *v1alpha1.LowLatencyNode) v1alpha1.LatencyFingerprint {
	found := v1alpha1.LatencyFingerprint{}
	if report != nil && report.Status.Inventory != nil {
		found = FingerprintOfInventory(report.Spec.PlanHash, report.Status.Inventory, report.Status.BypassNICs)
	}
	if found.Kernel == "" || told.IsNewer && told.Kernel != "" {
		found.Kernel = shorten.Value(told.Kernel, v1alpha1.MaxInventoryTextLength)
	}
	found.SystemUUID = shorten.Value(told.SystemUUID, v1alpha1.MaxInventoryTextLength)
	return found
}

// FingerprintOfInventory is the same from what an agent has found: the hash of the plan, "" without one, the inventory, and the NICs of pools.
func FingerprintOfInventory(planHash string, inventory *v1alpha1.Inventory, pooled []v1alpha1.NodeBypassNIC) v1alpha1.LatencyFingerprint {
	found := v1alpha1.LatencyFingerprint{
		Kernel: inventory.KernelRelease, Microcode: inventory.Microcode, BIOSVersion: inventory.BIOSVersion, PlanHash: planHash,
		MitigationsHash: inventory.MitigationsHash, Drivers: driversOf(inventory), Stacks: stacksOf(pooled),
	}
	if inventory.KernelCommandLine != "" {
		found.CommandLineHash = hashOf(inventory.KernelCommandLine)
	}
	if nics := nicsOf(inventory); len(nics) > 0 {
		found.NICsHash = hashOf(strings.Join(nics, "\n"))
	}
	return found
}

// nicsOf are the NICs with their drivers. Virtual functions come and go with pods.
func nicsOf(inventory *v1alpha1.Inventory) []string {
	var nics []string
	for i := range inventory.NICs {
		if nic := &inventory.NICs[i]; nic.PhysicalFunction == "" {
			nics = append(nics, fmt.Sprintf("%s %s:%s %s", nic.PCIAddress, nic.Vendor, nic.Device, nic.Driver))
		}
	}
	slices.Sort(nics)
	return slices.Compact(nics)
}

// driversOf are the drivers of the NICs, in the order of their names, of which a version is known or that of a firmware, at most as many as the
// API holds.
func driversOf(inventory *v1alpha1.Inventory) []v1alpha1.LatencyFingerprintDriver {
	versions, firmware := map[string][]string{}, map[string][]string{}
	names := map[string]bool{}
	for i := range inventory.NICs {
		nic := &inventory.NICs[i]
		if nic.Driver == "" || nic.PhysicalFunction != "" {
			continue
		}
		if nic.DriverVersion != "" {
			versions[nic.Driver], names[nic.Driver] = append(versions[nic.Driver], nic.DriverVersion), true
		}
		if nic.FirmwareVersion != "" {
			firmware[nic.Driver], names[nic.Driver] = append(firmware[nic.Driver], nic.FirmwareVersion), true
		}
	}
	if len(names) == 0 {
		return nil
	}
	drivers := make([]v1alpha1.LatencyFingerprintDriver, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		drivers = append(drivers, v1alpha1.LatencyFingerprintDriver{Name: name, Version: listed(versions[name]), Firmware: listed(firmware[name])})
	}
	return drivers[:min(len(drivers), v1alpha1.MaxFingerprintDrivers)]
}

// listed are different versions with commas between them.
func listed(versions []string) string {
	slices.Sort(versions)
	return shorten.Value(strings.Join(slices.Compact(versions), ", "), v1alpha1.MaxNICVersionLength)
}

// unknownVersion stands for a version of a stack that the node does not tell.
const unknownVersion = "-"

// stacksOf are the stacks of the pools on a node in the order of the pools' names, at most as many as the API holds. Where the NICs of
// a pool tell different versions, all of them are told.
func stacksOf(pooled []v1alpha1.NodeBypassNIC) []v1alpha1.LatencyFingerprintStack {
	versions := map[string][]string{}
	for i := range pooled {
		if nic := &pooled[i]; nic.ModuleVersion != "" || nic.UserVersion != "" {
			versions[nic.Pool] = append(versions[nic.Pool], cmp.Or(nic.ModuleVersion, unknownVersion)+"/"+cmp.Or(nic.UserVersion, unknownVersion))
		}
	}
	if len(versions) == 0 {
		return nil
	}
	stacks := make([]v1alpha1.LatencyFingerprintStack, 0, len(versions))
	for _, pool := range slices.Sorted(maps.Keys(versions)) {
		told := versions[pool]
		slices.Sort(told)
		text := strings.Join(slices.Compact(told), ", ")
		stacks = append(stacks, v1alpha1.LatencyFingerprintStack{Pool: pool, Versions: shorten.Value(text, v1alpha1.MaxStackVersionLength)})
	}
	return stacks[:min(len(stacks), v1alpha1.MaxFingerprintStacks)]
}

// Part is a part of two fingerprints.
type Part struct {
	// Key is what it is in one or two words, Name in a sentence.
	Key, Name string
	// Then and Now are its values; "" when nobody has reported it.
	Then, Now string
	// IsHash says that the values tell people nothing.
	IsHash bool
}

// Words name a part that has become another, with its values where they tell people anything.
func (p Part) Words() string {
	if p.IsHash {
		return p.Name
	}
	return fmt.Sprintf("%s (%s, was %s)", p.Name, orUnknown(p.Now), orUnknown(p.Then))
}

// parts are the parts of two fingerprints, one beside the other. A stack is a part only where both have it: a pool that was added,
// deleted or mistyped changes nothing that runs on the node. So are the machine, which an agent does not know, the mitigations and the versions of
// drivers and of their NICs' firmware, which earlier versions of the operator did not tell, and which the host does not tell while a module is not loaded.
func parts(then, now v1alpha1.LatencyFingerprint) []Part {
	all := []Part{
		{"kernel", "the kernel", then.Kernel, now.Kernel, false},
		{"command line", "the kernel's command line", then.CommandLineHash, now.CommandLineHash, true},
		{"microcode", "the microcode", then.Microcode, now.Microcode, false},
		{"firmware", "the firmware", then.BIOSVersion, now.BIOSVersion, false},
		{keyPlan, "the plan", then.PlanHash, now.PlanHash, false},
		{"NIC", "a NIC or its driver", then.NICsHash, now.NICsHash, true},
	}
	if then.SystemUUID != "" && now.SystemUUID != "" {
		// A Node keeps its name when another machine takes its place.
		all = append(all, Part{"machine", "the machine", then.SystemUUID, now.SystemUUID, false})
	}
	if then.MitigationsHash != "" && now.MitigationsHash != "" {
		all = append(all, Part{"mitigations", "the mitigations of CPU vulnerabilities", then.MitigationsHash, now.MitigationsHash, true})
	}
	all = append(all, driverParts(then.Drivers, now.Drivers)...)
	for _, before := range then.Stacks {
		at := slices.IndexFunc(now.Stacks, func(s v1alpha1.LatencyFingerprintStack) bool { return s.Pool == before.Pool })
		if at >= 0 && !tellTheSame(before.Versions, now.Stacks[at].Versions) {
			all = append(all, Part{"stack", "the stack of BypassNICPool " + before.Pool, before.Versions, now.Stacks[at].Versions, false})
		}
	}
	return all
}

// tellTheSame reports whether two texts of stacksOf have the same versions of the module and of the user space, as far as both tell them.
func tellTheSame(then, now string) bool {
	moduleThen, userThen, isOneThen := strings.Cut(then, "/")
	moduleNow, userNow, isOneNow := strings.Cut(now, "/")
	same := func(a, b string) bool { return a == b || a == unknownVersion || b == unknownVersion }
	return isOneThen && isOneNow && same(moduleThen, moduleNow) && same(userThen, userNow)
}

// driverParts are the versions that both have.
func driverParts(then, now []v1alpha1.LatencyFingerprintDriver) []Part {
	var both []Part
	for _, before := range then {
		at := slices.IndexFunc(now, func(d v1alpha1.LatencyFingerprintDriver) bool { return d.Name == before.Name })
		if at < 0 {
			continue
		}
		if after := now[at].Version; before.Version != "" && after != "" {
			both = append(both, Part{"NIC driver", "the driver " + before.Name, before.Version, after, false})
		}
		if after := now[at].Firmware; before.Firmware != "" && after != "" {
			both = append(both, Part{"NIC firmware", "the firmware of NICs with driver " + before.Name, before.Firmware, after, false})
		}
	}
	return both
}

// keyPlan is the key of the part that says which plan the node has.
const keyPlan = "plan"

// Changes are the parts that have become others.
func Changes(then, now v1alpha1.LatencyFingerprint) []Part {
	return slices.DeleteFunc(parts(then, now), func(p Part) bool { return p.Then == p.Now })
}

// HostChanges are the parts that have become others on the host itself, so without the plan. What a plan changes without a reboot
// is proven by its checks; what needs one comes with another command line.
func HostChanges(then, now v1alpha1.LatencyFingerprint) []Part {
	return slices.DeleteFunc(Changes(then, now), func(p Part) bool { return p.Key == keyPlan })
}

// Differences names what of a fingerprint has become another, in words; nil when nothing has.
func Differences(then, now v1alpha1.LatencyFingerprint) []string {
	return differenceWords(Changes(then, now))
}

// differenceWords are the words of each part; nil without one.
func differenceWords(changes []Part) []string {
	if len(changes) == 0 {
		return nil
	}
	words := make([]string, 0, len(changes))
	for _, part := range changes {
		words = append(words, part.Words())
	}
	return words
}

func orUnknown(text string) string {
	if text == "" {
		return "not reported"
	}
	return text
}
