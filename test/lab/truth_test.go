// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	passed  = "Passed"
	failed  = "Failed"
	unknown = "Unknown"
	waived  = "Waived"

	yes   = metav1.ConditionTrue
	no    = metav1.ConditionFalse
	maybe = metav1.ConditionUnknown
)

// truth is a kind of machine, what its plan must say, and what the checks must say about it.
type truth struct {
	// spec is named as the profile in testdata/truth.
	spec lab.Spec
	// housekeeping and isolated are the CPU sets of the plan.
	housekeeping, isolated string
	// untuned are checks that fail before the plan is applied.
	untuned   []string
	scenarios []scenario
	// also is done on the tuned machine after the scenarios that need no boot.
	also func(*judged, *outcomeTable)
}

// truths are the machines of make lab. PCIe slot N makes the interface ensN.
func truths() []truth {
	return []truth{
		{
			spec: lab.Spec{
				Name:     "two-nodes",
				Topology: lab.Topology{Packages: 2, CoresPerPackage: 4, ThreadsPerCore: 1, NUMANodes: 2, MebibytesPerNode: 1536},
				NICs: []lab.NIC{
					{ID: "nic0", Model: lab.E1000e, NUMANode: 0},
					{ID: "nic1", Model: lab.E1000e, NUMANode: 1},
					{ID: "nic2", Model: lab.Virtio, NUMANode: 1},
				},
				Boot:       lab.Boot{Kernel: lab.Standard},
				IdleStates: lab.Present,
			},
			housekeeping: "0,4", isolated: "1-3,5-7",
			untuned:   []string{"kernel.command-line", "cpu.isolated", "cpu.nohz-full", "memory.hugepages-numa", "power.idle-states"},
			scenarios: twoNodesScenarios(),
			also:      (*judged).withAgent,
		},
		{
			spec: lab.Spec{
				Name:     "four-nodes",
				Topology: lab.Topology{Packages: 4, CoresPerPackage: 2, ThreadsPerCore: 2, NUMANodes: 4, MebibytesPerNode: 1280},
				NICs: []lab.NIC{
					{ID: "nic0", Model: lab.E1000e, NUMANode: 2},
					{ID: "nic1", Model: lab.E1000e, NUMANode: 3},
				},
				Boot: lab.Boot{Kernel: lab.Standard},
			},
			housekeeping: "0-1,4-5,8-9,12-13", isolated: "2-3,6-7,10-11,14-15",
			untuned:   []string{"kernel.type", "kernel.command-line", "cpu.isolated", "cpu.nohz-full", "memory.hugepages-numa"},
			scenarios: fourNodesScenarios(),
		},
		{
			spec: lab.Spec{
				Name:     "one-node",
				Topology: lab.Topology{Packages: 1, CoresPerPackage: 4, ThreadsPerCore: 1, MebibytesPerNode: 1536},
				NICs:     []lab.NIC{{ID: "nic0", Model: lab.E1000e}},
				Boot:     lab.Boot{Kernel: lab.Standard},
			},
			housekeeping: "0-1", isolated: "2-3",
			untuned:   []string{"kernel.command-line", "cpu.isolated", "memory.hugepages-numa"},
			scenarios: oneNodeScenarios(),
		},
	}
}

// shortTruths are one machine with few scenarios, for every change.
func shortTruths() []truth {
	one := truths()[0]
	one.also = nil
	one.scenarios = slices.Concat(interruptScenarios()[:1], placeScenarios()[:2], kernelScenarios()[:2], idleScenarios())
	return []truth{one}
}

// notPassed are the checks that apply to a tuned machine and do not pass, because of what the lab's machines are: an
// emulated processor without a time-stamp counter that promises to run in all idle states. Every outcome is in
// testdata/truth/*/as-planned.golden, of snapshots from before they said which files a host does not have: there it is
// Unknown, too, whether the processor's frequency is controlled.
func notPassed() map[string]string {
	return map[string]string{
		"clock.tsc": waived,
	}
}

// scenario breaks one thing on a tuned machine: exactly the outcomes in changes become others, the conditions are
// those of want, and the finding of each check in says contains the text. Two readings, with the
// disturbance in between, are taken where counters are meant to tell.
type scenario struct {
	name             string
	disturb, restore string
	readings         int
	want             verdicts
	changes          map[string]string
	says             map[string]string
	// without are kernel arguments that are left out of a boot.
	without []string
}

// file is the name of the scenario's snapshot.
func (s scenario) file() string {
	return regexp.MustCompile("[^a-z0-9]+").ReplaceAllString(strings.ToLower(s.name), "-")
}

func TestNodeTruth(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	table := &outcomeTable{header: "MACHINE\tSTATE\tAPPLIED\tDEJITTERED\tNUMAALIGNED\tWHAT CHANGED", since: time.Now()}
	t.Cleanup(table.print)
	programs := buildPrograms(t)
	all := truths()
	if os.Getenv("LAB") == "short" {
		all = shortTruths()
	}
	for _, tc := range all {
		t.Run(tc.spec.Name, func(t *testing.T) { tc.test(t, programs, table) })
	}
	if os.Getenv("LAB") != "short" {
		t.Run(armMachine, func(t *testing.T) { testARM(t, table) })
	}
}

// test plans and tunes a machine, asks the checks whether its kernel then is what the plan says, and breaks one thing
// after the other.
func (tc truth) test(t *testing.T, programs string, table *outcomeTable) {
	j, untuned := startMachine(t, tc.spec, programs).planned()
	if diff := cmp.Diff([]string{tc.housekeeping, tc.isolated},
		[]string{j.plan.CPUs.Housekeeping.String(), j.plan.CPUs.Isolated.String()}); diff != "" {
		t.Fatalf("CPU sets of the plan (-want +got):\n%s", diff)
	}
	tc.testUntuned(t, untuned, table)
	j.tune()
	tuned := tc.testTuned(t, j, table)
	for _, s := range tc.scenarios {
		if len(s.without) > 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) { j.in(t).scenario(s, tuned, table) })
	}
	if left := changed(tuned.once, j.judge("", nil).outcomes); len(left) > 0 {
		t.Errorf("after restoring everything: %s", describe(left))
	}
	if tc.also != nil {
		tc.also(j, table)
	}
	tc.boots(t, j, tuned, table)
}

// boots runs the scenarios that need a boot of their own.
func (tc truth) boots(t *testing.T, j *judged, tuned readings, table *outcomeTable) {
	t.Helper()
	for _, s := range tc.scenarios {
		if len(s.without) > 0 {
			t.Run(s.name, func(t *testing.T) { j.in(t).scenario(s, tuned, table) })
		}
	}
}

// in is the machine for a test of its own.
func (j *judged) in(t *testing.T) *judged {
	return &judged{node: &node{Machine: j.Machine, t: t, programs: j.programs}, plan: j.plan}
}

func (tc truth) testUntuned(t *testing.T, found judgement, table *outcomeTable) {
	t.Helper()
	for _, check := range tc.untuned {
		if found.outcomes[check] != failed {
			t.Errorf("untuned: %s is %s, want Failed", check, found.outcomes[check])
		}
	}
	if diff := cmp.Diff(verdicts{no, no, no}, found.verdicts); diff != "" {
		t.Errorf("untuned (-want +got):\n%s", diff)
	}
	table.verdict(tc.spec.Name, "untuned: no kernel argument of the plan", found, describeCount(found.outcomes))
}

// readings are the outcomes on the tuned machine, by one reading and by two: some checks compare counters.
type readings struct{ once, twice map[string]string }

func (tc truth) testTuned(t *testing.T, j *judged, table *outcomeTable) readings {
	t.Helper()
	before := j.facts("")
	found := j.judge("as-planned", nil)
	want := notPassed()
	got := maps.Clone(found.outcomes)
	maps.DeleteFunc(got, func(_, outcome string) bool { return outcome == passed || outcome == skipped })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what does not pass on the tuned machine (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(verdicts{yes, yes, yes}, found.verdicts); diff != "" {
		t.Errorf("tuned (-want +got):\n%s", diff)
	}
	table.verdict(tc.spec.Name, "as planned", found, describeCount(found.outcomes))
	j.run("sleep 10")
	counted := j.judge("", before)
	if diff := cmp.Diff(verdicts{yes, yes, yes}, counted.verdicts); diff != "" {
		t.Errorf("tuned, two readings (-want +got):\n%s", diff)
	}
	table.verdict(tc.spec.Name, "as planned, two readings", counted, "of counters: "+describeCount(changed(found.outcomes, counted.outcomes)))
	return readings{once: found.outcomes, twice: counted.outcomes}
}

// scenario runs one scenario: exactly the wanted outcomes change. That they change back shows in the next one, and
// in the reading after the last.
func (j *judged) scenario(s scenario, tuned readings, table *outcomeTable) {
	j.t.Helper()
	if len(s.without) > 0 {
		j.tune(s.without...)
	}
	j.run(s.disturb)
	var before *host.Facts
	record, usual := s.file(), tuned.once
	if s.readings == 2 {
		record, before, usual = "", j.facts(""), tuned.twice
		j.run("sleep 5")
	}
	found := j.judge(record, before)
	differs := changed(usual, found.outcomes)
	if diff := cmp.Diff(s.changes, differs); diff != "" {
		j.t.Errorf("changed outcomes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s.want, found.verdicts); diff != "" {
		j.t.Errorf("conditions (-want +got):\n%s", diff)
	}
	for check := range differs {
		j.t.Logf("%s: %s", check, found.messages[check])
	}
	for check, text := range s.says {
		if message := found.messages[check]; !strings.Contains(message, text) {
			j.t.Errorf("finding of %s is %q, want one with %q", check, message, text)
		}
	}
	table.verdict(j.Name(), s.name, found, describe(differs))
	if s.restore != "" {
		j.run(s.restore)
	}
}

// verdict adds a row about a machine.
func (o *outcomeTable) verdict(machine, state string, found judgement, what string) {
	o.add(slices.Concat([]string{machine, state}, found.columns(), []string{what})...)
	fmt.Fprintf(os.Stderr, "lab: %s: %s\n", machine, strings.ReplaceAll(o.rows[len(o.rows)-1], "\t", " | "))
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
		return "nothing"
	}
	parts := make([]string, 0, len(outcomes))
	for _, check := range slices.Sorted(maps.Keys(outcomes)) {
		parts = append(parts, check+" "+outcomes[check])
	}
	return strings.Join(parts, ", ")
}

// describeCount is "40 checks Passed, 4 Unknown, 2 Failed: cpu.online, irq.balancer"; many failures are not named.
func describeCount(outcomes map[string]string) string {
	const many = 5
	parts := []string{fmt.Sprintf("%d checks %s", count(outcomes, passed), passed)}
	for _, outcome := range []string{unknown, failed} {
		if number := count(outcomes, outcome); number > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", number, outcome))
		}
	}
	described := strings.Join(parts, ", ")
	if failures := count(outcomes, failed); failures == 0 || failures >= many {
		return described
	}
	var names []string
	for _, check := range slices.Sorted(maps.Keys(outcomes)) {
		if outcomes[check] == failed {
			names = append(names, check)
		}
	}
	return described + ": " + strings.Join(names, ", ")
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
