// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Change is one difference between what is and what is planned.
type Change struct {
	// What changes, such as "kernel argument nohz_full" or "sysctl vm.stat_interval".
	What string `json:"what"`
	// From and To are the values; "" when there is none.
	From string `json:"from"`
	To   string `json:"to"`
	// Reboot says whether the change takes effect only after a reboot, Why the reason.
	Reboot v1alpha1.RebootRequirement `json:"reboot"`
	Why    string                     `json:"why"`
}

// Changes are the differences between two plans, or between a host and a plan.
type Changes struct {
	Items []Change `json:"items"`
}

// Reboot is Required when any change needs a reboot, else Unknown when any may, else NotRequired.
func (c Changes) Reboot() v1alpha1.RebootRequirement {
	return v1alpha1.RebootUnknown
}

// Diff compares two plans. A nil plan is a host that no plan has touched.
func Diff(from, to *NodePlan) Changes { return Changes{} }

// DiffRunning compares what a host runs now with a plan.
func DiffRunning(facts *host.Facts, to *NodePlan) Changes { return Changes{} }
