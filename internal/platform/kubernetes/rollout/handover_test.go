// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
)

// TestHandedOver: which instructions may have got to a guard, by the pod that brings them.
func TestHandedOver(t *testing.T) {
	ended := func(code int32, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting := func(message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: message}}
	}
	const words = "The guard is installed.\nerror: no space left on device\n"
	for name, tc := range map[string]struct {
		phase     corev1.PodPhase
		now, last corev1.ContainerState
		number    string
		delivered bool
		trouble   string
	}{
		"not begun":              {phase: corev1.PodPending, now: waiting("")},
		"no image":               {phase: corev1.PodPending, now: waiting("no such image"), trouble: "ImagePullBackOff: no such image"},
		"running":                {phase: corev1.PodRunning, now: running, delivered: true},
		"done":                   {phase: corev1.PodSucceeded, now: ended(0, "{}"), delivered: true},
		"could not":              {phase: corev1.PodRunning, now: ended(instruction.ExitNotHandedOver, words), trouble: "no space left on device"},
		"could not, and waits":   {phase: corev1.PodRunning, now: waiting("back-off"), last: ended(instruction.ExitNotHandedOver, words), trouble: "no space left on device"},
		"could not, and tries":   {phase: corev1.PodRunning, now: running, last: ended(instruction.ExitNotHandedOver, words), delivered: true, trouble: "no space left on device"},
		"failed after it":        {phase: corev1.PodRunning, now: waiting("back-off"), last: ended(1, words), delivered: true, trouble: "no space left on device"},
		"killed without a word":  {phase: corev1.PodRunning, now: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}, delivered: true, trouble: "OOMKilled"},
		"of another instruction": {phase: corev1.PodRunning, now: running, number: "7"},
	} {
		t.Run(name, func(t *testing.T) {
			number := func(text string) map[string]string { return map[string]string{v1alpha1.AnnotationNumber: text} }
			pod, configMap := &corev1.Pod{}, &corev1.ConfigMap{}
			pod.Annotations, configMap.Annotations = number("8"), number("8")
			if tc.number != "" {
				pod.Annotations = number(tc.number)
			}
			pod.Status = corev1.PodStatus{Phase: tc.phase, ContainerStatuses: []corev1.ContainerStatus{{State: tc.now, LastTerminationState: tc.last}}}
			delivered, trouble := handedOver(pod, configMap)
			if delivered != tc.delivered || trouble != tc.trouble {
				t.Errorf("delivered %t, trouble %q", delivered, trouble)
			}
		})
	}
	pod := &corev1.Pod{}
	if delivered, trouble := handedOver(nil, &corev1.ConfigMap{}); delivered || trouble != "" {
		t.Errorf("no pod: %t, %q", delivered, trouble)
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available"},
	}}
	if delivered, trouble := handedOver(pod, &corev1.ConfigMap{}); delivered || trouble != "Unschedulable: 0/3 nodes are available" {
		t.Errorf("a pod without a node: %t, %q", delivered, trouble)
	}
}
