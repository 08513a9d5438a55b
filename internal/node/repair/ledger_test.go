// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package repair_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
)

func at(minute int) time.Time {
	return time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
}

func moved() repair.Write {
	return repair.Write{Check: "irq.effective-affinity", Object: "IRQ 142 (sfc-0)", Path: "/proc/irq/142/smp_affinity_list", Old: "5", New: "0-1"}
}

// step is one reading: what deviates, and what comes of trying to write it.
type step struct {
	minute int
	wanted []repair.Write
	err    error
}

// replay does what the agent does with each reading, and tells what came of it.
func replay(l *repair.Ledger, steps []step) []string {
	told := make([]string, 0, len(steps))
	for _, s := range steps {
		helped, due := l.Review(s.wanted, at(s.minute))
		for _, w := range due {
			l.Note(w, s.err, at(s.minute))
		}
		told = append(told, fmt.Sprintf("%d helped=%d due=%d unrepaired=%s", s.minute, helped["irq.effective-affinity"], len(due),
			strings.Join(l.Unrepaired()["irq.effective-affinity"], "; ")))
	}
	return told
}

func TestLedger(t *testing.T) {
	drift := []repair.Write{moved()}
	const abandoned = "IRQ 142 (sfc-0): /proc/irq/142/smp_affinity_list was set to 0-1 3 times within 30m0s and did not stay so; find the program that changes it"
	cases := map[string]struct {
		steps []step
		want  []string
	}{
		"a write that helps counts once": {
			steps: []step{{0, drift, nil}, {1, nil, nil}, {2, nil, nil}},
			want:  []string{"0 helped=0 due=1 unrepaired=", "1 helped=1 due=0 unrepaired=", "2 helped=0 due=0 unrepaired="},
		},
		"a write that does not help counts never and is given up": {
			steps: []step{{0, drift, nil}, {1, drift, nil}, {2, drift, nil}, {3, drift, nil}, {40, drift, nil}},
			want: []string{
				"0 helped=0 due=1 unrepaired=", "1 helped=0 due=1 unrepaired=", "2 helped=0 due=1 unrepaired=",
				"3 helped=0 due=0 unrepaired=" + abandoned, "40 helped=0 due=0 unrepaired=" + abandoned,
			},
		},
		"a program that moves it back each time is not fought for ever": {
			steps: []step{{0, drift, nil}, {1, nil, nil}, {2, drift, nil}, {3, nil, nil}, {4, drift, nil}, {5, nil, nil}, {6, drift, nil}, {7, nil, nil}},
			want: []string{
				"0 helped=0 due=1 unrepaired=", "1 helped=1 due=0 unrepaired=", "2 helped=0 due=1 unrepaired=", "3 helped=1 due=0 unrepaired=",
				"4 helped=0 due=1 unrepaired=", "5 helped=1 due=0 unrepaired=", "6 helped=0 due=0 unrepaired=" + abandoned, "7 helped=0 due=0 unrepaired=",
			},
		},
		"seldom drift is always put back": {
			steps: []step{{0, drift, nil}, {1, nil, nil}, {20, drift, nil}, {21, nil, nil}, {40, drift, nil}, {41, nil, nil}, {60, drift, nil}},
			want: []string{
				"0 helped=0 due=1 unrepaired=", "1 helped=1 due=0 unrepaired=", "20 helped=0 due=1 unrepaired=", "21 helped=1 due=0 unrepaired=",
				"40 helped=0 due=1 unrepaired=", "41 helped=1 due=0 unrepaired=", "60 helped=0 due=1 unrepaired=",
			},
		},
		"what was given up is tried again when it was sound for a whole window": {
			steps: []step{{0, drift, nil}, {1, drift, nil}, {2, drift, nil}, {3, drift, nil}, {4, nil, nil}, {34, nil, nil}, {35, drift, nil}},
			want: []string{
				"0 helped=0 due=1 unrepaired=", "1 helped=0 due=1 unrepaired=", "2 helped=0 due=1 unrepaired=", "3 helped=0 due=0 unrepaired=" + abandoned,
				"4 helped=0 due=0 unrepaired=", "34 helped=0 due=0 unrepaired=", "35 helped=0 due=1 unrepaired=",
			},
		},
		"a kernel that refuses is named, and what then heals is not ours": {
			steps: []step{{0, drift, errors.New("input/output error")}, {1, nil, nil}},
			want:  []string{"0 helped=0 due=1 unrepaired=IRQ 142 (sfc-0): input/output error", "1 helped=0 due=0 unrepaired="},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, replay(&repair.Ledger{}, tc.steps)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecentWritesAreBounded(t *testing.T) {
	var l repair.Ledger
	for minute := range 300 {
		l.Note(moved(), nil, at(minute))
	}
	recent := l.Recent()
	if len(recent) != 256 || !recent[0].At.Equal(at(299)) || recent[0].Old != "5" {
		t.Errorf("%d entries, the first %+v", len(recent), recent[0])
	}
	if (&repair.Ledger{}).Unrepaired()[v1alpha1.CheckID("x.y")] != nil {
		t.Error("an empty ledger has unrepaired files")
	}
}
