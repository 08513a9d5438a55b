// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

func TestManagementInterruptsOf(t *testing.T) {
	type byCPU = map[int][]counted.ManagementInterrupts
	none, some := counted.ManagementInterrupts{}, func(n uint64) counted.ManagementInterrupts { return counted.ManagementInterrupts{Count: n} }
	unknown := counted.ManagementInterrupts{Unknown: "no rights"}
	for name, tc := range map[string]struct {
		all          byCPU
		words, blame string
	}{
		"nothing was asked":               {nil, "", ""},
		"none came":                       {byCPU{2: {none, none}, 3: {none, none}}, "no system management interrupt", ""},
		"repetitions add up, CPUs do not": {byCPU{2: {some(1), some(1)}, 3: {some(1), some(2)}}, "system management interrupts of CPU 3: 3", "; the processor counted system management interrupts of CPU 3: 3"},
		"the first of equal ones":         {byCPU{3: {some(1)}, 2: {some(1)}}, "system management interrupts of CPU 2: 1", "; the processor counted system management interrupts of CPU 2: 1"},
		"one that is not known is no 0":   {byCPU{2: {none}, 3: {none, unknown}}, "system management interrupts unknown (no rights)", ""},
		"some came, whatever others say":  {byCPU{2: {unknown}, 3: {some(2)}}, "system management interrupts of CPU 3: 2", "; the processor counted system management interrupts of CPU 3: 2"},
		"a count without bounds":          {byCPU{2: {some(1 << 63)}}, "system management interrupts of CPU 2: 9007199254740991", "; the processor counted system management interrupts of CPU 2: 9007199254740991"},
	} {
		found := ManagementInterruptsOf(tc.all)
		if got := ManagementInterruptWords(found); got != tc.words {
			t.Errorf("%s: %q", name, got)
		}
		if got := managementBlame(found); got != tc.blame {
			t.Errorf("%s blames %q", name, got)
		}
		r := measuredRecord()
		r.ManagementInterrupts = found
		if got, err := Parse(encoded(t, r)); err != nil || !cmp.Equal(got.ManagementInterrupts, found) {
			t.Errorf("%s: the record is read as %+v, %v", name, got, err)
		}
	}
	long := ManagementInterruptsOf(byCPU{2: {{Unknown: strings.Repeat("x\x1b", 200)}}})
	r := measuredRecord()
	r.ManagementInterrupts = long
	if _, err := Parse(encoded(t, r)); err != nil || len(long.UnknownReason) > v1alpha1.MaxUnknownReasonLength {
		t.Errorf("%+v: %v", long, err)
	}
}

func TestHostileManagementInterruptsAreRefused(t *testing.T) {
	type smis = v1alpha1.LatencyManagementInterrupts
	for name, m := range map[string]smis{
		"no state":                 {},
		"a state that is not ours": {State: "Fine"},
		"counted without a count":  {State: v1alpha1.StateCounted},
		"counted with a reason":    {State: v1alpha1.StateCounted, Count: new(int64(0)), UnknownReason: "no"},
		"a negative count":         {State: v1alpha1.StateCounted, Count: new(int64(-1))},
		"too large a count":        {State: v1alpha1.StateCounted, CPU: new(int32(1)), Count: new(int64(1 << 60))},
		"some on no CPU":           {State: v1alpha1.StateCounted, Count: new(int64(1))},
		"none on a CPU":            {State: v1alpha1.StateCounted, CPU: new(int32(1)), Count: new(int64(0))},
		"a CPU that cannot be":     {State: v1alpha1.StateCounted, CPU: new(int32(-1)), Count: new(int64(1))},
		"unknown with a count":     {State: v1alpha1.StateUnknown, UnknownReason: "no", Count: new(int64(0))},
		"unknown with a CPU":       {State: v1alpha1.StateUnknown, UnknownReason: "no", CPU: new(int32(1))},
		"unknown without a reason": {State: v1alpha1.StateUnknown},
		"a reason that is obeyed":  {State: v1alpha1.StateUnknown, UnknownReason: "\x1b[2J"},
	} {
		r := measuredRecord()
		r.ManagementInterrupts = &m
		if _, err := Parse(encoded(t, r)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
