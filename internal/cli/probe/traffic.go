// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// trafficFlags are those of all measurements over the network.
type trafficFlags struct {
	server  bool
	client  string
	program string
	address string
	port    int
	cpu     int
	// buffer of datagrams in bytes.
	buffer int
	// frames are text of traffic.ParseFrames; "" for none.
	frames string
	// root is where the root file system of this host is mounted.
	root string
}

func (f *trafficFlags) register(flags *pflag.FlagSet, root string) {
	flags.BoolVar(&f.server, "server", false, "answer the messages of clients, one client at a time, until interrupted")
	flags.StringVar(&f.client, "client", "", "measure with the server on this `HOST`")
	flags.StringVar(&f.program, "program", "", "`PATH` of lowlatency-traffic, which sends and answers; beside this program, or on PATH, without it")
	flags.StringVar(&f.address, "address", "0.0.0.0", "with --server, the `ADDRESS` of IPv4 to listen on")
	flags.IntVar(&f.port, "port", traffic.Port, "TCP port of the server")
	flags.IntVar(&f.cpu, "cpu", -1, "CPU to keep the traffic to; -1 for none")
	flags.StringVar(&f.frames, "frames", "", "send and receive by a socket of AF_XDP: `INTERFACE:QUEUE:MAC:IPv4:PORT`, in a container that has the queue, at both ends")
	flags.StringVar(&f.root, "root", root, "`PATH` at which the root file system of this host is mounted")
}

// check says what is wrong with the flags, and that nobody else owns the CPU.
func (f *trafficFlags) check(ctx context.Context) error {
	if f.server == (f.client != "") {
		return errors.New("say either --server, on one host, or --client HOST, on the other")
	}
	if f.cpu < 0 {
		return nil
	}
	owners, err := cpuOwners(ctx, f.root)
	if err != nil {
		return err
	}
	for _, owner := range owners {
		if owner.CPUs.Contains(f.cpu) {
			return fmt.Errorf("CPU %d belongs to container %s, and the probe never runs there", f.cpu, owner.Name)
		}
	}
	return nil
}

func (f *trafficFlags) serve(ctx context.Context, progress io.Writer) error {
	path, err := traffic.Find(f.program)
	if err != nil {
		return err
	}
	frames, err := f.framesOf()
	if err != nil {
		return err
	}
	h, end, err := f.openHost()
	if err != nil {
		return err
	}
	defer end()
	return traffic.Serve(ctx, traffic.ServerOptions{
		Program: path, Address: f.address, Port: f.port, CPU: f.cpu, Buffer: f.buffer, Frames: frames, Host: h, Out: progress, Log: progress,
	})
}

// framesOf is the socket of AF_XDP that was asked for; nil for none.
func (f *trafficFlags) framesOf() (*traffic.Frames, error) {
	if f.frames == "" {
		return nil, nil
	}
	frames, err := traffic.ParseFrames(f.frames)
	if err != nil {
		return nil, fmt.Errorf("--frames: %w", err)
	}
	return frames, nil
}

// counting measures, and lets the kernel of this host say what happened meanwhile on the CPU of the client.
func (f *trafficFlags) counting(ctx context.Context, measure func() (*latency.Result, error)) (*latency.Result, error) {
	h, end, err := f.openHost()
	if err != nil {
		return nil, err
	}
	defer end()
	return traffic.Counting(ctx, h, f.cpu, measure)
}

// openHost opens the host on whose CPU is counted; nil where the traffic is kept to none.
func (f *trafficFlags) openHost() (h *host.Host, end func(), err error) {
	if f.cpu < 0 {
		return nil, func() {}, nil
	}
	if h, err = host.Open(f.root); err != nil {
		return nil, nil, err
	}
	return h, func() { _ = h.Close() }, nil
}

// transportChoice and waitingChoice are flags with the words of a request.
func transportChoice() *usage.Choice {
	return &usage.Choice{Value: "tcp", Allowed: []string{"tcp", "udp", "multicast"}}
}

func transportOf(choice *usage.Choice) latency.Transport {
	return map[string]latency.Transport{"tcp": latency.TCP, "udp": latency.UDP, "multicast": latency.Multicast}[choice.Value]
}

func waitingChoice() *usage.Choice {
	return &usage.Choice{Value: "spin", Allowed: []string{"spin", "block"}}
}

func waitingOf(choice *usage.Choice) latency.Waiting {
	return map[string]latency.Waiting{"spin": latency.Spin, "block": latency.Block}[choice.Value]
}

// budgetFlags are limits that a measurement must keep.
type budgetFlags struct {
	limits      []string
	maximum     time.Duration
	loss        float64
	accelerated bool
}

const (
	// lossOfAll and lossOfRates say what the limit of loss is of a measurement, and of the rates that a search tries.
	lossOfAll   = "fail when more messages are lost, in parts per million; -1 for no limit"
	lossOfRates = "a rate passes with up to so many lost messages, in parts per million; -1, as 0, lets none be lost"
)

// register registers all limits, that of loss with words of its own.
func (f *budgetFlags) register(flags *pflag.FlagSet, loss string) {
	f.registerLatencies(flags)
	flags.Float64Var(&f.loss, "loss", -1, loss)
	flags.BoolVar(&f.accelerated, "accelerated", false, "do not judge what went through the kernel's network stack")
}

// registerLatencies registers limits of latencies, and has none of loss.
func (f *budgetFlags) registerLatencies(flags *pflag.FlagSet) {
	f.loss = -1
	flags.StringSliceVar(&f.limits, "limit", nil, "fail above this latency of a percentile, such as 99.9=20us; may be repeated")
	flags.DurationVar(&f.maximum, "maximum", 0, "fail when a single message takes longer; 0 for no limit")
}

func (f *budgetFlags) budget() (latency.Budget, error) {
	budget := latency.Budget{MaximumNanoseconds: f.maximum.Nanoseconds(), Accelerated: f.accelerated}
	if f.maximum < 0 {
		return budget, fmt.Errorf("--maximum %s: a latency is not negative", f.maximum)
	}
	if f.loss >= 0 {
		budget.LossPartsPerMillion = &f.loss
	}
	for _, word := range f.limits {
		percent, most, _ := strings.Cut(word, "=")
		value, err := strconv.ParseFloat(strings.TrimSuffix(percent, "%"), 64)
		duration, durationErr := time.ParseDuration(most)
		if err != nil || durationErr != nil || duration <= 0 || !slices.Contains(latency.Ladder(), value) {
			return budget, fmt.Errorf("--limit %s: a limit is PERCENT=LATENCY, such as 99.9=20us, with a percentile of %v", word, latency.Ladder())
		}
		budget.Limits = append(budget.Limits, latency.Limit{Percent: value, Nanoseconds: duration.Nanoseconds()})
	}
	return budget, nil
}

// unpassedError ends a command whose measurement did not pass.
type unpassedError struct{ latency.Outcome }

func (e unpassedError) Error() string {
	return fmt.Sprintf("%s (%s): %s", strings.ToLower(string(e.Verdict)), e.Reason, e.Message)
}

// ExitCode is what the program ends with: 1 for a measurement that has failed, 3 for one that gave no result that can be judged.
func (e unpassedError) ExitCode() int {
	const failed, inconclusive = 1, 3
	if e.Verdict == latency.Failed {
		return failed
	}
	return inconclusive
}

// ExitCode is what a program ends with for an error of a command of this package: that of a measurement which did not pass, else another one.
func ExitCode(err error, otherwise int) int {
	if unpassed, ok := errors.AsType[unpassedError](err); ok {
		return unpassed.ExitCode()
	}
	return otherwise
}

// ended is an error for a measurement that did not pass, so that pipelines see it.
func ended(result *latency.Result) error {
	if result.Outcome.Verdict == latency.Passed {
		return nil
	}
	return unpassedError{result.Outcome}
}
