// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// TestSwitchesOfArguments: numbers and words switch on or off, and what is neither does nothing.
func TestSwitchesOfArguments(t *testing.T) {
	for value, want := range map[string][2]bool{
		"1": {true, false}, "2": {true, false}, "-1": {true, false}, "0": {false, true}, "0x0": {false, true},
		"yes": {true, false}, "on": {true, false}, "no": {false, true}, "off": {false, true},
		"": {}, "maybe": {},
	} {
		if got := [2]bool{isOn(value), isOff(value)}; got != want {
			t.Errorf("%q is on and off: %t, want %t", value, got, want)
		}
	}
}

// TestCacheOfCores: the cache that the topology names, else that of the core's CPUs, else none.
func TestCacheOfCores(t *testing.T) {
	domains := map[int]int{4: 7}
	for name, tc := range map[string]struct{ known, first, want int }{
		"named":                {3, 4, 3},
		"by its CPUs":          {unknown, 4, 7},
		"no cache of its CPUs": {unknown, 5, unknown},
	} {
		if got := cacheOf(domains, tc.known, cpus.Of(tc.first)); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

// TestSameKubeletLists: lists of CPUs are compared by their CPUs, and what is no list equals nothing.
func TestSameKubeletLists(t *testing.T) {
	same := sameKubeletValue("reservedSystemCPUs")
	for name, tc := range map[string]struct {
		a, b string
		want bool
	}{
		"two spellings": {"0-1,4", "0,1,4", true}, "other CPUs": {"0-1", "0-2", false},
		"no list and none": {"x", "", false}, "none and no list": {"", "x", false}, "none": {"", "", true},
	} {
		if got := same(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

// TestObserveDriver: the drivers of virtual functions are listed in order, whatever the order of the functions.
func TestObserveDriver(t *testing.T) {
	const parent = "0000:3b:00.0"
	nic := func(address, driver string, functions ...string) host.NIC {
		return host.NIC{PCIAddress: address, Driver: host.Known(driver, "driver"), VirtualFunctions: functions}
	}
	facts := &host.Facts{NICs: []host.NIC{
		nic(parent, "ice", "0000:3b:01.0", "0000:3b:01.1", "0000:3b:01.2", "0000:3b:01.9"),
		nic("0000:3b:01.0", "vfio-pci"), nic("0000:3b:01.1", "iavf"), nic("0000:3b:01.2", "vfio-pci"),
	}}
	for functions, want := range map[int]string{0: "ice", 3: "iavf, vfio-pci"} {
		if got, reason := (PoolNICPlan{PCIAddress: parent, VirtualFunctions: functions}).observeDriver(facts); got != want || reason != "" {
			t.Errorf("with %d functions: %q (%s), want %q", functions, got, reason, want)
		}
	}
	if got, reason := (PoolNICPlan{PCIAddress: "0000:00:00.0"}).observeDriver(facts); got != "" || reason == "" {
		t.Errorf("a NIC that is not there: %q (%s)", got, reason)
	}
}

// TestNosmtOfSingleThreads: where cores have one thread, there is nothing that an old arm64 kernel could leave on.
func TestNosmtOfSingleThreads(t *testing.T) {
	_, findings := New(Input{Profile: profileWith(smtDisabled), Topology: arm()})
	for _, finding := range findings {
		if finding.Rule == ruleSMT {
			t.Errorf("%s: %s", finding.Rule, finding.Message)
		}
	}
}

// TestOriginsOfSharedScripts: a script that units of two pools run comes from both.
func TestOriginsOfSharedScripts(t *testing.T) {
	machine := xeon()
	plan, findings := poolsOn(machine, []Pool{poolWith("feed", machine.NICs[:1], vfio), poolWith("orders", machine.NICs[1:2], vfio)})
	if plan == nil {
		t.Fatal(describe(findings))
	}
	want := Origin{Source: FromPool, Detail: "BypassNICPool feed and BypassNICPool orders"}
	for _, file := range plan.Files {
		if file.Path == scriptFolder+"lowlatency-bypass-nic" {
			if diff := cmp.Diff(want, file.Origin); diff != "" {
				t.Errorf("origin of %s (-want +got):\n%s", file.Path, diff)
			}
			return
		}
	}
	t.Error("the plan has no such script")
}

// TestWholeCachesOfOneNUMANode: a NUMA node of which housekeeping has CPUs of every cache keeps its other cores isolated, also
// where caches are not to be shared and the other NUMA nodes give nothing.
func TestWholeCachesOfOneNUMANode(t *testing.T) {
	p := &planner{machine: machineOf(epyc(), v1alpha1.SMTKept)}
	var chosen []core
	for _, c := range p.machine.cores {
		if c.numa == 0 && c.cpus.First() < 5 {
			chosen = append(chosen, c)
		}
	}
	if rounded := p.wholeCaches(chosen); len(rounded) != len(chosen) {
		t.Errorf("%d cores of both caches become %d", len(chosen), len(rounded))
	}
	if rounded := p.wholeCaches(chosen[:1]); len(rounded) != 4 {
		t.Errorf("one core becomes %d, want the 4 of its cache", len(rounded))
	}
}
