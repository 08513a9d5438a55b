// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

func TestSplitRoot(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("name=folder", 0o755); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ name, path string }{
		"/":                   {"", "/"},
		"/snapshots/a.tgz":    {"", "/snapshots/a.tgz"},
		"worker-1=/snapshots": {"worker-1", "/snapshots"},
		"a.b.example.com=x=y": {"a.b.example.com", "x=y"},
		"/snapshots/a=b":      {"", "/snapshots/a=b"},
		"No_Name=/x":          {"", "No_Name=/x"},
		"=/x":                 {"", "=/x"},
		"name=folder":         {"", "name=folder"},
	}
	for root, want := range cases {
		if name, path := splitRoot(root); name != want.name || path != want.path {
			t.Errorf("splitRoot(%q) = %q, %q, want %q, %q", root, name, path, want.name, want.path)
		}
	}
}

// TestPlannedOnce holds that who plans to know what to read of a host need not plan again.
func TestPlannedOnce(t *testing.T) {
	wanted := wanted{profile: &v1alpha1.LowLatencyNodeProfile{}}
	if err := yaml.UnmarshalStrict([]byte(profileText), wanted.profile); err != nil {
		t.Fatal(err)
	}
	read, err := readNode(t.Context(), tree(t, small("epyc")), reading{more: wanted.checked})
	if err != nil {
		t.Fatal(err)
	}
	if got := planNodes(wanted, []node{read})[0]; got.Plan == nil || got.Planned != read.planned {
		t.Errorf("planned again: %p instead of %p", got.Planned, read.planned)
	}
}

func TestNodeName(t *testing.T) {
	named := &host.Facts{Name: host.Known("itself", "/proc/sys/kernel/hostname")}
	cases := map[string]struct {
		facts      *host.Facts
		path, want string
	}{
		"its own name":       {named, "/snapshots/other.tgz", "itself"},
		"a snapshot":         {&host.Facts{}, "/snapshots/worker1.tgz", "worker1"},
		"a tar.gz":           {&host.Facts{}, "node.tar.gz", "node"},
		"a tar.bz2":          {&host.Facts{}, "node.tar.bz2", "node"},
		"a folder":           {&host.Facts{}, "/snapshots/b/", "b"},
		"nothing that tells": {&host.Facts{}, "/", "localhost"},
		"the folder itself":  {&host.Facts{}, ".", "localhost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nodeName(tc.facts, tc.path); got != tc.want {
				t.Errorf("nodeName = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestHardwareIsEnoughForATopology holds that who plans from a host's hardware alone plans for the same machine as who reads
// all of it.
func TestHardwareIsEnoughForATopology(t *testing.T) {
	for _, machine := range []hosttree.Machine{hosttree.Xeon(), hosttree.EPYC(), hosttree.Arm(), small("small")} {
		root := tree(t, machine)
		whole, err := readNode(t.Context(), root, reading{})
		if err != nil {
			t.Fatal(err)
		}
		hardware, err := readNode(t.Context(), root, reading{hardware: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole.topology, hardware.topology); diff != "" || whole.name != hardware.name {
			t.Errorf("%s and %s (-whole +hardware):\n%s", whole.name, hardware.name, diff)
		}
		if hardware.facts != nil {
			t.Errorf("%s: facts that are not whole are passed on", hardware.name)
		}
	}
}
