// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// toleratedFailures is how often in a row a loop may fail for a reason that does not pass by itself, such as a connection that
// an API server with too much to do has cut. What is wrong for good fails each time.
const toleratedFailures = 20

// repeat calls once until the context ends. Errors that pass by themselves, such as a conflict with
// another writer, are tried again; any other ends the loop when it stays.
func repeat(ctx context.Context, ticks clock.WithTicker, interval time.Duration, once func(context.Context) error) error {
	ticker := ticks.NewTicker(interval)
	defer ticker.Stop()
	for failures := 0; ; {
		err := once(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil || isPassing(err):
			failures = 0
		case failures == toleratedFailures:
			return err
		default:
			failures++
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func isPassing(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
}
