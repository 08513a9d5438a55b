// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.Out, "kubectl-lowlatency %s\n", version.Of(a.release))
			return err
		},
	}
}
