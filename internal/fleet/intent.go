// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Intent is what one profile wants of the platform.
type Intent struct {
	Profile *v1alpha1.LowLatencyNodeProfile
	// Shapes in ascending order of their hashes; empty while the profile is being deleted.
	Shapes []Shape
	// Nodes are all nodes of the cluster by name. They are shared with the cache: not to be changed.
	Nodes map[string]*corev1.Node
	// Selected are the names of the nodes that the profile's selector matches, ascending.
	Selected []string
	// Leaving are the nodes that the profile governs and gives back, ascending.
	Leaving []string
	// Held are nodes that must not be changed, and why: their plan is impossible, two profiles select
	// them, another profile is about to take them over, or too many leave at once.
	Held map[string]string
	// Pending are the nodes that have a plan in force and are to have another.
	Pending map[string]bool
	// RuntimeClassClaims are the profiles, this one among them, that give their RuntimeClass the same name, the oldest first; nil when
	// no other does.
	RuntimeClassClaims []string
	// ReadOnly asks for the outcome without any write.
	ReadOnly bool
}

// Governs reports whether the profile's selector matches the node.
func (i *Intent) Governs(node string) bool {
	_, found := slices.BinarySearch(i.Selected, node)
	return found
}
