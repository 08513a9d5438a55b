// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

// renderDeadline is for how long a rendered configuration with what was written is awaited before the operator says that
// something is wrong. The machine-config operator renders within seconds (renderDelay), or minutes when it is being replaced.
const renderDeadline = 10 * time.Minute

// awaitRendering is the verdict about a machine config pool that is held, and whose rendered configuration lacks something.
func (w *world) awaitRendering(t *target, lack string) verdict {
	steps, since := w.applySteps(t), heldSince(t.live)
	if len(steps) > 0 || since.IsZero() || w.now.Before(since.Add(renderDeadline)) {
		return t.verdict(fleet.PhaseWriting, lack, steps...)
	}
	late := t.verdict(fleet.PhaseFailed, fmt.Sprintf(
		"MachineConfigPool %s is paused since %s, and the machine-config operator has rendered no configuration with what was "+
			"written: %s; see the conditions of MachineConfigPool %s and of ClusterOperator machine-config, and the log of "+
			"Deployment machine-config-controller in namespace openshift-machine-config-operator",
		t.name(), since.UTC().Format(time.RFC3339), lack, t.name()))
	late.state.Reason = v1alpha1.ReasonRenderingLate
	return late
}

// heldSince is when the operator has paused the machine config pool for what is awaited, according to the API server's record,
// which outlives the operator; zero when that does not tell.
func heldSince(pool *mcfgv1.MachineConfigPool) time.Time {
	var since time.Time
	for _, entry := range pool.ManagedFields {
		if platform.IsOwnApply(entry) && entry.Time != nil && entry.Time.After(since) {
			since = entry.Time.Time
		}
	}
	return since
}
