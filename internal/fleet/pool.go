// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"cmp"
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
	// Incumbents are those of Pools that have NICs of any node; nil where no two have the same resource name.
	Incumbents bypass.Incumbents
	// Profiles are the profiles that are not being deleted.
	Profiles []*v1alpha1.LowLatencyNodeProfile
	// Nodes are those that the pool selects, in ascending order of their names.
	Nodes []*corev1.Node
	// Reports are the LowLatencyNodes of these nodes by name, as far as what they say counts.
	Reports map[string]*v1alpha1.LowLatencyNode
	// DaemonSet runs the device plugin or the DRA driver of the pool; nil when there is none.
	DaemonSet *appsv1.DaemonSet
	// Published are the units that the DRA driver of the pool offers, by node.
	Published map[string]int64
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
	// Paused says that the rollout of the profile is paused.
	Paused bool
	// NICs are what the agent says about the NICs of the pool.
	NICs []*v1alpha1.NodeBypassNIC
	// Published are the units that the DRA driver of the pool offers.
	Published int64
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
	index := NewPoolIndex(w.Pools, w.Incumbents)
	names := make([]string, 0, len(w.Nodes))
	for _, node := range w.Nodes {
		names = append(names, node.Name)
		n := PoolNode{
			Node: node, Report: w.Reports[node.Name], Pools: index.Of(node), Profiles: SelectingProfiles(w.Profiles, node),
			Published: w.Published[node.Name],
		}
		n.Paused = isPaused(w.Profiles, n.Profiles)
		n.NICs = NICsOfPool(n.Report, w.Pool.Name)
		if HasInventory(n.Report) {
			n.Selection = selections.of(w.Pool, n.Pools.On(n.Report), n.Name(), n.Report.Status.Inventory)
		} else {
			n.Selection.Claim = n.Pools.On(n.Report).claim(w.Pool.Name, nil)
		}
		d.Nodes = append(d.Nodes, n)
	}
	selections.Retain(w.Pool.Name, names...)
	d.Content = PoolContent(w.Pool, w.Pools, w.Incumbents, d.selectedBy)
	d.Content.Holdings = d.holdings(w.Pool.Name)
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

// PoolContent is what the nodes of a pool are told, but what it holds there: one of the pools that there are, of which the
// incumbents have NICs. The function returns which of its nodes another pool selects, too.
func PoolContent(
	pool *v1alpha1.BypassNICPool, pools []*v1alpha1.BypassNICPool, incumbents bypass.Incumbents, common func(other *v1alpha1.BypassNICPool) []string,
) bypass.Pool {
	content := bypass.Pool{Name: pool.Name, Generation: pool.Generation, Spec: pool.Spec}
	for i, claimant := range bypass.Claimants(pools, incumbents) {
		if claimant.Name == pool.Name {
			content.Standing = claimant.Standing
		} else if nodes := common(pools[i]); len(nodes) > 0 {
			content.OtherPools = append(content.OtherPools, bypass.OtherPool{Claimant: claimant, Nodes: nodes})
		}
	}
	return content
}

// holdings are which pools have the NICs that the pool and others claim. Where one pool creates virtual functions and
// another one selects some, they are also the NICs of the one that creates: the nodes see new virtual functions sooner
// than the operator does.
func (d *PoolDecision) holdings(pool string) []bypass.Holding {
	nodes := map[v1alpha1.BypassNICClaim][]string{}
	add := func(node, address, pool string) {
		key := v1alpha1.BypassNICClaim{PCIAddress: address, Pool: pool}
		if known := nodes[key]; len(known) == 0 || known[len(known)-1] != node {
			nodes[key] = append(known, node)
		}
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		for _, kept := range n.Selection.Claim.Kept {
			add(n.Name(), kept.Held, pool)
			for _, partner := range n.Selection.Claim.Partners(kept.Held) {
				add(n.Name(), kept.Held, partner)
			}
		}
		for _, conflict := range n.Selection.Claim.Conflicts {
			for _, holder := range conflict.Pools {
				add(n.Name(), conflict.Held, holder)
			}
		}
		for _, claim := range n.Pools.On(n.Report).creators() {
			add(n.Name(), claim.PCIAddress, claim.Pool)
		}
	}
	holdings := make([]bypass.Holding, 0, len(nodes))
	for key, names := range nodes {
		holdings = append(holdings, bypass.Holding{PCIAddress: key.PCIAddress, Pool: key.Pool, Nodes: names})
	}
	slices.SortFunc(holdings, func(a, b bypass.Holding) int {
		return cmp.Or(cmp.Compare(a.PCIAddress, b.PCIAddress), cmp.Compare(a.Pool, b.Pool))
	})
	return holdings
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
func IsReported(pool *v1alpha1.BypassNICPool, node *corev1.Node, report *v1alpha1.LowLatencyNode) bool {
	n := PoolNode{Node: node, Report: report, NICs: NICsOfPool(report, pool.Name)}
	if HasInventory(report) {
		n.Selection.Expected = isExpected(pool, nicsOf(report.Status.Inventory))
	}
	return n.IsReporting(pool)
}
