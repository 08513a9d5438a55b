// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latest_test

import (
	"sync"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/latest"
)

func TestValue(t *testing.T) {
	var value latest.Value[*string]
	if got := value.Get(); got != nil {
		t.Errorf("before the first one: %v", got)
	}
	none, first := value.Watch()
	if none != nil {
		t.Errorf("before the first one: %v", none)
	}
	one, two := "one", "two"
	value.Set(&one)
	select {
	case <-first:
	default:
		t.Error("the first value was not told")
	}
	got, second := value.Watch()
	if got != &one || value.Get() != &one {
		t.Errorf("got %v, want one", got)
	}
	select {
	case <-second:
		t.Error("a newer value was told before there was one")
	default:
	}
	value.Set(&two)
	<-second
	if value.Get() != &two {
		t.Errorf("got %v, want two", value.Get())
	}
}

// TestReaders: each of many readers sees the last value, however fast the values come.
func TestReaders(t *testing.T) {
	const last = 1000
	var value latest.Value[int]
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for seen := 0; seen != last; {
				now, changed := value.Watch()
				if now < seen {
					t.Errorf("%d came after %d", now, seen)
					return
				}
				seen = now
				if seen != last {
					<-changed
				}
			}
		})
	}
	for i := range last {
		value.Set(i + 1)
	}
	readers.Wait()
}
