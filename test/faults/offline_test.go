// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"fmt"
	"slices"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// offline takes a CPU off as writing 0 to its file does: the kernel removes what its folder says about the core, its
// frequency and its idle states, and it is gone from every list of CPUs that are online.
func (n *node) offline(id int) {
	n.t.Helper()
	online, err := cpus.Parse(n.text("/sys/devices/system/cpu/online"))
	n.must(err)
	off := cpus.Of(id)
	n.put("/sys/devices/system/cpu/online", online.Difference(off).String()+"\n")
	n.put("/sys/devices/system/cpu/offline", off.String()+"\n")
	n.put(cpu(id, "online"), "0\n")
	n.remove(cpu(id, "topology"), cpu(id, "cache"), cpu(id, "cpufreq"))
	if n.exists(cpu(id, "cpuidle")) {
		n.remove(cpu(id, "cpuidle"))
	}
	if n.exists(cpu(id, "thermal_throttle")) {
		n.remove(cpu(id, "thermal_throttle"))
	}
	lists := []string{"/sys/devices/system/node/node*/cpulist", "/sys/devices/system/cpu/cpu*/topology/*_list", "/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list"}
	for _, pattern := range lists {
		for _, file := range n.files(pattern) {
			set, err := cpus.Parse(n.text(file))
			n.must(err)
			if set.Contains(id) {
				n.put(file, set.Difference(off).String()+"\n")
			}
		}
	}
}

// TestOfflineCPU: a CPU that somebody took off is called offline, once, and nothing else of it is called wrong.
func TestOfflineCPU(t *testing.T) {
	fleet := newFleet(t)
	for _, name := range []string{xeon, epyc, arm} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := fleet.node(t, name)
			id := n.plan.CPUs.Isolated.Last()
			reports, err := n.judge(row{do: func(n *node) { n.offline(id) }})
			if err != nil {
				t.Fatal(err)
			}
			for way, report := range reports {
				checkOffline(t, way, id, report)
			}
		})
	}
}

// TestOfflineHousekeepingCPU: the plan of a node stays what it is while a CPU of a derived partition is offline, whichever it
// is, and the node is told that the CPU is offline. What the node reported with the CPU is what decides: from the host as it
// is another partition would be derived.
func TestOfflineHousekeepingCPU(t *testing.T) {
	machines := newFleet(t)
	for _, name := range []string{xeon, epyc, arm} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := machines.node(t, name)
			before := n.inventory()
			id := n.plan.CPUs.Housekeeping.Last()
			reports, err := n.judge(row{do: func(n *node) { n.offline(id) }})
			if err != nil {
				t.Fatal(err)
			}
			now := n.inventory()
			settled := topology.Settled(now, before, n.plan.CPUs.Housekeeping.Union(n.plan.CPUs.Isolated))
			if got, want := n.planOf(settled), n.plan.Hash(); got != want {
				t.Errorf("with CPU %d offline the plan is %s, before it was %s", id, got, want)
			}
			if n.planOf(now) == n.plan.Hash() {
				t.Errorf("without memory the plan is the same: CPU %d shows nothing", id)
			}
			message := fmt.Sprintf("housekeeping CPU %d is not online", id)
			for _, found := range reports[asAgent].Results {
				if found.Outcome == v1alpha1.OutcomeFailed && found.Message != message {
					t.Errorf("%s: %s", found.Check.ID, found.Message)
				}
			}
			if !slices.ContainsFunc(reports[asAgent].Results, func(r verify.Result) bool { return r.Message == message }) {
				t.Errorf("nobody says that %s", message)
			}
		})
	}
}

// inventory is what the agent of the node would report.
func (n *node) inventory() *v1alpha1.Inventory {
	n.t.Helper()
	read, err := n.look(n.t.Context())
	n.must(err)
	found, err := topology.FromFacts(read.facts)
	n.must(err)
	return topology.Inventory(read.facts, found)
}

// planOf is the hash of the plan that the operator makes for an inventory.
func (n *node) planOf(inventory *v1alpha1.Inventory) string {
	n.t.Helper()
	hardware, err := topology.FromInventory(inventory)
	n.must(err)
	return fleet.PlanHardware(n.profile, fleet.NewPoolSet(n.pools, nil, nil).On(nil), hardware, manifests.Rules()).Hash
}

func checkOffline(t *testing.T, way string, id int, report verify.Report) {
	t.Helper()
	if reason, refused := isRefused(report); refused {
		t.Fatalf("%s: %s", way, reason)
	}
	for _, found := range report.Results {
		want, message := v1alpha1.OutcomePassed, ""
		if found.Check.ID == "cpu.online" {
			want, message = v1alpha1.OutcomeFailed, fmt.Sprintf("CPU %d: offline", id)
		}
		if found.Outcome != want || message != "" && found.Message != message {
			t.Errorf("%s: %s %s: %s", way, found.Check.ID, found.Outcome, found.Message)
		}
	}
}
