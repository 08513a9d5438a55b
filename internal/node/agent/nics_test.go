// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func device(address string) bypass.Device {
	return bypass.Device{
		NIC:    host.NIC{PCIAddress: address, Name: host.Known("ens1", "test"), NUMANode: host.Known(1, "test")},
		Series: "X2", Health: v1alpha1.NICUnhealthy, Reasons: []string{"no link"}, Units: 3,
		Versions: bypass.Versions{Module: "9.1.0", User: "9.0.2"},
	}
}

func TestReportNICs(t *testing.T) {
	nameless := bypass.Device{NIC: host.NIC{PCIAddress: "0000:82:00.0"}, Health: v1alpha1.NICIneligible}
	holders := []allocation.Holder{
		{PCIAddress: "0000:81:00.0", Container: allocation.Container{Namespace: "a", Pod: "b", Name: "c"}, Alignment: v1alpha1.AlignmentSplit, Message: "apart"},
		{PCIAddress: "0000:ff:00.0", Container: allocation.Container{Namespace: "a", Pod: "other", Name: "c"}, Alignment: v1alpha1.AlignmentAligned},
	}
	one := int32(1)
	want := []v1alpha1.NodeBypassNIC{
		{
			Pool: "x2", PoolGeneration: 4, PCIAddress: "0000:81:00.0", InterfaceName: "ens1", Model: "X2", NUMANode: &one,
			Health: v1alpha1.NICUnhealthy, Reasons: []string{"no link"}, ModuleVersion: "9.1.0", UserVersion: "9.0.2", Units: 3,
			Users: []v1alpha1.NICUser{{Namespace: "a", Pod: "b", Container: "c", Alignment: v1alpha1.AlignmentSplit, Message: "apart"}},
		},
		{Pool: "x2", PoolGeneration: 4, PCIAddress: "0000:82:00.0", Health: v1alpha1.NICIneligible},
	}
	got := reportNICs(&bypass.Pool{Name: "x2", Generation: 4}, []bypass.Device{device("0000:81:00.0"), nameless}, holders)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReportsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 2000)
	d := device("0000:81:00.0")
	d.NIC.Name, d.Series, d.Versions = host.Known(long, "test"), long, bypass.Versions{Module: long, User: long}
	d.Reasons = nil
	holders := make([]allocation.Holder, 0, 100)
	for i := range 100 {
		d.Reasons = append(d.Reasons, long)
		holders = append(holders, allocation.Holder{
			PCIAddress: "0000:81:00.0", Container: allocation.Container{Namespace: "a", Pod: fmt.Sprint("p", i), Name: "c"}, Message: long,
		})
	}
	nic := reportNICs(&bypass.Pool{Name: "x2"}, []bypass.Device{d}, holders)[0]
	lengths := map[string][2]int{
		"interfaceName": {len(nic.InterfaceName), 32}, "model": {len(nic.Model), 64}, "moduleVersion": {len(nic.ModuleVersion), 64},
		"userVersion": {len(nic.UserVersion), 64}, "reasons": {len(nic.Reasons), 8}, "users": {len(nic.Users), 64},
		"reasons[0]": {len(nic.Reasons[0]), 512}, "users[0].message": {len(nic.Users[0].Message), 512},
	}
	for name, l := range lengths {
		if l[0] > l[1] || l[0] < l[1]-1 {
			t.Errorf("%s has length %d, want %d or one less", name, l[0], l[1])
		}
	}
	many := make([]v1alpha1.NodeBypassNIC, 0, 300)
	for i := range 300 {
		many = append(many, v1alpha1.NodeBypassNIC{Pool: "x2", PCIAddress: fmt.Sprintf("0000:%02x:00.0", i)})
	}
	if merged := mergeNICs(nil, []PoolObservation{{Name: "x2", NICs: many}}); len(merged) != 256 {
		t.Errorf("%d NICs", len(merged))
	}
}

func TestMergeNICs(t *testing.T) {
	nic := func(pool, address string, health v1alpha1.NICHealth, alignment v1alpha1.Alignment) v1alpha1.NodeBypassNIC {
		return v1alpha1.NodeBypassNIC{
			Pool: pool, PCIAddress: address, Health: health, Units: 1, Hugepages: v1alpha1.HugepagesLeft,
			Users: []v1alpha1.NICUser{{Namespace: "a", Pod: "b", Container: "c", Alignment: alignment}},
		}
	}
	const healthy, aligned = v1alpha1.NICHealthy, v1alpha1.AlignmentAligned
	previous := []v1alpha1.NodeBypassNIC{
		nic("gone", "0000:01:00.0", healthy, aligned), nic("lost", "0000:02:00.0", healthy, aligned), nic("x2", "0000:03:00.0", healthy, aligned),
	}
	lost := nic("lost", "0000:02:00.0", v1alpha1.NICUnknown, v1alpha1.AlignmentUnknown)
	lost.Reasons, lost.Users[0].Message = []string{"ConfigMap a/bypass-lost does not exist"}, "ConfigMap a/bypass-lost does not exist"
	lost.Hugepages = v1alpha1.HugepagesUnknown
	want := []v1alpha1.NodeBypassNIC{
		lost, nic("x2", "0000:04:00.0", healthy, aligned), nic("x2", "0000:05:00.0", healthy, aligned),
	}
	got := mergeNICs(previous, []PoolObservation{
		{Name: "x2", NICs: []v1alpha1.NodeBypassNIC{nic("x2", "0000:05:00.0", healthy, aligned), nic("x2", "0000:04:00.0", healthy, aligned)}},
		{Name: "lost", Problem: "ConfigMap a/bypass-lost does not exist"},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if previous[1].Health != healthy || previous[1].Users[0].Alignment != aligned {
		t.Error("the previous status was changed")
	}
}

func TestPoolsTellOfHugepages(t *testing.T) {
	const kibibytes, address = 2048, "0000:81:00.0"
	facts := &host.Facts{
		NICs: []host.NIC{{PCIAddress: address, Vendor: host.Known("1924", "test"), NUMANode: host.Known(1, "test")}},
		NUMANodes: []host.NUMANode{{ID: 1, Hugepages: []host.HugepagePool{{
			SizeKibibytes: kibibytes, Total: host.Known(int64(400), "test"), Free: host.Known(int64(0), "test"),
		}}}},
	}
	pool := &bypass.Pool{Name: "x2", Spec: v1alpha1.BypassNICPoolSpec{
		NICs: []v1alpha1.NICSelector{{Vendor: "1924"}}, ResourceName: "lowlatency.dev/x2",
		Stack:     v1alpha1.BypassStack{Type: v1alpha1.StackEFVI},
		Hugepages: []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}},
	}}
	a := &Agent{Root: t.TempDir(), pools: []poolState{{name: "x2", pool: pool}}}
	observed, _ := a.observePools(t.Context(), facts, nil)
	if len(observed) != 1 || len(observed[0].NICs) != 1 || observed[0].NICs[0].Hugepages != v1alpha1.HugepagesExhausted {
		t.Errorf("%+v, want one NIC whose NUMA node has no page left", observed)
	}
}

func TestTheRootStaysOpen(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/host"
	write(t, path+"/proc/cmdline", "quiet\n")
	var root openedRoot
	first, err := root.open(path)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := root.open(path); err != nil || again != first {
		t.Errorf("opened anew: %v", err)
	}
	rename(t, path, dir+"/old")
	write(t, path+"/proc/cmdline", "splash\n")
	second, err := root.open(path)
	if err != nil || second == first {
		t.Fatalf("the root that took its place was not opened: %v", err)
	}
	facts, err := second.Read(t.Context())
	if err != nil || facts.Kernel.CommandLine.Value != "splash" {
		t.Errorf("%+v, %v", facts, err)
	}
	rename(t, path, dir+"/older")
	if _, err := root.open(path); err == nil {
		t.Error("a root that is gone was opened")
	}
	if err := root.close(); err != nil {
		t.Error(err)
	}
	if err := root.close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
