// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// isWithPlan tells that a machine is what it is to be, and works again.
func isWithPlan(s machineState) bool {
	return s.phase == string(v1alpha1.EnactmentInForce) && !s.isOut() && !s.gated && strings.Count(s.conditions, " ") == 2
}

// planned are facts of a machine with the plan of the profile, and how to see them.
func planned() []fact {
	return []fact{
		{"isolated CPUs", "cat /sys/devices/system/cpu/isolated", "1,3"},
		{"CPUs without a tick", "cat /sys/devices/system/cpu/nohz_full", "1,3"},
		{"marker on the command line", "grep -c lowlatency.boot= /proc/cmdline", "1"},
		{"hugepages on NUMA node 0", "cat /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "16"},
		{"hugepages on NUMA node 1", "cat /sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages", "32"},
		{"TuneD's profile", "cat /etc/tuned/active_profile", "lowlatency-lab"},
		{"TuneD runs", "systemctl is-active tuned", "active"},
		{"CPU manager", `grep -o '"policyName":"[a-zA-Z]*"' /var/lib/kubelet/cpu_manager_state`, `"policyName":"static"`},
		{"memory manager", `grep -o '"policyName":"[a-zA-Z]*"' /var/lib/kubelet/memory_manager_state`, `"policyName":"Static"`},
		{"topology manager", "journalctl -b -u kubelet | grep -o 'topologyManagerPolicy: [a-z-]*' | tail -1", "topologyManagerPolicy: single-numa-node"},
		{"the arguments are permanent", "grep -c lowlatency.boot= /etc/default/grub.d/*lowlatency*.cfg", "1"},
		{"the trial's entry is gone", "cat /boot/grub/custom.cfg 2>/dev/null | grep -c lowlatency; true", "0"},
		{"nothing is armed", "grub-editenv /boot/grub/grubenv list | grep -c 'next_entry=.'; true", "0"},
		{"the guard starts before the kubelet", "systemctl show -P Before lowlatency-guard.service | tr ' ' '\\n' | grep -cx kubelet.service; true", "1"},
		{"units that failed", "systemctl list-units --state=failed --plain --no-legend | wc -l", "0"},
	}
}

// TestFleet brings a profile to machines of a real control plane, one after the other, and takes it back. The operator, its agents,
// the guards, GRUB and the kernels do all of it; the test creates a profile, looks, and deletes it. LAB_MACHINES is how many there are.
func TestFleet(t *testing.T) {
	names := []string{"worker-0", "worker-1"}[:number(t, "LAB_MACHINES", 2)]
	f := newFleet(t, names...)
	f.workload()
	f.row("all", fmt.Sprintf("%d machines are ready, the operator is deployed, the workload runs", len(names)))
	before, lines := map[string]string{}, map[string]string{}
	for _, h := range f.hosts {
		before[h.machine.Name()], lines[h.machine.Name()] = h.manifest(), h.run("cat /proc/cmdline")
	}

	profile := f.profile()
	f.prove(fmt.Sprintf("a profile comes to %d machines, one after the other, is verified and permanent", len(names)), func() {
		f.create(profile)
		f.row("all", "the profile is created")
		f.follow("the plan to be in force on all machines", f.all(isWithPlan))
		f.reconnect()
		for _, h := range f.hosts {
			f.expectPlan(h, planned())
		}
		f.workloadRuns()
		f.row("all", "the workload runs")
	})
	f.prove("the profile is deleted: every machine is as before", func() {
		f.must(f.api.Delete(f.t.Context(), profile))
		f.row("all", "the profile is deleted")
		f.gone(profile)
		f.reconnect()
		for _, h := range f.hosts {
			f.expectBack(h, before[h.machine.Name()], lines[h.machine.Name()])
		}
		f.workloadRuns()
		f.row("all", "the workload runs")
	})
}

// gone waits for the end of a profile that was deleted.
func (f *fleet) gone(profile *v1alpha1.LowLatencyNodeProfile) {
	f.t.Helper()
	f.follow("the profile to be gone", func(map[string]machineState) bool {
		err := f.api.Get(f.t.Context(), client.ObjectKeyFromObject(profile), profile)
		return err != nil && client.IgnoreNotFound(err) == nil
	})
}

// bootFault is an argument with which no kernel comes up.
type bootFault struct {
	// what says it in the table, console what the machine prints for it.
	what, argument, console string
}

// bootFaults have initcall_blacklist=, of which a profile may accept the risk: one that names another root is refused before any host sees it.
func bootFaults() []bootFault {
	return []bootFault{
		// Without its initial memory disk the kernel has no driver for the root.
		{"arguments with which the kernel panics", "initcall_blacklist=populate_rootfs", "Kernel panic"},
		{"arguments with which the root does not exist", "initcall_blacklist=virtio_blk_init", "Gave up waiting for root file system device"},
	}
}

// TestFleetStops brings arguments to two machines with which none comes up: the first comes back with its old line by itself and
// says so, and the second is never touched.
func TestFleetStops(t *testing.T) {
	f := newFleet(t, "worker-0", "worker-1")
	f.workload()
	before, lines := map[string]string{}, map[string]string{}
	for _, h := range f.hosts {
		before[h.machine.Name()], lines[h.machine.Name()] = h.manifest(), h.run("cat /proc/cmdline")
	}
	for _, fault := range bootFaults() {
		f.follow("the machines to be available", f.all(func(s machineState) bool { return !s.isOut() }))
		f.counted = map[string]counts{}
		profile := f.profile()
		profile.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{v1alpha1.KernelArgument(fault.argument)}
		profile.Spec.AcceptedRisks = []v1alpha1.AcceptedRisk{{Setting: fault.argument, Reason: "this is what is tried"}}
		f.prove(fault.what+": back on the old line by itself, said, and the second machine never touched", func() {
			f.create(profile)
			f.said("lab", v1alpha1.ReasonEnactmentFailed, "worker-")
			f.follow("the machines to be available", f.all(func(s machineState) bool { return !s.isOut() }))
			f.rest(40 * time.Second)
			f.reconnect()
			f.expectFirstOnly(fault, lines, before)
		})
		f.prove("the profile is deleted: both machines are as before", func() {
			f.must(f.api.Delete(f.t.Context(), profile))
			f.gone(profile)
			for _, h := range f.hosts {
				f.expectBack(h, before[h.machine.Name()], lines[h.machine.Name()])
			}
		})
	}
}

// expectFirstOnly asserts that one machine has tried, and the other was left alone.
func (f *fleet) expectFirstOnly(fault bootFault, lines, before map[string]string) {
	f.t.Helper()
	tried := 0
	for _, h := range f.hosts {
		name := h.machine.Name()
		if now := h.run("cat /proc/cmdline"); now != lines[name] {
			f.t.Errorf("%s runs with %q, and %q was before", name, now, lines[name])
		}
		got, last := f.counted[name], f.seen[name]
		hasTried := got.reboots > 0
		f.row(name, fmt.Sprintf("reboots %d, cordons %d, %s", got.reboots, got.cordons, last.reason))
		if !hasTried {
			f.expectBack(h, before[name], lines[name])
			if got != (counts{taints: 1}) {
				f.t.Errorf("%s was to be left alone: %+v", name, got)
			}
			continue
		}
		tried++
		if got.reboots != 1 || got.cordons != 1 || last.phase != string(v1alpha1.EnactmentTakenBack) {
			f.t.Errorf("%s: %+v, %s", name, got, last)
		}
		if !strings.Contains(h.machine.Console(1<<20), fault.console) {
			f.t.Errorf("the console of %s does not say %q", name, fault.console)
		}
	}
	if tried != 1 {
		f.t.Errorf("%d machines have tried, want 1", tried)
	}
}

// fact is something to be seen on a machine, and how.
type fact struct{ name, command, want string }

func (f *fleet) expectPlan(h *host, facts []fact) {
	f.t.Helper()
	f.row(h.machine.Name(), h.run("cat /proc/cmdline"))
	wrong := 0
	for _, fact := range facts {
		if got := h.run(fact.command); got != fact.want {
			wrong++
			f.t.Errorf("%s: %s: got %q, want %q", h.machine.Name(), fact.name, got, fact.want)
		}
	}
	f.row(h.machine.Name(), fmt.Sprintf("%d of %d facts are as planned", len(facts)-wrong, len(facts)))
}

// expectBack compares a machine with what it was before the profile.
func (f *fleet) expectBack(h *host, before, line string) {
	f.t.Helper()
	manifest, outcome := h.manifest(), "every file, link, owner and mode, and the command line, are as before"
	if difference := cmp.Diff(withoutMounts(before), withoutMounts(manifest)); difference != "" {
		outcome = "NOT as before"
		f.t.Errorf("%s before and after (-before +after):\n%s", h.machine.Name(), difference)
	}
	if now := h.run("cat /proc/cmdline"); now != line {
		outcome = "ANOTHER command line"
		f.t.Errorf("%s runs with %q, and %q was before", h.machine.Name(), now, line)
	}
	f.row(h.machine.Name(), outcome)
}

// withoutMounts leaves the folders out that the kubelet makes for the agent to look into, which stay.
func withoutMounts(manifest string) []string {
	var lines []string
	for line := range strings.Lines(manifest) {
		if path, _, _ := strings.Cut(line, " "); path != "etc/lowlatency" && path != "var/lib/lowlatency" {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
