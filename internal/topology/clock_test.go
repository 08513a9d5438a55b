// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func TestTimestampCounter(t *testing.T) {
	const stable, unstable = v1alpha1.TimestampCounterStable, v1alpha1.TimestampCounterUnstable
	cases := map[string]struct {
		architecture, flags, offered string
		want                         v1alpha1.TimestampCounter
	}{
		"invariant":                    {"amd64", "fpu constant_tsc nonstop_tsc", "tsc hpet acpi_pm", stable},
		"clocks are not told":          {"amd64", "constant_tsc nonstop_tsc", "", stable},
		"it stops":                     {"amd64", "fpu constant_tsc", "tsc hpet", unstable},
		"its rate changes":             {"amd64", "fpu nonstop_tsc", "tsc hpet", unstable},
		"the kernel found it unstable": {"amd64", "constant_tsc nonstop_tsc", "hpet acpi_pm", unstable},
		"another architecture":         {"arm64", "fp asimd", "arch_sys_counter", ""},
		"flags are not told":           {"amd64", "", "hpet", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &host.Facts{Architecture: known(tc.architecture), Settings: map[string]host.Fact[string]{}}
			if tc.flags != "" {
				f.Processor.Flags = known(strings.Fields(tc.flags))
			}
			if tc.offered != "" {
				const file = "/sys/devices/system/clocksource/clocksource0/available_clocksource"
				f.Settings[file] = known(tc.offered)
			}
			if got := timestampCounter(f); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
