// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Check is one question that a running kernel answers.
type Check struct {
	// ID such as cpu.nohz-full. Profiles waive checks by it; it never changes its meaning.
	ID v1alpha1.CheckID
	// Title states what holds when the check passes.
	Title string
	// Severity says how urgent it is when the check fails.
	Severity v1alpha1.Severity
	// Impact says what a failure means for isolated CPUs and NUMA nodes. Together with Severity it says whether a
	// result decides the Conditions.
	Impact Impact
	// Conditions are the condition types of LowLatencyNode that the check speaks to.
	Conditions []string
	// Window tells that the check compares counters of two moments.
	Window bool
	// Qualification tells that only a qualification run can judge the check: to read the facts makes isolated CPUs
	// run code, or there is nothing to compare them with before.
	Qualification bool
	// Applies says for which plans the check is evaluated; "" means every plan.
	Applies string
	// Why says what it costs when the check fails.
	Why string
	// Reads are the files that it reads, as patterns.
	Reads []string
	// Fix says what to do when it fails.
	Fix string
	// Reboot says whether the fix takes effect only after a reboot.
	Reboot v1alpha1.RebootRequirement
	// Source is where the rule comes from: a document of the kernel, of a distribution or of a vendor.
	Source string

	// owns are patterns of settings (host.Facts.Settings) of which this check is the only judge.
	owns []string
	run  func(*state) verdict
}

// Catalogue returns all checks, grouped by subject, in the order in which they are reported.
func Catalogue() []Check {
	return slices.Concat(
		kernelChecks(),
		partitionChecks(),
		isolationChecks(),
		interruptChecks(),
		interruptCounterChecks(),
		rateChecks(),
		taskChecks(),
		priorityChecks(),
		workqueueChecks(),
		backgroundChecks(),
		disturbanceChecks(),
		qualificationChecks(),
		memoryChecks(),
		writebackChecks(),
		clockChecks(),
		frequencyChecks(),
		idleChecks(),
		platformChecks(),
		networkChecks(),
		interfaceChecks(),
		numaChecks(),
		podChecks(),
		ownershipChecks(),
		platformPodChecks(),
		kubeletChecks(),
	)
}
