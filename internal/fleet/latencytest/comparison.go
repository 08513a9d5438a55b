// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

const (
	// HostServiceAccount is the service account of pods in the network namespace of a node, under the name that it has when config/default is
	// installed: config/agent makes it without any right in the API, and config/scc names it.
	HostServiceAccount = "lowlatency-operator-latency-test-host"
	// hostConstraint is what OpenShift admits these pods by.
	hostConstraint               = "lowlatency-operator-latency-test-host"
	annotationRequiredConstraint = "openshift.io/required-scc"
)

// needsHosts reports whether a test has pods in the network namespace of its nodes.
func (w *World) needsHosts() bool {
	p := qualification.ParametersOf(&w.Test.Spec)
	return p.Comparison != nil && slices.ContainsFunc(p.Comparison.Sides, func(s qualification.Side) bool { return s.IsOnHost })
}

// moveToHost makes the pod of a Job one in the network namespace of its node, which has its own addresses, and without the filter for system calls
// that containers have: both are what the other side is measured with. It gets nothing else of the host.
func moveToHost(job *batchv1.Job) {
	template := &job.Spec.Template
	template.Annotations = map[string]string{annotationRequiredConstraint: hostConstraint}
	template.Spec.HostNetwork, template.Spec.ServiceAccountName = true, HostServiceAccount
	template.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	labels = maps.Clone(labels)
	labels[key] = value
	return labels
}

// nameOfRun is the name of the Job of a run, whose runs have one name in common; that itself where nothing is compared.
func (w *World) nameOfRun(common string, run int) string {
	if p := qualification.ParametersOf(&w.Test.Spec); p.Comparison == nil {
		return common
	}
	return common + "-" + strconv.Itoa(run)
}

// atRun is a result as it was while a run was under way, of those that have ended and the one that is.
func (w *World) atRun(result *v1alpha1.LatencyTestResult, run int) *v1alpha1.LatencyTestResult {
	at := result.DeepCopy()
	common := strings.TrimSuffix(result.Job, "-"+strconv.Itoa(int(result.ComparedRuns)))
	at.Job, at.ComparedRuns = w.nameOfRun(common, run), int32(run)
	return at
}

// nextRun makes the Job of the next run of a comparison, and reports whether there is one. The server stays.
func (d *decider) nextRun(c *candidate, result *v1alpha1.LatencyTestResult) bool {
	p, next := qualification.ParametersOf(&d.Test.Spec), int(result.ComparedRuns)+1
	if next >= p.Runs() {
		return false
	}
	*result = *d.atRun(result, next)
	result.StartedTime = new(metav1.NewTime(d.Now))
	if d.jobNamed(result.Job) == nil {
		d.Start = append(d.Start, d.jobFor(c, result))
	}
	d.tell(result, d.inSeries(result)+"Job "+result.Job+" was made")
	d.again(jobAppears)
	return true
}

// recordsOfRuns are those that the pods of all runs have left behind, in the order of the runs.
func (w *World) recordsOfRuns(p *qualification.Parameters, c *candidate, result *v1alpha1.LatencyTestResult) ([]*qualification.Record, *fault) {
	var records []*qualification.Record
	for run := range p.Runs() {
		at := w.atRun(result, run)
		job := w.jobNamed(at.Job)
		if job == nil || !isDone(job) {
			return nil, faultf(v1alpha1.TestJobGone, "Job %s of an earlier measurement was deleted before all had ended", at.Job)
		}
		record, problem := w.harvest(job, c, at)
		if problem != nil {
			return nil, problem
		}
		records = append(records, record)
	}
	return records, nil
}

// isOutdatedSeries reports whether a server, which may be nil, or a run that has ended is of what the test asked for before it was changed.
func (d *decider) isOutdatedSeries(server *batchv1.Job, c *candidate, result *v1alpha1.LatencyTestResult) bool {
	if server != nil && d.isOutdated(server, c, result) {
		return true
	}
	if result.ComparedRuns == 0 {
		return false
	}
	first := d.atRun(result, 0)
	job := d.jobNamed(first.Job)
	return job != nil && d.isOutdated(job, c, first)
}

// inSeries says which run of a comparison is under way; "" where nothing is compared, or the first has not begun.
func (w *World) inSeries(result *v1alpha1.LatencyTestResult) string {
	p := qualification.ParametersOf(&w.Test.Spec)
	if p.Comparison == nil || result.Server == nil || result.Server.Address == "" || result.Activity != v1alpha1.LatencyRunning {
		return ""
	}
	run := int(result.ComparedRuns)
	return fmt.Sprintf("measurement %d of %d (%s): ", run+1, p.Runs(), strings.ToLower(string(p.SideOf(run).Name)))
}

// withoutHistograms is a measurement that takes less room.
func withoutHistograms(measured *v1alpha1.LatencyMeasurement) *v1alpha1.LatencyMeasurement {
	m := measured.DeepCopy()
	m.Histogram = ""
	if m.Network != nil && m.Network.Comparison != nil {
		for i := range m.Network.Comparison.Sides {
			m.Network.Comparison.Sides[i].Histogram = ""
		}
	}
	return m
}
