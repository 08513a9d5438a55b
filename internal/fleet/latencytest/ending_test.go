// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// dies lets the kubelet of node-1 be unheard of from now on.
func (s *scene) dies() {
	s.t.Helper()
	for i := range s.Nodes {
		if s.Nodes[i].Name == "node-1" {
			s.Nodes[i].Status.Conditions = []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(s.Now)},
			}
		}
	}
}

// uses is what the test uses, as other tests see it.
func (s *scene) uses() string {
	used := RunningElsewhere([]v1alpha1.LatencyTest{*s.Test}, &v1alpha1.LatencyTest{})
	return fmt.Sprint(len(used.Nodes), len(used.Groups), len(used.Addresses))
}

// TestPodsThatDoNotEnd: neither the pod of a node that has died ends nor its Job, and both would keep the node from all tests.
func TestPodsThatDoNotEnd(t *testing.T) {
	deadline := func(s *scene) time.Duration {
		return time.Duration(*s.jobNamed(s.of("node-1").Job).Spec.ActiveDeadlineSeconds) * time.Second
	}
	for name, tc := range map[string]struct {
		happens func(*scene)
		want    string
	}{
		"the node is away for a moment": {func(s *scene) { s.dies(); s.Now = s.Now.Add(nodeGone - time.Second) }, "Running   "},
		"the node has died":             {func(s *scene) { s.dies(); s.Now = s.Now.Add(nodeGone) }, "Idle Inconclusive  NodeLeft"},
		"the node is away, nobody knows since when": {func(s *scene) {
			s.dies()
			s.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.Time{}
		}, "Running   "},
		"the Job may still end": {func(s *scene) { s.Now = s.Now.Add(deadline(s) + jobEnds - time.Second) }, "Running   "},
		"the Job ends never":    {func(s *scene) { s.Now = s.Now.Add(deadline(s) + jobEnds) }, "Idle Inconclusive  NotEnded"},
		"a Job of somebody else ends never": {func(s *scene) {
			s.Now = s.Now.Add(deadline(s) + jobEnds)
			s.Jobs[0].OwnerReferences, s.Jobs[0].Spec.ActiveDeadlineSeconds = nil, nil
		}, "Idle Inconclusive  NotEnded"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "node-1")
			s.step()
			s.runs("node-1")
			s.step()
			tc.happens(s)
			d := s.step()
			s.expect("node-1", tc.want)
			isOver := !strings.HasPrefix(tc.want, "Running")
			if isOver != (s.uses() == "0 0 0") || isOver != (len(s.Jobs) == 0) && !strings.HasPrefix(name, "a Job of somebody") {
				t.Errorf("%s nodes, groups and addresses are in use, %d Jobs are there", s.uses(), len(s.Jobs))
			}
			if d.Again <= 0 {
				t.Errorf("nobody looks again (%s)", d.Again)
			}
		})
	}
}

// TestNothingMoreCanBegin: what is measured is followed to its end, and a node that is not selected any more is let go.
func TestNothingMoreCanBegin(t *testing.T) {
	tooMany := func(s *scene) {
		for i := range v1alpha1.MaxTestedNodes {
			s.add(fmt.Sprintf("more-%03d", i))
		}
	}
	for name, tc := range map[string]struct {
		happens func(*scene)
		want    string
	}{
		"it ends":              {func(s *scene) { tooMany(s); s.ends("node-1", record(s.t, 9_000)) }, "Idle Passed Fresh WithinBudget"},
		"without an image":     {func(s *scene) { s.Image = ""; s.ends("node-1", record(s.t, 9_000)) }, "Idle Passed Fresh WithinBudget"},
		"its node dies":        {func(s *scene) { tooMany(s); s.dies(); s.Now = s.Now.Add(nodeGone) }, "Idle Inconclusive  NodeLeft"},
		"it is still measured": {tooMany, "Running   "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "node-1", "node-2")
			s.step()
			s.runs("node-2")
			tc.happens(s)
			s.step()
			s.expect("node-1", tc.want)
			s.expect("node-2", "Running   ")
			s.expectReady(metav1.ConditionFalse, s.Test.Status.Conditions[0].Reason)
			if d := s.step(); len(d.Start) > 0 {
				t.Errorf("%d Jobs are made", len(d.Start))
			}
		})
	}
	s := newScene(t, "node-1")
	s.step()
	tooMany(s)
	s.Reports["node-1"].Spec.Profile = "other"
	s.Profiles = append(s.Profiles, v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	tooMany(s)
	s.step()
	if s.uses() != "0 0 0" || len(s.Jobs) != 0 {
		t.Errorf("a node that has left is in use: %s, %d Jobs", s.uses(), len(s.Jobs))
	}
}

// accelerated is a change of a record whose messages went past the kernel.
func accelerated(r *qualification.Record) { r.Network.Path = v1alpha1.LatencyPathAccelerated }

// TestUnclearMeasurements are made again, and take nothing from one that counts.
func TestUnclearMeasurements(t *testing.T) {
	s := newPingPong(t)
	s.Test.Spec.Budget.Path = v1alpha1.LatencyPathAccelerated
	measures := func(change ...func(*qualification.Record)) {
		t.Helper()
		s.step()
		s.serves("node-1", "10.0.0.7")
		s.step()
		s.ends("node-1", pingPongRecord(t, 9_000, change...))
		s.step()
	}
	measures()
	s.expect("node-1", "Idle Inconclusive Fresh NotAccelerated")
	if s.of("node-1").Measured == nil {
		t.Error("the figures are lost")
	}
	for attempt, wait := range []time.Duration{firstRetry, 2 * firstRetry} {
		s.Now = s.Now.Add(wait - time.Second)
		if d := s.step(); len(d.Start) != 0 {
			t.Errorf("attempt %d begins within %s", attempt+2, wait)
		}
		s.Now = s.Now.Add(time.Second)
		if attempt == 0 {
			measures()
			s.expect("node-1", "Idle Inconclusive Fresh NotAccelerated")
		}
	}
	measures(accelerated)
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	if s.of("node-1").Attempts != 0 {
		t.Errorf("%d attempts are counted", s.of("node-1").Attempts)
	}

	s.Test.Spec.Run, s.Test.Generation = 1, 2
	measures()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	if m := s.of("node-1").Measured; m.Network.Path != v1alpha1.LatencyPathAccelerated {
		t.Error("an unclear measurement takes the place of one that has passed")
	}
	s.Now = s.Now.Add(firstRetry)
	measures(accelerated)
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	if m := s.of("node-1").Measured; m.Run != 1 {
		t.Errorf("the measurement is of run %d", m.Run)
	}
}

// TestUnclearMeasurementsAreNoneBefore: what is stale is compared with the next that can be judged, however many came between.
func TestUnclearMeasurementsAreNoneBefore(t *testing.T) {
	s := newPingPong(t)
	s.Test.Spec.Budget.Path = v1alpha1.LatencyPathAccelerated
	measures := func(kernel string, p99 int64, change ...func(*qualification.Record)) {
		t.Helper()
		s.Now = s.Now.Add(maximumRetry)
		s.step()
		s.serves("node-1", "10.0.0.7")
		s.step()
		s.ends("node-1", pingPongRecord(t, p99, append(change, func(r *qualification.Record) { r.Kernel, r.Network.ServerKernel = kernel, kernel })...))
		s.step()
	}
	measures("6.12", 9_500, accelerated)
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	first := s.of("node-1").Measured.CompletedTime
	s.Reports["node-1"].Status.Inventory.KernelRelease, s.Nodes[0].Status.NodeInfo.KernelVersion = "6.13", "6.13"
	for range 2 {
		measures("6.13", 9_600)
		s.expect("node-1", "Idle Inconclusive Fresh NotAccelerated")
	}
	measures("6.13", 9_700, accelerated)
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	if before := s.of("node-1").Previous; before == nil || before.CompletedTime != first {
		t.Errorf("the measurement before is %+v", before)
	}
}

// TestEarlierRunsAreKept: what runs have measured before the one before is kept as long as nothing else was measured.
func TestEarlierRunsAreKept(t *testing.T) {
	s := newScene(t, "node-1")
	measures := func(maximum int64) {
		t.Helper()
		s.Test.Spec.Run++
		s.Test.Generation++
		s.step()
		s.ends("node-1", record(t, maximum))
		s.step()
	}
	spread := func(figure int64) v1alpha1.LatencyRunSpread {
		return v1alpha1.LatencyRunSpread{Least: figure, Most: figure}
	}
	for _, maximum := range []int64{9_100, 9_200, 9_300, 9_400} {
		measures(maximum)
	}
	want := []v1alpha1.LatencyRunSpread{spread(9_200), spread(9_100)}
	if diff := cmp.Diff(want, s.of("node-1").Earlier); diff != "" {
		t.Errorf("runs before the one before (-want +got):\n%s", diff)
	}
	s.Test.Spec.DurationSeconds = 7
	measures(9_500)
	measures(9_600)
	if got := s.of("node-1").Earlier; len(got) > 0 {
		t.Errorf("runs with other parameters are kept: %v", got)
	}
}

// TestRunIsAskedForMeanwhile: a measurement that had begun before is not the one that is asked for.
func TestRunIsAskedForMeanwhile(t *testing.T) {
	s := newScene(t, "node-1")
	s.step()
	s.Test.Spec.Run, s.Test.Generation = 7, 2
	s.ends("node-1", record(t, 9_000))
	d := s.step()
	s.expect("node-1", "Running Passed Fresh WithinBudget")
	if m := s.of("node-1").Measured; m.Run != 0 || len(d.Start) != 1 {
		t.Errorf("the measurement is of run %d, and %d Jobs are made", m.Run, len(d.Start))
	}
	s.ends("node-1", record(t, 9_000))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	if m := s.of("node-1").Measured; m.Run != 7 {
		t.Errorf("the measurement is of run %d", m.Run)
	}
}

// TestJobThatNoResultNames: the spec was changed between the Job and the status that was to name it.
func TestJobThatNoResultNames(t *testing.T) {
	s := newScene(t, "node-1")
	before := s.Test.Status.DeepCopy()
	s.step()
	s.Jobs[0].CreationTimestamp = metav1.NewTime(s.Now)
	lost := s.Jobs[0].Name
	s.Test.Status = *before
	s.Test.Spec.DurationSeconds, s.Test.Generation = 7, 2
	d := s.step()
	if len(d.Stop) != 0 || len(d.Start) != 0 || d.Again <= 0 || d.Again > jobAppears {
		t.Errorf("%d Jobs are deleted, %d made, again after %s: the status may be late", len(d.Stop), len(d.Start), d.Again)
	}
	s.Now = s.Now.Add(jobAppears)
	s.Jobs = append(s.Jobs, *s.Jobs[0].DeepCopy())
	s.Jobs[1].Name, s.Jobs[1].OwnerReferences = "of-somebody", nil
	if d := s.step(); names(d.Stop) != "node-1:" || d.Stop[0].Name != lost {
		t.Errorf("%d Jobs are deleted, want the lost one", len(d.Stop))
	}
	if d := s.step(); len(d.Start) != 1 || len(d.Stop) != 0 {
		t.Errorf("%d Jobs are made, %d deleted", len(d.Start), len(d.Stop))
	}
}

// TestMachineInThePlaceOfAnother has not passed what the one before has.
func TestMachineInThePlaceOfAnother(t *testing.T) {
	s := newScene(t, "node-1")
	s.Nodes[0].Status.NodeInfo.SystemUUID = "4c4c4544-1"
	s.passes()
	s.Nodes[0].Status.NodeInfo.SystemUUID = ""
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.Nodes[0].Status.NodeInfo.SystemUUID = "4c4c4544-2"
	s.step()
	s.expect("node-1", "Running Passed Stale WithinBudget")
	if got, want := s.of("node-1").Message, "stale, since this changed after the measurement: the machine (4c4c4544-2, was 4c4c4544-1); it was: "; !strings.HasPrefix(got, want) {
		t.Errorf("message %q, want %q", got, want)
	}
}

// TestAddressInUse: two tests with one address wait for each other, as those of one group do.
func TestAddressInUse(t *testing.T) {
	withAddress := func(address string) *scene {
		s := newPingPong(t)
		s.Test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2", Address: address}
		s.Pools = []*v1alpha1.BypassNICPool{attachedPool()}
		return s
	}
	first := withAddress("192.0.2.1/24")
	first.step()
	first.expect("node-1", "Running   ")
	for address, want := range map[string]string{"192.0.2.1/25": "Waiting   ", "192.0.2.2/24": "Running   "} {
		second := withAddress(address)
		second.Test.UID, second.Test.Name, second.Test.Spec.Nodes.Names = "test-2", "second", []string{"node-2"}
		second.Elsewhere = RunningElsewhere([]v1alpha1.LatencyTest{*first.Test}, second.Test)
		second.step()
		second.expect("node-2", want)
		if got := second.of("node-2").Message; want == "Waiting   " && !strings.HasPrefix(got, "waits until LatencyTest tests/quiet leaves address 192.0.2.1: ") {
			t.Errorf("message %q", got)
		}
	}
	freed := first.Test.DeepCopy()
	freed.Spec.Traffic.Client = nil
	if !Freed(first.Test, freed) {
		t.Error("who waits for the address is not told that it is free")
	}
}

// TestKernelBeforeTheAgentTells: the kubelet tells of another kernel, and the agent has not reported since the boot.
func TestKernelBeforeTheAgentTells(t *testing.T) {
	s := newScene(t, "node-1")
	s.passes()
	s.Nodes[0].Status.NodeInfo.BootID = "b2"
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.Nodes[0].Status.NodeInfo.KernelVersion = "6.13"
	s.step()
	s.expect("node-1", "Waiting Passed Stale WithinBudget")
}

// TestJobSeenLate: a Job that measures what was asked for before the test was changed ends, also when it is seen only after the change was written down.
func TestJobSeenLate(t *testing.T) {
	s := newScene(t, "node-1")
	s.step()
	former := s.Jobs
	s.Jobs = nil
	s.Test.Spec.DurationSeconds, s.Test.Generation = 86_400, 2
	s.step()
	s.expect("node-1", "Running   ")
	s.Jobs = former
	if d := s.step(); len(d.Stop) != 1 || len(d.Start) != 0 {
		t.Errorf("%d Jobs are deleted, %d made", len(d.Stop), len(d.Start))
	}
	if d := s.step(); len(d.Start) != 1 || d.Start[0].Name == former[0].Name {
		t.Errorf("%d Jobs are made", len(d.Start))
	}
}

// TestRefusedJobs: what the API server refuses is said of its node, and keeps no other from being measured.
func TestRefusedJobs(t *testing.T) {
	s := newScene(t, "node-1", "node-2")
	d := Decide(s.World)
	s.Refused = map[string]string{d.Start[0].Name: "exceeded quota: jobs"}
	d = s.step()
	if got, want := names(d.Start), "node-2:"; got != want {
		t.Errorf("Jobs %q are made, want %q", got, want)
	}
	s.expect("node-1", "Idle Inconclusive  NotStarted")
	s.expect("node-2", "Running   ")
	if got, want := s.of("node-1").Message, "the API server refused Job "; !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ": exceeded quota: jobs") {
		t.Errorf("message %q", got)
	}
	s.Refused = nil
	s.Now = s.Now.Add(firstRetry)
	if got, want := names(s.step().Start), "node-1:"; got != want {
		t.Errorf("later Jobs %q are made, want %q", got, want)
	}
}

// TestRefusedJobOfAFreshNode: a run that was asked for and refused takes nothing from a result that is fresh.
func TestRefusedJobOfAFreshNode(t *testing.T) {
	s := newScene(t, "node-1")
	s.passes()
	s.Test.Spec.Run, s.Test.Generation = 1, 2
	s.Refused = map[string]string{Decide(s.World).Start[0].Name: "exceeded quota: jobs"}
	for range 2 {
		s.step()
		s.expect("node-1", "Idle Passed Fresh WithinBudget")
	}
}

// TestRefusedClient: without its client, a server has nothing to do.
func TestRefusedClient(t *testing.T) {
	s := newPingPong(t, "node-2")
	s.step()
	s.serves("node-1", "10.0.0.7")
	s.Refused = map[string]string{s.of("node-1").Job: "denied"}
	if d := s.step(); names(d.Stop) != "node-2:-server" || len(d.Start) != 0 {
		t.Errorf("Jobs %q are deleted and %q made", names(d.Stop), names(d.Start))
	}
	s.expect("node-1", "Idle Inconclusive  NotStarted")
}
