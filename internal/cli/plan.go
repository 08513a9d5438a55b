// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
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
With -o markdown, print that as a comment on a pull request.

Exit codes: 0 every node has a plan; 1 a node has none; 2 wrong usage or input; 4, with --exit-code, every node has a
plan, and the changes reboot a node.`,
		Example: `  kubectl lowlatency plan -f trading.yaml --root a.tar.gz --root b=snapshots/b.tar.gz
  kubectl lowlatency plan -f trading.yaml --root a.tar.gz --against running
  kubectl lowlatency plan -f profiles --root snapshots/a.tar.gz --against origin/main -o markdown --exit-code
  kubectl get llnp,lln -o yaml | kubectl lowlatency plan -f - --profile trading -o json`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context(), options) },
	}
	options.addFlags(command, a)
	command.Flags().StringVar(&options.against, "against", "", "show the difference to `FILE`, another version of the profile, to a ref of git, such as origin/main or git:REF, or to what the host is \"running\"")
	command.Flags().BoolVar(&options.exitCode, "exit-code", false, "end with 4 when the changes from what --against names reboot a node")
	command.Flags().VarP(options.format, "output", "o", "output format")
	return command
}

func (a *app) plan(ctx context.Context, options *planOptions) error {
	// A host runs what the checks look at: settings of which only this profile speaks, too.
	options.checks = options.against == againstRunning
	options.configuration = !options.checks
	wanted, nodes, err := options.load(ctx, a)
	if err != nil {
		return err
	}
	if options.against == "" && (options.exitCode || options.format.Value == markdown) {
		return errors.New("--exit-code and -o markdown tell changes: say from what, with --against")
	}
	differ, err := a.differ(ctx, options, wanted.profile.Name)
	if err != nil {
		return err
	}
	all := planNodes(wanted, nodes)
	views := make([]view.Plan, 0, len(all))
	drawn := make([]text.NodePlan, 0, len(all))
	for _, node := range all {
		against, changes := differ(node)
		v, err := view.OfPlan(node.name, wanted.profile, node.Plan, node.Findings, against, changes)
		if err != nil {
			return err
		}
		if options.against == "" {
			v.Changes = nil
		}
		views = append(views, v)
		drawn = append(drawn, text.NodePlan{View: v, Topology: node.topology, Plan: node.Plan})
	}
	err = a.print(options.format.Value, views, func() string {
		if options.format.Value == markdown {
			return text.Markdown(drawn, wanted.profile.Name, options.against)
		}
		return text.Plans(drawn, options.against, a.palette(), a.width())
	})
	if err != nil {
		return err
	}
	return cmp.Or(unplanned(all), options.reboots(views))
}

// reboots is errReboots when a node has to reboot and that shall be told by the exit code.
func (o *planOptions) reboots(views []view.Plan) error {
	if o.exitCode && slices.ContainsFunc(views, func(v view.Plan) bool { return v.Reboot == v1alpha1.RebootRequired && len(v.Changes) > 0 }) {
		return errReboots
	}
	return nil
}

// differ returns the function that compares one node's plan with what --against names. Without the flag
// it is what the node runs.
func (a *app) differ(ctx context.Context, options *planOptions, name string) (func(planned) (string, plan.Changes), error) {
	against := options.against
	if against == "" || against == againstRunning {
		return differsFromRunning, nil
	}
	ref, err := gitRef(ctx, against, options.files)
	if err != nil {
		return nil, err
	}
	var other *manifests
	if ref != "" {
		other, err = a.manifestsAt(ctx, ref, options.files)
	} else {
		other, err = a.readManifests(ctx, []string{against})
	}
	if err != nil {
		return nil, err
	}
	if ref != "" && !other.hasProfile(name) {
		// The profile is new: everything that it asks for is.
		return func(node planned) (string, plan.Changes) { return against, plan.Diff(nil, node.Plan) }, nil
	}
	if ref == "" && len(other.profiles) == 1 {
		name = ""
	}
	older, err := other.wanted(name)
	if err != nil {
		return nil, err
	}
	return func(node planned) (string, plan.Changes) { return against, differsFrom(older, node) }, nil
}

func differsFromRunning(node planned) (string, plan.Changes) {
	if node.Plan == nil || node.facts == nil {
		return againstRunning, unknownChanges()
	}
	return againstRunning, plan.DiffRunning(node.facts, node.Plan)
}

func differsFrom(older wanted, node planned) plan.Changes {
	if node.Plan == nil {
		return unknownChanges()
	}
	return plan.Diff(older.plan(node.node).Plan, node.Plan)
}

// unknownChanges stand for a comparison that cannot be made.
func unknownChanges() plan.Changes {
	return plan.Changes{Items: []plan.Change{{
		What: "the running system", Reboot: v1alpha1.RebootUnknown, Why: "it could not be read",
	}}}
}
