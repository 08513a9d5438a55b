// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package topology

import (
	"maps"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// mitigationsHash is a hash of how the kernel of the host mitigates each vulnerability of the processor; "" when the host does not
// tell all of it, or nothing. What only virtual machines bring about is left out: l1tf and itlb_multihit name it after "VMX:" and "KVM:",
// and it changes when the first machine starts and the last one stops (arch/x86/kernel/cpu/bugs.c, l1tf_show_state and
// itlb_multihit_show_state).
func mitigationsHash(f *host.Facts) string {
	var lines []string
	for _, file := range slices.Sorted(maps.Keys(f.Settings)) {
		name, ok := strings.CutPrefix(file, host.VulnerabilityRoot+"/")
		if !ok {
			continue
		}
		state, known := f.Settings[file].Get()
		if !known {
			return ""
		}
		lines = append(lines, name+": "+withoutVirtualMachines(state))
	}
	if len(lines) == 0 {
		return ""
	}
	return digest([]byte(strings.Join(lines, "\n")))
}

// withoutVirtualMachines drops what follows "VMX:" or "KVM:", which end the text of a vulnerability.
func withoutVirtualMachines(state string) string {
	var kept []string
	for part := range strings.SplitSeq(state, ";") {
		part = strings.TrimSpace(part)
		if strings.HasPrefix(part, "VMX:") || strings.HasPrefix(part, "KVM:") {
			break
		}
		kept = append(kept, part)
	}
	return strings.Join(kept, "; ")
}
