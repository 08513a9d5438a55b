// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const testFunction = "0000:3b:02.0"

// inPool gives the NIC of the fixture to a pool.
func inPool(f fixture, change func(*plan.PoolNICPlan)) {
	nic := plan.PoolNICPlan{
		PCIAddress: "0000:3b:00.0", Interrupts: v1alpha1.NICInterruptsLocalHousekeeping, InterruptCPUs: list("0-1"),
	}
	if change != nil {
		change(&nic)
	}
	f.plan.BypassPools = []plan.PoolPlan{{Name: "feed", NICs: []plan.PoolNICPlan{nic}}}
}

// withFunction gives the NIC a virtual function with an interrupt.
func withFunction(f fixture, driver host.Fact[string]) {
	f.facts.NICs[0].VirtualFunctions = []string{testFunction}
	f.facts.NICs = append(f.facts.NICs, host.NIC{PCIAddress: testFunction, Driver: driver, Interrupts: []int{150}})
}

func poolCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{"nic.interrupts": poolInterruptCases(), "nic.functions": poolFunctionCases()}
}

func poolInterruptCases() checkCases {
	deliver := func(f fixture, to string) { f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list(to)) }
	return checkCases{
		"no pool": {want: doesNotApply},
		"left alone": {
			change: func(f fixture) {
				inPool(f, func(n *plan.PoolNICPlan) {
					n.Interrupts, n.InterruptCPUs = v1alpha1.NICInterruptsKept, cpus.Set{}
				})
			},
			want: doesNotApply,
		},
		"as planned": {change: func(f fixture) { inPool(f, nil) }, want: passes},
		"per pod, too": {
			change: func(f fixture) { roam(f); inPool(f, nil); deliver(f, "4") }, want: fails,
			wantMessage: "IRQ 142 (sfc-ens2f0-3) of NIC ens2f0 (0000:3b:00.0) is delivered to CPU 4; BypassNICPool feed wants 0-1",
		},
		"on an isolated CPU": {
			change: func(f fixture) { inPool(f, nil); deliver(f, "2") }, want: fails,
			wantMessage: "IRQ 142 (sfc-ens2f0-3) of NIC ens2f0 (0000:3b:00.0) is delivered to CPU 2; BypassNICPool feed wants 0-1",
		},
		"of a virtual function": {
			change: func(f fixture) {
				inPool(f, nil)
				withFunction(f, known("vfio-pci"))
				f.facts.Interrupts.Routes = append(f.facts.Interrupts.Routes, host.InterruptRoute{Number: 150, EffectiveAffinity: known(list("5"))})
			},
			want: fails, wantMessage: "IRQ 150 of NIC ens2f0 (0000:3b:00.0) is delivered to CPU 5; BypassNICPool feed wants 0-1",
		},
		"not told": {
			change: func(f fixture) {
				inPool(f, nil)
				f.facts.Interrupts.Routes[2].EffectiveAffinity = absent[cpus.Set]("effective_affinity_list")
			},
			want: isUnknown, wantMessage: "effective_affinity_list",
		},
		"gone": {
			change: func(f fixture) { inPool(f, nil); f.facts.NICs = nil },
			want:   isUnknown, wantMessage: "/sys/bus/pci/devices/0000:3b:00.0",
		},
	}
}

func poolFunctionCases() checkCases {
	functions := func(f fixture) {
		inPool(f, func(n *plan.PoolNICPlan) { n.VirtualFunctions, n.Driver = 1, plan.DriverVFIO })
	}
	itself := func(f fixture) { inPool(f, func(n *plan.PoolNICPlan) { n.Driver = plan.DriverVFIO }) }
	return checkCases{
		"no pool":              {want: doesNotApply},
		"a pool that has none": {change: func(f fixture) { inPool(f, nil) }, want: doesNotApply},
		"as planned":           {change: func(f fixture) { functions(f); withFunction(f, known("vfio-pci")) }, want: passes},
		"without driver of its own": {
			change: func(f fixture) {
				inPool(f, func(n *plan.PoolNICPlan) { n.VirtualFunctions = 1 })
				withFunction(f, absent[string]("driver"))
			},
			want: passes,
		},
		"missing": {
			change: functions, want: fails,
			wantMessage: "NIC ens2f0 (0000:3b:00.0) has 0 virtual functions, BypassNICPool feed wants 1",
		},
		"another driver": {
			change: func(f fixture) { functions(f); withFunction(f, known("sfc")) }, want: fails,
			wantMessage: "virtual function 0000:3b:02.0 of NIC ens2f0 (0000:3b:00.0) is bound to sfc, planned is vfio-pci",
		},
		"no driver":  {change: func(f fixture) { functions(f); withFunction(f, absent[string]("driver")) }, want: isUnknown, wantMessage: "driver"},
		"not listed": {change: func(f fixture) { functions(f); f.facts.NICs[0].VirtualFunctions = []string{testFunction} }, want: isUnknown, wantMessage: testFunction},
		"the NIC itself": {
			change: func(f fixture) { itself(f); f.facts.NICs[0].Driver = known("vfio-pci") }, want: passes,
		},
		"the NIC itself, not bound": {
			change: func(f fixture) { itself(f); f.facts.NICs[0].Driver = known("sfc") }, want: fails,
			wantMessage: "NIC ens2f0 (0000:3b:00.0) is bound to sfc, planned is vfio-pci",
		},
	}
}
