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
		Services: []string{
			"machine-config-daemon-*", "rpm-ostreed.*", "rpm-ostree-*", "kubelet-*", "kubens.*", "crio-*", "ocp-tuned-*", "node-valid-hostname.*",
			"wait-for-primary-ip.*", "coreos-*", "afterburn*", "aws-*", "azure-*", "gcp-*", "vsphere-*",
		},
	}
	if diff := cmp.Diff(want, Rules()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

func TestKubeletFieldsOfThePlatform(t *testing.T) {
	additional := func(name string, value any) map[string]any { return map[string]any{name: value} }
	cases := map[string]struct {
		fields map[string]any
		want   string
	}{
		"a field of the platform": {additional("cgroupDriver", "cgroupfs"), "cgroupDriver belongs"},
		"feature gates":           {additional("featureGates", map[string]any{"X": true}), "featureGates belongs"},
		"cluster DNS":             {additional("clusterDNS", []any{"10.0.0.1"}), "clusterDNS belongs"},
		"cluster domain":          {additional("clusterDomain", "x"), "clusterDomain belongs"},
		"swap":                    {additional("failSwapOn", false), "failSwapOn belongs"},
		"swap behaviour":          {additional("memorySwap", map[string]any{"swapBehavior": "NoSwap"}), "swapBehavior belongs"},
		"static pods":             {additional("staticPodPath", "/x"), "staticPodPath belongs"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := example(t, "trading-xeon")
			in.Plan.Kubelet.Additional = tc.fields
			_, err := KubeletConfig(in)
			wantError(t, err, tc.want)
		})
	}
}
