// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// report writes one line. Where progress cannot be written, nobody reads it.
func report(progress io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(progress, "lab: "+format+"\n", args...)
}

// every calls a function again and again until the returned function is called, which waits for its end.
func every(period time.Duration, do func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(period)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				do()
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}
