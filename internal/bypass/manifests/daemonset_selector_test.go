// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestPluginGoesWhereThePoolSelects has every operator of a selector.
func TestPluginGoesWhereThePoolSelects(t *testing.T) {
	affinity := poolAffinity(v1alpha1.NodeSelector{
		MatchLabels: v1alpha1.Labels{"role": "trading"},
		MatchExpressions: []v1alpha1.LabelExpression{
			{Key: "zone", Operator: v1alpha1.LabelIn, Values: []v1alpha1.LabelValue{"a", "b"}},
			{Key: "zone", Operator: v1alpha1.LabelNotIn, Values: []v1alpha1.LabelValue{"c"}},
			{Key: "x", Operator: v1alpha1.LabelExists},
			{Key: "y", Operator: v1alpha1.LabelDoesNotExist},
		},
	})
	want := []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: v1alpha1.LabelProfile, Operator: corev1.NodeSelectorOpExists},
		{Key: "role", Operator: corev1.NodeSelectorOpIn, Values: []string{"trading"}},
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}},
		{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"c"}},
		{Key: "x", Operator: corev1.NodeSelectorOpExists},
		{Key: "y", Operator: corev1.NodeSelectorOpDoesNotExist},
	}}}
	got := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}
