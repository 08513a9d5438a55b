// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

// againstRunning is the value of --against that compares with what the host runs now.
const againstRunning = "running"

// markdown is the output format for comments on pull requests.
const markdown = "markdown"

type planOptions struct {
	targets
	against  string
	exitCode bool
	format   *usage.Choice
}

func (a *app) planCommand() *cobra.Command {
	options := &planOptions{format: newFormat()}
	options.format.Allowed = append(options.format.Allowed, markdown)
	command := &cobra.Command{
		Use:   "plan -f FILE [--root [NAME=]PATH]...",
		Short: "Show what each node is to become, where each value comes from, and what would change",
		Long: `Show the plan of each node: CPU sets, kernel arguments, hugepages, interrupts, kernel parameters,
kubelet settings, files and units, each with the field, preset or piece of hardware that it comes from.
Nodes with equal plans are shown together. With --against, show what differs from another version of the
profile, or from what the host runs now, and why that needs a reboot or not. The other version is a file or a
folder, or a ref of git: then the files of -f are read as they were there, and planned for the hosts as they are now.
Where another nodeSelector of the profile or of a pool, or a profile that is gone since that ref, may move nodes, it
says so of all of them, because no host tells the labels of its node. With -o markdown, print that as a comment on a
pull request.

Exit codes: 0 every node has a plan; 1 a node has none; 2 wrong usage or input; 4, with --exit-code, every node has a
plan, and the changes reboot a node, or may move nodes into or out of a profile or a pool, which reboots them.`,
		Example: `  kubectl lowlatency plan -f trading.yaml --root a.tar.gz --root b=snapshots/b.tar.gz
  kubectl lowlatency plan -f trading.yaml --root a.tar.gz --against running
  kubectl lowlatency plan -f profiles --root snapshots/a.tar.gz --against origin/main -o markdown --exit-code
  kubectl get llnp,lln -o yaml | kubectl lowlatency plan -f - --profile trading -o json`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context(), options) },
	}
	options.addFlags(command, a)
	command.Flags().StringVar(&options.against, "against", "", "show the difference to `FILE`, another version of the profile, to a ref of git, such as origin/main or git:REF, or to what the host is \"running\"")
	command.Flags().BoolVar(&options.exitCode, "exit-code", false, "end with 4 when the changes from what --against names reboot a node, or may move nodes into or out of a profile or a pool")
	command.Flags().VarP(options.format, "output", "o", "output format")
	return command
}

func (a *app) plan(ctx context.Context, options *planOptions) error {
	// A host runs what the checks look at: settings of which only this profile speaks, too.
	options.checks = options.against == againstRunning
	options.configuration = !options.checks
	c, newer, wanted, err := options.read(ctx, a)
	if err != nil {
		return err
	}
	if wanted.profile == nil {
		return a.planReturn(ctx, options, c, newer)
	}
	nodes, err := options.nodesFor(ctx, newer, wanted)
	if err != nil {
		return err
	}
	all := planNodes(wanted, nodes)
	views := make([]view.Plan, 0, len(all))
	drawn := make([]text.NodePlan, 0, len(all))
	for _, node := range all {
		v, err := view.OfPlan(node.name, wanted.profile, node.Plan, node.Findings, cmp.Or(c.against, againstRunning), c.changes(node))
		if err != nil {
			return err
		}
		if options.against == "" {
			v.Changes = nil
		}
		views = append(views, v)
		drawn = append(drawn, text.NodePlan{View: v, Topology: node.topology, Plan: node.Plan})
	}
	if err := a.printPlans(options, views, drawn, wanted.profile.Name, c); err != nil {
		return err
	}
	return cmp.Or(unplanned(all), options.reboots(views, c))
}
