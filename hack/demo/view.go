// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
)

// view is what the demo shows at one moment, read from the API server.
type view struct {
	profile v1alpha1.LowLatencyNodeProfile
	rows    []nodeRow
	// third is the title of the third column.
	third string
}

// summary is the profile in one line.
func (v view) summary() string {
	n, ready := counts(&v.profile), condition(v.profile.Status.Conditions, v1alpha1.ConditionReady)
	return fmt.Sprintf("profile %s: Ready %s (%s), %d nodes, %d planned, %d applied, %d de-jittered, %d NUMA-aligned",
		v.profile.Name, status(ready), reason(ready), n.Matched, n.Planned, n.Applied, n.DeJittered, n.NUMAAligned)
}

// look reads the profile and its nodes.
func (s *stage) look(ctx context.Context) (view, error) {
	v := view{third: "pool"}
	if err := s.client.Get(ctx, client.ObjectKey{Name: profileName}, &v.profile); err != nil {
		return v, fmt.Errorf("reading the profile: %w", err)
	}
	var nodes v1alpha1.LowLatencyNodeList
	if err := s.client.List(ctx, &nodes); err != nil {
		return v, fmt.Errorf("listing LowLatencyNodes: %w", err)
	}
	byName := map[string]*v1alpha1.LowLatencyNode{}
	for i := range nodes.Items {
		byName[nodes.Items[i].Name] = &nodes.Items[i]
	}
	for _, name := range s.tradingNodes() {
		var node corev1.Node
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return v, fmt.Errorf("reading Node %q: %w", name, err)
		}
		v.rows = append(v.rows, nodeRow{
			name: name, machine: s.machines[name], reboots: s.fleet.Reboots(name), node: byName[name],
			third:    node.Labels[v1alpha1.LabelPool],
			platform: platformState(&node),
		})
	}
	return v, nil
}

// platformState is what the platform does with a node, in one word.
func platformState(node *corev1.Node) string {
	state := node.Annotations["machineconfiguration.openshift.io/state"]
	if state == "Working" {
		return "rebooting"
	}
	if node.Spec.Unschedulable {
		return "cordoned"
	}
	return "up"
}

// tradingNodes are the nodes of the fleet that the profile governs.
func (s *stage) tradingNodes() []string {
	var names []string
	for _, name := range s.fleet.Names() {
		if name != realHost {
			names = append(names, name)
		}
	}
	return names
}

// watch redraws the table until the state is reached.
func (s *stage) watch(ctx context.Context, goal string, reached func(view) bool) error {
	return watch(ctx, s.narrator, follow{look: s.look, failure: s.cluster.Failure}, goal, reached)
}

// watch is until with the table redrawn.
func watch(ctx context.Context, narrator *narrator, with follow, goal string, reached func(view) bool) error {
	screen := narrator.screen()
	return until(ctx, narrator, with, goal, func(v view) bool {
		screen.show(v.summary(), profileTable(v, narrator.columns()))
		if !reached(v) {
			return false
		}
		screen.finish()
		return true
	})
}

// until looks at the cluster until the state is reached or the act times out.
func (s *stage) until(ctx context.Context, goal string, reached func(view) bool) error {
	return until(ctx, s.narrator, follow{look: s.look, failure: s.cluster.Failure}, goal, reached)
}

// follow is how a cluster is looked at: what it shows, and what has failed that should not.
type follow struct {
	look    func(context.Context) (view, error)
	failure func() error
}

// until looks until the state is reached or the act times out.
func until(ctx context.Context, narrator *narrator, with follow, goal string, reached func(view) bool) error {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	var last view
	for {
		if err := with.failure(); err != nil {
			return err
		}
		v, err := with.look(ctx)
		if err == nil {
			last = v
			if reached(v) {
				narrator.done("%s", goal)
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w; the profile says: %s", goal, context.Cause(ctx), summary(&last.profile))
		case <-ticker.C:
		}
	}
}

// summary is what the profile says about itself, for an error message.
func summary(profile *v1alpha1.LowLatencyNodeProfile) string {
	ready := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		ready = &metav1.Condition{Reason: "no status yet"}
	}
	return ready.Reason + ": " + ready.Message
}

// planOf reads the plan in force for a node as its agent does.
func (s *stage) planOf(ctx context.Context, name string) (*plan.NodePlan, error) {
	var node v1alpha1.LowLatencyNode
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return nil, fmt.Errorf("reading LowLatencyNode %q: %w", name, err)
	}
	var stored corev1.ConfigMap
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: node.Spec.PlanConfigMap}, &stored); err != nil {
		return nil, fmt.Errorf("reading the plan of node %q: %w", name, err)
	}
	nodePlan := &plan.NodePlan{}
	if err := json.Unmarshal([]byte(stored.Data[v1alpha1.PlanKey]), nodePlan); err != nil {
		return nil, fmt.Errorf("reading the plan of node %q: %w", name, err)
	}
	return nodePlan, nil
}
