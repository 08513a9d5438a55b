// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command lowlatency-operator is all processes of the operator in one binary: the manager, which plans and
// reports, the agent, which runs on every node that is planned for (there as a smaller program, lowlatency-agent), and the device plugin, which runs on every node of
// a BypassNICPool, or the DRA driver in its place.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/probe"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

// release is the version that a release build states, as the Makefile and the Dockerfile do.
//
//nolint:gochecknoglobals // The linker can set a package variable only.
var release string

func main() { os.Exit(process.Execute(newCommand())) }

// newCommand returns the command with all its subcommands.
func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "lowlatency-operator",
		Short:         "Plan, tune and verify the nodes of latency-critical workloads",
		Version:       version.Of(release).String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(newManagerCommand(), newInstallerCommand(), newInstallGuardCommand(), process.NewAgentCommand(), newDevicePluginCommand(), newDRADriverCommand(), probe.Command("/host"),
		process.NewVersionCommand())
	return command
}
