// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

const (
	// clusterTimeout bounds one request unless --request-timeout does, so that a cluster that is away is an error and no endless wait.
	clusterTimeout = 30 * time.Second
	// pageSize is how many LowLatencyNodes one request returns; one of them has some ten kilobytes.
	pageSize = 250
)

// errNoCluster is that of somebody who has no cluster. The library proposes a variable for it that kubectl does not document.
var errNoCluster = errors.New("neither KUBECONFIG nor ~/.kube/config names a cluster, and this is no pod of one")

// clusterAccess are the flags that say which cluster is asked, and as whom, as kubectl has them. They are those of client-go:
// k8s.io/cli-runtime has the same ones, and brings the kinds of all of Kubernetes into every command, those without a cluster
// included.
type clusterAccess struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	// flags are all of the command.
	flags *pflag.FlagSet
}

func (c *clusterAccess) addFlags(flags *pflag.FlagSet) {
	c.flags = flags
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "`FILE` that says how to reach the cluster; by default KUBECONFIG, ~/.kube/config, or the pod's own account")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	// kubectl has no names and passwords any more, and the objects that are asked for have a namespace of their own or none.
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	names.Timeout.Default = clusterTimeout.String()
	names.Timeout.Description = "how long to wait for the answer to one request, such as 10s; 0 stands for the default"
	clientcmd.BindOverrideFlags(&c.overrides, flags, names)
}

// connect returns a client for the objects of this project.
func (c *clusterAccess) connect() (*rest.RESTClient, error) {
	return c.client("/apis", v1alpha1.GroupVersion, v1alpha1.AddToScheme)
}

// connectCore returns a client for the objects of Kubernetes itself.
func (c *clusterAccess) connectCore() (*rest.RESTClient, error) {
	return c.client("/api", corev1.SchemeGroupVersion, corev1.AddToScheme)
}

// connectLeases returns a client for the Leases by which agents show that they look at their hosts.
func (c *clusterAccess) connectLeases() (*rest.RESTClient, error) {
	return c.client("/apis", coordinationv1.SchemeGroupVersion, coordinationv1.AddToScheme)
}

// config says how to reach the cluster.
func (c *clusterAccess) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides).ClientConfig()
	if errors.Is(err, clientcmd.ErrEmptyConfig) {
		err = errNoCluster
	}
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w; %s", err, c.remedy())
	}
	return config, nil
}

// remedy says what helps where no cluster is found: some commands do without one.
func (c *clusterAccess) remedy() string {
	if c.flags != nil && c.flags.Lookup("filename") != nil {
		return "give --kubeconfig, or -f FILE to do without a cluster"
	}
	return "give --kubeconfig"
}

// client returns a client for the objects of one group.
func (c *clusterAccess) client(path string, group schema.GroupVersion, register func(*runtime.Scheme) error) (*rest.RESTClient, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := register(scheme); err != nil {
		return nil, fmt.Errorf("registering the objects of %s: %w", group, err)
	}
	config.APIPath, config.GroupVersion = path, &group
	if config.Timeout == 0 {
		config.Timeout = clusterTimeout
	}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	connected, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return connected, nil
}

// poolsOfCluster shows what a cluster says about the pool with the name, or about all pools when the name is empty.
func poolsOfCluster(ctx context.Context, name string, access *clusterAccess) ([]view.Pool, error) {
	cluster, err := access.connect()
	if err != nil {
		return nil, err
	}
	pools, err := fetchPools(ctx, cluster, name)
	if err != nil {
		return nil, err
	}
	views := make([]view.Pool, 0, len(pools))
	for i := range pools {
		views = append(views, view.OfPool(pools[i].Name, &pools[i].Spec))
	}
	err = eachNode(ctx, cluster, func(node *v1alpha1.LowLatencyNode) {
		for i := range pools {
			if slices.Contains(node.Spec.BypassPools, pools[i].Name) {
				views[i].Nodes = append(views[i].Nodes, reportedNode(node, &pools[i]))
			}
		}
	})
	return views, err
}

// fetchPools reads one pool, or all in ascending order of their names.
func fetchPools(ctx context.Context, cluster *rest.RESTClient, name string) ([]v1alpha1.BypassNICPool, error) {
	var list v1alpha1.BypassNICPoolList
	if err := cluster.Get().Resource("bypassnicpools").Do(ctx).Into(&list); err != nil {
		return nil, explain("listing BypassNICPools", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.BypassNICPool) int { return strings.Compare(a.Name, b.Name) })
	if name == "" && len(list.Items) > 0 {
		return list.Items, nil
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].Name == name {
			return list.Items[i : i+1], nil
		}
		names = append(names, list.Items[i].Name)
	}
	if len(names) == 0 {
		return nil, errors.New("the cluster has no BypassNICPool")
	}
	return nil, fmt.Errorf("the cluster has no BypassNICPool %q, but %s", name, strings.Join(names, ", "))
}

// eachNode calls the function for every LowLatencyNode, in ascending order of their names.
func eachNode(ctx context.Context, cluster *rest.RESTClient, do func(*v1alpha1.LowLatencyNode)) error {
	for next := ""; ; {
		var list v1alpha1.LowLatencyNodeList
		options := metav1.ListOptions{Limit: pageSize, Continue: next}
		err := cluster.Get().Resource("lowlatencynodes").VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(&list)
		if err != nil {
			return explain("listing LowLatencyNodes", err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}

// explain says what an error of the API server most likely means.
func explain(doing string, err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s: %w; is the operator installed in this cluster?", doing, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// reportedNode is what the agent of a node says about a pool.
func reportedNode(node *v1alpha1.LowLatencyNode, pool *v1alpha1.BypassNICPool) view.PoolNode {
	var nics []v1alpha1.NodeBypassNIC
	outdated := node.Status.ObservedGeneration < node.Generation
	for _, nic := range node.Status.BypassNICs {
		if nic.Pool == pool.Name {
			nics = append(nics, nic)
			outdated = outdated || nic.PoolGeneration < pool.Generation
		}
	}
	reported := view.OfNodeNICs(node.Name, nics)
	if outdated {
		problem := fmt.Sprintf("the agent of the node has not yet reported for generation %d of the pool", pool.Generation)
		reported.Problem = &problem
	}
	return reported
}
