// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package partitions holds the table of what derived partitions cost on simulated machines to the planner.
package partitions

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// hybrid is a processor with eight fast cores and sixteen efficiency cores, without multithreading.
func hybrid() hosttree.Machine {
	m := hosttree.Xeon()
	m.Packages, m.CoresPerNUMANode, m.ThreadsPerCore, m.CoresPerL3, m.EfficiencyCores = 1, 24, 1, 24, 16
	m.Distances = [][]int{{10}}
	for i := range m.NICs {
		m.NICs[i].NUMANode = 0
	}
	return m
}

func hardware(t *testing.T, m hosttree.Machine) *topology.Topology {
	t.Helper()
	dir := t.TempDir()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	h, err := host.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := h.ReadHardware(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read, err := topology.FromFacts(facts)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestTheTableOfCostsIsTrue compares docs/partitions.md with what the planner does.
func TestTheTableOfCostsIsTrue(t *testing.T) {
	data, err := os.ReadFile("../../docs/partitions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, documented, _ := strings.Cut(string(data), "<!-- table -->\n")
	if diff := cmp.Diff(table(t), documented); diff != "" {
		t.Errorf("docs/partitions.md (-want +got):\n%s", diff)
	}
}

func table(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| Machine | `spec.cpus.derived` | Asked | Housekeeping | Isolated | Reason | Findings |\n|---|---|---|---|---|---|---|\n")
	for _, machine := range []struct {
		name string
		of   hosttree.Machine
	}{
		{"Xeon, 2 NUMA nodes, 32 cores", hosttree.Xeon()},
		{"EPYC, 8 NUMA nodes of 2 L3 domains, 64 cores", hosttree.EPYC()},
		{"Arm, 2 NUMA nodes, 80 cores", hosttree.Arm()},
		{"Hybrid, 8 fast and 16 efficiency cores", hybrid()},
	} {
		on := hardware(t, machine.of)
		for _, derived := range []struct {
			text string
			spec v1alpha1.DerivedCPUs
		}{
			{"(omitted)", v1alpha1.DerivedCPUs{}},
			{"housekeepingCores: 2", v1alpha1.DerivedCPUs{HousekeepingCores: 2}},
			{"housekeepingCores: 2, keepNearBypassNICs: Isolated", v1alpha1.DerivedCPUs{HousekeepingCores: 2, KeepNearBypassNICs: v1alpha1.NearNICIsolated}},
			{"housekeepingCores: 2, sharedCaches: Excluded", v1alpha1.DerivedCPUs{HousekeepingCores: 2, SharedCaches: v1alpha1.CacheSharingExcluded}},
			{"housekeepingCores: 2, sharedCaches: Allowed", v1alpha1.DerivedCPUs{HousekeepingCores: 2, SharedCaches: v1alpha1.CacheSharingAllowed}},
			{"housekeepingCores: 2, spread: FirstNUMANode", v1alpha1.DerivedCPUs{HousekeepingCores: 2, Spread: v1alpha1.SpreadFirstNUMANode}},
		} {
			b.WriteString(row(t, on, machine.name, derived.text, derived.spec))
		}
	}
	return b.String()
}

func row(t *testing.T, on *topology.Topology, machine, text string, derived v1alpha1.DerivedCPUs) string {
	t.Helper()
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	profile.Spec.CPUs.Derived = &derived
	profile.Spec.Network.NICs = []v1alpha1.NICSelector{{Vendor: "1924"}}
	planned, findings := plan.New(plan.Input{Profile: profile, Topology: on})
	if planned == nil {
		t.Fatalf("%s, %s: no plan: %+v", machine, text, findings)
	}
	var rules []string
	for _, f := range findings {
		if strings.HasPrefix(f.Field, "spec.cpus") {
			rules = append(rules, strings.TrimPrefix(f.Rule, "plan."))
		}
	}
	d := planned.CPUs.Derivation
	return fmt.Sprintf("| %s | `%s` | %d | %d | %d | %s | %s |\n", machine, text, d.Asked, d.Housekeeping, d.Isolated, d.Reason, listed(rules))
}

// listed names each rule once, with how often it occurs.
func listed(rules []string) string {
	var texts []string
	for i := 0; i < len(rules); {
		count := 1
		for i+count < len(rules) && rules[i+count] == rules[i] {
			count++
		}
		text := rules[i]
		if count > 1 {
			text = fmt.Sprintf("%s (%d)", rules[i], count)
		}
		texts, i = append(texts, text), i+count
	}
	return strings.Join(texts, ", ")
}
