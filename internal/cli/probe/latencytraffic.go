// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/progress"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/testrun"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// testEnd says what an end of a LatencyTest over the network does.
type testEnd struct {
	role               *usage.Choice
	server             string
	port               int
	transport, waiting *usage.Choice
	group              string
	listen, nicOfPool  string
	sizes              []int
	messages           int
	rates              []uint
	answers            int
	limits             budgetFlags
	search             searchFlags
	sockets            *usage.Choice
	program            string
	onBusy             *usage.Choice
	patience           time.Duration
	afxdp              traffic.FramesOfPool
	// frames are what the device plugin of the pool has given; nil for none.
	frames *traffic.Frames
}

// roleServer is the end that answers.
const roleServer = "Server"

func newTestEnd() *testEnd {
	choice := func(value string, others ...string) *usage.Choice {
		return &usage.Choice{Value: value, Allowed: append([]string{value}, others...)}
	}
	return &testEnd{
		role:      choice("Client", roleServer),
		transport: choice(string(latency.TCP), string(latency.UDP), string(latency.Multicast)),
		waiting:   choice(string(latency.Spin), string(latency.Block)),
		onBusy:    choice("refuse", "measure"),
		sockets:   choice(string(v1alpha1.TestSocketsPool), string(v1alpha1.TestSocketsKernel)),
		search:    newSearchFlags(),
	}
}

func (e *testEnd) register(flags *pflag.FlagSet) {
	flags.Var(e.role, "role", "which end of a measurement over the network this is")
	flags.StringVar(&e.server, "server", "", "`ADDRESS` of the server")
	flags.IntVar(&e.port, "port", traffic.Port, "TCP port of the server")
	flags.Var(e.transport, "transport", "what carries messages")
	flags.Var(e.waiting, "waiting", "how both ends wait for a message")
	flags.StringVar(&e.group, "group", traffic.Group, "`ADDRESS` of the group of transport Multicast")
	flags.StringVar(&e.listen, "listen", "0.0.0.0", "`ADDRESS` on which the server listens")
	flags.StringVar(&e.nicOfPool, "nic-of-pool", "", "`NAME` of the BypassNICPool with stack AFXDP by whose NIC messages have to go through the kernel's sockets")
	flags.IntSliceVar(&e.sizes, "sizes", nil, "sizes of messages in bytes")
	flags.IntVar(&e.messages, "messages", traffic.DefaultRequest().MaximumPings, "with how many messages of a size it ends, when they go one at a time")
	flags.UintSliceVar(&e.rates, "rates", nil, "rates in messages a second, with one size")
	flags.IntVar(&e.answers, "answers", 1000, "of about how many messages of each rate the time is taken")
	e.limits.register(flags, lossOfRates)
	e.search.register(flags)
	flags.Var(e.sockets, "sockets", "whose sockets the program has: those that LD_PRELOAD and the like make of them, or the kernel's")
	flags.StringVar(&e.program, "program", "", "`PATH` of lowlatency-traffic; beside this program, or on PATH, without it")
	flags.Var(e.onBusy, "on-busy", "what to do when something else runs on the CPU")
	flags.StringVar(&e.afxdp.Pool, "afxdp-pool", "", "`NAME` of the BypassNICPool with stack AFXDP by whose unit messages go; sockets of the C library without it")
	flags.IntSliceVar(&e.afxdp.Ports, "afxdp-ports", nil, "the ports of UDP that this pool steers to its queues")
	flags.IntVar(&e.afxdp.FirstQueue, "afxdp-first-queue", 0, "the first queue that this pool hands out")
	flags.StringVar(&e.afxdp.Address, "afxdp-address", "", "`ADDRESS` of IPv4 for a NIC that has none")
	flags.DurationVar(&e.patience, "patience", 30*time.Second, "for how long a server may not listen yet")
}

// measureTraffic measures as the client, or serves until the context ends. The record is nil for a server.
func (f *testFlags) measureTraffic(ctx context.Context, s *site, out, complaints io.Writer) (*qualification.Record, error) {
	path, err := traffic.Find(f.end.program)
	if err != nil {
		return nil, err
	}
	if err := f.end.findFrames(os.Getenv, complaints); err != nil {
		return nil, err
	}
	if err := f.end.checkNIC(os.Getenv); err != nil {
		return nil, err
	}
	kind, cpu := v1alpha1.LatencyTestKind(f.kind.Value), s.placement.Measured.IDs()[0]
	if err := f.checkIdle(ctx, s.placement.Measured); err != nil {
		return nil, err
	}
	if f.end.role.Value == roleServer {
		say(complaints, "answering on port %d from CPU %d\n", f.end.port, cpu)
		return nil, traffic.Serve(ctx, traffic.ServerOptions{
			Program: path, Address: f.end.listen, Port: f.end.port, CPU: cpu, Environment: f.end.environment(), Frames: f.end.frames, Host: s.host,
			Out: complaints, Log: complaints,
		})
	}
	shown := progress.New(complaints)
	defer shown.End()
	var results []*latency.Result
	for repetition := range f.repetitions {
		once := &repetitionRun{testFlags: f, path: path, cpu: cpu, shown: shown, words: fmt.Sprintf("repetition %d of %d, ", repetition+1, f.repetitions)}
		result, err := f.patiently(ctx, func() (*latency.Result, error) {
			return traffic.Counting(ctx, s.host, cpu, func() (*latency.Result, error) { return once.measure(ctx, kind) })
		})
		shown.End()
		if err != nil {
			return nil, err
		}
		say(out, "repetition %d of %d\n%s", repetition+1, f.repetitions, text.Harmless(text.Latency(result)))
		if err := f.end.check(result); err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	record, err := recordOf(kind, cpu, results, s.facts.Kernel.Release.Value, s.facts.Setting("/proc/sys/kernel/random/boot_id").Value)
	return &record, err
}

// findFrames finds the socket of AF_XDP that the device plugin has for this container, where messages are to go by one.
func (e *testEnd) findFrames(variable func(string) string, progress io.Writer) error {
	if e.afxdp.Pool == "" {
		return nil
	}
	frames, err := e.afxdp.Frames(variable)
	if err != nil {
		return err
	}
	e.frames = frames
	say(progress, "messages go as frames of AF_XDP: %s\n", frames)
	return nil
}

func recordOf(kind v1alpha1.LatencyTestKind, cpu int, results []*latency.Result, kernel, boot string) (qualification.Record, error) {
	if kind == v1alpha1.LatencyTestLoadSearch {
		return testrun.LoadRecord(cpu, results, kernel, boot)
	}
	return testrun.TrafficRecord(kind, cpu, results, kernel, boot)
}

// environment is that of the program which sends; nil for that of this one.
func (e *testEnd) environment() []string {
	if e.sockets.Value == string(v1alpha1.TestSocketsKernel) {
		return traffic.WithoutStacks(os.Environ())
	}
	return nil
}

// check is an error when a measurement says nothing about the node.
func (e *testEnd) check(result *latency.Result) error {
	if err := testrun.CheckEnded(result); err != nil || e.onBusy.Value == "measure" {
		return err
	}
	return testrun.CheckQuiet(result)
}

// checkIdle is an error when the CPU of this end is at work for others before anything is measured.
func (f *testFlags) checkIdle(ctx context.Context, measured cpus.Set) error {
	if f.end.onBusy.Value == "measure" {
		return nil
	}
	busy, err := busyAmong(ctx, f.root, measured)
	if err != nil {
		return err
	}
	return testrun.CheckIdle(f.end.role.Value, busy)
}

// repetitionRun is one repetition.
type repetitionRun struct {
	*testFlags

	// path of the program, and the CPU that it is kept to.
	path string
	cpu  int
	// shown gets how far it is, after words that say which repetition it is.
	shown *progress.Writer
	words string
}

func (r *repetitionRun) measure(ctx context.Context, kind v1alpha1.LatencyTestKind) (*latency.Result, error) {
	switch kind {
	case v1alpha1.LatencyTestRateSweep:
		return r.rateSweep(ctx)
	case v1alpha1.LatencyTestLoadSearch:
		return r.loadSearch(ctx)
	default:
		return r.pingPong(ctx)
	}
}

// shows is what shows how far the program is.
func (r *repetitionRun) shows() func(traffic.Progress) {
	return showTraffic(r.shown, func() string { return r.words }, false)
}

// request is where messages go, and how both ends wait.
func (f *testFlags) request(r traffic.Request, cpu int) traffic.Request {
	e := f.end
	r.Host, r.Port, r.CPU, r.Sizes, r.Frames = e.server, e.port, cpu, e.sizes, e.frames
	r.Transport, r.Waiting, r.Group = latency.Transport(e.transport.Value), latency.Waiting(e.waiting.Value), e.group
	r.WarmUp = min(r.WarmUp, f.warmUp)
	if f.warmUp == 0 {
		r.WarmUpPings = 0
	}
	return r
}

// pingPong shares the time out among the sizes.
func (r *repetitionRun) pingPong(ctx context.Context) (*latency.Result, error) {
	request := r.request(traffic.DefaultRequest(), r.cpu)
	request.MaximumTime = r.duration / time.Duration(max(1, len(request.Sizes)))
	request.MinimumTime, request.MaximumPings = min(request.MinimumTime, request.MaximumTime), r.end.messages
	return traffic.Measure(ctx, traffic.Options{Program: r.path, Request: request, Environment: r.end.environment(), Progress: r.shows()})
}

// rateSweep shares the time out among the rates, of which the highest sends as much as the program can count at most.
func (r *repetitionRun) rateSweep(ctx context.Context) (*latency.Result, error) {
	request := r.stream(r.cpu)
	for _, rate := range r.end.rates {
		request.Rates = append(request.Rates, uint64(rate))
	}
	request.Duration = request.Longest(r.duration / time.Duration(max(1, len(request.Rates))))
	r.shown.Say("measuring the rates %v for %s each", request.Rates, request.Duration)
	return traffic.MeasureRates(ctx, r.path, request, latency.Budget{}, r.shows())
}

// stream is what is the same for all messages on a schedule.
func (f *testFlags) stream(cpu int) traffic.RateRequest {
	r := traffic.DefaultRateRequest()
	r.Request, r.Answers = f.request(r.Request, cpu), f.end.answers
	r.MinimumTime, r.MaximumPings, r.Environment = 0, quietMessages, f.end.environment()
	return r
}

// loadSearch looks for the highest rate, for as long as a repetition may take.
func (r *repetitionRun) loadSearch(ctx context.Context) (*latency.Result, error) {
	budget, err := r.end.limits.budget()
	if err != nil {
		return nil, err
	}
	options := r.end.search.options(&budget)
	options.Longest = r.duration
	trial, shows := trialsTo(r.shown, r.words)
	return traffic.SearchLoad(ctx, r.path, r.stream(r.cpu), options, trial, shows)
}

// patiently measures once. A server may not listen yet when its pod has just started.
func (f *testFlags) patiently(ctx context.Context, measure func() (*latency.Result, error)) (*latency.Result, error) {
	e, begin := f.end, time.Now()
	for {
		result, err := measure()
		if err != nil || result.Outcome.Reason != latency.ReasonUnreachable || time.Since(begin) >= e.patience {
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(min(time.Second, e.patience)):
		}
	}
}
