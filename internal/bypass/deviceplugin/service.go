// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/cdi"
)

// service is what the kubelet calls, for one registration.
type service struct {
	deviceplugin.UnsafeDevicePluginServer

	resource string
	board    *board
	specs    *specFolder
	// handover is nil for none.
	handover Handover
	// stopped ends the streams.
	stopped chan struct{}
	// lost is closed when the kubelet has ended a stream.
	lost     chan struct{}
	lostOnce sync.Once
	// asked is closed when the kubelet has asked for the units.
	asked     chan struct{}
	askedOnce sync.Once
}

func newService(resource string, shown *board, specs *specFolder, handover Handover) *service {
	return &service{
		resource: resource, board: shown, specs: specs, handover: handover, stopped: make(chan struct{}), lost: make(chan struct{}),
		asked: make(chan struct{}),
	}
}

// GetDevicePluginOptions says that the plugin has preferences.
func (s *service) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return options(), nil
}

// ListAndWatch sends the units, and sends them again whenever they change in what the kubelet is told, until this
// registration or the kubelet ends.
func (s *service) ListAndWatch(_ *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	s.askedOnce.Do(func() { close(s.asked) })
	var sent *inventory
	for {
		now, changed := s.board.Watch()
		if now != nil && now.resource == s.resource && (sent == nil || !slices.Equal(sent.units, now.units)) {
			if err := stream.Send(now.list()); err != nil {
				s.lose()
				return fmt.Errorf("sending the units of %s: %w", s.resource, err)
			}
			sent = now
		}
		select {
		case <-changed:
		case <-s.stopped:
			return nil
		case <-stream.Context().Done():
			s.lose()
			return nil
		}
	}
}

// isAsked reports whether the kubelet has asked for the units.
func (s *service) isAsked() bool { return isClosed(s.asked) }

// isClosed reports whether a channel on which nothing is sent is closed; one that is nil never is.
func isClosed(signal <-chan struct{}) bool {
	select {
	case <-signal:
		return true
	default:
		return false
	}
}

// lose says that a stream has ended that this process did not end.
func (s *service) lose() {
	s.lostOnce.Do(func() { close(s.lost) })
}

// GetPreferredAllocation answers each container with the units that suit it best.
func (s *service) GetPreferredAllocation(
	_ context.Context, request *deviceplugin.PreferredAllocationRequest,
) (*deviceplugin.PreferredAllocationResponse, error) {
	shown, err := s.shown()
	if err != nil {
		return nil, err
	}
	answer := &deviceplugin.PreferredAllocationResponse{}
	for _, container := range request.GetContainerRequests() {
		ids := prefer(shown, container.GetAvailableDeviceIDs(), container.GetMustIncludeDeviceIDs(), int(container.GetAllocationSize()))
		answer.ContainerResponses = append(answer.ContainerResponses, &deviceplugin.ContainerPreferredAllocationResponse{DeviceIDs: ids})
	}
	return answer, nil
}

// Allocate answers each container with the CDI devices of its units and with the variables that depend on all of them.
// It keeps no account: the kubelet does, and asks again for a container whose account it has lost.
func (s *service) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	shown, err := s.shown()
	if err != nil {
		return nil, err
	}
	if err := s.specs.ensure(); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	answer := &deviceplugin.AllocateResponse{}
	for _, container := range request.GetContainerRequests() {
		allocated, err := s.allocate(shown, container.GetDevicesIds())
		if err != nil {
			return nil, err
		}
		answer.ContainerResponses = append(answer.ContainerResponses, allocated)
	}
	return answer, nil
}

// PreStartContainer does nothing: options says that it need not be called.
func (s *service) PreStartContainer(
	context.Context, *deviceplugin.PreStartContainerRequest,
) (*deviceplugin.PreStartContainerResponse, error) {
	return &deviceplugin.PreStartContainerResponse{}, nil
}

func (s *service) shown() (*inventory, error) {
	shown := s.board.Get()
	if shown == nil || shown.resource != s.resource {
		return nil, status.Errorf(codes.Unavailable, "the NICs of %s have not been judged yet; try again", s.resource)
	}
	return shown, nil
}

// allocate answers one container, with what the handover adds for it alone.
func (s *service) allocate(v *inventory, ids []string) (*deviceplugin.ContainerAllocateResponse, error) {
	answer, err := allocate(v, ids)
	if err != nil || s.handover == nil {
		return answer, err
	}
	given, err := s.handover.Allocate(v.shares(ids))
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	for _, variable := range given.Environment {
		answer.Envs[variable.Name] = variable.Value
	}
	for _, mount := range given.Mounts {
		answer.Mounts = append(answer.Mounts, &deviceplugin.Mount{
			HostPath: mount.HostPath, ContainerPath: mount.ContainerPath, ReadOnly: true,
		})
	}
	return answer, nil
}

// shares are the units of a container, in the order of compareIDs.
func (v *inventory) shares(ids []string) []bypass.Share {
	shares := make([]bypass.Share, 0, len(ids))
	for _, id := range slices.SortedFunc(slices.Values(ids), compareIDs) {
		if unit, known := v.unit(id); known {
			device := v.devices[unit.nic]
			shares = append(shares, bypass.Share{ID: id, Device: device, Queues: bypass.QueuesOf(device, id)})
		}
	}
	return shares
}

// allocate answers one container with what the pool says of its NICs.
func allocate(v *inventory, ids []string) (*deviceplugin.ContainerAllocateResponse, error) {
	// The kubelet's order is random; containers with the same units get the same answer.
	ids = slices.SortedFunc(slices.Values(ids), compareIDs)
	answer := &deviceplugin.ContainerAllocateResponse{CdiDevices: make([]*deviceplugin.CDIDevice, 0, len(ids))}
	held := make([]bypass.Device, 0, len(ids))
	prefix := cdi.Kind(v.resource) + "="
	last := ""
	for _, id := range ids {
		unit, err := v.healthyUnit(id)
		if err != nil {
			return nil, err
		}
		if v.isDescribed(unit.nic) {
			answer.CdiDevices = append(answer.CdiDevices, &deviceplugin.CDIDevice{Name: prefix + id})
		}
		if unit.nic != last {
			held = append(held, v.devices[unit.nic])
			last = unit.nic
		}
	}
	edits, err := v.edits(held)
	if err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "%s of %s cannot be handed out together: %v", strings.Join(ids, ", "), v.resource, err)
	}
	answer.Envs = make(map[string]string, len(edits.Environment))
	for _, variable := range edits.Environment {
		answer.Envs[variable.Name] = variable.Value
	}
	return answer, nil
}

// healthyUnit returns a unit that can be handed out. The error is a sentence for the events of the pod.
func (v *inventory) healthyUnit(id string) (unit, error) {
	found, known := v.unit(id)
	switch {
	case !known:
		return unit{}, status.Errorf(codes.NotFound,
			"%s has no device %q on this node: the NIC is gone or no longer belongs to BypassNICPool %q", v.resource, id, v.pool)
	case !found.healthy:
		return unit{}, status.Errorf(codes.FailedPrecondition,
			"device %q of %s cannot be handed out: %s", id, v.resource, bypass.Why(v.reasons[found.nic]))
	default:
		return found, nil
	}
}
