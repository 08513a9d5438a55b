// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSocketAddresses(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	cases := map[string]struct {
		mac       net.HardwareAddr
		addresses []string
		// want is the text; "" for an interface that has none.
		want string
	}{
		"an address":          {mac, []string{"192.0.2.1"}, "a=b=02:00:00:00:00:01/192.0.2.1"},
		"two, and of IPv6":    {mac, []string{"fe80::1", "::ffff:192.0.2.2", "192.0.2.3"}, "a=b=02:00:00:00:00:01/192.0.2.2"},
		"none of IPv4":        {mac, []string{"2001:db8::1"}, "a=b=02:00:00:00:00:01"},
		"what is none":        {mac, []string{"0.0.0.0", "127.0.0.1", "224.0.0.1"}, "a=b=02:00:00:00:00:01"},
		"InfiniBand":          {make(net.HardwareAddr, 20), []string{"192.0.2.1"}, ""},
		"without a link's":    {nil, []string{"192.0.2.1"}, ""},
		"two hosts on a wire": {mac, []string{"169.254.1.2"}, "a=b=02:00:00:00:00:01/169.254.1.2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var addresses []netip.Addr
			for _, text := range tc.addresses {
				addresses = append(addresses, netip.MustParseAddr(text))
			}
			made, known := SocketAddressOf("a=b", tc.mac, addresses)
			if !known {
				if tc.want != "" {
					t.Error("the interface has no address")
				}
				return
			}
			if diff := cmp.Diff(tc.want, made.String()); diff != "" {
				t.Error(diff)
			}
			read, err := ParseSocketAddress(made.String())
			if err != nil || read.String() != made.String() {
				t.Errorf("%+v is read as %+v, %v", made, read, err)
			}
		})
	}
}

func TestParseSocketQueue(t *testing.T) {
	if queue, err := ParseSocketQueue("ens2f0:4"); err != nil || queue != (SocketQueue{"ens2f0", 4}) || queue.String() != "ens2f0:4" {
		t.Errorf("%+v, %v", queue, err)
	}
}

// TestStrangeSocketVariables: what the device plugin never writes is refused before it becomes a path or a frame.
func TestStrangeSocketVariables(t *testing.T) {
	for _, text := range []string{"", ":4", "ens2f0", "ens2f0:", "ens2f0:-1", "ens2f0:65536", "ens2f0:4:5", "../etc:4", "..:4", "sixteen-letters.:4", "a b:4"} {
		if queue, err := ParseSocketQueue(text); err == nil {
			t.Errorf("%q is read as %+v", text, queue)
		}
	}
	const mac = "02:00:00:00:00:01"
	for _, text := range []string{
		"", mac, "=" + mac, "ens2f0=", "ens2f0=" + mac + "/", "ens2f0=" + mac + "/2001:db8::1", "ens2f0=" + mac + "/192.0.2", "ens2f0=02:00:00:00:00",
		"ens2f0=02:00:00:00:00:00:00:01", "../etc=" + mac, "ens2f0=" + mac + "/192.0.2.1/24",
	} {
		if address, err := ParseSocketAddress(text); err == nil {
			t.Errorf("%q is read as %+v", text, address)
		}
	}
}
