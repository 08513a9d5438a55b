// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// via is a route by a gateway, direct one to a connected network.
func via(network, name, gateway string) host.Route {
	return host.Route{Destination: netip.MustParsePrefix(network), Interface: name, Gateway: netip.MustParseAddr(gateway)}
}

func direct(network, name string) host.Route {
	return host.Route{Destination: netip.MustParsePrefix(network), Interface: name}
}

func TestManagementInterfaces(t *testing.T) {
	lower := map[string][]string{
		"bond0":     {"ens1f0", "ens1f1"},
		"bond0.100": {"bond0"},
		"br0":       {"ens2", "veth1"},
		"loop0":     {"loop1"},
		"loop1":     {"loop0"},
	}
	cases := map[string]struct {
		routes    []host.Route
		addresses []string
		want      map[string]string
	}{
		"nothing": {want: map[string]string{}},
		"default route of a NIC": {
			routes: []host.Route{via("0.0.0.0/0", "eno1", "10.0.0.1"), direct("10.0.0.0/24", "eno1")},
			want:   map[string]string{"eno1": "the default route"},
		},
		"default route of IPv6": {
			routes: []host.Route{via("::/0", "eno1", "fe80::1")}, want: map[string]string{"eno1": "the default route"},
		},
		"two default routes": {
			routes: []host.Route{via("0.0.0.0/0", "eno1", "10.0.0.1"), via("0.0.0.0/0", "eno2", "10.0.1.1")},
			want:   map[string]string{"eno1": "the default route", "eno2": "the default route"},
		},
		"VLAN on a bond": {
			routes: []host.Route{via("0.0.0.0/0", "bond0.100", "10.0.0.1")},
			want: map[string]string{
				"bond0.100": "the default route", "bond0": "the default route", "ens1f0": "the default route", "ens1f1": "the default route",
			},
		},
		"a ring of interfaces ends": {
			routes: []host.Route{via("0.0.0.0/0", "loop0", "10.0.0.1")},
			want:   map[string]string{"loop0": "the default route", "loop1": "the default route"},
		},
		"the node's address on a bridge": {
			routes:    []host.Route{via("0.0.0.0/0", "eno1", "10.0.0.1"), direct("192.168.7.0/24", "br0"), direct("192.168.8.0/24", "ens9")},
			addresses: []string{"192.168.7.9"},
			want: map[string]string{
				"eno1": "the default route", "br0": "the node's address 192.168.7.9", "ens2": "the node's address 192.168.7.9",
				"veth1": "the node's address 192.168.7.9",
			},
		},
		"the smallest network counts": {
			routes:    []host.Route{direct("10.0.0.0/8", "wide"), direct("10.1.0.0/16", "narrow")},
			addresses: []string{"10.1.2.3"},
			want:      map[string]string{"narrow": "the node's address 10.1.2.3"},
		},
		"a network behind a gateway does not hold the address": {
			routes: []host.Route{via("10.1.0.0/16", "eno1", "10.0.0.1")}, addresses: []string{"10.1.2.3"}, want: map[string]string{},
		},
		"an address of both": {
			routes: []host.Route{via("0.0.0.0/0", "eno1", "10.0.0.1"), direct("10.0.0.0/24", "eno1")}, addresses: []string{"10.0.0.5"},
			want: map[string]string{"eno1": "the default route"},
		},
		"an IPv4 address in the notation of IPv6": {
			routes: []host.Route{direct("10.0.0.0/24", "eno1")}, addresses: []string{"::ffff:10.0.0.5"},
			want: map[string]string{"eno1": "the node's address ::ffff:10.0.0.5"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := &host.Bypass{Networks: known(tc.routes), Lower: lower}
			addresses := make([]netip.Addr, 0, len(tc.addresses))
			for _, text := range tc.addresses {
				addresses = append(addresses, netip.MustParseAddr(text))
			}
			if diff := cmp.Diff(tc.want, ManagementInterfaces(b, addresses)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMarkManagement(t *testing.T) {
	cases := map[string]struct {
		networks host.Fact[[]host.Route]
		want     []string
	}{
		"known": {known([]host.Route{direct("10.0.0.0/24", "ens2")}), []string{"the default route", "the node's address 10.0.0.5", "", ""}},
		"not known": {host.Absent[[]host.Route]("/proc/1/net/route", "permission denied"), []string{
			"the default route", "perhaps the node's own traffic (/proc/1/net/route: permission denied)",
			"perhaps the node's own traffic (/proc/1/net/route: permission denied)", "",
		}},
		"never read": {host.Fact[[]host.Route]{}, []string{
			"the default route", "perhaps the node's own traffic (routes: not read)", "perhaps the node's own traffic (routes: not read)", "",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			topology := &Topology{NICs: []NIC{{Name: "ens1", Management: "the default route"}, {Name: "ens2"}, {Name: "ens3"}, {PCIAddress: "0000:3b:00.0"}}}
			MarkManagement(topology, &host.Bypass{Networks: tc.networks}, []netip.Addr{netip.MustParseAddr("10.0.0.5")})
			if diff := cmp.Diff(tc.want, each(topology.NICs, func(nic NIC) string { return nic.Management })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
