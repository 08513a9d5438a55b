// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"cmp"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

const (
	// Standard attributes (k8s.io/dynamic-resource-allocation/deviceattribute). The constants of that package would
	// bring its access to the host with them.
	attributePCIBusID = "resource.kubernetes.io/pciBusID"
	attributePCIeRoot = "resource.kubernetes.io/pcieRoot"
	attributeNUMANode = "resource.kubernetes.io/numaNode"
)

// Allocation is the way in which the units of a pool are handed out: that of the spec, or the default.
func Allocation(spec *v1alpha1.BypassNICPoolSpec) v1alpha1.AllocationType {
	return cmp.Or(spec.Allocation, v1alpha1.AllocationDevicePlugin)
}

// DriverName is the name of the driver of a pool, and of its DeviceClass. Every pool has a driver of its own, because
// every pool has a process of its own, and the kubelet knows one process for each driver. With the 40 characters of a
// pool's name it has at most 62 of the 63 that the API allows.
func DriverName(pool string) string { return pool + v1alpha1.DriverSuffix }

// PoolOfDriver returns the name of the pool whose driver has this name; false when it is somebody else's driver.
func PoolOfDriver(driver string) (string, bool) {
	return strings.CutSuffix(driver, v1alpha1.DriverSuffix)
}

// ResourceDeviceName is the name of a unit in ResourceSlices, which must be a DNS label: the identifier of DeviceIDs
// with - for each : and .
func ResourceDeviceName(id string) string { return strings.NewReplacer(":", "-", ".", "-").Replace(id) }

// ResourceDevices describes the devices of a pool for ResourceSlices, one entry for each unit, in ascending order of
// PCI address and unit. A device that must not be handed out is not among them; one that is not healthy has the taint
// TaintHealth, which Kubernetes honours since 1.36. What the host does not report is no attribute: a device without
// numaNode satisfies no constraint that names it.
func ResourceDevices(pool Pool, devices []Device) []resourcev1.Device {
	var described []resourcev1.Device
	for _, device := range devices {
		if device.Health == v1alpha1.NICIneligible {
			continue
		}
		for _, id := range DeviceIDs(device) {
			described = append(described, resourcev1.Device{
				Name: ResourceDeviceName(id), Attributes: attributes(pool, device), Taints: taints(device),
			})
		}
	}
	return described
}

func attributes(pool Pool, device Device) map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
	nic := device.NIC
	texts := map[resourcev1.QualifiedName]string{
		attributePCIBusID:               nic.PCIAddress,
		attributePCIeRoot:               nic.PCIeRoot.Value,
		v1alpha1.AttributePool:          pool.Name,
		v1alpha1.AttributeStack:         string(pool.Spec.Stack.Type),
		v1alpha1.AttributeSeries:        device.Series,
		v1alpha1.AttributeDriver:        nic.Driver.Value,
		v1alpha1.AttributeInterface:     nic.Name.Value,
		v1alpha1.AttributeModuleVersion: device.Versions.Module,
		v1alpha1.AttributeUserVersion:   device.Versions.User,
	}
	described := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
	for name, text := range texts {
		if text != "" {
			described[name] = resourcev1.DeviceAttribute{StringValue: new(shorten.Sentence(text, resourcev1.DeviceAttributeMaxValueLength))}
		}
	}
	if node, known := nic.NUMANode.Get(); known {
		described[attributeNUMANode] = resourcev1.DeviceAttribute{IntValue: new(int64(node))}
	}
	if speed, known := nic.SpeedMegabits.Get(); known {
		described[v1alpha1.AttributeLinkSpeed] = resourcev1.DeviceAttribute{IntValue: new(speed)}
	}
	return described
}

func taints(device Device) []resourcev1.DeviceTaint {
	if device.Health == v1alpha1.NICHealthy {
		return nil
	}
	return []resourcev1.DeviceTaint{{
		Key: v1alpha1.TaintHealth, Value: string(device.Health), Effect: resourcev1.DeviceTaintEffectNoSchedule,
	}}
}

// Withhold returns the devices with those unhealthy that containers hold in another way than the pool hands them out
// now: the kubelet's device plugins and ResourceClaims know nothing of each other, and would give one NIC to two. When
// the containers are not known, all devices are Unknown.
func Withhold(pool Pool, devices []Device, containers host.Fact[[]allocation.Container]) []Device {
	withheld := slices.Clone(devices)
	for i := range withheld {
		device := &withheld[i]
		if device.Health == v1alpha1.NICIneligible {
			continue
		}
		if !containers.Known {
			withhold(device, v1alpha1.NICUnknown, sentence("The kubelet does not report who holds NIC %s (%s: %s), so it is not "+
				"handed out; look at the kubelet of the node.", device.NIC.PCIAddress, containers.Source, containers.Reason))
		} else if holder, way, held := heldOtherwise(pool, device.NIC.PCIAddress, containers.Value); held {
			withhold(device, v1alpha1.NICUnhealthy, sentence("NIC %s is held by %s, which got it by %s, as spec.allocation said "+
				"before; it is handed out again when the pod ends.", device.NIC.PCIAddress, holder, way))
		}
	}
	return withheld
}

func withhold(device *Device, health v1alpha1.NICHealth, reason string) {
	if device.Health == v1alpha1.NICHealthy || health == v1alpha1.NICUnhealthy {
		device.Health = health
	}
	device.Reasons = append([]string{reason}, shorten.List(device.Reasons, v1alpha1.MaxNICReasons-1)...)
}

// heldOtherwise returns a container that holds a NIC in another way than the pool hands it out.
func heldOtherwise(pool Pool, address string, containers []allocation.Container) (allocation.Container, v1alpha1.AllocationType, bool) {
	now := Allocation(&pool.Spec)
	for _, container := range containers {
		for _, unit := range unitsOf(container, pool) {
			if unit.nic == address && unit.way != now {
				return container, unit.way, true
			}
		}
	}
	return allocation.Container{}, "", false
}
