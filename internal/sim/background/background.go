// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package background runs a long-lived part of the program beside a test.
package background

import (
	"context"
	"sync"
	"testing"
)

// Run calls run in the background until the returned function is called or the test ends; both wait for its end. An
// error of run fails the test, with what names it.
func Run(t testing.TB, what string, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			t.Errorf("%s ended: %v", what, err)
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(stop)
	return stop
}
