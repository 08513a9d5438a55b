// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// PatchNode writes what differs between two states of a Node, of which the first was read. With a lock it fails when the node has
// changed since.
func PatchNode(ctx context.Context, writer client.Client, before, after *corev1.Node, locked bool) error {
	before, after = withPlaceholder(before), withPlaceholder(after)
	patch := client.MergeFrom(before)
	if locked {
		patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	}
	return writer.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldManager))
}

// placeholder is a label and annotation that is never written, because it is in both states.
const placeholder = v1alpha1.GroupName + "/placeholder"

// withPlaceholder keeps labels and annotations from being empty. A cache holds a part of them, and where the last of these is taken
// away, a patch would say null in place of all, and remove those of others, too.
func withPlaceholder(node *corev1.Node) *corev1.Node {
	node = node.DeepCopy()
	for _, all := range []*map[string]string{&node.Labels, &node.Annotations} {
		if *all == nil {
			*all = map[string]string{}
		}
		(*all)[placeholder] = ""
	}
	return node
}
