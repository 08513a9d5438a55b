// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// outcome is a report of one result.
func outcome(check v1alpha1.CheckID, outcome v1alpha1.Outcome, message string) verify.Report {
	return verify.Report{Results: []verify.Result{{Check: verify.Check{ID: check}, Outcome: outcome, Message: message}}}
}

func TestDriftIsCountedWhenAPassedCheckFails(t *testing.T) {
	const check v1alpha1.CheckID = "irq.effective-affinity"
	passed, failed, unknown := v1alpha1.OutcomePassed, v1alpha1.OutcomeFailed, v1alpha1.OutcomeUnknown
	about := func(hash string, findings ...v1alpha1.Finding) v1alpha1.LowLatencyNodeStatus {
		return v1alpha1.LowLatencyNodeStatus{VerifiedPlanHash: hash, Findings: findings}
	}
	cases := map[string]struct {
		status   v1alpha1.LowLatencyNodeStatus
		outcomes []v1alpha1.Outcome
		want     int64
	}{
		"a host that never had the plan":         {outcomes: []v1alpha1.Outcome{failed, failed}},
		"one drift that lasts":                   {outcomes: []v1alpha1.Outcome{passed, failed, failed}, want: 1},
		"two drifts":                             {outcomes: []v1alpha1.Outcome{passed, failed, passed, failed}, want: 2},
		"a gap in what is known":                 {outcomes: []v1alpha1.Outcome{passed, unknown, failed}, want: 1},
		"a gap after a failure":                  {outcomes: []v1alpha1.Outcome{failed, unknown, failed}},
		"while the agent was away":               {status: about("p1"), outcomes: []v1alpha1.Outcome{failed}, want: 1},
		"known to the agent before":              {status: about("p1", v1alpha1.Finding{Check: check, Outcome: failed}), outcomes: []v1alpha1.Outcome{failed}},
		"an agent before that had another plan":  {status: about("p0"), outcomes: []v1alpha1.Outcome{failed}},
		"an agent before that could not read it": {status: about("p1", v1alpha1.Finding{Check: check, Outcome: unknown}), outcomes: []v1alpha1.Outcome{failed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var state driftState
			for _, o := range tc.outcomes {
				state.compare(outcome(check, o, "IRQ 142 is delivered to isolated CPU 5; wanted 0-1"), "p1", tc.status)
			}
			if got := state.counts[check].drifted; got != tc.want {
				t.Errorf("%d drifts, want %d", got, tc.want)
			}
		})
	}
}

func TestDriftNamesWhoMayHaveMovedTheInterrupt(t *testing.T) {
	var state driftState
	state.compare(outcome("irq.effective-affinity", v1alpha1.OutcomePassed, ""), "p1", v1alpha1.LowLatencyNodeStatus{})
	interrupts := []v1alpha1.Interrupt{{ID: "142", Handlers: "i40e-ens7f0-TxRx-3"}}
	balancer := []v1alpha1.Process{{PID: 812, Name: "irqbalance"}}
	report := outcome("irq.effective-affinity", v1alpha1.OutcomeFailed, "IRQ 142 (i40e-ens7f0-TxRx-3) is delivered to isolated CPU 5; wanted 0-1")
	report.Results[0].Objects = finding.Objects{CPUs: cpus.Of(5), Interrupts: interrupts}
	report.Results = append(report.Results, outcome("irq.balancer", v1alpha1.OutcomeFailed, "irqbalance (process 812) may use isolated CPUs 2-7").Results...)
	report.Results[1].Objects = finding.Objects{CPUs: cpus.Of(2, 3, 4, 5, 6, 7), Processes: balancer}
	state.compare(report, "p1", v1alpha1.LowLatencyNodeStatus{})
	const want = "IRQ 142 (i40e-ens7f0-TxRx-3) is delivered to isolated CPU 5; wanted 0-1; irqbalance (process 812) may use isolated CPUs 2-7"
	drift := mergeDrift(nil, state.counts, nil)[0]
	if drift.Message != want {
		t.Errorf("got %q", drift.Message)
	}
	// The CPUs that irqbalance may use have not drifted.
	objects := &v1alpha1.FindingObjects{
		CPUs: "5", Interrupts: interrupts, Processes: balancer,
		Counts: v1alpha1.ObjectCounts{CPUs: 1, Interrupts: 1, Processes: 1},
	}
	if diff := cmp.Diff(objects, drift.Objects); diff != "" {
		t.Error(diff)
	}
}

func TestMergeDrift(t *testing.T) {
	previous := []v1alpha1.CheckDrift{
		{Check: "irq.balancer", Drifted: 1, Message: "once"},
		{Check: "memory.ksm", Drifted: 4, Repaired: 3, Message: "as before", Unrepaired: []string{"an old reason"}},
	}
	counts := map[v1alpha1.CheckID]driftCount{"memory.ksm": {repaired: 1}, "irq.default-affinity": {drifted: 1, message: "new"}}
	unrepaired := map[v1alpha1.CheckID][]string{"cpu.online": {strings.Repeat("x", 600)}}
	for i := range 20 {
		unrepaired["irq.default-affinity"] = append(unrepaired["irq.default-affinity"], fmt.Sprint("file ", i))
	}
	merged := mergeDrift(previous, counts, unrepaired)
	got := make([]string, 0, len(merged))
	for _, d := range merged {
		length := 0
		for _, reason := range d.Unrepaired {
			length = max(length, len(reason))
		}
		got = append(got, fmt.Sprintf("%s drifted %d repaired %d %q unrepaired %d up to %d", d.Check, d.Drifted, d.Repaired, d.Message, len(d.Unrepaired), length))
	}
	want := []string{
		`cpu.online drifted 0 repaired 0 "" unrepaired 1 up to 512`,
		`irq.balancer drifted 1 repaired 0 "once" unrepaired 0 up to 0`,
		`irq.default-affinity drifted 1 repaired 0 "new" unrepaired 16 up to 7`,
		`memory.ksm drifted 4 repaired 4 "as before" unrepaired 0 up to 0`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(previous[1].Unrepaired) != 1 {
		t.Error("the status that was read has been changed")
	}
}

// TestObjectsOfTheLatestDrift: they change with the message, and stay while a check is only repaired.
func TestObjectsOfTheLatestDrift(t *testing.T) {
	const check v1alpha1.CheckID = "memory.ksm"
	about := func(files ...string) *v1alpha1.FindingObjects { return finding.OfFiles(files...).Status() }
	previous := []v1alpha1.CheckDrift{{Check: check, Drifted: 1, Message: "as before", Objects: about("/before")}}
	cases := map[string]struct {
		count driftCount
		want  v1alpha1.CheckDrift
	}{
		"drifts again": {
			driftCount{drifted: 1, message: "now", objects: finding.OfFiles("/now")},
			v1alpha1.CheckDrift{Check: check, Drifted: 2, Message: "now", Objects: about("/now")},
		},
		"drifts as a whole": {
			driftCount{drifted: 1, message: "now"},
			v1alpha1.CheckDrift{Check: check, Drifted: 2, Message: "now"},
		},
		"is repaired": {
			driftCount{repaired: 1},
			v1alpha1.CheckDrift{Check: check, Drifted: 1, Repaired: 1, Message: "as before", Objects: about("/before")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := mergeDrift(previous, map[v1alpha1.CheckID]driftCount{check: tc.count}, nil)
			if diff := cmp.Diff([]v1alpha1.CheckDrift{tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A host that cannot be read for the moment has lost nothing.
func TestDriftStaysWhenTheHostCannotBeRead(t *testing.T) {
	previous := v1alpha1.LowLatencyNodeStatus{Drift: []v1alpha1.CheckDrift{{Check: "memory.ksm", Drifted: 1, Unrepaired: []string{"contested"}}}}
	status := Observe(previous, Observation{Reason: v1alpha1.ReasonChecksUnknown, Now: at(1)})
	if diff := cmp.Diff(previous.Drift, status.Drift); diff != "" {
		t.Error(diff)
	}
}
