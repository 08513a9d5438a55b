// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// selectorRules returns a case for each CEL rule of a NICSelector at one place of a kind.
func selectorRules[T any](field string, set func(*T, ...v1alpha1.NICSelector)) []rule[T] {
	const pciID = "a PCI vendor or device is written as four lower-case hexadecimal digits without 0x, as lspci -n prints them, for example 1924."
	with := func(selector v1alpha1.NICSelector) func(*T) { return func(object *T) { set(object, selector) } }
	return []rule[T]{
		{
			field:    field,
			message:  "devices need the vendor beside them, because device numbers are the vendor's own.",
			accepted: with(v1alpha1.NICSelector{Vendor: "1924", Devices: []v1alpha1.PCIID{"0a03", "0b03"}}),
			rejected: with(v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"sfc"}, Devices: []v1alpha1.PCIID{"0b03"}}),
		},
		{
			field:    field,
			message:  "a selector of NICs must name a vendor, drivers, interfaces or pciAddresses: numaNodes, link and role alone would take every NIC.",
			accepted: with(v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"sfc"}, NUMANodes: []int32{1}, Link: v1alpha1.LinkAny}),
			rejected: with(v1alpha1.NICSelector{NUMANodes: []int32{1}, Link: v1alpha1.LinkAny, Role: v1alpha1.RolePhysicalFunction}),
		},
		{
			field:    field + ".vendor",
			message:  pciID,
			accepted: with(v1alpha1.NICSelector{Vendor: "10ee"}),
			rejected: with(v1alpha1.NICSelector{Vendor: "0x10ee"}),
		},
		{
			field:    field + ".devices[]",
			message:  pciID,
			accepted: with(v1alpha1.NICSelector{Vendor: "10ee", Devices: []v1alpha1.PCIID{"5084"}}),
			rejected: with(v1alpha1.NICSelector{Vendor: "10ee", Devices: []v1alpha1.PCIID{"0B03"}}),
		},
		{
			field:    field + ".drivers[]",
			message:  "a driver name begins with a letter or digit and consists of letters, digits, _ and -.",
			accepted: with(v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"xilinx_efct", "8021q", "vfio-pci"}}),
			rejected: with(v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"../sfc"}}),
		},
		{
			field:    field + ".interfaces[]",
			message:  "an interface name consists of letters, digits and _.:- with the wildcards * and ?, and may begin with an exclamation mark.",
			accepted: with(v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1f0", "ens2f*", "!ens*f?"}}),
			rejected: with(v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1 f0"}}),
		},
		{
			field:    field + ".interfaces[]",
			message:  "an interface name has at most 15 characters.",
			accepted: with(v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"!enp1234567890f0*", "e*"}}),
			rejected: with(v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"enp1234567890f01"}}),
		},
		{
			field:    field + ".pciAddresses[]",
			message:  "a PCI address is written as in sysfs, for example 0000:3b:00.0.",
			accepted: with(v1alpha1.NICSelector{PCIAddresses: []v1alpha1.PCIAddress{"0000:3b:00.0", "10000:01:1f.7"}}),
			rejected: with(v1alpha1.NICSelector{PCIAddresses: []v1alpha1.PCIAddress{"0000:3B:00.0"}}),
		},
	}
}

// nodeSelectorRules returns a case for each CEL rule of a NodeSelector with expressions.
func nodeSelectorRules[T any](set func(*T, v1alpha1.NodeSelector)) []rule[T] {
	with := func(expressions ...v1alpha1.LabelExpression) func(*T) {
		return func(object *T) { set(object, v1alpha1.NodeSelector{MatchExpressions: expressions}) }
	}
	return []rule[T]{
		{
			field:    "spec.nodeSelector",
			message:  "nodeSelector needs matchLabels or matchExpressions: an empty selector would take every node of the cluster.",
			accepted: with(v1alpha1.LabelExpression{Key: "node-role.kubernetes.io/trading", Operator: v1alpha1.LabelExists}),
			rejected: with(),
		},
		{
			field:   "spec.nodeSelector.matchExpressions[]",
			message: "a requirement with In or NotIn needs values, and one with Exists or DoesNotExist has none.",
			accepted: with(
				v1alpha1.LabelExpression{Key: "zone", Operator: v1alpha1.LabelIn, Values: []v1alpha1.LabelValue{"a", "b"}},
				v1alpha1.LabelExpression{Key: "infra", Operator: v1alpha1.LabelDoesNotExist},
				v1alpha1.LabelExpression{Key: "zone", Operator: v1alpha1.LabelNotIn, Values: []v1alpha1.LabelValue{""}}),
			rejected: with(v1alpha1.LabelExpression{Key: "zone", Operator: v1alpha1.LabelIn}),
		},
		{
			field:    "spec.nodeSelector.matchExpressions[].key",
			message:  "a label key is a name of at most 63 letters, digits and _.-, which a DNS name and a slash may precede.",
			accepted: with(v1alpha1.LabelExpression{Key: "example.com/zone_A", Operator: v1alpha1.LabelExists}),
			rejected: with(v1alpha1.LabelExpression{Key: "trading nodes", Operator: v1alpha1.LabelExists}),
		},
		{
			field:    "spec.nodeSelector.matchExpressions[].values[]",
			message:  "a label value is empty or begins and ends with a letter or digit, with letters, digits and _.- between.",
			accepted: with(v1alpha1.LabelExpression{Key: "zone", Operator: v1alpha1.LabelIn, Values: []v1alpha1.LabelValue{"rack-1.A_2"}}),
			rejected: with(v1alpha1.LabelExpression{Key: "zone", Operator: v1alpha1.LabelIn, Values: []v1alpha1.LabelValue{"rack 1"}}),
		},
	}
}

func poolSelectorRules() []nicPoolRule {
	const nearlyEvery = "in spec.nics, interfaces that begin with a wildcard or that only exclude need a vendor, drivers or pciAddresses beside them: alone they would take nearly every NIC."
	return append(selectorRules("spec.nics[]", func(p *nicPool, list ...v1alpha1.NICSelector) { p.Spec.NICs = list }),
		nicPoolRule{
			field:    "spec.nics",
			message:  nearlyEvery,
			accepted: terms(v1alpha1.NICSelector{Vendor: "1924", Interfaces: []v1alpha1.InterfacePattern{"*", "!eno1"}}),
			rejected: terms(v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1", "?*"}}),
		},
	)
}

func networkRules() []profileRule {
	device := func(selector v1alpha1.NICSelector) func(*profile) {
		return func(p *profile) { p.Spec.Network.NICs = []v1alpha1.NICSelector{selector} }
	}
	return append(selectorRules("spec.network.nics[]", func(p *profile, list ...v1alpha1.NICSelector) { p.Spec.Network.NICs = list }),
		profileRule{
			field:    "spec.network.nics",
			message:  "link must be Any or omitted in spec.network.nics: a plan does not change when a cable is pulled.",
			accepted: device(v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"*"}, Link: v1alpha1.LinkAny}),
			rejected: device(v1alpha1.NICSelector{Vendor: "1924", Link: v1alpha1.LinkUp}),
		},
	)
}
