// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/nearname"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

func (a *app) explainCommand() *cobra.Command {
	format := newFormat()
	command := &cobra.Command{
		Use:   "explain [CHECK|GROUP]",
		Short: "Say what a check asks the kernel, what its failure costs, and how to mend it",
		Long: `Print the manual of one check: what holds when it passes, what its failure costs, which files it reads, how to mend
it, and where the rule comes from. Of a group, such as cpu, list the checks that begin with it; without a name, list
all. The texts are those of docs/checks.md.`,
		Example: "  kubectl lowlatency explain\n  kubectl lowlatency explain irq\n  kubectl lowlatency explain cpu.nohz-full",
		Args:    cobra.MaximumNArgs(1),
		ValidArgsFunction: func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return begunBy(begun, describedChecks()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.explainAll(view.Manuals(), format.Value)
			}
			return a.explainCheck(args[0], format.Value)
		},
	}
	command.Flags().VarP(format, "output", "o", "output format")
	return command
}

func (a *app) explainAll(manuals []view.Manual, format string) error {
	return a.print(format, manuals, func() string { return text.Manuals(manuals, a.palette(), a.width()) })
}

func (a *app) explainCheck(name, format string) error {
	manuals := view.Manuals()
	names := make([]string, 0, len(manuals))
	for i := range manuals {
		if string(manuals[i].Check) == name {
			return a.print(format, &manuals[i], func() string { return text.Manual(&manuals[i], a.palette(), a.width()) })
		}
		names = append(names, string(manuals[i].Check))
	}
	group := strings.TrimSuffix(name, ".") + "."
	if manuals = slices.DeleteFunc(manuals, func(m view.Manual) bool { return !strings.HasPrefix(string(m.Check), group) }); len(manuals) > 0 {
		return a.explainAll(manuals, format)
	}
	return fmt.Errorf("there is no check %q%s; kubectl lowlatency explain lists all", name, usage.DidYouMean(nearname.Of(name, names)))
}

// describedChecks are the names of all checks for a shell, with their titles.
func describedChecks() []cobra.Completion {
	manuals := view.Manuals()
	described := make([]cobra.Completion, 0, len(manuals))
	for i := range manuals {
		described = append(described, cobra.CompletionWithDesc(string(manuals[i].Check), manuals[i].Title))
	}
	return described
}
