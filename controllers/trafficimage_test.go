// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestImageOfTraffic: what the manager is told goes first, and a PodTemplate of another namespace or component counts for nothing.
func TestImageOfTraffic(t *testing.T) {
	template := func(namespace, component, image string) *corev1.PodTemplate {
		return &corev1.PodTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: component, Namespace: namespace, Labels: map[string]string{v1alpha1.LabelComponent: component}},
			Template:   corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "traffic", Image: image}}}},
		}
	}
	for name, tc := range map[string]struct {
		told     string
		kind     v1alpha1.LatencyTestKind
		template *corev1.PodTemplate
		want     string
	}{
		"told":                            {"told:1", v1alpha1.LatencyTestPingPong, template("operator", v1alpha1.ComponentTrafficImage, "found:1"), "told:1"},
		"found":                           {"", v1alpha1.LatencyTestPingPong, template("operator", v1alpha1.ComponentTrafficImage, "found:1"), "found:1"},
		"of a test that needs none":       {"", v1alpha1.LatencyTestJitter, template("operator", v1alpha1.ComponentTrafficImage, "found:1"), ""},
		"in another namespace":            {"", v1alpha1.LatencyTestPingPong, template("other", v1alpha1.ComponentTrafficImage, "found:1"), ""},
		"a PodTemplate of something else": {"", v1alpha1.LatencyTestPingPong, template("operator", "other", "found:1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := &TestReconciler{live: fake.NewClientBuilder().WithObjects(tc.template).Build(), trafficImage: tc.told, namespace: "operator"}
			if got, err := r.imageOfTraffic(t.Context(), tc.kind); got != tc.want || err != nil {
				t.Errorf("imageOfTraffic() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}
