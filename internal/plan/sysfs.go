// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// planSysfs sets files below /sys.
func (p *planner) planSysfs() {
	m := p.spec.Memory
	housekeeping := p.plan.CPUs.Housekeeping.Mask()
	// Documentation/core-api/workqueue.rst: where work that is bound to no CPU may run.
	unbound := by("kernel work that is bound to no CPU stays on housekeeping CPUs")
	settings := map[string]Setting{}
	add := func(wanted bool, s Setting) {
		if wanted {
			settings[s.Name] = s
		}
	}
	add(true, Setting{"/sys/devices/virtual/workqueue/cpumask", housekeeping, unbound})
	add(true, Setting{"/sys/bus/workqueue/devices/writeback/cpumask", housekeeping, unbound})
	add(p.stopsTransparentHugepages(), Setting{"/sys/kernel/mm/transparent_hugepage/enabled",
		"never", p.origin("spec.memory.transparentHugepages")})
	// Documentation/admin-guide/mm/ksm.rst: 2 stops KSM and takes its pages apart again; 0 only stops it.
	add(m.SamePageMerging == v1alpha1.ActivityDisabled, Setting{"/sys/kernel/mm/ksm/run",
		"2", p.origin("spec.memory.samePageMerging")})
	if turbo := p.plan.Power.Turbo; turbo != v1alpha1.TurboKept {
		add(true, p.turboSetting(turbo))
	}
	for _, limit := range p.frequencyCaps() {
		add(true, limit)
	}
	p.plan.Sysfs = byName(settings)
}
