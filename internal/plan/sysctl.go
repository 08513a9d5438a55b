// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"maps"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

// parameterRule is one row of the table of kernel parameters.
type parameterRule struct {
	name, value string
	wanted      bool
	origin      Origin
}

// planSysctls sets kernel parameters (Documentation/admin-guide/sysctl/{kernel,vm,net}.rst).
func (p *planner) planSysctls() {
	settings := map[string]Setting{}
	for _, r := range p.parameterRules() {
		if r.wanted && p.hasParameter(r.name) {
			settings[r.name] = Setting{Name: r.name, Value: r.value, Origin: r.origin}
		}
	}
	p.addParameters(settings)
	p.plan.Sysctls = byName(settings)
}

func (p *planner) parameterRules() []parameterRule {
	k := p.spec.Kernel
	disabled := v1alpha1.ActivityDisabled
	quiet := by("the kernel does less in the background")
	steering := p.spec.Network.ReceivePacketSteering
	return []parameterRule{
		{"kernel.hung_task_timeout_secs", "600", true, by("the search for hanging tasks runs less often")},
		{"kernel.nmi_watchdog", "0", k.Watchdogs == disabled && p.topology.Architecture == architectureAMD64,
			p.origin("spec.kernel.watchdogs")},
		{"kernel.numa_balancing", "0", p.spec.NUMA.AutomaticBalancing == disabled, p.origin("spec.numa.automaticBalancing")},
		{"kernel.sched_rt_runtime_us", "-1", k.RealTimeThrottling == disabled, p.origin("spec.kernel.realTimeThrottling")},
		{"kernel.timer_migration", bit(k.TimerMigration == v1alpha1.TimerMigrationEnabled),
			k.TimerMigration != v1alpha1.TimerMigrationKept, p.origin("spec.kernel.timerMigration")},
		// RPS of new network devices; inherited by the network namespaces of pods.
		{"net.core.rps_default_mask", p.plan.CPUs.Housekeeping.Mask(), steering != v1alpha1.PacketSteeringOff,
			p.origin("spec.network.receivePacketSteering")},
		// Compaction in the background makes tasks wait for page locks.
		{"vm.compaction_proactiveness", "0", true, quiet},
		{"vm.dirty_background_ratio", "3", true, quiet},
		{"vm.dirty_ratio", "10", true, quiet},
		// Seconds between two runs of the vmstat worker, which visits every CPU.
		{"vm.stat_interval", "10", true, quiet},
		{"vm.swappiness", "10", true, quiet},
	}
}

// addParameters adds the user's kernel parameters, unless they contradict computed ones.
func (p *planner) addParameters(settings map[string]Setting) {
	for i, given := range p.spec.System.KernelParameters {
		field := element("spec.system.kernelParameters", i)
		computed, taken := settings[given.Name]
		switch {
		case !p.hasParameter(given.Name):
			p.report(v1alpha1.SeverityMedium, ruleKernelParameters, field, "Remove it.",
				"real-time kernels are built without %s, so it is left out: TuneD reports an error for a parameter that the kernel does not have",
				given.Name)
		case !taken:
			settings[given.Name] = Setting{Name: given.Name, Value: given.Value,
				Origin: Origin{Source: FromField, Detail: "spec.system.kernelParameters[" + given.Name + "]"}}
		case !setting.Same(host.SysctlPath(given.Name), computed.Value, given.Value):
			p.critical(ruleKernelParameters, field, "Remove it, or change what decides the computed value.",
				"%s=%s contradicts the computed value %s, which comes from %s",
				given.Name, given.Value, computed.Value, computed.Origin.Detail)
		}
	}
}

// byName lists settings in ascending order of their names.
func byName(settings map[string]Setting) []Setting {
	return slices.SortedFunc(maps.Values(settings), func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
}
