// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"fmt"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/changes"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/rollout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

const (
	// indexProfile is the field by which LowLatencyNodes are found.
	indexProfile = "spec.profile"
	// indexDriver is the field by which ResourceSlices are found.
	indexDriver = "spec.driver"
)

// ManagerOptions completes the options of a manager, so that its cache holds only what the reconcilers read:
// of the kinds that others write, too, the objects that carry a profile's label, and of Nodes a fraction.
func ManagerOptions(options ctrl.Options, own Options) ctrl.Options {
	options.NewCache = func(config *rest.Config, cached cache.Options) (cache.Cache, error) {
		kind, err := platform.Detect(cached.Mapper)
		if err != nil {
			return nil, err
		}
		cached.ByObject, err = cachedObjects(kind, own.withDefaults())
		if err != nil {
			return nil, err
		}
		if err := cacheOptional(&cached); err != nil {
			return nil, err
		}
		cached.DefaultTransform = cache.TransformStripManagedFields()
		return cache.New(config, cached)
	}
	return options
}

// cachedObjects says what the cache holds of each kind.
func cachedObjects(kind platform.Kind, own Options) (map[client.Object]cache.ByObject, error) {
	selector, err := carrying(v1alpha1.LabelProfile)
	if err != nil {
		return nil, err
	}
	ofPools, err := carrying(v1alpha1.LabelBypassPool)
	if err != nil {
		return nil, err
	}
	ofTests, err := carrying(v1alpha1.LabelLatencyTest)
	if err != nil {
		return nil, err
	}
	byObject := map[client.Object]cache.ByObject{
		&corev1.Node{}: {Transform: stripNode},
		&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{
				// Plan ConfigMaps and NIC pools have no other label in common.
				own.Namespace:      {LabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.LabelManagedBy: v1alpha1.ProjectName})},
				own.AgentNamespace: {LabelSelector: ofPools},
			},
			Transform: stripPlan,
		},
		&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{own.AgentNamespace: {}}},
		&appsv1.DaemonSet{}:     {Namespaces: map[string]cache.Config{own.AgentNamespace: {LabelSelector: ofPools}}},
		&batchv1.Job{}:          {Label: ofTests},
		&corev1.Pod{}:           {Label: ofTests},
	}
	if kind != platform.OpenShift {
		byObject[&nodev1.RuntimeClass{}] = cache.ByObject{Label: selector}
		return byObject, nil
	}
	// Who has paused a machine config pool is read from its managed fields.
	byObject[&mcfgv1.MachineConfigPool{}] = cache.ByObject{Transform: keep}
	for _, object := range openshift.OwnObjects() {
		byObject[object] = ownedObjects(object, selector)
	}
	return byObject, nil
}

// carrying selects objects that carry a label.
func carrying(label string) (labels.Selector, error) {
	exists, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting our own objects: %w", err)
	}
	return labels.NewSelector().Add(*exists), nil
}

// cacheOptional restricts the cache of kinds that others write, too, and that need not be there, to our own objects.
func cacheOptional(cached *cache.Options) error {
	served, err := findServedKinds(cached.Mapper)
	if err != nil {
		return err
	}
	ofPools, err := carrying(v1alpha1.LabelBypassPool)
	if err != nil {
		return err
	}
	for _, kind := range served.optional() {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		cached.ByObject[object] = cache.ByObject{Label: ofPools}
	}
	if served.classes {
		cached.ByObject[&resourcev1.ResourceSlice{}] = cache.ByObject{Transform: stripSlice}
	}
	return nil
}

// ownedObjects selects our objects of a kind. Only Tuned has a namespace.
func ownedObjects(object client.Object, selector labels.Selector) cache.ByObject {
	if object.GetObjectKind().GroupVersionKind().Kind == "Tuned" {
		return cache.ByObject{Namespaces: map[string]cache.Config{manifests.TunedNamespace: {LabelSelector: selector}}}
	}
	return cache.ByObject{Label: selector}
}

var _ toolscache.TransformFunc = keep

func keep(object any) (any, error) { return object, nil }

var _ toolscache.TransformFunc = stripPlan

// stripPlan leaves of the ConfigMap of a plan its metadata: plans are immutable and as large as all else together.
func stripPlan(object any) (any, error) {
	if plain, ok := object.(*unstructured.Unstructured); ok {
		plain.SetManagedFields(nil)
		if plain.GetLabels()[v1alpha1.LabelProfile] != "" {
			delete(plain.Object, "data")
		}
		return plain, nil
	}
	return cache.TransformStripManagedFields()(object)
}

var _ toolscache.TransformFunc = stripSlice

// stripSlice leaves of the devices in a ResourceSlice their names and taints, and none of somebody else's driver.
func stripSlice(object any) (any, error) {
	slice, ok := object.(*resourcev1.ResourceSlice)
	if !ok {
		return object, nil
	}
	slice.ManagedFields = nil
	if _, ours := bypass.PoolOfDriver(slice.Spec.Driver); !ours {
		slice.Spec = resourcev1.ResourceSliceSpec{Driver: slice.Spec.Driver}
	}
	slice.Spec.SharedCounters = nil
	for i, device := range slice.Spec.Devices {
		slice.Spec.Devices[i] = resourcev1.Device{Name: device.Name, Taints: device.Taints}
	}
	return slice, nil
}

var _ toolscache.TransformFunc = stripNode

// stripNode leaves of a Node what is decided by.
func stripNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	return decidingNodes().Strip(node), nil
}

// decidingNodes knows what of a Node is decided by.
func decidingNodes() changes.Nodes {
	return changes.Nodes{Annotations: append(openshift.NodeAnnotations(), rollout.NodeAnnotations()...)}
}
