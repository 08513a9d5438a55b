// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package jitter

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// elements counts the elements of an SVG document by name, and fails when it is not well-formed.
func elements(t *testing.T, document string) map[string]int {
	t.Helper()
	counts, decoder := map[string]int{}, xml.NewDecoder(strings.NewReader(document))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return counts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if start, ok := token.(xml.StartElement); ok {
			counts[start.Name.Local]++
		}
	}
}

func TestPlot(t *testing.T) {
	result := &Result{CPUs: []CPUResult{
		{
			CPU: 4, DurationNanoseconds: 1e9, MaximumNanoseconds: 70_000,
			Histogram: []Bucket{{1024, 2048, 3}, {2048, 4096, 0}, {4096, 8192, 1}},
			Worst: []Interruption{
				{AtNanoseconds: 1e6, LengthNanoseconds: 70_000, Causes: []Cause{{CauseInterrupt, `142 <eth0> & "x"`, 1}}},
				{AtNanoseconds: 2e6, LengthNanoseconds: 1_500},
			},
		},
		{CPU: 5, DurationNanoseconds: 1e9},
	}}
	document := Plot(result)
	counts := elements(t, document)
	// The background and one bar for each bucket; a title for each bar and each interruption.
	if counts["rect"] != 1+3 || counts["title"] != 3+2 {
		t.Errorf("the plot has %d bars and %d titles", counts["rect"]-1, counts["title"])
	}
	if got := strings.Count(document, "none at or above the threshold"); got != 2 {
		t.Errorf("%d of 2 empty plots say that they are", got)
	}
	if got := strings.Count(document, `stroke="#c62828"`); got != 1 {
		t.Errorf("%d interruptions without a cause are red, want 1", got)
	}
	if strings.Contains(document, "<eth0>") {
		t.Error("a name is not escaped")
	}
}

func TestPlotOfNothing(t *testing.T) {
	elements(t, Plot(&Result{}))
}
