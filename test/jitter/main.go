// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux && (amd64 || arm64)

// Command jitter runs the project's jitter probe and oslat (Debian's rt-tests) in turns on the same CPU and prints
// what both saw. The turns are interleaved, so that both meet the same machine:
//
//	go build -o bin/lowlatency-operator ./cmd/lowlatency-operator
//	go run ./test/jitter --cpu 1 --rounds 5 --duration 10s
//
// It fails when the two disagree: another order of magnitude in the maximum, more than 10 % difference in the number
// of interruptions above the threshold over all rounds, or a loop that costs more than oslat's.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// options of the comparison.
type options struct {
	program   string
	cpu       int
	rounds    int
	duration  time.Duration
	threshold time.Duration
}

func run(ctx context.Context) error {
	o := options{}
	flag.StringVar(&o.program, "program", "bin/lowlatency-operator", "The operator's binary.")
	flag.IntVar(&o.cpu, "cpu", 1, "The CPU to measure; both programs are controlled from CPU 0.")
	flag.IntVar(&o.rounds, "rounds", 5, "How often each program measures.")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "How long each turn measures, in whole seconds.")
	flag.DurationVar(&o.threshold, "threshold", 5*time.Microsecond, "The common threshold, in whole microseconds.")
	flag.Parse()
	var ours, theirs []turn
	for round := range o.rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, o.rounds)
		// Who goes first changes from round to round.
		for _, first := range []bool{round%2 == 0, round%2 != 0} {
			measure, all := o.oslat, &theirs
			if first {
				measure, all = o.probe, &ours
			}
			measured, err := measure(ctx)
			if err != nil {
				return err
			}
			*all = append(*all, measured)
		}
	}
	if err := show(o, ours, theirs); err != nil {
		return err
	}
	return judge(sum(ours), sum(theirs))
}

// turn is what one program saw in one turn.
type turn struct {
	loopNanoseconds    float64
	interruptions      float64
	maximumNanoseconds float64
}

// probe lets the project's probe measure.
func (o *options) probe(ctx context.Context) (turn, error) {
	command := exec.CommandContext(ctx, o.program, "probe", "jitter", "--root", "/", "--cpus", strconv.Itoa(o.cpu),
		"--duration", o.duration.String(), "--threshold", o.threshold.String(), "--on-busy=measure", "-o", "json")
	output, err := command.Output()
	if err != nil {
		return turn{}, fmt.Errorf("%s: %w: %s", command, err, standardError(err))
	}
	var result jitter.Result
	if err := json.Unmarshal(output, &result); err != nil {
		return turn{}, fmt.Errorf("reading the probe's result: %w", err)
	}
	one := result.CPUs[0]
	return turn{float64(one.DurationNanoseconds) / float64(one.Loops), float64(one.Interruptions), float64(one.MaximumNanoseconds)}, nil
}

// oslat lets oslat measure. Its buckets are of a microsecond each, the last holds everything longer; the one that it
// calls N is N-1 to N microseconds (rt-tests, src/oslat/oslat.c).
func (o *options) oslat(ctx context.Context) (turn, error) {
	command := exec.CommandContext(ctx, "oslat", "--cpu-list", strconv.Itoa(o.cpu), "--cpu-main-thread", "0",
		"--duration", fmt.Sprintf("%ds", int(o.duration.Seconds())), "--bucket-size", strconv.Itoa(int(o.threshold.Microseconds())+1))
	output, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return turn{}, errors.New("oslat is missing: install Debian's rt-tests")
	}
	if err != nil {
		return turn{}, fmt.Errorf("%s: %w: %s", command, err, standardError(err))
	}
	return parseOslat(string(output), int(o.threshold.Microseconds()), o.duration)
}

func standardError(err error) string {
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return string(exit.Stderr)
	}
	return ""
}

// sum adds the turns of one program: mean loop, all interruptions, the longest.
func sum(turns []turn) turn {
	var all turn
	for _, t := range turns {
		all.loopNanoseconds += t.loopNanoseconds / float64(len(turns))
		all.interruptions += t.interruptions
		all.maximumNanoseconds = max(all.maximumNanoseconds, t.maximumNanoseconds)
	}
	return all
}

// show prints a row for each turn and one for all.
func show(o options, ours, theirs []turn) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(title string, a, b turn) {
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t\n", title, a.interruptions, b.interruptions,
			a.maximumNanoseconds/1e3, b.maximumNanoseconds/1e3, a.loopNanoseconds, b.loopNanoseconds)
	}
	_, _ = fmt.Fprintf(w, "round\tprobe >=%[1]s\toslat >=%[1]s\tprobe max us\toslat max us\tprobe loop ns\toslat loop ns\t\n", o.threshold)
	for i := range ours {
		row(strconv.Itoa(i+1), ours[i], theirs[i])
	}
	row("all", sum(ours), sum(theirs))
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}
