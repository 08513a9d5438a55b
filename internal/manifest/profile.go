// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifest

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// OfPlan is the metadata that all objects have that are made of one plan of a profile.
func OfPlan(profile, planHash, name, component string) metav1.ObjectMeta {
	labels := Labels(component)
	labels[v1alpha1.LabelProfile] = profile
	return metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{v1alpha1.AnnotationPlanHash: planHash}}
}

// CheckProfile makes sure that the name of a profile can be a part of names and the value of a label.
func CheckProfile(name string) error {
	return errors.Join(
		CheckName("profile name", name, validation.IsDNS1123Subdomain),
		CheckName("profile name", name, validation.IsValidLabelValue),
	)
}
