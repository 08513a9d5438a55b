// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/render"
)

// keepFinalizer makes sure that the profile cannot disappear before its nodes were given back.
func (r *ProfileReconciler) keepFinalizer(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile) error {
	if slices.Contains(profile.Finalizers, v1alpha1.Finalizer) {
		return nil
	}
	return platform.Apply(ctx, r.client, profileReference(profile, []any{v1alpha1.Finalizer}))
}

// dropFinalizer lets the profile go.
func (r *ProfileReconciler) dropFinalizer(ctx context.Context, profile *v1alpha1.LowLatencyNodeProfile) error {
	return client.IgnoreNotFound(platform.Apply(ctx, r.client, profileReference(profile, []any{})))
}

// profileReference is what the operator writes of a profile outside its status: the finalizers. The UID keeps
// the write from creating a profile anew.
func profileReference(profile *v1alpha1.LowLatencyNodeProfile, finalizers []any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       "LowLatencyNodeProfile",
		"metadata": map[string]any{
			"name": profile.Name, "uid": string(profile.UID), "finalizers": finalizers,
		},
	}}
}

// adopt gives every node that is ours alone its LowLatencyNode, and the label by which the agent comes to it.
func (r *ProfileReconciler) adopt(ctx context.Context, w *profileWorld, d *decision) error {
	for i := range d.members {
		m := &d.members[i]
		if len(m.rivals) > 0 {
			continue
		}
		if spec := wantedSpec(w.profile.Name, m); !isReport(m.report, spec, m.node) {
			if err := platform.Apply(ctx, r.client, reportObject(spec, m.node)); err != nil {
				return err
			}
		}
		if m.node.Labels[v1alpha1.LabelProfile] == w.profile.Name {
			continue
		}
		if err := platform.LabelNode(ctx, r.client, m.node, w.profile.Name, m.node.Labels[v1alpha1.LabelPool]); err != nil {
			return err
		}
	}
	return nil
}

// wantedSpec is the spec of a member's LowLatencyNode.
func wantedSpec(profile string, m *member) v1alpha1.LowLatencyNodeSpec {
	spec := v1alpha1.LowLatencyNodeSpec{Profile: profile, BypassPools: m.pools.names()}
	if m.plan() != nil {
		spec.PlanHash, spec.PlanConfigMap = m.planned.hash, m.planned.configMap
	}
	return spec
}

// isReport tells whether writing the LowLatencyNode would change nothing.
func isReport(report *v1alpha1.LowLatencyNode, spec v1alpha1.LowLatencyNodeSpec, node *corev1.Node) bool {
	return report != nil && equality.Semantic.DeepEqual(report.Spec, spec) && report.Labels[v1alpha1.LabelProfile] == spec.Profile &&
		slices.ContainsFunc(report.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == node.UID })
}

// reportObject is what the operator writes of a LowLatencyNode.
func reportObject(spec v1alpha1.LowLatencyNodeSpec, node *corev1.Node) *unstructured.Unstructured {
	fields := map[string]any{"profile": spec.Profile}
	if spec.PlanHash != "" {
		fields["planHash"], fields["planConfigMap"] = spec.PlanHash, spec.PlanConfigMap
	}
	if len(spec.BypassPools) > 0 {
		fields["bypassPools"] = asList(spec.BypassPools)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       "LowLatencyNode",
		"metadata": map[string]any{
			"name":   node.Name,
			"labels": map[string]any{v1alpha1.LabelProfile: spec.Profile},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "v1", "kind": "Node", "name": node.Name, "uid": string(node.UID),
			}},
		},
		"spec": fields,
	}}
}

// asList is a list of texts as JSON has it.
func asList(texts []string) []any {
	list := make([]any, 0, len(texts))
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

// publishPlans writes the plan of each shape where the agents find it. Plans are immutable and named by their
// hash, so one that exists is right.
func (r *ProfileReconciler) publishPlans(ctx context.Context, w *profileWorld, d *decision) error {
	for i := range d.intent.Shapes {
		shape := &d.intent.Shapes[i]
		if w.plans[render.PlanConfigMapName(w.profile.Name, shape.Hash)] {
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
	// The plan does not depend on the pool, so any valid name does.
	typed, err := render.PlanConfigMap(render.Input{
		Plan: shape.Plan, Pool: render.Pool{Name: shape.Hash}, Namespace: namespace,
	})
	if err != nil {
		return nil, err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("converting the plan %s: %w", shape.Hash, err)
	}
	unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: fields}, nil
}

// prunePlans deletes the plans that no node is to have any more.
func (r *ProfileReconciler) prunePlans(ctx context.Context, w *profileWorld, d *decision) error {
	needed := map[string]bool{}
	for i := range d.intent.Shapes {
		needed[render.PlanConfigMapName(w.profile.Name, d.intent.Shapes[i].Hash)] = true
	}
	for _, report := range w.reports {
		needed[report.Spec.PlanConfigMap] = true
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

func (r *ProfileReconciler) deletePlan(ctx context.Context, name string) error {
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace}}
	if err := r.client.Delete(ctx, plan); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ConfigMap %s: %w", name, err)
	}
	return nil
}
