// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// What a plan sets depends on the kernel that it asks for, never on the one that runs while it is made: the release of a
// kernel changes with every upgrade of the operating system, and a plan that changed with it would reboot the node again.

// isRealTime reports whether the node is to boot a kernel with PREEMPT_RT.
func (p *planner) isRealTime() bool { return p.spec.Kernel.Type == v1alpha1.KernelRealTime }

// hasParameter reports whether the kernel of the plan has a kernel parameter. Automatic NUMA balancing is not built with
// PREEMPT_RT (NUMA_BALANCING in init/Kconfig), and busy polling is not with NETCONSOLE besides, or at all in older kernels
// (NET_RX_BUSY_POLL in net/Kconfig).
func (p *planner) hasParameter(name string) bool {
	return !p.isRealTime() || !slices.Contains([]string{
		"kernel.numa_balancing", "kernel.numa_balancing_promote_rate_limit_MBps", "net.core.busy_poll", "net.core.busy_read",
	}, name)
}

// stopsTransparentHugepages reports whether transparent hugepages are to be switched off. A kernel with PREEMPT_RT is built
// without them (TRANSPARENT_HUGEPAGE in mm/Kconfig).
func (p *planner) stopsTransparentHugepages() bool {
	return p.spec.Memory.TransparentHugepages == v1alpha1.ActivityDisabled && !p.isRealTime()
}
