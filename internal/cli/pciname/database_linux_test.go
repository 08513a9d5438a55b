// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package pciname

import "testing"

func TestOf(t *testing.T) {
	cases := map[string]struct{ vendor, device, want string }{
		"a NIC of Solarflare":            {"1924", "0b03", "AMD Solarflare XtremeScale SFC9250 10/25/40/50/100G Ethernet Controller"},
		"a NIC of Intel":                 {"8086", "158b", "Intel Ethernet Controller XXV710 for 25GbE SFP28"},
		"a NIC of Mellanox":              {"15b3", "1017", "Mellanox MT27800 Family [ConnectX-5]"},
		"as sysfs writes it":             {"0x8086", "0x158B", "Intel Ethernet Controller XXV710 for 25GbE SFP28"},
		"a device nobody knows":          {"8086", "ffff", ""},
		"a vendor nobody knows":          {"fffe", "0001", ""},
		"an id that was not read":        {"", "", ""},
		"what is no hexadecimal number":  {"intel", "158b", ""},
		"a number larger than an id may": {"18086", "158b", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Of(tc.vendor, tc.device); got != tc.want {
				t.Errorf("Of(%q, %q) = %q, want %q", tc.vendor, tc.device, got, tc.want)
			}
		})
	}
}
