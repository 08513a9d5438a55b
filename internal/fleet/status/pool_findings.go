// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// pools are the other pools of a conflict.
	pools []string
	// kept says that the pool keeps what the others claim in vain.
	kept bool
	// awaited says that the plan of the node, which may mend it, is not in force yet.
	awaited bool
	// container is NAMESPACE/POD/CONTAINER; "" when the finding is about none.
	container string
	text      string
}

// isProblem reports whether the finding will not solve itself. A NIC that must not be handed out is no problem as long
// as others can be, and one that others claim in vain is none for the pool that has it.
func (f *poolFinding) isProblem() bool {
	return !f.kept && !f.awaited && poolRank(f.reason) <= poolRank(v1alpha1.ReasonNICsUnhealthy)
}

// compareFindings orders findings: the most severe first, and what is kept from others last.
func compareFindings(a, b poolFinding) int {
	return cmp.Or(cmp.Compare(one(b.isProblem()), one(a.isProblem())), cmp.Compare(one(a.kept), one(b.kept)), cmp.Compare(poolRank(a.reason), poolRank(b.reason)),
		cmp.Compare(a.node, b.node), cmp.Compare(a.address, b.address))
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
	findings := append(conflictFindings(n), formerPluginFindings(pool, n)...)
	claim := &n.Selection.Claim
	isConflicting := func(nic *v1alpha1.NodeBypassNIC) bool {
		return claim.ResourceOwner != "" || claim.Conflict(nic.PCIAddress) != nil
	}
	awaited := n.InForce(pool).Status != metav1.ConditionTrue
	for _, nic := range n.NICs {
		if !isConflicting(nic) && nic.Health != v1alpha1.NICHealthy {
			findings = append(findings, healthFinding(n.Name(), nic, awaited))
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
		return fmt.Sprintf("node %s is selected by more than %d BypassNICPools, of which the oldest are served: "+
			"narrow spec.nodeSelector of some of them", n.Name(), v1alpha1.MaxPoolsPerNode)
	default:
		return fmt.Sprintf("node %s is selected by profiles %s and left as it is, so none of its NICs is handed out: "+
			"narrow spec.nodeSelector of one of the profiles", n.Name(), strings.Join(n.Profiles, ", "))
	}
}

// resourceFindings are about other pools with the resource name of the pool, on whatever nodes.
func resourceFindings(pool *v1alpha1.BypassNICPool, standing *bypass.Standing) []poolFinding {
	others := strings.Join(standing.SameResource, ", ")
	switch {
	case standing.ResourceOwner != "":
		return []poolFinding{{reason: v1alpha1.ReasonNICClaimConflict, pools: []string{standing.ResourceOwner}, text: fmt.Sprintf(
			"resource name %s belongs to BypassNICPool %s, which had it first, so this pool hands out nothing: create it again with "+
				"another spec.resourceName", pool.Spec.ResourceName, standing.ResourceOwner)}}
	case others != "":
		return []poolFinding{{reason: v1alpha1.ReasonNICClaimConflict, kept: true, pools: standing.SameResource, text: fmt.Sprintf(
			"resource name %s is also that of BypassNICPool %s, which hands out nothing; this pool keeps it: create the other one "+
				"again with another spec.resourceName", pool.Spec.ResourceName, others)}}
	}
	return nil
}

// conflictFindings are about NICs of the node that another pool claims, too: those that this pool does not get, and those
// that it keeps.
func conflictFindings(n *fleet.PoolNode) []poolFinding {
	const remedy = "narrow spec.nics or spec.nodeSelector of one of them"
	claim := &n.Selection.Claim
	findings := make([]poolFinding, 0, len(claim.Conflicts)+len(claim.Kept))
	for _, conflict := range claim.Conflicts {
		if conflict.Through != "" {
			continue // The finding about the NIC on which it is created says all.
		}
		about, others := describeNIC(conflict.NIC.PCIAddress, conflict.NIC.Name), strings.Join(conflict.Pools, ", ")
		text := fmt.Sprintf("%s on node %s belongs to BypassNICPool %s, which had it first, so this pool does not hand it out: %s",
			about, n.Name(), others, remedy)
		if conflict.Disagreement != "" {
			text = fmt.Sprintf("%s on node %s belongs to BypassNICPool %s, which had it first and does not share it, because %s: mend that, or %s",
				about, n.Name(), others, conflict.Disagreement, remedy)
		}
		if conflict.Function != "" {
			text = fmt.Sprintf("virtual function %s of %s on node %s belongs to BypassNICPool %s, so this pool creates none there: %s",
				conflict.Function, about, n.Name(), others, remedy)
		}
		findings = append(findings, poolFinding{
			reason: v1alpha1.ReasonNICClaimConflict, node: n.Name(), address: conflict.NIC.PCIAddress, pools: conflict.Pools, text: text,
		})
	}
	for _, kept := range claim.Kept {
		why := ""
		if kept.Disagreement != "" {
			why = ", because " + kept.Disagreement
		}
		findings = append(findings, poolFinding{
			reason: v1alpha1.ReasonNICClaimConflict, node: n.Name(), address: kept.NIC.PCIAddress, pools: kept.Pools, kept: true,
			text: fmt.Sprintf("%s on node %s is also claimed by BypassNICPool %s, which does not get it%s; this pool keeps it: %s",
				describeNIC(kept.NIC.PCIAddress, kept.NIC.Name), n.Name(), strings.Join(kept.Pools, ", "), why, remedy),
		})
	}
	return findings
}

// healthFinding says why a NIC is not healthy, in the words of the agent. It is no problem while the plan of the node is awaited.
func healthFinding(node string, nic *v1alpha1.NodeBypassNIC, awaited bool) poolFinding {
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
		reason: reason, node: node, address: nic.PCIAddress, awaited: awaited,
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
