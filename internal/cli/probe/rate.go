// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/progress"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// quietMessages are those with which the way back is measured before messages leave on a schedule.
const quietMessages = 100_000

// streamFlags are those of measurements with messages on a schedule.
type streamFlags struct {
	trafficFlags
	budgetFlags
	request   traffic.RateRequest
	transport *usage.Choice
	waiting   *usage.Choice
	report    *usage.Choice
	output    *usage.Choice
	size      int
}

func newStreamFlags() *streamFlags {
	return &streamFlags{
		request:   traffic.DefaultRateRequest(),
		transport: &usage.Choice{Value: "udp", Allowed: []string{"udp", "multicast"}},
		waiting:   waitingChoice(),
		report:    &usage.Choice{Value: "one-way", Allowed: []string{"one-way", "round-trip"}},
		output:    latencyOutput(),
		size:      64,
	}
}

func (f *streamFlags) register(flags *pflag.FlagSet, root, loss string) {
	r := &f.request
	f.trafficFlags.register(flags, root)
	f.budgetFlags.register(flags, loss)
	flags.Var(f.transport, "transport", "what carries messages")
	flags.Var(f.waiting, "wait", "how the server waits, and this end for the way back: ask the socket again and again, or sleep in the kernel")
	flags.StringVar(&r.Group, "group", r.Group, "with --transport multicast, the `GROUP` that both ends send to")
	flags.IntVar(&f.size, "size", f.size, "size of messages in bytes, at least 24")
	flags.DurationVar(&r.WarmUp, "warm-up", r.WarmUp, "how long to send messages one at a time before, at least")
	flags.IntVar(&r.WarmUpPings, "warm-up-messages", r.WarmUpPings, "how many messages to send one at a time before, at least")
	flags.DurationVar(&r.MaximumTime, "quiet-time", r.MaximumTime, "how long to measure the way back with one message at a time, at most")
	flags.IntVar(&r.MaximumPings, "quiet-messages", quietMessages, "with how many messages to measure the way back, at most")
	flags.DurationVar(&r.Timeout, "timeout", r.Timeout, "how long to wait for answers after the last message")
	flags.IntVar(&f.buffer, "buffer", 0, "`BYTES` of the receive buffers of this end, --server or --client; 0 for the kernel's own")
	flags.Var(f.report, "report", "report an estimate of one way, or the round trip")
	flags.VarP(f.output, "output", "o", "output format")
}

// settle puts the flags into the request.
func (f *streamFlags) settle() {
	r := &f.request
	r.Host, r.Port, r.CPU, r.Sizes, r.Transport, r.Buffer = f.client, f.port, f.cpu, []int{f.size}, transportOf(f.transport), f.buffer
	r.Waiting, r.Batch = waitingOf(f.waiting), min(r.Batch, r.MaximumPings)
	r.RoundTrip, r.MinimumTime = f.report.Value == "round-trip", 0
}

// rateFlags say what a sweep measures.
type rateFlags struct {
	*streamFlags

	rates []uint
}

// rateCommand measures latencies at rates.
func rateCommand(root string) *cobra.Command {
	flags := &rateFlags{streamFlags: newStreamFlags()}
	command := &cobra.Command{
		Use:   "rate --server | --client HOST",
		Short: "Measure how long messages take at rates of messages",
		Long: `Measure how long messages take at one rate of messages after the other. They leave on a schedule whatever comes back,
so that a receiver that stalls is seen as long as it stalls. Latencies count from when a message was to leave, and
beside it from when it left. One way is estimated as sfnt-stream does: the time until the answer, less the mean half
round trip with one message at a time. A rate that the sender missed by more than 10 % is the last.`,
		Example: "  kubectl lowlatency probe rate --server\n  kubectl lowlatency probe rate --client 10.0.0.2 --rates 10000,50000,100000 --duration 10s",
		Args:    usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command, flags.measure)
		},
	}
	flags.register(command.Flags(), root, lossOfAll)
	command.Flags().UintSliceVar(&flags.rates, "rates", []uint{10_000, 50_000, 100_000}, "rates in messages a second")
	command.Flags().DurationVar(&flags.request.Duration, "duration", flags.request.Duration, "how long to measure each rate")
	command.Flags().IntVar(&flags.request.Answers, "answers", flags.request.Answers, "of about how many messages of each rate the time is taken")
	return command
}

// run serves, or measures.
func (f *streamFlags) run(command *cobra.Command, measure func(context.Context, string, *progress.Writer) (*latency.Result, error)) error {
	if err := f.check(command.Context()); err != nil {
		return err
	}
	if f.server {
		return f.serve(command.Context(), command.ErrOrStderr())
	}
	path, err := traffic.Find(f.program)
	if err != nil {
		return err
	}
	f.settle()
	if f.request.Frames, err = f.framesOf(); err != nil {
		return err
	}
	shown := progress.New(command.ErrOrStderr())
	result, err := f.counting(command.Context(), func() (*latency.Result, error) {
		return measure(command.Context(), path, shown)
	})
	shown.End()
	if err != nil {
		return err
	}
	return writeJudged(f.output.Value, command.OutOrStdout(), result)
}

func (f *rateFlags) measure(ctx context.Context, path string, shown *progress.Writer) (*latency.Result, error) {
	budget, err := f.budget()
	if err != nil {
		return nil, err
	}
	for _, rate := range f.rates {
		f.request.Rates = append(f.request.Rates, uint64(rate))
	}
	shown.Say("measuring %d rates for %s each, after the way back", len(f.rates), f.request.Duration)
	return traffic.MeasureRates(ctx, path, f.request, budget, showTraffic(shown, nothing, f.request.RoundTrip))
}
