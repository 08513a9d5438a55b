// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	nodeview "github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// showMap draws a node as its status and its agent's full report have it: CPUs with their roles in the plan in force, and those that a failed check
// names in the colour of failures.
func (s *stage) showMap(ctx context.Context, name string) error {
	nodePlan, err := s.planOf(ctx, name)
	if err != nil {
		return err
	}
	var node v1alpha1.LowLatencyNode
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return fmt.Errorf("reading LowLatencyNode %q: %w", name, err)
	}
	drawing, err := nodeMap(&node, s.cluster.Report(name), nodePlan, text.NewPalette(!color.NoColor), s.narrator.columns())
	if err != nil {
		return err
	}
	s.narrator.block(drawing)
	return nil
}

// nodeMap is the map of a node, as kubectl lowlatency node draws it.
func nodeMap(node *v1alpha1.LowLatencyNode, report *nodereport.Report, nodePlan *plan.NodePlan, palette text.Palette, columns int) (string, error) {
	hardware, err := topology.FromInventory(node.Status.Inventory)
	if err != nil {
		return "", fmt.Errorf("reading the inventory of node %q: %w", node.Name, err)
	}
	in := nodeview.NodeInput{Name: node.Name, Profile: profileName, Topology: hardware, Plan: nodePlan}
	drawn := nodeview.OfCluster(in, node, report)
	return text.NodeMap(&drawn, palette, columns), nil
}

// playRealHost lets the agent of the real machine report, and shows what it found.
func playRealHost(ctx context.Context, s *stage) error {
	profile, err := parseProfile(realHostYAML)
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, profile); err != nil {
		return fmt.Errorf("creating profile %q: %w", profile.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	for {
		verdict, err := s.realHostVerdict(ctx, profile.Name)
		if err != nil {
			return err
		}
		if verdict != "" {
			s.narrator.say("%s", verdict)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the verdict about this machine: %w", context.Cause(ctx))
		case <-time.After(pace):
		}
	}
}

// realHostVerdict is what the profile or the agent says about the real machine; "" while they do not yet.
func (s *stage) realHostVerdict(ctx context.Context, profileName string) (string, error) {
	var profile v1alpha1.LowLatencyNodeProfile
	if err := s.client.Get(ctx, client.ObjectKey{Name: profileName}, &profile); err != nil {
		return "", fmt.Errorf("reading profile %q: %w", profileName, err)
	}
	var node v1alpha1.LowLatencyNode
	if err := s.client.Get(ctx, client.ObjectKey{Name: realHost}, &node); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("reading LowLatencyNode %q: %w", realHost, err)
	}
	if degraded := meta.FindStatusCondition(profile.Status.Conditions, v1alpha1.ConditionDegraded); degraded != nil &&
		degraded.Status == metav1.ConditionTrue {
		return "No plan for this machine: " + degraded.Message, nil
	}
	if node.Spec.PlanHash == "" || node.Status.VerifiedPlanHash != node.Spec.PlanHash || node.Status.Checks == nil {
		return "", nil
	}
	return realHostReport(&node), nil
}

func realHostReport(node *v1alpha1.LowLatencyNode) string {
	inventory, checks := node.Status.Inventory, node.Status.Checks
	var report strings.Builder
	fmt.Fprintf(&report, "%s · kernel %s · CPUs %s\n%d checks passed, %d failed, %d unknown. Some of those that failed:\n",
		inventory.ProcessorModel, inventory.KernelRelease, inventory.OnlineCPUs, checks.Passed, checks.Failed, checks.Unknown)
	for _, finding := range node.Status.Findings[:min(2, len(node.Status.Findings))] {
		fmt.Fprintf(&report, "\n%s  %s\n%s\nfix: %s\n", finding.Severity, finding.Check, finding.Message, finding.Fix)
	}
	return report.String()
}
