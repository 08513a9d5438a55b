// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import (
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

func TestPlots(t *testing.T) {
	bars := []latency.Bar{{FromNanoseconds: 512, ToNanoseconds: 1024, Count: 20}, {FromNanoseconds: 1024, ToNanoseconds: 2048}, {FromNanoseconds: 32768, ToNanoseconds: 65536, Count: 300}}
	over := func(name string, places ...float64) Series {
		s := Series{Name: name}
		for i, place := range places {
			s.Points = append(s.Points, Point{Across: place, Nanoseconds: int64(4000 * (i + 1))})
		}
		return s
	}
	for name, plot := range map[string]string{
		"distribution": Distribution("length of an interruption", "interruptions", []Series{{Name: "now", Bars: bars}, {Name: "reference", Bars: bars[2:]}}),
		"percentiles":  Percentiles([]Series{over("now", 50, 90, 99, 99.9, 99.99), over("the run before", 50, 90, 99)}),
		"rates":        Rates([]Series{over("50 %", 1000, 10_000, 10_500, 100_000), over("99 %", 10_000)}),
		"ratios": Ratios([]RatioSeries{
			{Name: "container to host, 50 %", Points: []Ratio{{64, 1.02, 0.99, 1.04}, {1472, 1.3, 1.25, 1.41}}}, {Name: "tail", Points: []Ratio{{64, 1.1, 0.8, 1.2}}},
		}),
		"timeline": TimeLine("longest interruption", []Series{
			{Name: "now", Points: []Point{{0, 4000}, {10, 0}, {20, 8000}, {30, 120_000}}}, {Name: "the run before", Points: []Point{{0, 5000}, {25, 6000}}},
		}, []float64{40, 50}),
		"sizes": Sizes([]Series{over("50 %", 1, 64, 1472)}),
	} {
		t.Run(name, func(t *testing.T) { golden.Assert(t, plot, "plot-"+name+".svg") })
	}
}

// TestPlotsOfAnything: whatever names a cluster has, and however little was measured, a plot is one SVG element that holds no other
// document's words as markup.
func TestPlotsOfAnything(t *testing.T) {
	hostile := "</svg><script>alert(1)</script>\x00\x1b]0;\xff&'\""
	equal := Series{Name: hostile, Points: []Point{{Across: 64, Nanoseconds: 0}}}
	six := []Series{equal, equal, equal, equal, equal, equal}
	for name, plot := range map[string]string{
		"no series":       Percentiles(nil),
		"no bars":         Distribution("a", "b", []Series{{Name: hostile}}),
		"no count":        Distribution("a", "b", []Series{{Name: hostile, Bars: []latency.Bar{{FromNanoseconds: 1, ToNanoseconds: 2}}}}),
		"from nought on":  Distribution("a", "b", []Series{{Name: hostile, Bars: []latency.Bar{{ToNanoseconds: 2, Count: 1}}}}),
		"nothing sent":    Rates([]Series{{Name: hostile, Points: []Point{{Across: 0, Nanoseconds: -1}}}}),
		"all of them":     Percentiles([]Series{{Name: hostile, Points: []Point{{Across: 100, Nanoseconds: 1}}}}),
		"one place":       Rates([]Series{equal}),
		"more than named": Sizes(six),
		"no ratios":       Ratios(nil),
		"no time lines":   TimeLine("a", nil, nil),
		"no time":         TimeLine("a", []Series{equal}, []float64{0}),
		"a hostile ratio": Ratios([]RatioSeries{{Name: hostile, Points: []Ratio{{0, 0, 0, 0}, {-1, 9e15, -5, 9e15}}}}),
	} {
		t.Run(name, func(t *testing.T) {
			if counts, _ := elements(t, plot); counts["svg"] != 1 {
				t.Errorf("%d svg elements", counts["svg"])
			}
			if strings.Contains(plot, "<script") || strings.Contains(plot, "NaN") || strings.Contains(plot, "Inf") {
				t.Error(plot)
			}
		})
	}
}
