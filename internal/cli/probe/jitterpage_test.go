// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

// TestJitterPageWithoutAll: a page of some interruptions alone says so.
func TestJitterPageWithoutAll(t *testing.T) {
	of := func(notRecorded uint64) string {
		one := jitter.CPUResult{CPU: 3, DurationNanoseconds: 1e9, MaximumNanoseconds: 7000, Interruptions: 900, NotRecorded: notRecorded, HDR: distributed(t, 1000, 7000).HDR}
		for _, percent := range latency.Ladder() {
			one.OverTime = append(one.OverTime, jitter.Percentile{Percent: percent, Nanoseconds: 7000})
		}
		var out bytes.Buffer
		if err := writeJitterHTML(&out, &jitter.Result{CPUs: []jitter.CPUResult{one}}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, want := range []string{`<span class="warn">Inconclusive</span>`, "<p>CPU 3: 700 of 900 interruptions had no room in the record: "} {
		if whole, some := of(0), of(700); !strings.Contains(some, want) || strings.Contains(whole, want) {
			t.Errorf("%q is missing, or on a page of all interruptions:\n%s", want, some)
		}
	}
}
