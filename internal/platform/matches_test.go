// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func object(labels map[string]any, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "x", "labels": labels},
		"spec":     spec,
	}}
}

func TestCompare(t *testing.T) {
	wanted := object(map[string]any{"hash": "1"}, map[string]any{
		"arguments": []any{"a", "b"}, "count": int64(3), "nested": map[string]any{"enabled": true},
	})
	cases := map[string]struct {
		live *unstructured.Unstructured
		want Difference
	}{
		"an object that does not exist": {live: nil, want: ContentDiffers},
		"the same object":               {live: wanted.DeepCopy(), want: Same},
		"the API server has added fields": {
			live: object(map[string]any{"hash": "1", "other": "y"}, map[string]any{
				"arguments": []any{"a", "b"}, "count": int64(3), "nested": map[string]any{"enabled": true}, "more": "z",
			}),
			want: Same,
		},
		"a number of another type": {
			live: object(map[string]any{"hash": "1"}, map[string]any{
				"arguments": []any{"a", "b"}, "count": float64(3), "nested": map[string]any{"enabled": true},
			}),
			want: Same,
		},
		"a label differs": {
			live: object(map[string]any{"hash": "0"}, map[string]any{
				"arguments": []any{"a", "b"}, "count": int64(3), "nested": map[string]any{"enabled": true},
			}),
			want: MetadataDiffers,
		},
		"a label differs and a field was dropped": {
			live: object(map[string]any{"hash": "0"}, map[string]any{
				"arguments": []any{"a", "b"}, "count": int64(3), "nested": map[string]any{"enabled": true, "old": "x"},
			}),
			want: ContentDiffers,
		},
		"another order in a list": {
			live: object(map[string]any{"hash": "1"}, map[string]any{
				"arguments": []any{"b", "a"}, "count": int64(3), "nested": map[string]any{"enabled": true},
			}),
			want: ContentDiffers,
		},
		"a longer list": {
			live: object(map[string]any{"hash": "1"}, map[string]any{
				"arguments": []any{"a", "b", "c"}, "count": int64(3), "nested": map[string]any{"enabled": true},
			}),
			want: ContentDiffers,
		},
		"another number": {
			live: object(map[string]any{"hash": "1"}, map[string]any{
				"arguments": []any{"a", "b"}, "count": int64(4), "nested": map[string]any{"enabled": true},
			}),
			want: ContentDiffers,
		},
		"a missing field": {
			live: object(map[string]any{"hash": "1"}, map[string]any{"arguments": []any{"a", "b"}, "count": int64(3)}),
			want: ContentDiffers,
		},
		"a value in place of a list": {
			live: object(map[string]any{"hash": "1"}, map[string]any{
				"arguments": "a", "count": int64(3), "nested": map[string]any{"enabled": true},
			}),
			want: ContentDiffers,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Compare(tc.live, wanted); got != tc.want {
				t.Errorf("Compare() = %v, want %v", got, tc.want)
			}
		})
	}
}
