// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// fault is why a run gave nothing that can be judged.
type fault struct{ reason, message string }

func faultf(reason, format string, values ...any) *fault {
	return &fault{reason, fmt.Sprintf(format, values...)}
}

// endOfJob is the condition by which a Job has come to its end; nil when it has not.
func endOfJob(job *batchv1.Job) *batchv1.JobCondition {
	at := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
	})
	if at < 0 {
		return nil
	}
	return &job.Status.Conditions[at]
}

// isDone reports whether a Job has come to its end.
func isDone(job *batchv1.Job) bool { return endOfJob(job) != nil }

// jobNamed is the Job of a name; nil when it is not there.
func (w *World) jobNamed(name string) *batchv1.Job {
	for i := range w.Jobs {
		if w.Jobs[i].Name == name {
			return &w.Jobs[i]
		}
	}
	return nil
}

// isOwn reports whether a Job is that which the operator makes for the node: of this test, with this name, and with the arguments
// that it gives. Somebody else may have made one in its place.
func (w *World) isOwn(job *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult) bool {
	wanted := w.jobFor(c, result)
	if result.Server != nil && job.Name == result.Server.Job {
		return isControlledBy(job, w.Test.UID) && w.isOwnServer(job, result)
	}
	return isControlledBy(job, w.Test.UID) && job.Annotations[v1alpha1.AnnotationNode] == c.node.Name && w.isOfParameters(job) &&
		sameProgram(&job.Spec.Template.Spec, &wanted.Spec.Template.Spec)
}

// isOwnServer reports whether a Job runs the server that the operator makes for the node.
func (w *World) isOwnServer(job *batchv1.Job, result *v1alpha1.LatencyTestResult) bool {
	for i := range w.Nodes {
		if w.Nodes[i].Name == result.Server.Node && w.Test.Spec.Traffic != nil {
			on := w.candidateOf(&w.Nodes[i])
			return w.isOfParameters(job) && sameProgram(&job.Spec.Template.Spec, &w.serverJobFor(&on, result).Spec.Template.Spec)
		}
	}
	return false
}

// isOfParameters reports whether a Job measures with the parameters of the test: arguments alone do not tell pools and addresses. A Job of an earlier version
// of the operator does not say it.
func (w *World) isOfParameters(job *batchv1.Job) bool {
	hash, found := job.Annotations[v1alpha1.AnnotationParameters]
	return !found || hash == qualification.ParametersOf(&w.Test.Spec).Hash()
}

// isControlledBy reports whether an object is made for another.
func isControlledBy(object metav1.Object, uid types.UID) bool {
	owner := metav1.GetControllerOf(object)
	return owner != nil && uid != "" && owner.UID == uid
}

// sameProgram compares what containers run and in which network; the image may be that of another version of the operator.
func sameProgram(have, want *corev1.PodSpec) bool {
	return have.HostNetwork == want.HostNetwork && len(have.InitContainers) == 0 && len(have.Containers) == 1 && len(have.Containers[0].Command) == 0 &&
		slices.Equal(have.Containers[0].Args, want.Containers[0].Args)
}

// podsOf are the pods that a Job controls.
func (w *World) podsOf(job *batchv1.Job) []*corev1.Pod {
	var found []*corev1.Pod
	for i := range w.Pods {
		if isControlledBy(&w.Pods[i], job.UID) {
			found = append(found, &w.Pods[i])
		}
	}
	return found
}

// podIsLate is how long the pod of a finished Job may still be shown as it was before it ended; 0 when it has ended. Jobs and Pods are
// watched apart, so the news of one can come before that of the other.
func (w *World) podIsLate(job *batchv1.Job) time.Duration {
	hasEnded := func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}
	if pods := w.podsOf(job); len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *corev1.Pod) bool { return !hasEnded(pod) }) {
		return 0
	}
	return max(0, podEnds-w.Now.Sub(endOfJob(job).LastTransitionTime.Time))
}

// harvest reads what the pod of a finished Job has left behind.
func (w *World) harvest(job *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult) (*qualification.Record, *fault) {
	record, problem := w.record(job, c, result)
	if problem != nil {
		return nil, problem
	}
	if record.Problem != nil {
		return nil, &fault{record.Problem.Reason, record.Problem.Message}
	}
	return record, w.contradiction(record, c, result)
}

// measured is what the Jobs of a node have measured, of which the last left a record.
func (w *World) measured(record *qualification.Record, c *candidate, result *v1alpha1.LatencyTestResult) (*v1alpha1.LatencyMeasurement, *fault) {
	parameters := qualification.ParametersOf(&w.Test.Spec)
	var measured *v1alpha1.LatencyMeasurement
	switch {
	case parameters.Comparison != nil:
		records, problem := w.recordsOfRuns(&parameters, c, result)
		if problem != nil {
			return nil, problem
		}
		measured = qualification.Compared(&parameters, records, result.Server.Node)
	case record.Network != nil:
		measured = record.Measurement(result.Server.Node)
	default:
		measured = record.Measurement("")
	}
	measured.CompletedTime, measured.Run, measured.ParametersHash = metav1.NewTime(w.Now), w.runOf(result), parameters.Hash()
	measured.Fingerprint = c.fingerprint()
	if measured.Network != nil {
		measured.Network.ServerFingerprint = w.serverFingerprint(c, result.Server.Node)
	}
	return measured, nil
}

// runOf is what spec.run was when a measurement that has ended began: who raises it meanwhile wants one that begins later. A Job of an earlier version of the
// operator does not say it.
func (w *World) runOf(result *v1alpha1.LatencyTestResult) int32 {
	first := w.jobNamed(w.atRun(result, 0).Job)
	if first == nil {
		return w.Test.Spec.Run
	}
	run, err := strconv.ParseInt(first.Annotations[v1alpha1.AnnotationRun], 10, 32)
	if err != nil {
		return w.Test.Spec.Run
	}
	return int32(run)
}

// serverFingerprint is what the node of a server is now; nil for the measured node itself, for one that is not there, and for one whose agent has not told since its
// Node was made: what is absent for a moment has not changed.
func (w *World) serverFingerprint(c *candidate, server string) *v1alpha1.LatencyFingerprint {
	at := slices.IndexFunc(w.Nodes, func(n corev1.Node) bool { return n.Name == server })
	if at < 0 || server == c.node.Name {
		return nil
	}
	on := w.candidateOf(&w.Nodes[at])
	if on.profile != nil && !fleet.HasInventory(on.report) {
		return nil
	}
	return new(on.fingerprint())
}

// record is what the only pod of the Job has left behind.
func (w *World) record(job *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult) (*qualification.Record, *fault) {
	if !w.isOwn(job, c, result) {
		return nil, faultf(v1alpha1.TestForeignPod, "Job %s is not as the operator has made it", job.Name)
	}
	pods := w.podsOf(job)
	switch len(pods) {
	case 0:
		return nil, faultf(v1alpha1.TestPodFailed, "Job %s ended without a pod: %s", job.Name, whyEnded(job))
	case 1:
	default:
		return nil, faultf(v1alpha1.TestForeignPod, "%d pods say that they are that of Job %s, which has one", len(pods), job.Name)
	}
	pod := pods[0]
	if pod.Spec.NodeName != c.node.Name || !sameProgram(&pod.Spec, &job.Spec.Template.Spec) {
		return nil, faultf(v1alpha1.TestForeignPod, "pod %s is not the one that Job %s makes on this node", pod.Name, job.Name)
	}
	ended := endOf(pod)
	if ended == nil || ended.Message == "" {
		return nil, faultf(v1alpha1.TestPodFailed, "pod %s ended without a result: %s", pod.Name, whyFailed(pod, ended))
	}
	record, err := qualification.Parse(ended.Message)
	if err != nil {
		return nil, faultf(v1alpha1.TestBadResult, "%s (pod %s)", err, pod.Name)
	}
	if record.Kind != w.Test.Spec.Kind {
		return nil, faultf(v1alpha1.TestBadResult, "the record is of kind %s, and the test of kind %s", record.Kind, w.Test.Spec.Kind)
	}
	return record, nil
}

// contradiction says what of a record cannot be true of the node.
func (w *World) contradiction(record *qualification.Record, c *candidate, result *v1alpha1.LatencyTestResult) *fault {
	now := c.fingerprint()
	if problem := w.notAskedFor(record); problem != nil {
		return problem
	}
	if result.PendingFingerprint != nil {
		if changed := qualification.Differences(*result.PendingFingerprint, now); len(changed) > 0 {
			return faultf(v1alpha1.TestNodeChanged, "this changed while the node was measured: %s", strings.Join(changed, ", "))
		}
	}
	if now.Kernel != "" && record.Kernel != now.Kernel {
		return faultf(v1alpha1.TestNodeChanged, "the record is of kernel %s, and the node runs %s", record.Kernel, now.Kernel)
	}
	if boot := c.node.Status.NodeInfo.BootID; boot != "" && record.BootID != boot {
		return faultf(v1alpha1.TestNodeChanged, "the node has rebooted since it was measured")
	}
	if record.NotRecorded > 0 {
		return faultf(v1alpha1.TestMeasurementFailed, "%d interruptions found no room in the record: shorten spec.durationSeconds, or raise "+
			"spec.jitter.thresholdNanoseconds, but not above what the budget bounds", record.NotRecorded)
	}
	return nil
}

// notAskedFor says in what a record differs from what the program was asked for; nil when in nothing.
func (w *World) notAskedFor(record *qualification.Record) *fault {
	parameters := qualification.ParametersOf(&w.Test.Spec)
	if record.Network != nil {
		return notSent(record, &parameters)
	}
	measured, err := cpus.Parse(record.CPUs)
	if err != nil || measured.Len() != int(parameters.CPUs) || len(record.RepetitionMaximums) != int(parameters.Repetitions) {
		return faultf(v1alpha1.TestBadResult, "the record is of CPUs %s in %d repetitions, and %d CPUs in %d repetitions were asked for",
			record.CPUs, len(record.RepetitionMaximums), parameters.CPUs, parameters.Repetitions)
	}
	return nil
}

// notSent says in what the messages of a record differ from those that were asked for. A sweep may end with a rate that the client missed.
func notSent(record *qualification.Record, asked *qualification.Parameters) *fault {
	m := record.Network.Measurement("")
	sizes, rates := make([]int32, 0, len(m.Sizes)), make([]int32, 0, len(m.Rates))
	for i := range m.Sizes {
		sizes = append(sizes, m.Sizes[i].Bytes)
	}
	for i := range m.Rates {
		rates = append(rates, m.Rates[i].MessagesPerSecond)
	}
	wanted := asked.Rates
	if asked.Load != nil {
		wanted = rates
		if why := notSearched(m, asked.Load); why != "" {
			return faultf(v1alpha1.TestBadResult, "%s", why)
		}
	}
	if last := len(rates); last > 0 && last < len(wanted) && qualification.IsMissed(&m.Rates[last-1]) {
		wanted = wanted[:last]
	}
	if !slices.Equal(sizes, asked.Sizes) || !slices.Equal(rates, wanted) || len(record.RepetitionMaximums) != int(asked.RepetitionsOfRun()) {
		return faultf(v1alpha1.TestBadResult, "the record is of %v bytes at %v a second in %d repetitions, and %v bytes at %v a second in %d repetitions were asked for",
			sizes, rates, len(record.RepetitionMaximums), asked.Sizes, asked.Rates, asked.RepetitionsOfRun())
	}
	return nil
}

// notSearched says in what a search differs from the one that was asked for; "" when in nothing.
func notSearched(m *v1alpha1.NetworkMeasurement, asked *qualification.Load) string {
	low := m.Rates[0].MessagesPerSecond
	if low != asked.Lowest || max(m.Load.BestPassPerSecond, m.Load.LowestFailPerSecond) > asked.Highest {
		return fmt.Sprintf("the record is of a search from %d to %d messages a second, and one from %d to %d was asked for",
			low, max(m.Load.BestPassPerSecond, m.Load.LowestFailPerSecond), asked.Lowest, asked.Highest)
	}
	return ""
}

// endOf is how the container of a pod ended; nil when it has not.
func endOf(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for i := range pod.Status.ContainerStatuses {
		if status := &pod.Status.ContainerStatuses[i]; status.Name == containerName {
			return status.State.Terminated
		}
	}
	return nil
}

// whyFailed is why a pod has no result.
func whyFailed(pod *corev1.Pod, ended *corev1.ContainerStateTerminated) string {
	switch {
	case ended != nil:
		return fmt.Sprintf("%s, exit code %d", ended.Reason, ended.ExitCode)
	case pod.Status.Reason != "":
		return strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
	default:
		return "its container has not run"
	}
}

func whyEnded(job *batchv1.Job) string {
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue {
			return strings.TrimSpace(c.Reason + " " + c.Message)
		}
	}
	return "nobody says why"
}

// progress says how far a Job is that is under way, and whether its pod has started.
func (w *World) progress(job *batchv1.Job) (sentence string, started bool) {
	pods := w.podsOf(job)
	if len(pods) == 0 {
		return "Job " + job.Name + " has no pod yet: `kubectl describe job` tells why", false
	}
	pod := pods[0]
	if pod.Status.Phase != corev1.PodPending {
		return "pod " + pod.Name + " measures", true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue && c.Message != "" {
			return "pod " + pod.Name + " waits for the scheduler: " + c.Message, false
		}
	}
	for i := range pod.Status.ContainerStatuses {
		if waiting := pod.Status.ContainerStatuses[i].State.Waiting; waiting != nil {
			return "pod " + pod.Name + " waits: " + strings.TrimSpace(waiting.Reason+" "+waiting.Message), false
		}
	}
	return "pod " + pod.Name + " starts", false
}
