// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/coreos"
)

// generateKubeletConfigs turns each KubeletConfig into the MachineConfig
// 99-<pool>-generated-kubelet of every machine config pool that it selects.
func (o *MachineConfigOperator) generateKubeletConfigs(ctx context.Context, pools []mcfgv1.MachineConfigPool) error {
	var configs mcfgv1.KubeletConfigList
	if err := o.Client.List(ctx, &configs); err != nil {
		return fmt.Errorf("listing KubeletConfigs: %w", err)
	}
	if err := o.collectGenerated(ctx, configs.Items); err != nil {
		return err
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

// collectGenerated deletes what was generated from KubeletConfigs that are no more. It is owned by them, so that a cluster's
// garbage collector, which a lone API server does not have, would delete it.
func (o *MachineConfigOperator) collectGenerated(ctx context.Context, configs []mcfgv1.KubeletConfig) error {
	var all mcfgv1.MachineConfigList
	if err := o.Client.List(ctx, &all); err != nil {
		return fmt.Errorf("listing MachineConfigs: %w", err)
	}
	exists := func(uid types.UID) bool {
		return slices.ContainsFunc(configs, func(config mcfgv1.KubeletConfig) bool { return config.UID == uid })
	}
	for i := range all.Items {
		orphan := slices.ContainsFunc(all.Items[i].OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.Kind == "KubeletConfig" && !exists(owner.UID)
		})
		if !orphan {
			continue
		}
		if err := o.Client.Delete(ctx, &all.Items[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting MachineConfig %q: %w", all.Items[i].Name, err)
		}
	}
	return nil
}

func (o *MachineConfigOperator) generateKubeletConfig(ctx context.Context, config *mcfgv1.KubeletConfig, pool string) error {
	generated, err := coreos.GeneratedKubelet(config, pool)
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
