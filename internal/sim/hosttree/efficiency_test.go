// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// TestEfficiencyCores: slower cores get from the kernel's files through the facts and the inventory into the topology.
func TestEfficiencyCores(t *testing.T) {
	intel, arm, alike := Xeon(), Arm(), Arm()
	intel.ThreadsPerCore, intel.EfficiencyCores = 1, 16
	arm.EfficiencyCores = 40
	for name, tc := range map[string]struct {
		machine Machine
		want    string
	}{
		"Intel": {intel, "16-31"}, "arm64": {arm, "40-79"}, "all alike": {alike, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tc.machine.Write(dir); err != nil {
				t.Fatal(err)
			}
			root, err := host.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			facts, err := root.ReadHardware(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			read, err := topology.FromFacts(facts)
			if err != nil {
				t.Fatal(err)
			}
			again, err := topology.FromInventory(topology.Inventory(facts, read))
			if err != nil {
				t.Fatal(err)
			}
			if got := read.Efficiency.String(); got != tc.want || again.Efficiency.String() != tc.want || again.Signature() != read.Signature() {
				t.Errorf("efficiency cores %q, %q from the inventory, want %q", got, again.Efficiency, tc.want)
			}
		})
	}
}
