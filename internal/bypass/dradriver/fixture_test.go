// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package dradriver

import (
	"context"
	"errors"
	"strings"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	testPool   = "x2"
	testDriver = "x2.bypass.lowlatency.dev"
	testNode   = "node-1"
	nearZero   = "0000:3b:00.0"
	nearZeroB  = "0000:3b:00.1"
	nearOne    = "0000:af:00.0"
	claimA     = types.UID("11111111-1111-4111-8111-111111111111")
	claimB     = types.UID("22222222-2222-4222-8222-222222222222")
)

// nicOf is a healthy NIC below a root complex of its NUMA node.
func nicOf(address string, node int, change ...func(*bypass.Device)) bypass.Device {
	device := bypass.Device{
		NIC: host.NIC{
			PCIAddress: address, NUMANode: host.Known(node, ""), PCIeRoot: host.Known("pci"+address[:7], ""),
			Name: host.Known("ens"+address[6:7], ""), Driver: host.Known("sfc", ""), SpeedMegabits: host.Known[int64](25000, ""),
		},
		Series: "X2", Health: v1alpha1.NICHealthy, Units: 1,
	}
	for _, one := range change {
		one(&device)
	}
	return device
}

func unhealthy(device *bypass.Device) {
	device.Health, device.Reasons = v1alpha1.NICUnhealthy, []string{"The link is down."}
}

func sharedBy(units int) func(*bypass.Device) {
	return func(device *bypass.Device) { device.Shared, device.Units = true, units }
}

func poolX2() bypass.Pool {
	return bypass.Pool{Name: testPool, Spec: v1alpha1.BypassNICPoolSpec{
		ResourceName: "lowlatency.dev/x2", Allocation: v1alpha1.AllocationDynamic,
		Stack: v1alpha1.BypassStack{Type: v1alpha1.StackOnload},
	}}
}

// editsOf stand for those of a stack: a mount for all, a device file for each NIC, a variable about all of them.
func editsOf(devices []bypass.Device) (bypass.Edits, error) {
	edits := bypass.Edits{Mounts: []bypass.Mount{{HostPath: "/opt/onload/lib", ContainerPath: "/opt/onload/lib"}}}
	addresses := make([]string, 0, len(devices))
	for _, device := range devices {
		if device.NIC.Driver.Value == "vfio-pci" {
			return bypass.Edits{}, errors.New("the IOMMU group is not known")
		}
		addresses = append(addresses, device.NIC.PCIAddress)
		edits.DeviceNodes = append(edits.DeviceNodes, bypass.DeviceNode{Path: "/dev/nic-" + device.NIC.PCIAddress, Permissions: "rw"})
	}
	edits.Environment = []bypass.Variable{{Name: "PCIDEVICE_X2", Value: strings.Join(addresses, ",")}}
	return edits, nil
}

// node is what a driver under test finds.
type node struct {
	mutex      sync.Mutex
	reading    deviceplugin.Reading
	err        error
	containers host.Fact[[]allocation.Container]
}

func nodeWith(devices ...bypass.Device) *node {
	return &node{
		reading:    deviceplugin.Reading{Pool: poolX2(), Devices: devices, Edits: editsOf},
		containers: host.Known([]allocation.Container{}, ""),
	}
}

func (n *node) change(by func(*node)) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	by(n)
}

func (n *node) set(devices ...bypass.Device) {
	n.change(func(n *node) { n.reading.Devices, n.err = devices, nil })
}

func (n *node) evaluate(context.Context) (deviceplugin.Reading, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.reading, n.err
}

func (n *node) list(context.Context) host.Fact[[]allocation.Container] {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.containers
}

// claimOf is a claim with devices, each written as REQUEST=DEVICE.
func claimOf(uid types.UID, name string, given ...string) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "trading", Name: name, UID: uid},
		Status:     resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}},
	}
	for _, one := range given {
		request, device, _ := strings.Cut(one, "=")
		claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: request, Driver: testDriver, Pool: testNode, Device: device,
		})
	}
	return claim
}
