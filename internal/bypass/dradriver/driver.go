// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package dradriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/latest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	// registryFolder is where the kubelet looks for the sockets of plugins (kubelet: pkg/kubelet/config,
	// DefaultKubeletPluginsRegistrationDirName), pluginsFolder where plugins keep theirs.
	registryFolder = "plugins_registry"
	pluginsFolder  = "plugins"
	// quietVerbosity is a level of klog that is never logged: messages of the kubelet at full length.
	quietVerbosity = 8
)

// Driver publishes and prepares the NICs of one pool on one node.
type Driver struct {
	// Pool is the name of the BypassNICPool.
	Pool string
	// NodeName is the name of the node, which is also that of the driver's pool of devices.
	NodeName string
	// Evaluate looks at the pool and the host.
	Evaluate deviceplugin.Evaluate
	// Containers asks the kubelet who holds what. A NIC that a container got from the device plugin is not
	// handed out.
	Containers func(context.Context) host.Fact[[]allocation.Container]
	// Client reads claims and writes ResourceSlices.
	Client kubernetes.Interface
	// PoolFile is looked at again when it changes; "" for none.
	PoolFile string
	// KubeletFolder is the kubelet's folder. The kubelet must find the sockets below it under the same path.
	KubeletFolder string
	// CDIFolder is the folder of CDI specifications.
	CDIFolder string
	// Interval between two looks at the host; zero means deviceplugin.DefaultInterval.
	Interval time.Duration
	// Draining publishes nothing. Claims that the scheduler has allocated are still prepared and given back.
	Draining bool
	// Log tells what happens; the zero value tells nothing.
	Log logr.Logger

	// board shows the last look to the calls of the kubelet: nil before the first one.
	board latest.Value[*state]
	// withoutTaints means that the API server keeps no taints; taintsDropped holds one signal of it.
	withoutTaints atomic.Bool
	taintsDropped chan struct{}
	// fatal ends Run.
	fatal context.CancelCauseFunc
}

var _ kubeletplugin.DRAPlugin = (*Driver)(nil)

func (d *Driver) name() string { return bypass.DriverName(d.Pool) }

func (d *Driver) specs() *claimFolder { return &claimFolder{path: d.CDIFolder, driver: d.name()} }

// Run serves until the context ends. The error says what this process itself lacks, or that its sockets are lost. The
// ResourceSlices stay: the kubelet removes them when no driver comes back within half a minute.
func (d *Driver) Run(ctx context.Context) error {
	ctx, d.fatal = context.WithCancelCause(ctx)
	defer d.fatal(nil)
	d.taintsDropped = make(chan struct{}, 1)
	data := filepath.Join(d.KubeletFolder, pluginsFolder, d.name())
	if err := os.MkdirAll(data, 0o750); err != nil {
		return fmt.Errorf("creating the folder of the driver's socket: %w", err)
	}
	if err := d.specs().removeLeftovers(); err != nil {
		d.Log.Error(err, "Files of a driver that was killed stay")
	}
	helper, err := kubeletplugin.Start(klog.NewContext(ctx, d.Log), d,
		kubeletplugin.DriverName(d.name()), kubeletplugin.KubeClient(d.Client), kubeletplugin.NodeName(d.NodeName),
		kubeletplugin.RegistrarDirectoryPath(filepath.Join(d.KubeletFolder, registryFolder)),
		kubeletplugin.PluginDataDirectoryPath(data), kubeletplugin.CDIDirectory(d.CDIFolder),
		kubeletplugin.GRPCVerbosity(quietVerbosity),
	)
	if err != nil {
		return fmt.Errorf("starting driver %s: %w", d.name(), err)
	}
	defer helper.Stop()
	changed, stop := d.watch()
	defer stop()
	d.look(ctx, helper, changed)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// watch tells when the pool may have changed. Without events the pool is read at the next look.
func (d *Driver) watch() (<-chan struct{}, func()) {
	if d.PoolFile == "" {
		return nil, func() {}
	}
	changed, stop, err := deviceplugin.WatchFile(d.Log, d.PoolFile)
	if err != nil {
		d.Log.Error(err, "Changes of the pool are noticed at the next look at the host only")
		return nil, func() {}
	}
	return changed, stop
}

// HandleError logs what went wrong in the background. When the API server does not keep taints, NICs that are not
// healthy are left out instead; without its sockets the process is of no use.
func (d *Driver) HandleError(_ context.Context, err error, message string) {
	d.Log.Error(err, message)
	if dropped, ok := errors.AsType[*resourceslice.DroppedFieldsError](err); ok {
		if d.withoutTaints.CompareAndSwap(false, true) {
			d.taintsDropped <- struct{}{}
			d.Log.Info("The API server keeps no device taints; NICs that are not healthy are left out of ResourceSlices",
				"features", dropped.DisabledFeatures())
		}
		return
	}
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		d.fatal(fmt.Errorf("%s: %w", message, err))
	}
}

// publisher is the part of kubeletplugin.Helper that publishes.
type publisher interface {
	PublishResources(context.Context, resourceslice.DriverResources) error
}

// look looks at the host every Interval and when something has changed, and publishes what differs.
func (d *Driver) look(ctx context.Context, helper publisher, changed <-chan struct{}) {
	interval := d.Interval
	if interval <= 0 {
		interval = deviceplugin.DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var published []resourcev1.Device
	isPublished := false
	for ctx.Err() == nil {
		d.observe(ctx)
		if devices, known := d.devices(); known && (!isPublished || !equality.Semantic.DeepEqual(published, devices)) {
			if err := helper.PublishResources(ctx, resources(d.NodeName, devices)); err != nil {
				d.fatal(fmt.Errorf("publishing ResourceSlices: %w", err))
				return
			}
			published, isPublished = devices, true
			d.Log.Info("Publishing ResourceSlices", "driver", d.name(), "devices", len(devices))
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-d.taintsDropped:
		case <-ticker.C:
		}
	}
}

// observe looks at the host once. When it cannot be read, nobody knows whether a NIC would work.
func (d *Driver) observe(ctx context.Context) {
	before := d.board.Get()
	reading, err := d.Evaluate(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		if before == nil || before.failure == nil || before.failure.Error() != err.Error() {
			d.Log.Error(err, "No NIC is handed out until this is mended; containers that hold one keep it")
		}
		if before != nil {
			d.board.Set(before.failed(err))
		}
		return
	}
	pool := reading.Pool
	// Who holds what matters for the way in which this process hands out, whatever the spec says by now.
	pool.Spec.Allocation = v1alpha1.AllocationDynamic
	now := &state{pool: pool, devices: bypass.Withhold(pool, reading.Devices, d.Containers(ctx)), edits: reading.Edits}
	d.board.Set(now)
}

// devices are those to publish; false before the first reading.
func (d *Driver) devices() ([]resourcev1.Device, bool) {
	shown := d.board.Get()
	switch {
	case d.Draining:
		return nil, true
	case shown == nil:
		return nil, false
	}
	devices := shown.devices
	if d.withoutTaints.Load() {
		devices = onlyHealthy(devices)
	}
	return bypass.ResourceDevices(shown.pool, devices), true
}

// resources puts the devices into slices that are small enough for devices with taints. Without devices there is one
// slice, which says that the driver is there.
func resources(node string, devices []resourcev1.Device) resourceslice.DriverResources {
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{}}}
	for i := 0; i < len(devices); i += resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures {
		slice := resourceslice.Slice{Devices: devices[i:min(len(devices), i+resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures)]}
		if i == 0 {
			pool.Slices[0] = slice
		} else {
			pool.Slices = append(pool.Slices, slice)
		}
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{node: pool}}
}

// state is what the last look at pool and host gave. It is not changed once it is made.
type state struct {
	pool    bypass.Pool
	devices []bypass.Device
	edits   func([]bypass.Device) (bypass.Edits, error)
	// failure says why the host could not be read.
	failure error
}

// failed is the state with every NIC unknown for one reason.
func (s *state) failed(err error) *state {
	changed := *s
	changed.failure = err
	changed.devices = make([]bypass.Device, 0, len(s.devices))
	for _, device := range s.devices {
		if device.Health != v1alpha1.NICIneligible {
			device.Health, device.Reasons = v1alpha1.NICUnknown, []string{err.Error()}
		}
		changed.devices = append(changed.devices, device)
	}
	return &changed
}

func onlyHealthy(devices []bypass.Device) []bypass.Device {
	var healthy []bypass.Device
	for _, device := range devices {
		if device.Health == v1alpha1.NICHealthy {
			healthy = append(healthy, device)
		}
	}
	return healthy
}
