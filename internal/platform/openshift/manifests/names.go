// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"errors"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
)

const (
	// TunedNamespace is where the Node Tuning Operator looks for Tuned objects.
	TunedNamespace = "openshift-cluster-node-tuning-operator"
	// LabelMachineConfigRole is the label by which machine config pools select MachineConfigs by convention.
	LabelMachineConfigRole = "machineconfiguration.openshift.io/role"

	// poolLabelPrefix begins the label that the machine-config operator puts on its own machine config pools, and by
	// which KubeletConfigs select them: pools.operator.machineconfiguration.openshift.io/worker.
	poolLabelPrefix = "pools.operator.machineconfiguration.openshift.io/"
)

// MachineConfigName is the name of the MachineConfig of a machine config pool. MachineConfigs are merged in the order
// of their names: 50 comes after the platform's own 00 and 01, and before the 99 of administrators.
func MachineConfigName(pool string) string { return "50-lowlatency-" + pool }

// KubeletConfigName is the name of the KubeletConfig of a machine config pool.
func KubeletConfigName(pool string) string { return "lowlatency-" + pool }

// TunedName is the name of the Tuned object of a machine config pool, and of the TuneD profile in it.
func TunedName(pool string) string { return "lowlatency-" + pool }

// RuntimeClassName is the name of the RuntimeClass of a profile: the one that the profile gives it, or lowlatency- and the
// name of the profile.
func RuntimeClassName(p *plan.NodePlan) string {
	return crioconfig.RuntimeClassName(p)
}

// metadata is what all children of a machine config pool have in common.
func (in Input) metadata(name, component string) metav1.ObjectMeta {
	return manifest.OfPlan(in.Plan.Profile, in.planHash, name, component)
}

// poolSelector are the labels by which a KubeletConfig finds the machine config pool.
func (p MachineConfigPool) poolSelector() map[string]string {
	if p.managed() {
		return map[string]string{poolLabelPrefix + p.Name: ""}
	}
	return maps.Clone(p.PoolSelector)
}

// Selection are the labels by which the machine config pool selects our MachineConfig.
func (p MachineConfigPool) Selection() map[string]string { return p.machineConfigLabels() }

// machineConfigLabels are the labels by which the machine config pool selects a MachineConfig.
func (p MachineConfigPool) machineConfigLabels() map[string]string {
	if len(p.MachineConfigLabels) > 0 {
		return maps.Clone(p.MachineConfigLabels)
	}
	return map[string]string{LabelMachineConfigRole: p.Name}
}

// checkNamespace makes sure that there is a namespace.
func (in Input) checkNamespace() error { return manifest.CheckNamespace(in.Namespace) }

// checkPool makes sure that the API server will take every name and label that is made of the machine config pool.
func (in Input) checkPool() error {
	if len(in.MachineConfigPool.poolSelector()) == 0 {
		return errors.New("an existing machine config pool needs labels that select it")
	}
	return errors.Join(
		manifest.CheckName("machine config pool name", in.MachineConfigPool.Name, validation.IsDNS1123Subdomain),
		manifest.CheckName("machine config pool name", in.MachineConfigPool.Name, validation.IsValidLabelValue),
		manifest.CheckLabels("machine config pool selector", in.MachineConfigPool.poolSelector()),
		manifest.CheckLabels("MachineConfig label", in.MachineConfigPool.machineConfigLabels()),
	)
}
