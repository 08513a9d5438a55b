// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Units returns how many containers may hold a NIC that the pool has by a claim, and whether that is known. It is 1 for a NIC
// or virtual function that is handed out as a whole. A shared NIC has as many units as its stack makes of it, virtual
// interfaces or receive queues, less those of older pools that share it, and maximumSharesPerNIC at most.
func Units(in Input, claim *Claim, nic host.NIC) (units int, known bool) {
	if !isShared(&in.Pool.Spec) {
		return 1, true
	}
	count, known := wholeShares(in, nic)
	return atMost(in, max(0, count-claim.Reserved(nic.PCIAddress))), known
}

// wholeShares is how many containers could share a NIC if it belonged to one pool, as far as the stack can tell.
func wholeShares(in Input, nic host.NIC) (count int, known bool) {
	if shares := stackOf(&in.Pool.Spec).shares; shares != nil {
		return shares(in, nic)
	}
	return 0, false
}

func isShared(spec *v1alpha1.BypassNICPoolSpec) bool {
	return spec.Sharing.Mode == v1alpha1.SharingShared && spec.VirtualFunctions == nil
}

// sharesByVirtualInterfaces counts the virtual interfaces (VIs) of a NIC, since the first stack of a container takes
// one.
//
// VIs in use are counted, too: the users are the containers that hold the units, and a unit that vanished while it
// is used would be lost to the next pod. The driver counts the VIs of all registered NICs together, each NIC adding
// its own (efrm_resource_manager_add_total); the share of one is known when all registered NICs are of one model.
func sharesByVirtualInterfaces(in Input, nic host.NIC) (count int, known bool) {
	total, known := in.Facts.Bypass.Onload.Resources.Value[tableVI].Total.Get()
	registered := registeredNICs(in.Facts)
	if !known || len(registered) == 0 || !areOfModel(registered, nic) {
		return 0, false
	}
	return total / len(registered), true
}

// atMost keeps the limits of the pool and of the status.
func atMost(in Input, units int) int {
	if most := int(in.Pool.Spec.Sharing.MaximumSharesPerNIC); most > 0 {
		units = min(units, most)
	}
	return min(units, v1alpha1.MaxUnitsPerNIC)
}

// registeredNICs are the NICs that sfc_resource names by interface or address. A name that no NIC of the node has
// is that of a NIC whose interface is in a pod: then all NICs with a network driver and without an interface count.
func registeredNICs(facts *host.Facts) []host.NIC {
	names := facts.Bypass.Onload.Interfaces.Value
	isNamed := func(nic host.NIC) bool {
		return slices.Contains(names, nic.PCIAddress) || nic.Name.Known && slices.Contains(names, nic.Name.Value)
	}
	isUnknown := func(name string) bool {
		return !strings.Contains(name, ":") && !slices.ContainsFunc(facts.NICs, func(nic host.NIC) bool {
			return nic.Name.Known && nic.Name.Value == name
		})
	}
	away := slices.ContainsFunc(names, isUnknown)
	var registered []host.NIC
	for _, nic := range facts.NICs {
		isAway := away && !nic.Name.Known && nic.Driver.Known && nic.Driver.Value != driverVFIO
		if isNamed(nic) || isAway {
			registered = append(registered, nic)
		}
	}
	return registered
}

func areOfModel(nics []host.NIC, of host.NIC) bool {
	return of.Vendor.Known && of.Device.Known && !slices.ContainsFunc(nics, func(nic host.NIC) bool {
		return nic.Vendor.Value != of.Vendor.Value || nic.Device.Value != of.Device.Value
	})
}
