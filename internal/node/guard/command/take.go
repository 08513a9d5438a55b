// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
)

func (s *session) takeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "take",
		Short: "Carry out the signed instruction in the inbox; for the unit lowlatency-guard-inbox.service",
		Args:  cobra.NoArgs,
		RunE:  func(command *cobra.Command, _ []string) error { return s.take(command.Context()) },
	}
}

// take carries out what is in the inbox, until nothing new is: what comes while the unit runs does not start it again.
func (s *session) take(ctx context.Context) error {
	for again := true; again; {
		err := s.with(func(g *guard.Guard, m Machine) error {
			next, err := g.Take(ctx)
			if err == nil {
				// One that nobody has looked at, because the guard was killed.
				err = s.proveRestored(ctx, g)
			}
			if err != nil {
				return err
			}
			if err := s.goOn(ctx, g, m, next, false); err != nil || next == guard.Reboot {
				again = false
				return err
			}
			again, err = g.Waiting()
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
