// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/bounded"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/progress"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency/recorded"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/subprocess"
)

const (
	// ratePlace and secondsPlace are replaced in the arguments of a generator by what a trial asks for.
	ratePlace    = "{rate}"
	secondsPlace = "{seconds}"
	// startTime is how long a generator may take beside sending, to start and to print.
	startTime = 2 * time.Minute
	// stopTime is how long it may take to end when it is interrupted.
	stopTime = 10 * time.Second
	// mostComplaint is how many bytes of what it complains about are told.
	mostComplaint = 2000
)

// driveFlags say what is searched for, and who sends.
type driveFlags struct {
	searchFlags
	budgetFlags
	generator otherGenerator
	output    *usage.Choice
}

// driveCommand looks for the highest rate with the generator of somebody else.
func driveCommand() *cobra.Command {
	flags := &driveFlags{searchFlags: newSearchFlags(), generator: newOtherGenerator(), output: recordedForms()}
	command := &cobra.Command{
		Use:   "drive -- PROGRAM ARGUMENT...",
		Short: "Look for the highest rate with TRex or testpmd, which a program of yours starts",
		Long: `Look for the highest rate that passes, as probe load does, and let another generator send: each trial runs PROGRAM, in
whose arguments {rate} stands for the messages a second of the trial, and {seconds} for how long it has to send. PROGRAM
prints what probe recorded reads of a run (see there), and nothing else, and ends with 0. When it is interrupted, it has
ten seconds to stop the generator.

Latencies are those that the generator takes; testpmd takes none, so that loss alone is judged. A rate that it does
not reach says nothing about the receiver, and is told so. -o hdr is of TRex alone: a search whose first run has no
histogram ends with it.`,
		Example: "  kubectl lowlatency probe drive --limit 99=100us -- python3 trial.py {rate} {seconds}\n" +
			"  kubectl lowlatency probe drive --loss 10 --growth 0 --at-least 2000000 --confirm 1h -- python3 trial.py {rate} {seconds}",
		Args: func(_ *cobra.Command, args []string) error { return checkProgram(args) },
		RunE: func(command *cobra.Command, args []string) error {
			shown := progress.New(command.ErrOrStderr())
			result, err := flags.search(command.Context(), args, shown)
			shown.End()
			if err != nil {
				return err
			}
			return writeJudged(flags.output.Value, command.OutOrStdout(), result)
		},
	}
	flags.registerSearch(command.Flags())
	flags.registerLongest(command.Flags())
	flags.registerRecorded(command.Flags())
	flags.generator.register(command.Flags())
	command.Flags().VarP(flags.output, "output", "o", "output format")
	return command
}

// checkProgram says what is missing of a program and its arguments.
func checkProgram(args []string) error {
	if len(args) == 0 {
		return errors.New("name the program that makes a trial, after --: as ./trial.sh " + ratePlace + " " + secondsPlace)
	}
	for _, place := range []string{ratePlace, secondsPlace} {
		if !slices.ContainsFunc(args[1:], func(arg string) bool { return strings.Contains(arg, place) }) {
			return fmt.Errorf("no argument of %s has %s, so that it would not know what a trial asks for", args[0], place)
		}
	}
	return nil
}

// search makes the trials of a search.
func (f *driveFlags) search(ctx context.Context, program []string, shown *progress.Writer) (*latency.Result, error) {
	if err := f.generator.checkForm(f.output.Value); err != nil {
		return nil, err
	}
	budget, err := f.budget()
	if err != nil {
		return nil, err
	}
	search, err := latency.NewSearchOfRuns(f.options(&budget))
	if err != nil {
		return nil, err
	}
	trial, _ := trialsTo(shown, "")
	for {
		step, more := search.Next()
		if !more {
			break
		}
		trial(step)
		run, err := f.run(ctx, program, step)
		if err != nil {
			return nil, err
		}
		if err := f.checkRun(run, step.Phase); err != nil {
			return nil, err
		}
		search.RecordRun(run.Recorded)
	}
	found := search.Found()
	return f.generator.result(&found, uint64(f.least)), nil
}

// options are those of the search: testpmd takes no latencies, of which none may grow then unless somebody says so.
func (f *driveFlags) options(budget *latency.Budget) latency.SearchOptions {
	o := f.searchFlags.options(budget)
	if f.generator.name.Value == string(recorded.TRex) && !f.isGiven("growth") {
		// How many latencies it takes, only its first run says.
		o.Growth = latency.DefaultGrowth(math.MaxUint32, o.Search)
	}
	return o
}

// checkRun ends a search whose histograms are wanted when its first run shows that there are none, which would otherwise be found out after hours. A run of which
// no message came back does not show it.
func (f *driveFlags) checkRun(run *recorded.Run, phase latency.Phase) error {
	rate := &run.Rate
	isMute := rate.FromIntended.Samples == 0 && rate.AnswersLost > 0
	if f.output.Value != histogramsForm || phase != latency.PhaseLow || rate.FromIntended.HDR != "" || isMute {
		return nil
	}
	return errors.New("-o hdr: the first run has no HDR histogram of its own messages: " + whoseHistograms)
}

// run lets the program make a trial, and reads what it printed. A trial takes whole seconds.
func (f *driveFlags) run(ctx context.Context, program []string, step latency.Step) (*recorded.Run, error) {
	seconds := max(1, int64(math.Ceil(step.Duration.Seconds())))
	duration := time.Duration(seconds) * time.Second
	ctx, cancel := context.WithTimeoutCause(ctx, duration+startTime, fmt.Errorf("it has not ended %s after it was to send for %s", startTime, duration))
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	words := strings.NewReplacer(ratePlace, strconv.FormatUint(step.Rate, 10), secondsPlace, strconv.FormatInt(seconds, 10))
	args := make([]string, 0, len(program))
	for _, arg := range program[1:] {
		args = append(args, words.Replace(arg))
	}
	command := exec.CommandContext(ctx, program[0], args...)
	// It has to stop what it has started, which would go on sending otherwise.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = stopTime
	tooMuch := func() {
		stop(fmt.Errorf("it has printed more than the %d bytes of the longest record", recorded.Longest))
	}
	out, complaints := &bounded.Writer{Left: recorded.Longest, Full: tooMuch}, &bounded.Writer{Left: mostComplaint}
	command.Stdout, command.Stderr = out, complaints
	release := subprocess.EndWithParent(command)
	err := command.Run()
	release()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		var run *recorded.Run
		if run, err = f.generator.read(out.Text.Bytes(), step.Rate, duration); err == nil {
			return run, nil
		}
	}
	said := ""
	if text := strings.TrimSpace(complaints.Text.String()); text != "" {
		said = ": it said: " + text
	}
	return nil, fmt.Errorf("%s at %d messages a second: %w%s", program[0], step.Rate, err, said)
}
