// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crioconfig

import (
	"cmp"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// RuntimeClassName is the name of the RuntimeClass of a profile: the one that the profile gives it, or lowlatency- and the
// name of the profile.
func RuntimeClassName(p *plan.NodePlan) string {
	return cmp.Or(p.ContainerRuntime.RuntimeClassName, "lowlatency-"+p.Profile)
}

// RuntimeClass is how a pod asks for the handler of latency-critical pods; it also brings the pod to the profile's nodes. All
// plans of a profile have the same one, so it names no plan: its bytes must not depend on which was rendered last.
func RuntimeClass(p *plan.NodePlan, planHash string) *nodev1.RuntimeClass {
	metadata := manifest.OfPlan(p.Profile, planHash, RuntimeClassName(p), "runtime-class")
	metadata.Annotations = nil
	return &nodev1.RuntimeClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: nodev1.SchemeGroupVersion.String(), Kind: "RuntimeClass"},
		ObjectMeta: metadata,
		Handler:    Handler,
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{v1alpha1.LabelProfile: p.Profile}},
	}
}
