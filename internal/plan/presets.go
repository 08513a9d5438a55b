// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// powerSettings are the settings that a power preset stands for.
type powerSettings struct {
	idleStates      v1alpha1.IdleStates
	frequencyDriver v1alpha1.FrequencyDriverMode
	governor        v1alpha1.FrequencyGovernor
	turbo           v1alpha1.TurboMode
}

// powerPresets is the table that the documentation of spec.power.preset prints.
func powerPresets() map[v1alpha1.PowerPreset]powerSettings {
	return map[v1alpha1.PowerPreset]powerSettings{
		v1alpha1.PowerMaximumDeterminism: {v1alpha1.IdlePolling, v1alpha1.FrequencyDriverRecommended,
			v1alpha1.GovernorPerformance, v1alpha1.TurboKept},
		v1alpha1.PowerHighPerformance: {v1alpha1.IdleShallowByKernel, v1alpha1.FrequencyDriverRecommended,
			v1alpha1.GovernorPerformance, v1alpha1.TurboKept},
		v1alpha1.PowerLowLatency: {v1alpha1.IdleShallowByQoS, v1alpha1.FrequencyDriverRecommended,
			v1alpha1.GovernorPerformance, v1alpha1.TurboKept},
		v1alpha1.PowerPerPod: {v1alpha1.IdleKept, v1alpha1.FrequencyDriverPassive,
			v1alpha1.GovernorKept, v1alpha1.TurboKept},
		v1alpha1.PowerKept: {v1alpha1.IdleKept, v1alpha1.FrequencyDriverKept,
			v1alpha1.GovernorKept, v1alpha1.TurboKept},
	}
}
