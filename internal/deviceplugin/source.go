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
		Pool: pool, Devices: bypass.Devices(in),
		Edits: func(devices []bypass.Device) (bypass.Edits, error) { return bypass.ContainerEdits(in, devices) },
	}, nil
}

// readHost opens the host anew each time: what is mounted there may have been mounted again.
func (s *Source) readHost(ctx context.Context, spec *v1alpha1.BypassNICPoolSpec) (facts *host.Facts, err error) {
	opened, err := host.Open(s.Root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return opened.ReadWith(ctx, host.Request{UserSpaces: bypass.UserSpaceFolders(spec)})
}
