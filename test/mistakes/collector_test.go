// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"errors"
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// collectedKinds are what owns something or is owned here.
func collectedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Node"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"), coordinationv1.SchemeGroupVersion.WithKind("Lease"),
		v1alpha1.GroupVersion.WithKind("LowLatencyNodeProfile"), v1alpha1.GroupVersion.WithKind("BypassNICPool"),
		v1alpha1.GroupVersion.WithKind("LowLatencyNode"),
		mcfgv1.GroupVersion.WithKind("KubeletConfig"), mcfgv1.GroupVersion.WithKind("MachineConfig"),
	}
}

// collectGarbage does what the garbage collector of kube-controller-manager does, which a lone API server lacks, until the
// world ends: it deletes what nobody owns any more, and ends deletions that cascade in the foreground or leave orphans.
func (w *world) collectGarbage() {
	for w.ctx.Err() == nil {
		// What fails is tried again.
		_ = w.collectOnce()
		time.Sleep(4 * pace)
	}
}

func (w *world) collectOnce() error {
	var all []metav1.PartialObjectMetadata
	for _, kind := range collectedKinds() {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := w.Client.List(w.ctx, list); err != nil {
			return fmt.Errorf("listing %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(kind)
		}
		all = append(all, list.Items...)
	}
	failures := make([]error, 0, len(all))
	for i := range all {
		failures = append(failures, w.endDeletion(&all[i], all), w.collectOrphan(&all[i], all))
	}
	return errors.Join(failures...)
}

// collectOrphan deletes an object all of whose owners have gone.
func (w *world) collectOrphan(object *metav1.PartialObjectMetadata, all []metav1.PartialObjectMetadata) error {
	if len(object.OwnerReferences) == 0 || !object.DeletionTimestamp.IsZero() {
		return nil
	}
	for _, owner := range object.OwnerReferences {
		if slices.ContainsFunc(all, func(o metav1.PartialObjectMetadata) bool { return o.UID == owner.UID }) {
			return nil
		}
	}
	// It may have got another owner in the meantime.
	err := w.Client.Delete(w.ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	return client.IgnoreNotFound(err)
}

// endDeletion does to the dependents of an object what its deletion asks for, and takes that finalizer away.
func (w *world) endDeletion(object *metav1.PartialObjectMetadata, all []metav1.PartialObjectMetadata) error {
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
			if err := w.Client.Patch(w.ctx, &all[i], client.MergeFrom(before)); err != nil {
				return fmt.Errorf("leaving %s: %w", all[i].Name, err)
			}
		case slices.Contains(object.Finalizers, metav1.FinalizerDeleteDependents):
			if err := w.Client.Delete(w.ctx, &all[i]); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s: %w", all[i].Name, err)
			}
		}
	}
	return w.dropFinalizers(object, metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents)
}

// dropFinalizers takes finalizers from an object; all of them when none is named.
func (w *world) dropFinalizers(object *metav1.PartialObjectMetadata, names ...string) error {
	left := slices.DeleteFunc(slices.Clone(object.Finalizers), func(name string) bool { return len(names) == 0 || slices.Contains(names, name) })
	if len(left) == len(object.Finalizers) {
		return nil
	}
	before := object.DeepCopy()
	object.Finalizers = left
	if err := client.IgnoreNotFound(w.Client.Patch(w.ctx, object, client.MergeFrom(before))); err != nil {
		return fmt.Errorf("taking finalizers from %s: %w", object.Name, err)
	}
	return nil
}

// awaitGone waits until an object of some UID has gone. An API server with too much to do is asked again.
func (w *world) awaitGone(object client.Object, uid types.UID) error {
	deadline := time.Now().Add(*patience)
	for {
		err := w.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || err == nil && object.GetUID() != uid {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("stuck: %s is Terminating for ever, for %v", object.GetName(), object.GetFinalizers()), err)
		}
		time.Sleep(pace)
	}
}
