// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"cmp"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// nameLength is how many characters of a signature or hash become part of a machine config pool's name.
const nameLength = 8

// seat is a number of nodes of one shape that already sit in a machine config pool.
type seat struct {
	shape, pool string
	nodes       int
}

// AssignPools returns the name of the managed machine config pool of each shape, by the shape's hash. A shape keeps the
// machine config pool in which most of its nodes already sit, so that a change of the profile changes what a machine
// config pool holds and not where its nodes are. Another shape gets the name <profile>-<signature>, or, where that name
// is taken, <profile>-<hash>. The result depends neither on the order of the shapes nor on anything but the arguments.
//
// current is the machine config pool of each node that is in a machine config pool of this profile; taken are names
// that this profile cannot have, because a machine config pool of that name has another owner.
func AssignPools(profile string, current map[string]string, shapes []fleet.Shape, taken map[string]bool) map[string]string {
	assigned := make(map[string]string, len(shapes))
	used := make(map[string]bool, len(shapes)+len(taken))
	for name := range taken {
		used[name] = taken[name]
	}
	for _, s := range seats(current, shapes) {
		if assigned[s.shape] == "" && !used[s.pool] {
			assigned[s.shape], used[s.pool] = s.pool, true
		}
	}
	newcomers := slices.DeleteFunc(slices.Clone(shapes), func(s fleet.Shape) bool { return assigned[s.Hash] != "" })
	slices.SortFunc(newcomers, func(a, b fleet.Shape) int {
		return cmp.Or(cmp.Compare(a.Signature, b.Signature), cmp.Compare(a.Hash, b.Hash))
	})
	for _, shape := range newcomers {
		name := freeName(profile, shape, used)
		assigned[shape.Hash], used[name] = name, true
	}
	return assigned
}

// seats counts the nodes of each shape in each machine config pool, the most numerous first.
func seats(current map[string]string, shapes []fleet.Shape) []seat {
	all := make([]seat, 0, len(shapes))
	for _, shape := range shapes {
		count := map[string]int{}
		for _, node := range shape.Nodes {
			if pool := current[node]; pool != "" {
				count[pool]++
			}
		}
		for pool, nodes := range count {
			all = append(all, seat{shape: shape.Hash, pool: pool, nodes: nodes})
		}
	}
	slices.SortFunc(all, func(a, b seat) int {
		return cmp.Or(cmp.Compare(b.nodes, a.nodes), cmp.Compare(a.pool, b.pool), cmp.Compare(a.shape, b.shape))
	})
	return all
}

// freeName takes the first free piece of the shape's signature, then of its hash.
func freeName(profile string, shape fleet.Shape, used map[string]bool) string {
	for text := shape.Signature + shape.Hash; len(text) >= nameLength; text = text[nameLength:] {
		if name := profile + "-" + text[:nameLength]; !used[name] {
			return name
		}
	}
	return profile + "-" + shape.Hash
}
