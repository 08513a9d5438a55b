// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// unrenderable is an error that only another spec or another start of the operator mends.
type unrenderable struct{ error }

func (e unrenderable) Unwrap() error { return e.error }

// occupied is an error that another writer of an object has to mend. It is tried again.
type occupied struct{ error }

func (e occupied) Unwrap() error { return e.error }

// render makes the objects of the pool, owned by it.
func (r *PoolReconciler) render(w *poolWorld, d *fleet.PoolDecision) ([]*unstructured.Unstructured, error) {
	if r.image == "" {
		return nil, unrenderable{errors.New("the image of the device plugin is not known: " +
			"start the operator's manager with --image, or as a Pod with the environment variable POD_NAME")}
	}
	objects, err := manifests.PoolObjects(manifests.PoolInput{
		Pool: w.Pool, Config: d.Content, Image: r.image, OperatorNamespace: r.namespace, AgentNamespace: r.agentNamespace,
		Draining: d.Draining, Nameless: d.Nameless,
		Withheld: d.Content.ResourceOwner != "",
	})
	if err != nil {
		return nil, unrenderable{err}
	}
	for _, object := range objects {
		if err := own(object, w.Pool); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// own makes the pool the owner of an object, and notes what the object is.
func own(object *unstructured.Unstructured, pool *v1alpha1.BypassNICPool) error {
	fields, err := json.Marshal(object.Object)
	if err != nil {
		return fmt.Errorf("printing %s: %w", platform.Describe(object), err)
	}
	digest := sha256.Sum256(fields)
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationDigest] = hex.EncodeToString(digest[:8])
	object.SetAnnotations(annotations)
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "BypassNICPool", Name: pool.Name, UID: pool.UID,
	}})
	return nil
}

// among takes the objects away that the API server does not know.
func (k servedKinds) among(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	kinds := k.poolObjectKinds()
	return slices.DeleteFunc(slices.Clone(objects), func(object *unstructured.Unstructured) bool {
		return !slices.Contains(kinds, object.GroupVersionKind())
	})
}

// prune deletes what was made for the pool and is not wanted any more.
func (r *PoolReconciler) prune(ctx context.Context, w *poolWorld, wanted []*unstructured.Unstructured) error {
	keep := make(map[objectKey]bool, len(wanted))
	for _, object := range wanted {
		keep[keyOf(object)] = true
	}
	stale := slices.SortedFunc(maps.Keys(w.objects), func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(a.kind.Kind, b.kind.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range stale {
		if keep[key] {
			continue
		}
		object := w.objects[key].DeepCopy()
		if err := r.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting %s in namespace %s: %w", platform.Describe(object), key.Namespace, err)
		}
	}
	return nil
}
