// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// LatencyTest is a LatencyTest with what was measured.
type LatencyTest struct {
	Namespace string                   `json:"namespace"`
	Name      string                   `json:"name"`
	Kind      v1alpha1.LatencyTestKind `json:"kind"`
	// Ready is the condition of that name; nil when the operator has not seen the test.
	Ready *metav1.Condition `json:"ready"`
	// Undecided says why the results do not tell of the test as it is written now; "" when they do.
	Undecided string `json:"undecided,omitempty"`
	// Nodes in ascending order of their names.
	Nodes []LatencyNode `json:"nodes"`
}

// LatencyNode is what a test says of a node.
type LatencyNode struct {
	v1alpha1.LatencyTestResult `json:",inline"`
	// Test, as namespace/name, and Kind are those of the test of this node where nodes of several tests stand together; "" where all are of one.
	Test string                   `json:"test,omitempty"`
	Kind v1alpha1.LatencyTestKind `json:"kind,omitempty"`
	// ComparedWith is the test and node whose measurement is the previous one, such as "tests/quiet on n1", where they are others; "" else.
	ComparedWith string `json:"comparedWith,omitempty"`
	// Single are the percentiles that equal the longest interruption: one event decides them, and another run may show another value.
	Single []v1alpha1.PercentileName `json:"single,omitempty"`
	// Change is how the measurement stands to the one before; nil when there is none.
	Change *qualification.Change `json:"change,omitempty"`
}

// OfLatencyTest is the view of a test.
func OfLatencyTest(test *v1alpha1.LatencyTest) LatencyTest {
	v := LatencyTest{
		Namespace: test.Namespace, Name: test.Name, Kind: test.Spec.Kind,
		Ready: meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady), Nodes: []LatencyNode{},
		Undecided: undecided(test),
	}
	for i := range test.Status.Results {
		v.Nodes = append(v.Nodes, OfLatencyResult(&test.Status.Results[i], test.Status.Results[i].Previous, test.Status.Results[i].Earlier...))
	}
	slices.SortStableFunc(v.Nodes, func(a, b LatencyNode) int { return cmp.Compare(a.Node, b.Node) })
	return v
}

// undecided says why the results of a test do not tell of it as it is written now; "" when they do.
func undecided(test *v1alpha1.LatencyTest) string {
	stalled := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionStalled)
	ready := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case test.Status.ObservedGeneration < test.Generation:
		return "the operator has not looked at the last change of the test"
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return "the test stands still: " + stalled.Message
	case ready != nil && ready.Reason == v1alpha1.ReasonNodesMissing:
		return ready.Message
	default:
		return ""
	}
}

// OfLatencyResult is the view of a result beside another measurement of the node, which may be nil, and runs before that.
func OfLatencyResult(result *v1alpha1.LatencyTestResult, before *v1alpha1.LatencyMeasurement, earlier ...v1alpha1.LatencyRunSpread) LatencyNode {
	node := LatencyNode{LatencyTestResult: *result.DeepCopy()}
	node.Previous, node.Earlier = before, earlier
	if node.Measured == nil {
		return node
	}
	for _, p := range node.Measured.Percentiles {
		if p.Nanoseconds > 0 && p.Nanoseconds == node.Measured.MaximumNanoseconds {
			node.Single = append(node.Single, p.Percentile)
		}
	}
	if before != nil {
		change := qualification.CompareMeasurements(before, node.Measured, earlier...)
		node.Change = &change
	}
	return node
}

// OnlyRun makes nodes Inconclusive whose measurement is of a run before the wanted one: it stands where a later run gave no result,
// but says nothing of that run. The first run is 0, before which there is none.
func (v *LatencyTest) OnlyRun(run int32) {
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Measured != nil && n.Measured.Run < run {
			n.Outcome, n.Reason = v1alpha1.LatencyInconclusive, v1alpha1.TestMeasurementFailed
			n.Message = fmt.Sprintf("run %d gave no result; what is shown is of run %d", run, n.Measured.Run)
		}
	}
}

// Status sums up nodes: False when one has failed, Unknown when one has no fresh pass, there is none, or the results do not tell of the
// test as it is written now, else True.
func (v *LatencyTest) Status() metav1.ConditionStatus {
	status := metav1.ConditionTrue
	if len(v.Nodes) == 0 || v.Undecided != "" {
		status = metav1.ConditionUnknown
	}
	for i := range v.Nodes {
		node := &v.Nodes[i]
		switch {
		case node.Outcome == v1alpha1.LatencyFailed && node.Freshness == v1alpha1.LatencyFresh:
			return metav1.ConditionFalse
		case node.Outcome != v1alpha1.LatencyPassed || node.Freshness != v1alpha1.LatencyFresh:
			status = metav1.ConditionUnknown
		}
	}
	return status
}

// Trend sums up what has become of nodes: False when one is worse, Unknown when one cannot be compared or there is none, else True.
func (v *LatencyTest) Trend() metav1.ConditionStatus {
	status := metav1.ConditionTrue
	if len(v.Nodes) == 0 {
		return metav1.ConditionUnknown
	}
	for i := range v.Nodes {
		switch change := v.Nodes[i].Change; {
		case change == nil || change.Trend == qualification.TrendUnknown:
			status = metav1.ConditionUnknown
		case change.Trend == qualification.TrendWorse:
			return metav1.ConditionFalse
		}
	}
	return status
}

// Isolation is what the scheduler, the idle governor and the processor counted during a measurement, which may be nil: a sentence, or one for each end, of each
// side of a comparison, as far as they were asked.
func Isolation(m *v1alpha1.LatencyMeasurement) []string {
	if m == nil {
		return nil
	}
	var sentences []string
	say := func(of string, counted *v1alpha1.LatencyIsolation) {
		if words := qualification.IsolationWords(counted); len(words) > 0 {
			sentences = append(sentences, of+"over the measurement, "+strings.Join(words, ", "))
		}
	}
	if m.Network == nil {
		say("", m.Isolation)
	} else {
		say("at the client, ", m.Isolation)
		say("at the server, ", m.Network.ServerIsolation)
	}
	if words := qualification.ManagementInterruptWords(m.ManagementInterrupts); words != "" {
		sentences = append(sentences, "over the measurement, "+words)
	}
	if m.Network != nil && m.Network.Comparison != nil {
		for i := range m.Network.Comparison.Sides {
			side := &m.Network.Comparison.Sides[i]
			name := strings.ToLower(string(side.Side))
			say(name+", at the client: ", side.Isolation)
			say(name+", at the server: ", side.ServerIsolation)
		}
	}
	return sentences
}
