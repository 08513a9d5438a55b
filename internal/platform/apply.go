// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// FieldManager owns every field that the operator writes.
const FieldManager = "lowlatency-operator"

// Apply writes the object by server-side apply and takes over fields that somebody else has set. The object
// itself stays as it is.
func Apply(ctx context.Context, writer client.Client, object *unstructured.Unstructured) error {
	err := writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
		client.FieldOwner(FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("applying %s: %w", Describe(object), err)
	}
	return nil
}

// Describe names an object as people do: "MachineConfig 50-lowlatency-trading".
func Describe(object client.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
}

// LabelNode makes the node carry the labels of a profile and a pool; "" takes a label away. Both are
// written at once, so that the node is never in two pools and never in none on the way. The write fails with
// a conflict when the node has changed since it was read, which keeps two profiles from overwriting each
// other's decision.
func LabelNode(ctx context.Context, writer client.Client, node *corev1.Node, profile, pool string) error {
	labels := map[string]any{}
	for key, value := range map[string]string{v1alpha1.LabelProfile: profile, v1alpha1.LabelPool: pool} {
		if value != "" {
			labels[key] = value
		}
	}
	return Apply(ctx, writer, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{
			"name":            node.Name,
			"uid":             string(node.UID),
			"resourceVersion": node.ResourceVersion,
			"labels":          labels,
		},
	}})
}
