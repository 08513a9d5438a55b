// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"cmp"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Shape is one plan and the nodes that are to have it.
type Shape struct {
	// Hash of the plan.
	Hash string
	Plan *plan.NodePlan
	// Signature is the smallest topology signature of the nodes.
	Signature string
	// Nodes by name, in the order in which they were added, at least one.
	Nodes []string
}

// Shapes groups nodes by the hash of their plans. The zero value is empty.
type Shapes struct {
	all []Shape
	at  map[string]int
}

// Add puts a node into the shape of its plan. A node that has no plan is in none.
func (s *Shapes) Add(node string, planned *Planned) {
	if planned == nil || planned.Plan == nil {
		return
	}
	position, found := s.at[planned.Hash]
	if !found {
		if s.at == nil {
			s.at = map[string]int{}
		}
		position = len(s.all)
		s.at[planned.Hash] = position
		s.all = append(s.all, Shape{Hash: planned.Hash, Plan: planned.Plan, Signature: planned.Signature})
	}
	shape := &s.all[position]
	shape.Nodes = append(shape.Nodes, node)
	shape.Signature = min(shape.Signature, planned.Signature)
}

// List returns the shapes in ascending order of their hashes.
func (s *Shapes) List() []Shape {
	return slices.SortedFunc(slices.Values(s.all), func(a, b Shape) int { return cmp.Compare(a.Hash, b.Hash) })
}

// ShapesOf are the shapes of members.
func ShapesOf(members []Member) []Shape {
	var shapes Shapes
	for i := range members {
		shapes.Add(members[i].Name(), members[i].Planned)
	}
	return shapes.List()
}
