// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"slices"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// newMulticast is a world in which a test measures two nodes by multicast to a group; "" for the default.
func newMulticast(t *testing.T, group string) *scene {
	t.Helper()
	s := newPingPong(t, "node-3", "node-4")
	s.Test.Spec.Nodes.Names = []string{"node-1", "node-2"}
	s.add("node-4")
	s.Test.Spec.Traffic.Transport, s.Test.Spec.Traffic.MulticastGroup = v1alpha1.TransportMulticast, group
	return s
}

// TestGroupsAreNotShared: of the tests on one group, and of the nodes of one test, one measures at a time.
func TestGroupsAreNotShared(t *testing.T) {
	const own = "239.192.1.7"
	running := v1alpha1.LatencyTestStatus{Results: []v1alpha1.LatencyTestResult{{Node: "elsewhere", Activity: v1alpha1.LatencyRunning}}}
	for name, tc := range map[string]struct {
		group, other string
		transport    v1alpha1.TestTransport
		want         string
	}{
		"the default of both":    {"", "", v1alpha1.TransportMulticast, "waits until LatencyTest b/other leaves multicast group 224.1.2.48: members of a group receive what all others send to it"},
		"the default by name":    {"224.1.2.48", "", v1alpha1.TransportMulticast, "waits until LatencyTest b/other leaves multicast group 224.1.2.48: members of a group receive what all others send to it"},
		"a group of both":        {own, own, v1alpha1.TransportMulticast, "waits until LatencyTest b/other leaves multicast group 239.192.1.7: members of a group receive what all others send to it"},
		"another group":          {own, "", v1alpha1.TransportMulticast, ""},
		"another without groups": {"", "", v1alpha1.TransportUDP, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newMulticast(t, tc.group)
			other := s.Test.DeepCopy()
			other.Namespace, other.Name, other.UID, other.Status = "b", "other", "test-2", running
			other.Spec.Traffic.Transport, other.Spec.Traffic.MulticastGroup = tc.transport, tc.other
			s.Elsewhere = RunningElsewhere([]v1alpha1.LatencyTest{*s.Test, *other}, s.Test)
			s.step()
			if tc.want == "" {
				s.expect("node-1", "Running   ")
				s.expect("node-2", "Waiting   ")
				return
			}
			s.expect("node-1", "Waiting   ")
			if got := s.of("node-1").Message; got != tc.want {
				t.Errorf("message %q, want %q", got, tc.want)
			}
			idle := other.DeepCopy()
			idle.Status.Results[0].Activity = v1alpha1.LatencyIdle
			if !Freed(other, idle) {
				t.Error("who waits for the group is not told that it is free")
			}
		})
	}
}

// TestGroupOfTheClient: the program is told a group that the test names, and no other, so that Jobs of earlier releases are still those of their tests.
func TestGroupOfTheClient(t *testing.T) {
	for group, want := range map[string]bool{"": false, "239.192.1.7": true} {
		s := newMulticast(t, group)
		s.begins()
		args := s.jobNamed(s.of("node-1").Job).Spec.Template.Spec.Containers[0].Args
		if got := slices.Contains(args, "--group="+group); got != want {
			t.Errorf("group %q: %s", group, args)
		}
	}
}
