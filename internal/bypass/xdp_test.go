// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// socketsInput hands out AF_XDP sockets on the E810 with eight queues, and needs nothing of Onload.
func socketsInput() Input {
	in := inputOf(v1alpha1.BypassStack{Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{}})
	in.Pool.Spec.NICs = []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"ice", "ena", "e1000e", "igb"}}}
	in.Facts.Bypass.Onload = host.Onload{}
	in.Facts.Bypass.DeviceNodes = nothingRead[map[string]host.DeviceNode]("/dev")
	in.Facts.Kernel.Release = host.Known("6.1.0-56-rt-amd64", "/proc/sys/kernel/osrelease")
	nicAt(in, firstE810).ReceiveQueues = host.Known(8, "/sys/class/net/ens2f0/queues")
	return in
}

func sockets(in *Input) *v1alpha1.AFXDPStack { return in.Pool.Spec.Stack.AFXDP }

func onDriver(name string) func(*Input) {
	return func(in *Input) { nicAt(*in, firstE810).Driver = host.Known(name, "driver") }
}

func preferring(change func(*Input)) func(*Input) {
	return func(in *Input) {
		change(in)
		sockets(in).ZeroCopy = v1alpha1.ZeroCopyPreferred
	}
}

func TestDriversForSockets(t *testing.T) {
	nothing := func(*Input) {}
	judgeCases(t, map[string]ruleCase{
		"zero copy":                {socketsInput, nil, healthy, ""},
		"zero copy, not needed":    {socketsInput, preferring(nothing), healthy, ""},
		"no XDP":                   {socketsInput, onDriver("e1000e"), ineligible, "Driver e1000e of NIC ens2f0 (0000:af:00.0) is not known to have native XDP, without which AF_XDP sockets get no frames"},
		"no XDP, but no zero copy": {socketsInput, preferring(onDriver("e1000e")), ineligible, "not known to have native XDP"},
		"copies":                   {socketsInput, onDriver("ena"), ineligible, "Driver ena of NIC ens2f0 (0000:af:00.0) copies every frame, and spec.stack.afxdp.zeroCopy is Required; select NICs with one of the drivers i40e, ice,"},
		"copies, as preferred":     {socketsInput, preferring(onDriver("ena")), healthy, "copies every frame between"},
		"kernel may be too old":    {socketsInput, onDriver("igb"), unknowable, "has zero copy since Linux 6.14 and the node runs 6.1.0-56-rt-amd64"},
		"old kernel, preferred":    {socketsInput, preferring(onDriver("igb")), healthy, ""},
		"kernel not known": {socketsInput, func(in *Input) {
			in.Facts.Kernel.Release = nothingRead[string]("/proc/sys/kernel/osrelease")
		}, unknowable, "The release of the kernel cannot be read"},
		"kernel in words": {socketsInput, func(in *Input) {
			in.Facts.Kernel.Release = host.Known("custom", "/proc/sys/kernel/osrelease")
		}, unknowable, "the node runs custom"},
		"no driver known": {socketsInput, func(in *Input) {
			nicAt(*in, firstE810).Driver = nothingRead[string]("driver")
			in.Pool.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{firstE810}}}
		}, unknowable, "whether it has native XDP is not known"},
		"the node's own NIC": {socketsInput, func(in *Input) {
			in.Pool.Spec.NICs = []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"i40e"}}}
		}, ineligible, "Interface eno1 carries"},
		"link down": {socketsInput, func(in *Input) {
			nicAt(*in, firstE810).Carrier = host.Known(false, "carrier")
		}, unhealthy, "has no link"},
	})
}

// TestReleasesWithZeroCopy says once more since which release of Linux a driver has zero copy; "" for none.
func TestReleasesWithZeroCopy(t *testing.T) {
	want := map[string]string{
		"bnxt_en": "", "ena": "", "i40e": "4.20", "ice": "5.5", "igb": "6.14", "igc": "5.14", "ixgbe": "4.20", "ixgbevf": "", "mlx5_core": "5.3",
		"nfp": "5.18", "qede": "", "sfc": "", "virtio-pci": "6.11",
	}
	got := map[string]string{}
	for _, driver := range xdpDrivers() {
		got[driver.name] = ""
		if driver.hasZeroCopy() {
			got[driver.name] = fmt.Sprintf("%d.%d", driver.zeroCopy.Major, driver.zeroCopy.Minor)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("zero copy since (-want +got):\n%s", diff)
	}
}

func TestQueuesOfNICs(t *testing.T) {
	judgeCases(t, map[string]ruleCase{
		"all wanted": {socketsInput, func(in *Input) { sockets(in).Queues = v1alpha1.AFXDPQueuesSpec{First: new(int32(4)), Count: 4} }, healthy, ""},
		"too many":   {socketsInput, func(in *Input) { sockets(in).Queues.Count = 9 }, unhealthy, "has 8 receive queues (/sys/class/net/ens2f0/queues) and spec.stack.afxdp.queues asks for 9 from number 0 on"},
		"beyond":     {socketsInput, func(in *Input) { sockets(in).Queues.First = new(int32(8)) }, unhealthy, "asks for 1 from number 8 on"},
		"not known": {socketsInput, func(in *Input) {
			nicAt(*in, firstE810).ReceiveQueues = nothingRead[int]("/sys/class/net/ens2f0/queues")
		}, unknowable, "The number of receive queues of ens2f0 (0000:af:00.0) cannot be read"},
		"in a pod": {socketsInput, func(in *Input) {
			in.Pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice}
			nic := nicAt(*in, firstE810)
			nic.Name, nic.Carrier = nothingRead[string]("/sys/class/net"), nothingRead[bool]("/sys/class/net")
			nic.ReceiveQueues = nothingRead[int]("/sys/class/net")
		}, healthy, "in the network namespace of a pod"},
	})
}

// TestWhatTheDevicePluginSays: a NIC that it could not attach is unhealthy for its words, and a kernel without bound sockets
// is said of every NIC and forbids none. Reports of other pools, and pools of other stacks, have no say.
func TestWhatTheDevicePluginSays(t *testing.T) {
	const busy, old = "NIC ens2f0 cannot be given to AF_XDP sockets: 100% busy.", "This kernel lets no program map rings."
	report := func(pool, address, sentence string) func(*Input) {
		return func(in *Input) {
			in.Facts.Bypass.SocketReports = host.Known(map[string]host.SocketReport{pool: {address: sentence}}, host.SocketReports)
		}
	}
	judgeCases(t, map[string]ruleCase{
		"this NIC":                {socketsInput, report("fast", firstE810, busy), unhealthy, busy},
		"another NIC":             {socketsInput, report("fast", firstX2, busy), healthy, ""},
		"another pool":            {socketsInput, report("slow", firstE810, busy), healthy, ""},
		"the node":                {socketsInput, report("fast", "", old), healthy, old},
		"another stack":           {vfioInput, report("fast", firstE810, busy), healthy, ""},
		"the node, another stack": {vfioInput, report("fast", "", old), healthy, ""},
	})
}

func TestUnitsOfQueues(t *testing.T) {
	shared := func(in *Input) { in.Pool.Spec.Sharing.Mode = v1alpha1.SharingShared }
	cases := map[string]struct {
		change func(*Input)
		want   []string
		// wantQueues are those of the last unit.
		wantQueues []int
	}{
		"the NIC as a whole": {func(*Input) {}, []string{"0000:af:00.0"}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		"some of its queues": {func(in *Input) { sockets(in).Queues = v1alpha1.AFXDPQueuesSpec{First: new(int32(6))} }, []string{"0000:af:00.0"}, []int{6, 7}},
		"each queue": {func(in *Input) {
			shared(in)
			sockets(in).Queues = v1alpha1.AFXDPQueuesSpec{First: new(int32(5)), Count: 3}
		}, []string{"0000:af:00.0-5", "0000:af:00.0-6", "0000:af:00.0-7"}, []int{7}},
		"no more than wanted": {func(in *Input) {
			shared(in)
			in.Pool.Spec.Sharing.MaximumSharesPerNIC = 2
			sockets(in).Queues.First = new(int32(3))
		}, []string{"0000:af:00.0-3", "0000:af:00.0-4"}, []int{4}},
		"queues that it has not": {func(in *Input) {
			shared(in)
			sockets(in).Queues.Count = 64
		}, []string{}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := socketsInput()
			tc.change(&in)
			device := firstDevice(t, in)
			ids := DeviceIDs(device)
			if diff := cmp.Diff(tc.want, ids); diff != "" {
				t.Errorf("units (-want +got):\n%s", diff)
			}
			if len(ids) > 0 && !slices.Equal(tc.wantQueues, QueuesOf(device, ids[len(ids)-1])) {
				t.Errorf("queues are %v, want %v", QueuesOf(device, ids[len(ids)-1]), tc.wantQueues)
			}
		})
	}
}

func TestSocketsNeedNothingOfTheNode(t *testing.T) {
	in := socketsInput()
	edits, err := ContainerEdits(in, Devices(in))
	want := Edits{Environment: []Variable{{"PCIDEVICE_LOWLATENCY_DEV_FAST_NIC", firstE810}}}
	if diff := cmp.Diff(want, edits); diff != "" || err != nil {
		t.Errorf("edits (-want +got), %v:\n%s", err, diff)
	}
	if device := firstDevice(t, in); device.Versions != (Versions{}) {
		t.Errorf("versions are %+v", device.Versions)
	}
}

// TestNICsThatKillTheNode: whichever pool a program belongs to, Onload takes a virtual interface on every NIC that
// was registered with it.
func TestNICsThatKillTheNode(t *testing.T) {
	register := func(names ...string) func(*Input) {
		return func(in *Input) {
			interfaces := &in.Facts.Bypass.Onload.Interfaces
			interfaces.Value = append(slices.Clone(interfaces.Value), names...)
		}
	}
	judgeCases(t, map[string]ruleCase{
		"loopback, native pool":       {onloadInput, register("lo"), unhealthy, "Interface lo is registered with sfc_resource and has no native XDP"},
		"loopback, experimental pool": {experimentalInput, register("lo"), unhealthy, "Interface lo is registered"},
		"loopback, ef_vi":             {efviInput, register("lo"), unhealthy, "Interface lo is registered"},
		"another NIC without XDP": {onloadInput, func(in *Input) {
			onDriver("e1000e")(in)
			register("ens2f0")(in)
		}, unhealthy, "NIC ens2f0 (0000:af:00.0) with driver e1000e is registered with sfc_resource and not known to have native XDP"},
		"another NIC by its address": {onloadInput, func(in *Input) {
			onDriver("e1000e")(in)
			register(firstE810)(in)
		}, unhealthy, "may make the kernel panic"},
		"another NIC with XDP":      {onloadInput, register("ens2f0"), healthy, ""},
		"an interface that is away": {onloadInput, register("ens9"), healthy, ""},
		"an interface that is away, beside a NIC without XDP": {onloadInput, func(in *Input) {
			onDriver("e1000e")(in)
			register("ens9")(in)
		}, healthy, ""},
		"no module, nothing to harm": {onloadInput, func(in *Input) {
			register("lo")(in)
			in.Facts.Bypass.Onload.Modules.Value = map[string]string{}
		}, unhealthy, "has not loaded"},
	})
}

// TestDriverTable: each driver is named once, so that what is found of it is all that is said.
func TestDriverTable(t *testing.T) {
	seen := map[string]bool{}
	for _, driver := range xdpDrivers() {
		if seen[driver.name] || strings.TrimSpace(driver.name) == "" {
			t.Errorf("driver %q is named twice or not at all", driver.name)
		}
		seen[driver.name] = true
		if is, known := xdpDriverOf(driver.name); !known || is != driver {
			t.Errorf("driver %q is %+v", driver.name, is)
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d drivers", len(seen))
	}
}
