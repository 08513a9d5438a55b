// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"cmp"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// PoolObservation is what one pass found out about one BypassNICPool.
type PoolObservation struct {
	// Name of the pool.
	Name string
	// NICs that the pool selects on the node.
	NICs []v1alpha1.NodeBypassNIC
	// Problem says why the pool could not be evaluated; "" when it could.
	Problem string
}

// reportNICs describes the devices of a pool within the bounds of the API.
func reportNICs(pool *bypass.Pool, devices []bypass.Device, holders []allocation.Holder) []v1alpha1.NodeBypassNIC {
	nics := make([]v1alpha1.NodeBypassNIC, 0, len(devices))
	for _, device := range devices {
		nic := v1alpha1.NodeBypassNIC{
			Pool: pool.Name, PoolGeneration: pool.Generation,
			PCIAddress:    device.NIC.PCIAddress,
			InterfaceName: shorten.Sentence(device.NIC.Name.Value, v1alpha1.MaxReportedInterfaceNameLength),
			Model:         shorten.Sentence(device.Series, v1alpha1.MaxNICModelLength),
			Health:        device.Health,
			Reasons:       reasons(device.Reasons),
			ModuleVersion: shorten.Sentence(device.Versions.Module, v1alpha1.MaxStackVersionLength),
			UserVersion:   shorten.Sentence(device.Versions.User, v1alpha1.MaxStackVersionLength),
			Units:         int32(device.Units),
			Users:         users(device.NIC.PCIAddress, holders),
		}
		if node, ok := device.NIC.NUMANode.Get(); ok {
			id := int32(node)
			nic.NUMANode = &id
		}
		nics = append(nics, nic)
	}
	return nics
}

func reasons(all []string) []string {
	if len(all) == 0 {
		return nil
	}
	clipped := make([]string, 0, v1alpha1.MaxNICReasons)
	for _, reason := range shorten.List(all, v1alpha1.MaxNICReasons) {
		clipped = append(clipped, shorten.Sentence(reason, v1alpha1.MaxNICReasonLength))
	}
	return clipped
}

// users are the containers that hold units of the NIC, in the order of the holders.
func users(address string, holders []allocation.Holder) []v1alpha1.NICUser {
	var all []v1alpha1.NICUser
	for _, holder := range holders {
		if holder.PCIAddress != address || len(all) == v1alpha1.MaxNICUsers {
			continue
		}
		all = append(all, v1alpha1.NICUser{
			Namespace: holder.Container.Namespace, Pod: holder.Container.Pod, Container: holder.Container.Name,
			Allocation: holder.Allocation, Alignment: holder.Alignment, Message: shorten.Sentence(holder.Message, v1alpha1.MaxNICUserMessageLength),
		})
	}
	return all
}

// mergeNICs returns the NICs of all pools in ascending order of pool and PCI address. The NICs of a pool that could
// not be evaluated stay, as the node did not lose them, but nothing is claimed of them any more.
func mergeNICs(previous []v1alpha1.NodeBypassNIC, pools []PoolObservation) []v1alpha1.NodeBypassNIC {
	var merged []v1alpha1.NodeBypassNIC
	for _, pool := range pools {
		if pool.Problem == "" {
			merged = append(merged, pool.NICs...)
			continue
		}
		for _, nic := range previous {
			if nic.Pool == pool.Name {
				merged = append(merged, unproven(nic, pool.Problem))
			}
		}
	}
	slices.SortStableFunc(merged, func(a, b v1alpha1.NodeBypassNIC) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.PCIAddress, b.PCIAddress))
	})
	return shorten.List(merged, v1alpha1.MaxBypassNICs)
}

// unproven is a NIC of which nothing is known at the moment.
func unproven(nic v1alpha1.NodeBypassNIC, problem string) v1alpha1.NodeBypassNIC {
	unknown := *nic.DeepCopy()
	unknown.Health, unknown.Reasons = v1alpha1.NICUnknown, []string{shorten.Sentence(problem, v1alpha1.MaxNICReasonLength)}
	if unknown.Hugepages != "" {
		unknown.Hugepages = v1alpha1.HugepagesUnknown
	}
	for i := range unknown.Users {
		unknown.Users[i].Alignment, unknown.Users[i].Message = v1alpha1.AlignmentUnknown, shorten.Sentence(problem, v1alpha1.MaxNICUserMessageLength)
	}
	return unknown
}
