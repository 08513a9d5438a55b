// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// targets are the flags of commands that plan: what is wanted, and for which hosts.
type targets struct {
	files   []string
	profile string
	roots   []string
}

// planned is one node with its plan, which is nil when a finding is Critical.
type planned struct {
	node
	plan     *plan.NodePlan
	findings []plan.Finding
}

func (t *targets) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&t.files, "filename", "f", nil,
		"`FILE` with a LowLatencyNodeProfile, and with LowLatencyNodes whose inventories stand for hosts; - for the standard input; repeatable")
	flags.StringVar(&t.profile, "profile", "", "`NAME` of the profile, when the files hold several")
	flags.StringArrayVar(&t.roots, "root", nil, rootHelp+"; repeatable; / when neither a root nor a LowLatencyNode is given")
}

// load reads the profile and the nodes.
func (t *targets) load(ctx context.Context, a *app) (*v1alpha1.LowLatencyNodeProfile, []node, error) {
	all, err := a.readManifests(ctx, t.files)
	if err != nil {
		return nil, nil, err
	}
	profile, err := all.profile(t.profile)
	if err != nil {
		return nil, nil, err
	}
	roots := t.roots
	if len(roots) == 0 && len(all.nodes) == 0 {
		roots = []string{"/"}
	}
	nodes, err := readNodes(ctx, roots)
	if err != nil {
		return nil, nil, err
	}
	for _, object := range all.nodes {
		node, err := inventoryNode(object)
		if err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, node)
	}
	return profile, nodes, checkNames(nodes)
}

// inventoryNode makes a node of what an agent reported about it.
func inventoryNode(object *v1alpha1.LowLatencyNode) (node, error) {
	if object.Status.Inventory == nil {
		return node{}, fmt.Errorf("LowLatencyNode %q has no status.inventory yet", object.Name)
	}
	machine, err := topology.FromInventory(object.Status.Inventory)
	if err != nil {
		return node{}, fmt.Errorf("LowLatencyNode %q: %w", object.Name, err)
	}
	return node{name: object.Name, topology: machine}, nil
}

func planNodes(profile *v1alpha1.LowLatencyNodeProfile, nodes []node) []planned {
	all := make([]planned, 0, len(nodes))
	for _, node := range nodes {
		p, findings := plan.New(plan.Input{Profile: profile, Node: node.name, Topology: node.topology})
		all = append(all, planned{node: node, plan: p, findings: findings})
	}
	return all
}

// unplanned is errFindings when some node has no plan.
func unplanned(all []planned) error {
	for _, node := range all {
		if node.plan == nil {
			return errFindings
		}
	}
	return nil
}
