// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
)

func inventoryOf(devices ...bypass.Device) *inventory {
	return newInventory(nodeWith(poolNamed("p", resourceX2), devices...).reading, nil)
}

func idsOf(v *inventory) []string {
	ids := make([]string, 0, len(v.units))
	for _, unit := range v.units {
		ids = append(ids, unit.id)
	}
	return ids
}

// cards are two cards with two ports each on node 0, one card on node 1, and one on a node that nobody knows.
func cards() []bypass.Device {
	return []bypass.Device{
		nic("0000:3b:00.0", 0, v1alpha1.NICHealthy), nic("0000:3b:00.1", 0, v1alpha1.NICHealthy),
		nic("0000:5e:00.0", 0, v1alpha1.NICHealthy), nic("0000:5e:00.1", 0, v1alpha1.NICHealthy),
		nic("0000:af:00.0", 1, v1alpha1.NICHealthy), nic("0000:af:00.1", 1, v1alpha1.NICHealthy),
		nic("0000:d8:00.0", -1, v1alpha1.NICHealthy),
	}
}

func TestPrefer(t *testing.T) {
	three := func() []bypass.Device {
		return []bypass.Device{
			shared(nic(nic0, 0, v1alpha1.NICHealthy), 12), shared(nic(nic0port1, 0, v1alpha1.NICHealthy), 12),
			shared(nic(nic1, 0, v1alpha1.NICHealthy), 12),
		}
	}
	all := idsOf(inventoryOf(cards()...))
	cases := map[string]struct {
		devices         []bypass.Device
		available, must []string
		size            int
		want            []string
	}{
		"the node that just suffices": {cards(), all, nil, 1, []string{"0000:af:00.0"}},
		"the node that has enough, over its cards": {
			cards(), all, nil, 3, []string{"0000:3b:00.0", "0000:5e:00.0", "0000:3b:00.1"},
		},
		"two nodes when none has enough, the larger first": {
			cards(), all, nil, 5, []string{"0000:3b:00.0", "0000:5e:00.0", "0000:3b:00.1", "0000:5e:00.1", "0000:af:00.0"},
		},
		"a node that nobody knows comes last": {
			cards(), []string{"0000:d8:00.0", "0000:af:00.0"}, nil, 1, []string{"0000:af:00.0"},
		},
		"the node and another card of what must be included": {
			cards(), all, []string{"0000:3b:00.1"}, 2, []string{"0000:3b:00.1", "0000:5e:00.0"},
		},
		"what must be included and is not known": {cards(), all, []string{"x"}, 2, []string{"x", "0000:af:00.0"}},
		"no more than must be included":          {cards(), all, []string{"0000:3b:00.1"}, 1, []string{"0000:3b:00.1"}},
		"fewer than wanted":                      {cards(), []string{nic1, "unknown"}, nil, 2, []string{nic1}},
		"nothing":                                {cards(), nil, nil, 1, nil},
		"shares of the NIC with the most free ones": {
			three(), []string{nic0 + "-3", nic0port1 + "-10", nic0port1 + "-9", nic1 + "-0"}, nil, 1, []string{nic0port1 + "-9"},
		},
		"shares of different cards": {
			three(), []string{nic0 + "-3", nic0port1 + "-10", nic0port1 + "-9", nic1 + "-0"}, nil, 3,
			[]string{nic0port1 + "-9", nic1 + "-0", nic0 + "-3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := inventoryOf(tc.devices...)
			given := slices.Clone(tc.available)
			if diff := cmp.Diff(tc.want, prefer(v, tc.available, tc.must, tc.size)); diff != "" {
				t.Errorf("choice (-want +got):\n%s", diff)
			}
			if !slices.Equal(given, tc.available) {
				t.Error("the list of the kubelet was changed")
			}
			slices.Reverse(given)
			if diff := cmp.Diff(tc.want, prefer(v, given, tc.must, tc.size)); diff != "" {
				t.Errorf("choice from a reversed list (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNeighboursShareLate: containers of one share each get NICs of their own as long as there are any.
func TestNeighboursShareLate(t *testing.T) {
	f := newFixture(t)
	f.start(nodeWith(
		poolNamed("p", resourceX2), shared(nic(nic0, 0, v1alpha1.NICHealthy), 2), shared(nic(nic0port1, 0, v1alpha1.NICHealthy), 2),
		shared(nic(nic1, 0, v1alpha1.NICHealthy), 2),
	))
	f.await("units", func() bool { return len(f.kubelet.Allocatable(resourceX2)) == 6 })
	holders := map[string]int{}
	for i := range 6 {
		ids, _, err := f.kubelet.Admit(t.Context(), fakekubelet.Container{Pod: strconv.Itoa(i), Name: container}, resourceX2, 1)
		if err != nil {
			t.Fatal(err)
		}
		holders[allocation.OfDeviceID(ids[0])]++
		if most := i/3 + 1; holders[allocation.OfDeviceID(ids[0])] > most {
			t.Errorf("container %d shares a NIC while another has fewer: %v", i, holders)
		}
	}
	if _, _, err := f.kubelet.Admit(t.Context(), fakekubelet.Container{Pod: "late", Name: container}, resourceX2, 1); err == nil {
		t.Error("a seventh unit was given")
	}
	f.kubelet.Release("", "3")
	if _, _, err := f.kubelet.Admit(t.Context(), fakekubelet.Container{Pod: "late", Name: container}, resourceX2, 1); err != nil {
		t.Error(err)
	}
}

// FuzzPrefer checks what the kubelet relies on: the choice holds what must be included, nothing twice, nothing that is
// not available, and as much as was wanted if there is as much.
func FuzzPrefer(f *testing.F) {
	f.Add(uint16(0xffff), uint16(1), 3)
	f.Add(uint16(0), uint16(0), 1)
	f.Fuzz(func(t *testing.T, availableBits, mustBits uint16, size int) {
		v := inventoryOf(append(cards(), shared(nic("0000:01:00.0", 1, v1alpha1.NICHealthy), 8))...)
		all := idsOf(v)
		available, must := chosen(all, availableBits), chosen(all, availableBits&mustBits)
		size = max(len(must), min(size, len(all)))
		got := prefer(v, available, must, size)
		for _, id := range must {
			if !slices.Contains(got, id) {
				t.Errorf("%s is missing", id)
			}
		}
		for i, id := range got {
			if !slices.Contains(available, id) || slices.Contains(got[:i], id) {
				t.Errorf("%s is not available or chosen twice", id)
			}
		}
		if want := min(size, len(available)); len(got) != want {
			t.Errorf("%d units were chosen, want %d", len(got), want)
		}
	})
}

func chosen(all []string, bits uint16) []string {
	var ids []string
	for i, id := range all {
		if bits&(1<<i) != 0 {
			ids = append(ids, id)
		}
	}
	return ids
}
