// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// keepFinalizer makes sure that the profile cannot disappear before its nodes were given back.
func (r *ProfileReconciler) keepFinalizer(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile) error {
	if slices.Contains(profile.Finalizers, v1alpha1.Finalizer) {
		return nil
	}
	object := apply.Reference(v1alpha1.GroupVersion.WithKind("LowLatencyNodeProfile"), profile)
	object.SetFinalizers([]string{v1alpha1.Finalizer})
	return platform.Apply(ctx, r.client, object)
}

// dropFinalizer lets the profile go. The finalizer may have a second owner, such as the user who has applied an exported
// profile, and an applied configuration would leave it there; so this is a patch that fails when the profile has changed
// since it was read.
func (r *ProfileReconciler) dropFinalizer(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile) error {
	next := profile.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(finalizer string) bool { return finalizer == v1alpha1.Finalizer })
	patch := client.MergeFromWithOptions(profile, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, next, patch, client.FieldOwner(v1alpha1.FieldManager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of LowLatencyNodeProfile %s: %w", profile.Name, err)
	}
	return nil
}

// adopt gives every node that is ours alone its LowLatencyNode, and the label by which the agent comes to it: as many at a
// time as go together. It reports whether others are left.
func (r *ProfileReconciler) adopt(ctx context.Context, w *profileWorld, d *fleet.ProfileDecision) (left bool, err error) {
	var writes []platform.NodeWrite
	for i := range d.Members {
		m := &d.Members[i]
		if len(m.OtherProfiles) > 0 {
			continue
		}
		a := &adoption{
			ProfileReconciler: r, profile: w.Profile.Name, node: m.Node, spec: m.WantedSpec(w.Profile.Name), pool: m.PoolToKeep(),
			former: w.former[m.Name()],
		}
		if len(m.Pools.Names()) == 0 {
			a.also = append(a.also, gate.NoteJoining)
		}
		if !a.isDone(m.Report, m.Node) {
			writes = append(writes, platform.NodeWrite{
				Do: func(ctx context.Context) error { return a.write(ctx, m.Report) }, IsSeen: a.isSeen,
			})
		}
	}
	return platform.WriteNodes(ctx, writes)
}

// adoption is what the operator writes about one node.
type adoption struct {
	*ProfileReconciler
	profile string
	node    *corev1.Node
	spec    v1alpha1.LowLatencyNodeSpec
	// former is the LowLatencyNode of the machine that the node has replaced; nil when there is none.
	former *v1alpha1.LowLatencyNode
	// pool is the machine config pool in which the node stays.
	pool string
	// also is what the write that labels the node changes besides.
	also []func(*corev1.Node)
}

// isDone reports whether writing would change nothing.
func (a *adoption) isDone(report *v1alpha1.LowLatencyNode, node *corev1.Node) bool {
	return fleet.IsUpToDate(report, a.spec, node) && node.Labels[v1alpha1.LabelProfile] == a.profile
}

// write writes what the node lacks. The label comes first: its write fails when the Node has changed since it was read, and
// once there is a LowLatencyNode the Node's conditions are written, too. An agent that comes early waits.
func (a *adoption) write(ctx context.Context, report *v1alpha1.LowLatencyNode) error {
	if a.node.Labels[v1alpha1.LabelProfile] != a.profile {
		if err := platform.LabelNode(ctx, a.client, a.node, a.profile, a.pool, a.also...); err != nil {
			return err
		}
	}
	if fleet.IsUpToDate(report, a.spec, a.node) {
		return nil
	}
	if a.former != nil {
		// With its status: what is reported there proves nothing about the new machine.
		if err := deleteReport(ctx, a.client, a.former); err != nil {
			return err
		}
	}
	return a.applyReport(ctx, a.spec, a.node)
}

// isSeen reports whether the cache shows what was written. A node that is gone meanwhile has nothing to show.
func (a *adoption) isSeen(ctx context.Context) bool {
	key := client.ObjectKeyFromObject(a.node)
	node, err := get(ctx, a.client, key, &corev1.Node{}, client.UnsafeDisableDeepCopy)
	if node == nil || err != nil {
		return true
	}
	report, err := get(ctx, a.client, key, &v1alpha1.LowLatencyNode{}, client.UnsafeDisableDeepCopy)
	return err != nil || a.isDone(report, node)
}

func (r *ProfileReconciler) applyReport(ctx context.Context, spec v1alpha1.LowLatencyNodeSpec, node *corev1.Node) error {
	report, err := apply.Object(reportObject(spec, node))
	if err != nil {
		return err
	}
	return platform.ApplyWhole(ctx, r.client, report)
}

// release takes our labels from the nodes that leave the profile and have nothing of the platform's on them. The platform
// releases the others, as many at a time as may be unavailable.
func (r *ProfileReconciler) release(ctx context.Context, w *profileWorld, d *fleet.ProfileDecision) error {
	if d.Intent.ReadOnly {
		return nil
	}
	for _, name := range d.Intent.Leaving {
		if node := w.Nodes[name]; fleet.IsUntouched(node) {
			if err := platform.LabelNode(ctx, r.client, node, "", ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// reportObject is what the operator writes of a LowLatencyNode.
func reportObject(spec v1alpha1.LowLatencyNodeSpec, node *corev1.Node) *v1alpha1.LowLatencyNode {
	return &v1alpha1.LowLatencyNode{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "LowLatencyNode"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   node.Name,
			Labels: map[string]string{v1alpha1.LabelProfile: spec.Profile},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Node", Name: node.Name, UID: node.UID,
			}},
		},
		Spec: spec,
	}
}

// publishPlans writes the plan of each shape where the agents find it. Plans are immutable and named by their
// hash, so one that exists is right.
func (r *ProfileReconciler) publishPlans(ctx context.Context, w *profileWorld, d *fleet.ProfileDecision) error {
	for i := range d.Intent.Shapes {
		shape := &d.Intent.Shapes[i]
		if w.plans[manifest.PlanConfigMapName(w.Profile.Name, shape.Hash)] {
			continue
		}
		plan, err := planObject(shape, r.namespace)
		if err != nil {
			return err
		}
		if err := platform.Apply(ctx, r.client, plan); err != nil {
			return err
		}
	}
	return nil
}

func planObject(shape *fleet.Shape, namespace string) (*unstructured.Unstructured, error) {
	typed, err := manifest.PlanConfigMap(shape.Plan, shape.Hash, namespace)
	if err != nil {
		return nil, err
	}
	return apply.Object(typed)
}

// prunePlans deletes the plans that no node has and none is to have any more. A node that another profile has taken over
// keeps the plan of its former one until its turn comes.
func (r *ProfileReconciler) prunePlans(ctx context.Context, w *profileWorld, d *fleet.ProfileDecision) error {
	needed := map[string]bool{}
	for i := range d.Intent.Shapes {
		needed[manifest.PlanConfigMapName(w.Profile.Name, d.Intent.Shapes[i].Hash)] = true
	}
	if hasAll(needed, w.plans) {
		return nil
	}
	reports, err := listReports(ctx, r.client)
	if err != nil {
		return err
	}
	for i := range reports {
		needed[reports[i].Spec.PlanConfigMap] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.plans)) {
		if needed[name] {
			continue
		}
		if err := r.deletePlan(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// hasAll reports whether a set has all members of another.
func hasAll(set, members map[string]bool) bool {
	for member := range members {
		if !set[member] {
			return false
		}
	}
	return true
}

func (r *ProfileReconciler) deletePlan(ctx context.Context, name string) error {
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace}}
	if err := r.client.Delete(ctx, plan); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ConfigMap %s: %w", name, err)
	}
	return nil
}
