// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// poolNode is a node that a pool selects.
type poolNode struct {
	node *corev1.Node
	// report is nil until the operator has created the LowLatencyNode.
	report *v1alpha1.LowLatencyNode
	// pools are all pools that select the node.
	pools *poolSet
	// profiles are those that select the node, ascending. A node is governed when there is exactly one.
	profiles []string
	// nics are what the agent says about the NICs of the pool.
	nics []*v1alpha1.NodeBypassNIC
	// selection is what the pool selects by the node's inventory.
	selection nicSelection
}

func (n *poolNode) name() string { return n.node.Name }

// isServed tells whether the pool hands out NICs on the node.
func (n *poolNode) isServed(pool string) bool {
	return len(n.profiles) == 1 && slices.Contains(n.pools.names(), pool)
}

// isReporting tells whether the agent has reported the NICs of the pool for its current spec. An agent that names
// none has reported when the inventory has none.
func (n *poolNode) isReporting(pool *v1alpha1.BypassNICPool) bool {
	if !hasInventory(n.report) || !slices.Contains(n.report.Spec.BypassPools, pool.Name) {
		return false
	}
	for _, nic := range n.nics {
		if nic.PoolGeneration != pool.Generation {
			return false
		}
	}
	return len(n.nics) > 0 || !n.selection.expected
}

// hasUsersBy tells whether containers hold NICs of the pool in one way. Agents that do not tell the way know the device
// plugin only.
func (n *poolNode) hasUsersBy(way v1alpha1.AllocationType) bool {
	return slices.ContainsFunc(n.nics, func(nic *v1alpha1.NodeBypassNIC) bool {
		return slices.ContainsFunc(nic.Users, func(user v1alpha1.NICUser) bool { return wayOf(user) == way })
	})
}

// remembers returns how many units of a pool's device plugin the kubelet counts, healthy or not: 0 when it never knew
// the plugin or has forgotten it. A kubelet that is not ready takes no pods, and says what it counts when it is.
func (n *poolNode) remembers(pool *v1alpha1.BypassNICPool) int64 {
	ready := findNodeCondition(n.node.Status.Conditions, corev1.NodeReady)
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return 0
	}
	counted := n.node.Status.Capacity[corev1.ResourceName(pool.Spec.ResourceName)]
	return counted.Value()
}

func wayOf(user v1alpha1.NICUser) v1alpha1.AllocationType {
	return cmp.Or(user.Allocation, v1alpha1.AllocationDevicePlugin)
}

// poolDecision is what a pool makes of the world.
type poolDecision struct {
	// content is what the nodes are told.
	content bypass.Pool
	// nodes in ascending order of their names.
	nodes []poolNode
}

// decidePool looks at every node of the pool.
func decidePool(w *poolWorld, selections *selections) *poolDecision {
	d := &poolDecision{
		content: bypass.Pool{Name: w.pool.Name, Generation: w.pool.Generation, Spec: w.pool.Spec},
		nodes:   make([]poolNode, 0, len(w.nodes)),
	}
	index := newPoolIndex(w.pools)
	for _, node := range w.nodes {
		n := poolNode{
			node: node, report: w.reports[node.Name], pools: index.of(node), profiles: rivals(w.profiles, node),
		}
		n.nics = nicsOfPool(n.report, w.pool.Name)
		if hasInventory(n.report) {
			n.selection = selections.of(w.pool, n.pools, n.name(), n.report.Status.Inventory)
		} else {
			n.selection.claim = n.pools.claim(w.pool.Name, nil)
		}
		d.nodes = append(d.nodes, n)
	}
	d.content.OtherPools = otherPools(w.pool, w.pools, d.nodes)
	return d
}

// nicsOfPool are what a report says about the NICs of a pool that is to be reported.
func nicsOfPool(report *v1alpha1.LowLatencyNode, pool string) []*v1alpha1.NodeBypassNIC {
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

// otherPools are the other pools that select some of the nodes.
func otherPools(pool *v1alpha1.BypassNICPool, pools []*v1alpha1.BypassNICPool, nodes []poolNode) []bypass.OtherPool {
	var others []bypass.OtherPool
	for _, other := range pools {
		if other.Name == pool.Name {
			continue
		}
		var common []string
		for i := range nodes {
			if matches(other.Spec.NodeSelector, nodes[i].node) {
				common = append(common, nodes[i].name())
			}
		}
		if len(common) > 0 {
			others = append(others, bypass.OtherPool{Claimant: bypass.ClaimantOf(other.Name, &other.Spec), Nodes: common})
		}
	}
	return others
}

// nicSelection is what a pool selects on a node by the node's inventory.
type nicSelection struct {
	// expected tells that the agent has to report a NIC.
	expected bool
	// claim is what the pool has of the node's NICs.
	claim bypass.Claim
}

// selections remembers what pools select, so that the event of one node costs no work for the others.
type selections struct {
	mutex sync.Mutex
	known *memo[selectionKey, nicSelection]
}

type selectionKey struct {
	pool                       types.UID
	pools, node, inventoryHash string
}

func newSelections() *selections {
	return &selections{known: newMemo[selectionKey, nicSelection](rememberedNodes)}
}

func (s *selections) of(pool *v1alpha1.BypassNICPool, pools *poolSet, node string, inventory *v1alpha1.Inventory) nicSelection {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	key := selectionKey{pool: pool.UID, pools: pools.key(), node: node, inventoryHash: inventory.Hash}
	if known, found := s.known.get(key); found {
		return known
	}
	result := newSelection(pool, pools, inventory)
	s.known.put(key, result)
	return result
}

// newSelection knows no NIC of an inventory that cannot be read, which the profile reports.
func newSelection(pool *v1alpha1.BypassNICPool, pools *poolSet, inventory *v1alpha1.Inventory) nicSelection {
	hardware, err := topology.FromInventory(inventory)
	if err != nil {
		return nicSelection{claim: pools.claim(pool.Name, nil)}
	}
	// An inventory does not tell links, so the agent need not find a NIC that is to have one.
	certain := slices.DeleteFunc(slices.Clone(pool.Spec.NICs), func(term v1alpha1.NICTerm) bool {
		return term.Link == v1alpha1.LinkUp
	})
	return nicSelection{
		expected: len(bypass.Select(certain, hardware.NICs)) > 0,
		claim:    pools.claim(pool.Name, hardware.NICs),
	}
}

// describeNIC names a NIC by its address and, where there is one, its interface.
func describeNIC(address, name string) string {
	if name == "" {
		return "NIC " + address
	}
	return fmt.Sprintf("NIC %s (%s)", address, name)
}

// poolFinding is what keeps NICs from being handed out, or from being of use.
type poolFinding struct {
	// reason is a condition reason.
	reason string
	// node is "" when the finding is about the whole pool; address is "" when it is about no single NIC.
	node, address string
	text          string
}

// isProblem tells whether the finding will not mend itself. A NIC that must not be handed out is no problem as long
// as others can be.
func (f *poolFinding) isProblem() bool {
	return poolGravity(f.reason) <= poolGravity(v1alpha1.ReasonNICsUnhealthy)
}

// poolGravity orders the reasons of findings: what makes all others moot comes first.
func poolGravity(reason string) int {
	return slices.Index([]string{
		v1alpha1.ReasonPoolsConflict,
		v1alpha1.ReasonPlatformFailed,
		v1alpha1.ReasonNodesUngoverned,
		v1alpha1.ReasonNICsUnhealthy,
		v1alpha1.ReasonAllocationChanging,
		v1alpha1.ReasonNICsUnknown,
		v1alpha1.ReasonNoNICs,
		v1alpha1.ReasonChecksFailed,
	}, reason)
}

// nodeFindings are those of one node.
func nodeFindings(pool *v1alpha1.BypassNICPool, n *poolNode) []poolFinding {
	if !n.isServed(pool.Name) {
		return []poolFinding{{reason: v1alpha1.ReasonNodesUngoverned, node: n.name(), text: unservedText(n)}}
	}
	findings := append(conflictFindings(pool, n), formerPluginFindings(pool, n)...)
	claim := &n.selection.claim
	isConflicting := func(nic *v1alpha1.NodeBypassNIC) bool {
		return len(claim.SameResource) > 0 || claim.Conflict(nic.PCIAddress) != nil
	}
	for _, nic := range n.nics {
		if !isConflicting(nic) && nic.Health != v1alpha1.NICHealthy {
			findings = append(findings, healthFinding(n.name(), nic))
		}
		findings = append(findings, userFindings(n.name(), nic)...)
		findings = append(findings, formerUserFindings(pool, n.name(), nic)...)
	}
	return findings
}

// unservedText says why nothing is handed out on a node that the pool selects.
func unservedText(n *poolNode) string {
	switch len(n.profiles) {
	case 0:
		return fmt.Sprintf("no LowLatencyNodeProfile selects node %s, so none of its NICs is handed out: "+
			"let spec.nodeSelector of a profile match the node, or create a profile for it", n.name())
	case 1:
		return fmt.Sprintf("node %s is selected by more than %d BypassNICPools, of which the first by name are served: "+
			"narrow spec.nodeSelector of some of them", n.name(), v1alpha1.MaxPoolsPerNode)
	default:
		return fmt.Sprintf("node %s is selected by profiles %s and left as it is, so none of its NICs is handed out: "+
			"narrow spec.nodeSelector of one of the profiles", n.name(), strings.Join(n.profiles, ", "))
	}
}

// conflictFindings are the claims of other pools on what this pool hands out on the node.
func conflictFindings(pool *v1alpha1.BypassNICPool, n *poolNode) []poolFinding {
	claim := &n.selection.claim
	if len(claim.SameResource) > 0 {
		return []poolFinding{{reason: v1alpha1.ReasonPoolsConflict, node: n.name(), text: fmt.Sprintf(
			"on node %s the resource %s is claimed by BypassNICPool %s, too, and handed out by neither: "+
				"create one of them with another spec.resourceName, or narrow its spec.nodeSelector",
			n.name(), pool.Spec.ResourceName, strings.Join(claim.SameResource, ", "))}}
	}
	findings := make([]poolFinding, 0, len(claim.Conflicts))
	for _, conflict := range claim.Conflicts {
		if conflict.Through != "" {
			continue // The finding about the NIC on which it is created says all.
		}
		findings = append(findings, poolFinding{
			reason: v1alpha1.ReasonPoolsConflict, node: n.name(), address: conflict.NIC.PCIAddress, text: fmt.Sprintf(
				"%s on node %s is selected by BypassNICPool %s, too, and handed out by neither: "+
					"narrow spec.nics or spec.nodeSelector of one of them",
				describeNIC(conflict.NIC.PCIAddress, conflict.NIC.Name), n.name(), strings.Join(conflict.Pools, ", ")),
		})
	}
	return findings
}

// healthFinding says why a NIC is not healthy, in the words of the agent.
func healthFinding(node string, nic *v1alpha1.NodeBypassNIC) poolFinding {
	reason := map[v1alpha1.NICHealth]string{
		v1alpha1.NICUnknown:    v1alpha1.ReasonNICsUnknown,
		v1alpha1.NICIneligible: v1alpha1.ReasonNoNICs,
	}[nic.Health]
	if reason == "" {
		reason = v1alpha1.ReasonNICsUnhealthy
	}
	why := strings.Join(nic.Reasons, " ")
	if why == "" {
		why = "the agent gives no reason"
	}
	return poolFinding{
		reason: reason, node: node, address: nic.PCIAddress,
		text: fmt.Sprintf("%s on node %s is %s: %s", describeNIC(nic.PCIAddress, nic.InterfaceName), node,
			strings.ToLower(string(nic.Health)), why),
	}
}

// formerPluginFindings say why pods that ask by the name of the resource wait.
func formerPluginFindings(pool *v1alpha1.BypassNICPool, n *poolNode) []poolFinding {
	counted := n.remembers(pool)
	if counted == 0 || bypass.Allocation(&pool.Spec) != v1alpha1.AllocationDynamic {
		return nil
	}
	return []poolFinding{{reason: v1alpha1.ReasonAllocationChanging, node: n.name(), text: fmt.Sprintf(
		"the kubelet of node %s counts %d units of %s by a device plugin still, and would refuse pods that ask for it by that "+
			"name: they wait until it forgets the plugin, about five minutes after the plugin has left; pods with a "+
			"ResourceClaim need not wait", n.name(), counted, pool.Spec.ResourceName)}}
}

// formerUserFindings name the containers that hold the NIC in the way that spec.allocation named before.
func formerUserFindings(pool *v1alpha1.BypassNICPool, node string, nic *v1alpha1.NodeBypassNIC) []poolFinding {
	var findings []poolFinding
	now := bypass.Allocation(&pool.Spec)
	for _, user := range nic.Users {
		if way := wayOf(user); way != now {
			findings = append(findings, poolFinding{
				reason: v1alpha1.ReasonAllocationChanging, node: node, address: nic.PCIAddress,
				text: fmt.Sprintf("container %s of pod %s/%s holds %s on node %s by %s, which spec.allocation named before: "+
					"the NIC is handed out by %s when the pod ends",
					user.Container, user.Namespace, user.Pod, describeNIC(nic.PCIAddress, nic.InterfaceName), node, way, now),
			})
		}
	}
	return findings
}

// userFindings name the containers whose CPUs, hugepages and NIC are not on one NUMA node.
func userFindings(node string, nic *v1alpha1.NodeBypassNIC) []poolFinding {
	var findings []poolFinding
	for i := range nic.Users {
		if user := &nic.Users[i]; user.Alignment == v1alpha1.AlignmentSplit {
			findings = append(findings, poolFinding{
				reason: v1alpha1.ReasonChecksFailed, node: node, address: nic.PCIAddress,
				text: fmt.Sprintf("container %s of pod %s/%s holds %s on node %s, but is split over NUMA nodes: %s",
					user.Container, user.Namespace, user.Pod, describeNIC(nic.PCIAddress, nic.InterfaceName), node, user.Message),
			})
		}
	}
	return findings
}
