// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// decider is a decision in the making.
type decider struct {
	*World
	Decision
	selectedNodes []candidate
	// schedule is nil where no time of day counts. It cannot be read where there is a scheduleProblem.
	schedule        *schedule
	scheduleProblem error
	// waits says of the first node why it is not measured, where its own message is about an outcome and it does not wait for its turn alone.
	waits string
	// next is when a node is measured once more by the schedule; zero where none is known.
	next time.Time
}

// Decide decides.
func Decide(w *World) *Decision {
	d := &decider{World: w, selectedNodes: w.selected()}
	d.schedule, d.scheduleProblem = scheduleOf(&w.Test.Spec, w.Now)
	if reason, _ := d.impossible(); reason == "" {
		for i := range d.selectedNodes {
			d.Status.Results = append(d.Status.Results, d.of(&d.selectedNodes[i]))
		}
		d.startDue()
	} else {
		d.finish(reason)
		if reason == v1alpha1.ReasonImageUnknown {
			// Nobody tells of the PodTemplate that says it.
			d.again(imageLook)
		}
	}
	d.departed()
	d.stopUnnamed()
	d.summarize()
	return &d.Decision
}

// recorded is what the status says of a node.
func (w *World) recorded(node string) *v1alpha1.LatencyTestResult {
	return ResultOf(w.Test, node).DeepCopy()
}

// finish follows to its end what is measured while nothing more can be begun, and keeps what is known of other nodes.
func (d *decider) finish(reason string) {
	for i := range d.Test.Status.Results {
		result := &d.Test.Status.Results[i]
		if at := slices.IndexFunc(d.selectedNodes, func(c candidate) bool { return c.node.Name == result.Node }); at >= 0 {
			d.Status.Results = append(d.Status.Results, d.now(&d.selectedNodes[at]))
		}
	}
	if reason != v1alpha1.ReasonTooManyNodes {
		// There is no pod that could be made for the next part of a comparison.
		d.Start = nil
	}
}

// of is what the status is to say of a node, but for whether a Job is made for it now.
func (d *decider) of(c *candidate) v1alpha1.LatencyTestResult {
	result := d.now(c)
	if result.Activity == v1alpha1.LatencyIdle && d.isDue(&result) {
		result.Activity = v1alpha1.LatencyWaiting
	}
	return result
}

// now is what is known of a node, and what has become of its Jobs.
func (d *decider) now(c *candidate) v1alpha1.LatencyTestResult {
	result := d.recorded(c.node.Name)
	if result == nil {
		result = &v1alpha1.LatencyTestResult{Node: c.node.Name, Activity: v1alpha1.LatencyIdle}
	}
	if d.Test.Status.ObservedGeneration != d.Test.Generation {
		// Who has changed the test wants to see what becomes of it at once.
		result.Attempts, result.AttemptedTime = 0, nil
	}
	if result.Activity == v1alpha1.LatencyRunning {
		d.follow(c, result)
	}
	if result.Activity != v1alpha1.LatencyRunning {
		result.Activity, result.ComparedRuns = v1alpha1.LatencyIdle, 0
	}
	d.judge(c, result)
	return *result
}

// follow looks after the Job of a node, and after its server where it has one. A server goes when its client is done.
func (d *decider) follow(c *candidate, result *v1alpha1.LatencyTestResult) {
	if result.Server == nil {
		d.followClient(c, result)
		return
	}
	if d.followServer(c, result) {
		d.followClient(c, result)
	}
	if result.Activity != v1alpha1.LatencyRunning {
		d.stopNamed(result.Server.Job)
	}
}

// followClient looks after the Job that measures a node.
func (d *decider) followClient(c *candidate, result *v1alpha1.LatencyTestResult) {
	job := d.jobNamed(result.Job)
	age := d.Now.Sub(result.StartedTime.Time)
	switch {
	case job != nil && d.isOutdated(job, c, result):
		d.stop(job)
		result.Activity, result.PendingFingerprint = v1alpha1.LatencyIdle, nil
	case job == nil && age < jobAppears:
		d.again(jobAppears - age)
	case job == nil:
		d.fail(result, faultf(v1alpha1.TestJobGone, "Job %s was deleted before it had a result", result.Job))
	case isDone(job):
		if late := d.podIsLate(job); late > 0 {
			d.again(late)
			return
		}
		d.conclude(job, c, result)
	default:
		d.wait(job, c, result, age)
	}
}

// conclude takes what the pod of a finished Job has left behind. Where sides are compared, the next run begins.
func (d *decider) conclude(job *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult) {
	record, problem := d.harvest(job, c, result)
	if problem != nil {
		d.fail(result, problem)
		return
	}
	if d.nextRun(c, result) {
		return
	}
	measured, problem := d.measured(record, c, result)
	if problem != nil {
		d.fail(result, problem)
		return
	}
	verdict := d.verdict(c, measured)
	if !isUnclear(verdict.Outcome, verdict.Reason) {
		d.succeed(c, result, measured)
		return
	}
	if result.Measured == nil || !d.isConclusive(c, result.Measured) {
		// Its figures are all that there is.
		d.keep(c, result, measured)
	}
	d.fail(result, &fault{verdict.Reason, verdict.Message})
}

// verdict is what a measurement of a node is worth by the budget of now.
func (d *decider) verdict(c *candidate, measured *v1alpha1.LatencyMeasurement) qualification.Verdict {
	return qualification.VerdictOf(&d.Test.Spec, c.profile, measured)
}

// isUnclear reports whether a measurement says nothing of a node that another one might say: what lacks a budget, or one that it can be judged by, is measured well.
func isUnclear(outcome v1alpha1.LatencyOutcome, reason string) bool {
	return outcome == v1alpha1.LatencyInconclusive && reason != v1alpha1.TestNoBudget && reason != v1alpha1.TestThresholdTooHigh
}

// isConclusive reports whether an earlier measurement still counts for or against a node.
func (d *decider) isConclusive(c *candidate, measured *v1alpha1.LatencyMeasurement) bool {
	freshness, _ := d.freshness(c, measured)
	return freshness == v1alpha1.LatencyFresh && d.verdict(c, measured).Outcome != v1alpha1.LatencyInconclusive
}

// clientNotClaimed is notClaimed of the client of a run; "" where nothing goes over the network.
func (d *decider) clientNotClaimed(result *v1alpha1.LatencyTestResult) string {
	parameters := qualification.ParametersOf(&d.Test.Spec)
	if parameters.Traffic == nil {
		return ""
	}
	side := parameters.SideOf(int(result.ComparedRuns))
	return d.notClaimed(&side.Client)
}

// wait says how far a Job is that is under way, and ends one whose pod does not start, or whose pod nobody hears of any more.
func (d *decider) wait(job *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult, age time.Duration) {
	if problem := d.lost(job, c, result, age); problem != nil {
		d.stop(job)
		d.fail(result, problem)
		return
	}
	sentence, started := d.progress(job)
	sentence = d.inSeries(result) + sentence
	if !started && age >= StartTime {
		d.stop(job)
		d.fail(result, faultf(v1alpha1.TestNotStarted, "no measurement began within %s: %s%s", StartTime, sentence, d.clientNotClaimed(result)))
		return
	}
	if !started {
		d.again(StartTime - age)
	}
	d.tell(result, sentence)
}

// lost says why nothing will come of a Job that is under way; nil while something may. The pod of a node that has died does not end, and so its Job does
// not either, even past its deadline: Kubernetes waits for the end of pods before it says that a Job has failed.
func (d *decider) lost(job *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult, age time.Duration) *fault {
	// Without its time, nobody knows for how long: the deadline of the Job counts.
	if ready := fleet.ReadyCondition(c.node); ready != nil && ready.Status != corev1.ConditionTrue && !ready.LastTransitionTime.IsZero() {
		left := ready.LastTransitionTime.Add(nodeGone).Sub(d.Now)
		if left <= 0 {
			return faultf(v1alpha1.TestNodeLeft, "the Node has not been Ready since %s, while it was measured", ready.LastTransitionTime.UTC().Format(time.RFC3339))
		}
		d.again(left)
	}
	deadline := job.Spec.ActiveDeadlineSeconds
	if deadline == nil {
		deadline = d.jobFor(c, result).Spec.ActiveDeadlineSeconds
	}
	left := time.Duration(*deadline)*time.Second + jobEnds - age
	if left <= 0 {
		return faultf(v1alpha1.TestNotEnded, "Job %s has not ended within its deadline of %s", job.Name, time.Duration(*deadline)*time.Second)
	}
	d.again(left)
	return nil
}

// isOutdated reports whether a Job measures what the test asked for before it was changed. A Job may be seen only when that was written down already.
func (d *decider) isOutdated(job *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult) bool {
	isChanged := d.Test.Status.ObservedGeneration != d.Test.Generation
	return isControlledBy(job, d.Test.UID) && (!d.isOfParameters(job) || isChanged && !d.isOwn(job, c, result))
}

// stopNamed deletes a Job of the test by its name, if it is under way.
func (d *decider) stopNamed(name string) {
	if job := d.jobNamed(name); job != nil {
		d.stop(job)
	}
}

// UnderWay are the Jobs of a test that have not ended, and that nobody has deleted.
func UnderWay(w *World) []*batchv1.Job {
	var found []*batchv1.Job
	for i := range w.Jobs {
		if job := &w.Jobs[i]; w.isUnderWay(job) && job.DeletionTimestamp.IsZero() {
			found = append(found, job)
		}
	}
	return found
}

// isUnderWay reports whether a Job is one of the test that has not ended.
func (w *World) isUnderWay(job *batchv1.Job) bool {
	return isControlledBy(job, w.Test.UID) && !isDone(job)
}

// stop deletes a Job of the test that is under way.
func (d *decider) stop(job *batchv1.Job) {
	if d.isUnderWay(job) {
		d.Stop = append(d.Stop, job)
	}
}

// fail notes that a run gave nothing that can be judged.
func (d *decider) fail(result *v1alpha1.LatencyTestResult, problem *fault) {
	problem.message = d.inSeries(result) + problem.message
	result.Activity, result.PendingFingerprint, result.ComparedRuns = v1alpha1.LatencyIdle, nil, 0
	result.Outcome, result.Reason = v1alpha1.LatencyInconclusive, shorten.Sentence(problem.reason, v1alpha1.MaxTestReasonLength)
	result.Message = shorten.Sentence(problem.message, v1alpha1.MaxTestMessageLength)
	result.Attempts, result.AttemptedTime = min(result.Attempts+1, v1alpha1.MaxTestRuns), new(metav1.NewTime(d.Now))
}

// succeed notes a measurement that can be judged.
func (d *decider) succeed(c *candidate, result *v1alpha1.LatencyTestResult, measured *v1alpha1.LatencyMeasurement) {
	result.Activity, result.PendingFingerprint = v1alpha1.LatencyIdle, nil
	result.Attempts, result.AttemptedTime = 0, nil
	d.keep(c, result, measured)
}

// keep writes a measurement down, and the one before without its histograms and intervals, unless that was unclear: the next one is compared with what is known.
func (d *decider) keep(c *candidate, result *v1alpha1.LatencyTestResult, measured *v1alpha1.LatencyMeasurement) {
	if before := result.Measured; before != nil {
		if verdict := d.verdict(c, before); !isUnclear(verdict.Outcome, verdict.Reason) {
			result.Earlier = d.earlierInRoom(before, qualification.EarlierRuns(result.Earlier, result.Previous, before))
			result.Previous = d.asPrevious(before)
		}
	}
	result.Measured = d.inRoom(measured)
}

// judge says what the measurement of a node is worth now. A fresh one stands whatever became of later runs.
func (d *decider) judge(c *candidate, result *v1alpha1.LatencyTestResult) {
	if result.Measured == nil {
		result.Freshness = ""
		return
	}
	var why string
	result.Freshness, why = d.freshness(c, result.Measured)
	if result.Freshness != v1alpha1.LatencyFresh && result.Attempts > 0 && result.Outcome == v1alpha1.LatencyInconclusive {
		// The last run says more than one that does not count any more.
		return
	}
	verdict := d.verdict(c, result.Measured)
	message := verdict.Message
	if why != "" {
		message = why + "; it was: " + message
	}
	result.Outcome, result.Reason, result.Message = verdict.Outcome, verdict.Reason, shorten.Sentence(message, v1alpha1.MaxTestMessageLength)
	if expires := qualification.Expires(&d.Test.Spec, result.Measured); !expires.IsZero() {
		d.again(expires.Sub(d.Now))
	}
}

// freshness says whether a measurement still counts, and why not. One stands for the way to a server, too, as long as its node is there: a
// gate goes by the measured node alone.
func (w *World) freshness(c *candidate, measured *v1alpha1.LatencyMeasurement) (v1alpha1.LatencyFreshness, string) {
	freshness, why := qualification.Freshness(&w.Test.Spec, measured, c.fingerprint(), w.Now)
	if freshness != v1alpha1.LatencyFresh || measured.Network == nil || measured.Network.ServerFingerprint == nil {
		return freshness, why
	}
	now := w.serverFingerprint(c, measured.Network.Server)
	if now == nil {
		return freshness, why
	}
	if changed := qualification.Differences(*measured.Network.ServerFingerprint, *now); len(changed) > 0 {
		return v1alpha1.LatencyStale, fmt.Sprintf("stale, since this changed on node %s, which ran the server, after the measurement: %s",
			measured.Network.Server, strings.Join(changed, ", "))
	}
	return freshness, why
}

// isDue reports whether a node that is not measured now is to be.
func (d *decider) isDue(result *v1alpha1.LatencyTestResult) bool {
	if !d.isWanted(result) {
		return false
	}
	if result.Attempts == 0 || result.AttemptedTime == nil {
		return true
	}
	wait := firstRetry
	for range result.Attempts - 1 {
		wait = min(2*wait, maximumRetry)
	}
	left := result.AttemptedTime.Add(wait).Sub(d.Now)
	d.again(left)
	return left <= 0
}

// isWanted reports whether another measurement of a node is wanted.
func (d *decider) isWanted(result *v1alpha1.LatencyTestResult) bool {
	switch {
	case result.Measured == nil || result.Freshness != v1alpha1.LatencyFresh || d.Test.Spec.Run != result.Measured.Run:
		return true
	case isUnclear(result.Outcome, result.Reason):
		return true
	case d.schedule != nil:
		return d.isScheduled(result.Measured)
	case d.Test.Spec.RepeatAfterHours == 0:
		return false
	}
	left := result.Measured.CompletedTime.Add(time.Duration(d.Test.Spec.RepeatAfterHours) * time.Hour).Sub(d.Now)
	d.again(left)
	return left <= 0
}

// isScheduled reports whether a node is measured once more now by the schedule.
func (d *decider) isScheduled(measured *v1alpha1.LatencyMeasurement) bool {
	due := d.schedule.due(measured.CompletedTime.Time, d.Now)
	if due.IsZero() {
		return false
	}
	if !due.After(d.Now) {
		d.again(due.Add(d.schedule.within).Sub(d.Now))
		return true
	}
	d.again(due.Sub(d.Now))
	if d.next.IsZero() || due.Before(d.next) {
		d.next = due
	}
	return false
}

// startDue makes Jobs for nodes that are to be measured, as long as there is room.
func (d *decider) startDue() {
	room := qualification.ParametersOf(&d.Test.Spec).ParallelNodes
	for i := range d.Status.Results {
		if d.Status.Results[i].Activity == v1alpha1.LatencyRunning {
			room--
		}
	}
	for i := range d.Status.Results {
		result := &d.Status.Results[i]
		if result.Activity != v1alpha1.LatencyWaiting {
			continue
		}
		waits := d.obstacle(&d.selectedNodes[i], result, room)
		if waits == "" {
			waits = d.start(&d.selectedNodes[i], result)
		}
		if result.Activity == v1alpha1.LatencyRunning {
			room--
			continue
		}
		d.tellWhyItWaits(result, waits, room)
	}
}

// tellWhyItWaits says why a node waits: in its own message, or where that is about an outcome, and the node does not wait for its turn alone, in that of the test.
func (d *decider) tellWhyItWaits(result *v1alpha1.LatencyTestResult, waits string, room int) {
	switch {
	case waits == "":
	case result.Outcome == "":
		result.Message = shorten.Sentence(waits, v1alpha1.MaxTestMessageLength)
	case room > 0 && d.waits == "":
		d.waits = fmt.Sprintf("node %s: %s", result.Node, waits)
	}
}

// obstacle says why a node cannot be measured now; "" when it can.
func (d *decider) obstacle(c *candidate, result *v1alpha1.LatencyTestResult, room int) string {
	if why := d.occupied(c, d.jobName(c, result)); why != "" {
		return why
	}
	if why := d.poolMissing(); why != "" {
		return why
	}
	p := qualification.ParametersOf(&d.Test.Spec)
	if why := d.Elsewhere.obstacle(&p); why != "" {
		return why
	}
	if former := d.underWay("", d.jobName(c, result)); former != "" && (p.Group() != "" || len(p.Addresses()) > 0) {
		return fmt.Sprintf("waits until Job %s has ended, whose pod has the same group or address", former)
	}
	if room <= 0 {
		return "waits for its turn: as many nodes as the test may measure at the same time are measured now"
	}
	return ""
}

// occupied says why a node can take no pod of the test now; "" when it can. The Job with the wanted name may be there already.
func (d *decider) occupied(c *candidate, wanted string) string {
	if other := d.Elsewhere.Nodes[c.node.Name]; other != "" {
		return fmt.Sprintf("LatencyTest %s measures the node now", other)
	}
	if d.isTaken(c.node.Name) {
		return "the node runs the server of another one, or is measured now"
	}
	if former := d.underWay(c.node.Name, wanted); former != "" {
		return fmt.Sprintf("waits until Job %s has ended", former)
	}
	if pod := d.Elsewhere.Leaving[c.node.Name]; pod != "" {
		d.again(podLeaves)
		return fmt.Sprintf("waits until pod %s is gone, whose Job was deleted", pod)
	}
	if why := c.unsettled(); why != "" {
		return "waits until the node is settled: " + why
	}
	return ""
}

// underWay is another Job of the test than the wanted one and its server that still runs on a node, "" for any; "" when there is none.
func (d *decider) underWay(node, wanted string) string {
	for i := range d.Jobs {
		job := &d.Jobs[i]
		if (node == "" || job.Annotations[v1alpha1.AnnotationNode] == node) && job.Name != wanted && job.Name != d.serverOfRun(wanted, 0) && d.isUnderWay(job) {
			return job.Name
		}
	}
	return ""
}

// start makes the Job that measures a node, or its server first.
func (d *decider) start(c *candidate, result *v1alpha1.LatencyTestResult) (waits string) {
	name := d.jobName(c, result)
	var job *batchv1.Job
	if d.Test.Spec.Kind == v1alpha1.LatencyTestJitter {
		job, result.Server = d.jobFor(c, result), nil
	} else {
		server, why := d.serverFor(c, name)
		if why != "" {
			return why
		}
		result.Server = &v1alpha1.LatencyTestPeer{Node: server.node.Name, Job: d.serverOfRun(name, 0)}
		if made := d.jobNamed(result.Server.Job); made != nil && isControlledBy(made, d.Test.UID) {
			// It was made before, and what was said of it then is lost.
			result.Server.Node = made.Annotations[v1alpha1.AnnotationNode]
		}
		job = d.serverJobFor(server, result)
	}
	result.Activity, result.Job, result.StartedTime = v1alpha1.LatencyRunning, d.nameOfRun(name, 0), new(metav1.NewTime(d.Now))
	result.PendingFingerprint = new(c.fingerprint())
	if result.Outcome == "" {
		result.Message = "Job " + job.Name + " was made"
	}
	d.again(jobAppears)
	d.create(job, result)
	if result.Activity != v1alpha1.LatencyRunning {
		// A fresh measurement stands, as whenever nothing comes of a run.
		d.judge(c, result)
	}
	return ""
}

// create makes a Job, unless it is there. Where the API server has refused it, nothing comes of the run.
func (d *decider) create(job *batchv1.Job, result *v1alpha1.LatencyTestResult) {
	if why := d.Refused[job.Name]; why != "" {
		d.fail(result, faultf(v1alpha1.TestNotStarted, "the API server refused Job %s: %s", job.Name, why))
		return
	}
	if d.jobNamed(job.Name) == nil {
		d.Start = append(d.Start, job)
	}
}

// departed says of nodes that went away, or are not selected any more, while they were measured that nothing came of it.
func (d *decider) departed() {
	for i := range d.Test.Status.Results {
		result := d.Test.Status.Results[i].DeepCopy()
		if slices.ContainsFunc(d.Status.Results, func(r v1alpha1.LatencyTestResult) bool { return r.Node == result.Node }) {
			continue
		}
		if result.Activity == v1alpha1.LatencyRunning {
			d.stopNamed(result.Job)
			if result.Server != nil {
				d.stopNamed(result.Server.Job)
			}
			result.Measured, result.Previous, result.Earlier, result.Freshness = nil, nil, nil, ""
			d.fail(result, faultf(v1alpha1.TestNodeLeft, "the node went away, or the test does not select it any more, while it was measured"))
		}
		if result.Reason != v1alpha1.TestNodeLeft || result.AttemptedTime == nil || len(d.Status.Results) >= d.mostNodes() {
			continue
		}
		if left := result.AttemptedTime.Add(leftKept).Sub(d.Now); left > 0 {
			d.again(left)
			d.Status.Results = append(d.Status.Results, *result)
		}
	}
	slices.SortStableFunc(d.Status.Results, func(a, b v1alpha1.LatencyTestResult) int { return compare(a.Node, b.Node) })
}

// stopUnnamed deletes Jobs of the test that no node is measured by: who has changed the test just then has kept the name of a Job that was made from being written
// down. One that was made now may be that of a decision whose status is not seen yet.
func (d *decider) stopUnnamed() {
	named := map[string]bool{}
	for i := range d.Status.Results {
		result := &d.Status.Results[i]
		if result.Activity != v1alpha1.LatencyRunning {
			continue
		}
		named[result.Job] = true
		if result.Server != nil {
			named[result.Server.Job] = true
		}
	}
	for _, job := range UnderWay(d.World) {
		if named[job.Name] || slices.Contains(d.Stop, job) {
			continue
		}
		if left := jobAppears - d.Now.Sub(job.CreationTimestamp.Time); left > 0 {
			d.again(left)
			continue
		}
		d.stop(job)
	}
}

// again notes that the decision becomes another after some time.
func (d *decider) again(after time.Duration) {
	if after > 0 && (d.Again == 0 || after < d.Again) {
		d.Again = after
	}
}
