// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// PoolWorld is what a BypassNICPool is decided from. Everything in it but the pool may be shared: it is not changed.
type PoolWorld struct {
	Pool *v1alpha1.BypassNICPool
	// Pools are all pools that are not being deleted, this one included, in ascending order of their names.
	Pools []*v1alpha1.BypassNICPool
	// Profiles are the profiles that are not being deleted.
	Profiles []*v1alpha1.LowLatencyNodeProfile
	// Nodes are those that the pool selects, in ascending order of their names.
	Nodes []*corev1.Node
	// Reports are the LowLatencyNodes of these nodes by name, as far as what they say counts.
	Reports map[string]*v1alpha1.LowLatencyNode
	// DaemonSet runs the device plugin or the DRA driver of the pool; nil when there is none.
	DaemonSet *appsv1.DaemonSet
}

// PoolNode is a node that a pool selects.
type PoolNode struct {
	Node *corev1.Node
	// Report is nil until the operator has created the LowLatencyNode.
	Report *v1alpha1.LowLatencyNode
	// Pools are all pools that select the node.
	Pools *PoolSet
	// Profiles are those that select the node, ascending. A node is governed when there is exactly one.
	Profiles []string
	// NICs are what the agent says about the NICs of the pool.
	NICs []*v1alpha1.NodeBypassNIC
	// Selection is what the pool selects by the node's inventory.
	Selection NICSelection
}

// PoolDecision is what a pool makes of the world.
type PoolDecision struct {
	// Content is what the nodes are told.
	Content bypass.Pool
	// Nodes in ascending order of their names.
	Nodes []PoolNode
	// Plugins is how far the device plugin or the DRA driver is.
	Plugins PluginCounts
	// Draining keeps a DRA driver that is to go, and Nameless keeps pods from asking a DRA driver by the name of the
	// resource.
	Draining, Nameless bool
}

// DecidePool looks at every node of the pool.
func DecidePool(w *PoolWorld, selections *Selections) *PoolDecision {
	d := &PoolDecision{
		Nodes:   make([]PoolNode, 0, len(w.Nodes)),
		Plugins: countPlugins(w.DaemonSet),
	}
	index := NewPoolIndex(w.Pools)
	for _, node := range w.Nodes {
		n := PoolNode{
			Node: node, Report: w.Reports[node.Name], Pools: index.Of(node), Profiles: SelectingProfiles(w.Profiles, node),
		}
		n.NICs = NICsOfPool(n.Report, w.Pool.Name)
		if HasInventory(n.Report) {
			n.Selection = selections.of(w.Pool, n.Pools, n.Name(), n.Report.Status.Inventory)
		} else {
			n.Selection.Claim = n.Pools.claim(w.Pool.Name, nil)
		}
		d.Nodes = append(d.Nodes, n)
	}
	d.Content = PoolContent(w.Pool, w.Pools, d.selectedBy)
	d.Draining, d.Nameless = isDraining(w, d), isNameless(w.Pool, d)
	return d
}

// NICsOfPool are what a report says about the NICs of a pool that is to be reported.
func NICsOfPool(report *v1alpha1.LowLatencyNode, pool string) []*v1alpha1.NodeBypassNIC {
	if report == nil || !slices.Contains(report.Spec.BypassPools, pool) {
		return nil
	}
	var nics []*v1alpha1.NodeBypassNIC
	for i := range report.Status.BypassNICs {
		if nic := &report.Status.BypassNICs[i]; nic.Pool == pool {
			nics = append(nics, nic)
		}
	}
	return nics
}

// PoolContent is what the nodes of a pool are told. The function returns which of them another pool selects, too.
func PoolContent(pool *v1alpha1.BypassNICPool, pools []*v1alpha1.BypassNICPool, common func(other *v1alpha1.BypassNICPool) []string) bypass.Pool {
	content := bypass.Pool{Name: pool.Name, Generation: pool.Generation, Spec: pool.Spec}
	for _, other := range pools {
		if other.Name == pool.Name {
			continue
		}
		if nodes := common(other); len(nodes) > 0 {
			content.OtherPools = append(content.OtherPools, bypass.OtherPool{Claimant: bypass.ClaimantOf(other.Name, &other.Spec), Nodes: nodes})
		}
	}
	return content
}

// selectedBy are the names of the nodes of the decision that another pool selects, too.
func (d *PoolDecision) selectedBy(other *v1alpha1.BypassNICPool) []string {
	var names []string
	for i := range d.Nodes {
		if Selects(other.Spec.NodeSelector, d.Nodes[i].Node) {
			names = append(names, d.Nodes[i].Name())
		}
	}
	return names
}

// Name of the node.
func (n *PoolNode) Name() string { return n.Node.Name }

// IsServed reports whether the pool hands out NICs on the node.
func (n *PoolNode) IsServed(pool string) bool {
	return len(n.Profiles) == 1 && slices.Contains(n.Pools.Names(), pool)
}

// IsReporting reports whether the agent has reported the NICs of the pool for its current spec. An agent that names
// none has reported when the inventory has none.
func (n *PoolNode) IsReporting(pool *v1alpha1.BypassNICPool) bool {
	if !HasInventory(n.Report) || !slices.Contains(n.Report.Spec.BypassPools, pool.Name) {
		return false
	}
	for _, nic := range n.NICs {
		if nic.PoolGeneration != pool.Generation {
			return false
		}
	}
	return len(n.NICs) > 0 || !n.Selection.Expected
}

// IsReported reports whether the agent of a node has reported the NICs of one of the pools that select it for the
// current spec of that pool.
func IsReported(pool *v1alpha1.BypassNICPool, pools *PoolSet, node *corev1.Node, report *v1alpha1.LowLatencyNode) bool {
	n := PoolNode{Node: node, Report: report, NICs: NICsOfPool(report, pool.Name)}
	if HasInventory(report) {
		n.Selection = selectNICs(pool, pools, report.Status.Inventory)
	}
	return n.IsReporting(pool)
}
