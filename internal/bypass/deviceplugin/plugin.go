// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package deviceplugin hands the NICs of one BypassNICPool to the kubelet of a node, as a device plugin of the
// kubelet's API v1beta1.
//
// It needs no credentials and, but for stack AFXDP, no capability: it reads the pool from a file and the host below a folder, and it writes
// two folders, the one of the kubelet's device plugins and the one of the container runtime's CDI specifications.
// Device files and user files reach a container through CDI, which containerd has switched on since 2.0 and CRI-O
// since 1.28; with containerd 1.7, enable_cdi must be set.
//
// A unit that cannot be shown to work is Unhealthy: the kubelet then gives it to no new container and leaves the
// containers that hold it alone. Nothing here ends such a container, and nothing takes its files away: the CDI
// specification outlives the process and even the pool, until the node reboots, because a container that restarts
// within its pod is created from it again.
package deviceplugin

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

const (
	// DefaultInterval is the time between two looks at the host. Files of /sys and /proc announce no change, so a
	// lost link is noticed after this time at most.
	DefaultInterval = 10 * time.Second
	// DefaultKubeletFolder is the kubelet's folder on most distributions.
	DefaultKubeletFolder = "/var/lib/kubelet"
	// DefaultCDIFolder is where container runtimes look for specifications of devices that come and go.
	DefaultCDIFolder = "/var/run/cdi"
)

// Reading is what one look at the pool and the host gives.
type Reading struct {
	Pool bypass.Pool
	// Devices are the NICs of the pool on this node.
	Devices []bypass.Device
	// Edits returns what a container gets that holds units of these devices. An error says why they cannot be used
	// together, or at all.
	Edits func([]bypass.Device) (bypass.Edits, error)
}

// Evaluate looks at the pool and the host. An error says which of them cannot be read.
type Evaluate func(context.Context) (Reading, error)

// Handover gives containers what cannot be described before they are there.
type Handover interface {
	// Prepare makes the NICs of a pool ready. The result has a sentence for each one that cannot be handed out, by
	// its PCI address.
	Prepare(pool bypass.Pool, devices []bypass.Device) map[string]string
	// Allocate returns what a container gets with its shares besides what the pool says of each.
	Allocate(shares []bypass.Share) (bypass.Edits, error)
}

// Plugin serves the units of one pool to the kubelet.
type Plugin struct {
	// Evaluate looks at the host.
	Evaluate Evaluate
	// Handover of sockets; nil for none.
	Handover Handover
	// PoolFile is looked at again as soon as it changes; "" for none.
	PoolFile string
	// KubeletFolder is the kubelet's folder, such as /var/lib/kubelet.
	KubeletFolder string
	// CDIFolder is the folder of CDI specifications, such as /var/run/cdi.
	CDIFolder string
	// Interval between two looks at the host; zero means DefaultInterval.
	Interval time.Duration
	// Log tells what happens to NICs and kubelet; the zero value tells nothing.
	Log logr.Logger
}

// Run serves until the context ends, whatever happens to the hardware, the kubelet or the files meanwhile. The error
// says what this process itself lacks.
func (p *Plugin) Run(ctx context.Context) error {
	watched, err := newWatch(p.Log, filepath.Join(p.KubeletFolder, pluginsFolder), p.PoolFile)
	if err != nil {
		return fmt.Errorf("watching the kubelet's folder: %w", err)
	}
	shown := &board{}
	specs := &specFolder{path: p.CDIFolder, log: p.Log}
	kubelet := &registrar{folder: watched.sockets, log: p.Log, board: shown, specs: specs, handover: p.Handover}
	var running sync.WaitGroup
	running.Go(func() { watched.run(ctx) })
	running.Go(func() { p.look(ctx, shown, specs, watched.pool) })
	kubelet.run(ctx, watched)
	running.Wait()
	return nil
}

// look looks at the host every Interval and when the pool changes, and shows what it finds.
func (p *Plugin) look(ctx context.Context, shown *board, specs *specFolder, changed <-chan struct{}) {
	interval := p.Interval
	if interval <= 0 {
		interval = DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	observer := &observer{evaluate: p.Evaluate, handover: p.Handover, specs: specs, board: shown, log: p.Log}
	for ctx.Err() == nil {
		observer.once(ctx)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-ticker.C:
		}
	}
}

// observer turns readings into what is shown to the kubelet.
type observer struct {
	evaluate Evaluate
	// handover is nil for none.
	handover Handover
	specs    *specFolder
	board    *board
	log      logr.Logger
	// failure is the last failure that was logged.
	failure string
}

// once looks at the host once. With a host that cannot be read, or a specification that cannot be written, all units
// that were known are unhealthy: nobody knows whether they would work.
func (o *observer) once(ctx context.Context) {
	before := o.board.Get()
	now, err := o.read(ctx, before)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		o.fail(err)
		if before != nil {
			o.show(before, before.unhealthy(err.Error()))
		}
		return
	}
	if o.failure != "" {
		o.log.Info("The NICs can be judged again")
		o.failure = ""
	}
	o.show(before, now)
}

func (o *observer) read(ctx context.Context, before *inventory) (*inventory, error) {
	reading, err := o.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	if o.handover != nil {
		reading.Devices = withProblems(reading.Devices, o.handover.Prepare(reading.Pool, reading.Devices))
	}
	now := newInventory(reading, before)
	return now, o.specs.write(now)
}

// withProblems are the devices with those unhealthy that could not be made ready.
func withProblems(devices []bypass.Device, problems map[string]string) []bypass.Device {
	devices = slices.Clone(devices)
	for i := range devices {
		if problem, bad := problems[devices[i].NIC.PCIAddress]; bad {
			devices[i].Health = v1alpha1.NICUnhealthy
			devices[i].Reasons = append([]string{problem}, devices[i].Reasons...)
		}
	}
	return devices
}

// fail logs a failure once, not every interval.
func (o *observer) fail(err error) {
	if o.failure != err.Error() {
		o.log.Error(err, "No NIC is handed out until this is mended; containers that hold one keep it")
		o.failure = err.Error()
	}
}

// show shows an inventory and logs what changed for each unit's NIC.
func (o *observer) show(before, now *inventory) {
	for _, change := range changes(before, now) {
		o.log.Info("NIC changed", "pool", now.pool, "nic", change.nic, "health", change.health, "units", change.units,
			"reasons", change.reasons)
	}
	o.board.Set(now)
}

// options are what the kubelet is told about the plugin's abilities.
func options() *deviceplugin.DevicePluginOptions {
	return &deviceplugin.DevicePluginOptions{GetPreferredAllocationAvailable: true}
}
