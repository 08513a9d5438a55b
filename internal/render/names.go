// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package render

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	// AnnotationPlanHash on a child object names the plan that it carries.
	AnnotationPlanHash = "lowlatency.dev/plan-hash"
	// TunedNamespace is where the Node Tuning Operator looks for Tuned objects.
	TunedNamespace = "openshift-cluster-node-tuning-operator"
	// LabelMachineConfigRole is the label by which pools select MachineConfigs by convention.
	LabelMachineConfigRole = "machineconfiguration.openshift.io/role"

	// poolLabelPrefix begins the label that the machine-config operator puts on its own pools, and by which
	// KubeletConfigs select them: pools.operator.machineconfiguration.openshift.io/worker.
	poolLabelPrefix = "pools.operator.machineconfiguration.openshift.io/"
	projectName     = "lowlatency-operator"
)

// MachineConfigName is the name of the MachineConfig of a pool. MachineConfigs are merged in the order of their
// names: 50 comes after the platform's own 00 and 01, and before the 99 of administrators.
func MachineConfigName(pool string) string { return "50-lowlatency-" + pool }

// KubeletConfigName is the name of the KubeletConfig of a pool.
func KubeletConfigName(pool string) string { return "lowlatency-" + pool }

// TunedName is the name of the Tuned object of a pool, and of the TuneD profile in it.
func TunedName(pool string) string { return "lowlatency-" + pool }

// RuntimeClassName is the name of the RuntimeClass of a profile.
func RuntimeClassName(profile string) string { return "lowlatency-" + profile }

// PlanConfigMapName is the name of the ConfigMap that holds a plan.
func PlanConfigMapName(profile, planHash string) string { return profile + "-" + planHash }

// metadata is what all children of a pool have in common.
func (in Input) metadata(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			"app.kubernetes.io/name":       projectName,
			"app.kubernetes.io/component":  component,
			"app.kubernetes.io/part-of":    projectName,
			"app.kubernetes.io/managed-by": projectName,
			v1alpha1.LabelProfile:          in.Plan.Profile,
		},
		Annotations: map[string]string{AnnotationPlanHash: in.planHash},
	}
}

// poolSelector are the labels by which a KubeletConfig finds the pool.
func (p Pool) poolSelector() map[string]string {
	if p.managed() {
		return map[string]string{poolLabelPrefix + p.Name: ""}
	}
	return maps.Clone(p.PoolSelector)
}

// machineConfigLabels are the labels by which the pool selects a MachineConfig.
func (p Pool) machineConfigLabels() map[string]string {
	if len(p.MachineConfigLabels) > 0 {
		return maps.Clone(p.MachineConfigLabels)
	}
	return map[string]string{LabelMachineConfigRole: p.Name}
}

// checkProfile makes sure that the profile's name can be a part of names and a label's value.
func (in Input) checkProfile() error {
	return errors.Join(
		describe("profile name", in.Plan.Profile, validation.IsDNS1123Subdomain),
		describe("profile name", in.Plan.Profile, validation.IsValidLabelValue),
	)
}

// checkNamespace makes sure that there is a namespace.
func (in Input) checkNamespace() error {
	return describe("operator namespace", in.Namespace, validation.IsDNS1123Label)
}

// checkPool makes sure that the API server will take every name and label that is made of the pool.
func (in Input) checkPool() error {
	if len(in.Pool.poolSelector()) == 0 {
		return errors.New("an existing pool needs labels that select it")
	}
	return errors.Join(
		describe("pool name", in.Pool.Name, validation.IsDNS1123Subdomain),
		describe("pool name", in.Pool.Name, validation.IsValidLabelValue),
		checkLabels("pool selector", in.Pool.poolSelector()),
		checkLabels("MachineConfig label", in.Pool.machineConfigLabels()),
	)
}

func checkLabels(what string, labels map[string]string) error {
	problems := make([]error, 0, 2*len(labels))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		problems = append(problems,
			describe(what, key, validation.IsQualifiedName),
			describe(what+" "+key, labels[key], validation.IsValidLabelValue))
	}
	return errors.Join(problems...)
}

// describe turns the sentences of a Kubernetes validation function into an error.
func describe(what, value string, check func(string) []string) error {
	if problems := check(value); len(problems) > 0 {
		return fmt.Errorf("%s %q: %s", what, value, strings.Join(problems, "; "))
	}
	return nil
}
