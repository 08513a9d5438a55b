// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// IsOfMachine reports whether a LowLatencyNode is that of the machine for which a Node stands. A machine that takes the place
// of another has its name and a Node of its own: what was reported, and put in force, on the former one says nothing about it.
// A LowLatencyNode without an owner, as from a backup, is taken for that of the Node.
func IsOfMachine(report *v1alpha1.LowLatencyNode, node *corev1.Node) bool {
	owned := false
	for i := range report.OwnerReferences {
		owner := &report.OwnerReferences[i]
		if owner.Kind != "Node" {
			continue
		}
		if owner.UID == node.UID {
			return true
		}
		owned = true
	}
	return !owned
}

// IsOfBoot reports whether an agent has looked at its node since the last boot of that. Where the kubelet tells no boot, as
// simulated ones do, there is nothing to compare.
func IsOfBoot(report *v1alpha1.LowLatencyNode, node *corev1.Node) bool {
	boot := node.Status.NodeInfo.BootID
	return boot == "" || report != nil && report.Status.BootID == boot
}
