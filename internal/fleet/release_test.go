// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

// named makes names of a letter and a number; nil for none.
func named(letter string, count int) []string {
	if count == 0 {
		return nil
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("%s%02d", letter, i)
	}
	return names
}

// releaseWorld has nodes that profile trading selects, nodes that leave it, and nodes that count for neither: one that another
// profile selects, one that was never governed, and one that was only labelled.
func releaseWorld(selected, leaving []string) *ProfileWorld {
	nodes := append(make([]*corev1.Node, 0, 3+len(selected)+len(leaving)),
		objects.MakeNode("stranger", "role", "other"),
		objects.MakeNode("taken", v1alpha1.LabelProfile, "trading", "next", ""),
		objects.MakeNode("stray", v1alpha1.LabelProfile, "trading"))
	for _, name := range selected {
		nodes = append(nodes, objects.MakeNode(name, "role", "trading", v1alpha1.LabelProfile, "trading"))
	}
	for _, name := range leaving {
		nodes = append(nodes, objects.MakeNode(name, v1alpha1.LabelProfile, "trading"))
	}
	next := []*v1alpha1.LowLatencyNodeProfile{objects.MakeProfile("next").Selecting(v1alpha1.Labels{"next": ""}).Obj()}
	w := worldOf(objects.MakeProfile("trading").Obj(), next, nodes)
	for _, name := range leaving {
		w.Reports[name] = objects.MakeReport(name, "trading").Obj()
	}
	return w
}

func TestRelease(t *testing.T) {
	limit := func(n int32) *int32 { return &n }
	cases := map[string]struct {
		selected, leaving int
		limit             *int32
		wantLimit         int
		wantHeld          bool
	}{
		"nobody leaves":                            {selected: 3, wantLimit: 1},
		"the only node leaves":                     {leaving: 1, wantLimit: 1},
		"one of three leaves":                      {selected: 2, leaving: 1, wantLimit: 1},
		"two of three leave":                       {selected: 1, leaving: 2, wantLimit: 1, wantHeld: true},
		"a tenth is rounded up":                    {selected: 9, leaving: 2, wantLimit: 2},
		"more than a tenth leaves":                 {selected: 8, leaving: 3, wantLimit: 2, wantHeld: true},
		"the selector matches nothing":             {leaving: 20, wantLimit: 2, wantHeld: true},
		"consent to as many as leave":              {leaving: 20, limit: limit(20), wantLimit: 20},
		"consent to one less":                      {leaving: 20, limit: limit(19), wantLimit: 19, wantHeld: true},
		"no node may leave without consent":        {selected: 5, leaving: 1, limit: limit(0), wantHeld: true},
		"a limit of none where none leaves is met": {selected: 5, limit: limit(0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			want := Release{Governed: tc.selected + tc.leaving, Limit: tc.wantLimit, Nodes: named("x", tc.leaving)}
			w := releaseWorld(named("s", tc.selected), want.Nodes)
			w.Profile.Spec.Rollout.MaximumReleasedNodes = tc.limit
			d := DecideProfile(w, NewPlanner(plan.PlatformRules{}))
			if diff := cmp.Diff(want, d.Release, cmpopts.IgnoreUnexported(Release{})); diff != "" {
				t.Errorf("release mismatch (-want +got):\n%s", diff)
			}
			wantLeaving := []string{"stray"}
			if !tc.wantHeld {
				wantLeaving = append(wantLeaving, want.Nodes...)
			}
			if diff := cmp.Diff(wantLeaving, d.Intent.Leaving); d.Release.IsHeld() != tc.wantHeld || diff != "" {
				t.Errorf("held is %v, want %v; leaving nodes mismatch (-want +got):\n%s", d.Release.IsHeld(), tc.wantHeld, diff)
			}
			for _, name := range want.Nodes {
				if (d.Intent.Held[name] != "") != tc.wantHeld {
					t.Errorf("node %s is held because of %q", name, d.Intent.Held[name])
				}
			}
			if got := len(d.Kept); tc.wantHeld != (got > 0) {
				t.Errorf("%d nodes are kept", got)
			}
		})
	}
}
