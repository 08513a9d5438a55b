// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

const (
	// SocketContainerFolder is the folder below which a container finds the socket of its allocation, in a folder with the name of each
	// interface: where DPDK's af_xdp driver looks with use_cni and without dp_path.
	SocketContainerFolder = "/tmp/afxdp_dp"

	// ethernetAddressBytes is the length of a MAC address of Ethernet.
	ethernetAddressBytes = 6
	// mostInterfaceBytes is the length of an interface's name (IFNAMSIZ of include/uapi/linux/if.h, less the zero byte).
	mostInterfaceBytes = 15
)

// SocketVariables are the names of the variables that a container gets with sockets of a pool with stack AFXDP.
type SocketVariables struct {
	// Devices has the names of interfaces, in the variable that users of Intel's AF_XDP device plugin know.
	Devices string
	// Queues has a SocketQueue for each queue, and Addresses a SocketAddress for each interface, with spaces between them.
	Queues, Addresses string
}

// SocketVariablesOf are those of a pool.
func SocketVariablesOf(pool string) SocketVariables {
	suffix := strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(pool))
	return SocketVariables{Devices: "AFXDP_DEVICES_" + suffix, Queues: "AFXDP_QUEUES_" + suffix, Addresses: "AFXDP_ADDRESSES_" + suffix}
}

// SocketQueue is a queue of a NIC that a container may have a socket on.
type SocketQueue struct {
	Interface string
	Queue     int
}

func (q SocketQueue) String() string { return q.Interface + ":" + strconv.Itoa(q.Queue) }

// ParseSocketQueue reads what SocketQueue.String has written.
func ParseSocketQueue(text string) (SocketQueue, error) {
	name, number, _ := strings.Cut(text, ":")
	queue, err := strconv.ParseUint(number, 10, 16)
	if err != nil || !isInterface(name) {
		return SocketQueue{}, fmt.Errorf("%q is no queue, as ens2f0:4 is", text)
	}
	return SocketQueue{name, int(queue)}, nil
}

// SocketAddress is what the frames of a program carry that are to come from a NIC, and by which frames reach it.
type SocketAddress struct {
	Interface string
	MAC       net.HardwareAddr
	// IPv4 is the address that the kernel has given the NIC, and for which it answers ARP; the zero value for none.
	IPv4 netip.Addr
}

func (a SocketAddress) String() string {
	text := a.Interface + "=" + a.MAC.String()
	if a.IPv4.IsValid() {
		text += "/" + a.IPv4.String()
	}
	return text
}

// ParseSocketAddress reads what SocketAddress.String has written.
func ParseSocketAddress(text string) (SocketAddress, error) {
	// A name may have a "=", and an address has none.
	at := max(0, strings.LastIndex(text, "="))
	mac, ip, hasIP := strings.Cut(strings.TrimPrefix(text[at:], "="), "/")
	found := SocketAddress{Interface: text[:at]}
	var macErr, ipErr error
	found.MAC, macErr = net.ParseMAC(mac)
	if hasIP {
		found.IPv4, ipErr = netip.ParseAddr(ip)
	}
	if errors.Join(macErr, ipErr) != nil || len(found.MAC) != ethernetAddressBytes || (hasIP && !found.IPv4.Is4()) || !isInterface(found.Interface) {
		return SocketAddress{}, fmt.Errorf("%q is no address of a NIC, as ens2f0=02:00:00:00:00:01/192.0.2.1 is", text)
	}
	return found, nil
}

// isInterface reports whether an interface can have a name: dev_valid_name of net/core/dev.c.
func isInterface(name string) bool {
	return name != "" && len(name) <= mostInterfaceBytes && name != "." && name != ".." && !strings.ContainsAny(name, "/: \t\n\v\f\r\x00")
}

// SocketAddressOf is that of an interface with the MAC address and the addresses that the kernel names, the first of IPv4 counting. Not known
// for what is no interface of Ethernet.
func SocketAddressOf(name string, mac net.HardwareAddr, addresses []netip.Addr) (address SocketAddress, known bool) {
	if len(mac) != ethernetAddressBytes {
		return SocketAddress{}, false
	}
	found := SocketAddress{Interface: name, MAC: mac}
	for _, ip := range addresses {
		if ip = ip.Unmap(); ip.Is4() && !ip.IsLoopback() && !ip.IsMulticast() && !ip.IsUnspecified() {
			found.IPv4 = ip
			break
		}
	}
	return found, true
}
