// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// The platform's pods get the housekeeping CPUs where the node tells them from others, and only there.
func TestManagementCPUs(t *testing.T) {
	for partitioning, isKept := range map[v1alpha1.WorkloadPartitioning]bool{"": false, v1alpha1.WorkloadPartitioningEnabled: true} {
		machine := xeon()
		machine.WorkloadPartitioning = partitioning
		p, findings := New(Input{Profile: profileWith(), Topology: machine})
		if p == nil {
			t.Fatal(describe(findings))
		}
		want := cpus.Set{}
		if isKept {
			want = p.CPUs.Housekeeping
		}
		if got := p.ManagementCPUs(); !got.Equal(want) {
			t.Errorf("partitioning %q: %s, want %s", partitioning, got, want)
		}
	}
}
