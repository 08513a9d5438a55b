// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package dradriver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// PrepareResourceClaims gives each claim its devices. What is prepared already stays as it is, whatever became of the
// NIC meanwhile: containers that hold it are created from the specification again.
func (d *Driver) PrepareResourceClaims(_ context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := d.prepare(claim)
		if err != nil {
			d.Log.Error(err, "A claim cannot be prepared", "claim", nameOf(claim))
		} else {
			d.Log.Info("Claim prepared", "claim", nameOf(claim), "devices", len(devices))
		}
		results[claim.UID] = kubeletplugin.PrepareResult{Err: err, Devices: devices}
	}
	return results, nil
}

// UnprepareResourceClaims takes the specifications of claims away. It does not matter who has written them.
func (d *Driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		results[claim.UID] = d.specs().remove(claim.UID)
		d.Log.Info("Claim given back", "claim", claim.String())
	}
	return results, nil
}

func nameOf(claim *resourcev1.ResourceClaim) string { return claim.Namespace + "/" + claim.Name }

func (d *Driver) prepare(claim *resourcev1.ResourceClaim) ([]kubeletplugin.Device, error) {
	shown := d.board.Get()
	if shown == nil {
		return nil, fmt.Errorf("the NICs of BypassNICPool %q on node %s have not been judged yet; the kubelet tries again", d.Pool, d.NodeName)
	}
	wanted, err := d.requested(claim)
	if err != nil {
		return nil, err
	}
	all, err := d.specs().list()
	if err != nil {
		return nil, err
	}
	known := slices.ContainsFunc(all, func(one prepared) bool { return one.uid == claim.UID && one.sameDevices(wanted) })
	if !known {
		if err := checkFree(wanted, all); err != nil {
			return nil, err
		}
		if err := shown.edit(wanted); err != nil {
			return nil, err
		}
		if err := d.specs().write(shown.pool.Spec.ResourceName, wanted); err != nil {
			return nil, err
		}
	}
	return d.answer(shown.pool.Spec.ResourceName, wanted), nil
}

// requested is what the scheduler has given to a claim of this driver's devices.
func (d *Driver) requested(claim *resourcev1.ResourceClaim) (*prepared, error) {
	wanted := &prepared{uid: claim.UID, claim: nameOf(claim)}
	for _, config := range claim.Status.Allocation.Devices.Config {
		if config.Opaque != nil && config.Opaque.Driver == d.name() {
			return nil, fmt.Errorf("claim %s has parameters for driver %s, which takes none; remove config, and use the spec of "+
				"BypassNICPool %q", wanted.claim, d.name(), d.Pool)
		}
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		switch {
		case result.Driver != d.name():
			continue
		case result.Pool != d.NodeName:
			return nil, fmt.Errorf("claim %s has device %s of pool %s, which is not on node %s", wanted.claim, result.Device, result.Pool, d.NodeName)
		case result.AdminAccess != nil && *result.AdminAccess:
			return nil, fmt.Errorf("claim %s asks for administrative access to device %s, which a bypass NIC does not offer", wanted.claim, result.Device)
		}
		wanted.add(resourceclaim.BaseRequestRef(result.Request), result.Device)
	}
	if len(wanted.requests) == 0 {
		return nil, fmt.Errorf("claim %s has no device of driver %s", wanted.claim, d.name())
	}
	return wanted, nil
}

// add adds a device to its request.
func (p *prepared) add(request, device string) {
	for i := range p.requests {
		if p.requests[i].name == request {
			p.requests[i].devices = append(p.requests[i].devices, device)
			return
		}
	}
	p.requests = append(p.requests, preparedRequest{name: request, devices: []string{device}})
}

// checkFree is the last defence against one unit in two claims.
func checkFree(wanted *prepared, all []prepared) error {
	for _, other := range all {
		if other.uid == wanted.uid {
			continue
		}
		for _, request := range wanted.requests {
			for _, device := range request.devices {
				if other.has(device) {
					return fmt.Errorf("device %s is held by claim %s still, so claim %s cannot have it", device, other.claim, wanted.claim)
				}
			}
		}
	}
	return nil
}

func (p *prepared) has(device string) bool {
	return slices.ContainsFunc(p.requests, func(request preparedRequest) bool { return slices.Contains(request.devices, device) })
}

// answer tells the kubelet the CDI devices. The one of a request stands at the first of its devices only: the kubelet
// hands over all of them, and a mount that is told twice is an error for some runtimes.
func (d *Driver) answer(resource string, claim *prepared) []kubeletplugin.Device {
	var devices []kubeletplugin.Device
	for _, request := range claim.requests {
		for i, name := range request.devices {
			device := kubeletplugin.Device{Requests: []string{request.name}, PoolName: d.NodeName, DeviceName: name}
			if i == 0 {
				device.CDIDeviceIDs = []string{cdiID(resource, claim.uid, request.name)}
			}
			devices = append(devices, device)
		}
	}
	return devices
}

// edit fills in what the containers of a claim get. An error says which device cannot be used, and why.
func (s *state) edit(claim *prepared) error {
	for i := range claim.requests {
		request := &claim.requests[i]
		held := make([]bypass.Device, 0, len(request.devices))
		for _, name := range request.devices {
			device, err := s.healthy(name)
			if err != nil {
				return err
			}
			held = append(held, device)
		}
		edits, err := s.edits(held)
		if err != nil {
			return fmt.Errorf("%s cannot be handed out: %w", strings.Join(request.devices, ", "), err)
		}
		request.edits = edits
	}
	return nil
}

// healthy returns the NIC of a device that can be handed out.
func (s *state) healthy(name string) (bypass.Device, error) {
	address, _ := allocation.OfResourceDeviceName(name)
	i := slices.IndexFunc(s.devices, func(device bypass.Device) bool {
		return device.NIC.PCIAddress == address && slices.ContainsFunc(bypass.DeviceIDs(device), func(id string) bool {
			return bypass.ResourceDeviceName(id) == name
		})
	})
	switch {
	case s.failure != nil:
		return bypass.Device{}, s.failure
	case i < 0:
		return bypass.Device{}, fmt.Errorf("device %q is not on this node: the NIC is gone or no longer belongs to BypassNICPool %q", name, s.pool.Name)
	case s.devices[i].Health != v1alpha1.NICHealthy:
		return bypass.Device{}, fmt.Errorf("device %q cannot be handed out: %s", name, bypass.Why(s.devices[i].Reasons))
	default:
		return s.devices[i], nil
	}
}
