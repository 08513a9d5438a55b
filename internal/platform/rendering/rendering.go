// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package rendering is the part of a platform that needs no cluster: what it keeps to itself on nodes, and how it writes
// the plans of a profile as objects. The command line plans and renders by the value that each platform has of type
// Platform. It is pure.
package rendering

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Request is what is to be rendered: the plans of one profile for nodes that no platform has touched yet.
type Request struct {
	Profile *v1alpha1.LowLatencyNodeProfile
	// Shapes in ascending order of their hashes.
	Shapes []fleet.Shape
	// Namespace of the operator.
	Namespace string
	// Group is the name of the group of nodes that exists already, where the profile binds to one without its name.
	Group string
}

// Bundle is what is applied for one group of nodes, the nodes that a platform changes together.
type Bundle struct {
	Group string
	// GroupType is what the platform calls such a group: "machine config pool".
	GroupType string
	// Nodes by name, ascending.
	Nodes []string
	// Objects in the order in which they are applied.
	Objects []*unstructured.Unstructured
}

// Platform is the part of a platform that needs no cluster.
type Platform struct {
	// Rules are what the platform keeps to itself on nodes.
	Rules plan.PlatformRules
	// Render writes plans.
	Render Renderer
}

// Renderer writes the plans of a profile as the objects of one platform, one bundle for each group of nodes, ascending
// by name. The objects are those that the operator applies, byte for byte. The error says what the platform cannot write
// or would refuse.
type Renderer func(Request) ([]Bundle, error)

// DropRepeated leaves an object that several bundles hold in the first of them only: the groups of a profile share some
// objects, such as its RuntimeClass.
func DropRepeated(bundles []Bundle) {
	var seen []*unstructured.Unstructured
	for i := range bundles {
		bundles[i].Objects = slices.DeleteFunc(bundles[i].Objects, func(object *unstructured.Unstructured) bool {
			return slices.ContainsFunc(seen, func(other *unstructured.Unstructured) bool {
				return equality.Semantic.DeepEqual(object, other)
			})
		})
		seen = append(seen, bundles[i].Objects...)
	}
}
