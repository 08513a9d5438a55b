// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
)

func TestBusyOf(t *testing.T) {
	worked := func(cpu int, busy, all uint64) counted.Isolation {
		return counted.Isolation{CPU: cpu, Nanoseconds: 1e9, BusyTicks: busy, AllTicks: all}
	}
	for name, tc := range map[string]struct {
		all   []counted.Isolation
		words string
	}{
		"a client that spins": {[]counted.Isolation{worked(3, 100, 100)}, "CPU 3 was at work for 100 % of the time"},
		"rounded":             {[]counted.Isolation{worked(3, 999, 2000)}, "CPU 3 was at work for 50 % of the time"},
		"no work":             {[]counted.Isolation{worked(3, 0, 100)}, "CPU 3 was at work for 0 % of the time"},
		"the CPU with the most, over repetitions":  {[]counted.Isolation{worked(2, 90, 100), worked(3, 60, 100), worked(2, 0, 100), worked(3, 60, 100)}, "CPU 3 was at work for 60 % of the time"},
		"what one does not tell is unknown of all": {[]counted.Isolation{worked(2, 90, 100), counted.Uncounted(3, "no such file")}, "work of CPUs unknown (no such file)"},
		"a result that was saved earlier":          {[]counted.Isolation{{CPU: 3, Nanoseconds: 1e9}}, ""},
	} {
		found := IsolationOf(tc.all)
		words := IsolationWords(found)
		got := ""
		if len(words) > 2 {
			got = words[2]
		}
		if got != tc.words || (found.Busy == nil) != (tc.words == "") {
			t.Errorf("%s: %q", name, words)
		}
		r := measuredRecord()
		r.Isolation = found
		if read, err := Parse(encoded(t, r)); err != nil || !cmp.Equal(read.Isolation, found) {
			t.Errorf("%s: the record is read as %+v, %v", name, read, err)
		}
	}
}

func TestHostileBusyIsRefused(t *testing.T) {
	for name, b := range map[string]v1alpha1.LatencyBusy{
		"no state":                 {},
		"a state that is not ours": {State: "Fine"},
		"counted without a CPU":    {State: v1alpha1.StateCounted, Percent: new(int32(1))},
		"counted without percent":  {State: v1alpha1.StateCounted, CPU: new(int32(1))},
		"counted with a reason":    {State: v1alpha1.StateCounted, CPU: new(int32(1)), Percent: new(int32(1)), UnknownReason: "no"},
		"more than all":            {State: v1alpha1.StateCounted, CPU: new(int32(1)), Percent: new(int32(101))},
		"less than nothing":        {State: v1alpha1.StateCounted, CPU: new(int32(1)), Percent: new(int32(-1))},
		"a CPU that cannot be":     {State: v1alpha1.StateCounted, CPU: new(int32(-1)), Percent: new(int32(1))},
		"unknown with percent":     {State: v1alpha1.StateUnknown, UnknownReason: "no", Percent: new(int32(0))},
		"unknown with a CPU":       {State: v1alpha1.StateUnknown, UnknownReason: "no", CPU: new(int32(0))},
		"unknown without a reason": {State: v1alpha1.StateUnknown},
	} {
		r := measuredRecord()
		r.Isolation = IsolationOf([]counted.Isolation{{CPU: 1, Nanoseconds: 1, AllTicks: 1}})
		r.Isolation.Busy = &b
		if _, err := Parse(encoded(t, r)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
