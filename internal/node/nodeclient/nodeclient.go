// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package nodeclient asks an API server for what the agent of a node needs: its LowLatencyNode, the ConfigMaps of plans and
// pools, and its Lease. A client for any object would bring the kinds of all of Kubernetes with it, which take memory on
// every node for nothing.
package nodeclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	nodeResource      = "lowlatencynodes"
	configMapResource = "configmaps"
	leaseResource     = "leases"

	fieldManager = "fieldManager"
)

// Client reads and writes the objects of one agent. Errors are those of the API server; k8s.io/apimachinery/pkg/api/errors
// tells them apart.
type Client struct {
	nodes, configMaps, leases *rest.RESTClient
}

// Config says how the API server is reached: by the file in the environment variable KUBECONFIG, by the account of the pod,
// or by ~/.kube/config.
func Config() (*rest.Config, error) {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
}

// New makes a client. Nothing is asked of the API server yet.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.ConfigMap{})
	leases := schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	for _, version := range []schema.GroupVersion{corev1.SchemeGroupVersion, leases} {
		metav1.AddToGroupVersion(scheme, version)
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	made := &Client{}
	for version, client := range map[schema.GroupVersion]**rest.RESTClient{
		v1alpha1.GroupVersion: &made.nodes, corev1.SchemeGroupVersion: &made.configMaps, leases: &made.leases,
	} {
		if *client, err = clientFor(config, shared, codecs, version); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// clientFor makes a client for the objects of one version of a group.
func clientFor(config *rest.Config, shared *http.Client, codecs runtime.NegotiatedSerializer, version schema.GroupVersion) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.APIPath = "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	config.GroupVersion, config.NegotiatedSerializer = &version, codecs
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	return rest.RESTClientForConfigAndClient(config, shared)
}

// LowLatencyNode reads the object of a node.
func (c *Client) LowLatencyNode(ctx context.Context, name string) (*v1alpha1.LowLatencyNode, error) {
	node := &v1alpha1.LowLatencyNode{}
	if err := c.nodes.Get().Resource(nodeResource).Name(name).Do(ctx).Into(node); err != nil {
		return nil, err
	}
	return node, nil
}

// WatchLowLatencyNode watches the object of a node, and begins with the object as it is. The watch is on one object by
// name, which costs the API server next to nothing and needs no right to see others.
func (c *Client) WatchLowLatencyNode(ctx context.Context, name string) (watch.Interface, error) {
	options := &metav1.ListOptions{Watch: true, FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	return c.nodes.Get().Resource(nodeResource).VersionedParams(options, metav1.ParameterCodec).Watch(ctx)
}

// ApplyStatus applies the status of a LowLatencyNode. With a resource version, an object that has changed since is a
// conflict. Fields that an older CustomResourceDefinition does not declare are left out.
func (c *Client) ApplyStatus(ctx context.Context, node *unstructured.Unstructured) error {
	err := c.applyStatus(ctx, node)
	if !isAboutFields(err) {
		return err
	}
	known, problem := c.declared(ctx, node)
	if problem != nil || known == nil {
		return errors.Join(err, problem)
	}
	return c.applyStatus(ctx, known)
}

func (c *Client) applyStatus(ctx context.Context, node *unstructured.Unstructured) error {
	content, err := json.Marshal(node.Object)
	if err != nil {
		return fmt.Errorf("writing the status as JSON: %w", err)
	}
	return c.nodes.Patch(types.ApplyPatchType).Resource(nodeResource).Name(node.GetName()).SubResource("status").
		Param(fieldManager, v1alpha1.AgentFieldManager).Param("force", "true").Body(content).Do(ctx).Error()
}

// ConfigMap reads a ConfigMap.
func (c *Client) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	found := &corev1.ConfigMap{}
	if err := c.configMaps.Get().Namespace(namespace).Resource(configMapResource).Name(name).Do(ctx).Into(found); err != nil {
		return nil, err
	}
	return found, nil
}

// PatchLease changes a Lease by a JSON merge patch.
func (c *Client) PatchLease(ctx context.Context, namespace, name string, patch []byte) error {
	return c.leases.Patch(types.MergePatchType).Namespace(namespace).Resource(leaseResource).Name(name).
		Param(fieldManager, v1alpha1.AgentFieldManager).Body(patch).Do(ctx).Error()
}
