// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// mostStacks is how many stacks a table has.
const mostStacks = 8

// stacksCommand puts ping-pongs by several stacks into one table.
func stacksCommand() *cobra.Command {
	output := &usage.Choice{Value: "text", Allowed: []string{"text", "json"}}
	command := &cobra.Command{
		Use:   "stacks NAME=FILE...",
		Short: "Put ping-pongs by several network stacks into one table",
		Long: `Put ping-pongs by several network stacks into one table: the kernel's sockets, Onload, TCPDirect, ef_vi, frames of
AF_XDP, or whatever there is on this path. Each file is a result of probe pingpong or probe samples with -o json, and
the name is what you call its stack. The first is the base: for each size of its messages, there is a line for each
stack, and a ratio of each percentile to that of the base; one with ~ is of a difference within the spread. Nothing is
measured.

Within a cluster, a LatencyTest of kind StackComparison measures sides in turns, which takes out what changes with time.
Where programs of different kinds have measured, the ratio has what the programs themselves cost.`,
		Example: "  kubectl lowlatency probe stacks kernel=kernel.json onload=onload.json tcpdirect=tcpdirect.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > mostStacks {
				return fmt.Errorf("name 2 to %d results, as kernel=kernel.json, the base first; there are %d", mostStacks, len(args))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return compareStacks(args, output.Value, command.OutOrStdout())
		},
	}
	command.Flags().VarP(output, "output", "o", "output format")
	return command
}

// namedResult takes NAME=FILE apart.
func namedResult(arg string) (name, file string, err error) {
	name, file, found := strings.Cut(arg, "=")
	if !found || name == "" || file == "" {
		return "", "", fmt.Errorf("%q is not NAME=FILE, as kernel=kernel.json is", arg)
	}
	if strings.ContainsFunc(name, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsPrint(c) }) {
		return "", "", fmt.Errorf("%q: the name of a stack is a word without blanks: it is a column of the table", arg)
	}
	return name, file, nil
}

func compareStacks(args []string, format string, out io.Writer) error {
	var stacks []latency.Stack
	for _, arg := range args {
		name, file, err := namedResult(arg)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(stacks, func(s latency.Stack) bool { return s.Name == name }) {
			return fmt.Errorf("%q: there is a stack of this name before it", arg)
		}
		one, err := readSaved(file)
		if err != nil {
			return err
		}
		if !one.isPingPong() {
			return fmt.Errorf("%s is a result of probe %s: stacks are compared by those of probe pingpong and probe samples", file, one.command)
		}
		stacks = append(stacks, latency.Stack{Name: name, Result: one.latency})
		if err := isOfStacks(stacks, file); err != nil {
			return err
		}
	}
	compared := latency.CompareStacks(stacks)
	drawn, err := comparedJSON(compared)
	if format == "text" {
		drawn = text.Harmless(text.Stacks(&compared, text.NewPalette(false), reportColumns))
	}
	_, writeErr := io.WriteString(out, drawn)
	return errors.Join(err, writeErr)
}

// isOfStacks says why the last of stacks has nothing that can be compared with the first; nil where it has.
func isOfStacks(stacks []latency.Stack, file string) error {
	base, last := stacks[0].Result, stacks[len(stacks)-1].Result
	if text.Reported(base) != text.Reported(last) {
		return fmt.Errorf("%s has latencies of %s, and %s of %s: measure both with the same --report", file, text.Reported(last), stacks[0].Name, text.Reported(base))
	}
	if !slices.ContainsFunc(latency.SizePairs(base, last), isBoth[latency.Size]) {
		return fmt.Errorf("%s has messages of %s bytes, and %s of %s: there is no size that both have", file, sizesOf(last), stacks[0].Name, sizesOf(base))
	}
	return nil
}
