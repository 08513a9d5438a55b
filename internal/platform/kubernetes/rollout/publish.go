// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

const (
	// maintenanceManager owns the conditions about maintenance, apart from those that the gate writes.
	maintenanceManager client.FieldOwner = v1alpha1.FieldManager + "-maintenance"
	// publishedAtOnce is how many nodes that only wait are told so at a time: a profile for thousands must not fill the API server
	// with writes.
	publishedAtOnce = 20
)

// publish writes the standard conditions about maintenance to the nodes of the profile, and takes them from those that nobody looks
// after any more.
func (p *Platform) publish(ctx context.Context, w *world, d *enactment.Decision) error {
	var failures []error
	planned := 0
	for _, state := range d.States {
		if state.Stage == enactment.StageWaiting && planned == publishedAtOnce {
			continue
		}
		wrote, err := p.publishNode(ctx, w.known[state.Node], state.Holding)
		failures = append(failures, err)
		if wrote && state.Stage == enactment.StageWaiting {
			planned++
		}
	}
	for _, node := range w.known {
		if w.profileOf(node) == "" {
			_, err := p.publishNode(ctx, node, nil)
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

func (p *Platform) publishNode(ctx context.Context, node *corev1.Node, holding []corev1.NodeConditionType) (bool, error) {
	conditions, moved := enactment.Publish(node.Status.Conditions, holding, metav1.NewTime(p.Clock.Now().Truncate(time.Second)))
	if !moved {
		return false, nil
	}
	applied := applycorev1.NodeStatus()
	for _, c := range conditions {
		applied.WithConditions(applycorev1.NodeCondition().WithType(c.Type).WithStatus(c.Status).
			WithReason(c.Reason).WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime))
	}
	err := platform.ApplyStatusAs(ctx, p.Client, maintenanceManager, corev1.SchemeGroupVersion.WithKind("Node"), node, applied)
	if err != nil {
		return false, fmt.Errorf("writing the conditions of Node %s about its maintenance: %w", node.Name, err)
	}
	return true, nil
}
