// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package manifests turns BypassNICPools into the objects that bring them to the nodes. It is pure.
package manifests

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
)

// PoolInput is what the objects of one BypassNICPool are made from.
type PoolInput struct {
	// Pool is the BypassNICPool.
	Pool *v1alpha1.BypassNICPool
	// Config is what the nodes are told about the pool.
	Config bypass.Pool
	// Image is the operator's own image, which the device plugin runs, too.
	Image string
	// OperatorNamespace is where agents read the pool through the API.
	OperatorNamespace string
	// AgentNamespace is where pods may mount the host: the device plugin runs there.
	AgentNamespace string
	// Draining keeps the DRA driver of a pool that has changed to the device plugin: it hands out nothing any more,
	// but the kubelet needs it to end the pods that hold its NICs.
	Draining bool
	// Nameless keeps the name of the resource off the DeviceClass of a pool that has changed from the device plugin:
	// while a kubelet knows the plugin, its topology manager refuses pods that ask by that name.
	Nameless bool
	// Withheld keeps everything back that hands out NICs, because the resource name belongs to another pool. The agents are
	// told of the pool all the same.
	Withheld bool
}

// isDynamic reports whether the nodes of the pool run the DRA driver and not the device plugin.
func (in PoolInput) isDynamic() bool {
	return in.Draining || bypass.Allocation(&in.Pool.Spec) == v1alpha1.AllocationDynamic
}

// PoolObjectName is the name of the ConfigMaps and of the DaemonSet of a BypassNICPool.
func PoolObjectName(pool string) string { return v1alpha1.PoolConfigMapPrefix + pool }

// PoolObjects renders everything for one BypassNICPool, in the order in which it is to be applied: the ConfigMap for
// the agents, that for the device plugin, the DaemonSet of the device plugin or of the DRA driver, the DeviceClass for
// that, and a NetworkAttachmentDefinition for each namespace of spec.networkAttachment, in the order of the spec. The objects carry no status, no server-side fields and
// no empty values. An error names what in the input cannot be rendered.
func PoolObjects(in PoolInput) ([]*unstructured.Unstructured, error) {
	if in.Pool == nil {
		return nil, errors.New("rendering without a BypassNICPool")
	}
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("rendering BypassNICPool %q: %w", in.Pool.Name, err)
	}
	typed, err := in.objects()
	if err != nil {
		return nil, fmt.Errorf("rendering BypassNICPool %q: %w", in.Pool.Name, err)
	}
	objects := make([]*unstructured.Unstructured, 0, len(typed))
	for _, object := range typed {
		plain, err := apply.Object(object)
		if err != nil {
			return nil, fmt.Errorf("rendering BypassNICPool %q: %w", in.Pool.Name, err)
		}
		objects = append(objects, plain)
	}
	return objects, nil
}

func (in PoolInput) objects() ([]runtime.Object, error) {
	config, err := poolText(in.Config)
	if err != nil {
		return nil, err
	}
	objects := []runtime.Object{
		poolConfigMap(in, in.OperatorNamespace, config),
		poolConfigMap(in, in.AgentNamespace, config),
	}
	if in.Withheld {
		return objects, nil
	}
	objects = append(objects, poolDaemonSet(in))
	if in.isDynamic() && !in.Draining {
		objects = append(objects, deviceClass(in))
	}
	attachment := in.Pool.Spec.NetworkAttachment
	if attachment == nil {
		return objects, nil
	}
	for _, namespace := range attachment.Namespaces {
		definition, err := networkAttachmentDefinition(in, namespace)
		if err != nil {
			return nil, err
		}
		objects = append(objects, definition)
	}
	return objects, nil
}

// check makes sure that the API server will take every name and label that is made of the input.
func (in PoolInput) check() error {
	problems := []error{
		manifest.CheckName("pool name", in.Pool.Name, validation.IsDNS1123Subdomain),
		manifest.CheckName("DaemonSet name", PoolObjectName(in.Pool.Name), validation.IsValidLabelValue),
		manifest.CheckName("operator namespace", in.OperatorNamespace, validation.IsDNS1123Label),
		manifest.CheckName("agents' namespace", in.AgentNamespace, validation.IsDNS1123Label),
		manifest.CheckName("resource name", in.Pool.Spec.ResourceName, validation.IsQualifiedName),
		manifest.CheckLabels("spec.nodeSelector", nodeLabels(in.Pool.Spec.NodeSelector)),
	}
	if in.Image == "" {
		problems = append(problems, errors.New("the image of the device plugin is not known"))
	}
	if in.Config.Name != in.Pool.Name {
		problems = append(problems, fmt.Errorf("the configuration is that of pool %q", in.Config.Name))
	}
	if in.OperatorNamespace == in.AgentNamespace {
		problems = append(problems, fmt.Errorf("operator and agents share the namespace %q", in.AgentNamespace))
	}
	return errors.Join(problems...)
}

// metadata is what all children of a BypassNICPool have in common.
func (in PoolInput) metadata(name, namespace, component string) metav1.ObjectMeta {
	labels := manifest.Labels(component)
	labels[v1alpha1.LabelBypassPool] = in.Pool.Name
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}
}
