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
	return p.Comparison != nil && slices.ContainsFunc(p.Comparison.Sides, func(s qualification.Side) bool { return s.IsOnHost || s.IsServerOnHost })
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

// serverOfRun is the name of the Job of the server that a run measures with: one for all runs, or where sides have different servers, one for each row of
// runs with the same.
func (w *World) serverOfRun(common string, run int) string {
	p := qualification.ParametersOf(&w.Test.Spec)
	if !p.HasOwnServers() {
		return common + serverSuffix
	}
	for run > 0 && sharesServer(p.SideOf(run-1), p.SideOf(run)) {
		run--
	}
	return w.nameOfRun(common, run) + serverSuffix
}

func sharesServer(a, b qualification.Side) bool { return a.SharesServer(&b) }

// atRun is a result as it was while a run was under way, of those that have ended and the one that is.
func (w *World) atRun(result *v1alpha1.LatencyTestResult, run int) *v1alpha1.LatencyTestResult {
	at := result.DeepCopy()
	common := strings.TrimSuffix(result.Job, "-"+strconv.Itoa(int(result.ComparedRuns)))
	at.Job, at.ComparedRuns = w.nameOfRun(common, run), int32(run)
	if at.Server == nil {
		return at
	}
	if server := w.serverOfRun(common, run); server != at.Server.Job {
		at.Server.Job, at.Server.Address = server, w.serverOf(at.Job)
	}
	return at
}

// serverOf is the address to which a Job sends; "" when the Job is not there.
func (w *World) serverOf(name string) string {
	job := w.jobNamed(name)
	if job == nil || len(job.Spec.Template.Spec.Containers) == 0 {
		return ""
	}
	for _, arg := range job.Spec.Template.Spec.Containers[0].Args {
		if address, found := strings.CutPrefix(arg, serverArg); found {
			return ipv4(address)
		}
	}
	return ""
}

// nextRun makes the Job of the next run of a comparison, or that of its server first, and reports whether there is one. The server stays where the
// next side has the same.
func (d *decider) nextRun(c *candidate, result *v1alpha1.LatencyTestResult) bool {
	p, next := qualification.ParametersOf(&d.Test.Spec), int(result.ComparedRuns)+1
	if next >= p.Runs() {
		return false
	}
	at := d.atRun(result, next)
	if at.Server.Job != result.Server.Job {
		d.changeServer(result, at)
		return true
	}
	*result = *at
	result.StartedTime = new(metav1.NewTime(d.Now))
	d.tell(result, d.inSeries(result)+"Job "+result.Job+" was made")
	d.again(jobAppears)
	d.create(d.jobFor(c, result), result)
	return true
}

// changeServer makes the server of the next run when the one before is gone: both may want the same NIC and the same address.
func (d *decider) changeServer(result, next *v1alpha1.LatencyTestResult) {
	if former := d.jobNamed(result.Server.Job); former != nil && isControlledBy(former, d.Test.UID) && !isDone(former) {
		sentence := "waits until Job " + former.Name + " of the server before has ended"
		switch since := former.DeletionTimestamp; {
		case since.IsZero():
			d.stop(former)
		case d.Now.Sub(since.Time) >= StartTime:
			d.fail(result, faultf(v1alpha1.TestNotStarted, "the server of the next side was not made within %s: it %s", StartTime, sentence))
			return
		}
		d.tell(result, d.inSeries(result)+sentence)
		d.again(jobAppears)
		return
	}
	*result = *next
	result.Server.Address, result.StartedTime = "", new(metav1.NewTime(d.Now))
	on := d.serverNode(result.Server.Node)
	if on == nil {
		d.fail(result, faultf(v1alpha1.TestPeerVanished, "node %s, which ran the server, went away", result.Server.Node))
		return
	}
	d.tell(result, d.inSeries(result)+"Job "+result.Server.Job+" was made")
	d.again(jobAppears)
	d.create(d.serverJobFor(on, result), result)
}

// serverNode is the node that runs a server; nil when it is not there.
func (w *World) serverNode(name string) *candidate {
	at := slices.IndexFunc(w.Nodes, func(n corev1.Node) bool { return n.Name == name && n.DeletionTimestamp.IsZero() })
	if at < 0 {
		return nil
	}
	return new(w.candidateOf(&w.Nodes[at]))
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

// inSeries says which run of a comparison is under way; "" where nothing is compared, or the server of all runs has not begun.
func (w *World) inSeries(result *v1alpha1.LatencyTestResult) string {
	p := qualification.ParametersOf(&w.Test.Spec)
	if p.Comparison == nil || result.Server == nil || result.Activity != v1alpha1.LatencyRunning || (result.Server.Address == "" && !p.HasOwnServers()) {
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
