// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func text(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

func number(value int64) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{IntValue: &value}
}

// TestResourceDevices describes what the trading host has, from the same devices as the device plugin.
func TestResourceDevices(t *testing.T) {
	in := onloadInput()
	nicAt(in, firstX2).PCIeRoot = host.Known("pci0000:3a", "")
	second := nicAt(in, secondX2)
	second.NUMANode = host.Absent[int]("numa_node", "the firmware reports -1")
	second.Carrier = host.Known(false, "carrier")
	second.SpeedMegabits = host.Absent[int64]("speed", "the link has no speed")
	want := []resourcev1.Device{
		{
			Name: "0000-3b-00-0",
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				deviceattribute.StandardDeviceAttributePCIBusID: text(firstX2),
				deviceattribute.StandardDeviceAttributePCIeRoot: text("pci0000:3a"),
				deviceattribute.StandardDeviceAttributeNUMANode: number(0),
				"lowlatency.dev/pool":                           text("fast"),
				"lowlatency.dev/stack":                          text("Onload"),
				"lowlatency.dev/series":                         text("X2"),
				"lowlatency.dev/driver":                         text("sfc"),
				"lowlatency.dev/interface":                      text("ens1f0"),
				"lowlatency.dev/moduleVersion":                  text(testRelease),
				"lowlatency.dev/userVersion":                    text(testRelease),
				"lowlatency.dev/linkSpeedMegabits":              number(10000),
			},
		},
		{
			Name: "0000-3b-00-1",
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				deviceattribute.StandardDeviceAttributePCIBusID: text(secondX2),
				"lowlatency.dev/pool":                           text("fast"),
				"lowlatency.dev/stack":                          text("Onload"),
				"lowlatency.dev/series":                         text("X2"),
				"lowlatency.dev/driver":                         text("sfc"),
				"lowlatency.dev/interface":                      text("ens1f1"),
				"lowlatency.dev/moduleVersion":                  text(testRelease),
				"lowlatency.dev/userVersion":                    text(testRelease),
			},
			Taints: []resourcev1.DeviceTaint{{Key: v1alpha1.TaintHealth, Value: "Unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}},
		},
	}
	if diff := cmp.Diff(want, ResourceDevices(in.Pool, Devices(in))); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

// TestResourceDevicesAreThoseOfTheDevicePlugin: every unit is one device, and what must not be handed out is none.
func TestResourceDevicesAreThoseOfTheDevicePlugin(t *testing.T) {
	cases := map[string]struct {
		change func(*Input)
		want   []string
	}{
		"whole NICs": {func(*Input) {}, []string{"0000-3b-00-0", "0000-3b-00-1"}},
		"shares": {
			func(in *Input) {
				in.Pool.Spec.Sharing = v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared, MaximumSharesPerNIC: 2}
			},
			[]string{"0000-3b-00-0-0", "0000-3b-00-0-1", "0000-3b-00-1-0", "0000-3b-00-1-1"},
		},
		"one carries the node": {
			func(in *Input) { in.Facts.Bypass.Networks.Value[0].Interface = "ens1f0" }, []string{"0000-3b-00-1"},
		},
		"an older pool that selects them": {
			func(in *Input) {
				other := Claimant{Name: "other", Standing: Standing{Created: new(metav1.Now())}, NICs: in.Pool.Spec.NICs}
				in.Pool.OtherPools = []OtherPool{{Claimant: other, Nodes: []string{testNode}}}
			}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := onloadInput()
			tc.change(&in)
			described := ResourceDevices(in.Pool, Devices(in))
			got := slices.Grow([]string(nil), len(described))
			for _, device := range described {
				got = append(got, device.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongAttributesAreCut(t *testing.T) {
	device := Device{Health: v1alpha1.NICHealthy, Units: 1, Versions: Versions{Module: strings.Repeat("9", 100)}}
	version := *ResourceDevices(Pool{Name: "x2"}, []Device{device})[0].Attributes["lowlatency.dev/moduleVersion"].StringValue
	if len(version) != resourcev1.DeviceAttributeMaxValueLength {
		t.Errorf("the version has %d bytes, want %d", len(version), resourcev1.DeviceAttributeMaxValueLength)
	}
}

func TestResourceDeviceName(t *testing.T) {
	for id, want := range map[string]string{
		"0000:3b:00.0": "0000-3b-00-0", "0000:3b:00.1-12": "0000-3b-00-1-12", "10000:e1:00.7": "10000-e1-00-7",
	} {
		name := ResourceDeviceName(id)
		address, ok := allocation.OfResourceDeviceName(name)
		if name != want || !ok || address != allocation.OfDeviceID(id) {
			t.Errorf("%s is %s and back %s, %v", id, name, address, ok)
		}
		if problems := validation.IsDNS1123Label(name); problems != nil {
			t.Errorf("%s is no label: %v", name, problems)
		}
	}
	for _, name := range []string{"", "gpu-0", "0000-3b-00", "0000-3b--0", "0000-3b-00-0-1-2", "-3b-00-0"} {
		if address, ok := allocation.OfResourceDeviceName(name); ok {
			t.Errorf("%q is taken for NIC %s", name, address)
		}
	}
}

// TestDriverNameFits: with the longest name that a pool may have.
func TestDriverNameFits(t *testing.T) {
	name := DriverName(strings.Repeat("a", 40))
	if problems := validation.IsDNS1123Subdomain(name); problems != nil || len(name) > resourcev1.DriverNameMaxLength {
		t.Errorf("%s has %d characters: %v", name, len(name), problems)
	}
}

func TestAllocation(t *testing.T) {
	for given, want := range map[v1alpha1.AllocationType]v1alpha1.AllocationType{
		"":                              v1alpha1.AllocationDevicePlugin,
		v1alpha1.AllocationDevicePlugin: v1alpha1.AllocationDevicePlugin,
		v1alpha1.AllocationDynamic:      v1alpha1.AllocationDynamic,
	} {
		if got := Allocation(&v1alpha1.BypassNICPoolSpec{Allocation: given}); got != want {
			t.Errorf("allocation %q is %s, want %s", given, got, want)
		}
	}
}

func TestWithhold(t *testing.T) {
	byPlugin := allocation.Container{
		Namespace: "trading", Pod: "feed", Name: "main",
		Devices: []allocation.HeldDevices{{Resource: "lowlatency.dev/fast-nic", IDs: []string{firstX2}}},
	}
	byClaim := allocation.Container{
		Namespace: "trading", Pod: "feed", Name: "main",
		Claimed: []allocation.ClaimedDevice{{Driver: "fast.bypass.lowlatency.dev", Device: ResourceDeviceName(firstX2)}},
	}
	const plugin, dynamic = v1alpha1.AllocationDevicePlugin, v1alpha1.AllocationDynamic
	noAnswer := host.Absent[[]allocation.Container]("kubelet.sock", "no such file")
	cases := map[string]struct {
		allocation v1alpha1.AllocationType
		containers host.Fact[[]allocation.Container]
		// want is the health of the two NICs, and wantReason a part of what is said of the first.
		want       string
		wantReason string
	}{
		"nobody holds any":            {dynamic, host.Known([]allocation.Container{}, ""), "Healthy, Healthy", ""},
		"held in the same way":        {dynamic, host.Known([]allocation.Container{byClaim}, ""), "Healthy, Healthy", ""},
		"held by the plugin":          {dynamic, host.Known([]allocation.Container{byPlugin}, ""), "Unhealthy, Healthy", "container trading/feed/main, which got it by DevicePlugin"},
		"held by a claim":             {plugin, host.Known([]allocation.Container{byClaim}, ""), "Unhealthy, Healthy", "which got it by DynamicResourceAllocation"},
		"the default is the plugin":   {"", host.Known([]allocation.Container{byPlugin}, ""), "Healthy, Healthy", ""},
		"the kubelet does not answer": {dynamic, noAnswer, "Unknown, Unknown", "(kubelet.sock: no such file)"},
		"held by the plugin as well":  {dynamic, host.Known([]allocation.Container{byClaim, byPlugin}, ""), "Unhealthy, Healthy", "is held by"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := onloadInput()
			in.Pool.Spec.Allocation = tc.allocation
			devices := Devices(in)
			got := Withhold(in.Pool, devices, tc.containers)
			if health := string(got[0].Health) + ", " + string(got[1].Health); health != tc.want {
				t.Errorf("health is %s, want %s", health, tc.want)
			}
			if !strings.Contains(strings.Join(got[0].Reasons, " "), tc.wantReason) {
				t.Errorf("reasons are %v, want %q", got[0].Reasons, tc.wantReason)
			}
			if devices[0].Health != v1alpha1.NICHealthy {
				t.Error("the devices that were given have changed")
			}
		})
	}
	ineligible := []Device{{Health: v1alpha1.NICIneligible, Reasons: []string{"It carries the node."}}}
	if diff := cmp.Diff(ineligible, Withhold(Pool{}, ineligible, noAnswer)); diff != "" {
		t.Errorf("a NIC that must not be handed out has changed:\n%s", diff)
	}
}
