// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"maps"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// performanceProfileKind is the peer's kind. It is read without its Go types, of which nothing else is needed.
func performanceProfileKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "performance.openshift.io", Version: "v2", Kind: "PerformanceProfile"}
}

// performanceProfile is the part of a PerformanceProfile that binds it to nodes and machine config pools
// (cluster-node-tuning-operator, pkg/apis/performanceprofile/v2 and components/profile).
type performanceProfile struct {
	name                string
	nodeSelector        map[string]string
	poolSelector        map[string]string
	machineConfigLabels map[string]string
}

// parsePerformanceProfile fills in what the peer does when fields are omitted: both selectors are then
// made of the role in the key of the node selector.
func parsePerformanceProfile(object *unstructured.Unstructured) performanceProfile {
	field := func(name string) map[string]string {
		// A field of a wrong type cannot bind anything; the peer rejects it, too.
		value, _, err := unstructured.NestedStringMap(object.Object, "spec", name)
		if err != nil {
			return nil
		}
		return value
	}
	p := performanceProfile{
		name:                object.GetName(),
		nodeSelector:        field("nodeSelector"),
		poolSelector:        field("machineConfigPoolSelector"),
		machineConfigLabels: field("machineConfigLabel"),
	}
	byRole := map[string]string{mcfgv1.MachineConfigRoleLabelKey: p.role()}
	if p.poolSelector == nil {
		p.poolSelector = byRole
	}
	if p.machineConfigLabels == nil {
		p.machineConfigLabels = byRole
	}
	return p
}

// role is the part after the slash of the node selector's key, such as worker-cnf.
func (p performanceProfile) role() string {
	for _, name := range slices.Sorted(maps.Keys(p.nodeSelector)) {
		if _, role, found := strings.Cut(name, "/"); found {
			return role
		}
	}
	return ""
}

// governs reports whether the profile governs a machine config pool or a node: by selecting the machine config pool, by
// MachineConfigs that the machine config pool takes in, or by selecting the node.
func (p performanceProfile) governs(pool *mcfgv1.MachineConfigPool, nodes []*corev1.Node) bool {
	if pool != nil && (matches(p.poolSelector, pool.Labels) ||
		selects(pool.Spec.MachineConfigSelector, p.machineConfigLabels)) {
		return true
	}
	return slices.ContainsFunc(nodes, func(node *corev1.Node) bool { return matches(p.nodeSelector, node.Labels) })
}

// matches reports whether a set has all of the wanted labels, of which there must be one.
func matches(want, set map[string]string) bool {
	return len(want) > 0 && labels.SelectorFromSet(want).Matches(labels.Set(set))
}
