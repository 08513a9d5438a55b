// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// Repairer writes one file of the host. repair.Files does.
type Repairer interface {
	Put(write repair.Write) error
}

// driftState is what the agent knows of what has changed under one plan.
type driftState struct {
	// outcomes are the latest outcomes of checks that have passed or failed; nil before the first pass.
	outcomes map[v1alpha1.CheckID]v1alpha1.Outcome
	// counts are not in the status yet.
	counts map[v1alpha1.CheckID]driftCount
	ledger repair.Ledger
	// written tells that files were written after the last reading, so that another is due.
	written bool
}

// driftCount is what happened to one check.
type driftCount struct {
	drifted, repaired int64
	// message of the latest drift, and what it is about.
	message string
	objects finding.Objects
}

// add counts for one check.
func (d *driftState) add(check v1alpha1.CheckID, change func(*driftCount)) {
	if d.counts == nil {
		d.counts = map[v1alpha1.CheckID]driftCount{}
	}
	count := d.counts[check]
	change(&count)
	d.counts[check] = count
}

// compare counts the checks that had passed for this plan and fail now. What an agent before this one has seen is in
// the status.
func (d *driftState) compare(report verify.Report, planHash string, status v1alpha1.LowLatencyNodeStatus) {
	if d.outcomes == nil {
		d.outcomes = outcomesOf(status, planHash, report)
	}
	for _, result := range report.Results {
		if result.Outcome != v1alpha1.OutcomePassed && result.Outcome != v1alpha1.OutcomeFailed {
			continue
		}
		if d.outcomes[result.Check.ID] == v1alpha1.OutcomePassed && result.Outcome == v1alpha1.OutcomeFailed {
			d.add(result.Check.ID, func(count *driftCount) {
				count.drifted++
				count.message, count.objects = whatDrifted(result, report)
			})
		}
		d.outcomes[result.Check.ID] = result.Outcome
	}
}

// outcomesOf are the outcomes that a status tells of: a check that is not among its findings has passed. A status
// about another plan tells nothing.
func outcomesOf(status v1alpha1.LowLatencyNodeStatus, planHash string, report verify.Report) map[v1alpha1.CheckID]v1alpha1.Outcome {
	outcomes := map[v1alpha1.CheckID]v1alpha1.Outcome{}
	if status.VerifiedPlanHash != planHash {
		return outcomes
	}
	for _, result := range report.Results {
		outcomes[result.Check.ID] = v1alpha1.OutcomePassed
	}
	for _, finding := range status.Findings {
		outcomes[finding.Check] = finding.Outcome
	}
	return outcomes
}

// whatDrifted names the objects that drifted, and irqbalance where it may have moved an interrupt.
func whatDrifted(result verify.Result, report verify.Report) (message string, objects finding.Objects) {
	const balancer = "irq.balancer"
	message, objects = result.Message, result.Objects
	about := string(result.Check.ID)
	if strings.HasPrefix(about, "irq.") && about != balancer || about == "nic.interrupts" || about == "numa.nic-interrupts" {
		suspect := slices.IndexFunc(report.Results, func(r verify.Result) bool {
			return r.Check.ID == balancer && r.Outcome == v1alpha1.OutcomeFailed
		})
		if suspect >= 0 {
			message += "; " + report.Results[suspect].Message
			objects = finding.Union(objects, finding.Objects{Processes: report.Results[suspect].Objects.Processes})
		}
	}
	return shorten.Sentence(message, v1alpha1.MaxDriftMessageLength), objects
}

// repair puts back what has drifted, where the plan asks for it, and returns what it could not put back, by check.
func (a *Agent) repair(ctx context.Context, in verify.Input, report verify.Report, now time.Time) map[v1alpha1.CheckID][]string {
	a.drift.written = false
	if in.Plan.Verification.Repair != v1alpha1.RepairRuntime {
		return nil
	}
	wanted := repair.Plan(in, report)
	if a.Repairer == nil {
		unrepaired := map[v1alpha1.CheckID][]string{}
		for _, write := range wanted {
			unrepaired[write.Check] = append(unrepaired[write.Check],
				write.Object+": the agent of this node may only read the host; deploy config/agent-repair to let it write")
		}
		return unrepaired
	}
	helped, due := a.drift.ledger.Review(wanted, now)
	for check, files := range helped {
		a.drift.add(check, func(count *driftCount) { count.repaired += files })
	}
	for _, write := range due {
		err := a.Repairer.Put(write)
		a.drift.ledger.Note(write, err, now)
		if err != nil {
			a.log(ctx).Error(err, "Failed to put back what drifted", "object", write.Object, "path", write.Path, "found", write.Old, "planned", write.New)
			continue
		}
		a.drift.written = true
		a.log(ctx).Info("Put back what drifted", "object", write.Object, "path", write.Path, "found", write.Old, "planned", write.New)
	}
	return a.drift.ledger.Unrepaired()
}

// mergeDrift adds what a pass has counted to what the status has, in ascending order of the checks. Counts never
// decrease; what is unrepaired is as the pass found it.
func mergeDrift(previous []v1alpha1.CheckDrift, counts map[v1alpha1.CheckID]driftCount, unrepaired map[v1alpha1.CheckID][]string) []v1alpha1.CheckDrift {
	merged := map[v1alpha1.CheckID]v1alpha1.CheckDrift{}
	for _, drift := range previous {
		drift.Unrepaired = nil
		merged[drift.Check] = drift
	}
	for check, count := range counts {
		drift := merged[check]
		drift.Check = check
		if count.drifted > 0 {
			drift.Message, drift.Objects = count.message, count.objects.Status()
		}
		drift.Drifted += count.drifted
		drift.Repaired += count.repaired
		merged[check] = drift
	}
	for check, files := range unrepaired {
		drift := merged[check]
		drift.Check = check
		for _, file := range shorten.List(files, v1alpha1.MaxUnrepairedFiles) {
			drift.Unrepaired = append(drift.Unrepaired, shorten.Sentence(file, v1alpha1.MaxUnrepairedLength))
		}
		merged[check] = drift
	}
	sorted := slices.SortedFunc(maps.Values(merged), func(a, b v1alpha1.CheckDrift) int { return cmp.Compare(a.Check, b.Check) })
	return shorten.List(sorted, v1alpha1.MaxDrift)
}
