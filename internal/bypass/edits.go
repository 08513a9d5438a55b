// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// readWrite are the permissions of device files: no container has to make one.
const readWrite = "rw"

// ContainerEdits returns what a container gets that holds devices of the pool, one or several. It fails for a device
// that must not be handed out, and when a file or group that the container needs is not known.
func ContainerEdits(in Input, devices []Device) (Edits, error) {
	if len(devices) == 0 {
		return Edits{}, errors.New("no device of the pool was given to the container")
	}
	held, err := candidatesOf(in, devices)
	if err != nil {
		return Edits{}, err
	}
	edits := Edits{Environment: addresses(in.Pool.Spec.ResourceName, held)}
	if add := held[0].stack.addEdits; add != nil {
		if err := add(&edits, held); err != nil {
			return Edits{}, err
		}
	}
	return edits, nil
}

// candidatesOf are the devices in ascending order of PCI address, each once: a container may hold several shares of
// one NIC.
func candidatesOf(in Input, devices []Device) ([]*candidate, error) {
	byAddress := map[string]*candidate{}
	for _, device := range devices {
		if device.Health == v1alpha1.NICIneligible {
			return nil, fmt.Errorf("NIC %s must not be handed out: %s", device.NIC.PCIAddress, Why(device.Reasons))
		}
		byAddress[device.NIC.PCIAddress] = newCandidate(in, device.NIC, nil)
	}
	return slices.SortedFunc(maps.Values(byAddress), func(a, b *candidate) int {
		return topology.ComparePCIAddresses(a.nic.PCIAddress, b.nic.PCIAddress)
	}), nil
}

func (e *Edits) addNodes(paths ...string) {
	for _, path := range paths {
		node := DeviceNode{Path: path, Permissions: readWrite}
		if !slices.Contains(e.DeviceNodes, node) {
			e.DeviceNodes = append(e.DeviceNodes, node)
		}
	}
}

// addresses tells the container which NICs it holds, in the variable that users of the SR-IOV network device plugin
// know: PCIDEVICE_, the resource in upper case with underscores, and the PCI addresses.
func addresses(resource string, held []*candidate) []Variable {
	list := make([]string, 0, len(held))
	for _, c := range held {
		list = append(list, c.nic.PCIAddress)
	}
	return []Variable{{addressVariable(resource), strings.Join(list, ",")}}
}

func addressVariable(resource string) string {
	return "PCIDEVICE_" + strings.ToUpper(strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(resource))
}
