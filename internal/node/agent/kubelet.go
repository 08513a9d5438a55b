// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"os"
	"path/filepath"

	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/podresources"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// kubeletSocket is where the kubelet serves PodResources.
func (a *Agent) kubeletSocket() string {
	if a.PodResources == "" {
		return filepath.Join(a.Root, podresources.Socket)
	}
	return a.PodResources
}

// askKubelet adds what the kubelet gave to containers, and what it may give. A host on which no kubelet ever served
// PodResources is judged by the state of its CPU manager alone.
func (a *Agent) askKubelet(ctx context.Context, in *verify.Input) {
	if _, err := os.Stat(a.kubeletSocket()); err != nil {
		return
	}
	in.Containers, in.Allocatable = a.heldByContainers(ctx), a.allocatable(ctx)
}

// heldByContainers is the answer of this pass: with pools, they have asked already.
func (a *Agent) heldByContainers(ctx context.Context) *host.Fact[[]allocation.Container] {
	containers := a.kubelet.containers
	if len(a.pools) == 0 {
		containers = a.containers(ctx)
	}
	return &containers
}

// allocatable asks the kubelet what it may give away.
func (a *Agent) allocatable(ctx context.Context) *host.Fact[verify.Allocatable] {
	answer := podresources.GetAllocatable(ctx, a.kubeletSocket())
	fact := host.Absent[verify.Allocatable](answer.Source, answer.Reason)
	if answer.Known {
		fact = host.Known(verify.Allocatable{CPUs: answer.Value.CPUs, Devices: answer.Value.Devices}, answer.Source)
	}
	return &fact
}
