// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestIsStray(t *testing.T) {
	cases := map[string]struct {
		labels []string
		want   bool
	}{
		"a node without our labels":                 {[]string{"role", "web"}, false},
		"a machine config pool and no profile":      {[]string{"role", "web", v1alpha1.LabelPool, "trading-1"}, true},
		"a profile that does not exist":             {[]string{"role", "web", v1alpha1.LabelProfile, "gone"}, true},
		"a profile that exists gives its node back": {[]string{"role", "web", v1alpha1.LabelProfile, "trading"}, false},
		"a node that a profile selects":             {[]string{"role", "trading", v1alpha1.LabelPool, "trading-1"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &World{
				Node: objects.MakeNode("n", tc.labels...), Profiles: []v1alpha1.LowLatencyNodeProfile{*objects.MakeProfile("trading").Obj()},
			}
			if got := w.IsStray(); got != tc.want {
				t.Errorf("IsStray() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestLostReady(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	report := func(status metav1.ConditionStatus, at time.Time) *v1alpha1.LowLatencyNode {
		return &v1alpha1.LowLatencyNode{Status: v1alpha1.LowLatencyNodeStatus{Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: status, LastTransitionTime: metav1.NewTime(at),
		}}}}
	}
	cases := map[string]struct {
		said, counts *v1alpha1.LowLatencyNode
		want         bool
	}{
		"a fresh heartbeat":         {report("True", since.Add(-time.Hour)), report("True", since.Add(-time.Hour)), false},
		"True of a dead agent":      {report("True", since.Add(-time.Hour)), report("Unknown", since), true},
		"False of a dead agent":     {report("False", since.Add(-time.Hour)), report("False", since.Add(-time.Hour)), false},
		"the same said before":      {report("False", since.Add(-time.Hour)), report("False", since), false},
		"nothing counts":            {report("True", since), &v1alpha1.LowLatencyNode{}, false},
		"said later":                {report("True", since.Add(time.Hour)), report("Unknown", since), false},
		"said in the same second":   {report("True", since.Truncate(time.Second)), report("Unknown", since), false},
		"nothing said":              {&v1alpha1.LowLatencyNode{}, &v1alpha1.LowLatencyNode{}, false},
		"nothing known of the node": {nil, nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (&World{Report: tc.said, Current: tc.counts}).LostReady() != nil; got != tc.want {
				t.Errorf("LostReady() is there: %t, want %t", got, tc.want)
			}
		})
	}
}
