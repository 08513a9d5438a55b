// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// system writes out what every PerformanceProfile does through its Tuned profile: the service it stops,
// and the kernel parameters it sets or inherits besides those that a LowLatencyNodeProfile computes.
func (c *converter) system() error {
	c.spec.System = v1alpha1.SystemSpec{
		StopServices:     []v1alpha1.UnitName{"fwupd-refresh.timer"},
		PacketFilter:     v1alpha1.PacketFilterKept,
		KernelParameters: []v1alpha1.KernelParameter{{Name: "net.ipv4.tcp_fastopen", Value: "3"}},
	}
	if c.spec.Kernel.Type != v1alpha1.KernelRealTime {
		c.spec.System.KernelParameters = append(c.spec.System.KernelParameters,
			v1alpha1.KernelParameter{Name: "net.core.busy_poll", Value: "50"},
			v1alpha1.KernelParameter{Name: "net.core.busy_read", Value: "50"})
	}
	if realTime, _, _, _ := c.source.hints(); realTime {
		c.remark("spec.workloadHints.realTime", "stalld, which it starts, has no counterpart.")
	}
	return nil
}
