// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"testing"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func tunedObject(name string, priority int64, role, text string) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"profile": []any{map[string]any{"name": name, "data": text}},
			"recommend": []any{map[string]any{
				"profile": name, "priority": priority, "machineConfigLabels": map[string]any{mcfgv1.MachineConfigRoleLabelKey: role},
			}},
		},
	}}
}

func TestRecommended(t *testing.T) {
	p := pool("fast", nil)
	p.Spec.MachineConfigSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: mcfgv1.MachineConfigRoleLabelKey, Operator: metav1.LabelSelectorOpIn, Values: []string{"worker", "fast"}},
	}}
	marked := tunedObject("a", 15, "fast", "A")
	marked.SetAnnotations(map[string]string{"tuned.openshift.io/deferred": "update"})
	missing := tunedObject("missing", 1, "fast", "")
	missing.Object["spec"].(map[string]any)["profile"] = []any{}
	cases := map[string]struct {
		objects []unstructured.Unstructured
		want    string
		// wantDeferred is for a profile that waits for a boot.
		wantDeferred bool
	}{
		"marked":                 {objects: []unstructured.Unstructured{marked}, want: "A", wantDeferred: true},
		"none":                   {},
		"the lowest number wins": {objects: []unstructured.Unstructured{tunedObject("b", 20, "worker", "B"), tunedObject("a", 15, "fast", "A")}, want: "A"},
		"that of another machine config pool does not match": {objects: []unstructured.Unstructured{tunedObject("a", 1, "slow", "A"), tunedObject("b", 20, "fast", "B")}, want: "B"},
		"a profile without text is no recommendation":        {objects: []unstructured.Unstructured{missing, tunedObject("b", 20, "fast", "B")}, want: "B"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := recommended(tc.objects, &p)
			if err != nil || got.Text != tc.want || got.Deferred != tc.wantDeferred {
				t.Errorf("recommended = %+v, %v; want %q, deferred: %v", got, err, tc.want, tc.wantDeferred)
			}
		})
	}
}
