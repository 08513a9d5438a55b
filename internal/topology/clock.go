// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// timestampCounter judges that of an amd64 processor as arch/x86/kernel/tsc.c does: it runs at a constant rate
// (constant_tsc) in all idle states (nonstop_tsc), and the kernel, which compares it with other clocks, still offers it.
func timestampCounter(f *host.Facts) v1alpha1.TimestampCounter {
	const folder = "/sys/devices/system/clocksource/clocksource0/"
	flags, known := f.Processor.Flags.Get()
	if f.Architecture.Value != "amd64" || !known {
		return ""
	}
	current, _ := f.Setting(folder + "current_clocksource").Get()
	offered, told := f.Setting(folder + "available_clocksource").Get()
	found := told && current != "tsc" && !slices.Contains(strings.Fields(offered), "tsc")
	if found || !slices.Contains(flags, "constant_tsc") || !slices.Contains(flags, "nonstop_tsc") {
		return v1alpha1.TimestampCounterUnstable
	}
	return v1alpha1.TimestampCounterStable
}
