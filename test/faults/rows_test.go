// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"hash/crc32"
	"os"
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

// machines are those that the row runs on. A row that names none runs on one of the usual ones, and on all of them with
// FAULTS=all in the environment, as "make test" and "make faults" have it.
func (r row) machines() []string {
	if len(r.on) > 0 {
		return r.on
	}
	return oneOrAll(r.name, usualMachines())
}

// oneOrAll are all machines where the environment asks for them, else one that depends on the name alone.
func oneOrAll(name string, all []string) []string {
	if os.Getenv("FAULTS") == "all" {
		return all
	}
	at := crc32.ChecksumIEEE([]byte(name)) % uint32(len(all)) //nolint:gosec // The number of machines is small.
	return all[at : at+1]
}

// fault is something wrong, which the checks must find.
type fault struct {
	name         string
	on           []string
	harm, during func(*node)
	more         func(*node, *verify.Input)
	// want is the check that must fail, says are words of its message, in which {cpu} is the first isolated CPU, {nic} the
	// first bypass NIC and {other} a NIC of the host.
	want v1alpha1.CheckID
	says []string
	// anew is what fails in place of want where the changed host is planned anew, as "check" does, and the new plan suits
	// the change: mostly the kernel's arguments, which belong to the old one.
	anew v1alpha1.CheckID
	// agent says why the agent alone can see the fault: the host as it is satisfies the plan that is made for it now.
	agent string
	// unknown says why the check can only be Unknown: nothing on the host tells that the fault is there.
	unknown string
	// makes are conditions that must be False for it, besides those that the check decides.
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
		faultsOfKernel(), faultsOfBoots(), faultsOfArguments(), faultsOfKernels(), faultsOfCPUs(), faultsOfTasks(), faultsOfThreads(), faultsOfPriorities(), faultsOfInterrupts(), faultsOfBackground(), faultsOfKernelState(), faultsOfMemory(),
		faultsOfPower(), faultsOfLatencyLimit(), faultsOfNetwork(), faultsOfNUMA(), faultsOfKubelet(),
		faultsOfCounters(), faultsOfLosses(), faultsOfOwners(), faultsOfSettings(), faultsOfOtherFiles(), faultsOfPowerSettings(), faultsOfTopology(), faultsOfFunctions(), faultsOfNICs(), faultsOfPods(), faultsOfQualifications(), faultsOfAbsence(),
	)
}

// variations are all variations, in the order of their subjects.
func variations() []variation {
	return slices.Concat(
		variationsOfKernel(), variationsOfArguments(), variationsOfHugepageArguments(), variationsOfCPUs(), variationsOfTasks(), variationsOfPriorities(), variationsOfInterrupts(), variationsOfBackground(), variationsOfMemory(),
		variationsOfPower(), variationsOfLatencyLimit(), variationsOfNetwork(), variationsOfNUMA(), variationsOfKubelet(),
		variationsOfCounters(), variationsOfOwners(), variationsOfSettings(), variationsOfMasks(), variationsOfTopology(), variationsOfPods(), variationsOfAbsence(),
	)
}

// lesser are the checks whose failure makes no condition False, each with the reason: what they find disturbs and slows
// no isolated CPU by itself, or is over.
func lesser() map[v1alpha1.CheckID]string {
	return map[v1alpha1.CheckID]string{
		"firmware.fingerprint":       "the host may be as good as before: nobody has measured it since",
		"kernel.tainted":             "what the kernel has seen is over",
		"memory.dirty-pages":         "who writes files waits, and nobody else",
		"memory.hugepages-unplanned": "the pages are idle memory",
		"net.busy-poll":              "who uses the sockets of the kernel is slower, and nobody else",
		"net.drops":                  "the network stack of the host lost packets, no bypass stack did",
		"nic.drops":                  "the packets are lost, wherever the program ran",
		"nic.functions":              "a NIC that is not as planned is handed out to nobody, as the status of its pool says",
		"nic.pcie-link":              "the slot or the card is what it is",
	}
}

// open are the rows that cannot pass yet, as NAME or NAME@MACHINE, each with the reason.
func open() map[string]string {
	return map[string]string{}
}
