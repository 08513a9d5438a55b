// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// TestBypassNICUnits: a unit says what it does with the NIC, and tells it to the program.
func TestBypassNICUnits(t *testing.T) {
	kept := placed(v1alpha1.NICInterruptsKept)
	cases := map[string]struct {
		changes []poolChange
		want    []string
	}{
		"the NIC for user space": {
			[]poolChange{vfio, kept}, []string{"Description=Bind NIC 0000:3b:00.0 to vfio-pci", "lowlatency-bypass-nic 0000:3b:00.0 0 vfio-pci IOMMU"},
		},
		"virtual functions for user space": {
			[]poolChange{vfio, functions(8), kept},
			[]string{"Description=Create 8 virtual functions on NIC 0000:3b:00.0 and bind them to vfio-pci", "lowlatency-bypass-nic 0000:3b:00.0 8 vfio-pci IOMMU"},
		},
		"virtual functions for the kernel": {
			[]poolChange{functions(2), kept},
			[]string{"Description=Create 2 virtual functions on NIC 0000:3b:00.0", "lowlatency-bypass-nic 0000:3b:00.0 2 kept none"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan, findings := poolsOn(xeon(), []Pool{poolWith("x2", []topology.NIC{firstNIC()}, tc.changes...)})
			if plan == nil {
				t.Fatal(describe(findings))
			}
			var got []string
			for _, unit := range plan.Units {
				if unit.Name != "lowlatency-bypass-nic-0000-3b-00.0.service" {
					continue
				}
				for line := range strings.Lines(unit.Content) {
					line = strings.TrimSpace(line)
					if strings.HasPrefix(line, "Description=") {
						got = append(got, line)
					} else if command, found := strings.CutPrefix(line, "ExecStart="); found {
						got = append(got, command[strings.LastIndex(command, "/")+1:])
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
