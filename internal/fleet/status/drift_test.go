// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// TestDriftAnnouncements: what was counted before is not told again.
func TestDriftAnnouncements(t *testing.T) {
	const check, message = "workqueue.unbound", "cpumask holds isolated CPUs"
	drift := func(drifted, repaired int64, unrepaired ...string) v1alpha1.CheckDrift {
		return v1alpha1.CheckDrift{Check: check, Message: message, Drifted: drifted, Repaired: repaired, Unrepaired: unrepaired}
	}
	drifted := fleet.Announcement{Kind: corev1.EventTypeWarning, Reason: "Drifted", Message: check + ": " + message}
	repaired := func(files string) fleet.Announcement {
		return fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "Repaired", Message: check + ": the agent put back " + files + " of its files, after: " + message}
	}
	unrepaired := fleet.Announcement{Kind: corev1.EventTypeWarning, Reason: "Unrepaired", Message: check + ": /sys/a; /sys/b"}
	cases := map[string]struct {
		before, after []v1alpha1.CheckDrift
		want          []fleet.Announcement
	}{
		"nothing":                     {nil, nil, nil},
		"the first drift":             {nil, []v1alpha1.CheckDrift{drift(1, 0)}, []fleet.Announcement{drifted}},
		"the same report":             {[]v1alpha1.CheckDrift{drift(1, 1, "/sys/a")}, []v1alpha1.CheckDrift{drift(1, 1, "/sys/a")}, nil},
		"another drift":               {[]v1alpha1.CheckDrift{drift(1, 1)}, []v1alpha1.CheckDrift{drift(2, 1)}, []fleet.Announcement{drifted}},
		"drifted and put back":        {[]v1alpha1.CheckDrift{drift(1, 1)}, []v1alpha1.CheckDrift{drift(2, 4)}, []fleet.Announcement{drifted, repaired("3")}},
		"counted anew after a start":  {[]v1alpha1.CheckDrift{drift(5, 5)}, []v1alpha1.CheckDrift{drift(0, 0)}, nil},
		"given up":                    {[]v1alpha1.CheckDrift{drift(2, 2)}, []v1alpha1.CheckDrift{drift(2, 2, "/sys/a", "/sys/b")}, []fleet.Announcement{unrepaired}},
		"given up before":             {[]v1alpha1.CheckDrift{drift(2, 2, "/sys/a")}, []v1alpha1.CheckDrift{drift(2, 2, "/sys/a", "/sys/b")}, nil},
		"taken up again":              {[]v1alpha1.CheckDrift{drift(2, 2, "/sys/a")}, []v1alpha1.CheckDrift{drift(2, 2)}, nil},
		"the drift of another check":  {[]v1alpha1.CheckDrift{{Check: "memory.ksm", Drifted: 1}}, []v1alpha1.CheckDrift{{Check: "memory.ksm", Drifted: 1}, drift(1, 0)}, []fleet.Announcement{drifted}},
		"a check that is counted out": {[]v1alpha1.CheckDrift{drift(1, 0)}, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, DriftAnnouncements(tc.before, tc.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestDifferenceAnnouncements: what was reported before is not told again.
func TestDifferenceAnnouncements(t *testing.T) {
	report := func(differences ...string) *v1alpha1.NodeEnactment {
		return &v1alpha1.NodeEnactment{Phase: v1alpha1.EnactmentVerifying, Differences: differences}
	}
	told := func(message string) []fleet.Announcement {
		return []fleet.Announcement{{Kind: corev1.EventTypeWarning, Reason: "HostDiffers", Message: message}}
	}
	cases := map[string]struct {
		before, after *v1alpha1.NodeEnactment
		want          []fleet.Announcement
	}{
		"no guard":              {nil, nil, nil},
		"a guard without any":   {nil, report(), nil},
		"the first two":         {nil, report("a", "b"), told("a; b")},
		"one more":              {report("b"), report("a", "b"), told("a")},
		"the same":              {report("a", "b"), report("b", "a"), nil},
		"put back":              {report("a"), report(), nil},
		"the guard has gone":    {report("a"), nil, nil},
		"put back, and another": {report("a"), report("b"), told("b")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, DifferenceAnnouncements(tc.before, tc.after)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
