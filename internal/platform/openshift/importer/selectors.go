// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// roleLabel selects MachineConfigs by role; the default of both fields of a PerformanceProfile that name a machine config pool.
const roleLabel = "machineconfiguration.openshift.io/role"

// selectors converts nodeSelector, machineConfigLabel and machineConfigPoolSelector. A PerformanceProfile
// always binds to a machine config pool that somebody else made.
func (c *converter) selectors() error {
	source := c.source.Spec
	if len(source.NodeSelector) == 0 {
		return invalid("spec.nodeSelector", "a PerformanceProfile selects nodes by one label; there is none")
	}
	c.spec.NodeSelector = v1alpha1.NodeSelector{MatchLabels: labels(source.NodeSelector)}

	poolSelector, machineConfigLabels := labels(source.MachineConfigPoolSelector), labels(source.MachineConfigLabel)
	if poolSelector == nil || machineConfigLabels == nil {
		role, err := role(source.NodeSelector)
		if err != nil {
			return err
		}
		byRole := v1alpha1.Labels{roleLabel: v1alpha1.LabelValue(role)}
		if poolSelector == nil {
			poolSelector = byRole
			c.remark("spec.machineConfigPoolSelector",
				"it is not set, so the machine config pool is looked up by the label %s=%s; check that the MachineConfigPool carries it.", roleLabel, role)
		}
		if machineConfigLabels == nil {
			machineConfigLabels = byRole
		}
	}
	c.spec.Pools = v1alpha1.PoolsSpec{
		Management: v1alpha1.PoolsExisting,
		Existing: &v1alpha1.ExistingPool{
			MachineConfigPoolSelector: poolSelector,
			MachineConfigLabels:       machineConfigLabels,
		},
	}
	return nil
}

// role is the part after the slash of the node selector's only key, as in node-role.kubernetes.io/role.
func role(nodeSelector map[string]string) (string, error) {
	keys := slices.Sorted(maps.Keys(nodeSelector))
	_, role, found := strings.Cut(keys[0], "/")
	if !found || role == "" || len(keys) > 1 {
		return "", invalid("spec.nodeSelector",
			"%q is not one label of the form domain/role, so the machine config pool is not known; set spec.machineConfigLabel and spec.machineConfigPoolSelector", strings.Join(keys, ", "))
	}
	return role, nil
}

func labels(from map[string]string) v1alpha1.Labels {
	if len(from) == 0 {
		return nil
	}
	to := v1alpha1.Labels{}
	for key, value := range from {
		to[key] = v1alpha1.LabelValue(value)
	}
	return to
}
