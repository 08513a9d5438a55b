// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package manifest is what rendered objects have in common on every platform and for every BypassNICPool: labels and
// names, the checks of both, the ConfigMap that holds a plan, and the printed form. It is pure.
package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Labels are the recommended labels (kubernetes.io, common labels) of an object that the operator makes. The component
// says what the object is for, such as "tuned".
func Labels(component string) map[string]string {
	return map[string]string{
		v1alpha1.LabelName:      v1alpha1.ProjectName,
		v1alpha1.LabelComponent: component,
		v1alpha1.LabelPartOf:    v1alpha1.ProjectName,
		v1alpha1.LabelManagedBy: v1alpha1.ProjectName,
	}
}

// CheckLabels makes sure that the API server will take labels. The error names each key or value that it would refuse
// and begins with what the labels are.
func CheckLabels(what string, labels map[string]string) error {
	problems := make([]error, 0, 2*len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		problems = append(problems,
			CheckName(what, key, validation.IsQualifiedName),
			CheckName(what+" "+key, labels[key], validation.IsValidLabelValue))
	}
	return errors.Join(problems...)
}

// CheckName turns the sentences of a validation function of Kubernetes into an error that begins with what the name is.
func CheckName(what, name string, check func(string) []string) error {
	if problems := check(name); len(problems) > 0 {
		return fmt.Errorf("%s %q: %s", what, name, strings.Join(problems, "; "))
	}
	return nil
}
