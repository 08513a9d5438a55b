// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/clock"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// DefaultNICInterval is the time between two looks at the NICs of pools. Files of /sys announce no change, such as a link that
// is lost, and it has to be in the status of the pool within ten seconds. The device plugin looks as often.
const DefaultNICInterval = 8 * time.Second

// nicState is what was found out about the NICs of pools.
type nicState struct {
	// reported is what the latest pass over the whole host has found.
	reported []judgement
	// seen is what the latest look has found. Where it says something else than the pass after it, as would be when the two
	// read different facts, one pass is enough.
	seen []judgement
}

// judgement is what is said of one NIC.
type judgement struct {
	pool, address string
	health        v1alpha1.NICHealth
	units         int
	reasons       string
	versions      bypass.Versions
}

func judgementOf(pool string, device *bypass.Device) judgement {
	return judgement{
		pool: pool, address: device.NIC.PCIAddress, health: device.Health, units: device.Units, reasons: strings.Join(device.Reasons, "\n"),
		versions: device.Versions,
	}
}

// await waits until the next pass is due, and reports whether it is to be one over the whole host.
func (a *Agent) await(ctx context.Context, due clock.Timer, changed <-chan struct{}) bool {
	for {
		look := a.clock().NewTimer(orDefault(a.NICInterval, DefaultNICInterval))
		select {
		case <-ctx.Done():
			look.Stop()
			return false
		case <-changed:
			look.Stop()
			return true
		case <-a.Announcements:
			look.Stop()
			a.settle(ctx)
			return true
		case <-due.C():
			look.Stop()
			return false
		case <-look.C():
			if a.nicsChanged(ctx) {
				return true
			}
		}
	}
}

// nicsChanged looks at the NICs of the pools, and reports whether they are not what was reported. A host that cannot be read
// is for the next pass to tell.
func (a *Agent) nicsChanged(ctx context.Context) bool {
	if !slices.ContainsFunc(a.pools, func(state poolState) bool { return state.pool != nil }) {
		return false
	}
	opened, err := a.root.open(a.Root)
	if err != nil {
		return false
	}
	facts, err := opened.ReadNICs(ctx, host.Request{UserSpaces: a.userSpaces()})
	if err != nil {
		return false
	}
	var found []judgement
	for _, state := range a.pools {
		if state.pool == nil {
			continue
		}
		devices := a.devices(state.pool, facts)
		for i := range devices {
			found = append(found, judgementOf(state.name, &devices[i]))
		}
	}
	known := slices.Equal(found, a.nics.reported) || slices.Equal(found, a.nics.seen)
	a.nics.seen = found
	return !known
}

// devices are the NICs of a pool on the host.
func (a *Agent) devices(pool *bypass.Pool, facts *host.Facts) []bypass.Device {
	return bypass.Devices(bypass.Input{Pool: *pool, Node: a.NodeName, HostAddresses: a.HostAddresses, Facts: facts})
}
