// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

func TestRules(t *testing.T) {
	want := plan.PlatformRules{
		KubeletFields: []string{"cgroupDriver", "clusterDNS", "clusterDomain", "failSwapOn", "featureGates", "memorySwap", "staticPodPath"},
		Services:      []string{"machine-config-daemon-firstboot.service", "machine-config-daemon-pull.service"},
	}
	if diff := cmp.Diff(want, Rules()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
