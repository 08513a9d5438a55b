// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command lowlatency-agent is the command "agent" of lowlatency-operator and nothing else. An agent runs on every node, and
// what the other processes of the operator are made of would take as much memory there again.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

// release is the version that a release build states, as the Makefile and the Dockerfile do.
//
//nolint:gochecknoglobals // The linker can set a package variable only.
var release string

func main() { os.Exit(process.Execute(newCommand())) }

// newCommand takes the same arguments as lowlatency-operator.
func newCommand() *cobra.Command {
	command := &cobra.Command{
		Use:           "lowlatency-agent",
		Short:         "Report what the kernel of this node is",
		Version:       version.Of(release).String(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	command.AddCommand(process.NewAgentCommand(), process.NewVersionCommand())
	return command
}
