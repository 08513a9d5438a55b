// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownImage returns the image of a process's own container as its Pod has it. The one place where an image is set is therefore
// the Deployment: what installs it, such as kustomize by images, Helm or Operator Lifecycle Manager, need not know of another.
func ownImage(ctx context.Context, reader client.Reader, pod types.NamespacedName, container string) (string, error) {
	var own corev1.Pod
	if err := reader.Get(ctx, pod, &own); err != nil {
		return "", fmt.Errorf("reading the image of the operator from its own Pod: %w", err)
	}
	for i := range own.Spec.Containers {
		if own.Spec.Containers[i].Name == container {
			return own.Spec.Containers[i].Image, nil
		}
	}
	return "", fmt.Errorf("reading the image of the operator from its own Pod: Pod %s has no container %q", pod, container)
}
