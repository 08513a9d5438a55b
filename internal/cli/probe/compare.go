// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

// compareCommand puts two results beside each other.
func compareCommand() *cobra.Command {
	output := &usage.Choice{Value: "text", Allowed: []string{"text", "svg"}}
	command := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Put two measurements of jitter side by side",
		Long: `Put two results of probe jitter -o json side by side, a line or a picture for each CPU, on the same scales: before and
after a node was tuned, or a change of its firmware. Nothing is measured, and the files may come from other machines.`,
		Example: "  kubectl lowlatency probe compare before.json after.json\n  kubectl lowlatency probe compare before.json after.json -o svg > pair.svg",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("name two files with results of probe jitter -o json, BEFORE and AFTER; there are %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []cobra.Completion{"json"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(command *cobra.Command, args []string) error {
			return compare(args[0], args[1], output.Value, command.OutOrStdout())
		},
	}
	command.Flags().VarP(output, "output", "o", "output format")
	return command
}

func compare(beforeFile, afterFile, format string, out io.Writer) error {
	before, err := readResult(beforeFile)
	if err != nil {
		return err
	}
	after, err := readResult(afterFile)
	if err != nil {
		return err
	}
	drawn := text.JitterPair(before, after, text.NewPalette(false), reportColumns)
	if format == "svg" {
		drawn = jitter.Compare(before, after)
	}
	_, err = io.WriteString(out, drawn)
	return err
}

func readResult(file string) (*jitter.Result, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return ParseResult(file, data)
}

// ParseResult reads what probe jitter -o json wrote into a file.
func ParseResult(file string, data []byte) (*jitter.Result, error) {
	result := &jitter.Result{}
	if err := json.Unmarshal(data, result); err != nil {
		return nil, fmt.Errorf("%s is no result of probe jitter -o json: %w", file, err)
	}
	if err := result.Validate(); err != nil {
		return nil, fmt.Errorf("%s is no result of probe jitter -o json: %w", file, err)
	}
	return result, nil
}
