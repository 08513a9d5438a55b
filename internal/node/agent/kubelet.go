// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/podresources"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

const (
	// answerIntervals is for how many full intervals the last answer of a kubelet that does not answer any more is believed. A kubelet that
	// is restarted is away for some seconds, and the containers keep what they have meanwhile.
	answerIntervals = 2
	// admissionPause and admissionQuestions bound for how long a container may be in the middle of its admission.
	admissionPause     = time.Second
	admissionQuestions = 3
)

// answer is what the kubelet said last.
type answer struct {
	at         time.Time
	containers host.Fact[[]allocation.Container]
}

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

// containers asks the kubelet who holds what.
func (a *Agent) containers(ctx context.Context) host.Fact[[]allocation.Container] {
	now := a.clock().Now()
	containers := a.admitted(ctx)
	if !containers.Known && a.kubelet.containers.Known && now.Sub(a.kubelet.at) <= answerIntervals*orDefault(a.FullInterval, DefaultFullInterval) {
		return a.kubelet.containers
	}
	a.kubelet = answer{now, containers}
	return containers
}

// admitted asks the kubelet again while it may be giving a container one thing after the other: what it has not given yet would look as
// if the container had none. Without pools, nobody asks whether CPUs and NICs of containers belong together.
func (a *Agent) admitted(ctx context.Context) host.Fact[[]allocation.Container] {
	containers := podresources.List(ctx, a.kubeletSocket())
	for range admissionQuestions {
		if len(a.pools) == 0 || !containers.Known || !allocation.MayBeIncomplete(containers.Value, a.kubelet.containers.Value) {
			break
		}
		select {
		case <-ctx.Done():
			return containers
		case <-a.clock().After(admissionPause):
		}
		containers = podresources.List(ctx, a.kubeletSocket())
	}
	return containers
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
