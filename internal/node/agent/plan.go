// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// plannedState is what the agent knows of the node's plan.
type plannedState struct {
	// hash is that of the spec; "" without a plan.
	hash string
	// plan is nil while there is none to verify.
	plan *plan.NodePlan
	// problem says why there is no plan.
	problem string
}

// updatePlan fetches the plan that the spec names, unless the agent has it: a plan never changes under
// its hash. A plan that is missing or wrong is no error; the status says so, and the next pass tries
// again. Another plan starts the comparison of counters anew, since what happened before it was no
// fault.
func (a *Agent) updatePlan(ctx context.Context, spec v1alpha1.LowLatencyNodeSpec) error {
	if a.plan.plan != nil && a.plan.hash == spec.PlanHash {
		return nil
	}
	fetched, err := a.fetchPlan(ctx, spec)
	if err != nil {
		return err
	}
	a.plan = fetched
	a.history, a.drift = history{}, driftState{}
	if fetched.plan != nil && a.KeepTo != nil {
		if err := a.KeepTo(fetched.plan.CPUs.Housekeeping); err != nil {
			a.log(ctx).Error(err, "Failed to keep to housekeeping CPUs", "cpus", fetched.plan.CPUs.Housekeeping.String())
		}
	}
	return nil
}

// fetchPlan reads the ConfigMap of the plan and makes sure that it holds the plan that was asked for.
func (a *Agent) fetchPlan(ctx context.Context, spec v1alpha1.LowLatencyNodeSpec) (plannedState, error) {
	if spec.PlanHash == "" || spec.PlanConfigMap == "" {
		return plannedState{problem: "the operator has made no plan for this node yet"}, nil
	}
	key := types.NamespacedName{Namespace: a.Namespace, Name: spec.PlanConfigMap}
	configMap, err := a.Client.ConfigMap(ctx, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return plannedState{hash: spec.PlanHash, problem: fmt.Sprintf("ConfigMap %s does not exist", key)}, nil
	}
	if err != nil {
		return plannedState{}, fmt.Errorf("reading the plan in ConfigMap %s: %w", key, err)
	}
	decoded, err := decodePlan(configMap, spec.PlanHash)
	if err != nil {
		return plannedState{hash: spec.PlanHash, problem: fmt.Sprintf("ConfigMap %s: %s", key, err)}, nil
	}
	return plannedState{hash: spec.PlanHash, plan: decoded}, nil
}

func decodePlan(configMap *corev1.ConfigMap, hash string) (*plan.NodePlan, error) {
	text, ok := configMap.Data[v1alpha1.PlanKey]
	if !ok {
		return nil, fmt.Errorf("it has no key %s", v1alpha1.PlanKey)
	}
	decoded := &plan.NodePlan{}
	if err := json.Unmarshal([]byte(text), decoded); err != nil {
		return nil, fmt.Errorf("reading %s: %w", v1alpha1.PlanKey, err)
	}
	if found := decoded.Hash(); found != hash {
		return nil, fmt.Errorf("it holds plan %s, not %s", found, hash)
	}
	return decoded, nil
}
