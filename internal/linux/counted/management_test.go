// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package counted

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestManagementInterruptsBetween(t *testing.T) {
	const from, virtual = "perf event msr/smi/", "this is a virtual machine"
	for name, tc := range map[string]struct {
		before, after uint64
		virtual       string
		want          ManagementInterrupts
	}{
		"none":                           {7, 7, "", ManagementInterrupts{From: from}},
		"some":                           {7, 9, "", ManagementInterrupts{Count: 2, From: from}},
		"none of a virtual machine":      {7, 7, virtual, ManagementInterrupts{From: from, Unknown: "perf event msr/smi/ counted none, and this is a virtual machine"}},
		"some of a virtual machine":      {7, 9, virtual, ManagementInterrupts{Count: 2, From: from}},
		"a counter that was set back":    {7, 6, "", ManagementInterrupts{From: from, Unknown: "perf event msr/smi/: the counter went back"}},
		"the same of a virtual machine ": {7, 6, virtual, ManagementInterrupts{From: from, Unknown: "perf event msr/smi/: the counter went back"}},
	} {
		if diff := cmp.Diff(tc.want, ManagementInterruptsBetween(tc.before, tc.after, from, tc.virtual)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
