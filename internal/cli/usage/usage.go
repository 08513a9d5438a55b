// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package usage is what commands of all programs have in common: flags that take one of several words, and sentences about names that
// do not exist.
package usage

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/nearname"
)

// Choice is a flag that takes one of several words.
type Choice struct {
	// Value is the word chosen.
	Value string
	// Allowed are the words that may be chosen.
	Allowed []string
	// Other judges a value that is none of the words; nil where there are words only. It reports whether the value is of its kind.
	Other func(value string) (isOther bool, err error)
	// OtherNames are the values that Other takes, for people.
	OtherNames []string
}

// String returns the word chosen.
func (c *Choice) String() string { return c.Value }

// Set chooses a word, in letters of either case.
func (c *Choice) Set(value string) error {
	if c.Other != nil {
		if isOther, err := c.Other(value); isOther || err != nil {
			c.Value = value
			return err
		}
	}
	at := slices.IndexFunc(c.Allowed, func(allowed string) bool { return strings.EqualFold(allowed, value) })
	if at < 0 {
		return fmt.Errorf("must be one of %s%s", strings.Join(c.names(), ", "), DidYouMean(nearname.Of(value, c.Allowed)))
	}
	c.Value = c.Allowed[at]
	return nil
}

// Type names the kind of flag in the help.
func (c *Choice) Type() string { return strings.Join(c.names(), "|") }

func (c *Choice) names() []string { return slices.Concat(c.Allowed, c.OtherNames) }

// DidYouMean is the part of a sentence about a name that does not exist; "" when there is none near.
func DidYouMean(near string) string {
	if near == "" {
		return ""
	}
	return " (did you mean " + near + "?)"
}

// Group makes a command of one that has only commands below it: without arguments it prints its help, and an argument is a
// command that does not exist.
func Group(command *cobra.Command) *cobra.Command {
	command.Args = noSuchCommand
	command.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	command.SetFlagErrorFunc(FlagError)
	return command
}

// noSuchCommand refuses arguments of a group: they were meant as the name of a command.
func noSuchCommand(group *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, command := range group.Commands() {
		if command.IsAvailableCommand() {
			names = append(names, command.Name())
		}
	}
	return fmt.Errorf("there is no command %q%s; see %s --help", args[0], DidYouMean(nearname.Of(args[0], names)), group.CommandPath())
}

// NoArguments refuses arguments of a command that has none, and says where a file belongs.
func NoArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	where := ""
	if flag := command.Flags().Lookup("filename"); flag != nil {
		where = "; a file is given by -f"
	}
	return fmt.Errorf("%s takes no arguments, and %q is one%s; see %s --help", command.Name(), args[0], where, command.CommandPath())
}

// FlagError says what is wrong with a flag, and which was probably meant.
func FlagError(command *cobra.Command, err error) error {
	if words := command.Flags().Args(); command.HasAvailableSubCommands() && len(words) > 0 {
		// The flag is one of the command that was meant.
		return noSuchCommand(command, words)
	}
	near := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if !flag.Hidden {
				names = append(names, flag.Name)
			}
		})
		if near = nearname.Of(unknown.GetSpecifiedName(), names); near != "" {
			near = "--" + near
		}
	}
	return fmt.Errorf("%w%s; see %s --help", err, DidYouMean(near), command.CommandPath())
}
