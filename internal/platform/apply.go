// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
)

// Apply writes the object by server-side apply and takes over fields that somebody else has set. The object
// itself stays as it is.
func Apply(ctx context.Context, writer client.Client, object *unstructured.Unstructured) error {
	_, err := applied(ctx, writer, object)
	return err
}

// applied applies the object and returns the API server's answer.
func applied(ctx context.Context, writer client.Client, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	answer := object.DeepCopy()
	err := writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(answer), client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	if err != nil {
		return nil, fmt.Errorf("applying %s: %w", Describe(object), err)
	}
	return answer, nil
}

// ApplyWhole writes an object whose whole content is the operator's, as Apply does, and takes out what others have added,
// of which the answer tells. It is for kinds without defaults.
func ApplyWhole(ctx context.Context, writer client.Client, object *unstructured.Unstructured) error {
	answer, err := applied(ctx, writer, object)
	if err != nil {
		return err
	}
	found := additions(answer, object)
	if len(found) == 0 {
		return nil
	}
	return remove(ctx, writer, answer, found)
}

// remove takes additions out of an object as it was read, and leaves in it what the API server has made of it.
func remove(ctx context.Context, writer client.Client, live *unstructured.Unstructured, found []addition) error {
	patch, err := json.Marshal(removalOf(live, found))
	if err != nil {
		return fmt.Errorf("printing the patch of %s: %w", Describe(live), err)
	}
	described := Describe(live)
	if err := writer.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("taking %s out of %s: %w", listed(found), described, err)
	}
	return nil
}

// ApplyStatus replaces what a field manager has said in the status of an existing object, a pointer to a struct, by
// server-side apply. The error is that of the API server or of the conversion.
func ApplyStatus(ctx context.Context, writer client.Client, kind schema.GroupVersionKind, existing client.Object, status any) error {
	return ApplyStatusAs(ctx, writer, v1alpha1.FieldManager, kind, existing, status)
}

// ApplyStatusAs does so for another field manager than the usual one, which keeps what that has said.
func ApplyStatusAs(ctx context.Context, writer client.Client, manager client.FieldOwner, kind schema.GroupVersionKind, existing client.Object, status any) error {
	object, err := apply.Status(kind, existing, status)
	if err != nil {
		return err
	}
	return writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), manager, client.ForceOwnership)
}

// Describe names an object as people do: "MachineConfig 50-lowlatency-trading".
func Describe(object client.Object) string {
	return object.GetObjectKind().GroupVersionKind().Kind + " " + object.GetName()
}

// LabelNode makes the node carry the labels of a profile and a machine config pool; "" takes a label away, whoever has put
// it there: an applied configuration could only give up what the operator owns. Both are written at once, so that the
// node is never in two of them and never in none on the way. The write fails with a conflict when the node has changed
// since it was read, which keeps two profiles from overwriting each other's decision. What else is to be changed by the same
// write is done to a copy of the node.
func LabelNode(ctx context.Context, writer client.Client, node *corev1.Node, profile, pool string, also ...func(*corev1.Node)) error {
	next := node.DeepCopy()
	for _, change := range also {
		change(next)
	}
	if next.Labels == nil {
		next.Labels = map[string]string{}
	}
	for key, value := range map[string]string{v1alpha1.LabelProfile: profile, v1alpha1.LabelPool: pool} {
		next.Labels[key] = value
		if value == "" {
			delete(next.Labels, key)
		}
	}
	if err := PatchNode(ctx, writer, node, next, true); err != nil {
		return fmt.Errorf("writing the labels of Node %s: %w", node.Name, err)
	}
	return nil
}
