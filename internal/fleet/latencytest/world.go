// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package latencytest decides what becomes of a LatencyTest: which of its nodes are to be measured now, what the Job of a node
// is, what the pod of a finished Job has left behind and what that is worth, and the status of the test. The decision is a function
// of what is recorded in objects and of the time. It is pure.
package latencytest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

const (
	// StartTime is for how long a pod may wait for its CPUs and its image.
	StartTime = 10 * time.Minute
	// jobAppears is for how long a Job that was made may not be seen yet.
	jobAppears = time.Minute
	// podLeaves is after how long a node is looked at again on which a pod of a deleted test still ends.
	podLeaves = 5 * time.Second
	// jobEnds is for how long a Job that is past its deadline may not be seen to have ended.
	jobEnds = 5 * time.Minute
	// nodeGone is for how long a node that is measured may not be Ready: the kubelet of one that only lost its way to the API server goes on.
	nodeGone = 10 * time.Minute
	// podEnds is for how long the pod of a Job that has ended may not be seen to have ended yet.
	podEnds = 30 * time.Second
	// firstRetry is how long after a run without a result the next one begins; it doubles with each up to maximumRetry.
	firstRetry   = 5 * time.Minute
	maximumRetry = time.Hour
	// imageLook is after how long an image that is not known is looked for again.
	imageLook = time.Minute
	// leftKept is for how long the status says that a node left while it was measured.
	leftKept = time.Hour
)

// World is what a test is decided from. Nothing in it is changed.
type World struct {
	Test *v1alpha1.LatencyTest
	// Nodes are all nodes, and Reports their LowLatencyNodes by name.
	Nodes    []corev1.Node
	Reports  map[string]*v1alpha1.LowLatencyNode
	Profiles []v1alpha1.LowLatencyNodeProfile
	Pools    []*v1alpha1.BypassNICPool
	// Jobs and Pods are those in the namespace of the test that carry its label, whoever has made them.
	Jobs []batchv1.Job
	Pods []corev1.Pod
	// Elsewhere is what other tests use now.
	Elsewhere InUse
	// Refused are Jobs that the API server would not make, by their names, with why.
	Refused map[string]string
	// Image of the operator's program, and TrafficImage of the one that measures over the network; "" when it is not known.
	Image, TrafficImage string
	// HostNamespace is the only namespace whose tests may have pods in the network namespace of a node.
	HostNamespace string
	Now           time.Time
}

// Decision is what is to be done.
type Decision struct {
	// Start are Jobs to be made.
	Start []*batchv1.Job
	// Stop are Jobs to be deleted.
	Stop []*batchv1.Job
	// Status is what the test is to say.
	Status v1alpha1.LatencyTestStatus
	// Again is when the decision becomes another although nothing happens; zero means never.
	Again time.Duration
}

// candidate is a node with what is known of it.
type candidate struct {
	node    *corev1.Node
	report  *v1alpha1.LowLatencyNode
	profile *v1alpha1.LowLatencyNodeProfile
}

// fingerprint is what the node is now. The agent may have told nothing since the last boot, while the kubelet tells which kernel runs.
func (c *candidate) fingerprint() v1alpha1.LatencyFingerprint {
	info := &c.node.Status.NodeInfo
	told := qualification.Told{Kernel: info.KernelVersion, SystemUUID: info.SystemUUID, IsNewer: !fleet.IsOfBoot(c.report, c.node)}
	return qualification.FingerprintOf(told, c.report)
}

// unsettled says why the node cannot be measured now; "" when it can. A node on its way to another plan is measured when it
// has arrived.
func (c *candidate) unsettled() string {
	if ready := fleet.NodeReadiness(c.node); ready != "" && ready != corev1.ConditionTrue {
		return fmt.Sprintf("the condition Ready of the Node is %s", ready)
	}
	if c.profile == nil {
		if c.node.Status.NodeInfo.KernelVersion == "" {
			return "its kubelet has not reported its kernel yet"
		}
		return ""
	}
	hash := ""
	if c.report != nil {
		hash = c.report.Spec.PlanHash
	}
	applied := fleet.CurrentCondition(c.node, c.report, hash, v1alpha1.ConditionApplied)
	if applied.Status != metav1.ConditionTrue {
		return fmt.Sprintf("Applied of its LowLatencyNode is %s: %s", applied.Status, applied.Message)
	}
	return ""
}

// selected are the nodes that the test names, in ascending order.
func (w *World) selected() []candidate {
	var found []candidate
	for i := range w.Nodes {
		c := w.candidateOf(&w.Nodes[i])
		if c.node.DeletionTimestamp.IsZero() && selects(w.Test, w.Pools, &c) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return cmp.Compare(a.node.Name, b.node.Name) })
	return found
}

// candidateOf is a node with what is known of it.
func (w *World) candidateOf(node *corev1.Node) candidate {
	report := w.Reports[node.Name]
	if report != nil && !fleet.IsOfMachine(report, node) {
		report = nil
	}
	return candidate{node: node, report: report, profile: w.governor(node, report)}
}

// governor is the profile that governs a node; nil when none does. Before the LowLatencyNode is there, it is the one that is about to
// create it: what is measured before the plan is in force says nothing about it.
func (w *World) governor(node *corev1.Node, report *v1alpha1.LowLatencyNode) *v1alpha1.LowLatencyNodeProfile {
	for i := range w.Profiles {
		profile := &w.Profiles[i]
		if report != nil && profile.Name == report.Spec.Profile {
			return profile
		}
		if report == nil && profile.DeletionTimestamp.IsZero() && fleet.Selects(profile.Spec.NodeSelector, node) {
			return profile
		}
	}
	return nil
}

// selects reports whether a test measures a node. One that alone may run the server is not measured: there is no other for it, and with a pool on both ends of
// the way it is among the nodes of the pool.
func selects(test *v1alpha1.LatencyTest, pools []*v1alpha1.BypassNICPool, c *candidate) bool {
	nodes := &test.Spec.Nodes
	switch {
	case test.Spec.Traffic != nil && slices.Equal(test.Spec.Traffic.Server.NodeNames, []string{c.node.Name}):
		return false
	case nodes.Profile != "":
		return c.profile != nil && c.profile.Name == nodes.Profile
	case nodes.BypassNICPool != "":
		return slices.ContainsFunc(pools, func(pool *v1alpha1.BypassNICPool) bool {
			return pool.Name == nodes.BypassNICPool && fleet.Selects(pool.Spec.NodeSelector, c.node)
		})
	case nodes.NodeSelector != nil:
		return fleet.Selects(*nodes.NodeSelector, c.node)
	default:
		return slices.Contains(nodes.Names, c.node.Name)
	}
}
