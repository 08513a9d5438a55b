// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

func shape(hash, signature string, nodes ...string) fleet.Shape {
	return fleet.Shape{Hash: hash, Signature: signature, Nodes: nodes}
}

func TestAssignPools(t *testing.T) {
	const (
		plan1, plan2, plan3 = "1111111111111111", "2222222222222222", "3333333333333333"
		xeon, epyc          = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	)
	cases := map[string]struct {
		current map[string]string
		shapes  []fleet.Shape
		taken   map[string]bool
		want    map[string]string
	}{
		"no shapes": {want: map[string]string{}},
		"new shapes are named after their topology": {
			shapes: []fleet.Shape{shape(plan1, xeon, "n1"), shape(plan2, epyc, "n2")},
			want:   map[string]string{plan1: "trading-aaaaaaaa", plan2: "trading-bbbbbbbb"},
		},
		"a changed plan keeps the pool": {
			current: map[string]string{"n1": "trading-aaaaaaaa"},
			shapes:  []fleet.Shape{shape(plan3, xeon, "n1")},
			want:    map[string]string{plan3: "trading-aaaaaaaa"},
		},
		"a pool of another name is kept, too": {
			current: map[string]string{"n1": "trading-cccccccc"},
			shapes:  []fleet.Shape{shape(plan1, xeon, "n1", "n2")},
			want:    map[string]string{plan1: "trading-cccccccc"},
		},
		"when a shape splits, the larger part keeps the pool": {
			current: map[string]string{"n1": "trading-aaaaaaaa", "n2": "trading-aaaaaaaa", "n3": "trading-aaaaaaaa"},
			shapes:  []fleet.Shape{shape(plan1, xeon, "n1"), shape(plan2, xeon, "n2", "n3")},
			want:    map[string]string{plan1: "trading-11111111", plan2: "trading-aaaaaaaa"},
		},
		"when two shapes become one, the larger pool is kept": {
			current: map[string]string{"n1": "trading-aaaaaaaa", "n2": "trading-bbbbbbbb", "n3": "trading-bbbbbbbb"},
			shapes:  []fleet.Shape{shape(plan1, xeon, "n1", "n2", "n3")},
			want:    map[string]string{plan1: "trading-bbbbbbbb"},
		},
		"a tie is decided by name": {
			current: map[string]string{"n1": "trading-bbbbbbbb", "n2": "trading-aaaaaaaa"},
			shapes:  []fleet.Shape{shape(plan1, xeon, "n1", "n2")},
			want:    map[string]string{plan1: "trading-aaaaaaaa"},
		},
		"two shapes that swap nodes keep their pools": {
			current: map[string]string{"n1": "trading-aaaaaaaa", "n2": "trading-aaaaaaaa", "n3": "trading-bbbbbbbb", "n4": "trading-bbbbbbbb", "n5": "trading-bbbbbbbb"},
			shapes:  []fleet.Shape{shape(plan1, xeon, "n1", "n2", "n3"), shape(plan2, epyc, "n4", "n5")},
			want:    map[string]string{plan1: "trading-aaaaaaaa", plan2: "trading-bbbbbbbb"},
		},
		"shapes of one topology get different names": {
			shapes: []fleet.Shape{shape(plan1, xeon, "n1"), shape(plan2, xeon, "n2")},
			want:   map[string]string{plan1: "trading-aaaaaaaa", plan2: "trading-22222222"},
		},
		"the name of somebody else's pool is not taken": {
			shapes: []fleet.Shape{shape(plan1, "aaaaaaaabbbbbbbb", "n1")},
			taken:  map[string]bool{"trading-aaaaaaaa": true},
			want:   map[string]string{plan1: "trading-bbbbbbbb"},
		},
		"nodes that sit in somebody else's pool do not keep it": {
			current: map[string]string{"n1": "other-aaaaaaaa"},
			shapes:  []fleet.Shape{shape(plan1, xeon, "n1")},
			taken:   map[string]bool{"other-aaaaaaaa": true},
			want:    map[string]string{plan1: "trading-aaaaaaaa"},
		},
		"without a free piece the whole hash is used": {
			shapes: []fleet.Shape{shape("1111111122222222", "", "n1")},
			taken:  map[string]bool{"trading-11111111": true, "trading-22222222": true},
			want:   map[string]string{"1111111122222222": "trading-1111111122222222"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := AssignPools("trading", tc.current, tc.shapes, tc.taken)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("AssignPools() mismatch (-want +got):\n%s", diff)
			}
			reversed := slices.Clone(tc.shapes)
			slices.Reverse(reversed)
			if diff := cmp.Diff(got, AssignPools("trading", tc.current, reversed, tc.taken)); diff != "" {
				t.Errorf("the order of shapes matters (-forward +backward):\n%s", diff)
			}
		})
	}
}
