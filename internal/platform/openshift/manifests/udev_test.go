// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestUdevExpression fixes the texts; that they match what they should is tested with TuneD's own matcher.
func TestUdevExpression(t *testing.T) {
	cases := map[string]struct {
		selectors []v1alpha1.NICSelector
		want      string
	}{
		"a name": {
			selectors: []v1alpha1.NICSelector{{InterfaceName: "eth0"}},
			want:      `\A(?=[\s\S]*^INTERFACE=eth0$)`,
		},
		"a pattern": {
			selectors: []v1alpha1.NICSelector{{InterfaceName: "ens?f*.1"}},
			want:      `\A(?=[\s\S]*^INTERFACE=ens.f.*\.1$)`,
		},
		"everything but a pattern": {
			selectors: []v1alpha1.NICSelector{{InterfaceName: "!ens*"}},
			want:      `\A(?=[\s\S]*^INTERFACE=(?!ens.*$).*$)`,
		},
		"a model, in capitals": {
			selectors: []v1alpha1.NICSelector{{VendorID: "0x15B3", DeviceID: "0x101D"}},
			want:      `\A(?=[\s\S]*^ID_VENDOR_ID=0x15b3$)(?=[\s\S]*^ID_MODEL_ID=0x101d$)`,
		},
		"a place": {
			selectors: []v1alpha1.NICSelector{{PCIAddress: "0000:3b:00.0"}},
			want:      `\A(?=[\s\S]*^DEVPATH=.*/0000:3b:00\.0/(?:virtio\d+/)?net/.*$)`,
		},
		"either of two": {
			selectors: []v1alpha1.NICSelector{{Driver: "sfc"}, {Driver: "ice", InterfaceName: "e*"}},
			want: `\A(?:(?=[\s\S]*^ID_NET_DRIVER=sfc$)|` +
				`(?=[\s\S]*^INTERFACE=e.*$)(?=[\s\S]*^ID_NET_DRIVER=ice$))`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := udevExpression(tc.selectors)
			if err != nil || got != tc.want {
				t.Errorf("udevExpression = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
