// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

func TestAnnouncement(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
		return &metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	cases := map[string]struct {
		before, after *metav1.Condition
		want          fleet.Announcement
		wantNone      bool
	}{
		"ready at last":         {condition("Ready", "False", "RollingOut"), condition("Ready", "True", "Verified"), fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "Verified"}, false},
		"no longer ready":       {condition("Ready", "True", "Verified"), condition("Ready", "False", "RollingOut"), fleet.Announcement{}, true},
		"broken":                {condition("Degraded", "False", "AsExpected"), condition("Degraded", "True", "MachineConfigPoolConflict"), fleet.Announcement{Kind: corev1.EventTypeWarning, Reason: "MachineConfigPoolConflict"}, false},
		"broken at once":        {nil, condition("Degraded", "True", "MachineConfigPoolConflict"), fleet.Announcement{Kind: corev1.EventTypeWarning, Reason: "MachineConfigPoolConflict"}, false},
		"broken in another way": {condition("Degraded", "True", "MachineConfigPoolConflict"), condition("Degraded", "True", "ChecksFailed"), fleet.Announcement{Kind: corev1.EventTypeWarning, Reason: "ChecksFailed"}, false},
		"still broken":          {condition("Degraded", "True", "MachineConfigPoolConflict"), condition("Degraded", "True", "MachineConfigPoolConflict"), fleet.Announcement{}, true},
		"still fine":            {condition("Degraded", "False", "AsExpected"), condition("Degraded", "False", "AsExpected"), fleet.Announcement{}, true},
		"mended":                {condition("Degraded", "True", "MachineConfigPoolConflict"), condition("Degraded", "False", "AsExpected"), fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "Recovered"}, false},
		"fine at first":         {nil, condition("Degraded", "False", "AsExpected"), fleet.Announcement{}, true},
		"a rollout begins":      {condition("Progressing", "False", "RolloutComplete"), condition("Progressing", "True", "RollingOut"), fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "RollingOut"}, false},
		"a rollout follows":     {condition("Progressing", "True", "AwaitingInventory"), condition("Progressing", "True", "RollingOut"), fleet.Announcement{Kind: corev1.EventTypeNormal, Reason: "RollingOut"}, false},
		"a rollout goes on":     {condition("Progressing", "True", "RollingOut"), condition("Progressing", "True", "RollingOut"), fleet.Announcement{}, true},
		"a rollout ends":        {condition("Progressing", "True", "RollingOut"), condition("Progressing", "False", "RolloutComplete"), fleet.Announcement{}, true},
		"de-jittered":           {condition("DeJittered", "False", "x"), condition("DeJittered", "True", "Verified"), fleet.Announcement{}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, worth := announcement(tc.before, tc.after)
			if worth == tc.wantNone || worth && got != tc.want {
				t.Errorf("announcement() = %+v, %v, want %+v, %v", got, worth, tc.want, !tc.wantNone)
			}
		})
	}
}
