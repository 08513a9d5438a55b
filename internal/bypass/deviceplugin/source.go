// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// Source is where the pool and the host are read.
type Source struct {
	// PoolFile holds the pool as JSON.
	PoolFile string
	// Root is the folder below which the root file system of the host is found, or a snapshot of a host.
	Root string
	// NodeName is the name of the node.
	NodeName string
	// HostAddresses are the addresses by which the cluster knows the node.
	HostAddresses []netip.Addr
	// Containers asks the kubelet who holds what; nil for nobody to ask. A NIC that a container got by a ResourceClaim
	// is not handed out. A kubelet that does not answer keeps nothing back here: the DRA driver goes only after the
	// last pod with a claim, so there is none to be found but in the moment of the change.
	Containers func(context.Context) host.Fact[[]allocation.Container]
}

// Evaluate reads the pool and the host anew. The error names the file or folder that cannot be read.
func (s *Source) Evaluate(ctx context.Context) (Reading, error) {
	text, err := os.ReadFile(s.PoolFile)
	if err != nil {
		return Reading{}, fmt.Errorf("reading the pool: %w", err)
	}
	pool, err := bypass.ParsePool(text)
	if err != nil {
		return Reading{}, fmt.Errorf("%s: %w", s.PoolFile, err)
	}
	facts, err := s.readHost(ctx, &pool.Spec)
	if err != nil {
		return Reading{}, fmt.Errorf("reading the host of node %q: %w", s.NodeName, err)
	}
	in := bypass.Input{Pool: pool, Node: s.NodeName, HostAddresses: s.HostAddresses, Facts: facts}
	return Reading{
		Pool: pool, Devices: s.withhold(ctx, pool, bypass.Devices(in)),
		Edits: func(devices []bypass.Device) (bypass.Edits, error) { return bypass.ContainerEdits(in, devices) },
	}, nil
}

// withhold keeps NICs back that containers hold by claims.
func (s *Source) withhold(ctx context.Context, pool bypass.Pool, devices []bypass.Device) []bypass.Device {
	if s.Containers == nil {
		return devices
	}
	// Who asks here hands out by the device plugin, whatever the file says that the kubelet has not refreshed yet.
	pool.Spec.Allocation = v1alpha1.AllocationDevicePlugin
	containers := s.Containers(ctx)
	if !containers.Known {
		return devices
	}
	return bypass.Withhold(pool, devices, containers)
}

// readHost opens the host anew each time: what is mounted there may have been mounted again.
func (s *Source) readHost(ctx context.Context, spec *v1alpha1.BypassNICPoolSpec) (facts *host.Facts, err error) {
	opened, err := host.Open(s.Root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	facts, err = opened.ReadNICs(ctx, host.Request{UserSpaces: bypass.UserSpaceFolders(spec)})
	if err == nil {
		// These are for others: a NIC that could not be attached the last time must be tried again.
		facts.Bypass.SocketReports = host.Absent[map[string]host.SocketReport](host.SocketReports, "said by this program")
	}
	return facts, err
}
