// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

func compare(a, b string) int { return cmp.Compare(a, b) }

// stalled says what only another spec, or another manager, can mend; "" when there is nothing. With a schedule that cannot be read, nodes are measured
// all the same, but for repetitions.
func (d *decider) stalled() (reason, message string) {
	if d.scheduleProblem != nil {
		return v1alpha1.ReasonScheduleInvalid, d.scheduleProblem.Error()
	}
	return d.impossible()
}

// impossible says why nothing can be measured, whatever the nodes do; "" when something can.
func (d *decider) impossible() (reason, message string) {
	switch {
	case d.Test.Spec.Kind != v1alpha1.LatencyTestJitter && d.TrafficImage == "":
		return v1alpha1.ReasonImageUnknown, "the image lowlatency-traffic, which measures over the network, is not known: apply the PodTemplate of config/manager, or start the " +
			"operator's manager with --traffic-image or the environment variable RELATED_IMAGE_TRAFFIC"
	case d.Test.Spec.Kind == v1alpha1.LatencyTestJitter && d.Image == "":
		return v1alpha1.ReasonImageUnknown, "the image of the operator's program is not known: start the operator's manager with --image, " +
			"or as a Pod with the environment variable POD_NAME"
	case d.needsHosts() && d.Test.Namespace != d.HostNamespace:
		return v1alpha1.ReasonNamespaceNotPermitted, fmt.Sprintf("a LatencyTest of kind %s has pods in the network namespace of its nodes, which only namespace %s is made for: make it there",
			d.Test.Spec.Kind, d.HostNamespace)
	case len(d.selectedNodes) > d.mostNodes():
		return v1alpha1.ReasonTooManyNodes, fmt.Sprintf("spec.nodes selects %d nodes, and a LatencyTest of kind %s has at most %d: make several of it by nodeSelector",
			len(d.selectedNodes), d.Test.Spec.Kind, d.mostNodes())
	}
	return "", ""
}

// mostNodes is how many nodes a test has at most: what was measured of them has to find room in one object.
func (w *World) mostNodes() int {
	p := qualification.ParametersOf(&w.Test.Spec)
	switch {
	case p.Comparison != nil:
		return min(v1alpha1.MaxComparedNodes, v1alpha1.MaxComparedRows/max(1, len(p.Comparison.Sides)*(len(p.Sizes)+1)))
	case p.IsOnSchedule():
		return v1alpha1.MaxSweptNodes
	}
	return min(v1alpha1.MaxTestedNodes, v1alpha1.MaxPingPongRows/(len(p.Sizes)+1))
}

// inRoom is a measurement as the status of the test has room for it: without intervals where the selected nodes have many sizes and rates together, and
// with as much of what was counted on the CPUs of both ends as there is room for then.
func (d *decider) inRoom(measured *v1alpha1.LatencyMeasurement) *v1alpha1.LatencyMeasurement {
	if !d.hasRoom(measured) {
		measured = withoutIntervals(measured)
	}
	return d.withCountsInRoom(measured)
}

// hasRoom reports whether the selected nodes have few sizes and rates together.
func (d *decider) hasRoom(measured *v1alpha1.LatencyMeasurement) bool {
	return measured.Network == nil || len(d.selectedNodes)*len(qualification.Rows(measured.Network)) <= v1alpha1.MaxIntervals
}

// asPrevious is a measurement as the next one is compared with it: without what nobody compares, and without the versions of drivers and what the kernel counted
// on the path where there is no room for them.
func (d *decider) asPrevious(measured *v1alpha1.LatencyMeasurement) *v1alpha1.LatencyMeasurement {
	previous := withoutCounts(withoutIntervals(withoutHistograms(measured)))
	if !d.hasRoom(measured) {
		previous.Fingerprint.Drivers, previous.Network.PathMessage = nil, ""
	}
	return previous
}

// earlierInRoom are the newest of the runs before the previous one, of which there is one where nodes have many sizes and rates together.
func (d *decider) earlierInRoom(previous *v1alpha1.LatencyMeasurement, earlier []v1alpha1.LatencyRunSpread) []v1alpha1.LatencyRunSpread {
	if d.hasRoom(previous) {
		return earlier
	}
	return earlier[:min(1, len(earlier))]
}

// withoutIntervals is a measurement that takes less room. The versions of drivers on the node of the server go, too: those of the measured node
// make its result stale and name what changed.
func withoutIntervals(measured *v1alpha1.LatencyMeasurement) *v1alpha1.LatencyMeasurement {
	m := measured.DeepCopy()
	if m.Network == nil {
		return m
	}
	if m.Network.ServerFingerprint != nil {
		m.Network.ServerFingerprint.Drivers = nil
	}
	for i := range m.Network.Sizes {
		forgetIntervals(&m.Network.Sizes[i].LatencyFigures)
	}
	for i := range m.Network.Rates {
		forgetIntervals(&m.Network.Rates[i].FromIntended)
		forgetIntervals(&m.Network.Rates[i].FromSent)
	}
	if m.Network.Comparison == nil {
		return m
	}
	for i := range m.Network.Comparison.Sides {
		for j := range m.Network.Comparison.Sides[i].Sizes {
			forgetIntervals(&m.Network.Comparison.Sides[i].Sizes[j].LatencyFigures)
		}
	}
	return m
}

func forgetIntervals(f *v1alpha1.LatencyFigures) { f.LeastSamples, f.Intervals = 0, nil }

// summarize writes counts and conditions.
func (d *decider) summarize() {
	d.Status.ObservedGeneration = d.Test.Generation
	counts := d.count()
	d.Status.Nodes = &counts
	d.Status.Conditions = nil
	for _, c := range d.Test.Status.Conditions {
		d.Status.Conditions = append(d.Status.Conditions, *c.DeepCopy())
	}
	ready := d.ready(counts)
	d.set(v1alpha1.ConditionReady, ready)
	d.set(v1alpha1.ConditionProgressing, d.progressing(counts))
	d.set(v1alpha1.ConditionDegraded, d.degraded(counts))
	if reason, message := d.stalled(); reason != "" {
		d.set(v1alpha1.ConditionStalled, metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message})
	} else {
		meta.RemoveStatusCondition(&d.Status.Conditions, v1alpha1.ConditionStalled)
	}
}

func (d *decider) set(kind string, c metav1.Condition) {
	c.Type, c.ObservedGeneration, c.LastTransitionTime = kind, d.Test.Generation, metav1.NewTime(d.Now)
	c.Message = shorten.Sentence(c.Message, v1alpha1.MaxConditionMessageLength)
	meta.SetStatusCondition(&d.Status.Conditions, c)
}

func (d *decider) count() v1alpha1.LatencyTestCounts {
	counts := v1alpha1.LatencyTestCounts{Selected: int32(len(d.selectedNodes))}
	for i := range d.Status.Results {
		result := &d.Status.Results[i]
		switch {
		case result.Outcome == v1alpha1.LatencyInconclusive:
			counts.Inconclusive++
		case result.Freshness != v1alpha1.LatencyFresh && result.Freshness != "":
			counts.Stale++
		case result.Outcome == v1alpha1.LatencyPassed:
			counts.Passed++
		case result.Outcome == v1alpha1.LatencyFailed:
			counts.Failed++
		}
		switch result.Activity {
		case v1alpha1.LatencyRunning:
			counts.Running++
		case v1alpha1.LatencyWaiting:
			counts.Waiting++
		case v1alpha1.LatencyIdle:
		}
	}
	return counts
}

// ready is the condition Ready. What failed speaks before what gave no result, and that before what is under way.
func (d *decider) ready(counts v1alpha1.LatencyTestCounts) metav1.Condition {
	if reason, message := d.stalled(); reason != "" {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
	}
	missing := d.missing()
	switch {
	case counts.Selected == 0 && missing == "":
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoNodes, Message: "spec.nodes selects no node"}
	case counts.Failed > 0:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTestsFailed, Message: d.first(counts.Failed, v1alpha1.LatencyFailed)}
	case counts.Inconclusive > 0:
		return metav1.Condition{
			Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonTestsInconclusive, Message: d.first(counts.Inconclusive, v1alpha1.LatencyInconclusive),
		}
	case counts.Passed < counts.Selected:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonTestsRunning, Message: under(counts)}
	case missing != "" && counts.Selected == 0:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodesMissing, Message: missing}
	case missing != "":
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNodesMissing, Message: fmt.Sprintf("%d of %d nodes passed; %s", counts.Passed, counts.Selected, missing)}
	}
	return metav1.Condition{
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTestsPassed, Message: fmt.Sprintf("%d of %d nodes passed", counts.Passed, counts.Selected),
	}
}

// missing says which nodes the test names that are not there: a name that is mistyped is measured by nobody. It is "" when all are.
func (d *decider) missing() string {
	strangers := slices.DeleteFunc(slices.Clone(d.Test.Spec.Nodes.Names), func(name string) bool {
		return slices.ContainsFunc(d.Nodes, func(n corev1.Node) bool { return n.Name == name })
	})
	if len(strangers) == 0 {
		return ""
	}
	return "spec.nodes.names has names that no Node has: " + fleet.Names(strangers)
}

// first is what the first node of an outcome says, and how many there are.
func (d *decider) first(count int32, outcome v1alpha1.LatencyOutcome) string {
	for i := range d.Status.Results {
		result := &d.Status.Results[i]
		if result.Outcome == outcome && (result.Freshness == v1alpha1.LatencyFresh || outcome == v1alpha1.LatencyInconclusive) {
			return fmt.Sprintf("%d of %d nodes: %s; node %s: %s", count, len(d.selectedNodes), outcome, result.Node, result.Message)
		}
	}
	return ""
}

func under(counts v1alpha1.LatencyTestCounts) string {
	return fmt.Sprintf("%d of %d nodes passed, %d are measured, %d wait", counts.Passed, counts.Selected, counts.Running, counts.Waiting)
}

func (d *decider) progressing(counts v1alpha1.LatencyTestCounts) metav1.Condition {
	if counts.Running+counts.Waiting > 0 {
		message := under(counts)
		if d.waits != "" {
			message += "; " + d.waits
		}
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTestsRunning, Message: message}
	}
	message := "no node is to be measured now"
	if !d.next.IsZero() {
		message += "; the next measurement is due on " + d.next.Format("Monday, 2006-01-02 15:04 MST")
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAsExpected, Message: message}
}

// degraded is True for what does not mend itself, as with the other kinds.
func (d *decider) degraded(counts v1alpha1.LatencyTestCounts) metav1.Condition {
	if reason, message := d.stalled(); reason != "" {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	if counts.Failed > 0 {
		return metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonTestsFailed, Message: d.first(counts.Failed, v1alpha1.LatencyFailed)}
	}
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAsExpected, Message: "no node is beyond the budget"}
}

// SameStatus reports whether writing a status would change nothing.
func SameStatus(have, want *v1alpha1.LatencyTestStatus) bool {
	return equality.Semantic.DeepEqual(have, want)
}
