// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Selects reports whether the node has all labels of the selector. One without labels selects nothing.
func Selects(selector v1alpha1.NodeSelector, node *corev1.Node) bool {
	for key, value := range selector.MatchLabels {
		if found, ok := node.Labels[key]; !ok || found != string(value) {
			return false
		}
	}
	return len(selector.MatchLabels) > 0
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
