// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// conflictRetry is when to try again after the API server has refused a write because the object had changed
// since it was read. By then the change has come to the cache.
const conflictRetry = 500 * time.Millisecond

// withoutConflict turns a conflict, which is part of ordinary work, into another try that is neither logged as
// an error nor counted as one. Another error is returned alone: when to try again follows from how often it came.
func withoutConflict(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return result, nil
	case !apierrors.IsConflict(err):
		return ctrl.Result{}, err
	}
	ctrl.LoggerFrom(ctx).V(1).Info("Decided on an old view, trying again", "reason", err.Error())
	return ctrl.Result{RequeueAfter: conflictRetry}, nil
}
