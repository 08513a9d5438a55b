// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

// compareCommand puts two results beside each other.
func compareCommand() *cobra.Command {
	output := &usage.Choice{Value: "text", Allowed: []string{"text", "json", "svg"}}
	command := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Put two measurements of the same kind side by side",
		Long: `Put two results side by side that probe jitter, pingpong, samples, rate, load or recorded wrote with -o json, both by
the same command: before and after a node was tuned, or a change of its firmware. Nothing is measured, and the files
may come from other machines. probe stacks puts several network stacks into one table.

Of jitter, there is a line or a picture for each CPU, on the same scales. Of the others, there is a line before, a line
after and the ratio for each size or rate, or for the answer of a search; a ratio with ~ is of a difference within the
spread. What else differs between both setups, or between the rules of two searches, is named below. -o json has the
same values.`,
		Example: "  kubectl lowlatency probe compare before.json after.json\n  kubectl lowlatency probe compare before.json after.json -o svg > pair.svg\n" +
			"  kubectl lowlatency probe compare before.json after.json -o json > pair.json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("name two files with results of the same probe command with -o json, BEFORE and AFTER; there are %d", len(args))
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
	command.Flags().VarP(output, "output", "o", "output format; svg of jitter alone")
	return command
}

func compare(beforeFile, afterFile, format string, out io.Writer) error {
	before, err := readSaved(beforeFile)
	if err != nil {
		return err
	}
	after, err := readSaved(afterFile)
	if err != nil {
		return err
	}
	if before.command != after.command {
		otherwise := ""
		if before.isPingPong() && after.isPingPong() {
			otherwise = ", or put both into one table with probe stacks"
		}
		return fmt.Errorf("%s is a result of probe %s and %s one of probe %s: compare two of the same command%s", beforeFile, before.command, afterFile, after.command, otherwise)
	}
	draw := comparedLatency
	if before.jitter != nil {
		draw = comparedJitter
	}
	drawn, err := draw(before, after, format)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, drawn)
	return err
}

func comparedJitter(before, after *saved, format string) (string, error) {
	switch format {
	case "svg":
		return jitter.Compare(before.jitter, after.jitter), nil
	case "json":
		return comparedJSON(jitter.CompareResults(before.jitter, after.jitter))
	}
	return text.Harmless(text.JitterPair(before.jitter, after.jitter, text.NewPalette(false), reportColumns)), nil
}

func comparedLatency(before, after *saved, format string) (string, error) {
	if format == "svg" {
		return "", fmt.Errorf("-o svg draws results of probe jitter, and %s is one of probe %s: leave it out for a table", before.file, before.command)
	}
	if err := before.isLike(after); err != nil {
		return "", err
	}
	if format == "json" {
		return comparedJSON(comparedResults{latency.CompareResults(before.latency, after.latency), text.Differences(before.latency, after.latency)})
	}
	return text.Harmless(text.LatencyPair(before.latency, after.latency, text.NewPalette(false), reportColumns)), nil
}

// comparedResults is the JSON form of two results of a measurement over the network.
type comparedResults struct {
	latency.Comparison

	// Differences are what of both setups differs, and of the rules of both searches.
	Differences []text.Difference `json:"differences"`
}

func comparedJSON(compared any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(compared)
	return b.String(), err
}

// isLike says why numbers of two results of one command are not of the same thing; nil where they are.
func (s *saved) isLike(other *saved) error {
	was, is := s.latency, other.latency
	if was.Generator != is.Generator {
		return fmt.Errorf("%s has runs of %.60q and %s of %.60q: compare runs of one generator and version", s.file, was.Generator, other.file, is.Generator)
	}
	if was.Kind != latency.KindLoadSearch && text.Reported(was) != text.Reported(is) {
		return fmt.Errorf("%s has latencies of %s and %s of %s: measure both with the same --report", s.file, text.Reported(was), other.file, text.Reported(is))
	}
	if !slices.ContainsFunc(latency.SizePairs(was, is), isBoth[latency.Size]) && was.Kind == latency.KindPingPong {
		return fmt.Errorf("%s has messages of %s bytes and %s of %s: there is no size that both have", s.file, sizesOf(was), other.file, sizesOf(is))
	}
	if !slices.ContainsFunc(latency.RatePairs(was, is), isBoth[latency.Rate]) && was.Kind == latency.KindRateSweep {
		return fmt.Errorf("%s has %s and %s %s: there is no rate of messages of one size that both have", s.file, ratesOf(was), other.file, ratesOf(is))
	}
	return nil
}

func isBoth[T any](pair latency.Pair[T]) bool { return pair.Before != nil && pair.After != nil }

// mostNamed is how many sizes or rates a sentence names.
const mostNamed = 5

func sizesOf(result *latency.Result) string {
	words := make([]string, 0, len(result.Sizes))
	for i := range result.Sizes {
		words = append(words, strconv.Itoa(result.Sizes[i].Bytes))
	}
	return fewOf(words)
}

func ratesOf(result *latency.Result) string {
	words := make([]string, 0, len(result.Rates))
	for i := range result.Rates {
		words = append(words, fmt.Sprintf("%d a second of %d bytes", result.Rates[i].PerSecond, result.Rates[i].Bytes))
	}
	return fewOf(words)
}

// fewOf are words in a sentence, and how many more there are.
func fewOf(words []string) string {
	named := strings.Join(words[:min(mostNamed, len(words))], ", ")
	if more := len(words) - mostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", named, more)
	}
	return named
}
