// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestWithoutConflict: an error never comes with a time, which controller-runtime would warn of and ignore.
func TestWithoutConflict(t *testing.T) {
	again, failure := ctrl.Result{RequeueAfter: time.Minute}, errors.New("no")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "n1", failure)
	cases := map[string]struct {
		err     error
		want    ctrl.Result
		wantErr error
	}{
		"nothing is wrong": {nil, again, nil},
		"a conflict":       {conflict, ctrl.Result{RequeueAfter: conflictRetry}, nil},
		"another error":    {failure, ctrl.Result{}, failure},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := withoutConflict(t.Context(), again, tc.err)
			if got != tc.want || !errors.Is(err, tc.wantErr) {
				t.Errorf("withoutConflict() = %+v, %v, want %+v, %v", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
