// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package cli is kubectl-lowlatency: it reads hosts, snapshots and manifests, calls the same functions as
// the operator, and prints what they return. Only the commands report, version and test ask a cluster, and node and pool do without files.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/probe"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
)

// Exit codes.
const (
	// ExitOK means that the command did what it was asked to, and that all conditions of the nodes are True.
	ExitOK = 0
	// ExitFindings means that a condition is False, that a node has no plan, that a NIC of a pool is not healthy, or that a measurement has failed.
	ExitFindings = 1
	// ExitUsage means that arguments or input are wrong; a sentence on the standard error says how.
	ExitUsage = 2
	// ExitUnknown means that no condition is False, and one is Unknown: facts of a critical check are missing. A measurement is inconclusive.
	ExitUnknown = 3
	// ExitReboots means, with plan --exit-code, that the changes reboot a node.
	ExitReboots = 4
)

// errFindings ends a command with ExitFindings, errUnknown with ExitUnknown, errReboots with ExitReboots; everything there is to say has been printed.
var (
	errFindings = errors.New("a condition is False")
	errUnknown  = errors.New("a condition is Unknown")
	errReboots  = errors.New("the changes reboot a node")
)

// verdict is the error that ends a command about nodes whose conditions sum up to these statuses.
func verdict(statuses ...metav1.ConditionStatus) error {
	switch {
	case slices.Contains(statuses, metav1.ConditionFalse):
		return errFindings
	case slices.Contains(statuses, metav1.ConditionUnknown):
		return errUnknown
	}
	return nil
}

// Streams are what a command reads and writes.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// complain writes a line to the standard error. That it cannot be written cannot be said anywhere.
func (s Streams) complain(format string, args ...any) {
	_, _ = io.WriteString(s.Err, text.Harmless(fmt.Sprintf(format+"\n", args...)))
}

// Run runs one command line, without the name of the program, and returns the exit code. release is the version that a
// release build states, else "".
func Run(ctx context.Context, release string, args []string, streams Streams) int {
	root := newRoot(release, streams)
	// Given nil, cobra would take the arguments of the process.
	root.SetArgs(append([]string{}, args...))
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return ExitOK
	case errors.Is(err, errFindings):
		return ExitFindings
	case errors.Is(err, errUnknown):
		return ExitUnknown
	case errors.Is(err, errReboots):
		return ExitReboots
	}
	streams.complain("error: %s", err)
	return probe.ExitCode(err, ExitUsage)
}

// Command is the whole command line, for its reference.
func Command() *cobra.Command { return newRoot("", Streams{}) }

func newRoot(release string, streams Streams) *cobra.Command {
	app := &app{Streams: streams, release: release}
	root := usage.Group(&cobra.Command{
		Use:   "kubectl-lowlatency",
		Short: "Plan, render and check low-latency nodes without a cluster",
		Long: `Plan, render and check low-latency nodes, from LowLatencyNodeProfiles and BypassNICPools in files and from hosts or
their snapshots. Nothing but report, version, test, signing-key, and node and pool without -f, asks a cluster. The
functions are those of the operator, so what render prints is what the operator applies.

Exit codes: 0 done; 1 a condition is False, a node has no plan, a NIC of a pool is not healthy, or a measurement has
failed; 2 wrong usage or input; 3 a condition is Unknown and none is False, or a measurement cannot be judged; 4 with
plan --exit-code, the changes reboot a node.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl lowlatency"},
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.PersistentFlags().Var(&app.colour, "color", "colours in text: auto (on a terminal, unless NO_COLOR is set), always or never")
	root.AddCommand(
		app.snapshotCommand(),
		app.topologyCommand(),
		app.planCommand(),
		app.renderCommand(),
		app.checkCommand(),
		app.hostCommand(),
		app.explainCommand(),
		app.nodeCommand(),
		app.poolCommand(),
		app.testCommand(),
		app.reportCommand(),
		app.signingKeyCommand(),
		app.importCommand(),
		probe.Command("/"),
		app.versionCommand(),
	)
	root.InitDefaultCompletionCmd()
	for _, command := range root.Commands() {
		if command.HasSubCommands() {
			usage.Group(command)
		}
	}
	completeFlags(root)
	return root
}
