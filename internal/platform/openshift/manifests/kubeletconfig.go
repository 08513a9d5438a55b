// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubeletconfig"
)

// KubeletConfig carries the planned kubelet settings to the machine config pool. A setting that the kubelet would refuse,
// or that the machine-config operator keeps for itself, is an error.
func KubeletConfig(in Input) (*mcfgv1.KubeletConfig, error) {
	in, err := in.checked(Input.checkPool)
	if err != nil {
		return nil, err
	}
	raw, err := KubeletConfiguration(in.Plan.Kubelet)
	if err != nil {
		return nil, fmt.Errorf("rendering KubeletConfig for machine config pool %q: %w", in.MachineConfigPool.Name, err)
	}
	return &mcfgv1.KubeletConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcfgv1.GroupVersion.String(), Kind: "KubeletConfig"},
		ObjectMeta: in.metadata(KubeletConfigName(in.MachineConfigPool.Name), "kubelet-config"),
		Spec: mcfgv1.KubeletConfigSpec{
			MachineConfigPoolSelector: &metav1.LabelSelector{MatchLabels: in.MachineConfigPool.poolSelector()},
			KubeletConfig:             &runtime.RawExtension{Raw: raw},
		},
	}, nil
}

// KubeletConfiguration prints the planned settings as a KubeletConfiguration in JSON. What the kubelet or the
// machine-config operator refuses is an error that names the field.
func KubeletConfiguration(kubelet plan.KubeletPlan) ([]byte, error) {
	return kubeletconfig.Print(kubelet, checkPlatformFields)
}
