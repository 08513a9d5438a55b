// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

const image = "registry.example/lowlatency-operator:v1"

func begin() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

// scene is a world that goes on in time: what was decided becomes what is.
type scene struct {
	t *testing.T
	*World
}

func newScene(t *testing.T, nodes ...string) *scene {
	t.Helper()
	s := &scene{t, &World{
		Test: &v1alpha1.LatencyTest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "quiet", UID: "test-1", Generation: 1},
			Spec: v1alpha1.LatencyTestSpec{
				Kind: v1alpha1.LatencyTestJitter, Nodes: v1alpha1.LatencyTestNodes{Profile: "trading"},
				Budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000},
			},
		},
		Reports: map[string]*v1alpha1.LowLatencyNode{}, Profiles: []v1alpha1.LowLatencyNodeProfile{{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}},
		Image: image, Now: begin(),
	}}
	for _, name := range nodes {
		s.add(name)
	}
	return s
}

// add is a node that has proven its plan.
func (s *scene) add(name string) {
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "b1", KernelVersion: "6.12"}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Spec.Taints = []corev1.Taint{
		{Key: "trading", Value: "only", Effect: corev1.TaintEffectNoSchedule}, {Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule},
		{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule},
	}
	s.Nodes = append(s.Nodes, node)
	report := &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading", PlanHash: "plan-1"}}
	report.Status = v1alpha1.LowLatencyNodeStatus{
		BootID: "b1", VerifiedPlanHash: "plan-1",
		Inventory:  &v1alpha1.Inventory{KernelRelease: "6.12", OnlineCPUs: "0-7", Cores: []string{"0,4", "1,5", "2,6", "3,7"}},
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue}},
	}
	s.Reports[name] = report
}

// step decides, and lets the world be what was decided.
func (s *scene) step() *Decision {
	s.t.Helper()
	d := Decide(s.World)
	s.Test.Status = *d.Status.DeepCopy()
	for _, job := range d.Start {
		made := job.DeepCopy()
		made.UID = types.UID("uid-" + job.Name)
		s.Jobs = append(s.Jobs, *made)
	}
	for _, job := range d.Stop {
		s.Jobs = without(s.Jobs, job.Name)
	}
	return d
}

func without(jobs []batchv1.Job, name string) []batchv1.Job {
	var rest []batchv1.Job
	for _, job := range jobs {
		if job.Name != name {
			rest = append(rest, job)
		}
	}
	return rest
}

// runs is the pod of the Job that measures a node.
func (s *scene) runs(node string) (*batchv1.Job, *corev1.Pod) {
	s.t.Helper()
	job := s.jobNamed(s.of(node).Job)
	if job == nil {
		s.t.Fatalf("node %s has no Job", node)
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-pod", Namespace: job.Namespace, Labels: job.Labels}}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}}
	pod.Spec = *job.Spec.Template.Spec.DeepCopy()
	pod.Spec.NodeName = node
	pod.Status.Phase = corev1.PodRunning
	s.Pods = append(s.Pods, pod)
	return job, &s.Pods[len(s.Pods)-1]
}

// ends lets the Job of a node end with a message of its pod.
func (s *scene) ends(node, message string) {
	s.t.Helper()
	job, pod := s.runs(node)
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: containerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: message}},
	}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
}

// passes lets node-1 be measured for the first time, and pass.
func (s *scene) passes() {
	s.t.Helper()
	s.step()
	s.ends("node-1", record(s.t, 9_000))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
}

// record is what a pod leaves behind that has seen one interruption of the length.
func record(t *testing.T, maximum int64, change ...func(*qualification.Record)) string {
	t.Helper()
	r := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestJitter, Kernel: "6.12", BootID: "b1", CPUs: "2", WorstCPU: new(int32(2)), Interruptions: 1,
		MaximumNanoseconds: maximum, RepetitionMaximums: []int64{maximum}, Causes: []string{"Interrupt 142 eth0"},
	}
	for _, name := range qualification.Percentiles() {
		r.Percentiles = append(r.Percentiles, v1alpha1.LatencyPercentile{Percentile: name})
	}
	for _, c := range change {
		c(&r)
	}
	text, err := qualification.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s *scene) of(node string) *v1alpha1.LatencyTestResult {
	s.t.Helper()
	for i := range s.Test.Status.Results {
		if s.Test.Status.Results[i].Node == node {
			return &s.Test.Status.Results[i]
		}
	}
	s.t.Fatalf("the status has no node %s: %+v", node, s.Test.Status.Results)
	return nil
}

// expect compares what the status says of a node: activity, outcome, freshness and reason.
func (s *scene) expect(node, want string) {
	s.t.Helper()
	r := s.of(node)
	if got := fmt.Sprintf("%s %s %s %s", r.Activity, r.Outcome, r.Freshness, r.Reason); got != want {
		s.t.Errorf("node %s: %q (%s), want %q", node, got, r.Message, want)
	}
}

func (s *scene) expectReady(status metav1.ConditionStatus, reason string) {
	s.t.Helper()
	c := meta.FindStatusCondition(s.Test.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.Status != status || c.Reason != reason {
		s.t.Errorf("Ready is %+v, want %s %s", c, status, reason)
	}
}

func TestJob(t *testing.T) {
	s := newScene(t, "node-1")
	s.Test.Spec.Jitter = &v1alpha1.JitterTest{CPUs: 3}
	s.Test.Spec.Repetitions = 2
	d := s.step()
	if len(d.Start) != 1 {
		t.Fatalf("%d Jobs are made", len(d.Start))
	}
	text, err := yaml.Marshal(d.Start[0])
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(text), "job.yaml")
}

func TestCPUsAskedFor(t *testing.T) {
	report := func(online string, cores ...string) *v1alpha1.LowLatencyNode {
		return &v1alpha1.LowLatencyNode{Status: v1alpha1.LowLatencyNodeStatus{Inventory: &v1alpha1.Inventory{OnlineCPUs: online, Cores: cores}}}
	}
	for name, tc := range map[string]struct {
		measured int32
		report   *v1alpha1.LowLatencyNode
		want     int32
	}{
		"nobody tells":          {1, nil, 4},
		"one thread per core":   {3, report("0-3", "0", "1", "2", "3"), 4},
		"two threads per core":  {3, report("0-7", "0,4", "1,5", "2,6", "3,7"), 6},
		"siblings are offline":  {3, report("0-3", "0,4", "1,5", "2,6", "3,7"), 4},
		"garbage in the report": {1, report("x", "0,4"), 4},
	} {
		if got := CPUsAskedFor(tc.measured, tc.report); got != tc.want {
			t.Errorf("%s: %d CPUs, want %d", name, got, tc.want)
		}
	}
}

func TestNodePassesAndGoesStale(t *testing.T) {
	s := newScene(t, "node-1", "node-2")
	s.step()
	s.expect("node-1", "Running   ")
	s.expectReady(metav1.ConditionUnknown, v1alpha1.ReasonTestsRunning)
	s.ends("node-1", record(t, 9_000))
	s.ends("node-2", record(t, 10_001))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.expect("node-2", "Idle Failed Fresh MaximumExceeded")
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonTestsFailed)
	want := "the longest interruption (CPU 2) was 10.001 µs, more than 10 µs; the kernel counted Interrupt 142 eth0"
	if got := s.of("node-2").Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}

	s.Test.Spec.Budget.MaximumNanoseconds, s.Test.Generation = 20_000, 2
	if d := s.step(); len(d.Start) != 0 {
		t.Error("another budget measures again")
	}
	s.expect("node-2", "Idle Passed Fresh WithinBudget")
	s.expectReady(metav1.ConditionTrue, v1alpha1.ReasonTestsPassed)

	s.Reports["node-1"].Status.Inventory.KernelRelease = "6.13"
	s.Nodes[0].Status.NodeInfo.KernelVersion = "6.13"
	s.step()
	s.expect("node-1", "Running Passed Stale WithinBudget")
	s.expectReady(metav1.ConditionUnknown, v1alpha1.ReasonTestsRunning)
	s.ends("node-1", record(t, 8_000, func(r *qualification.Record) { r.Kernel = "6.13" }))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.expectReady(metav1.ConditionTrue, v1alpha1.ReasonTestsPassed)
	if previous := s.of("node-1").Previous; previous == nil || previous.MaximumNanoseconds != 9_000 {
		t.Errorf("the measurement before is %+v", previous)
	}
	if d := s.step(); d.Again != 0 || len(d.Start)+len(d.Stop) != 0 {
		t.Errorf("something is to be done although nothing happens: %+v", d)
	}
}

func TestRunsWithoutResult(t *testing.T) {
	cases := map[string]struct {
		happens func(*scene)
		reason  string
	}{
		"garbage":              {func(s *scene) { s.ends("node-1", "panic: \x1b[31m") }, v1alpha1.TestBadResult},
		"nothing":              {func(s *scene) { s.ends("node-1", "") }, v1alpha1.TestPodFailed},
		"a problem":            {func(s *scene) { s.ends("node-1", problem(s.t)) }, v1alpha1.TestNotExclusive},
		"another kernel":       {func(s *scene) { s.ends("node-1", record(s.t, 1, func(r *qualification.Record) { r.Kernel = "5.1" })) }, v1alpha1.TestNodeChanged},
		"another boot":         {func(s *scene) { s.ends("node-1", record(s.t, 1, func(r *qualification.Record) { r.BootID = "b0" })) }, v1alpha1.TestNodeChanged},
		"lost interruptions":   {func(s *scene) { s.ends("node-1", record(s.t, 1, func(r *qualification.Record) { r.NotRecorded = 1 })) }, v1alpha1.TestMeasurementFailed},
		"more CPUs than asked": {func(s *scene) { s.ends("node-1", record(s.t, 1, func(r *qualification.Record) { r.CPUs = "2-3" })) }, v1alpha1.TestBadResult},
		"a microcode update": {func(s *scene) {
			s.ends("node-1", record(s.t, 1))
			s.Reports["node-1"].Status.Inventory.Microcode = "0x2"
		}, v1alpha1.TestNodeChanged},
		"a pod on another node": {func(s *scene) {
			s.ends("node-1", record(s.t, 1))
			s.Pods[0].Spec.NodeName = "node-9"
		}, v1alpha1.TestForeignPod},
		"a pod with another program": {func(s *scene) {
			s.ends("node-1", record(s.t, 1))
			s.Pods[0].Spec.Containers[0].Command = []string{"/bin/echo"}
		}, v1alpha1.TestForeignPod},
		"a pod beside the Job's own": {func(s *scene) {
			s.ends("node-1", record(s.t, 1))
			s.Pods = append(s.Pods, s.Pods[0])
			s.Pods[1].Name = "forged"
		}, v1alpha1.TestForeignPod},
		"a pod of nobody": {func(s *scene) {
			s.ends("node-1", record(s.t, 1))
			s.Pods[0].OwnerReferences = nil
		}, v1alpha1.TestPodFailed},
		"a Job of somebody else": {func(s *scene) {
			s.ends("node-1", record(s.t, 1))
			s.Jobs[0].OwnerReferences[0].UID = "other"
		}, v1alpha1.TestForeignPod},
		"a Job with other arguments": {func(s *scene) {
			s.ends("node-1", record(s.t, 1))
			s.Jobs[0].Spec.Template.Spec.Containers[0].Args[2] = "--kind=Easy"
		}, v1alpha1.TestForeignPod},
		"a Job that was deleted": {func(s *scene) {
			s.Jobs, s.Now = nil, s.Now.Add(2*time.Minute)
		}, v1alpha1.TestJobGone},
		"a pod that does not fit": {func(s *scene) {
			_, pod := s.runs("node-1")
			pod.Status.Phase = corev1.PodPending
			s.Now = s.Now.Add(StartTime)
		}, v1alpha1.TestNotStarted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "node-1")
			s.step()
			tc.happens(s)
			d := s.step()
			s.expect("node-1", "Idle Inconclusive  "+tc.reason)
			s.expectReady(metav1.ConditionUnknown, v1alpha1.ReasonTestsInconclusive)
			if len(d.Start) != 0 || d.Again != firstRetry {
				t.Errorf("%d Jobs are made, again after %s", len(d.Start), d.Again)
			}
			// The next run comes later, and is a Job of another name.
			former := s.of("node-1").Job
			s.Now = s.Now.Add(firstRetry)
			if d := s.step(); len(d.Start) != 1 || d.Start[0].Name == former {
				t.Errorf("after %s, %d Jobs are made", firstRetry, len(d.Start))
			}
		})
	}
}

func problem(t *testing.T) string {
	t.Helper()
	text, err := qualification.Encode(qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestJitter,
		Problem: &qualification.Problem{Reason: v1alpha1.TestNotExclusive, Message: "CPUs 0-7 are shared"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFreshResultStands: a run without a result takes nothing from a measurement that counts.
func TestFreshResultStands(t *testing.T) {
	s := newScene(t, "node-1")
	s.step()
	s.ends("node-1", record(t, 9_000))
	s.step()
	s.Test.Spec.Run, s.Test.Generation = 1, 2
	s.step()
	s.expect("node-1", "Running Passed Fresh WithinBudget")
	s.ends("node-1", problem(t))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.expectReady(metav1.ConditionTrue, v1alpha1.ReasonTestsPassed)
}

func TestTestsDoNotShareNodes(t *testing.T) {
	other := v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "other", UID: "test-2"}}
	other.Status.Results = []v1alpha1.LatencyTestResult{{Node: "node-1", Activity: v1alpha1.LatencyRunning}, {Node: "node-2", Activity: v1alpha1.LatencyIdle}}
	s := newScene(t, "node-1", "node-2")
	s.Elsewhere = RunningElsewhere([]v1alpha1.LatencyTest{*s.Test, other}, s.Test)
	s.step()
	s.expect("node-1", "Waiting   ")
	s.expect("node-2", "Running   ")
	if got, want := s.of("node-1").Message, "LatencyTest b/other measures the node now"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	after := other.DeepCopy()
	after.Status.Results[0].Activity = v1alpha1.LatencyIdle
	if !Freed(&other, after) || Freed(after, &other) || Freed(&other, &other) {
		t.Error("who waits for a node is not told that it is free, or told without need")
	}
}

func TestNodesWait(t *testing.T) {
	s := newScene(t, "node-1", "node-2", "node-3", "node-4")
	s.Test.Spec.MaximumParallelNodes = 1
	s.Nodes[0].Status.Conditions[0].Status = corev1.ConditionFalse
	s.Reports["node-2"].Status.Conditions[0].Status = metav1.ConditionFalse
	s.step()
	want := map[string]string{
		"node-1": "waits until the node is settled: the condition Ready of the Node is False",
		"node-2": "waits until the node is settled: Applied of its LowLatencyNode is False: ",
		"node-4": "waits for its turn: as many nodes as the test may measure at the same time are measured now",
	}
	got := map[string]string{}
	for _, r := range s.Test.Status.Results {
		if r.Activity == v1alpha1.LatencyWaiting {
			got[r.Node] = r.Message
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNodesThatJoinWait: a node is measured neither before its profile governs it nor before anybody knows its kernel.
func TestNodesThatJoinWait(t *testing.T) {
	s := newScene(t, "node-1", "node-2")
	s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{"node-1", "node-2"}}
	s.Profiles[0].Spec.NodeSelector = v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"zone": "a"}}
	s.Nodes[0].Labels = map[string]string{"zone": "a"}
	former := s.Reports
	s.Reports = map[string]*v1alpha1.LowLatencyNode{}
	s.Nodes[1].Status.NodeInfo.KernelVersion = ""
	s.step()
	for node, want := range map[string]string{
		"node-1": "waits until the node is settled: Applied of its LowLatencyNode is Unknown: the agent has not reported an inventory yet",
		"node-2": "waits until the node is settled: its kubelet has not reported its kernel yet",
	} {
		s.expect(node, "Waiting   ")
		if got := s.of(node).Message; got != want {
			t.Errorf("message of %s %q, want %q", node, got, want)
		}
	}
	s.Reports["node-1"], s.Nodes[1].Status.NodeInfo.KernelVersion = former["node-1"], "6.12"
	s.step()
	s.expect("node-1", "Running   ")
	s.expect("node-2", "Running   ")
}

func TestNodeLeaves(t *testing.T) {
	s := newScene(t, "node-1", "node-2")
	s.step()
	s.runs("node-1")
	s.Nodes = s.Nodes[1:]
	d := s.step()
	s.expect("node-1", "Idle Inconclusive  NodeLeft")
	if len(d.Stop) != 1 {
		t.Errorf("%d Jobs are deleted", len(d.Stop))
	}
	s.Now = s.Now.Add(leftKept)
	s.step()
	if len(s.Test.Status.Results) != 1 {
		t.Errorf("%d nodes are kept", len(s.Test.Status.Results))
	}
}

// TestChangedTestMeasuresAnew: a Job that measures what nobody asks for any more ends first.
func TestChangedTestMeasuresAnew(t *testing.T) {
	s := newScene(t, "node-1")
	s.step()
	s.runs("node-1")
	former := s.of("node-1").Job
	s.Test.Spec.DurationSeconds, s.Test.Generation = 5, 2
	d := Decide(s.World)
	if len(d.Stop) != 1 || len(d.Start) != 0 {
		t.Fatalf("%d Jobs are deleted, %d made", len(d.Stop), len(d.Start))
	}
	s.step()
	if d := s.step(); len(d.Start) != 1 || d.Start[0].Name == former {
		t.Errorf("%d Jobs are made", len(d.Start))
	}
}

// TestJobIsAdopted: a status that was not written forgets no Job.
func TestJobIsAdopted(t *testing.T) {
	s := newScene(t, "node-1")
	s.step()
	job := s.of("node-1").Job
	s.Test.Status = v1alpha1.LatencyTestStatus{}
	if d := s.step(); len(d.Start) != 0 || s.of("node-1").Job != job {
		t.Errorf("%d Jobs are made beside the one that runs", len(d.Start))
	}
	s.expect("node-1", "Running   ")
}

// TestJobThatHasEndedIsNotAdopted: nothing is known any more of a node that was not selected for a while, and what it was measured as may be another by now.
func TestJobThatHasEndedIsNotAdopted(t *testing.T) {
	s := newScene(t, "node-1")
	s.passes()
	first := s.of("node-1").Job
	for range 3 {
		s.Test.Status = v1alpha1.LatencyTestStatus{}
		d := s.step()
		if len(d.Start) != 1 || d.Start[0].Name != s.of("node-1").Job || s.of("node-1").Job == first {
			t.Fatalf("%d Jobs are made, and the node is measured by %s", len(d.Start), s.of("node-1").Job)
		}
		s.expect("node-1", "Running   ")
		first = s.of("node-1").Job
		s.ends("node-1", record(t, 1))
		s.step()
		s.expect("node-1", "Idle Passed Fresh WithinBudget")
	}
}

// TestStalledTestForgetsNodes that are gone, and goes on to judge those that are there.
func TestStalledTestForgetsNodes(t *testing.T) {
	s := newScene(t, "node-1", "node-2")
	s.Test.Spec.ExpireAfterHours = 3
	s.passes()
	s.ends("node-2", record(t, 9_000_000))
	s.step()
	s.expect("node-2", "Idle Failed Fresh MaximumExceeded")
	s.Image, s.Nodes, s.Now = "", s.Nodes[:1], s.Now.Add(3*time.Hour)
	s.step()
	s.expect("node-1", "Idle Passed Expired WithinBudget")
	if counts := s.Test.Status.Nodes; len(s.Test.Status.Results) != 1 || counts.Failed != 0 || counts.Passed != 0 || counts.Stale != 1 {
		t.Errorf("%d results, %+v", len(s.Test.Status.Results), counts)
	}
}

func TestScheduleAndExpiry(t *testing.T) {
	s := newScene(t, "node-1")
	s.Test.Spec.RepeatAfterHours, s.Test.Spec.ExpireAfterHours = 2, 3
	s.step()
	s.ends("node-1", record(t, 1))
	if d := s.step(); d.Again != 2*time.Hour {
		t.Errorf("again after %s", d.Again)
	}
	s.Now = s.Now.Add(2 * time.Hour)
	s.step()
	s.expect("node-1", "Running Passed Fresh WithinBudget")
	s.ends("node-1", problem(t))
	s.step()
	s.Now = s.Now.Add(time.Hour)
	s.step()
	s.expect("node-1", "Running Passed Expired WithinBudget")
	if got := s.of("node-1").Message; !strings.HasPrefix(got, "expired, since more than 3 hours have passed after the measurement; it was: within the budget") {
		t.Errorf("message %q", got)
	}
}

// TestTimesOfDay: with a schedule, nodes are measured once more at its times, for as long as they may begin then.
func TestTimesOfDay(t *testing.T) {
	s := newScene(t, "node-1")
	soon := s.Now.Add(90 * time.Minute).Truncate(time.Minute)
	s.Test.Spec.RepeatAt = &v1alpha1.TestSchedule{Schedule: fmt.Sprintf("%d %d * * *", soon.UTC().Minute(), soon.UTC().Hour()), StartWithinMinutes: 30}
	s.step()
	s.ends("node-1", record(t, 1))
	if d := s.step(); d.Again != soon.Sub(s.Now) {
		t.Errorf("again after %s, and the time comes after %s", d.Again, soon.Sub(s.Now))
	}
	progressing := meta.FindStatusCondition(s.Test.Status.Conditions, v1alpha1.ConditionProgressing)
	if want := soon.UTC().Format("15:04 UTC"); progressing == nil || !strings.HasSuffix(progressing.Message, want) {
		t.Errorf("%+v does not tell the next time, %s", progressing, want)
	}
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.Now = soon
	s.Elsewhere.Nodes = map[string]string{"node-1": "tests/other"}
	if d := s.step(); d.Again != 30*time.Minute {
		t.Errorf("a node that waits is looked at after %s, and may begin for 30 minutes", d.Again)
	}
	s.expect("node-1", "Waiting Passed Fresh WithinBudget")
	s.Elsewhere.Nodes = nil
	s.step()
	s.expect("node-1", "Running Passed Fresh WithinBudget")
	s.ends("node-1", problem(t))
	s.step()
	s.Now = soon.Add(6 * time.Minute)
	s.step()
	s.expect("node-1", "Running Passed Fresh WithinBudget")
	s.ends("node-1", problem(t))
	s.step()
	// The run without a result would begin once more after ten minutes, and nothing may begin any more after thirty.
	s.Now = soon.Add(30 * time.Minute)
	if d := s.step(); d.Again != 23*time.Hour+30*time.Minute {
		t.Errorf("again after %s", d.Again)
	}
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.Test.Spec.Run++
	s.step()
	s.expect("node-1", "Running Passed Fresh WithinBudget")
}

// TestSchedulesWithAMistake: a mistake in a schedule takes repetitions away, and nothing else: what is measured is followed to its end.
func TestSchedulesWithAMistake(t *testing.T) {
	s := newScene(t, "node-1")
	s.step()
	s.Test.Spec.RepeatAt, s.Test.Generation = &v1alpha1.TestSchedule{Schedule: "0 25 * * *"}, s.Test.Generation+1
	s.step()
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonScheduleInvalid)
	s.ends("node-1", record(t, 1))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.add("node-2")
	s.step()
	s.expect("node-2", "Running   ")
}

func TestNothingCanBeMeasured(t *testing.T) {
	s := newScene(t, "node-1")
	s.Image = ""
	if d := s.step(); len(d.Start) != 0 {
		t.Error("a Job is made without an image")
	}
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonImageUnknown)
	s.Image = image
	for i := range v1alpha1.MaxTestedNodes {
		s.add(fmt.Sprintf("more-%d", i))
	}
	s.step()
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonTooManyNodes)
	s.Nodes = nil
	s.step()
	s.expectReady(metav1.ConditionTrue, v1alpha1.ReasonNoNodes)
}

func TestSelection(t *testing.T) {
	selector := v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"zone": "a"}}
	for name, tc := range map[string]struct {
		nodes v1alpha1.LatencyTestNodes
		want  int
	}{
		"by profile":         {v1alpha1.LatencyTestNodes{Profile: "trading"}, 2},
		"by another profile": {v1alpha1.LatencyTestNodes{Profile: "other"}, 0},
		"by name":            {v1alpha1.LatencyTestNodes{Names: []string{"node-2", "nobody"}}, 1},
		"by label":           {v1alpha1.LatencyTestNodes{NodeSelector: &selector}, 1},
		"by pool":            {v1alpha1.LatencyTestNodes{BypassNICPool: "x2"}, 1},
		"by another pool":    {v1alpha1.LatencyTestNodes{BypassNICPool: "x3"}, 0},
	} {
		s := newScene(t, "node-1", "node-2")
		s.Nodes[0].Labels = map[string]string{"zone": "a"}
		s.Pools = []*v1alpha1.BypassNICPool{{ObjectMeta: metav1.ObjectMeta{Name: "x2"}, Spec: v1alpha1.BypassNICPoolSpec{NodeSelector: selector}}}
		s.Test.Spec.Nodes = tc.nodes
		if d := s.step(); len(d.Status.Results) != tc.want {
			t.Errorf("%s: %d nodes, want %d", name, len(d.Status.Results), tc.want)
		}
	}
}

// TestNewsOfThePodComesLater: a Job is seen to be done before its pod is; that is no run without a result until the news stays away.
func TestNewsOfThePodComesLater(t *testing.T) {
	for name, tc := range map[string]struct {
		then    func(s *scene, pod corev1.Pod)
		outcome v1alpha1.LatencyOutcome
	}{
		"it comes":         {func(s *scene, pod corev1.Pod) { s.Pods[0] = pod }, v1alpha1.LatencyPassed},
		"it does not come": {func(s *scene, _ corev1.Pod) { s.Now = s.Now.Add(podEnds) }, v1alpha1.LatencyInconclusive},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "node-1")
			s.step()
			s.ends("node-1", record(t, 1))
			s.Jobs[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(s.Now)
			ended := *s.Pods[0].DeepCopy()
			s.Pods[0].Status = corev1.PodStatus{Phase: corev1.PodRunning}
			if d := s.step(); s.of("node-1").Outcome != "" || d.Again != podEnds {
				t.Fatalf("outcome %q, looked at again after %s, want none yet and %s", s.of("node-1").Outcome, d.Again, podEnds)
			}
			tc.then(s, ended)
			s.step()
			if got := s.of("node-1").Outcome; got != tc.outcome {
				t.Errorf("outcome is %q (%s), want %s", got, s.of("node-1").Message, tc.outcome)
			}
		})
	}
}
