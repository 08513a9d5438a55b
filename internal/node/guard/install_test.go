// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// TestOrderOfTheStart: what a trial may have broken does not start before it is taken back, and TuneD not before what was there was noted.
func TestOrderOfTheStart(t *testing.T) {
	w := newWorld(t)
	if err := w.guard().Install(t.Context(), []byte("program")); err != nil {
		t.Fatal(err)
	}
	var before []string
	for line := range strings.Lines(string(w.seen["/etc/systemd/system/lowlatency-guard.service"].Content)) {
		if units, found := strings.CutPrefix(line, "Before="); found {
			before = append(before, strings.Fields(units)...)
		}
	}
	for _, unit := range append(host.UnitsOfPods(), "tuned.service") {
		if !slices.Contains(before, unit) {
			t.Errorf("the guard does not start before %s, but before %q", unit, before)
		}
	}
}
