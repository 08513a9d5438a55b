// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

func TestExplicitPartition(t *testing.T) {
	cases := map[string]struct {
		machine *topology.Topology
		lists   v1alpha1.ExplicitCPUs
		smt     v1alpha1.SMTMode
		want    CPUPlan
	}{
		"the two lists": {
			machine: small(4, 2),
			lists:   v1alpha1.ExplicitCPUs{Housekeeping: "0,4", Isolated: "1-3,5-7"},
			want:    CPUPlan{Housekeeping: set("0,4"), Isolated: set("1-3,5-7")},
		},
		"all lists": {
			machine: small(8, 1),
			lists: v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-3", Shared: "4", DataPlane: "5-6", Offline: "7",
				DataPlaneLoadBalancing: v1alpha1.LoadBalancingDisabled},
			want: CPUPlan{Housekeeping: set("0,4"), Isolated: set("1-3,5-6"), Shared: set("4"), DataPlane: set("5-6"),
				Offline: set("7"), DataPlaneBalancing: v1alpha1.LoadBalancingDisabled},
		},
		"siblings are dropped without multithreading": {
			machine: small(4, 2),
			lists:   v1alpha1.ExplicitCPUs{Housekeeping: "0,4", Isolated: "1-3,5-7"},
			smt:     v1alpha1.SMTDisabled,
			want:    CPUPlan{Housekeeping: set("0"), Isolated: set("1-3")},
		},
		"siblings need not be listed without multithreading": {
			machine: small(4, 2),
			lists:   v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-3"},
			smt:     v1alpha1.SMTDisabled,
			want:    CPUPlan{Housekeeping: set("0"), Isolated: set("1-3")},
		},
		"a CPU that is offline now may be used": {
			machine: offlined(small(4, 1), 3),
			lists:   v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-3"},
			want:    CPUPlan{Housekeeping: set("0"), Isolated: set("1-3")},
		},
		"strides": {
			machine: small(8, 1),
			lists:   v1alpha1.ExplicitCPUs{Housekeeping: "0-7:1/4", Isolated: "1-3,5-7"},
			want:    CPUPlan{Housekeeping: set("0,4"), Isolated: set("1-3,5-7")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, tc.machine, explicit(tc.lists), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
				s.CPUs.SimultaneousMultithreading = tc.smt
			})
			got := plan.CPUs
			if got.Origin != (Origin{FromField, "spec.cpus.explicit"}) {
				t.Errorf("origin %v", got.Origin)
			}
			got.Origin, got.SMT, got.Isolation, got.Tick = Origin{}, "", "", ""
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("CPUs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplicitFindings(t *testing.T) {
	cases := map[string]struct {
		machine *topology.Topology
		lists   v1alpha1.ExplicitCPUs
		want    []string
		// wantWords are words of the first message.
		wantWords []string
	}{
		"a CPU that does not exist": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-5"},
			want:      []string{"plan.cpus-exist Critical spec.cpus.explicit.isolated"},
			wantWords: []string{"node-1", "CPUs 4-5", "CPUs 0-3"},
		},
		"overlap": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0-1", Isolated: "1-3"},
			want:      []string{"plan.cpus-overlap Critical spec.cpus.explicit.isolated"},
			wantWords: []string{"CPUs 1 ", "spec.cpus.explicit.housekeeping", "spec.cpus.explicit.isolated"},
		},
		"an online CPU in no list": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "2-3"},
			want:      []string{"plan.cpus-covered Critical spec.cpus.explicit"},
			wantWords: []string{"online CPUs 1 "},
		},
		"the boot CPU offline": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "1", Isolated: "2-3", Offline: "0"},
			want:      []string{"plan.boot-cpu Critical spec.cpus.explicit.offline"},
			wantWords: []string{"CPU 0"},
		},
		"an empty list": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0-3"},
			want: []string{"plan.nothing-isolated Critical spec.cpus.explicit"},
		},
		"not a list": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "3-1"},
			want:      []string{"plan.cpu-list Critical spec.cpus.explicit.isolated"},
			wantWords: []string{"3-1"},
		},
		"the boot CPU isolated": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "1", Isolated: "0,2-3"},
			want: []string{"plan.boot-cpu High spec.cpus.explicit"},
		},
		"split siblings": {
			machine: small(4, 2), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-7"},
			want:      []string{"plan.split-siblings High spec.cpus.explicit"},
			wantWords: []string{"0,4"},
		},
		"a NUMA node without housekeeping": {
			machine: xeon(), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0,40", Isolated: "1-39,41-79"},
			want:      []string{"plan.numa-housekeeping Medium spec.cpus.explicit"},
			wantWords: []string{"NUMA node 1"},
		},
		"a shared cache": {
			machine: small2Caches(), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-7"},
			want:      []string{"plan.shared-cache Low spec.cpus.explicit"},
			wantWords: []string{"CPUs 0-3"},
		},
		"a data plane": {
			machine: small(4, 1), lists: v1alpha1.ExplicitCPUs{Housekeeping: "0", Isolated: "1-2", DataPlane: "3"},
			want: []string{"plan.data-plane Medium spec.cpus.explicit.dataPlane"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, findingsOf(tc.machine, explicit(tc.lists))); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			plan, findings := New(Input{Profile: profileWith(explicit(tc.lists)), Topology: tc.machine})
			checkFindings(t, findings)
			if critical := findings[0].Severity == v1alpha1.SeverityCritical; critical != (plan == nil) {
				t.Errorf("critical %t, but plan %v", critical, plan)
			}
			if findings[0].Remedy == "" {
				t.Errorf("finding lacks a remedy: %+v", findings[0])
			}
			for _, word := range tc.wantWords {
				if sentence := findings[0].Sentence("node-1"); !strings.Contains(sentence, word) {
					t.Errorf("sentence %q does not say %q", sentence, word)
				}
			}
		})
	}
}

func TestExplicitWithoutLists(t *testing.T) {
	partition := func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.CPUs.Partition = v1alpha1.PartitionExplicit }
	want := []string{"plan.cpu-list Critical spec.cpus.explicit"}
	if diff := cmp.Diff(want, findingsOf(small(4, 1), partition)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
