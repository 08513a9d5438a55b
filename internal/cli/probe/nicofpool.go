// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"fmt"
	"slices"
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
		if address, err = traffic.LocalAddressTo(e.server, e.port); err != nil {
			return err
		}
	}
	found, err := traffic.InterfaceWith(address)
	if err != nil {
		return err
	}
	if found == "" {
		return testrun.Problem{Reason: v1alpha1.TestMeasurementFailed, Message: fmt.Sprintf("no interface has address %s, on which the server is to be reached", address)}
	}
	if !slices.Contains(wanted, found) {
		return testrun.Problem{Reason: v1alpha1.TestMeasurementFailed, Message: fmt.Sprintf(
			"messages would leave from address %s of interface %s, and the unit of BypassNICPool %s is of %s: name the address that this NIC has on the node of the server, and give both an address in one network",
			address, found, e.nicOfPool, strings.Join(wanted, ", "))}
	}
	return nil
}
