// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/nearname"
)

// didYouMean is the part of a sentence about a name that does not exist; "" when there is none near.
func didYouMean(near string) string {
	if near == "" {
		return ""
	}
	return " (did you mean " + near + "?)"
}

// noSuchCommand refuses arguments of the root command: they were meant as the name of another.
func noSuchCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, command := range root.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return fmt.Errorf("there is no command %q%s; see %s --help", args[0], didYouMean(nearname.Of(args[0], names)), root.CommandPath())
}

// flagError says what is wrong with a flag, and which was probably meant.
func flagError(command *cobra.Command, err error) error {
	near := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		if near = nearname.Of(unknown.GetSpecifiedName(), names); near != "" {
			near = "--" + near
		}
	}
	return fmt.Errorf("%w%s; see %s --help", err, didYouMean(near), command.CommandPath())
}
