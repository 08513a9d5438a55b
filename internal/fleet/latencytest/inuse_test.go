// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// ownedBy is an object with a controller; a kind of "" has none.
func ownedBy(name, uid, kind, owner string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "tests", Name: name, UID: types.UID(uid)}
	if kind != "" {
		version := map[string]string{"Job": "batch/v1", "LatencyTest": v1alpha1.GroupVersion.String()}[kind]
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: owner, UID: types.UID(owner), Controller: new(true)}}
	}
	return meta
}

// TestNodesThatPodsLeave: a test that was deleted is no more before its pods are.
func TestNodesThatPodsLeave(t *testing.T) {
	tests := []v1alpha1.LatencyTest{{ObjectMeta: ownedBy("quiet", "test-1", "", "")}, {ObjectMeta: ownedBy("held", "test-3", "", "")}}
	tests[1].DeletionTimestamp = new(metav1.NewTime(begin()))
	jobs := []batchv1.Job{
		{ObjectMeta: ownedBy("living", "job-1", "LatencyTest", "test-1")},
		{ObjectMeta: ownedBy("orphan", "job-2", "LatencyTest", "test-2")},
		{ObjectMeta: ownedBy("by-hand", "job-3", "", "")},
		{ObjectMeta: ownedBy("leaving", "job-4", "LatencyTest", "test-1")},
		{ObjectMeta: ownedBy("held", "job-5", "LatencyTest", "test-3")},
	}
	// Whoever may make pods writes down any owner, and as much time to end as he likes.
	foreign := corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-9")}
	foreign.OwnerReferences[0].APIVersion = "nope.example/v1"
	unnamed := corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "a/b")}
	slow := corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-9")}
	slow.Spec.TerminationGracePeriodSeconds = new(int64(31536000))
	jobs[3].DeletionTimestamp = new(metav1.NewTime(begin()))
	for name, tc := range map[string]struct {
		pod   corev1.Pod
		phase corev1.PodPhase
		node  string
		want  map[string]string
	}{
		"of a test that is there":          {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-1")}, corev1.PodRunning, "node-1", map[string]string{}},
		"of a test that was deleted":       {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-2")}, corev1.PodRunning, "node-1", map[string]string{"node-1": "tests/pod"}},
		"of a Job that was deleted":        {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-9")}, corev1.PodPending, "node-1", map[string]string{"node-1": "tests/pod"}},
		"of a Job that is deleted":         {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-4")}, corev1.PodRunning, "node-1", map[string]string{"node-1": "tests/pod"}},
		"of a test that a finalizer keeps": {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-5")}, corev1.PodRunning, "node-1", map[string]string{"node-1": "tests/pod"}},
		"of a kind that there is not":      {foreign, corev1.PodRunning, "node-1", map[string]string{}},
		"of a Job that cannot be":          {unnamed, corev1.PodRunning, "node-1", map[string]string{}},
		"with a year to end":               {slow, corev1.PodRunning, "node-1", map[string]string{}},
		"on no node yet":                   {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-9")}, corev1.PodPending, "", map[string]string{}},
		"that has ended":                   {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-2")}, corev1.PodFailed, "node-1", map[string]string{}},
		"of a Job that somebody made":      {corev1.Pod{ObjectMeta: ownedBy("pod", "", "Job", "job-3")}, corev1.PodRunning, "node-1", map[string]string{}},
		"that somebody made":               {corev1.Pod{ObjectMeta: ownedBy("pod", "", "", "")}, corev1.PodRunning, "node-1", map[string]string{}},
		"of a set that somebody made":      {corev1.Pod{ObjectMeta: ownedBy("pod", "", "ReplicaSet", "job-9")}, corev1.PodRunning, "node-1", map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.pod.Status.Phase, tc.pod.Spec.NodeName = tc.phase, tc.node
			if tc.pod.Spec.TerminationGracePeriodSeconds == nil {
				tc.pod.Spec.TerminationGracePeriodSeconds = new(int64(graceSeconds))
			}
			var used InUse
			used.Leave(tests, jobs, []corev1.Pod{tc.pod})
			if diff := cmp.Diff(tc.want, used.Leaving); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			for _, job := range UnknownJobs(jobs, []corev1.Pod{tc.pod}) {
				if job.Name != "job-9" || len(tc.want) == 0 {
					t.Errorf("Job %s is asked for", job)
				}
			}
		})
	}
}

// TestDeletedTestUsesNothing, however long somebody's finalizer keeps it: its status is written no more. When it is deleted, others that wait are decided anew.
func TestDeletedTestUsesNothing(t *testing.T) {
	test := v1alpha1.LatencyTest{ObjectMeta: ownedBy("held", "test-3", "", "")}
	test.Status.Results = []v1alpha1.LatencyTestResult{{Node: "node-1", Activity: v1alpha1.LatencyRunning}}
	deleted := test.DeepCopy()
	deleted.DeletionTimestamp = new(metav1.NewTime(begin()))
	for _, tc := range []struct {
		test *v1alpha1.LatencyTest
		want map[string]string
	}{{&test, map[string]string{"node-1": "tests/held"}}, {deleted, map[string]string{}}} {
		if diff := cmp.Diff(tc.want, RunningElsewhere([]v1alpha1.LatencyTest{*tc.test}, &v1alpha1.LatencyTest{}).Nodes); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
	}
	if !Freed(&test, deleted) || Freed(&test, &test) {
		t.Error("others that wait for the node do not learn that its test is deleted")
	}
}

// TestNoTestBeginsBesideAPodThatLeaves, neither on the node that it measures nor on that of its server.
func TestNoTestBeginsBesideAPodThatLeaves(t *testing.T) {
	for _, node := range []string{"node-1", "node-2"} {
		s := newPingPong(t, "node-2")
		s.Elsewhere.Leaving = map[string]string{node: "tests/former"}
		if d := s.step(); len(d.Start) != 0 || d.Again != podLeaves {
			t.Errorf("%s: %d Jobs are made, again after %s", node, len(d.Start), d.Again)
		}
		s.Elsewhere.Leaving = nil
		if d := s.step(); len(d.Start) == 0 {
			t.Errorf("%s: the pod is gone, and no Job is made", node)
		}
	}
}

// TestAddressIsHandedOn when the server of the node before is gone, which had it: otherwise two ends would have one address.
func TestAddressIsHandedOn(t *testing.T) {
	s := newPingPong(t, "server-1", "server-2")
	s.add("server-2")
	s.Test.Spec.Nodes.Names = []string{"node-1", "node-2"}
	s.Test.Spec.Traffic.Server.TestEnd = v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.1/24"}
	s.Pools = []*v1alpha1.BypassNICPool{attachedPool()}
	s.add("server-1")
	s.step()
	server := s.jobNamed(s.of("node-1").Server.Job).DeepCopy()
	s.serves("node-1", "10.0.0.7").Annotations = map[string]string{annotationNetworkStatus: `[{"name":"tests/x2","ips":["192.0.2.1"]}]`}
	s.step()
	s.ends("node-1", pingPongRecord(t, 20_000))
	if d := s.step(); len(d.Stop) != 1 || len(d.Start) != 0 {
		t.Fatalf("%d Jobs are deleted, %d made", len(d.Stop), len(d.Start))
	}
	// The Job stays until its pod has ended.
	server.DeletionTimestamp = new(metav1.NewTime(s.Now))
	s.Jobs = append(s.Jobs, *server)
	s.step()
	if got, want := s.of("node-2").Message, "waits until Job "+server.Name+" has ended, whose pod has the same group or address"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	s.Jobs = without(s.Jobs, server.Name)
	if d := s.step(); len(d.Start) != 1 {
		t.Errorf("%d Jobs are made when the address is free: %s", len(d.Start), s.of("node-2").Message)
	}
}
