// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// Flags of routes, from include/uapi/linux/route.h and include/uapi/linux/ipv6_route.h.
const (
	routeUp        = 0x1
	routeGateway   = 0x2
	routeReject    = 0x200
	routeAnycast   = 0x00100000
	routeLocal     = 0x80000000
	routeMaxLength = maxEntries
)

// routes reads the routes of the host's network namespace: that of process 1, whichever namespace the reader is in
// (/proc/net is that of the reader). Copies of hosts often have /proc/net alone. Of a route with several next
// hops, the IPv4 file names the first.
func (r *reader) routes() Fact[[]Route] {
	folder := procRoot + "/1/net"
	routes := r.routeFile(folder+"/route", parseRoutes)
	if !r.live && routes.Reason == reasonMissing {
		folder = procRoot + "/net"
		routes = r.routeFile(folder+"/route", parseRoutes)
	}
	more := r.routeFile(folder+"/ipv6_route", parseIPv6Routes)
	switch {
	case !routes.Known:
		return routes
	case more.Known:
		routes.Value = append(routes.Value, more.Value...)
	case more.Reason != reasonMissing:
		// Without IPv6 the file is missing; otherwise a default route may hide in it.
		return more
	}
	return routes
}

func (r *reader) routeFile(file string, parse func(string) ([]Route, error)) Fact[[]Route] {
	content, err := r.content(file, mediumFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Absent[[]Route](file, reasonMissing)
	}
	if err == nil {
		content, err = plainText(content)
	}
	if err != nil {
		return Absent[[]Route](file, reasonOf(err))
	}
	routes, err := parse(content)
	if err != nil {
		return Absent[[]Route](file, err.Error())
	}
	return Known(routes, file)
}

// parseRoutes reads /proc/net/route as fib_route_seq_show of net/ipv4/fib_trie.c writes it: a title, then
// interface, destination, gateway, flags, three counts and the mask, addresses as the hexadecimal number that the
// four bytes are to a little-endian processor. Routes that discard packets have the interface * or RTF_REJECT.
func parseRoutes(text string) ([]Route, error) {
	return routeLines(text, func(fields []string) (Route, uint64, error) {
		if fields[0] == "Iface" {
			return Route{}, routeReject, nil
		}
		if len(fields) < 8 {
			return Route{}, 0, errors.New("fewer than 8 columns")
		}
		flags, err := strconv.ParseUint(fields[3], 16, 32)
		destination, gateway, mask := littleEndian(fields[1], &err), littleEndian(fields[2], &err), littleEndian(fields[7], &err)
		if err != nil {
			return Route{}, 0, err
		}
		length, err := prefixLength(mask)
		route := Route{Destination: netip.PrefixFrom(netip.AddrFrom4(destination), length).Masked(), Interface: fields[0]}
		if flags&routeGateway != 0 {
			route.Gateway = netip.AddrFrom4(gateway)
		}
		if fields[0] == "*" {
			flags |= routeReject
		}
		return route, flags, err
	})
}

// parseIPv6Routes reads /proc/net/ipv6_route as rt6_info_route of net/ipv6/ip6_fib.c writes it: destination and
// its prefix length, source and its prefix length, next hop, three counts, flags and the interface. The routes of
// all tables are in it; those to the host itself, to anycast and multicast addresses carry no traffic of a NIC
// that others would not show.
func parseIPv6Routes(text string) ([]Route, error) {
	return routeLines(text, func(fields []string) (Route, uint64, error) {
		if len(fields) < 10 {
			return Route{}, 0, errors.New("fewer than 10 columns")
		}
		length, err := strconv.ParseUint(fields[1], 16, 8)
		if err == nil && length > 128 {
			err = fmt.Errorf("a prefix of %d bits", length)
		}
		flags, flagError := strconv.ParseUint(fields[8], 16, 32)
		destination, gateway := bigEndian(fields[0], &err), bigEndian(fields[4], &err)
		if err = errors.Join(err, flagError); err != nil {
			return Route{}, 0, err
		}
		route := Route{Destination: netip.PrefixFrom(destination, int(length)).Masked(), Interface: fields[9]}
		if flags&routeGateway != 0 {
			route.Gateway = gateway
		}
		if flags&(routeAnycast|routeLocal) != 0 || destination.IsMulticast() || fields[9] == "lo" {
			flags |= routeReject
		}
		return route, flags, nil
	})
}

// routeLines parses the routes of a text, line by line, and keeps those that are up and carry traffic.
func routeLines(text string, parse func(fields []string) (Route, uint64, error)) ([]Route, error) {
	routes, number := []Route{}, 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		route, flags, err := parse(fields)
		if err != nil {
			return nil, fmt.Errorf("line %d is no route: %w", number, err)
		}
		if flags&(routeUp|routeReject) == routeUp {
			routes = append(routes, route)
		}
		if len(routes) > routeMaxLength {
			return nil, tooManyError{routeMaxLength}
		}
	}
	return routes, nil
}

// littleEndian reads the four bytes of an address, unless an error has happened before.
func littleEndian(text string, err *error) (address [4]byte) {
	if *err != nil {
		return address
	}
	number, failure := strconv.ParseUint(text, 16, 32)
	if failure != nil {
		*err = fmt.Errorf("not an address: %q", abbreviate(text))
	}
	binary.LittleEndian.PutUint32(address[:], uint32(number))
	return address
}

// bigEndian reads an IPv6 address of 32 digits, unless an error has happened before.
func bigEndian(text string, err *error) netip.Addr {
	var address [16]byte
	if *err != nil {
		return netip.Addr{}
	}
	if count, failure := hex.Decode(address[:], []byte(text[:min(len(text), 2*len(address))])); failure != nil ||
		len(text) != 2*len(address) || count != len(address) {
		*err = fmt.Errorf("not an IPv6 address: %q", abbreviate(text))
	}
	return netip.AddrFrom16(address)
}

// prefixLength counts the bits of a mask.
func prefixLength(mask [4]byte) (int, error) {
	number := binary.BigEndian.Uint32(mask[:])
	length := bits.LeadingZeros32(^number)
	if number<<length != 0 {
		return 0, fmt.Errorf("not a mask: %08x", number)
	}
	return length, nil
}
