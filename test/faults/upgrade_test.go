// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// TestUpgradeKeepsThePlan: the operating system is upgraded, and a newer kernel runs on the same machine. What is planned on it
// is byte for byte what was planned before, so that nothing is written and no node reboots again, and the plan of before is
// in force.
func TestUpgradeKeepsThePlan(t *testing.T) {
	fleet := newFleet(t)
	for before, releases := range map[string][]string{xeon: {xeon66, xeon612, xeon618}, epyc: {epyc612}} {
		for _, after := range releases {
			t.Run(before+" to "+after, func(t *testing.T) {
				t.Parallel()
				old, upgraded := fleet.node(t, before), fleet.node(t, after)
				read, err := upgraded.look(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if was, is := old.plan.Hash(), read.planned.Plan.Hash(); was != is {
					t.Errorf("the plan was %s, and after the upgrade it is %s", was, is)
				}
				for _, found := range verify.Evaluate(verify.Input{Plan: old.plan, Facts: read.facts}).Results {
					if found.Outcome != v1alpha1.OutcomePassed {
						t.Errorf("%s %s: %s", found.Check.ID, found.Outcome, found.Message)
					}
				}
			})
		}
	}
}
