// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
)

// bootTime is how long a simulated node takes to reboot.
const bootTime = time.Second

// hosts are the machines of the nodes, as far as the simulation has them: each runs the plan with whose configuration it was
// booted last.
type hosts struct {
	// cached reads from memory, and writes to the API server.
	cached client.Client

	mutex sync.Mutex
	// plans are the hashes of the plans that run, by node; rendered are those that configurations hold.
	plans, rendered map[string]string
}

func newHosts(cached client.Client) *hosts {
	return &hosts{cached: cached, plans: map[string]string{}, rendered: map[string]string{}}
}

var _ embedded.Rebooter = (*hosts)(nil)

// Reboot implements embedded.Rebooter: reboots take some time and succeed.
func (h *hosts) Reboot(ctx context.Context, node string, rendered *mcfgv1.MachineConfig) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(bootTime):
	}
	hash, err := h.planIn(ctx, rendered)
	if err != nil {
		return err
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.plans[node] = hash
	return nil
}

// planOf is the hash of the plan that a node runs; "" when it runs none.
func (h *hosts) planOf(node string) string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.plans[node]
}

// planIn is the hash of the plan that a rendered configuration holds: that of the MachineConfig whose kernel arguments are in
// it. It is "" for one of before the operator, and for one that the next configuration has overtaken.
func (h *hosts) planIn(ctx context.Context, rendered *mcfgv1.MachineConfig) (string, error) {
	h.mutex.Lock()
	known, found := h.rendered[rendered.Name]
	h.mutex.Unlock()
	if found {
		return known, nil
	}
	pool := strings.TrimPrefix(rendered.Name[:max(strings.LastIndex(rendered.Name, "-"), 0)], "rendered-")
	config := &mcfgv1.MachineConfig{}
	err := h.cached.Get(ctx, client.ObjectKey{Name: manifests.MachineConfigName(pool)}, config)
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading the MachineConfig of pool %s: %w", pool, err)
	}
	hash := config.Annotations[v1alpha1.AnnotationPlanHash]
	for _, argument := range config.Spec.KernelArguments {
		if !slices.Contains(rendered.Spec.KernelArguments, argument) {
			hash = ""
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.rendered[rendered.Name] = hash
	return hash, nil
}
