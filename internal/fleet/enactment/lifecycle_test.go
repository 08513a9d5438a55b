// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

// TestHolding: which of the standard conditions hold at which stage.
func TestHolding(t *testing.T) {
	const waits, changes, drains, drained = corev1.NodeMaintenancePlanned, corev1.NodeMaintenanceInProgress, corev1.NodeDrainInProgress, corev1.NodeDrained
	cases := map[string]struct {
		with []change
		want []corev1.NodeConditionType
	}{
		"as it is to be":                 {[]change{reported(v1alpha1.EnactmentInForce, 7, planA, planA)}, nil},
		"nobody wants anything of it":    {[]change{unwanted}, nil},
		"it cannot have the plan":        {[]change{impossible("a flag")}, nil},
		"tried, and back":                {[]change{reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "x")}, nil},
		"it could have its turn":         {nil, []corev1.NodeConditionType{waits}},
		"it waits for somebody else":     {[]change{locked("kured")}, []corev1.NodeConditionType{waits}},
		"its turn":                       {took(), []corev1.NodeConditionType{changes}},
		"changed without a reboot":       {took(reported(v1alpha1.EnactmentInForce, 7, planB, planB), issued(false)), []corev1.NodeConditionType{changes}},
		"pods are evicted":               {boot(needsReboot, left("a/b")), []corev1.NodeConditionType{changes, drains}},
		"empty":                          {boot(needsReboot, empty), []corev1.NodeConditionType{changes, drained}},
		"told":                           {boot(issued(true)), []corev1.NodeConditionType{changes, drained}},
		"rebooting":                      {boot(issued(true), reported(v1alpha1.EnactmentArmed, 8, planA, "")), []corev1.NodeConditionType{changes, drained}},
		"pods may come again":            {boot(applied, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), []corev1.NodeConditionType{changes}},
		"withdrawn while pods are left":  {boot(unwanted, left("a/b")), []corev1.NodeConditionType{changes}},
		"taken away while pods are left": {boot(left("a/b"), locked("Karpenter")), []corev1.NodeConditionType{changes}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, stageOf(t, decide(1, node("n1", tc.with...)), "n1").Holding); diff != "" {
				t.Errorf("holding (-want +got):\n%s", diff)
			}
		})
	}
}

// condition is one of a Node, as "type status reason".
func condition(text string) corev1.NodeCondition {
	words := strings.Fields(text)
	return corev1.NodeCondition{
		Type: corev1.NodeConditionType(words[0]), Status: corev1.ConditionStatus(words[1]), Reason: words[2],
		LastTransitionTime: metav1.NewTime(now().Add(-time.Hour)), LastHeartbeatTime: metav1.NewTime(now()),
	}
}

// TestPublish: only our own conditions are written, and nothing when nothing has changed.
func TestPublish(t *testing.T) {
	const changes, drains = corev1.NodeMaintenanceInProgress, corev1.NodeDrainInProgress
	cases := map[string]struct {
		have    []string
		holding []corev1.NodeConditionType
		// want are the types, with "+" where the time is that of now.
		want  string
		moved bool
	}{
		"nothing":                           {[]string{"Ready True KubeletReady"}, nil, "", false},
		"begun":                             {nil, []corev1.NodeConditionType{changes}, "+MaintenanceInProgress", true},
		"as before":                         {[]string{"MaintenanceInProgress True LowLatencyHostChanges"}, []corev1.NodeConditionType{changes}, "MaintenanceInProgress", false},
		"one more":                          {[]string{"MaintenanceInProgress True LowLatencyHostChanges"}, []corev1.NodeConditionType{changes, drains}, "MaintenanceInProgress +DrainInProgress", true},
		"over":                              {[]string{"MaintenanceInProgress True LowLatencyHostChanges"}, nil, "", true},
		"what kubectl has left":             {[]string{"DrainInProgress False KubectlUncordoned"}, []corev1.NodeConditionType{drains}, "+DrainInProgress", true},
		"somebody else drains":              {[]string{"DrainInProgress True KubectlDrainStarted"}, []corev1.NodeConditionType{drains}, "", false},
		"somebody else's is not taken away": {[]string{"Drained True KubectlDrainCompleted"}, nil, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := make([]corev1.NodeCondition, 0, len(tc.have))
			for _, text := range tc.have {
				have = append(have, condition(text))
			}
			conditions, moved := enactment.Publish(have, tc.holding, metav1.NewTime(now()))
			got := make([]string, 0, len(conditions))
			for _, c := range conditions {
				if c.Status != corev1.ConditionTrue || c.Message == "" || !strings.HasPrefix(c.Reason, v1alpha1.NodeReasonPrefix) {
					t.Errorf("condition %+v", c)
				}
				text := string(c.Type)
				if c.LastTransitionTime.Equal(new(metav1.NewTime(now()))) {
					text = "+" + text
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != tc.want || moved != tc.moved {
				t.Errorf("Publish() = %v, %v, want %s, %v", got, moved, tc.want, tc.moved)
			}
		})
	}
}

// TestForeignMaintenance: only what somebody else does now is a lock.
func TestForeignMaintenance(t *testing.T) {
	for text, want := range map[string]bool{
		"DrainInProgress True KubectlDrainStarted":         true,
		"MaintenanceInProgress True Firmware":              true,
		"MaintenanceInProgress False Firmware":             false,
		"MaintenancePlanned True MaintenanceWindow":        false,
		"MaintenanceInProgress True LowLatencyHostChanges": false,
		"Drained True KubectlDrainCompleted":               false,
	} {
		if got := enactment.ForeignMaintenance([]corev1.NodeCondition{condition(text)}); (got != nil) != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
}
