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

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// unrenderable is an error that only another spec or another start of the operator mends.
type unrenderable struct{ error }

func (e unrenderable) Unwrap() error { return e.error }

// render makes the objects of the pool, owned by it.
func (r *PoolReconciler) render(w *poolWorld, d *poolDecision) ([]*unstructured.Unstructured, error) {
	if r.image == "" {
		return nil, unrenderable{errors.New("the image of the device plugin is not known: " +
			"start the operator's manager with --image or the environment variable OPERATOR_IMAGE")}
	}
	objects, err := manifests.PoolObjects(manifests.PoolInput{
		Pool: w.pool, Config: d.content, Image: r.image, OperatorNamespace: r.namespace, AgentNamespace: r.agentNamespace,
		Draining: isDraining(w, d), Nameless: isNameless(w, d),
	})
	if err != nil {
		return nil, unrenderable{err}
	}
	for _, object := range objects {
		if err := own(object, w.pool); err != nil {
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

// pluginCounts says on how many nodes the device plugin or the DRA driver is to run and is ready.
type pluginCounts struct {
	wanted, ready int32
	// program says which of the two it is.
	program string
}

func (c pluginCounts) starting() bool { return c.ready < c.wanted }

// isDraining tells whether the DRA driver of a pool that is to allocate by the device plugin has to stay: the kubelet
// cannot end a pod with a claim without the driver that prepared it. It goes when every one of its pods drains, so that
// no claim can come, every agent has reported for the current spec, and none of them sees a claim.
func isDraining(w *poolWorld, d *poolDecision) bool {
	if bypass.Allocation(&w.pool.Spec) != v1alpha1.AllocationDevicePlugin {
		return false
	}
	daemonSet := daemonSetOf(w)
	if daemonSet == nil {
		return false
	}
	dynamic, draining := manifests.IsDriver(daemonSet)
	if !dynamic {
		return false
	}
	if !draining || daemonSet.Status.ObservedGeneration != daemonSet.Generation || countPlugins(w).starting() {
		return true
	}
	return slices.ContainsFunc(d.nodes, func(n poolNode) bool {
		return n.isServed(w.pool.Name) && !n.isReporting(w.pool) || n.hasUsersBy(v1alpha1.AllocationDynamic)
	})
}

// isNameless tells whether pods cannot ask the DRA driver by the name of the resource yet. A kubelet goes on to give
// hints for devices of a device plugin that has left, of which it then has none: with the topology policies restricted and
// single-numa-node the pod fails for good, though its NIC was allocated by a claim (kubelet: pkg/kubelet/cm/devicemanager,
// GetPodTopologyHints; seen with version 1.37.1). It forgets the plugin five minutes after it has left
// (endpointStopGracePeriod), and when no container holds a device of it any more. Pods that ask by the name wait until then.
func isNameless(w *poolWorld, d *poolDecision) bool {
	return bypass.Allocation(&w.pool.Spec) == v1alpha1.AllocationDynamic && slices.ContainsFunc(d.nodes, func(n poolNode) bool {
		return n.remembers(w.pool) > 0 || n.hasUsersBy(v1alpha1.AllocationDevicePlugin)
	})
}

// daemonSetOf is the DaemonSet of the pool; nil when there is none.
func daemonSetOf(w *poolWorld) *appsv1.DaemonSet {
	for key, object := range w.objects {
		daemonSet := &appsv1.DaemonSet{}
		if key.kind.Kind == "DaemonSet" && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, daemonSet) == nil {
			return daemonSet
		}
	}
	return nil
}

// countPlugins reads what the DaemonSet of the pool says about its current spec.
func countPlugins(w *poolWorld) pluginCounts {
	daemonSet := daemonSetOf(w)
	if daemonSet == nil {
		return pluginCounts{}
	}
	program := "device plugin"
	if dynamic, _ := manifests.IsDriver(daemonSet); dynamic {
		program = "driver for Dynamic Resource Allocation"
	}
	return pluginCounts{
		wanted:  daemonSet.Status.DesiredNumberScheduled,
		ready:   min(daemonSet.Status.NumberReady, daemonSet.Status.UpdatedNumberScheduled),
		program: program,
	}
}
