// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"math"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// interrupts converts globallyDisableIrqLoadBalancing. A profile of v1 and v1alpha1 has no such field and
// means true: their conversion to v2 sets it.
func (c *converter) interrupts() error {
	olderVersion := c.source.GroupVersionKind().Version != "v2"
	c.spec.Interrupts = v1alpha1.InterruptsSpec{
		Placement: v1alpha1.InterruptsPerPod, Balancer: v1alpha1.BalancerKept,
	}
	if isTrue(c.source.Spec.GloballyDisableIrqLoadBalancing, olderVersion) {
		c.spec.Interrupts = v1alpha1.InterruptsSpec{
			Placement: v1alpha1.InterruptsHousekeeping, Balancer: v1alpha1.BalancerRestricted,
		}
	}
	return nil
}

// numa converts spec.numa. PerformanceProfile leaves the scope to the kubelet, whose default is the container.
func (c *converter) numa() error {
	policies := map[string]v1alpha1.TopologyPolicy{
		"none":             v1alpha1.TopologyNone,
		"best-effort":      v1alpha1.TopologyBestEffort,
		"restricted":       v1alpha1.TopologyRestricted,
		"single-numa-node": v1alpha1.TopologySingleNUMANode,
	}
	name := "best-effort"
	if c.source.Spec.NUMA != nil {
		name = ptr.Deref(c.source.Spec.NUMA.TopologyPolicy, name)
	}
	policy, ok := policies[name]
	if !ok {
		return invalid("spec.numa.topologyPolicy", "%q is none of none, best-effort, restricted and single-numa-node", name)
	}
	c.spec.NUMA = v1alpha1.NUMASpec{TopologyPolicy: policy, AutomaticBalancing: v1alpha1.ActivityDisabled}
	if policy != v1alpha1.TopologyNone {
		c.spec.NUMA.Scope = v1alpha1.TopologyScopeContainer
	}
	return nil
}

// power converts the power hints and spec.hardwareTuning.
func (c *converter) power() error {
	_, highPower, perPod, _ := c.source.hints()
	if highPower && perPod {
		return invalid("spec.workloadHints", "highPowerConsumption and perPodPowerManagement cannot both be true")
	}
	c.spec.Power.Preset = c.powerPreset()
	switch {
	case perPod:
		c.spec.Power.FrequencyDriver = v1alpha1.FrequencyDriverPassive
	case c.source.Spec.HardwareTuning != nil:
		c.spec.Power.FrequencyDriver = v1alpha1.FrequencyDriverActive
	default:
		c.spec.Power.FrequencyDriver = v1alpha1.FrequencyDriverRecommended
		if c.isARM64() {
			c.spec.Power.FrequencyDriver = v1alpha1.FrequencyDriverKept
		}
	}
	return c.frequencies(c.source.Spec.HardwareTuning)
}

// powerPreset is the preset with the idle states that the hints stand for. On arm64 the hint
// highPowerConsumption changes nothing.
func (c *converter) powerPreset() v1alpha1.PowerPreset {
	realTime, highPower, perPod, _ := c.source.hints()
	switch {
	case perPod:
		return v1alpha1.PowerPerPod
	case !highPower || c.isARM64():
		return v1alpha1.PowerLowLatency
	case realTime:
		return v1alpha1.PowerMaximumDeterminism
	default:
		return v1alpha1.PowerHighPerformance
	}
}

// frequencies converts spec.hardwareTuning: both values end up in scaling_max_freq.
func (c *converter) frequencies(tuning *sourceHardwareTuning) error {
	if tuning == nil {
		return nil
	}
	isolated, err := kilohertz("spec.hardwareTuning.isolatedCpuFreq", tuning.IsolatedFrequency)
	if err != nil {
		return err
	}
	housekeeping, err := kilohertz("spec.hardwareTuning.reservedCpuFreq", tuning.ReservedFrequency)
	if err != nil {
		return err
	}
	c.spec.Power.IsolatedMaximumFrequencyKilohertz = isolated
	c.spec.Power.HousekeepingMaximumFrequencyKilohertz = housekeeping
	return nil
}

func kilohertz(field string, value *int64) (int32, error) {
	if value == nil || *value <= 0 || *value > math.MaxInt32 {
		return 0, invalid(field, "both frequencies must be set, in kHz and above 0")
	}
	return int32(*value), nil
}

// kernel converts spec.realTimeKernel and what the realTime hint means for the kernel.
func (c *converter) kernel() error {
	realTime, _, _, _ := c.source.hints()
	c.spec.Kernel = v1alpha1.KernelSpec{
		Type:               v1alpha1.KernelDefault,
		MachineChecks:      v1alpha1.MachineChecksKept,
		Watchdogs:          v1alpha1.ActivityKept,
		Clocksource:        v1alpha1.ClocksourceKept,
		TimerMigration:     v1alpha1.TimerMigrationEnabled,
		RealTimeThrottling: v1alpha1.ActivityKept,
	}
	if rt := c.source.Spec.RealTimeKernel; rt != nil && isTrue(rt.Enabled, false) {
		c.spec.Kernel.Type = v1alpha1.KernelRealTime
		if !realTime {
			return invalid("spec.workloadHints.realTime", "it cannot be false while spec.realTimeKernel.enabled is true")
		}
	}
	if realTime {
		c.spec.Kernel.MachineChecks = v1alpha1.MachineChecksOff
		c.spec.Kernel.Watchdogs = v1alpha1.ActivityDisabled
		c.spec.Kernel.Clocksource = v1alpha1.ClocksourceReliableTSC
		c.spec.Kernel.RealTimeThrottling = v1alpha1.ActivityDisabled
		c.remark("spec.workloadHints.realTime", "it switches machine checks off (mce=off), which hides even fatal memory errors; consider spec.kernel.machineChecks: CorrectedErrorsIgnored.")
	}
	return nil
}
