// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// poolWorld is what a pool is decided from, read once from the cache. Everything in it but the pool is shared with
// the cache: not to be changed.
type poolWorld struct {
	pool *v1alpha1.BypassNICPool
	// pools are all pools that are not being deleted, this one included, in ascending order of their names.
	pools []*v1alpha1.BypassNICPool
	// profiles are the profiles that are not being deleted.
	profiles []*v1alpha1.LowLatencyNodeProfile
	// nodes are those that the pool selects, in ascending order of their names.
	nodes []*corev1.Node
	// reports are the LowLatencyNodes of these nodes by name. Of what silent agents have said there is what counts.
	reports map[string]*v1alpha1.LowLatencyNode
	// beat is what the Leases of the agents tell besides.
	beat heard
	// objects are those that were made for the pool.
	objects map[objectKey]*unstructured.Unstructured
}

// objectKey identifies an object.
type objectKey struct {
	kind schema.GroupVersionKind
	client.ObjectKey
}

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{kind: object.GroupVersionKind(), ObjectKey: client.ObjectKeyFromObject(object)}
}

func (r *PoolReconciler) gather(ctx context.Context, pool *v1alpha1.BypassNICPool) (*poolWorld, error) {
	w := &poolWorld{pool: pool}
	for _, read := range []func(context.Context, *poolWorld) error{
		r.gatherPools, r.gatherProfiles, r.gatherNodes, r.gatherReports, r.gatherObjects,
	} {
		if err := read(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (r *PoolReconciler) gatherPools(ctx context.Context, w *poolWorld) error {
	pools, err := livingPools(ctx, r.client)
	w.pools = pools
	return err
}

func (r *PoolReconciler) gatherProfiles(ctx context.Context, w *poolWorld) error {
	var profiles v1alpha1.LowLatencyNodeProfileList
	if err := r.client.List(ctx, &profiles, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing LowLatencyNodeProfiles: %w", err)
	}
	for i := range profiles.Items {
		if profile := &profiles.Items[i]; profile.DeletionTimestamp.IsZero() {
			w.profiles = append(w.profiles, profile)
		}
	}
	return nil
}

func (r *PoolReconciler) gatherNodes(ctx context.Context, w *poolWorld) error {
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; matches(w.pool.Spec.NodeSelector, node) {
			w.nodes = append(w.nodes, node)
		}
	}
	slices.SortFunc(w.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (r *PoolReconciler) gatherReports(ctx context.Context, w *poolWorld) error {
	w.reports = make(map[string]*v1alpha1.LowLatencyNode, len(w.nodes))
	for _, node := range w.nodes {
		var report v1alpha1.LowLatencyNode
		err := r.client.Get(ctx, client.ObjectKey{Name: node.Name}, &report, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("reading LowLatencyNode %s: %w", node.Name, err)
		default:
			w.reports[node.Name] = &report
		}
	}
	w.beat = r.beats.judge(ctx, w.reports)
	return nil
}

func (r *PoolReconciler) gatherObjects(ctx context.Context, w *poolWorld) error {
	w.objects = map[objectKey]*unstructured.Unstructured{}
	for _, kind := range r.served.poolObjectKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := r.objects.List(ctx, list, client.MatchingLabels{v1alpha1.LabelBypassPool: w.pool.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("listing the objects of kind %s of BypassNICPool %s: %w", kind.Kind, w.pool.Name, err)
		}
		for i := range list.Items {
			w.objects[keyOf(&list.Items[i])] = &list.Items[i]
		}
	}
	return nil
}

// attachmentKind is the kind by which Multus gives pods further interfaces.
func attachmentKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}
}

// classKind is the kind by which pods ask for NICs that are allocated dynamically. It is served since Kubernetes 1.34.
func classKind() schema.GroupVersionKind {
	return resourcev1.SchemeGroupVersion.WithKind("DeviceClass")
}

// servedKinds says which kinds of objects, made for pools, the API server may lack.
type servedKinds struct {
	// attachments are NetworkAttachmentDefinitions, classes DeviceClasses.
	attachments, classes bool
}

func findServedKinds(mapper meta.RESTMapper) (servedKinds, error) {
	attachments, err := platform.Serves(mapper, attachmentKind())
	if err != nil {
		return servedKinds{}, err
	}
	classes, err := platform.Serves(mapper, classKind())
	return servedKinds{attachments: attachments, classes: classes}, err
}

// poolObjectKinds are the kinds of the objects that are made for pools.
func (k servedKinds) poolObjectKinds() []schema.GroupVersionKind {
	return append(k.optional(), corev1.SchemeGroupVersion.WithKind("ConfigMap"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
}

// optional are the kinds that are there and need not be.
func (k servedKinds) optional() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	if k.attachments {
		kinds = append(kinds, attachmentKind())
	}
	if k.classes {
		kinds = append(kinds, classKind())
	}
	return kinds
}
