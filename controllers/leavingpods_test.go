// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// TestPodsThatKeepANode: one of a test that was deleted does until it is gone, and one that somebody has labelled like it does not.
func TestPodsThatKeepANode(t *testing.T) {
	labels := map[string]string{v1alpha1.LabelLatencyTest: "quiet"}
	controlledBy := func(kind, name string) []metav1.OwnerReference {
		version := map[string]string{"Job": "batch/v1", "LatencyTest": v1alpha1.GroupVersion.String()}[kind]
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "pod", Labels: labels, OwnerReferences: controlledBy("Job", "job")},
		Spec:       corev1.PodSpec{NodeName: "node-1", TerminationGracePeriodSeconds: new(int64(1))},
	}
	job := func(labels map[string]string, owners []metav1.OwnerReference) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "job", UID: "job", Labels: labels, OwnerReferences: owners}}
	}
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	leaving := map[string]string{"node-1": "tests/pod"}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want map[string]string
	}{
		"its Job is gone":                            {nil, leaving},
		"the test of its Job is gone":                {job(labels, controlledBy("LatencyTest", "quiet")), leaving},
		"its Job has no label, and is somebody's":    {job(nil, nil), map[string]string{}},
		"its Job has the label, and is somebody's":   {job(labels, nil), map[string]string{}},
		"its Job has no label, and its test is gone": {job(nil, controlledBy("LatencyTest", "quiet")), leaving},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{pod}
			if tc.job != nil {
				objects = append(objects, tc.job)
			}
			reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			used, err := (&TestReconciler{live: reader}).runningElsewhere(t.Context(), reader, &v1alpha1.LatencyTest{})
			if diff := cmp.Diff(tc.want, used.Leaving); err != nil || diff != "" {
				t.Errorf("%v; nodes (-want +got):\n%s", err, diff)
			}
		})
	}
}
