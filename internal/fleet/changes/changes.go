// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package changes says what of an object decisions are made from: what of a Node is kept in memory, and which changes
// of an object are worth deciding again. Kubelets and agents write all the time what decides nothing. It is pure.
package changes

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/gate"
)

// Nodes knows the annotations by which a platform decides about a Node.
type Nodes struct{ Annotations []string }

// Strip leaves of a Node what is decided by: names, labels, the annotations of the platform and ours, taints, a cordon, boot and kernel,
// whether it is ready and since when, our own conditions, those about maintenance, and what the kubelet counts of device plugins. A Node's images alone are many
// times as large.
func (n Nodes) Strip(node *corev1.Node) *corev1.Node {
	annotations := n.annotations(node)
	for _, key := range gate.Notes() {
		if value, found := node.Annotations[key]; found {
			annotations[key] = value
		}
	}
	return &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			Labels: node.Labels, Annotations: annotations,
			DeletionTimestamp: node.DeletionTimestamp,
		},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable},
		Status: corev1.NodeStatus{
			Conditions:  slices.Concat(readiness(node), gate.OwnConditions(node.Status.Conditions), enactment.MaintenanceConditions(node.Status.Conditions)),
			Capacity:    extendedResources(node.Status.Capacity),
			Allocatable: extendedResources(node.Status.Allocatable),
			NodeInfo: corev1.NodeSystemInfo{
				BootID: node.Status.NodeInfo.BootID, KernelVersion: node.Status.NodeInfo.KernelVersion, SystemUUID: node.Status.NodeInfo.SystemUUID,
			},
		},
	}
}

// annotations are those of a node by which the platform decides.
func (n Nodes) annotations(node *corev1.Node) map[string]string {
	kept := map[string]string{}
	for _, key := range n.Annotations {
		if value, found := node.Annotations[key]; found {
			kept[key] = value
		}
	}
	return kept
}

// readiness is the condition Ready, and since when, without what kubelets write all the time.
func readiness(node *corev1.Node) []corev1.NodeCondition {
	ready := fleet.ReadyCondition(node)
	if ready == nil {
		return nil
	}
	return []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready.Status, LastTransitionTime: ready.LastTransitionTime}}
}

// extendedResources are those in a domain of their own, as device plugins advertise them; nil when there are none.
func extendedResources(all corev1.ResourceList) corev1.ResourceList {
	var extended corev1.ResourceList
	for name, quantity := range all {
		if !strings.Contains(string(name), "/") {
			continue
		}
		if extended == nil {
			extended = corev1.ResourceList{}
		}
		extended[name] = quantity
	}
	return extended
}

// Moved reports whether something has changed by which it is decided where a node belongs.
func (n Nodes) Moved(before, after *corev1.Node) bool {
	return isOther(before, after) || before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!maps.Equal(n.annotations(before), n.annotations(after)) || gate.HasMarks(before) != gate.HasMarks(after)
}

// NodeMarked reports whether what is written on a node has changed, or what the gate is decided by.
func NodeMarked(before, after *corev1.Node) bool {
	return isOther(before, after) || !slices.Equal(before.Spec.Taints, after.Spec.Taints) ||
		gate.ConditionsMoved(before, after) || hasStarted(before, after)
}

// hasStarted reports whether a node has become another by a boot, a kubelet or a device plugin.
func hasStarted(before, after *corev1.Node) bool {
	return before.Status.NodeInfo.BootID != after.Status.NodeInfo.BootID || before.Status.NodeInfo.SystemUUID != after.Status.NodeInfo.SystemUUID ||
		!gate.SameNotes(before, after) ||
		fleet.NodeReadiness(before) != fleet.NodeReadiness(after) ||
		!equality.Semantic.DeepEqual(extendedResources(before.Status.Allocatable), extendedResources(after.Status.Allocatable))
}

// NodeServed reports whether it has changed which pools select a node, or what its kubelet knows of device plugins.
func NodeServed(before, after *corev1.Node) bool {
	return isOther(before, after) || fleet.NodeReadiness(before) != fleet.NodeReadiness(after) ||
		!equality.Semantic.DeepEqual(extendedResources(before.Status.Capacity), extendedResources(after.Status.Capacity)) ||
		!equality.Semantic.DeepEqual(extendedResources(before.Status.Allocatable), extendedResources(after.Status.Allocatable))
}

// isOther reports whether selectors may find something else.
func isOther(before, after *corev1.Node) bool {
	return before.UID != after.UID || !maps.Equal(before.Labels, after.Labels)
}

// NICsReported reports whether something about NICs has changed in a LowLatencyNode, or whether its plan is in force. Agents
// write about the kernel far more often.
func NICsReported(before, after *v1alpha1.LowLatencyNode) bool {
	return inventoryHash(before) != inventoryHash(after) ||
		!equality.Semantic.DeepEqual(before.Spec, after.Spec) || before.Status.VerifiedPlanHash != after.Status.VerifiedPlanHash ||
		appliedOf(before) != appliedOf(after) ||
		!equality.Semantic.DeepEqual(before.Status.BypassNICs, after.Status.BypassNICs)
}

// appliedOf is what a report says about its plan, without the time.
func appliedOf(report *v1alpha1.LowLatencyNode) metav1.Condition {
	for _, condition := range report.Status.Conditions {
		if condition.Type == v1alpha1.ConditionApplied {
			return metav1.Condition{Status: condition.Status, Reason: condition.Reason, Message: condition.Message}
		}
	}
	return metav1.Condition{}
}

// inventoryHash is "" while the agent has not reported an inventory.
func inventoryHash(report *v1alpha1.LowLatencyNode) string {
	if !fleet.HasInventory(report) {
		return ""
	}
	return report.Status.Inventory.Hash
}
