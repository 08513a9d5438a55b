// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package tunedprofile

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
			selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"eth0"}}},
			want:      `\A(?=[\s\S]*^INTERFACE=eth0$)`,
		},
		"a pattern": {
			selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens?f*.1"}}},
			want:      `\A(?=[\s\S]*^INTERFACE=ens.f.*\.1$)`,
		},
		"everything but a pattern": {
			selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"!ens*"}}},
			want:      `\A(?=[\s\S]*^INTERFACE=(?!ens.*$).*$)`,
		},
		"a model": {
			selectors: []v1alpha1.NICSelector{{Vendor: "15b3", Devices: []v1alpha1.PCIID{"101d"}}},
			want:      `\A(?=[\s\S]*^ID_VENDOR_ID=0x15b3$)(?=[\s\S]*^ID_MODEL_ID=0x101d$)`,
		},
		"a place": {
			selectors: []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:3b:00.0"}}},
			want:      `\A(?=[\s\S]*^DEVPATH=.*/0000:3b:00\.0/(?:virtio\d+/)?net/.*$)`,
		},
		"one of several": {
			selectors: []v1alpha1.NICSelector{{
				Vendor: "1924", Devices: []v1alpha1.PCIID{"0a03", "0b03"}, Drivers: []v1alpha1.DriverName{"sfc", "vfio-pci"},
				PCIAddresses: []v1alpha1.PCIAddress{"0000:3b:00.0", "0000:3b:00.1"},
			}},
			want: `\A(?=[\s\S]*^ID_VENDOR_ID=0x1924$)(?=[\s\S]*^ID_MODEL_ID=(?:0x0a03|0x0b03)$)` +
				`(?=[\s\S]*^ID_NET_DRIVER=(?:sfc|vfio-pci)$)(?=[\s\S]*^DEVPATH=.*/(?:0000:3b:00\.0|0000:3b:00\.1)/(?:virtio\d+/)?net/.*$)`,
		},
		"names but for some": {
			selectors: []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens**", "eth?", "!*np1", "!ens9"}}},
			want:      `\A(?=[\s\S]*^INTERFACE=(?!(?:.*np1|ens9)$)(?:ens.*|eth.)$)`,
		},
		"either of two": {
			selectors: []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc"}}, {Drivers: []v1alpha1.DriverName{"ice"}, Interfaces: []v1alpha1.InterfacePattern{"e*"}}},
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
