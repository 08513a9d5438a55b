// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// vulnerable is a host whose kernel tells this of vulnerabilities, by name.
func vulnerable(states map[string]host.Fact[string]) *host.Facts {
	f := &host.Facts{Settings: map[string]host.Fact[string]{"/sys/kernel/mm/ksm/run": known("0")}}
	for name, state := range states {
		f.Settings[host.VulnerabilityRoot+"/"+name] = state
	}
	return f
}

func TestMitigationsHash(t *testing.T) {
	type states = map[string]host.Fact[string]
	// As kernels with and without running virtual machines print them.
	idle := states{
		"mds":           known("Mitigation: Clear CPU buffers; SMT disabled"),
		"l1tf":          known("Mitigation: PTE Inversion"),
		"itlb_multihit": known("KVM: Mitigation: VMX disabled"),
	}
	with := func(name string, state host.Fact[string]) states {
		changed := states{name: state}
		for other, of := range idle {
			if other != name {
				changed[other] = of
			}
		}
		return changed
	}
	cases := map[string]struct {
		states states
		// same says that the hash is that of the idle host, reported that there is one.
		same, reported bool
	}{
		"the same":                           {with("mds", idle["mds"]), true, true},
		"KVM is loaded":                      {with("l1tf", known("Mitigation: PTE Inversion; VMX: conditional cache flushes, SMT disabled")), true, true},
		"a virtual machine runs":             {with("itlb_multihit", known("KVM: Mitigation: Split huge pages")), true, true},
		"mitigations=off":                    {with("mds", known("Vulnerable; SMT disabled")), false, true},
		"hyper-threading was switched on":    {with("mds", known("Mitigation: Clear CPU buffers; SMT vulnerable")), false, true},
		"a kernel that knows another":        {with("retbleed", known("Not affected")), false, true},
		"l1tf is not mitigated at all":       {with("l1tf", known("Vulnerable; VMX: conditional cache flushes, SMT disabled")), false, true},
		"one that cannot be read":            {with("mds", host.Absent[string](host.VulnerabilityRoot+"/mds", "permission denied")), false, false},
		"a kernel that tells nothing of any": {nil, false, false},
	}
	want := mitigationsHash(vulnerable(idle))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := mitigationsHash(vulnerable(tc.states))
			if (got == want) != tc.same || (got != "") != tc.reported {
				t.Errorf("%q, that of the idle host is %q", got, want)
			}
		})
	}
}

func TestInventoryTellsVersions(t *testing.T) {
	f := smtHost(t)
	f.Settings = vulnerable(map[string]host.Fact[string]{"mds": known("Not affected")}).Settings
	f.NICs = []host.NIC{
		{PCIAddress: "0000:3b:00.0", Driver: known("mlx5_core"), DriverVersion: known("24.10-1.1.4"), FirmwareVersion: known("22.41.1000")},
		{PCIAddress: "0000:3b:00.2", PhysicalFunction: known("0000:3b:00.0"), DriverVersion: known("24.10-1.1.4"), FirmwareVersion: known("22.41.1000")},
		{PCIAddress: "0000:af:00.0", Driver: known("ice")},
	}
	top, err := FromFacts(f)
	if err != nil {
		t.Fatal(err)
	}
	inventory := Inventory(f, top)
	got := map[string]string{"mitigations": inventory.MitigationsHash}
	for i := range inventory.NICs {
		nic := &inventory.NICs[i]
		got[nic.PCIAddress] = nic.DriverVersion + " " + nic.FirmwareVersion
	}
	want := map[string]string{"mitigations": mitigationsHash(f), "0000:3b:00.0": "24.10-1.1.4 22.41.1000", "0000:3b:00.2": " ", "0000:af:00.0": " "}
	if diff := cmp.Diff(want, got); diff != "" || got["mitigations"] == "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	bare := smtHost(t)
	bare.NICs = []host.NIC{{PCIAddress: "0000:3b:00.0", Driver: known("mlx5_core")}, f.NICs[1], f.NICs[2]}
	old, err := FromFacts(bare)
	if err != nil {
		t.Fatal(err)
	}
	if top.Signature() != old.Signature() {
		t.Error("versions make another shape of the node")
	}
}
