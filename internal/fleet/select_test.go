// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

func TestSelects(t *testing.T) {
	cases := map[string]struct {
		selector v1alpha1.Labels
		node     *corev1.Node
		want     bool
	}{
		"all labels":      {v1alpha1.Labels{"a": "1", "b": ""}, objects.MakeNode("n", "a", "1", "b", "", "c", "3"), true},
		"another value":   {v1alpha1.Labels{"a": "1"}, objects.MakeNode("n", "a", "2"), false},
		"a missing label": {v1alpha1.Labels{"a": ""}, objects.MakeNode("n", "b", ""), false},
		"no selector":     {nil, objects.MakeNode("n", "a", "1"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Selects(v1alpha1.NodeSelector{MatchLabels: tc.selector}, tc.node); got != tc.want {
				t.Errorf("Selects() = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestSelectsAsKubernetesDoes compares with apimachinery's reading of the same selector, for selectors and labels of few
// keys and values, so that all combinations occur.
func TestSelectsAsKubernetesDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for range 20000 {
		var selector v1alpha1.NodeSelector
		var same metav1.LabelSelector
		for range random.IntN(2) {
			key, value := pick("a", "b"), pick("", "1")
			selector.MatchLabels, same.MatchLabels = v1alpha1.Labels{key: v1alpha1.LabelValue(value)}, map[string]string{key: value}
		}
		for range random.IntN(3) {
			one := v1alpha1.LabelExpression{
				Key:      v1alpha1.LabelKey(pick("a", "b")),
				Operator: v1alpha1.LabelOperator(pick("In", "NotIn", "Exists", "DoesNotExist")),
			}
			other := metav1.LabelSelectorRequirement{Key: string(one.Key), Operator: metav1.LabelSelectorOperator(one.Operator)}
			if one.Operator == v1alpha1.LabelIn || one.Operator == v1alpha1.LabelNotIn {
				for range 1 + random.IntN(2) {
					value := pick("", "1", "2")
					one.Values, other.Values = append(one.Values, v1alpha1.LabelValue(value)), append(other.Values, value)
				}
			}
			selector.MatchExpressions, same.MatchExpressions = append(selector.MatchExpressions, one), append(same.MatchExpressions, other)
		}
		node := objects.MakeNode("n")
		node.Labels = map[string]string{}
		for range random.IntN(3) {
			node.Labels[pick("a", "b")] = pick("", "1", "2")
		}
		parsed, err := metav1.LabelSelectorAsSelector(&same)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := Selects(selector, node), parsed.Matches(labels.Set(node.Labels)) && !parsed.Empty(); got != want {
			t.Fatalf("%+v on %v: Selects() = %t, want %t", selector, node.Labels, got, want)
		}
	}
}

func TestSelectsNothingByAnUnknownOperator(t *testing.T) {
	selector := v1alpha1.NodeSelector{MatchExpressions: []v1alpha1.LabelExpression{{Key: "a", Operator: "Gt"}}}
	if Selects(selector, objects.MakeNode("n", "a", "1")) {
		t.Error("a requirement that is not understood is met")
	}
}
