// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	passed  = "Passed"
	failed  = "Failed"
	unknown = "Unknown"
	skipped = "Skipped"
)

// tunedOutcomes are the outcomes of every check on the machine after its plan was applied and it booted. What
// is not Passed is so because of what the lab's machine is: an emulated processor without frequency control
// and without a time-stamp counter that promises to run in all idle states, and no kubelet.
func tunedOutcomes() map[string]string {
	return map[string]string{
		"kernel.command-line": passed,
		"kernel.type":         passed,
		"kernel.page-size":    skipped,
		"kernel.sysctls":      passed,
		"kernel.sysfs":        skipped,

		"cpu.partition":     passed,
		"cpu.online":        passed,
		"cpu.siblings":      passed,
		"cpu.smt":           skipped,
		"cpu.isolated":      passed,
		"cpu.nohz-full":     passed,
		"cpu.rcu-offload":   passed,
		"cpu.init-affinity": passed,

		"irq.default-affinity":   passed,
		"irq.effective-affinity": passed,
		"irq.managed":            passed,
		"irq.balancer":           passed,
		"irq.delivered":          skipped,
		"irq.machine":            skipped,
		"irq.softirqs":           skipped,

		"workqueue.unbound":   passed,
		"workqueue.writeback": passed,

		"kernel.nmi-watchdog":    passed,
		"kernel.soft-watchdog":   passed,
		"kernel.machine-checks":  skipped,
		"kernel.rt-throttling":   passed,
		"kernel.timer-migration": passed,

		"memory.numa-balancing":        passed,
		"memory.transparent-hugepages": passed,
		"memory.ksm":                   passed,
		"memory.vmstat":                passed,
		"memory.compaction":            passed,
		"memory.swap":                  passed,
		"memory.hugepages-numa":        passed,

		"clock.source": passed,
		"clock.tsc":    failed,

		"power.governor":          unknown,
		"power.energy-preference": unknown,
		"power.frequency-driver":  unknown,
		"power.turbo":             skipped,
		"power.maximum-frequency": skipped,
		"power.idle-states":       passed,
		"power.idle-entries":      skipped,

		"numa.nodes":             passed,
		"numa.nic-locality":      passed,
		"numa.near-cpus":         passed,
		"numa.virtual-functions": skipped,
		"numa.nic-interrupts":    passed,
		"nic.pcie-link":          passed,

		"kubelet.cpu-manager":      unknown,
		"kubelet.topology-manager": unknown,
		"kubelet.memory-manager":   unknown,
	}
}

// counterOutcomes are the outcomes that a second reading adds on the tuned machine, on which nothing runs.
func counterOutcomes() map[string]string {
	return map[string]string{
		"irq.delivered":      passed,
		"irq.machine":        passed,
		"irq.softirqs":       passed,
		"power.idle-entries": passed,
	}
}

// scenario breaks one thing on a tuned machine. The outcomes that it changes are all in want; the finding of
// each check in messages contains the text.
type scenario struct {
	name             string
	disturb, restore string
	want, messages   map[string]string
}

// scenarios of the machine of twoNodes with testdata/profile.yaml: housekeeping 0,4; isolated 1-3,5-7; 32
// hugepages of 2 MiB on NUMA node 0 and 64 on node 1. PCIe slot N makes the interface ensN.
func scenarios() []scenario {
	const (
		pool      = "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages"
		workqueue = "/sys/devices/virtual/workqueue/cpumask"
		pages     = "/sys/kernel/mm/transparent_hugepage/enabled"
		offline   = "/sys/devices/system/cpu/cpu3/online"
	)
	hugepages := func(node0, node1 int) string {
		return fmt.Sprintf("echo %d >"+pool+"; echo %d >"+pool, node0, 0, node1, 1)
	}
	return []scenario{
		{
			name:    "a NIC's interrupt is moved to isolated CPU 2",
			disturb: moveInterrupt("ens1", 2), restore: moveInterrupt("ens1", 0),
			want:     map[string]string{"irq.effective-affinity": failed},
			messages: map[string]string{"irq.effective-affinity": "(ens1-rx-0) is delivered to isolated CPU 2; wanted 0,4"},
		},
		{
			name:    "all hugepages are on NUMA node 0",
			disturb: hugepages(96, 0), restore: hugepages(32, 64),
			want:     map[string]string{"memory.hugepages-numa": failed},
			messages: map[string]string{"memory.hugepages-numa": "NUMA node 1"},
		},
		{
			name:    "isolated CPU 3 is taken offline",
			disturb: "echo 0 >" + offline, restore: "echo 1 >" + offline,
			want:     map[string]string{"cpu.online": failed, "cpu.partition": failed},
			messages: map[string]string{"cpu.online": "CPU 3"},
		},
		{
			name:    "transparent hugepages are switched on",
			disturb: "echo always >" + pages, restore: "echo never >" + pages,
			want:     map[string]string{"memory.transparent-hugepages": failed},
			messages: map[string]string{"memory.transparent-hugepages": "always"},
		},
		{
			name:    "the mask of unbound kernel work is set back",
			disturb: "echo ff >" + workqueue, restore: "echo 11 >" + workqueue,
			want:     map[string]string{"workqueue.unbound": failed},
			messages: map[string]string{"workqueue.unbound": workqueue + " holds isolated CPUs 1-3,5-7"},
		},
		{
			name:    "process 1 may use every CPU",
			disturb: "taskset -pc 0-7 1", restore: "taskset -pc 0,4 1",
			want:     map[string]string{"cpu.init-affinity": failed},
			messages: map[string]string{"cpu.init-affinity": "1-3,5-7"},
		},
		{
			name:    "new interrupts may go anywhere",
			disturb: "echo ff >/proc/irq/default_smp_affinity", restore: "echo 11 >/proc/irq/default_smp_affinity",
			want:     map[string]string{"irq.default-affinity": failed},
			messages: map[string]string{"irq.default-affinity": "/proc/irq/default_smp_affinity holds isolated CPUs 1-3,5-7"},
		},
	}
}

// moveInterrupt writes the affinity of a NIC's receive interrupt and waits until it is in force. Without
// interrupt remapping the kernel moves an interrupt when it comes the next time; e1000e makes its own come
// every two seconds while the interface is up.
func moveInterrupt(nic string, cpu int) string {
	return fmt.Sprintf(`set -e
irq=/proc/irq/$(awk -F: '/%s-rx-0/ {print $1 + 0}' /proc/interrupts)
echo %d >$irq/smp_affinity_list
for i in $(seq 60); do
  [ "$(cat $irq/effective_affinity_list)" = %d ] && exit 0
  sleep 0.5
done
echo "still on $(cat $irq/effective_affinity_list)" >&2
exit 1`, nic, cpu, cpu)
}

// outcomeTable is what make lab prints.
type outcomeTable struct {
	rows  []string
	since time.Time
}

// add writes what a step showed and the time since the last row.
func (o *outcomeTable) add(step, outcome string) {
	o.rows = append(o.rows, fmt.Sprintf("%s\t%s\t%.0f s", step, outcome, time.Since(o.since).Seconds()))
	o.since = time.Now()
}

func (o *outcomeTable) print() {
	writer := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(writer, "\nSTEP\tOUTCOME\tTIME\n%s\n\n", strings.Join(o.rows, "\n"))
	_ = writer.Flush()
}

// changed lists what differs from the outcomes of the tuned machine.
func changed(before, now map[string]string) map[string]string {
	differs := map[string]string{}
	for check, outcome := range now {
		if before[check] != outcome {
			differs[check] = outcome
		}
	}
	return differs
}

// describe is "check Failed, check Passed", or none.
func describe(outcomes map[string]string) string {
	if len(outcomes) == 0 {
		return "as tuned"
	}
	var parts []string
	for _, check := range slices.Sorted(maps.Keys(outcomes)) {
		parts = append(parts, check+" "+outcomes[check])
	}
	return strings.Join(parts, ", ")
}

func count(outcomes map[string]string, outcome string) int {
	number := 0
	for _, o := range outcomes {
		if o == outcome {
			number++
		}
	}
	return number
}

// TestNodeTruth tunes a machine by its plan, and asks the checks whether a real kernel then is what the plan
// says; then breaks one thing after the other.
func TestNodeTruth(t *testing.T) {
	const profile = "testdata/profile.yaml"
	table := &outcomeTable{since: time.Now()}
	t.Cleanup(table.print)
	n := startNode(t, twoNodes(), profile)
	table.add("boot untuned", "shell")
	p := n.plan(profile)
	if diff := cmp.Diff([]string{"0,4", "1-3,5-7"}, []string{p.Housekeeping, p.Isolated}); diff != "" {
		t.Errorf("CPU sets of the plan (-want +got):\n%s", diff)
	}
	before := n.check().outcomes()
	for _, check := range []string{"kernel.command-line", "cpu.isolated", "cpu.nohz-full", "memory.hugepages-numa"} {
		if before[check] != failed {
			t.Errorf("untuned: %s is %s, want Failed", check, before[check])
		}
	}
	table.add("snapshot, plan, check untuned", fmt.Sprintf("%d Failed", count(before, failed)))
	n.apply(p, lab.Standard)
	table.add("apply the plan, reboot", "shell")

	n.run("ip link set ens1 up; ip link set ens2 up; sleep 3")
	tuned := n.check().outcomes()
	if diff := cmp.Diff(tunedOutcomes(), tuned); diff != "" {
		t.Errorf("outcomes of the tuned machine (-want +got):\n%s", diff)
	}
	table.add("check tuned", fmt.Sprintf("%d Passed, %d Failed, %d Unknown", count(tuned, passed), count(tuned, failed), count(tuned, unknown)))
	counters := changed(tuned, n.check("--window", "10s").outcomes())
	if diff := cmp.Diff(counterOutcomes(), counters); diff != "" {
		t.Errorf("outcomes that two readings add (-want +got):\n%s", diff)
	}
	table.add("check tuned, two readings", describe(counters))
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			n.breakAndRestore(t, s, tuned, table)
		})
	}
	t.Run("a NIC is unplugged and plugged in again", func(t *testing.T) { n.replug(t, table) })
	t.Run("real-time kernel", func(t *testing.T) { n.realTime(t, profile, table) })
}

// breakAndRestore runs one scenario: exactly the wanted outcomes change, and change back.
func (n *node) breakAndRestore(t *testing.T, s scenario, tuned map[string]string, table *outcomeTable) {
	n = &node{Machine: n.Machine, t: t, programs: n.programs}
	n.run(s.disturb)
	report := n.check()
	differs := changed(tuned, report.outcomes())
	if diff := cmp.Diff(s.want, differs); diff != "" {
		t.Errorf("changed outcomes (-want +got):\n%s", diff)
	}
	for check, text := range s.messages {
		if message := report.finding(check); !strings.Contains(message, text) {
			t.Errorf("finding of %s is %q, want one with %q", check, message, text)
		}
	}
	n.run(s.restore)
	if left := changed(tuned, n.check().outcomes()); len(left) > 0 {
		t.Errorf("after restoring: %s", describe(left))
	}
	table.add(s.name, describe(differs))
}

// replug takes a NIC away from the running machine and gives it back.
func (n *node) replug(t *testing.T, table *outcomeTable) {
	n = &node{Machine: n.Machine, t: t, programs: n.programs}
	n.must(n.Unplug(t.Context(), "nic1"))
	n.run("[ ! -e /sys/class/net/ens2 ]")
	n.must(n.Plug(t.Context(), "nic1"))
	n.run("for i in $(seq 120); do [ -e /sys/class/net/ens2 ] && exit 0; sleep 0.5; done; exit 1")
	if node := strings.TrimSpace(n.run("cat /sys/class/net/ens2/device/numa_node")); node != "1" {
		t.Errorf("the NIC came back on NUMA node %s, want 1", node)
	}
	table.add("unplug and plug a NIC", "ens2 went and came back on NUMA node 1")
}

// realTime plans the same machine with a real-time kernel and boots that.
func (n *node) realTime(t *testing.T, profile string, table *outcomeTable) {
	n = &node{Machine: n.Machine, t: t, programs: n.programs}
	text, err := os.ReadFile(profile)
	n.must(err)
	changedProfile := filepath.Join(t.TempDir(), "realtime.yaml")
	n.must(os.WriteFile(changedProfile, []byte(strings.Replace(string(text), "type: Default", "type: RealTime", 1)), 0o644))
	n.must(n.CopyTo(t.Context(), changedProfile, profilePath))
	if got := n.check().outcomes()["kernel.type"]; got != failed {
		t.Errorf("kernel.type on the standard kernel is %s, want Failed", got)
	}
	n.apply(n.plan(changedProfile), lab.RealTime)
	outcomes := n.check().outcomes()
	differs := changed(tunedOutcomes(), outcomes)
	if diff := cmp.Diff(map[string]string{}, differs); diff != "" {
		t.Errorf("outcomes that differ from the standard kernel's (-want +got):\n%s", diff)
	}
	table.add("plan, apply and boot the real-time kernel", describe(differs))
}
