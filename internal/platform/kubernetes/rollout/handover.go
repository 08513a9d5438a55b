// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// maximumTrouble is how many characters of what a pod says are told of a node.
const maximumTrouble = 300

// handedOver reports whether the pod of an instruction may have handed it over: something of it has run, and it does not wait after having said that
// it could not. The trouble is what it said when it failed last, or why it does not start; "" for none.
func handedOver(pod *corev1.Pod, configMap *corev1.ConfigMap) (delivered bool, trouble string) {
	if pod == nil || pod.Annotations[v1alpha1.AnnotationNumber] != configMap.Annotations[v1alpha1.AnnotationNumber] {
		return false, ""
	}
	delivered = pod.Status.Phase != "" && pod.Status.Phase != corev1.PodPending
	if len(pod.Status.ContainerStatuses) == 0 {
		return delivered, unscheduled(pod)
	}
	isNot, trouble := troubleOf(&pod.Status.ContainerStatuses[0])
	return delivered && !isNot, trouble
}

// troubleOf is what a container said when it failed last, or why it does not start, and whether it waits after having said that nothing was handed over.
func troubleOf(status *corev1.ContainerStatus) (isNotHandedOver bool, trouble string) {
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	switch waiting := status.State.Waiting; {
	case ended == nil && waiting != nil && waiting.Message != "":
		return false, lastLine(waiting.Reason + ": " + waiting.Message)
	case ended == nil || ended.ExitCode == 0:
		return false, ""
	}
	isNotHandedOver = ended.ExitCode == instruction.ExitNotHandedOver && status.State.Running == nil
	return isNotHandedOver, lastLine(cmp.Or(ended.Message, ended.Reason))
}

// unscheduled says why a pod that has not started has no node; "" where it has, or where nobody says.
func unscheduled(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		if condition := &pod.Status.Conditions[i]; condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return lastLine(condition.Reason + ": " + condition.Message)
		}
	}
	return ""
}

// lastLine is what a program said last: the message of a container has the end of what it printed.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return shorten.Sentence(strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "error: "), maximumTrouble)
}
