// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// By these marks on a Node others leave it alone: Karpenter does not consolidate it or replace what has drifted
// (karpenter.sh, Well-Known Annotations), the Cluster Autoscaler does not remove it, also while it is not ready, and the operators
// of medik8s do not reset it because it is not ready, as they are told by their own node maintenance operator.
const (
	karpenterHold  = "karpenter.sh/do-not-disrupt"
	autoscalerHold = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// medik8sHold is a label, the others are annotations.
	medik8sHold = "remediation.medik8s.io/exclude-from-remediation"

	holdValue     = "true"
	holdSeparator = ","
)

func holds() []string { return []string{karpenterHold, autoscalerHold, medik8sHold} }

// marks are the labels or annotations of a Node that hold the key, made where there are none.
func marks(node *corev1.Node, key string) map[string]string {
	all := &node.Annotations
	if key == medik8sHold {
		all = &node.Labels
	}
	if *all == nil {
		*all = map[string]string{}
	}
	return *all
}

// hold keeps others from replacing a node, and notes what was not there before.
func hold(node *corev1.Node) {
	held := heldBy(node)
	for _, key := range holds() {
		if _, found := marks(node, key)[key]; !found {
			marks(node, key)[key] = holdValue
			held = append(held, key)
		}
	}
	if len(held) > 0 {
		marks(node, v1alpha1.AnnotationHeld)[v1alpha1.AnnotationHeld] = strings.Join(held, holdSeparator)
	}
}

// giveUp takes back what hold has noted, as far as nobody has changed it since.
func giveUp(node *corev1.Node) {
	for _, key := range heldBy(node) {
		if all := marks(node, key); slices.Contains(holds(), key) && all[key] == holdValue {
			delete(all, key)
		}
	}
	delete(node.Annotations, v1alpha1.AnnotationHeld)
}

// heldBy are the marks that the operator has set.
func heldBy(node *corev1.Node) []string {
	if note := node.Annotations[v1alpha1.AnnotationHeld]; note != "" {
		return strings.Split(note, holdSeparator)
	}
	return nil
}
