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
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// poolWorld is what a pool is decided from, and what was made for it, read once from the cache. Everything in it but the
// pool is shared with the cache: not to be changed.
type poolWorld struct {
	fleet.PoolWorld
	// leases is what the Leases of the agents tell besides.
	leases leaseChecks
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
	w := &poolWorld{PoolWorld: fleet.PoolWorld{Pool: pool}}
	for _, read := range []func(context.Context, *poolWorld) error{
		r.gatherPools, r.gatherProfiles, r.gatherNodes, r.gatherReports, r.gatherObjects, r.gatherPublished,
	} {
		if err := read(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (r *PoolReconciler) gatherPools(ctx context.Context, w *poolWorld) error {
	var err error
	if w.Pools, err = livingPools(ctx, r.client); err != nil {
		return err
	}
	w.Incumbents, err = incumbentPools(ctx, r.client, w.Pools)
	return err
}

func (r *PoolReconciler) gatherProfiles(ctx context.Context, w *poolWorld) error {
	profiles, err := livingProfiles(ctx, r.client)
	w.Profiles = profiles
	return err
}

func (r *PoolReconciler) gatherNodes(ctx context.Context, w *poolWorld) error {
	nodes, err := listNodes(ctx, r.client)
	for i := range nodes {
		if fleet.Selects(w.Pool.Spec.NodeSelector, &nodes[i]) {
			w.Nodes = append(w.Nodes, &nodes[i])
		}
	}
	slices.SortFunc(w.Nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return err
}

func (r *PoolReconciler) gatherReports(ctx context.Context, w *poolWorld) error {
	w.Reports = make(map[string]*v1alpha1.LowLatencyNode, len(w.Nodes))
	for _, node := range w.Nodes {
		report, err := get(ctx, r.client, client.ObjectKey{Name: node.Name}, &v1alpha1.LowLatencyNode{}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return err
		}
		if report != nil && fleet.IsOfMachine(report, node) {
			w.Reports[node.Name] = report
		}
	}
	w.leases = r.heartbeats.judge(ctx, w.Reports)
	return nil
}

func (r *PoolReconciler) gatherObjects(ctx context.Context, w *poolWorld) error {
	w.objects = map[objectKey]*unstructured.Unstructured{}
	for _, kind := range r.served.poolObjectKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := r.objects.List(ctx, list, client.MatchingLabels{v1alpha1.LabelBypassPool: w.Pool.Name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("listing the objects of kind %s of BypassNICPool %s: %w", kind.Kind, w.Pool.Name, err)
		}
		for i := range list.Items {
			w.objects[keyOf(&list.Items[i])] = &list.Items[i]
		}
	}
	w.DaemonSet = daemonSetAmong(w.objects)
	return nil
}

// gatherPublished reads what the DRA driver of a pool offers.
func (r *PoolReconciler) gatherPublished(ctx context.Context, w *poolWorld) error {
	if bypass.Allocation(&w.Pool.Spec) != v1alpha1.AllocationDynamic || !r.served.classes {
		return nil
	}
	driver := bypass.DriverName(w.Pool.Name)
	list := &resourcev1.ResourceSliceList{}
	if err := r.client.List(ctx, list, client.MatchingFields{indexDriver: driver}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the ResourceSlices of driver %s: %w", driver, err)
	}
	published := make([]*resourcev1.ResourceSlice, 0, len(list.Items))
	for i := range list.Items {
		published = append(published, &list.Items[i])
	}
	w.Published = fleet.PublishedUnits(w.Pool.Name, published)
	return nil
}

// daemonSetAmong finds the one DaemonSet of a pool; nil when there is none.
func daemonSetAmong(objects map[objectKey]*unstructured.Unstructured) *appsv1.DaemonSet {
	for key, object := range objects {
		daemonSet := &appsv1.DaemonSet{}
		if key.kind.Kind == "DaemonSet" && runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, daemonSet) == nil {
			return daemonSet
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
	// attachments are NetworkAttachmentDefinitions; classes are DeviceClasses, and the ResourceSlices of the same group and version.
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
