// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

func TestDevices(t *testing.T) {
	in := onloadInput()
	in.Facts.NICs[1], in.Facts.NICs[2] = in.Facts.NICs[2], in.Facts.NICs[1]
	in.Facts.Bypass.Networks.Value[0].Interface = "ens1f1"
	type device struct {
		Address, Series string
		Health          v1alpha1.NICHealth
		Units           int
		Versions        Versions
	}
	devices := Devices(in)
	got := make([]device, 0, len(devices))
	for _, d := range devices {
		got = append(got, device{d.NIC.PCIAddress, d.Series, d.Health, d.Units, d.Versions})
	}
	versions := Versions{Module: testRelease, User: testRelease}
	want := []device{{firstX2, "X2", healthy, 1, versions}, {secondX2, "X2", ineligible, 0, versions}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
}

func TestMostSevereReasonsFirst(t *testing.T) {
	in := onloadInput()
	nic := nicAt(in, firstX2)
	nic.Carrier.Value = false
	nic.LinkWidth.Value = 4
	nic.NUMANode = host.Absent[int]("numa_node", "the firmware reports -1")
	in.Facts.Bypass.Onload.ControlPlanePIDs = nothingRead[[]int]("cp_server_pids")
	for range 12 {
		in.Pool.Spec.Stack.Onload.Options = append(in.Pool.Spec.Stack.Onload.Options, v1alpha1.OnloadOption{Name: "EF_X", Value: "1"})
	}
	device := firstDevice(t, in)
	parts := []string{"has no link", "cp_server_pids", "NUMA node", "PCIe link", "EF_X", "EF_X", "EF_X", "EF_X"}
	if device.Health != unhealthy || len(device.Reasons) != len(parts) {
		t.Fatalf("%s with %d reasons, want Unhealthy with %d: %q", device.Health, len(device.Reasons), len(parts), device.Reasons)
	}
	for i, part := range parts {
		if !strings.Contains(device.Reasons[i], part) {
			t.Errorf("reason %d is %q, want %q in it", i, device.Reasons[i], part)
		}
	}
}

func TestUnits(t *testing.T) {
	cases := map[string]struct {
		change     func(in *Input)
		wantHealth v1alpha1.NICHealth
		wantIDs    []string
	}{
		"exclusive": {
			change:     func(in *Input) { in.Pool.Spec.Sharing = v1alpha1.SharingSpec{} },
			wantHealth: healthy, wantIDs: []string{firstX2},
		},
		"two NICs share the count": {
			change:     func(in *Input) { setVIs(in, 6) },
			wantHealth: healthy, wantIDs: []string{firstX2 + "-0", firstX2 + "-1", firstX2 + "-2"},
		},
		"capped": {
			change:     func(in *Input) { in.Pool.Spec.Sharing.MaximumSharesPerNIC = 1 },
			wantHealth: healthy, wantIDs: []string{firstX2 + "-0"},
		},
		"the cap adds none": {
			change:     func(in *Input) { setVIs(in, 2); in.Pool.Spec.Sharing.MaximumSharesPerNIC = 100 },
			wantHealth: healthy, wantIDs: []string{firstX2 + "-0"},
		},
		"beside an older pool": {
			change:     func(in *Input) { setVIs(in, 12); shareWith(in, 4, 100) },
			wantHealth: healthy, wantIDs: []string{firstX2 + "-0", firstX2 + "-1"},
		},
		"beside an older pool that leaves all that is wanted": {
			change:     func(in *Input) { setVIs(in, 12); shareWith(in, 2, 1) },
			wantHealth: healthy, wantIDs: []string{firstX2 + "-0"},
		},
		"all in use": {
			change: func(in *Input) {
				in.Facts.Bypass.Onload.Resources.Value["VI"] = host.ResourceCount{Total: host.Known(2, ""), Current: 2}
			},
			wantHealth: healthy, wantIDs: []string{firstX2 + "-0"},
		},
		"unknown": {
			change:     func(in *Input) { in.Facts.Bypass.Onload.Resources.Value["VI"] = host.ResourceCount{} },
			wantHealth: unknowable,
		},
		"NICs of two models": {
			change:     func(in *Input) { nicAt(*in, secondX2).Device.Value = "0x0c03" },
			wantHealth: unknowable,
		},
		"the other interface is in a pod": {
			change: func(in *Input) {
				setVIs(in, 4)
				nicAt(*in, secondX2).Name = host.Absent[string]("/sys/class/net", "no interface on this device")
			},
			wantHealth: healthy, wantIDs: []string{firstX2 + "-0", firstX2 + "-1"},
		},
		"ineligible": {
			change:     func(in *Input) { in.Facts.Bypass.Networks.Value[0].Interface = "ens1f0" },
			wantHealth: ineligible,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := onloadInput()
			in.Pool.Spec.Sharing.Mode = v1alpha1.SharingShared
			tc.change(&in)
			device := firstDevice(t, in)
			if device.Health != tc.wantHealth {
				t.Errorf("health is %s, want %s: %q", device.Health, tc.wantHealth, device.Reasons)
			}
			ids := DeviceIDs(device)
			if diff := cmp.Diff(tc.wantIDs, ids, cmp.Comparer(func(a, b []string) bool {
				return strings.Join(a, " ") == strings.Join(b, " ")
			})); diff != "" {
				t.Errorf("device IDs (-want +got):\n%s", diff)
			}
			for _, id := range ids {
				if allocation.OfDeviceID(id) != firstX2 || len(id) > 63 {
					t.Errorf("%q is not an ID of %s", id, firstX2)
				}
			}
		})
	}
}

func setVIs(in *Input, total int) {
	in.Facts.Bypass.Onload.Resources.Value["VI"] = host.ResourceCount{Total: host.Known(total, "")}
}

func TestSelect(t *testing.T) {
	one := 1
	nics := []topology.NIC{
		{PCIAddress: "fffe:01:00.0", Name: "mid0", Vendor: "8086", Device: "1592", Driver: "ice"},
		{PCIAddress: "10000:01:00.0", Name: "far0", Vendor: "8086", Device: "1592", Driver: "ice"},
		{PCIAddress: secondX2, Name: "ens1f1", Vendor: "1924", Device: "0b03", Driver: "sfc", NUMANode: &one},
		{PCIAddress: firstX2, Name: "ens1f0", Vendor: "1924", Device: "0b03", Driver: "sfc"},
		{PCIAddress: "0000:3b:00.4", Vendor: "1924", Device: "1b03", Driver: "vfio-pci", PhysicalFunction: firstX2},
	}
	cases := map[string]struct {
		term v1alpha1.NICSelector
		want []string
	}{
		"vendor":         {v1alpha1.NICSelector{Vendor: "1924"}, []string{firstX2, secondX2}},
		"other vendor":   {v1alpha1.NICSelector{Vendor: "10ee"}, nil},
		"device":         {v1alpha1.NICSelector{Vendor: "1924", Devices: []v1alpha1.PCIID{"0a03", "0b03"}}, []string{firstX2, secondX2}},
		"driver":         {v1alpha1.NICSelector{Drivers: []v1alpha1.DriverName{"ice", "sfc"}}, []string{firstX2, secondX2, "fffe:01:00.0", "10000:01:00.0"}},
		"name":           {v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1f1"}}, []string{secondX2}},
		"beginning":      {v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1*"}}, []string{firstX2, secondX2}},
		"a name is full": {v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"ens1"}}, nil},
		"address":        {v1alpha1.NICSelector{PCIAddresses: []v1alpha1.PCIAddress{secondX2}}, []string{secondX2}},
		"NUMA node":      {v1alpha1.NICSelector{Vendor: "1924", NUMANodes: []int32{1}}, []string{secondX2}},
		"role":           {v1alpha1.NICSelector{Vendor: "1924", Role: v1alpha1.RoleVirtualFunction}, []string{"0000:3b:00.4"}},
		"link":           {v1alpha1.NICSelector{Vendor: "1924", Link: v1alpha1.LinkUp}, []string{firstX2, secondX2}},
		"no name matches no NIC without one": {
			v1alpha1.NICSelector{Interfaces: []v1alpha1.InterfacePattern{"*"}, Role: v1alpha1.RoleVirtualFunction}, nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, nic := range topology.SelectNICs([]v1alpha1.NICSelector{{Vendor: "ffff"}, tc.term}, nics) {
				got = append(got, nic.PCIAddress)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("NICs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLinkUpFollowsTheLink(t *testing.T) {
	in := onloadInput()
	in.Pool.Spec.NICs[0].Link = v1alpha1.LinkUp
	nicAt(in, firstX2).Carrier.Value = false
	nicAt(in, secondX2).Carrier = nothingRead[bool]("carrier")
	devices := Devices(in)
	if len(devices) != 1 || devices[0].NIC.PCIAddress != secondX2 || devices[0].Health != unknowable {
		t.Errorf("the pool has %v, want the NIC alone whose link is not known", devices)
	}
}

func TestSeries(t *testing.T) {
	cases := map[string]struct{ vendor, device, want string }{
		"X2":                   {"0x1924", "0x0b03", "X2"},
		"X2 without prefix":    {"1924", "0B03", "X2"},
		"virtual function":     {"0x1924", "0x1b03", "X2"},
		"8000":                 {"0x1924", "0x0a03", "8000"},
		"X4":                   {"0x1924", "0x2c03", "X4"},
		"X3":                   {"0x10ee", "0x5084", "X3"},
		"device of one vendor": {"0x8086", "0x0b03", ""},
		"nothing":              {"", "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, known := ModelOf(tc.vendor, tc.device); got.Series != tc.want || known != (tc.want != "") {
				t.Errorf("the series is %q, want %q", got.Series, tc.want)
			}
		})
	}
}

func TestParsePool(t *testing.T) {
	text, err := json.Marshal(onloadInput().Pool)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := ParsePool(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(onloadInput().Pool, pool); diff != "" {
		t.Errorf("pool (-written +read):\n%s", diff)
	}
	bad := map[string]string{
		"nothing":         "",
		"no name":         strings.Replace(string(text), `"fast"`, `""`, 1),
		"unknown field":   strings.Replace(string(text), `"generation"`, `"age"`, 1),
		"something after": string(text) + "{}",
		"other section":   strings.Replace(string(text), `"type":"Onload"`, `"type":"EFVI"`, 1),
		"no type":         `{"name":"fast","generation":1,"spec":{}}`,
	}
	for name, text := range bad {
		t.Run(name, func(t *testing.T) {
			if pool, err := ParsePool([]byte(text)); err == nil {
				t.Errorf("was read as %+v", pool)
			}
		})
	}
}

func FuzzParsePool(f *testing.F) {
	text, err := json.Marshal(virtualInput(2).Pool)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"name":"a","spec":{"stack":{"type":"VFIO"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		pool, err := ParsePool(text)
		if err != nil {
			return
		}
		in := onloadInput()
		in.Pool = pool
		for _, device := range Devices(in) {
			if (device.Health == ineligible) && device.Units != 0 {
				t.Errorf("NIC %s is ineligible and has %d units", device.NIC.PCIAddress, device.Units)
			}
		}
	})
}

// TestUnitsOfAStackThatCannotShare: how many containers may hold such a NIC is not known, rather than none.
func TestUnitsOfAStackThatCannotShare(t *testing.T) {
	in := Input{Pool: Pool{Spec: v1alpha1.BypassNICPoolSpec{
		Sharing: v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared},
		Stack:   v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}},
	}}}
	if units, known := Units(in, &Claim{}, host.NIC{}); units != 0 || known {
		t.Errorf("Units() = %d, %t, want 0 and unknown", units, known)
	}
}

// shareWith lets the pool and an older one agree about all NICs, with their shares.
func shareWith(in *Input, shares, own int32) {
	in.Pool.Created = &metav1.Time{Time: time.Unix(2000, 0)}
	in.Pool.Spec.Sharing = v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared, MaximumSharesPerNIC: own, WithPools: []string{"older"}}
	older := claimantOf("older", &in.Pool.Spec, Standing{Created: &metav1.Time{Time: time.Unix(1000, 0)}})
	older.WithPools, older.SharesPerNIC = []string{in.Pool.Name}, shares
	in.Pool.OtherPools = []OtherPool{{Claimant: older, Nodes: []string{in.Node}}}
}

// TestSharedNICsAreDescribed: a pool that gets fewer units than it wants says who has the rest.
func TestSharedNICsAreDescribed(t *testing.T) {
	for name, tc := range map[string]struct {
		shares     int32
		wantHealth v1alpha1.NICHealth
		want       string
	}{
		"some are left": {shares: 4, wantHealth: healthy, want: "have 4 (it is shared with older), so 2 are left of the 100"},
		"none is left":  {shares: 7, wantHealth: unhealthy, want: "have 7 (it is shared with older), so 0 are left of the 100"},
	} {
		in := onloadInput()
		setVIs(&in, 12)
		shareWith(&in, tc.shares, 100)
		device := firstDevice(t, in)
		if text := Why(device.Reasons); device.Health != tc.wantHealth || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %s, %q, want %s with %q", name, device.Health, text, tc.wantHealth, tc.want)
		}
	}
}
