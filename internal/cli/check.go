// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

type checkOptions struct {
	targets
	window time.Duration
	failOn *usage.Choice
	format *usage.Choice
}

func (a *app) checkCommand() *cobra.Command {
	options := &checkOptions{format: newFormat(), failOn: &usage.Choice{Allowed: []string{
		string(v1alpha1.FailOnImpact), string(v1alpha1.FailOnCritical), string(v1alpha1.FailOnHigh), string(v1alpha1.FailOnMedium), string(v1alpha1.FailOnLow),
	}}}
	command := &cobra.Command{
		Use:   "check -f FILE [--root [NAME=]PATH]...",
		Short: "Compare what a host's kernel says now with the plan",
		Long: `Plan the host, then compare what its running kernel says about itself with the plan, by the same checks as
the node's agent. Reading changes nothing, and makes no isolated CPU run code. Checks that count interrupts
and other events need two readings: give --window on a live host.

A failed check that can put work on an isolated CPU, slow it down, or move memory, interrupts or devices away from
their NUMA node makes a condition False, unless spec.verification.failOn of the profile says otherwise; --fail-on takes
its place. With a severity, the failed checks of that severity and of higher ones count.

Exit codes: 0 all conditions are True; 1 one is False, or the profile does not fit the host; 2 wrong usage or input;
3 one is Unknown and none is False: the host does not report what a critical check needs.`,
		Example: "  kubectl lowlatency check -f trading.yaml --window 10s\n  kubectl lowlatency check -f trading.yaml --root node.tar.gz",
		Args:    usage.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context(), options) },
	}
	options.addFlags(command, a)
	command.Flags().DurationVar(&options.window, "window", 0, "read a live host twice, so long apart, such as 10s")
	command.Flags().Var(options.failOn, "fail-on", "which failed checks make a condition False, in place of what the profile says")
	command.Flags().VarP(options.format, "output", "o", "output format")
	return command
}

func (a *app) check(ctx context.Context, options *checkOptions) error {
	if options.window < 0 {
		return fmt.Errorf("--window %s is negative", options.window)
	}
	options.checks = true
	wanted, nodes, err := options.load(ctx, a)
	if err != nil {
		return err
	}
	for _, node := range nodes {
		if node.facts == nil {
			return fmt.Errorf("check reads hosts; the inventory of LowLatencyNode %q is not enough, give --root", node.name)
		}
	}
	all := planNodes(wanted, nodes)
	before, err := secondReading(ctx, options.window, all)
	if err != nil {
		return err
	}
	views := make([]view.Check, 0, len(all))
	for i, node := range all {
		views = append(views, checkNode(wanted.profile.Name, node, before[i], options))
	}
	err = a.print(options.format.Value, views, func() string { return text.Checks(views, a.palette(), a.width()) })
	if err != nil {
		return err
	}
	statuses := make([]metav1.ConditionStatus, 0, len(views))
	for _, checked := range views {
		statuses = append(statuses, checked.Status())
	}
	return verdict(statuses...)
}

// checkNode compares one node with its plan.
func checkNode(profile string, node planned, before *host.Facts, options *checkOptions) view.Check {
	v := view.Unplanned(node.name, profile, node.Findings)
	if node.Plan != nil {
		report := verify.Evaluate(verify.Input{
			Plan: node.Plan, Facts: node.facts, Before: before, FailOn: v1alpha1.FailureThreshold(options.failOn.Value),
		})
		v = view.OfReport(node.name, node.Plan, node.topology, report, node.Findings)
		v.AddTruth(verify.TruthOf(node.Plan, node.facts))
	}
	if options.window > 0 {
		seconds := options.window.Seconds()
		v.WindowSeconds = &seconds
	}
	return v
}

// secondReading waits for the window and reads every host again. It returns the first reading of each
// node, or nil for each without a window.
func secondReading(ctx context.Context, window time.Duration, all []planned) ([]*host.Facts, error) {
	before := make([]*host.Facts, len(all))
	if window == 0 {
		return before, nil
	}
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the second reading: %w", ctx.Err())
	case <-time.After(window):
	}
	for i, node := range all {
		again, err := readNode(ctx, node.root, node.reading())
		if err != nil {
			return nil, err
		}
		if interrupts(again.facts) == interrupts(node.facts) {
			return nil, fmt.Errorf("%s counted no interrupt within %s: --window is for live hosts, not for snapshots", node.root, window)
		}
		before[i], all[i].facts, all[i].topology = node.facts, again.facts, again.topology
	}
	return before, nil
}

// reading is what the checks of a node's plan read besides the usual, and what was read besides it before.
func (p planned) reading() reading {
	again := reading{addresses: p.addresses}
	if p.Plan != nil {
		again.request = verify.Requests(p.Plan)
	}
	again.request.UserSpaces = p.userSpaces
	return again
}

// interrupts adds up all counters. On a live host the sum grows all the time.
func interrupts(facts *host.Facts) uint64 {
	var sum uint64
	lines, _ := facts.Interrupts.Lines.Get()
	for _, line := range lines {
		for _, count := range line.Counts {
			sum += count
		}
	}
	return sum
}
