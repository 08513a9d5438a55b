// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// maintenance are the standard conditions of a Node about its maintenance (KEP-5683) that the operator writes, and what it says
// with each of them.
func maintenance() []corev1.NodeCondition {
	return []corev1.NodeCondition{
		{Type: corev1.NodeMaintenancePlanned, Reason: v1alpha1.NodeReasonPlanned, Message: "the node waits for its turn to be changed by the Low Latency Node Operator"},
		{Type: corev1.NodeMaintenanceInProgress, Reason: v1alpha1.NodeReasonChanging, Message: "the Low Latency Node Operator changes the host"},
		{Type: corev1.NodeDrainInProgress, Reason: v1alpha1.NodeReasonDraining, Message: "the Low Latency Node Operator evicts the pods, because the host reboots or starts its kubelet again"},
		{Type: corev1.NodeDrained, Reason: v1alpha1.NodeReasonDrained, Message: "the pods are gone that the Low Latency Node Operator evicts; the host may reboot or start its kubelet again at any time"},
	}
}

// MaintenanceConditions are those of a Node's conditions that say something about its maintenance, without heartbeats.
func MaintenanceConditions(conditions []corev1.NodeCondition) []corev1.NodeCondition {
	var found []corev1.NodeCondition
	for _, kind := range maintenance() {
		if at := slices.IndexFunc(conditions, func(c corev1.NodeCondition) bool { return c.Type == kind.Type }); at >= 0 {
			condition := conditions[at]
			condition.LastHeartbeatTime = metav1.Time{}
			found = append(found, condition)
		}
	}
	return found
}

func isOurs(condition corev1.NodeCondition) bool {
	return strings.HasPrefix(condition.Reason, v1alpha1.NodeReasonPrefix)
}

// ForeignMaintenance is the condition by which somebody else says that a node is drained or maintained now; nil for none.
func ForeignMaintenance(conditions []corev1.NodeCondition) *corev1.NodeCondition {
	for _, c := range MaintenanceConditions(conditions) {
		isNow := c.Type == corev1.NodeMaintenanceInProgress || c.Type == corev1.NodeDrainInProgress
		if isNow && c.Status == corev1.ConditionTrue && !isOurs(c) {
			return &c
		}
	}
	return nil
}

// Publish are the conditions that the operator is to have on a Node, given those that are there: the ones that hold, and not what
// somebody else says in their place. It reports whether that is something else than what it has there.
func Publish(have []corev1.NodeCondition, holding []corev1.NodeConditionType, now metav1.Time) ([]corev1.NodeCondition, bool) {
	have = MaintenanceConditions(have)
	want := make([]corev1.NodeCondition, 0, len(holding))
	moved := slices.ContainsFunc(have, func(c corev1.NodeCondition) bool { return isOurs(c) && !slices.Contains(holding, c.Type) })
	for _, condition := range maintenance() {
		at := slices.IndexFunc(have, func(c corev1.NodeCondition) bool { return c.Type == condition.Type })
		switch {
		case !slices.Contains(holding, condition.Type):
			continue
		case at >= 0 && isOurs(have[at]) && have[at].Status == corev1.ConditionTrue:
			condition.LastTransitionTime = have[at].LastTransitionTime
		case at >= 0 && have[at].Status == corev1.ConditionTrue:
			continue
		default:
			condition.LastTransitionTime, moved = now, true
		}
		condition.Status = corev1.ConditionTrue
		want = append(want, condition)
	}
	return want, moved
}

// duringTurn are the conditions that hold of a node that has its turn, given what is done about it.
func (n *Node) duringTurn(verb Verb) []corev1.NodeConditionType {
	holding := []corev1.NodeConditionType{corev1.NodeMaintenanceInProgress}
	switch {
	case !n.IsOurCordon:
	case verb == Evict:
		holding = append(holding, corev1.NodeDrainInProgress)
	case verb == Instruct || n.Issued != nil || n.isWorking():
		holding = append(holding, corev1.NodeDrained)
	}
	return holding
}
