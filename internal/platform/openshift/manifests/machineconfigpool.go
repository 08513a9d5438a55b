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

// workerRole is the role whose MachineConfigs every custom pool inherits: the machine-config operator
// lets only worker nodes be in a custom pool.
const workerRole = "worker"

// MachineConfigPool is the pool of all nodes that carry the pool's label. Calling it for an Existing pool is an
// error, because that pool has another owner.
func MachineConfigPool(in Input) (*mcfgv1.MachineConfigPool, error) {
	in, err := in.checked(Input.checkPool)
	if err != nil {
		return nil, err
	}
	if !in.Pool.managed() {
		return nil, fmt.Errorf("pool %q is not managed by profile %q", in.Pool.Name, in.Plan.Profile)
	}
	metadata := in.metadata(in.Pool.Name, "machine-config-pool")
	maps.Copy(metadata.Labels, in.Pool.poolSelector())
	return &mcfgv1.MachineConfigPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfigPool"},
		ObjectMeta: metadata,
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelPool: in.Pool.Name}},
			MachineConfigSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
				Key: LabelMachineConfigRole, Operator: metav1.LabelSelectorOpIn, Values: []string{workerRole, in.Pool.Name},
			}}},
			MaxUnavailable: maximumUnavailable(in.Pool.MaximumUnavailableNodes),
			Paused:         in.Pool.Paused,
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
