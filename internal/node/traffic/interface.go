// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// wayTo is the address from which the kernel sends to a host, and the one that it sends to.
func wayTo(host string, port int) (local, peer netip.Addr, err error) {
	connection, err := net.Dial("udp4", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return local, peer, fmt.Errorf("looking for the way to the server: %w", err)
	}
	defer func() { _ = connection.Close() }()
	from, fromErr := netip.ParseAddrPort(connection.LocalAddr().String())
	to, toErr := netip.ParseAddrPort(connection.RemoteAddr().String())
	return from.Addr(), to.Addr(), errors.Join(fromErr, toErr)
}

// LocalAddressTo is the address from which the kernel sends to another one.
func LocalAddressTo(host string, port int) (string, error) {
	local, _, err := wayTo(host, port)
	if err != nil {
		return "", err
	}
	return local.String(), nil
}

// InterfaceWith is the name of the interface that has an address; "" when none has.
func InterfaceWith(address string) (string, error) {
	return interfaceWhere(func(_ *net.Interface, addresses []string) bool { return slices.Contains(addresses, address) })
}

// interfaceTo is the name of the interface by which messages to a host leave, as far as their own address tells: those to an address of this host take the
// loopback interface, whichever has the address.
func interfaceTo(host string, port int) (string, error) {
	local, peer, err := wayTo(host, port)
	if err != nil {
		return "", err
	}
	found, err := interfaceWhere(func(i *net.Interface, addresses []string) bool {
		if local == peer {
			return i.Flags&net.FlagLoopback != 0
		}
		return slices.Contains(addresses, local.String())
	})
	if err == nil && found == "" {
		return "", fmt.Errorf("no interface has address %s, from which messages to %s leave", local, host)
	}
	return found, err
}

// interfaceWhere is the name of the first interface of which is true what is looked for; "" for none.
func interfaceWhere(is func(*net.Interface, []string) bool) (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("listing the interfaces: %w", err)
	}
	for i := range interfaces {
		addresses, err := interfaces[i].Addrs()
		if err != nil {
			return "", fmt.Errorf("listing the addresses of %s: %w", interfaces[i].Name, err)
		}
		var words []string
		for _, one := range addresses {
			if ip, _, err := net.ParseCIDR(one.String()); err == nil {
				words = append(words, ip.String())
			}
		}
		if is(&interfaces[i], words) {
			return interfaces[i].Name, nil
		}
	}
	return "", nil
}
