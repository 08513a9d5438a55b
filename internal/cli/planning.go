// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// targets are the flags of commands that plan: what is wanted, and for which hosts.
type targets struct {
	files   []string
	profile string
	roots   []string
	hostIPs []string
	// checks reports whether what the checks of the plans ask for is read, too.
	checks bool
	// hardware reports whether the hardware of the hosts is all that is read.
	hardware bool
	// installation reports whether the hardware of the hosts, their configuration and their software are all that is read.
	installation bool
	// configuration reports whether no more of the hosts is read than what plans are made from and compared with.
	configuration bool
}

// planned is one node with the outcome of planning for it.
type planned struct {
	node
	*fleet.Planned
}

func (t *targets) addFlags(command *cobra.Command, a *app) {
	flags := command.Flags()
	flags.StringArrayVarP(&t.files, "filename", "f", nil,
		"`FILE` or folder with a LowLatencyNodeProfile, with BypassNICPools beside it, and with LowLatencyNodes whose inventories stand for hosts; - for the standard input; repeatable")
	flags.StringVar(&t.profile, "profile", "", "`NAME` of the profile, when the files hold several")
	flags.StringArrayVar(&t.roots, "root", nil, rootHelp+"; repeatable; / when neither a root nor a LowLatencyNode is given")
	flags.StringArrayVar(&t.hostIPs, "host-ip", nil, hostIPHelp)
	register(command, "profile", complete(func(ctx context.Context) ([]string, error) { return a.profileNames(ctx, t.files) }))
}

// load reads the profile, the pools and the nodes.
func (t *targets) load(ctx context.Context, a *app) (wanted, []node, error) {
	all, err := a.readManifests(ctx, t.files)
	if err != nil {
		return wanted{}, nil, err
	}
	wanted, err := all.wanted(t.profile)
	if err != nil {
		return wanted, nil, err
	}
	nodes, err := t.nodesFor(ctx, all, wanted)
	return wanted, nodes, err
}

// nodesFor reads of the hosts what planning for them needs.
func (t *targets) nodesFor(ctx context.Context, all *manifests, wanted wanted) ([]node, error) {
	asked := reading{hardware: t.hardware, installation: t.installation, configuration: t.configuration}
	if t.checks {
		asked.more = wanted.checked
	}
	return t.nodes(ctx, all, asked)
}

// nodes reads the hosts, and makes nodes of the LowLatencyNodes.
func (t *targets) nodes(ctx context.Context, all *manifests, asked reading) ([]node, error) {
	roots := t.roots
	if len(roots) == 0 && len(all.nodes) == 0 {
		roots = []string{"/"}
	}
	addresses, err := parseAddresses(t.hostIPs)
	if err != nil {
		return nil, err
	}
	asked.addresses = addresses
	nodes, err := readNodes(ctx, roots, asked)
	if err != nil {
		return nil, err
	}
	for _, object := range all.nodes {
		node, err := inventoryNode(object)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, node)
	}
	return nodes, checkNames(nodes)
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
	return node{name: object.Name, topology: machine, report: object}, nil
}

func planNodes(wanted wanted, nodes []node) []planned {
	all := make([]planned, 0, len(nodes))
	for _, node := range nodes {
		all = append(all, wanted.planned(node))
	}
	return all
}

// unplanned is errFindings when some node has no plan.
func unplanned(all []planned) error {
	for _, node := range all {
		if node.Plan == nil {
			return errFindings
		}
	}
	return nil
}
