// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package command

import (
	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
)

func (s *session) trustCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "trust KEY",
		Short: "Take the instructions of another key from now on, when the operator has lost the one before",
		Long: "Take the instructions that are signed with KEY from now on, and none of the key before. KEY is the operator's public key in\n" +
			"base64, as \"kubectl lowlatency signing-key show\" prints it. What is in force on this host stays. Nothing but root's word makes the\n" +
			"key right: compare it with what the operator has.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, arguments []string) error {
			key, err := instruction.ParseKey(arguments[0])
			if err != nil {
				return err
			}
			return s.with(func(g *guard.Guard, _ Machine) error { return g.Trust(key) })
		},
	}
}
