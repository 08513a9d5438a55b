// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// nodeOfCluster draws a node as its agent reports it, with the plan that the operator made for it.
func nodeOfCluster(ctx context.Context, name string, options *nodeOptions) (*view.Node, error) {
	access := &options.access
	cluster, err := access.connect()
	if err != nil {
		return nil, err
	}
	object, err := fetchNode(ctx, cluster, name)
	if err != nil {
		return nil, err
	}
	if object.Status.Inventory == nil {
		return nil, fmt.Errorf("the agent of node %q has not reported yet: LowLatencyNode %q has no status.inventory", object.Name, object.Name)
	}
	machine, err := topology.FromInventory(object.Status.Inventory)
	if err != nil {
		return nil, fmt.Errorf("LowLatencyNode %q: %w", object.Name, err)
	}
	in := view.NodeInput{Name: object.Name, Profile: object.Spec.Profile, Topology: machine}
	problems := statusProblems(object)
	lease, problem := leaseInCluster(ctx, object.Name, options)
	problems = appendNonEmpty(problems, problem)
	staleness := stalenessOf(lease)
	if staleness.Exists() {
		object, problems = staleness.Judge(object), append([]string{staleness.Text}, problems...)
	}
	in.Plan, err = fetchPlan(ctx, access, options.namespace, &object.Spec)
	if err != nil {
		problems = append(problems, "the roles of CPUs are not known: "+err.Error())
	}
	in.Pools, problem = poolsInCluster(ctx, cluster, object)
	problems = appendNonEmpty(problems, problem)
	full, problem := reportInCluster(ctx, object.Name, staleness, options)
	drawn := view.OfCluster(in, object, full)
	drawn.Problems = slices.Insert(drawn.Problems, 0, appendNonEmpty(problems, problem)...)
	if last := heartbeat.LastOf(lease); !last.IsZero() {
		drawn.LastLook = new(last.UTC())
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("asking the cluster: %w", err)
	}
	return &drawn, nil
}

// leaseInCluster is the Lease of the agent of a node, or why it is not known.
func leaseInCluster(ctx context.Context, node string, options *nodeOptions) (*coordinationv1.Lease, string) {
	lease, err := fetchLease(ctx, &options.access, types.NamespacedName{Namespace: options.agents, Name: node})
	if err != nil {
		return nil, "whether the agent still looks at the host is not known: " + err.Error()
	}
	return lease, ""
}

// appendNonEmpty appends a sentence if there is one.
func appendNonEmpty(sentences []string, sentence string) []string {
	if sentence == "" {
		return sentences
	}
	return append(sentences, sentence)
}

// poolsInCluster are the pools that select a node, or why they are not known.
func poolsInCluster(ctx context.Context, cluster *rest.RESTClient, object *v1alpha1.LowLatencyNode) ([]view.Pool, string) {
	if len(object.Spec.BypassPools) == 0 {
		return nil, ""
	}
	pools, err := fetchPools(ctx, cluster, "")
	if err != nil {
		return nil, "the NICs of pools are not shown: " + err.Error()
	}
	return poolsOfNode(object, pointers(pools)), ""
}

// stalenessOf reports whether the heartbeat of an agent is stale now. Where its Lease is not known, nor is that.
func stalenessOf(lease *coordinationv1.Lease) heartbeat.Staleness {
	if lease == nil {
		return heartbeat.Staleness{}
	}
	return heartbeat.Check(types.NamespacedName{Namespace: lease.Namespace, Name: lease.Name}, lease, time.Now())
}

// fetchLease reads by which Lease the agent of a node shows that it looks at the host.
func fetchLease(ctx context.Context, access *clusterAccess, key types.NamespacedName) (*coordinationv1.Lease, error) {
	leases, err := access.connectLeases()
	if err != nil {
		return nil, err
	}
	lease := &coordinationv1.Lease{}
	err = leases.Get().Namespace(key.Namespace).Resource("leases").Name(key.Name).Do(ctx).Into(lease)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("namespace %q has no Lease %q; say with --agent-namespace where the agents run", key.Namespace, key.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Lease %q of namespace %q: %w", key.Name, key.Namespace, err)
	}
	return lease, nil
}

func pointers[T any](values []T) []*T {
	all := make([]*T, 0, len(values))
	for i := range values {
		all = append(all, &values[i])
	}
	return all
}

// fetchNode reads one LowLatencyNode; without a name, the only one there is.
func fetchNode(ctx context.Context, cluster *rest.RESTClient, name string) (*v1alpha1.LowLatencyNode, error) {
	if name != "" {
		object := &v1alpha1.LowLatencyNode{}
		err := cluster.Get().Resource("lowlatencynodes").Name(name).Do(ctx).Into(object)
		if err == nil {
			return object, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("reading LowLatencyNode %q: %w", name, err)
		}
	}
	var nodes []*v1alpha1.LowLatencyNode
	err := eachNode(ctx, cluster, func(node *v1alpha1.LowLatencyNode) { nodes = append(nodes, node.DeepCopy()) })
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, errors.New("the cluster has no LowLatencyNode: no LowLatencyNodeProfile selects a node, or the operator does not run")
	}
	return chooseNode(name, nodes, "the cluster has")
}

// fetchPlan reads the plan that a node is held against. It is nil without an error when the operator has made none.
func fetchPlan(ctx context.Context, access *clusterAccess, namespace string, spec *v1alpha1.LowLatencyNodeSpec) (*plan.NodePlan, error) {
	if spec.PlanConfigMap == "" {
		return nil, fmt.Errorf("the operator has made no plan for the node yet; see the conditions of LowLatencyNodeProfile %q", spec.Profile)
	}
	core, err := access.connectCore()
	if err != nil {
		return nil, err
	}
	held := &corev1.ConfigMap{}
	err = core.Get().Namespace(namespace).Resource("configmaps").Name(spec.PlanConfigMap).Do(ctx).Into(held)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("namespace %q has no ConfigMap %q with the plan; say with --namespace where the operator runs", namespace, spec.PlanConfigMap)
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %q of namespace %q with the plan: %w", spec.PlanConfigMap, namespace, err)
	}
	found := &plan.NodePlan{}
	if err := json.Unmarshal([]byte(held.Data[v1alpha1.PlanKey]), found); err != nil {
		return nil, fmt.Errorf("reading the plan in ConfigMap %q of namespace %q: %w", spec.PlanConfigMap, namespace, err)
	}
	if hash := found.Hash(); hash != spec.PlanHash {
		return nil, fmt.Errorf("ConfigMap %q of namespace %q holds plan %s, the node was given %s", spec.PlanConfigMap, namespace, hash, orNone(spec.PlanHash))
	}
	return found, nil
}
