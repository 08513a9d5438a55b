// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/inputfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency/recorded"
)

// recordedFlags say by what recorded runs are judged.
type recordedFlags struct {
	budgetFlags
	generator  otherGenerator
	output     *usage.Choice
	duration   time.Duration
	confirm    time.Duration
	growth, of float64
	least      uint
}

// recordedCommand judges runs of other generators.
func recordedCommand() *cobra.Command {
	flags := &recordedFlags{generator: newOtherGenerator(), output: recordedForms()}
	command := &cobra.Command{
		Use:   "recorded RATE=FILE...",
		Short: "Judge runs that TRex or testpmd has recorded, by the rule of probe load",
		Long: `Judge runs of another generator, each at one rate in messages a second and recorded in a file, by the rule of probe
load: its loss and its latencies are within the limits, the latency has not grown too much over that of the lowest
rate, and the generator reached its rate. The answer is an interval, the highest rate below the first that did not
pass, and that one. It is confirmed by a run of it that took as long as --confirm. Nothing is measured.

trex: JSON of {"server": client.get_server_version(), "stats": client.get_stats()} of its Python client in stateless
mode, with statistics cleared before the run. Latencies are those of streams with STLFlowLatencyStats, of the HDR
histogram of a server that was started with --hdrh, and otherwise in steps as wide as their first digit: a limit within
a step cannot be judged. They count from when a message left. -o hdr writes the histograms.

testpmd: what it prints at "show fwd stats all" or "stop", or at "show port stats all" before and after; it receives
what it has sent. testpmd-forwarder: the same of one that passes on what another program sends. testpmd takes no
latencies, so that loss alone is judged. Start it with -v, which prints its version.`,
		Example: "  kubectl lowlatency probe recorded --duration 30s --limit 99=100us 100000=slow.json 200000=fast.json\n" +
			"  kubectl lowlatency probe recorded --generator testpmd-forwarder --duration 60s 1000000=stopped.txt",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a file for each rate, as 100000=run.json")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return flags.run(command.OutOrStdout(), args) },
	}
	f := command.Flags()
	flags.registerRecorded(f)
	flags.generator.register(f)
	f.DurationVar(&flags.duration, "duration", 0, "how long each run was")
	f.DurationVar(&flags.confirm, "confirm", time.Minute, "how long a run has to be to confirm its rate")
	f.Float64Var(&flags.growth, "growth", 0, "how many times as large the percentile of --growth-percentile may be as at the lowest rate; 0 for no limit")
	f.Float64Var(&flags.of, "growth-percentile", 99, "which percentile may grow by --growth")
	f.UintVar(&flags.least, "at-least", 0, "fail when a lower rate is the highest; 0 for no limit")
	f.VarP(flags.output, "output", "o", "output format")
	return command
}

func (f *recordedFlags) run(out io.Writer, args []string) error {
	if f.duration <= 0 {
		return errors.New("--duration is missing: the records do not say how long the runs were")
	}
	if f.growth != 0 && (f.growth < 1 || !slices.Contains(latency.Ladder(), f.of)) {
		return fmt.Errorf("--growth %g of %g %%: it is at least 1, of one of the percentiles %v", f.growth, f.of, latency.Ladder())
	}
	if err := f.generator.checkForm(f.output.Value); err != nil {
		return err
	}
	budget, err := f.budget()
	if err != nil {
		return err
	}
	if budget.LossPartsPerMillion == nil {
		budget.LossPartsPerMillion = new(float64)
	}
	result, err := f.result(args, &budget)
	if err != nil {
		return err
	}
	if f.output.Value == histogramsForm && len(histograms(result)) == 0 {
		return errors.New("-o hdr: no run has an HDR histogram of its own messages: " + whoseHistograms)
	}
	return writeJudged(f.output.Value, out, result)
}

// result judges the runs of all files.
func (f *recordedFlags) result(args []string, budget *latency.Budget) (*latency.Result, error) {
	var runs []latency.Recorded
	for _, arg := range args {
		run, err := f.read(arg)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run.Recorded)
	}
	load, err := latency.JudgeRecorded(runs, latency.SearchOptions{Budget: *budget, Growth: f.growth, GrowthPercent: f.of, Confirm: f.confirm})
	if err != nil {
		return nil, err
	}
	return f.generator.result(&load, uint64(f.least)), nil
}

// read reads a run from RATE=FILE.
func (f *recordedFlags) read(arg string) (*recorded.Run, error) {
	text, file, found := strings.Cut(arg, "=")
	rate, err := strconv.ParseUint(text, 10, 40)
	if !found || err != nil || file == "" {
		return nil, fmt.Errorf("%q is not RATE=FILE, as 100000=run.json is, with a rate in messages a second", arg)
	}
	content, err := inputfile.Read(file, mostOfResult)
	if err != nil {
		return nil, err
	}
	run, err := f.generator.read(content, rate, f.duration)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return run, nil
}
