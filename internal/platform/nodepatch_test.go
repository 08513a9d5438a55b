// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// TestPatchNode: the last label or annotation that the cache holds goes, and those that it does not hold stay.
func TestPatchNode(t *testing.T) {
	type all = map[string]string
	cases := map[string]struct {
		before, after metav1.ObjectMeta
		locked        bool
		want          string
	}{
		"the last annotation": {
			before: metav1.ObjectMeta{Annotations: all{"lowlatency.dev/cordoned": "now"}},
			want:   `{"metadata":{"annotations":{"lowlatency.dev/cordoned":null}}}`,
		},
		"the last label": {
			before: metav1.ObjectMeta{Labels: all{"lowlatency.dev/profile": "a"}, ResourceVersion: "7"},
			after:  metav1.ObjectMeta{ResourceVersion: "7"}, locked: true,
			want: `{"metadata":{"labels":{"lowlatency.dev/profile":null},"resourceVersion":"7"}}`,
		},
		"the first annotation": {
			after: metav1.ObjectMeta{Annotations: all{"lowlatency.dev/cordoned": "now"}},
			want:  `{"metadata":{"annotations":{"lowlatency.dev/cordoned":"now"}}}`,
		},
		"nothing": {want: `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			writer := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
					data, err := patch.Data(object)
					got = string(data)
					return err
				},
			})
			err := platform.PatchNode(t.Context(), writer, &corev1.Node{ObjectMeta: tc.before}, &corev1.Node{ObjectMeta: tc.after}, tc.locked)
			if err != nil || got != tc.want {
				t.Errorf("got %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}
