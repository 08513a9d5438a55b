// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// newComparison is a world in which a container on node-1 is compared with its host, five times.
func newComparison(t *testing.T) *scene {
	t.Helper()
	s := newPingPong(t, "node-2")
	s.Test.Namespace, s.HostNamespace = "agents", "agents"
	s.Test.Spec.Kind, s.Test.Spec.Repetitions = v1alpha1.LatencyTestContainerVersusHost, 5
	s.Test.Spec.PingPong.Sizes = []int32{64}
	s.Test.Spec.Budget = &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P99, MaximumPartsPerThousand: 1050}}}
	return s
}

// runRecord is what a run of a comparison leaves behind whose median is given; change spoils it.
func runRecord(t *testing.T, median int64, change func(*qualification.Record)) string {
	t.Helper()
	size := v1alpha1.SizeMeasurement{Bytes: 64, LatencyFigures: v1alpha1.LatencyFigures{
		Samples: 20_000, MinimumNanoseconds: median / 2, MeanNanoseconds: median, MaximumNanoseconds: 9 * median,
		Percentiles: []v1alpha1.LatencyPercentile{{Nanoseconds: median}, {Nanoseconds: 2 * median}, {Nanoseconds: 3 * median}},
	}}
	return pingPongRecord(t, 9_000, func(r *qualification.Record) {
		r.Kind, r.MaximumNanoseconds, r.RepetitionMaximums = v1alpha1.LatencyTestContainerVersusHost, 9*median, []int64{9 * median}
		r.Network.Sizes, r.Network.Medians = [][]int64{qualification.SizeRow(&size)}, []int64{median}
		for i, p := range size.Percentiles {
			r.Percentiles[i].Nanoseconds = p.Nanoseconds
		}
		if change != nil {
			change(r)
		}
	})
}

// isHost reports whether the Job that measures node-1 now does so from the network of the node.
func (s *scene) isHost() bool {
	s.t.Helper()
	job := s.jobNamed(s.of("node-1").Job)
	if job == nil {
		s.t.Fatalf("node-1 has no Job: %+v", s.of("node-1"))
	}
	return job.Spec.Template.Spec.HostNetwork
}

// begins lets the server be ready.
func (s *scene) begins() {
	s.t.Helper()
	s.step()
	s.serves("node-1", "10.0.0.7")
	s.step()
}

// run ends the measurement that is under way. A container takes so many parts per thousand of what its host takes.
func (s *scene) run(parts int64) *Decision {
	s.t.Helper()
	median := int64(10_000)
	if !s.isHost() {
		median = median * parts / 1000
	}
	s.ends("node-1", runRecord(s.t, median, nil))
	return s.step()
}

func TestComparisonFromServerToVerdict(t *testing.T) {
	for name, tc := range map[string]struct {
		parts int64
		want  string
	}{
		"as fast":     {1000, "Idle Passed Fresh WithinBudget"},
		"too slow":    {1100, "Idle Failed Fresh Ratio"},
		"even faster": {900, "Idle Passed Fresh WithinBudget"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newComparison(t)
			s.begins()
			order := make([]bool, 0, 10)
			for run := range 10 {
				order = append(order, s.isHost())
				d := s.run(tc.parts)
				if last := run == 9; len(d.Start) == 0 != last || len(d.Stop) == 1 != last {
					t.Fatalf("after run %d %d Jobs are made and %d deleted: %s", run, len(d.Start), len(d.Stop), s.of("node-1").Message)
				}
			}
			if diff := cmp.Diff([]bool{false, true, true, false, false, true, true, false, false, true}, order); diff != "" {
				t.Errorf("the order is another (-want +got):\n%s", diff)
			}
			s.expect("node-1", tc.want)
			ratio := qualification.RatioOf(&s.of("node-1").Measured.Network.Comparison.Sides[0], 64, v1alpha1.P99)
			if ratio == nil || ratio.PartsPerThousand != tc.parts {
				t.Errorf("%+v", ratio)
			}
			if r := s.of("node-1"); r.ComparedRuns != 0 || r.Measured.Network.Server != "node-2" || r.Measured.Network.ServerFingerprint == nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestComparisonGoesOn: whoever decides next, from what is recorded in objects, makes each Job once, and tells how far it is.
func TestComparisonGoesOn(t *testing.T) {
	s := newComparison(t)
	s.begins()
	s.run(1000)
	s.run(1000)
	for range 3 {
		if d := s.step(); len(d.Start)+len(d.Stop) != 0 {
			t.Fatalf("%+v", d)
		}
	}
	s.runs("node-1")
	s.step()
	if got := s.of("node-1").Message; !strings.HasPrefix(got, "measurement 3 of 10 (host): pod ") {
		t.Error(got)
	}
	seen := map[string]bool{}
	for i := range s.Jobs {
		if seen[s.Jobs[i].Name] || len(s.Jobs[i].Name) > v1alpha1.MaxTestNameLength {
			t.Errorf("Job %s", s.Jobs[i].Name)
		}
		seen[s.Jobs[i].Name] = true
	}
}

// TestJobOfAHost has the network of the node, the account that is made for it, and nothing else of the host.
func TestJobOfAHost(t *testing.T) {
	s := newComparison(t)
	s.Pools = []*v1alpha1.BypassNICPool{{ObjectMeta: metav1.ObjectMeta{Name: "x2"}, Spec: v1alpha1.BypassNICPoolSpec{
		ResourceName: "lowlatency.dev/x2", NetworkAttachment: &v1alpha1.NetworkAttachmentSpec{Namespaces: []string{"agents"}},
	}}}
	s.Test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.31/24"}
	s.begins()
	container := s.jobNamed(s.of("node-1").Job).DeepCopy()
	s.run(1000)
	host := s.jobNamed(s.of("node-1").Job)
	if !s.isHost() || container.Spec.Template.Annotations[annotationNetworks] == "" || host.Spec.Template.Annotations[annotationNetworks] != "" {
		t.Errorf("%+v and %+v", container.Spec.Template.Annotations, host.Spec.Template.Annotations)
	}
	if got := host.Spec.Template.Spec.Containers[0].Resources; got.Limits.Name("lowlatency.dev/x2", "").IsZero() {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(host.Spec.Template.Spec.Containers[0].Args, container.Spec.Template.Spec.Containers[0].Args) {
		t.Error("the two sides measure differently")
	}
	text, err := yaml.Marshal(host)
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(text), "host.yaml")
}

// TestComparisonsWithoutAResult: what happens to one measurement happens to all.
func TestComparisonsWithoutAResult(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(*scene)
		want    string
	}{
		"a problem of one": {func(s *scene) {
			s.ends("node-1", `{"version":1,"kind":"ContainerVersusHost","problem":{"reason":"MachineBusy","message":"busy"}}`)
		}, "Idle Inconclusive  MachineBusy"},
		"garbage of one": {func(s *scene) { s.ends("node-1", "\x1b[2J") }, "Idle Inconclusive  BadResult"},
		"two repetitions in one": {func(s *scene) {
			s.ends("node-1", runRecord(s.t, 10_000, func(r *qualification.Record) {
				r.RepetitionMaximums, r.Network.Medians = append(r.RepetitionMaximums, 1), append(r.Network.Medians, 1)
			}))
		}, "Idle Inconclusive  BadResult"},
		"another kind": {func(s *scene) {
			s.ends("node-1", runRecord(s.t, 10_000, func(r *qualification.Record) { r.Kind = v1alpha1.LatencyTestPingPong }))
		}, "Idle Inconclusive  BadResult"},
		"a pod of another network": {func(s *scene) {
			s.ends("node-1", runRecord(s.t, 10_000, nil))
			s.Pods[len(s.Pods)-1].Spec.HostNetwork = !s.isHost()
		}, "Idle Inconclusive  ForeignPod"},
		"the node leaves": {func(s *scene) { s.Nodes = s.Nodes[1:] }, "Idle Inconclusive  NodeLeft"},
		"the server leaves": {func(s *scene) {
			s.Nodes = slices.DeleteFunc(s.Nodes, func(n corev1.Node) bool { return n.Name == "node-2" })
		}, "Idle Inconclusive  PeerVanished"},
		"the node becomes another": {func(s *scene) {
			s.Reports["node-1"].Status.Inventory.Microcode = "0x2"
			s.run(1000)
		}, "Idle Inconclusive  NodeChanged"},
		"its Job is deleted": {func(s *scene) {
			s.Jobs = without(s.Jobs, s.of("node-1").Job)
			s.Now = s.Now.Add(jobAppears)
		}, "Idle Inconclusive  JobGone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newComparison(t)
			s.begins()
			s.run(1000)
			tc.happens(s)
			s.step()
			s.expect("node-1", tc.want)
			if r := s.of("node-1"); r.ComparedRuns != 0 {
				t.Errorf("%+v", r)
			}
			if job := s.jobNamed(s.of("node-1").Server.Job); job != nil {
				t.Error("the server stays")
			}
		})
	}
}

// TestEarlierMeasurementIsDeleted: all have to be there at the end.
func TestEarlierMeasurementIsDeleted(t *testing.T) {
	s := newComparison(t)
	s.begins()
	first := s.of("node-1").Job
	for range 9 {
		s.run(1000)
	}
	s.Jobs = without(s.Jobs, first)
	s.run(1000)
	s.expect("node-1", "Idle Inconclusive  JobGone")
	s.Now = s.Now.Add(firstRetry)
	s.step()
	if r := s.of("node-1"); r.Activity != v1alpha1.LatencyRunning || r.ComparedRuns != 0 || strings.HasPrefix(first, strings.TrimSuffix(r.Job, "-0")) {
		t.Errorf("%+v", r)
	}
}

// TestComparisonThatIsChanged begins anew when something else is to be measured, and goes on when only the budget is another.
func TestComparisonThatIsChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.LatencyTestSpec)
		runs   int32
	}{
		"another budget": {func(spec *v1alpha1.LatencyTestSpec) { spec.Budget.Ratios[0].MaximumPartsPerThousand = 2000 }, 2},
		"other sizes":    {func(spec *v1alpha1.LatencyTestSpec) { spec.PingPong.Sizes = []int32{128} }, 0},
		"another kind":   {func(spec *v1alpha1.LatencyTestSpec) { spec.Kind = v1alpha1.LatencyTestPingPong }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newComparison(t)
			s.begins()
			s.run(1000)
			s.run(1000)
			before := s.of("node-1").Job
			tc.change(&s.Test.Spec)
			s.Test.Generation++
			s.step()
			if r := s.of("node-1"); r.ComparedRuns != tc.runs || (r.Job == before) != (tc.runs > 0) && r.Activity == v1alpha1.LatencyRunning {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestNamespacesOfHosts: only one is made for pods in the network of a node.
func TestNamespacesOfHosts(t *testing.T) {
	s := newComparison(t)
	s.Test.Namespace = "tests"
	if d := s.step(); len(d.Start) != 0 {
		t.Error("a Job is made")
	}
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotPermitted)
}

// TestComparisonsHaveFewerNodes: their results take the room of all sides.
func TestComparisonsHaveFewerNodes(t *testing.T) {
	s := newComparison(t)
	s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Profile: "trading"}
	for i := range v1alpha1.MaxComparedNodes {
		s.add(fmt.Sprintf("more-%d", i))
	}
	s.step()
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonTooManyNodes)
}

// TestFinishedRunsStay until the last one has ended, however long each takes to start.
func TestFinishedRunsStay(t *testing.T) {
	s := newComparison(t)
	s.Test.Spec.DurationSeconds, s.Test.Spec.Repetitions = v1alpha1.MaxTestDurationSeconds, v1alpha1.MaxTestRepetitions
	s.begins()
	job, server := s.jobNamed(s.of("node-1").Job), s.jobNamed(s.of("node-1").Server.Job)
	all := 20 * (StartTime + v1alpha1.MaxTestDurationSeconds*time.Second)
	if kept := time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second; kept < all {
		t.Errorf("a finished Job stays for %s, and all take %s", kept, all)
	}
	if longest := time.Duration(*server.Spec.ActiveDeadlineSeconds) * time.Second; longest < all {
		t.Errorf("the server stays for %s, and all take %s", longest, all)
	}
}
