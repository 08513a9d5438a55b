// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"fmt"
	"maps"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// workerRole is the role whose MachineConfigs every custom machine config pool inherits: the machine-config operator
// lets only worker nodes be in a custom machine config pool.
const workerRole = "worker"

// machineConfigPool is the machine config pool of all nodes that carry its label. Calling it for one that is Existing is
// an error, because that has another owner.
func machineConfigPool(in Input) (*mcfgv1.MachineConfigPool, error) {
	in, err := in.checked(Input.checkPool)
	if err != nil {
		return nil, err
	}
	if !in.MachineConfigPool.managed() {
		return nil, fmt.Errorf("machine config pool %q is not managed by profile %q", in.MachineConfigPool.Name, in.Plan.Profile)
	}
	metadata := in.metadata(in.MachineConfigPool.Name, "machine-config-pool")
	maps.Copy(metadata.Labels, in.MachineConfigPool.poolSelector())
	return &mcfgv1.MachineConfigPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfigPool"},
		ObjectMeta: metadata,
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelPool: in.MachineConfigPool.Name}},
			MachineConfigSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: LabelMachineConfigRole, Operator: metav1.LabelSelectorOpIn, Values: []string{workerRole, in.MachineConfigPool.Name},
			}}},
			MaxUnavailable: maximumUnavailable(in.MachineConfigPool.MaximumUnavailableNodes),
			Paused:         in.MachineConfigPool.Paused,
		},
	}, nil
}

func maximumUnavailable(nodes int32) *intstr.IntOrString {
	if nodes <= 0 {
		return nil
	}
	limit := intstr.FromInt32(nodes)
	return &limit
}

// ManagedMachineConfigPool is a machine config pool that the operator makes for a profile.
func ManagedMachineConfigPool(name string, profile *v1alpha1.LowLatencyNodeProfile) MachineConfigPool {
	return MachineConfigPool{
		Name: name, Management: v1alpha1.PoolsManaged,
		MaximumUnavailableNodes: profile.Spec.Pools.MaximumUnavailableNodes,
	}
}

// ExistingMachineConfigPool is the machine config pool of somebody else that a profile binds to.
func ExistingMachineConfigPool(name string, profile *v1alpha1.LowLatencyNodeProfile) MachineConfigPool {
	existing := profile.Spec.Pools.Existing
	return MachineConfigPool{
		Name: name, Management: v1alpha1.PoolsExisting,
		PoolSelector:        plainLabels(existing.MachineConfigPoolSelector),
		MachineConfigLabels: plainLabels(existing.MachineConfigLabels),
	}
}

// plainLabels are labels as Kubernetes has them; nil when there are none.
func plainLabels(labels v1alpha1.Labels) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	plain := make(map[string]string, len(labels))
	for key, value := range labels {
		plain[key] = string(value)
	}
	return plain
}
