// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/progress"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// pingPongFlags say what ping-pong measures.
type pingPongFlags struct {
	trafficFlags
	budgetFlags
	request            traffic.Request
	transport, waiting *usage.Choice
	report, output     *usage.Choice
	timestamps         *usage.Choice
	times              string
}

// pingPongCommand measures how long messages take to the other host and back.
func pingPongCommand(root string) *cobra.Command {
	flags := &pingPongFlags{
		request: traffic.DefaultRequest(), transport: transportChoice(), waiting: waitingChoice(),
		report: &usage.Choice{Value: "half", Allowed: []string{"half", "round-trip"}}, output: latencyOutput(),
		timestamps: &usage.Choice{Value: "program", Allowed: []string{"program", "kernel", "nic"}},
	}
	command := &cobra.Command{
		Use:   "pingpong --server | --client HOST",
		Short: "Measure how long messages take to another host and back",
		Long: `Measure how long messages take to another host and back, with one under way at a time, as sfnt-pingpong does: a
warm-up, then for each size batches that begin with a message whose time is not taken, until there are enough. Times
are half of the round trip. Start the server on one host, or on this one, and the client on the other.

The traffic itself is sent by lowlatency-traffic, which a preloaded network stack accelerates: LD_PRELOAD=libonload.so
kubectl lowlatency probe pingpong ... The path that messages really took is read from the kernel's counters at both
ends and printed with the result.

With --timestamps kernel, the kernel of the client also stamps messages as the driver hands them to the device, and as
they come back; with nic, the NIC does so by its own clock, where it can stamp each message, for which it is set with
CAP_NET_ADMIN and put back at the end. A second table tells what of the latencies is on the wire, with the network and
the server, and what is of the client's own host.`,
		Example: "  kubectl lowlatency probe pingpong --server\n  kubectl lowlatency probe pingpong --client 10.0.0.2 --transport udp --sizes 32,64,256\n" +
			"  kubectl lowlatency probe pingpong --client 10.0.0.2 --limit 99=20us --accelerated -o json > result.json",
		Args: usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := flags.check(command.Context()); err != nil {
				return err
			}
			if flags.server {
				return flags.serve(command.Context(), command.ErrOrStderr())
			}
			return flags.measure(command.Context(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags.trafficFlags.register(command.Flags(), root)
	flags.budgetFlags.register(command.Flags(), lossOfAll)
	flags.register(command.Flags())
	return command
}

func (f *pingPongFlags) register(flags *pflag.FlagSet) {
	r := &f.request
	flags.Var(f.transport, "transport", "what carries messages")
	flags.Var(f.waiting, "wait", "ask the socket again and again, or sleep in the kernel; both ends do the same")
	flags.StringVar(&r.Group, "group", r.Group, "with --transport multicast, the `GROUP` that both ends send to")
	flags.IntSliceVar(&r.Sizes, "sizes", nil, "sizes of messages in bytes; those of sfnt-pingpong without it")
	flags.DurationVar(&r.WarmUp, "warm-up", r.WarmUp, "how long to send messages before, at least")
	flags.IntVar(&r.WarmUpPings, "warm-up-messages", r.WarmUpPings, "how many messages to send before, at least")
	flags.IntVar(&r.Batch, "batch", r.Batch, "how many messages follow each one whose time is not taken")
	flags.DurationVar(&r.MinimumTime, "minimum-time", r.MinimumTime, "measure each size at least so long")
	flags.DurationVar(&r.MaximumTime, "maximum-time", r.MaximumTime, "measure each size for so long, unless there are enough messages before")
	flags.IntVar(&r.MaximumPings, "maximum-messages", r.MaximumPings, "how many messages of each size are enough")
	flags.DurationVar(&r.Timeout, "timeout", r.Timeout, "how long a datagram may take before it is lost")
	flags.Var(f.report, "report", "report half of the round trip, or all of it")
	flags.VarP(f.output, "output", "o", "output format")
	flags.Var(f.timestamps, "timestamps", "who takes times at the client: the program alone, or besides the kernel, where the driver hands over messages, or the NIC")
	flags.StringVar(&f.times, "times", "", "write every round trip, as the clock gave it, to this `FILE`: a line of size and nanoseconds for each")
}

// measure runs the client, and writes what it found.
func (f *pingPongFlags) measure(ctx context.Context, out, complaints io.Writer) error {
	r := &f.request
	r.Host, r.Port, r.CPU, r.Transport, r.Waiting = f.client, f.port, f.cpu, transportOf(f.transport), waitingOf(f.waiting)
	r.RoundTrip = f.report.Value == "round-trip"
	r.Stamper = map[string]latency.Stamper{"kernel": latency.StampedByKernel, "nic": latency.StampedByNIC}[f.timestamps.Value]
	if r.Sizes == nil {
		r.Sizes = traffic.DefaultSizes(r.Transport)
		if f.frames != "" {
			r.Sizes = slices.DeleteFunc(r.Sizes, func(size int) bool { return size > latency.LargestInFrame })
		}
	}
	budget, err := f.budget()
	if err != nil {
		return err
	}
	if r.Frames, err = f.framesOf(); err != nil {
		return err
	}
	path, err := traffic.Find(f.program)
	if err != nil {
		return err
	}
	shown := progress.New(complaints)
	defer shown.End()
	options := traffic.Options{Program: path, Request: *r, Budget: budget, Progress: showTraffic(shown, nothing, r.RoundTrip)}
	options.Notice = func(sentence string) { _, _ = fmt.Fprintln(complaints, sentence) }
	if f.times != "" {
		file, err := newTimesFile(f.times, r)
		if err != nil {
			return err
		}
		options.Times = file.write
		defer file.abandon()
	}
	result, err := f.counting(ctx, func() (*latency.Result, error) { return traffic.Measure(ctx, options) })
	shown.End()
	if err != nil {
		return err
	}
	return writeJudged(f.output.Value, out, result)
}

// timesFile gets every round trip. What it had before stays until there is one, so that a measurement that is refused costs nobody an earlier one.
type timesFile struct {
	file *os.File
	// isBegun reports whether what it had before is gone.
	isBegun bool
}

// newTimesFile opens the file of a measurement that can be made. That it cannot be written is told before the measurement.
func newTimesFile(path string, request *traffic.Request) (*timesFile, error) {
	if err := request.Check(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		file, err = os.Create(path)
	}
	return &timesFile{file: file}, err
}

// begin empties the file. Pipes and devices have nothing that could be.
func (f *timesFile) begin() error {
	if f.isBegun {
		return nil
	}
	f.isBegun = true
	info, err := f.file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.file.Truncate(0)
}

// write writes the times of one size. A full disk is told here, where the measurement can still say so.
func (f *timesFile) write(times traffic.SizeTimes) error {
	if err := f.begin(); err != nil {
		return fmt.Errorf("emptying %s: %w", f.file.Name(), err)
	}
	w := bufio.NewWriter(f.file)
	for _, time := range times.Times {
		_, _ = fmt.Fprintf(w, "%d\t%d\n", times.Bytes, time)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the times of %d bytes: %w", times.Bytes, err)
	}
	return nil
}

func (f *timesFile) abandon() { _ = f.file.Close() }

// latencyOutput are the forms of a result.
func latencyOutput() *usage.Choice {
	return &usage.Choice{Value: "text", Allowed: []string{"text", "json", "csv", "hdr", "html"}}
}

// writeLatency writes a result in a form.
func writeLatency(form string, out io.Writer, result *latency.Result) error {
	write := map[string]func(io.Writer, *latency.Result) error{
		"text": writeLatencyText, "json": writeLatencyJSON, "csv": writeLatencyCSV, "hdr": writeLatencyHDR, "html": writeLatencyHTML,
	}[form]
	if err := write(out, result); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// writeJudged writes a result in a form, and says whether it passed.
func writeJudged(form string, out io.Writer, result *latency.Result) error {
	if err := writeLatency(form, out, result); err != nil {
		return err
	}
	return ended(result)
}
