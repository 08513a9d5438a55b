// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// row is what faults and variations have in common.
type row struct {
	name string
	// on are names of machines; usualMachines where there are none.
	on []string
	// do happens before the first reading, during between the two.
	do, during func(*node)
	// more changes what the checks are given besides the host: what the kubelet's PodResources service tells, and a
	// qualification run. Nobody tells the command line of these, so that such a row is judged as by the agent alone.
	more func(*node, *verify.Input)
}

func (r row) machines() []string {
	if len(r.on) == 0 {
		return usualMachines()
	}
	return r.on
}

// fault is something wrong, which the checks must find.
type fault struct {
	name         string
	on           []string
	harm, during func(*node)
	more         func(*node, *verify.Input)
	// want is the check that must fail, says are words of its message.
	want v1alpha1.CheckID
	says []string
	// unknown says why the check can only be Unknown: nothing on the host tells that the fault is there.
	unknown string
	// makes are conditions that must be False for it.
	makes []string
}

func (f fault) row() row {
	return row{name: f.name, on: f.on, do: f.harm, during: f.during, more: f.more}
}

// variation is something harmless, which no check may fail for.
type variation struct {
	name           string
	on             []string
	change, during func(*node)
	more           func(*node, *verify.Input)
	// unknown are the checks that may become Unknown for it, each with the reason.
	unknown map[v1alpha1.CheckID]string
}

func (v variation) row() row {
	return row{name: v.name, on: v.on, do: v.change, during: v.during, more: v.more}
}

// faults are all faults, in the order of their subjects.
func faults() []fault {
	return slices.Concat(
		faultsOfKernel(), faultsOfCPUs(), faultsOfTasks(), faultsOfInterrupts(), faultsOfBackground(), faultsOfMemory(),
		faultsOfPower(), faultsOfNetwork(), faultsOfNUMA(), faultsOfKubelet(),
	)
}

// variations are all variations, in the order of their subjects.
func variations() []variation {
	return slices.Concat(
		variationsOfKernel(), variationsOfCPUs(), variationsOfTasks(), variationsOfInterrupts(), variationsOfBackground(), variationsOfMemory(),
		variationsOfPower(), variationsOfNetwork(), variationsOfNUMA(), variationsOfKubelet(),
	)
}

// open are the rows that cannot pass yet, as NAME or NAME@MACHINE, each with the reason.
func open() map[string]string {
	return map[string]string{}
}
