// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeletConfigPath is where OpenShift puts the kubelet's configuration.
const kubeletConfigPath = "/etc/kubernetes/kubelet.conf"

// generateKubeletConfigs turns each KubeletConfig into the MachineConfig
// 99-<pool>-generated-kubelet of every machine config pool that it selects.
func (o *MachineConfigOperator) generateKubeletConfigs(ctx context.Context, pools []mcfgv1.MachineConfigPool) error {
	var configs mcfgv1.KubeletConfigList
	if err := o.Client.List(ctx, &configs); err != nil {
		return fmt.Errorf("listing KubeletConfigs: %w", err)
	}
	for i := range configs.Items {
		for j := range pools {
			if !selects(configs.Items[i].Spec.MachineConfigPoolSelector, pools[j].Labels) {
				continue
			}
			if err := o.generateKubeletConfig(ctx, &configs.Items[i], pools[j].Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *MachineConfigOperator) generateKubeletConfig(ctx context.Context, config *mcfgv1.KubeletConfig, pool string) error {
	generated, err := generatedKubelet(config, pool)
	if err != nil {
		return err
	}
	var current mcfgv1.MachineConfig
	err = o.Client.Get(ctx, client.ObjectKeyFromObject(generated), &current)
	switch {
	case apierrors.IsNotFound(err):
		err = o.Client.Create(ctx, generated)
	case err == nil && !equality.Semantic.DeepEqual(current.Spec.Config, generated.Spec.Config):
		current.Spec = generated.Spec
		err = o.Client.Update(ctx, &current)
	}
	if err != nil {
		return fmt.Errorf("writing MachineConfig %q: %w", generated.Name, err)
	}
	return o.reportKubeletConfig(ctx, config)
}

// reportKubeletConfig says Success for the current generation.
func (o *MachineConfigOperator) reportKubeletConfig(ctx context.Context, config *mcfgv1.KubeletConfig) error {
	if config.Status.ObservedGeneration == config.Generation && len(config.Status.Conditions) > 0 {
		return nil
	}
	config.Status.ObservedGeneration = config.Generation
	config.Status.Conditions = []mcfgv1.KubeletConfigCondition{{
		Type: mcfgv1.KubeletConfigSuccess, Status: corev1.ConditionTrue, Message: "Success",
		LastTransitionTime: metav1.NewTime(o.Clock.Now()),
	}}
	if err := o.Client.Status().Update(ctx, config); err != nil {
		return fmt.Errorf("writing the status of KubeletConfig %q: %w", config.Name, err)
	}
	return nil
}

// generatedKubelet is the MachineConfig that carries the kubelet's configuration to a machine config pool: the
// platform's own settings with those of the KubeletConfig over them.
func generatedKubelet(config *mcfgv1.KubeletConfig, pool string) (*mcfgv1.MachineConfig, error) {
	settings := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": "systemd", "maxPods": 250, "rotateCertificates": true,
	}
	if config.Spec.KubeletConfig != nil {
		var own map[string]any
		if err := json.Unmarshal(config.Spec.KubeletConfig.Raw, &own); err != nil {
			return nil, fmt.Errorf("reading KubeletConfig %q: %w", config.Name, err)
		}
		maps.Copy(settings, own)
	}
	text, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the kubelet configuration of machine config pool %q: %w", pool, err)
	}
	ignition := types.Config{
		Ignition: types.Ignition{Version: types.MaxVersion.String()},
		Storage: types.Storage{Files: []types.File{{
			Node: types.Node{Path: kubeletConfigPath, Overwrite: new(true)},
			FileEmbedded1: types.FileEmbedded1{
				Mode:     new(0o644),
				Contents: types.Resource{Source: new(dataURL(text))},
			},
		}}},
	}
	raw, err := json.Marshal(ignition)
	if err != nil {
		return nil, fmt.Errorf("writing the MachineConfig for KubeletConfig %q: %w", config.Name, err)
	}
	return &mcfgv1.MachineConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "99-" + pool + "-generated-kubelet",
			Labels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: pool},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: mcfgv1.GroupVersion.String(), Kind: "KubeletConfig", Name: config.Name, UID: config.UID,
			}},
		},
		Spec: mcfgv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: raw}},
	}, nil
}
