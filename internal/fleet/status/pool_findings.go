// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

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
	// container is NAMESPACE/POD/CONTAINER; "" when the finding is about none.
	container string
	text      string
}

// isProblem reports whether the finding will not solve itself. A NIC that must not be handed out is no problem as long
// as others can be.
func (f *poolFinding) isProblem() bool {
	return poolRank(f.reason) <= poolRank(v1alpha1.ReasonNICsUnhealthy)
}

// poolRank orders the reasons of findings: what makes all others moot comes first.
func poolRank(reason string) int {
	return slices.Index([]string{
		v1alpha1.ReasonNICClaimConflict,
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
func nodeFindings(pool *v1alpha1.BypassNICPool, n *fleet.PoolNode) []poolFinding {
	if !n.IsServed(pool.Name) {
		return []poolFinding{{reason: v1alpha1.ReasonNodesUngoverned, node: n.Name(), text: unservedText(n)}}
	}
	findings := append(conflictFindings(pool, n), formerPluginFindings(pool, n)...)
	claim := &n.Selection.Claim
	isConflicting := func(nic *v1alpha1.NodeBypassNIC) bool {
		return len(claim.SameResource) > 0 || claim.Conflict(nic.PCIAddress) != nil
	}
	for _, nic := range n.NICs {
		if !isConflicting(nic) && nic.Health != v1alpha1.NICHealthy {
			findings = append(findings, healthFinding(n.Name(), nic))
		}
		findings = append(findings, userFindings(n.Name(), nic)...)
		findings = append(findings, formerUserFindings(pool, n.Name(), nic)...)
	}
	return findings
}

// unservedText says why nothing is handed out on a node that the pool selects.
func unservedText(n *fleet.PoolNode) string {
	switch len(n.Profiles) {
	case 0:
		return fmt.Sprintf("no LowLatencyNodeProfile selects node %s, so none of its NICs is handed out: "+
			"let spec.nodeSelector of a profile match the node, or create a profile for it", n.Name())
	case 1:
		return fmt.Sprintf("node %s is selected by more than %d BypassNICPools, of which the first by name are served: "+
			"narrow spec.nodeSelector of some of them", n.Name(), v1alpha1.MaxPoolsPerNode)
	default:
		return fmt.Sprintf("node %s is selected by profiles %s and left as it is, so none of its NICs is handed out: "+
			"narrow spec.nodeSelector of one of the profiles", n.Name(), strings.Join(n.Profiles, ", "))
	}
}

// conflictFindings are the claims of other pools on what this pool hands out on the node.
func conflictFindings(pool *v1alpha1.BypassNICPool, n *fleet.PoolNode) []poolFinding {
	claim := &n.Selection.Claim
	if len(claim.SameResource) > 0 {
		return []poolFinding{{reason: v1alpha1.ReasonNICClaimConflict, node: n.Name(), text: fmt.Sprintf(
			"on node %s the resource %s is claimed by BypassNICPool %s, too; neither pool hands it out: "+
				"create one of them with another spec.resourceName, or narrow its spec.nodeSelector",
			n.Name(), pool.Spec.ResourceName, strings.Join(claim.SameResource, ", "))}}
	}
	findings := make([]poolFinding, 0, len(claim.Conflicts))
	for _, conflict := range claim.Conflicts {
		if conflict.Through != "" {
			continue // The finding about the NIC on which it is created says all.
		}
		findings = append(findings, poolFinding{
			reason: v1alpha1.ReasonNICClaimConflict, node: n.Name(), address: conflict.NIC.PCIAddress, text: fmt.Sprintf(
				"%s on node %s is selected by BypassNICPool %s, too; neither pool hands it out: "+
					"narrow spec.nics or spec.nodeSelector of one of them",
				describeNIC(conflict.NIC.PCIAddress, conflict.NIC.Name), n.Name(), strings.Join(conflict.Pools, ", ")),
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
func formerPluginFindings(pool *v1alpha1.BypassNICPool, n *fleet.PoolNode) []poolFinding {
	counted := n.CountedUnits(pool)
	if counted == 0 || bypass.Allocation(&pool.Spec) != v1alpha1.AllocationDynamic {
		return nil
	}
	return []poolFinding{{reason: v1alpha1.ReasonAllocationChanging, node: n.Name(), text: fmt.Sprintf(
		"the kubelet of node %s counts %d units of %s by a device plugin still, and would refuse pods that ask for it by that "+
			"name: they wait until it forgets the plugin, about five minutes after the plugin has left; pods with a "+
			"ResourceClaim need not wait", n.Name(), counted, pool.Spec.ResourceName)}}
}

// formerUserFindings name the containers that hold the NIC in the way that spec.allocation named before.
func formerUserFindings(pool *v1alpha1.BypassNICPool, node string, nic *v1alpha1.NodeBypassNIC) []poolFinding {
	var findings []poolFinding
	now := bypass.Allocation(&pool.Spec)
	for _, user := range nic.Users {
		if way := fleet.AllocationOf(user); way != now {
			findings = append(findings, poolFinding{
				reason: v1alpha1.ReasonAllocationChanging, node: node, address: nic.PCIAddress, container: containerPath(&user),
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
				reason: v1alpha1.ReasonChecksFailed, node: node, address: nic.PCIAddress, container: containerPath(user),
				text: fmt.Sprintf("container %s of pod %s/%s holds %s on node %s, but is split over NUMA nodes: %s",
					user.Container, user.Namespace, user.Pod, describeNIC(nic.PCIAddress, nic.InterfaceName), node, user.Message),
			})
		}
	}
	return findings
}

// containerPath names a container as findings do.
func containerPath(user *v1alpha1.NICUser) string {
	return allocation.Container{Namespace: user.Namespace, Pod: user.Pod, Name: user.Container}.Path()
}
