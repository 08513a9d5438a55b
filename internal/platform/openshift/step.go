// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// step is one write. Exactly one of apply, remove and label is set.
type step struct {
	// apply is written by server-side apply.
	apply *unstructured.Unstructured
	// inspection of what is applied says what others have added to it; nil when that is theirs.
	inspection *platform.Inspection
	// letGo is the version of the machine config pool that the step lets go; "" for other steps.
	letGo string
	// remove is deleted if it is still the same object.
	remove *unstructured.Unstructured
	// label is given the labels profile and machine config pool.
	label         *corev1.Node
	profile, pool string
}

func (s step) do(ctx context.Context, writer client.Client, keeper *platform.Keeper) error {
	switch {
	case s.inspection != nil:
		return keeper.Write(ctx, writer, s.inspection)
	case s.apply != nil:
		return platform.Apply(ctx, writer, s.apply)
	case s.remove != nil:
		return remove(ctx, writer, s.remove)
	default:
		return platform.LabelNode(ctx, writer, s.label, s.profile, s.pool)
	}
}

// isLabel reports whether the step is about one node, and none of a sequence of such steps counts on another.
func (s step) isLabel() bool { return s.label != nil }

// labelsFirst is with how many steps about nodes the steps begin.
func labelsFirst(steps []step) int {
	if end := slices.IndexFunc(steps, func(s step) bool { return !s.isLabel() }); end >= 0 {
		return end
	}
	return len(steps)
}

// isSeen reports whether the cache shows the labels that the step has given to its node. A node that is gone has none.
func (s step) isSeen(ctx context.Context, cache client.Reader) bool {
	node := &corev1.Node{}
	if err := cache.Get(ctx, client.ObjectKeyFromObject(s.label), node, client.UnsafeDisableDeepCopy); err != nil {
		return apierrors.IsNotFound(err)
	}
	return node.Labels[v1alpha1.LabelProfile] == s.profile && node.Labels[v1alpha1.LabelPool] == s.pool
}

func remove(ctx context.Context, writer client.Client, object *unstructured.Unstructured) error {
	uid := object.GetUID()
	err := writer.Delete(ctx, object.DeepCopy(), client.Preconditions{UID: &uid})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", platform.Describe(object), err)
	}
	return nil
}

// String says what the step does, for logs and tests.
func (s step) String() string {
	switch {
	case s.apply != nil:
		paused, _, err := unstructured.NestedBool(s.apply.Object, "spec", "paused")
		if err == nil && paused {
			return "pause " + s.apply.GetName()
		}
		return "apply " + platform.Describe(s.apply)
	case s.remove != nil:
		return "remove " + platform.Describe(s.remove)
	default:
		return fmt.Sprintf("label %s profile=%q pool=%q", s.label.Name, s.profile, s.pool)
	}
}

// poolReference is the machine config pool as an object without fields: applied as it is, it gives up every field that
// the operator has owned in a machine config pool of somebody else.
func poolReference(pool *mcfgv1.MachineConfigPool) *unstructured.Unstructured {
	return apply.Reference(mcfgv1.GroupVersion.WithKind("MachineConfigPool"), pool)
}

// paused returns a copy of a machine config pool with which the operator holds it, and says for which plan.
func paused(pool *unstructured.Unstructured, planHash string) *unstructured.Unstructured {
	held := pool.DeepCopy()
	annotations := held.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationPausedFor] = planHash
	held.SetAnnotations(annotations)
	spec, ok := held.Object["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		held.Object["spec"] = spec
	}
	spec["paused"] = true
	return held
}

// owns reports whether the operator owns a field of the machine config pool's spec, according to the API server's record.
// A field may have several owners: a machine config pool that its administrator has paused, too, stays paused when the
// operator lets go of it.
func owns(pool *mcfgv1.MachineConfigPool, field string) bool {
	for _, entry := range pool.ManagedFields {
		if platform.IsOwnApply(entry) && entry.FieldsV1 != nil && hasField(entry.FieldsV1.GetRawBytes(), field) {
			return true
		}
	}
	return false
}

// heldByUs reports whether the operator itself has paused the machine config pool.
func heldByUs(pool *mcfgv1.MachineConfigPool) bool {
	return pool != nil && pool.Spec.Paused && owns(pool, "paused")
}

// hasField looks for a field of the spec in the API server's notation of field sets.
func hasField(fields []byte, name string) bool {
	var set struct {
		Spec map[string]json.RawMessage `json:"f:spec"`
	}
	if err := json.Unmarshal(fields, &set); err != nil {
		return false
	}
	_, found := set.Spec["f:"+name]
	return found
}
