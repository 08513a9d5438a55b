// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build amd64 || arm64

package jitter

import (
	"encoding/json"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	r, err := Measure(Request{CPUs: []int{1}, Duration: 2 * time.Second, WarmUp: 200 * time.Millisecond, Threshold: time.Microsecond}, func(Threads) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r.CPUs[0].Worst = r.CPUs[0].Worst[:min(3, len(r.CPUs[0].Worst))]
	b, _ := json.MarshalIndent(r, "", " ")
	t.Log(string(b))
}
