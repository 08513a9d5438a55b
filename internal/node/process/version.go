// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"fmt"

	"github.com/spf13/cobra"
)

// NewVersionCommand returns the command that prints what the flag --version of the root command prints: people ask for a version in both ways.
func NewVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			root := command.Root()
			_, err := fmt.Fprintf(command.OutOrStdout(), "%s version %s\n", root.Name(), root.Version)
			return err
		},
	}
}
