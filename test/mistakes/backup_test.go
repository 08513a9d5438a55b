// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
)

// deletions are mistakes with the word delete in them, and restored backups.
func deletions() []mistake {
	profile, pool := func() client.Object { return baseProfile() }, func() client.Object { return basePool() }
	return []mistake{
		// Nodes are given back, and taken again: each may reboot for either.
		{name: "profile deleted --cascade=foreground, and applied again", reboots: 2, make: replaced(profile, metav1.DeletePropagationForeground)},
		{name: "profile deleted --cascade=orphan, and applied again", reboots: 2, make: replaced(profile, metav1.DeletePropagationOrphan)},
		{name: "profile replaced --force", reboots: 2, make: replaced(profile, metav1.DeletePropagationBackground)},
		{name: "pool deleted --cascade=foreground, and applied again", reboots: 2, make: replaced(pool, metav1.DeletePropagationForeground)},
		{name: "pool deleted --cascade=orphan, and applied again", reboots: 2, make: replaced(pool, metav1.DeletePropagationOrphan)},
		{name: "pool replaced --force", reboots: 2, make: replaced(pool, metav1.DeletePropagationBackground)},
		{name: "ConfigMaps of the plans in force deleted", make: deletePlans},
		{name: "ConfigMaps of the plans in force deleted while the manager is away", make: withoutManager(deletePlans)},
		{name: "all LowLatencyNodes deleted", make: deleteReports},
		{name: "all LowLatencyNodes deleted while the manager is away", make: withoutManager(deleteReports)},
		{name: "all objects deleted in the wrong order while the manager is away", reboots: 1, reboots2: 1, make: deleteBackwards},
		{name: "all objects restored from a backup, in the wrong order", make: withoutManager(restoreBackup(false))},
		{name: "all objects restored from a backup, with the owners of former objects", make: withoutManager(restoreBackup(true))},
	}
}

// replaced deletes an object with a propagation policy, waits until it has gone, and makes it again.
func replaced(make func() client.Object, policy metav1.DeletionPropagation) func(*world) error {
	return func(w *world) error {
		object := make()
		if err := w.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("reading %s: %w", object.GetName(), err)
		}
		uid := object.GetUID()
		if err := w.Client.Delete(w.ctx, object, client.PropagationPolicy(policy)); err != nil {
			return fmt.Errorf("deleting %s: %w", object.GetName(), err)
		}
		if err := w.awaitGone(object, uid); err != nil {
			return err
		}
		return w.create(make())
	}
}

// withoutManager does something while the manager is away.
func withoutManager(do func(*world) error) func(*world) error {
	return func(w *world) error {
		w.stopOperator()
		err := do(w)
		// Agents look at their hosts meanwhile.
		time.Sleep(3 * agentPace().Interval)
		return errors.Join(err, w.startOperator())
	}
}

func deletePlans(w *world) error {
	if err := w.Client.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace(cluster.Namespace), client.HasLabels{v1alpha1.LabelProfile}); err != nil {
		return fmt.Errorf("deleting the plans: %w", err)
	}
	return nil
}

func deleteReports(w *world) error {
	if err := w.Client.DeleteAllOf(w.ctx, &v1alpha1.LowLatencyNode{}); err != nil {
		return fmt.Errorf("deleting the LowLatencyNodes: %w", err)
	}
	return nil
}

// deleteBackwards deletes what the user and the operator have made from the end, and waits until it has gone once the manager is
// back.
func deleteBackwards(w *world) error {
	profile, pool := baseProfile(), basePool()
	for _, object := range []client.Object{profile, pool} {
		if err := w.Client.Get(w.ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return fmt.Errorf("reading %s: %w", object.GetName(), err)
		}
	}
	profileUID, poolUID := profile.UID, pool.UID
	err := withoutManager(func(w *world) error {
		return errors.Join(deletePlans(w), deleteReports(w), w.remove(pool), w.remove(profile))
	})(w)
	return errors.Join(err, w.awaitGone(pool, poolUID), w.awaitGone(profile, profileUID))
}

// savedKind is a kind of objects that a backup holds.
type savedKind struct {
	kind schema.GroupVersionKind
	// label is on those of its objects that are the operator's; "" for all.
	label string
}

// savedKinds are all kinds of objects of the operator but what the platform boots nodes with, the ones that need others
// first.
func savedKinds() []savedKind {
	configMap, daemonSet := corev1.SchemeGroupVersion.WithKind("ConfigMap"), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	return []savedKind{
		{v1alpha1.GroupVersion.WithKind("LowLatencyNode"), ""}, {configMap, v1alpha1.LabelProfile}, {configMap, v1alpha1.LabelBypassPool},
		{daemonSet, v1alpha1.LabelBypassPool}, {v1alpha1.GroupVersion.WithKind("BypassNICPool"), ""},
		{v1alpha1.GroupVersion.WithKind("LowLatencyNodeProfile"), ""},
	}
}

// save reads what a backup holds.
func (w *world) save() ([]unstructured.Unstructured, error) {
	var saved []unstructured.Unstructured
	for _, s := range savedKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(s.kind.GroupVersion().WithKind(s.kind.Kind + "List"))
		var options []client.ListOption
		if s.label != "" {
			options = append(options, client.HasLabels{s.label})
		}
		if err := w.Client.List(w.ctx, list, options...); err != nil {
			return nil, fmt.Errorf("saving %s: %w", s.kind.Kind, err)
		}
		for i := range list.Items {
			known := func(other unstructured.Unstructured) bool { return other.GetUID() == list.Items[i].GetUID() }
			if !slices.ContainsFunc(saved, known) {
				saved = append(saved, list.Items[i])
			}
		}
	}
	return saved, nil
}

// restoreBackup loses all objects of the operator, and makes them again from a backup, which begins with those that need the
// others. A backup holds no status, and no metadata that the server gives; owners only where it is asked for.
func restoreBackup(owners bool) func(*world) error {
	return func(w *world) error {
		saved, err := w.save()
		if err != nil {
			return err
		}
		if err := w.lose(saved); err != nil {
			return err
		}
		for i := range saved {
			if err := w.createOnce(stripped(&saved[i], owners)); err != nil {
				return fmt.Errorf("restoring %s %s: %w", saved[i].GetKind(), saved[i].GetName(), err)
			}
		}
		return nil
	}
}

// lose deletes objects at once, whatever their finalizers are for.
func (w *world) lose(saved []unstructured.Unstructured) error {
	for i := range saved {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(saved[i].GroupVersionKind())
		object.SetNamespace(saved[i].GetNamespace())
		object.SetName(saved[i].GetName())
		object.SetFinalizers(saved[i].GetFinalizers())
		if err := errors.Join(w.dropFinalizers(object), w.remove(object), w.awaitGone(object, saved[i].GetUID())); err != nil {
			return err
		}
	}
	return nil
}

// dropFinalizers takes all finalizers from an object.
func (w *world) dropFinalizers(object *metav1.PartialObjectMetadata) error {
	if len(object.Finalizers) == 0 {
		return nil
	}
	before := object.DeepCopy()
	object.Finalizers = nil
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

// stripped is what a backup holds of an object.
func stripped(object *unstructured.Unstructured, owners bool) *unstructured.Unstructured {
	made := object.DeepCopy()
	unstructured.RemoveNestedField(made.Object, "status")
	unstructured.RemoveNestedField(made.Object, "metadata")
	made.SetNamespace(object.GetNamespace())
	made.SetName(object.GetName())
	made.SetLabels(object.GetLabels())
	made.SetAnnotations(object.GetAnnotations())
	if owners {
		made.SetOwnerReferences(object.GetOwnerReferences())
	}
	return made
}
