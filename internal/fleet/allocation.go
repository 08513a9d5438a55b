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
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
)

// PluginCounts says on how many nodes the device plugin or the DRA driver is to run and is ready.
type PluginCounts struct {
	Wanted, Ready int32
	// Program says which of the two it is.
	Program string
}

// Starting reports whether the program is not ready on all nodes.
func (c PluginCounts) Starting() bool { return c.Ready < c.Wanted }

// countPlugins reads what the DaemonSet of a pool says about its current spec.
func countPlugins(daemonSet *appsv1.DaemonSet) PluginCounts {
	if daemonSet == nil {
		return PluginCounts{}
	}
	program := "device plugin"
	if dynamic, _ := manifests.IsDriver(daemonSet); dynamic {
		program = "driver for Dynamic Resource Allocation"
	}
	return PluginCounts{
		Wanted:  daemonSet.Status.DesiredNumberScheduled,
		Ready:   min(daemonSet.Status.NumberReady, daemonSet.Status.UpdatedNumberScheduled),
		Program: program,
	}
}

// isDraining reports whether the DRA driver of a pool that is to allocate by the device plugin has to stay: the kubelet
// cannot end a pod with a claim without the driver that prepared it. It goes when every one of its pods drains, so that
// no claim can come, every agent has reported for the current spec, and none of them sees a claim.
func isDraining(w *PoolWorld, d *PoolDecision) bool {
	if bypass.Allocation(&w.Pool.Spec) != v1alpha1.AllocationDevicePlugin || w.DaemonSet == nil {
		return false
	}
	dynamic, draining := manifests.IsDriver(w.DaemonSet)
	if !dynamic {
		return false
	}
	if !draining || w.DaemonSet.Status.ObservedGeneration != w.DaemonSet.Generation || d.Plugins.Starting() {
		return true
	}
	return slices.ContainsFunc(d.Nodes, func(n PoolNode) bool {
		return n.IsServed(w.Pool.Name) && !n.IsReporting(w.Pool) || n.hasUsersBy(v1alpha1.AllocationDynamic)
	})
}

// isNameless reports whether pods cannot ask the DRA driver by the name of the resource yet. A kubelet goes on to give
// hints for devices of a device plugin that has left, of which it then has none: with the topology policies restricted and
// single-numa-node the pod fails for good, though its NIC was allocated by a claim (kubelet: pkg/kubelet/cm/devicemanager,
// GetPodTopologyHints; seen with version 1.37.1). It forgets the plugin five minutes after it has left
// (endpointStopGracePeriod), and when no container holds a device of it any more. Pods that ask by the name wait until then.
func isNameless(pool *v1alpha1.BypassNICPool, d *PoolDecision) bool {
	return bypass.Allocation(&pool.Spec) == v1alpha1.AllocationDynamic && slices.ContainsFunc(d.Nodes, func(n PoolNode) bool {
		return n.CountedUnits(pool) > 0 || n.hasUsersBy(v1alpha1.AllocationDevicePlugin)
	})
}

// hasUsersBy reports whether containers hold NICs of the pool in one way.
func (n *PoolNode) hasUsersBy(way v1alpha1.AllocationType) bool {
	return slices.ContainsFunc(n.NICs, func(nic *v1alpha1.NodeBypassNIC) bool {
		return slices.ContainsFunc(nic.Users, func(user v1alpha1.NICUser) bool { return AllocationOf(user) == way })
	})
}

// AllocationOf says in which way a container holds its NIC. Agents that do not report the way know the device plugin only.
func AllocationOf(user v1alpha1.NICUser) v1alpha1.AllocationType {
	return cmp.Or(user.Allocation, v1alpha1.AllocationDevicePlugin)
}

// CountedUnits returns how many units of a pool's device plugin the kubelet counts, healthy or not: 0 when it never knew
// the plugin or has forgotten it. A kubelet that is not ready takes no pods, and says what it counts when it is.
func (n *PoolNode) CountedUnits(pool *v1alpha1.BypassNICPool) int64 {
	if NodeReadiness(n.Node) != corev1.ConditionTrue {
		return 0
	}
	counted := n.Node.Status.Capacity[corev1.ResourceName(pool.Spec.ResourceName)]
	return counted.Value()
}

// NodeReadiness is the status of the condition Ready of a Node; "" when it has none.
func NodeReadiness(node *corev1.Node) corev1.ConditionStatus {
	if ready := ReadyCondition(node); ready != nil {
		return ready.Status
	}
	return ""
}

// ReadyCondition is the condition Ready of a Node; nil when it has none.
func ReadyCondition(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return nil
}
