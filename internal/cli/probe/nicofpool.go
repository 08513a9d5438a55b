// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/testrun"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// checkNIC is an error when the messages of an end do not go by a NIC of the pool by which they have to.
func (e *testEnd) checkNIC(variable func(string) string) error {
	if e.nicOfPool == "" {
		return nil
	}
	wanted, err := traffic.InterfacesOfPool(e.nicOfPool, variable)
	if err != nil {
		return err
	}
	address := e.listen
	if e.role.Value == "Client" {
		if address, err = localAddressTo(e.server, e.port); err != nil {
			return err
		}
	}
	found, err := interfaceWith(address)
	if err != nil {
		return err
	}
	if !slices.Contains(wanted, found) {
		return testrun.Problem{Reason: v1alpha1.TestMeasurementFailed, Message: fmt.Sprintf(
			"messages would leave from address %s of interface %s, and the unit of BypassNICPool %s is of %s: name the address that this NIC has on the node of the server, and give both an address in one network",
			address, found, e.nicOfPool, strings.Join(wanted, ", "))}
	}
	return nil
}

// localAddressTo is the address from which the kernel sends to another one.
func localAddressTo(host string, port int) (string, error) {
	connection, err := net.Dial("udp4", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return "", fmt.Errorf("looking for the way to the server: %w", err)
	}
	defer func() { _ = connection.Close() }()
	address, _, err := net.SplitHostPort(connection.LocalAddr().String())
	return address, err
}

// interfaceWith is the name of the interface that has an address; an error when none has.
func interfaceWith(address string) (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("listing the interfaces: %w", err)
	}
	for i := range interfaces {
		addresses, err := interfaces[i].Addrs()
		if err != nil {
			return "", fmt.Errorf("listing the addresses of %s: %w", interfaces[i].Name, err)
		}
		for _, one := range addresses {
			if ip, _, err := net.ParseCIDR(one.String()); err == nil && ip.String() == address {
				return interfaces[i].Name, nil
			}
		}
	}
	return "", testrun.Problem{Reason: v1alpha1.TestMeasurementFailed, Message: fmt.Sprintf("no interface has address %s, on which the server is to be reached", address)}
}
