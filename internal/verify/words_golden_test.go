// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// TestEveryWordOfCases keeps all that each case of each check says: what was seen and wanted, the objects, and where the
// remedy or the reboot is not that of the catalogue.
func TestEveryWordOfCases(t *testing.T) {
	var b strings.Builder
	all := allCases()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[id])) {
			f, tc := sound(), all[id][name]
			if tc.change != nil {
				tc.change(f)
			}
			if tc.once {
				f.before = nil
			}
			if result, found := find(f.evaluate(), id); found {
				fmt.Fprintf(&b, "%s, %s: %s\n", id, name, result.Outcome)
				writeResult(&b, result)
			}
		}
	}
	golden.Assert(t, b.String(), "cases.txt")
}

// writeResult writes a line for each thing that a result says.
func writeResult(b *strings.Builder, r Result) {
	lines := []struct{ what, says string }{
		{"says", r.Message}, {"seen", r.Observed}, {"want", r.Expected}, {"about", objectsText(r.Objects)}, {"makes False or Unknown", strings.Join(r.Decides, " ")},
	}
	if r.Outcome != v1alpha1.OutcomePassed && r.Fix != r.Check.Fix {
		lines = append(lines, struct{ what, says string }{"remedy", r.Fix})
	}
	if r.Outcome != v1alpha1.OutcomePassed && r.Reboot != r.Check.Reboot {
		lines = append(lines, struct{ what, says string }{"reboot", string(r.Reboot)})
	}
	for _, line := range lines {
		if line.says != "" {
			fmt.Fprintf(b, "\t%s: %s\n", line.what, line.says)
		}
	}
}

// objectsText names the objects of every kind.
func objectsText(o finding.Objects) string {
	var texts []string
	add := func(kind string, values any, count int) {
		if count > 0 {
			texts = append(texts, fmt.Sprintf("%s %v", kind, values))
		}
	}
	add("CPUs", o.CPUs, o.CPUs.Len())
	add("interrupts", o.Interrupts, len(o.Interrupts))
	add("NICs", o.NICs, len(o.NICs))
	add("NUMA nodes", o.NUMANodes, len(o.NUMANodes))
	add("processes", o.Processes, len(o.Processes))
	add("containers", o.Containers, len(o.Containers))
	add("files", o.Files, len(o.Files))
	return strings.Join(texts, "; ")
}
