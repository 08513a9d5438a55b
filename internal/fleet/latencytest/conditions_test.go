// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/states"
)

// outcome is what happens to a test of two nodes, and Ready, Progressing, Degraded and Stalled then, with the reason of Ready.
type outcome struct {
	happens func(*scene)
	want    string
}

// measured lets two nodes be measured, of which the first is always good.
func (s *scene) measured(second int64) {
	s.step()
	s.ends("node-1", record(s.t, 1))
	s.ends("node-2", record(s.t, second))
	s.step()
}

// again asks for another run.
func (s *scene) again() {
	s.Test.Spec.Run, s.Test.Generation = s.Test.Spec.Run+1, s.Test.Generation+1
	s.step()
}

// judgedOutcomes are those in which nodes pass and fail.
func judgedOutcomes() map[string]outcome {
	return map[string]outcome{
		"nodes are measured": {func(s *scene) { s.step() }, "Unknown/True/False/- TestsRunning"},
		"nodes wait until they are settled": {func(s *scene) {
			s.Nodes[0].Status.Conditions[0].Status, s.Nodes[1].Status.Conditions[0].Status = "False", "Unknown"
			s.step()
		}, "Unknown/True/False/- TestsRunning"},
		"a node has passed, another is measured": {func(s *scene) {
			s.step()
			s.ends("node-1", record(s.t, 1))
			s.step()
		}, "Unknown/True/False/- TestsRunning"},
		"all nodes have passed": {func(s *scene) { s.measured(2) }, "True/False/False/- TestsPassed"},
		"all nodes have passed and are measured once more": {func(s *scene) {
			s.measured(2)
			s.again()
		}, "True/True/False/- TestsPassed"},
		"a node has failed": {func(s *scene) { s.measured(10_001) }, "False/False/True/- TestsFailed"},
		"a node has failed, another is measured": {func(s *scene) {
			s.step()
			s.ends("node-2", record(s.t, 10_001))
			s.step()
		}, "False/True/True/- TestsFailed"},
		"a node has failed and is measured once more": {func(s *scene) {
			s.measured(10_001)
			s.again()
		}, "False/True/True/- TestsFailed"},
	}
}

// otherOutcomes are those in which something is not judged, or not any more.
func otherOutcomes() map[string]outcome {
	return map[string]outcome{
		"a node has failed, another gave no result": {func(s *scene) {
			s.step()
			s.ends("node-1", problem(s.t))
			s.ends("node-2", record(s.t, 10_001))
			s.step()
		}, "False/False/True/- TestsFailed"},
		"a node had failed by a smaller budget": {func(s *scene) {
			s.measured(10_001)
			s.Test.Spec.Budget.MaximumNanoseconds, s.Test.Generation = 20_000, 2
			s.step()
		}, "True/False/False/- TestsPassed"},
		"a node gave no result": {func(s *scene) {
			s.step()
			s.ends("node-1", problem(s.t))
			s.ends("node-2", record(s.t, 1))
			s.step()
		}, "Unknown/False/False/- TestsInconclusive"},
		"a node gave no result and is measured once more": {func(s *scene) {
			s.step()
			s.ends("node-1", problem(s.t))
			s.ends("node-2", record(s.t, 1))
			s.step()
			s.Now = s.Now.Add(firstRetry)
			s.step()
		}, "Unknown/True/False/- TestsInconclusive"},
		"there is no budget": {func(s *scene) {
			s.Test.Spec.Budget = nil
			s.measured(2)
		}, "Unknown/False/False/- TestsInconclusive"},
		"a result is stale": {func(s *scene) {
			s.measured(2)
			s.Reports["node-1"].Status.Inventory.KernelRelease, s.Nodes[0].Status.NodeInfo.KernelVersion = "6.13", "6.13"
			s.step()
		}, "Unknown/True/False/- TestsRunning"},
		"results have expired": {func(s *scene) {
			s.Test.Spec.ExpireAfterHours = 1
			s.measured(2)
			s.Now = s.Now.Add(time.Hour)
			s.step()
		}, "Unknown/True/False/- TestsRunning"},
		"no node is selected": {func(s *scene) {
			s.Nodes = nil
			s.step()
		}, "True/False/False/- NoNodes"},
		"the image is not known": {func(s *scene) {
			s.Image = ""
			s.step()
		}, "False/False/True/True ImageUnknown"},
		"the schedule cannot be read": {func(s *scene) {
			s.Test.Spec.RepeatAt = &v1alpha1.TestSchedule{Schedule: "0 25 * * *"}
			s.step()
		}, "False/True/True/True ScheduleInvalid"},
		"all nodes have passed, and the next time is known": {func(s *scene) {
			s.Test.Spec.RepeatAt = &v1alpha1.TestSchedule{Schedule: "30 2 * * 6"}
			s.measured(2)
		}, "True/False/False/- TestsPassed"},
		"the namespace is not made for pods in the network of a node": {func(s *scene) {
			s.TrafficImage, s.HostNamespace = "registry.example/lowlatency-traffic:v1", "agents"
			s.Test.Spec.Kind = v1alpha1.LatencyTestContainerVersusHost
			s.Test.Spec.Traffic = &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}}
			s.step()
		}, "False/False/True/True NamespaceNotPermitted"},
		"too many nodes are selected": {func(s *scene) {
			for i := range v1alpha1.MaxTestedNodes {
				s.add(fmt.Sprintf("more-%03d", i))
			}
			s.step()
		}, "False/False/True/True TooManyNodes"},
		"too many nodes are selected while some are measured": {func(s *scene) {
			s.step()
			for i := range v1alpha1.MaxTestedNodes {
				s.add(fmt.Sprintf("more-%03d", i))
			}
			s.step()
		}, "False/True/True/True TooManyNodes"},
	}
}

// namedOutcomes are those of tests that name nodes.
func namedOutcomes() map[string]outcome {
	return map[string]outcome{
		"a name that no Node has": {func(s *scene) {
			s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{"node-1", "nod-2", "node-2"}}
			s.measured(2)
		}, "Unknown/False/False/- NodesMissing"},
		"names that no Node has": {func(s *scene) {
			s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{"a", "b", "c", "d", "e", "f", "g"}}
			s.step()
			if got, want := s.Test.Status.Conditions[0].Message, "spec.nodes.names has names that no Node has: a, b, c, d, e and 2 more"; got != want {
				s.t.Errorf("message %q, want %q", got, want)
			}
		}, "Unknown/False/False/- NodesMissing"},
		"a name that no Node has, while others are measured": {func(s *scene) {
			s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{"node-1", "nod-2"}}
			s.step()
		}, "Unknown/True/False/- TestsRunning"},
	}
}

// TestConditionsOfOutcomes is the table of docs/conditions.md.
func TestConditionsOfOutcomes(t *testing.T) {
	cases := judgedOutcomes()
	maps.Copy(cases, otherOutcomes())
	maps.Copy(cases, namedOutcomes())
	recorded := states.Recorder{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "node-1", "node-2")
			tc.happens(s)
			conditions := s.Test.Status.Conditions
			kinds := []string{v1alpha1.ConditionReady, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded, v1alpha1.ConditionStalled}
			statuses := make([]string, 0, len(kinds))
			for _, kind := range kinds {
				status := metav1.ConditionStatus("-")
				if c := meta.FindStatusCondition(conditions, kind); c != nil {
					status = c.Status
				}
				statuses = append(statuses, string(status))
			}
			ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
			if got := strings.Join(statuses, "/") + " " + ready.Reason; got != tc.want {
				t.Errorf("conditions are %s (%s), want %s", got, ready.Message, tc.want)
			}
			recorded.Record(name, conditions)
		})
	}
	recorded.Assert(t, "LatencyTest")
}
