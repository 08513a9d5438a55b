// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// GarbageCollector does what the garbage collector of kube-controller-manager does, which a lone API server lacks, for the
// kinds that own something or are owned here: it deletes what has lost its owners, and ends deletions that cascade in the
// foreground or leave orphans.
type GarbageCollector struct {
	Client client.Client
	Clock  clock.WithTicker
	// Interval between two looks at the cluster.
	Interval time.Duration
}

// Run works until the context ends. What fails is tried again.
func (g *GarbageCollector) Run(ctx context.Context) error {
	return repeat(ctx, g.Clock, g.Interval, g.Once)
}

// Once collects what is garbage now.
func (g *GarbageCollector) Once(ctx context.Context) error {
	var all []metav1.PartialObjectMetadata
	for _, kind := range collectedKinds() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := g.Client.List(ctx, list); err != nil {
			return fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
		}
		all = append(all, list.Items...)
	}
	failures := make([]error, 0, len(all))
	for i := range all {
		failures = append(failures, g.endDeletion(ctx, &all[i], all), g.collect(ctx, &all[i], all))
	}
	return errors.Join(failures...)
}

// collectedKinds are what owns something or is owned here.
func collectedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		v1alpha1.GroupVersion.WithKind("LowLatencyNodeProfile"), v1alpha1.GroupVersion.WithKind("BypassNICPool"),
		v1alpha1.GroupVersion.WithKind("LowLatencyNode"),
		v1alpha1.GroupVersion.WithKind("LatencyTest"), batchv1.SchemeGroupVersion.WithKind("Job"), corev1.SchemeGroupVersion.WithKind("Pod"),
		mcfgv1.GroupVersion.WithKind("KubeletConfig"), mcfgv1.GroupVersion.WithKind("MachineConfig"),
	}
}

// collect deletes an object that has lost all its owners.
func (g *GarbageCollector) collect(ctx context.Context, object *metav1.PartialObjectMetadata, all []metav1.PartialObjectMetadata) error {
	if len(object.OwnerReferences) == 0 || !object.DeletionTimestamp.IsZero() {
		return nil
	}
	for i := range object.OwnerReferences {
		lost, err := g.isLost(ctx, &object.OwnerReferences[i], object.Namespace, all)
		if err != nil || !lost {
			return err
		}
	}
	// It may have got another owner in the meantime.
	err := g.Client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("collecting %s %s: %w", object.Kind, object.Name, err)
	}
	return nil
}

// isLost reports whether an owner is no more. One that was made after its kind was listed is looked for once more; one of another
// kind is taken to exist.
func (g *GarbageCollector) isLost(
	ctx context.Context, owner *metav1.OwnerReference, namespace string, all []metav1.PartialObjectMetadata,
) (bool, error) {
	kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	if !slices.Contains(collectedKinds(), kind) || slices.ContainsFunc(all, func(o metav1.PartialObjectMetadata) bool { return o.UID == owner.UID }) {
		return false, nil
	}
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(kind)
	isNamespaced, err := g.Client.IsObjectNamespaced(found)
	if err != nil {
		return false, fmt.Errorf("looking for the scope of %s: %w", owner.Kind, err)
	}
	key := client.ObjectKey{Name: owner.Name}
	if isNamespaced {
		key.Namespace = namespace
	}
	if err := g.Client.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("looking for the owner %s %s: %w", owner.Kind, owner.Name, err)
	}
	return found.UID != owner.UID, nil
}

// endDeletion does to the dependents of an object what its deletion asks for, and takes that finalizer away.
func (g *GarbageCollector) endDeletion(ctx context.Context, object *metav1.PartialObjectMetadata, all []metav1.PartialObjectMetadata) error {
	if object.DeletionTimestamp.IsZero() {
		return nil
	}
	for i := range all {
		owns := func(o metav1.OwnerReference) bool { return o.UID == object.UID }
		if !slices.ContainsFunc(all[i].OwnerReferences, owns) {
			continue
		}
		switch {
		case slices.Contains(object.Finalizers, metav1.FinalizerOrphanDependents):
			before := all[i].DeepCopy()
			all[i].OwnerReferences = slices.DeleteFunc(all[i].OwnerReferences, owns)
			if err := g.Client.Patch(ctx, &all[i], client.MergeFrom(before)); err != nil {
				return fmt.Errorf("leaving %s %s: %w", all[i].Kind, all[i].Name, err)
			}
		case slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents):
			if err := g.Client.Delete(ctx, &all[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s %s: %w", all[i].Kind, all[i].Name, err)
			}
		}
	}
	return g.dropFinalizers(ctx, object)
}

// dropFinalizers takes those of the garbage collector from an object.
func (g *GarbageCollector) dropFinalizers(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	own := []string{metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	left := slices.DeleteFunc(slices.Clone(object.Finalizers), func(name string) bool { return slices.Contains(own, name) })
	if len(left) == len(object.Finalizers) {
		return nil
	}
	before := object.DeepCopy()
	object.Finalizers = left
	if err := client.IgnoreNotFound(g.Client.Patch(ctx, object, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("taking finalizers from %s %s: %w", object.Kind, object.Name, err)
	}
	return nil
}
