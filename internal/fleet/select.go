// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Selects reports whether the node has all labels of the selector and meets all of its requirements, as a LabelSelector of
// Kubernetes is read. One that is empty selects nothing. It costs nothing to prepare: it is asked for each node of each
// event.
func Selects(selector v1alpha1.NodeSelector, node *corev1.Node) bool {
	for key, value := range selector.MatchLabels {
		if found, ok := node.Labels[key]; !ok || found != string(value) {
			return false
		}
	}
	for i := range selector.MatchExpressions {
		if !meets(&selector.MatchExpressions[i], node) {
			return false
		}
	}
	return len(selector.MatchLabels)+len(selector.MatchExpressions) > 0
}

// meets reports whether a node meets one requirement. A requirement that the API server would have refused is met by none.
func meets(expression *v1alpha1.LabelExpression, node *corev1.Node) bool {
	value, found := node.Labels[string(expression.Key)]
	switch expression.Operator {
	case v1alpha1.LabelIn:
		return found && slices.Contains(expression.Values, v1alpha1.LabelValue(value))
	case v1alpha1.LabelNotIn:
		return !found || !slices.Contains(expression.Values, v1alpha1.LabelValue(value))
	case v1alpha1.LabelExists:
		return found
	case v1alpha1.LabelDoesNotExist:
		return !found
	default:
		return false
	}
}

// SelectingProfiles returns the names of those of the profiles that select the node, ascending.
func SelectingProfiles(profiles []*v1alpha1.LowLatencyNodeProfile, node *corev1.Node) []string {
	var names []string
	for _, profile := range profiles {
		if Selects(profile.Spec.NodeSelector, node) {
			names = append(names, profile.Name)
		}
	}
	slices.Sort(names)
	return names
}
