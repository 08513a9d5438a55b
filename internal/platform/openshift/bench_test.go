// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// BenchmarkFleetAtRest is what the platform does for one event when 5,000 nodes of five shapes have what they
// are to have.
func BenchmarkFleetAtRest(b *testing.B) {
	const size = 5000
	names, f := make([]string, 0, size), plannedNodes{}
	for i := range size {
		name := fmt.Sprintf("node-%04d", i)
		names, f[name] = append(names, name), string(rune('a'+i%5))+"1"
	}
	c := newCluster(b, names...)
	c.expectInForce(f, c.finish(f))
	l := c.look(f)
	rendered := renderings{render: renderText}
	b.ReportAllocs()
	for b.Loop() {
		targets, conflicts := aim(l.w, l.intent, "operator", rendered.objects)
		d := decideRoll(l.w, l.intent, targets, conflicts)
		if len(d.steps) > 0 || d.outcome.Groups[0].Phase != fleet.PhaseInForce {
			b.Fatalf("the fleet is not at rest: %v %+v", d.steps, d.outcome.Groups[0])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/node")
}
