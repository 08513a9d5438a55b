// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// target is a machine config pool, the plan that it is to carry and the objects that bring the plan to it.
type target struct {
	shape *fleet.Shape
	input manifests.Input
	// want are the objects that bring the plan to the machine config pool, in the order of applying. The plan itself is
	// not among them, because the agents need it even while nothing may be changed.
	want []*unstructured.Unstructured
	// pool is the machine config pool that is wanted; nil when somebody else owns it.
	pool       *mcfgv1.MachineConfigPool
	poolObject *unstructured.Unstructured
	// live is the machine config pool as it is; nil when it does not exist.
	live *mcfgv1.MachineConfigPool
	// nodes of the shape that may be in the machine config pool.
	nodes []*corev1.Node
	// conflict keeps the machine config pool from being touched.
	conflict *fleet.Conflict
	// selectors says what others have added to the selectors of the live machine config pool; nil when they are as wanted.
	selectors *platform.Inspection
	evidence  evidence
}

func (t *target) name() string { return t.input.MachineConfigPool.Name }

// managed reports whether the machine config pool is the operator's own.
func (t *target) managed() bool {
	return t.input.MachineConfigPool.Management != v1alpha1.PoolsExisting
}

// renderer turns a plan into objects. It exists so that equal plans are rendered once.
type renderer func(manifests.Input) ([]*unstructured.Unstructured, error)

// aim chooses the machine config pool of every shape. What keeps a shape or a node from its machine config pool comes
// back as conflicts.
func aim(w *world, intent *fleet.Intent, namespace string, renders renderer) ([]*target, []fleet.Conflict) {
	targets, conflicts := choosePools(w, intent)
	for _, t := range targets {
		t.input.Plan, t.input.Namespace = t.shape.Plan, namespace
		t.live = w.pools[t.name()]
		if err := t.renderWith(renders); err != nil {
			t.conflict = &fleet.Conflict{Reason: v1alpha1.ReasonPlanImpossible, Message: err.Error()}
		}
		if t.conflict == nil {
			t.conflict = w.performanceProfileConflict(t)
		}
		if t.conflict == nil {
			t.conflict = w.runtimeClassConflict(t, intent)
		}
		if t.conflict != nil {
			conflicts = append(conflicts, *t.conflict)
		}
	}
	slices.SortFunc(targets, func(a, b *target) int { return strings.Compare(a.name(), b.name()) })
	shareRuntimeClass(targets)
	return targets, conflicts
}

// shareRuntimeClass leaves the RuntimeClass, which is one for all machine config pools of a profile, to the first that can
// be written.
func shareRuntimeClass(targets []*target) {
	isClass := func(object *unstructured.Unstructured) bool { return object.GetKind() == kindRuntimeClass }
	found := false
	for _, t := range targets {
		if found {
			t.want = slices.DeleteFunc(slices.Clone(t.want), isClass)
		}
		found = found || t.conflict == nil && slices.ContainsFunc(t.want, isClass)
	}
}

func choosePools(w *world, intent *fleet.Intent) ([]*target, []fleet.Conflict) {
	if len(intent.Shapes) == 0 {
		return nil, nil
	}
	if intent.Profile.Spec.Pools.Management == v1alpha1.PoolsExisting {
		return existingPool(w, intent)
	}
	if conflict := controlPlaneConflict(intent); conflict != nil {
		return nil, []fleet.Conflict{*conflict}
	}
	return managedPools(w, intent)
}

// renderWith renders the objects of the target.
func (t *target) renderWith(renders renderer) error {
	objects, err := renders(t.input)
	if err != nil {
		return fmt.Errorf("the plan for the nodes of MachineConfigPool %s cannot be written: %w", t.name(), err)
	}
	for _, object := range objects {
		switch object.GetKind() {
		case kindPool:
			t.pool = &mcfgv1.MachineConfigPool{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, t.pool); err != nil {
				return fmt.Errorf("reading the rendered MachineConfigPool %s: %w", t.name(), err)
			}
			t.poolObject = object
		case "ConfigMap":
		default:
			t.want = append(t.want, object)
		}
	}
	return nil
}

// managedPools gives every shape a machine config pool of its own.
func managedPools(w *world, intent *fleet.Intent) ([]*target, []fleet.Conflict) {
	profile := intent.Profile.Name
	current, taken := map[string]string{}, map[string]bool{}
	for name, pool := range w.pools {
		taken[name] = owner(pool) != profile
	}
	for name, node := range intent.Nodes {
		if pool := node.Labels[v1alpha1.LabelPool]; pool != "" && w.pools[pool] != nil {
			current[name] = pool
		}
	}
	names, foreign := manifests.AssignPools(profile, current, intent.Shapes, taken), w.foreignPools()
	targets := make([]*target, 0, len(intent.Shapes))
	var conflicts []fleet.Conflict
	for i := range intent.Shapes {
		shape := &intent.Shapes[i]
		t := &target{shape: shape, input: manifests.Input{
			MachineConfigPool: manifests.ManagedMachineConfigPool(names[shape.Hash], intent.Profile),
		}}
		for _, name := range shape.Nodes {
			node := intent.Nodes[name]
			if conflict := w.otherPoolConflict(node, foreign); conflict != nil {
				conflicts = append(conflicts, *conflict)
				continue
			}
			t.nodes = append(t.nodes, node)
		}
		if len(t.nodes) > 0 {
			targets = append(targets, t)
		}
	}
	return targets, conflicts
}

// existingPool binds the one shape to the one machine config pool that the profile names. The operator does not choose
// between shapes: it applies nothing until there is one.
func existingPool(w *world, intent *fleet.Intent) ([]*target, []fleet.Conflict) {
	pool, conflict := w.findExistingPool(intent.Profile)
	if conflict != nil {
		return nil, []fleet.Conflict{*conflict}
	}
	t := &target{shape: &intent.Shapes[0], input: manifests.Input{
		MachineConfigPool: manifests.ExistingMachineConfigPool(pool.Name, intent.Profile),
	}}
	for _, name := range t.shape.Nodes {
		t.nodes = append(t.nodes, intent.Nodes[name])
	}
	t.conflict = w.existingPoolConflict(pool, intent)
	return []*target{t}, nil
}

// findExistingPool finds the machine config pool to which the profile binds.
func (w *world) findExistingPool(profile *v1alpha1.LowLatencyNodeProfile) (*mcfgv1.MachineConfigPool, *fleet.Conflict) {
	selector := plain(profile.Spec.Pools.Existing.MachineConfigPoolSelector)
	var found []string
	for name, pool := range w.pools {
		if matches(selector, pool.Labels) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	switch len(found) {
	case 0:
		return nil, machineConfigPoolConflict("", "spec.pools.existing.machineConfigPoolSelector selects no MachineConfigPool: "+
			"correct it, or create the machine config pool")
	case 1:
		return w.pools[found[0]], nil
	default:
		return nil, machineConfigPoolConflict("", "spec.pools.existing.machineConfigPoolSelector selects the MachineConfigPools %s: "+
			"add a label that only one of them has", fleet.Names(found))
	}
}

func plain(set v1alpha1.Labels) map[string]string {
	if len(set) == 0 {
		return nil
	}
	labels := make(map[string]string, len(set))
	for key, value := range set {
		labels[key] = string(value)
	}
	return labels
}

func sortedKeys[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }
