// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of every object of this operator.
const GroupName = "lowlatency.dev"

// GroupVersion is the group and version of the objects in this package.
//
//nolint:gochecknoglobals // The name and form that kubebuilder projects expect; never written.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// AddToScheme registers the objects of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&LowLatencyNodeProfile{}, &LowLatencyNodeProfileList{},
		&LowLatencyNode{}, &LowLatencyNodeList{},
		&BypassNICPool{}, &BypassNICPoolList{},
		&LatencyTest{}, &LatencyTestList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
