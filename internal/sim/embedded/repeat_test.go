// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/utils/clock"
)

func TestRepeat(t *testing.T) {
	broken := errors.New("the connection is broken")
	cases := map[string]struct {
		// fails tells whether it fails at a pass, the first being 1.
		fails func(pass int) bool
		want  error
	}{
		"always":                   {func(int) bool { return true }, broken},
		"now and then":             {func(pass int) bool { return pass%toleratedFailures != 0 }, nil},
		"from some moment on":      {func(pass int) bool { return pass > toleratedFailures }, broken},
		"never, and then it stops": {func(int) bool { return false }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			pass := 0
			got := repeat(ctx, clock.RealClock{}, time.Microsecond, func(context.Context) error {
				if pass++; pass == 5*toleratedFailures {
					stop()
				}
				if tc.fails(pass) {
					return broken
				}
				return nil
			})
			if !errors.Is(got, tc.want) {
				t.Errorf("repeat() = %v after %d passes, want %v", got, pass, tc.want)
			}
		})
	}
}
