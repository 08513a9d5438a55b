// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// RuntimeClass is how a pod asks for the container runtime's handler of latency-critical pods; it also brings the pod
// to the profile's nodes. There is one for each profile. All machine config pools of a profile render the same one, so
// it names no plan: its bytes must not depend on which machine config pool was rendered last.
func RuntimeClass(in Input) (*nodev1.RuntimeClass, error) {
	in, err := in.checked()
	if err != nil {
		return nil, err
	}
	metadata := in.metadata(RuntimeClassName(in.Plan), "runtime-class")
	metadata.Annotations = nil
	return &nodev1.RuntimeClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: nodev1.SchemeGroupVersion.String(), Kind: "RuntimeClass"},
		ObjectMeta: metadata,
		Handler:    runtimeHandler,
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{v1alpha1.LabelProfile: in.Plan.Profile},
		},
	}, nil
}
