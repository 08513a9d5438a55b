// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/progress"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// searchFlags say how a search goes.
type searchFlags struct {
	search                         latency.SearchOptions
	minimum, start, maximum, least uint
	probes                         uint
	// isGiven reports whether somebody has given a flag.
	isGiven func(string) bool
}

func newSearchFlags() searchFlags {
	return searchFlags{search: latency.SearchOptions{
		Granularity: 0.01, Sniff: 2 * time.Second, Search: 15 * time.Second, Confirm: time.Minute, Retries: 1, GrowthPercent: latency.DefaultGrowthPercent,
	}}
}

// loadFlags say what is searched for.
type loadFlags struct {
	*streamFlags
	searchFlags
}

// loadCommand looks for the highest rate.
func loadCommand(root string) *cobra.Command {
	flags := &loadFlags{streamFlags: newStreamFlags(), searchFlags: newSearchFlags()}
	command := &cobra.Command{
		Use:   "load --server | --client HOST",
		Short: "Look for the highest rate of messages without loss and with a stable latency",
		Long: `Look for the highest rate of messages that passes: its loss and its latencies are within the limits, and the
latency has not grown too much over that of a low rate, ten times in the middle unless --growth says it. A first
rate is doubled until one does not pass, then the rate between is narrowed down; a short trial comes before each
long one, and the best rate must hold over a longer one. The answer is an interval, the best rate that passed and
the lowest that did not. A rate that the sender does not reach says nothing about the receiver, and is told so.
Latencies are those of probes, a second stream of few messages.`,
		Example: "  kubectl lowlatency probe load --server\n  kubectl lowlatency probe load --client 10.0.0.2 --limit 99=50us --growth 3 --growth-percentile 99\n" +
			"  kubectl lowlatency probe load --client 10.0.0.2 --at-least 200000 --confirm 1h",
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command, flags.measure)
		},
	}
	flags.streamFlags.register(command.Flags(), root, lossOfRates)
	flags.searchFlags.register(command.Flags())
	flags.registerLongest(command.Flags())
	return command
}

func (f *searchFlags) register(flags *pflag.FlagSet) {
	f.registerSearch(flags)
	flags.UintVar(&f.probes, "probes", 1000, "probes a second beside the load")
}

// registerSearch registers what all searches have, whoever sends.
func (f *searchFlags) registerSearch(flags *pflag.FlagSet) {
	o := &f.search
	f.isGiven = flags.Changed
	flags.UintVar(&f.minimum, "minimum", 1000, "least rate, with which others are compared, in messages a second")
	flags.UintVar(&f.start, "start", 10_000, "rate to begin with")
	flags.UintVar(&f.maximum, "highest", 10_000_000, "highest rate to try")
	flags.UintVar(&f.least, "at-least", 0, "fail when a lower rate is the highest; 0 for no limit")
	flags.Float64Var(&o.Granularity, "granularity", o.Granularity, "how far apart, as a share, the best and the lowest rate of the answer may be")
	flags.DurationVar(&o.Sniff, "sniff", o.Sniff, "how long a short trial is")
	flags.DurationVar(&o.Search, "search", o.Search, "how long a trial is")
	flags.DurationVar(&o.Confirm, "confirm", o.Confirm, "how long the best rate must hold")
	flags.IntVar(&o.Retries, "retries", o.Retries, "how often a trial that did not pass is made again")
	flags.Float64Var(&o.Growth, "growth", 0, "how many times as large the percentile of --growth-percentile may be as at the least rate; 0 for no limit; 10 when omitted, where the messages of a trial whose latency is taken carry the median")
	flags.Float64Var(&o.GrowthPercent, "growth-percentile", o.GrowthPercent, "which percentile may grow by --growth")
}

// registerLongest registers the limit of searches that no LatencyTest limits.
func (f *searchFlags) registerLongest(flags *pflag.FlagSet) {
	flags.DurationVar(&f.search.Longest, "longest", 0, "how long all trials together may take; 0 for no limit")
}

func (f *loadFlags) measure(ctx context.Context, path string, shown *progress.Writer) (*latency.Result, error) {
	budget, err := f.budget()
	if err != nil {
		return nil, err
	}
	trial, shows := trialsTo(shown, "")
	return traffic.SearchLoad(ctx, path, f.request, f.options(&budget), trial, shows)
}

// options are those of a search whose trials keep a budget, which has no loss unless it says otherwise.
func (f *searchFlags) options(budget *latency.Budget) latency.SearchOptions {
	o := f.search
	o.Budget, o.Minimum, o.Start, o.Maximum, o.Probes = *budget, uint64(f.minimum), uint64(f.start), uint64(f.maximum), uint64(f.probes)
	o.Budget.LeastPerSecond = uint64(f.least)
	if !f.isGiven("growth") {
		o.Growth = latency.DefaultGrowth(o.Probes, o.Search)
	}
	if o.Budget.LossPartsPerMillion == nil {
		o.Budget.LossPartsPerMillion = new(float64)
	}
	return o
}

// trialsTo says which trial is made, and shows how far it is, after words of its own.
func trialsTo(shown *progress.Writer, words string) (trial func(latency.Step), shows func(traffic.Progress)) {
	phase := ""
	trial = func(step latency.Step) {
		phase = words + string(step.Phase) + ": "
		shown.Say("%s%d messages a second for %s", phase, step.Rate, step.Duration)
	}
	return trial, showTraffic(shown, func() string { return phase }, false)
}
