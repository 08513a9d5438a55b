// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

func machineConfigPoolConflict(node, format string, args ...any) *fleet.Conflict {
	return &fleet.Conflict{Reason: v1alpha1.ReasonMachineConfigPoolConflict, Node: node, Message: fmt.Sprintf(format, args...)}
}

// controlPlaneConflict reports control-plane nodes under managed machine config pools. OpenShift keeps them in the
// machine config pool master whatever custom machine config pool selects them, so that a managed machine config pool
// would never reach them.
func controlPlaneConflict(intent *fleet.Intent) *fleet.Conflict {
	var controlPlane []string
	for _, name := range intent.Selected {
		if node := intent.Nodes[name]; node != nil && isControlPlane(node) {
			controlPlane = append(controlPlane, name)
		}
	}
	switch {
	case len(controlPlane) == 0:
		return nil
	case len(controlPlane) < len(intent.Selected):
		return machineConfigPoolConflict("", "spec.nodeSelector selects the control-plane nodes %s together with workers, but a "+
			"MachineConfigPool holds one kind only: use a profile of its own for the control plane", fleet.Names(controlPlane))
	default:
		return machineConfigPoolConflict("", "OpenShift keeps the control-plane nodes %s in MachineConfigPool master: set "+
			"spec.pools.management to Existing and select that pool", fleet.Names(controlPlane))
	}
}

// foreignPools are the custom machine config pools that the operator has not made, ascending.
func (w *world) foreignPools() []string {
	var names []string
	for name, pool := range w.pools {
		if owner(pool) == "" && !isBuiltIn(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// otherPoolConflict reports a node that is in one of the foreign machine config pools. Labelling it would put it into
// two custom machine config pools, in which case the machine-config operator stops working on it.
func (w *world) otherPoolConflict(node *corev1.Node, foreign []string) *fleet.Conflict {
	for _, name := range foreign {
		if w.selectsNode(name, node.Labels) {
			return machineConfigPoolConflict(node.Name, "node %s is in MachineConfigPool %s, which somebody else owns, and a node can be "+
				"in one custom machine config pool only: take it out of that one, or bind the profile to it with "+
				"spec.pools.management Existing", node.Name, name)
		}
	}
	return nil
}

// existingPoolConflict reports why a machine config pool of somebody else cannot carry the plan: it would change nodes
// that the profile does not select, or miss some that it does, or there is more than one plan.
func (w *world) existingPoolConflict(pool *mcfgv1.MachineConfigPool, intent *fleet.Intent) *fleet.Conflict {
	if owner(pool) != "" {
		return machineConfigPoolConflict("", "MachineConfigPool %s is managed by profile %s and cannot be used as an existing pool: "+
			"select another one", pool.Name, owner(pool))
	}
	outside, strangers := w.compareMembers(pool, intent)
	switch {
	case len(outside) > 0:
		return machineConfigPoolConflict(outside[0], "MachineConfigPool %s does not hold the selected nodes %s: move them into it, "+
			"or narrow spec.nodeSelector", pool.Name, fleet.Names(outside))
	case len(strangers) > 0:
		return machineConfigPoolConflict(strangers[0], "MachineConfigPool %s holds nodes %s, which spec.nodeSelector does not select and "+
			"which would be changed, too: widen spec.nodeSelector, or use a machine config pool of its own", pool.Name, fleet.Names(strangers))
	case poolLimit(pool) > 1 && isControlPlane(intent.Nodes[intent.Selected[0]]):
		return machineConfigPoolConflict("", "MachineConfigPool %s lets %d control-plane nodes be unavailable at the same time: set its "+
			"spec.maxUnavailable to 1", pool.Name, poolLimit(pool))
	case len(intent.Shapes) > 1:
		return machineConfigPoolConflict("", "MachineConfigPool %s holds nodes that need %d different plans (%s), and it carries one: "+
			"use one machine config pool and profile for each, or spec.pools.management Managed", pool.Name, len(intent.Shapes), shapes(intent))
	default:
		return nil
	}
}

// compareMembers are the selected nodes that are not in the machine config pool, and the nodes in it that are not selected.
func (w *world) compareMembers(pool *mcfgv1.MachineConfigPool, intent *fleet.Intent) (outside, strangers []string) {
	for _, name := range sortedKeys(intent.Nodes) {
		member, selected := w.primaryPool(withoutOurPool(intent.Nodes[name])) == pool.Name, intent.Governs(name)
		switch {
		case selected && !member:
			outside = append(outside, name)
		case member && !selected:
			strangers = append(strangers, name)
		}
	}
	return outside, strangers
}

// shapes lists the nodes of each shape.
func shapes(intent *fleet.Intent) string {
	parts := make([]string, 0, len(intent.Shapes))
	for i := range intent.Shapes {
		parts = append(parts, "plan "+intent.Shapes[i].Hash+": "+fleet.Names(intent.Shapes[i].Nodes))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// performanceProfileConflict reports a PerformanceProfile that governs the target's machine config pool or nodes: it
// writes the same kernel arguments and kubelet settings.
func (w *world) performanceProfileConflict(t *target) *fleet.Conflict {
	pool := t.live
	if pool == nil {
		pool = t.pool
	}
	for _, p := range w.performanceProfiles {
		if p.governs(pool, t.nodes) {
			return &fleet.Conflict{
				Reason: v1alpha1.ReasonPerformanceProfileConflict,
				Message: fmt.Sprintf("PerformanceProfile %s governs nodes of MachineConfigPool %s, too: delete it "+
					"(kubectl-lowlatency import turns it into a profile), or take these nodes out of one of the two",
					p.name, t.name()),
			}
		}
		if class := t.runtimeClassName(); class == "performance-"+p.name {
			return &fleet.Conflict{
				Reason: v1alpha1.ReasonPerformanceProfileConflict,
				Message: fmt.Sprintf("RuntimeClass %s belongs to PerformanceProfile %s as long as that exists: delete it, or take "+
					"spec.containerRuntime.runtimeClassName out", class, p.name),
			}
		}
	}
	return nil
}

// runtimeClassName is the name that the profile gives to its RuntimeClass; "" for the operator's own.
func (t *target) runtimeClassName() string {
	if t.shape == nil || t.shape.Plan == nil {
		return ""
	}
	return t.shape.Plan.ContainerRuntime.RuntimeClassName
}

// runtimeClassConflict reports that another profile has the RuntimeClass whose name this one asks for. The one that made it keeps it as
// long as it asks for it, so that the pods that use it stay where they are; when none has made it yet, the oldest profile gets it.
func (w *world) runtimeClassConflict(t *target, intent *fleet.Intent) *fleet.Conflict {
	name := t.runtimeClassName()
	if len(intent.RuntimeClassClaims) == 0 || name != intent.Profile.Spec.ContainerRuntime.RuntimeClassName {
		return nil
	}
	holder := w.runtimeClassHolders[name]
	if !slices.Contains(intent.RuntimeClassClaims, holder) {
		holder = intent.RuntimeClassClaims[0]
	}
	if holder == intent.Profile.Name {
		return nil
	}
	return new(fleet.RuntimeClassTaken(name, holder))
}
