// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package manifests turns a NodePlan into the objects that bring it to the nodes of one MachineConfigPool of OpenShift:
// MachineConfigPool, plan ConfigMap, RuntimeClass, MachineConfig, KubeletConfig and Tuned. It is pure: what
// it returns depends on its input alone, so that the offline render command prints exactly what the
// controller applies. Whatever the platform would refuse, or would bring nodes down with, is an error here.
package manifests

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Input is what the objects of one machine config pool are made from.
type Input struct {
	// Plan is what every node of the machine config pool is to become.
	Plan *plan.NodePlan
	// MachineConfigPool is the one that carries the plan; the plan ConfigMap and the RuntimeClass need none.
	MachineConfigPool MachineConfigPool
	// Namespace is the operator's namespace, where the plan ConfigMap lives; no other object needs it.
	Namespace string

	// planHash is set once the input was checked; see checked.
	planHash string
}

// MachineConfigPool is a machine config pool as far as rendering depends on it.
type MachineConfigPool struct {
	// Name of the MachineConfigPool. It is part of a label's name, hence at most 63 characters.
	Name string
	// Management is Managed when the machine config pool itself is rendered, too. Empty means Managed.
	Management v1alpha1.PoolManagement
	// PoolSelector are the labels by which a KubeletConfig finds an Existing machine config pool. A managed machine
	// config pool has its own.
	PoolSelector map[string]string
	// MachineConfigLabels are the labels by which the machine config pool selects MachineConfigs. When empty, the label
	// machineconfiguration.openshift.io/role with the machine config pool's name is used.
	MachineConfigLabels map[string]string
	// MaximumUnavailableNodes of a managed machine config pool; 0 leaves the platform's default, which is one.
	MaximumUnavailableNodes int32
	// Paused holds a managed machine config pool while several of its objects change, so that they cost one reboot.
	// When false, the field is left out: an administrator who pauses the machine config pool by hand keeps it paused.
	Paused bool
}

func (p MachineConfigPool) managed() bool { return p.Management != v1alpha1.PoolsExisting }

// Objects renders everything for one machine config pool, in the order in which it is to be applied: the machine config
// pool and the plan first, since the others are useless without them; the objects that cause a reboot later; Tuned,
// which acts at once, last. An Existing machine config pool belongs to somebody else and is not among them. The objects
// carry no status, no server-side fields and no empty values, so they can be applied or printed as they are.
func Objects(in Input) ([]*unstructured.Unstructured, error) {
	in, err := in.checked(Input.checkPool, Input.checkNamespace)
	if err != nil {
		return nil, err
	}
	kinds := []func(Input) (runtime.Object, error){
		object(planConfigMap), object(RuntimeClass), object(MachineConfig), object(KubeletConfig), object(Tuned),
	}
	if in.MachineConfigPool.managed() {
		kinds = append([]func(Input) (runtime.Object, error){object(machineConfigPool)}, kinds...)
	}
	objects := make([]*unstructured.Unstructured, 0, len(kinds))
	for _, kind := range kinds {
		typed, err := kind(in)
		if err != nil {
			return nil, err
		}
		plain, err := toUnstructured(typed)
		if err != nil {
			return nil, err
		}
		objects = append(objects, plain)
	}
	return objects, nil
}

// planConfigMap is the same on every platform.
func planConfigMap(in Input) (*corev1.ConfigMap, error) {
	in, err := in.checked(Input.checkNamespace)
	if err != nil {
		return nil, err
	}
	return manifest.PlanConfigMap(in.Plan, in.planHash, in.Namespace)
}

// object lets functions with different results stand in one list.
func object[T runtime.Object](kind func(Input) (T, error)) func(Input) (runtime.Object, error) {
	return func(in Input) (runtime.Object, error) { return kind(in) }
}

// checked returns the input with its plan's hash, or an error when names in it cannot be used for objects or labels:
// that of the profile, and whatever else the object needs. An input that was checked before is returned as it is.
func (in Input) checked(needs ...func(Input) error) (Input, error) {
	if in.planHash != "" {
		return in, nil
	}
	if in.Plan == nil {
		return Input{}, errors.New("rendering without a plan")
	}
	problems := []error{manifest.CheckProfile(in.Plan.Profile)}
	for _, check := range needs {
		problems = append(problems, check(in))
	}
	if err := errors.Join(problems...); err != nil {
		return Input{}, fmt.Errorf("rendering the plan of profile %q for machine config pool %q: %w", in.Plan.Profile, in.MachineConfigPool.Name, err)
	}
	in.planHash = in.Plan.Hash()
	if in.planHash == "" {
		return Input{}, fmt.Errorf("the plan of profile %q has no hash", in.Plan.Profile)
	}
	return in, nil
}
