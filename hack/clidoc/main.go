// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command clidoc prints docs/cli-reference.md, the reference of the command line, from its commands:
//
//	go run ./hack/clidoc > docs/cli-reference.md
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
)

const introduction = `# The command line, command by command

<!-- Printed by hack/clidoc from internal/cli. Edit the commands, not this file. -->

What ` + "`--help`" + ` of each command says. [cli.md](cli.md) is the manual: what the output means, with its fields and exit codes.
`

func main() {
	if _, err := os.Stdout.WriteString(reference(cli.Command())); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// reference is the whole page.
func reference(root *cobra.Command) string {
	var page strings.Builder
	page.WriteString(introduction + "\n| Command | What it does |\n|---|---|\n")
	commands := leaves(root)
	for _, command := range commands {
		fmt.Fprintf(&page, "| [`%s`](#%s) | %s |\n", command.CommandPath(), strings.ReplaceAll(command.CommandPath(), " ", "-"), command.Short)
	}
	page.WriteString("\n## Flags of all commands\n")
	flags(&page, root.PersistentFlags())
	for _, command := range commands {
		write(&page, command)
	}
	return page.String()
}

// leaves are the commands that do something, those of cobra's own left out.
func leaves(command *cobra.Command) []*cobra.Command {
	var found []*cobra.Command
	for _, child := range command.Commands() {
		switch {
		case !child.IsAvailableCommand() || child.Name() == "help" || child.Name() == "completion":
		case child.HasAvailableSubCommands():
			found = append(found, leaves(child)...)
		default:
			found = append(found, child)
		}
	}
	return found
}

// write writes the section of a command.
func write(page *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(page, "\n## %s\n\n", command.CommandPath())
	text := command.Long
	if text == "" {
		text = command.Short + "."
	}
	page.WriteString(strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(text))
	fmt.Fprintf(page, "\n\nUsage: `%s`\n", command.UseLine())
	if command.Example != "" {
		page.WriteString("\n```sh\n")
		for line := range strings.Lines(strings.TrimRight(command.Example, "\n") + "\n") {
			page.WriteString(strings.TrimPrefix(line, "  "))
		}
		page.WriteString("```\n")
	}
	flags(page, command.LocalNonPersistentFlags())
}

// flags writes the table of a set of flags.
func flags(page *strings.Builder, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	page.WriteString("\n| Flag | Default | Meaning |\n|---|---|---|\n")
	set.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(flag)
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		if value != "" {
			name += " " + value
		}
		standard := flag.DefValue
		if standard == "[]" || standard == "false" {
			standard = ""
		}
		if standard != "" {
			standard = "`" + standard + "`"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", strings.ReplaceAll(name, "|", `\|`), standard, strings.ReplaceAll(usage, "|", `\|`))
	})
}
