// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/affinity"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/testrun"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// testFlags are what the Job of a LatencyTest says.
type testFlags struct {
	kind             *usage.Choice
	cpus, own        int
	duration, warmUp time.Duration
	threshold        time.Duration
	repetitions      int
	record           string
	root             string
	end              *testEnd
}

// testCommand is the program of a LatencyTest's pod.
func testCommand() *cobra.Command {
	flags := &testFlags{
		kind: &usage.Choice{Value: string(v1alpha1.LatencyTestJitter), Allowed: qualification.Kinds()},
		end:  newTestEnd(),
	}
	command := &cobra.Command{
		Use:   "latencytest",
		Short: "Measure from the CPUs that this container has for itself, as the Job of a LatencyTest",
		Long: `Measure the CPUs that this container has for itself, or from one of them over the network, and leave a record of it
for the operator. It is the program of the Jobs of a LatencyTest: see "kubectl explain latencytest".`,
		Hidden: true,
		Args:   usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command.Context(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	f := command.Flags()
	f.Var(flags.kind, "kind", "what is measured")
	f.IntVar(&flags.cpus, "cpus", 1, "how many CPUs are measured")
	f.IntVar(&flags.own, "own", 0, "how many CPUs the container has asked for; 0 takes what it may use")
	f.DurationVar(&flags.duration, "duration", time.Minute, "how long each repetition measures")
	f.DurationVar(&flags.warmUp, "warm-up", time.Second, "how long to run the loop, or to send messages, before; 0 for not at all")
	f.DurationVar(&flags.threshold, "threshold", 500*time.Nanosecond, "the least length of an interruption")
	f.IntVar(&flags.repetitions, "repetitions", 1, "how often the measurement is made")
	f.StringVar(&flags.record, "record", "", "`FILE` for the record; the standard output without it")
	f.StringVar(&flags.root, "root", "/", "`PATH` of /proc and /sys")
	flags.end.register(f)
	return command
}

// run measures and leaves the record. A measurement that cannot be made is a record, too: the operator tells people why.
func (f *testFlags) run(ctx context.Context, out, progress io.Writer) error {
	kind := v1alpha1.LatencyTestKind(f.kind.Value)
	found, err := f.measure(ctx, kind, out, progress)
	if found == nil && err == nil {
		return nil
	}
	record := ptr.Deref(found, qualification.Record{})
	if problem, ok := errors.AsType[testrun.Problem](err); ok {
		record = testrun.Failed(kind, problem.Reason, problem)
	} else if err != nil {
		record = testrun.Failed(kind, v1alpha1.TestMeasurementFailed, err)
	}
	text, err := qualification.Encode(record)
	if err != nil {
		return err
	}
	if record.Problem != nil {
		say(progress, "%s: %s\n", record.Problem.Reason, record.Problem.Message)
	}
	if f.record == "" {
		_, err = out.Write(append(text, '\n'))
		return err
	}
	// The kubelet has made the file, and reads it when the container has ended.
	if err := os.WriteFile(f.record, text, 0o600); err != nil {
		return fmt.Errorf("leaving the record: %w", err)
	}
	return nil
}

// site is where a measurement is made.
type site struct {
	host      *host.Host
	facts     *host.Facts
	placement jitter.Placement
}

// measure reads the host, and measures on CPUs that the container has for itself. The record is nil for a server.
func (f *testFlags) measure(ctx context.Context, kind v1alpha1.LatencyTestKind, out, progress io.Writer) (*qualification.Record, error) {
	h, err := host.Open(f.root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Close() }()
	facts, err := h.Read(ctx)
	if err != nil {
		return nil, err
	}
	placement, err := f.place(facts)
	if err != nil {
		return nil, err
	}
	s := &site{h, facts, placement}
	if kind == v1alpha1.LatencyTestJitter {
		return f.measureJitter(ctx, s, out, progress)
	}
	return f.measureTraffic(ctx, s, out, progress)
}

func (f *testFlags) measureJitter(ctx context.Context, s *site, out, progress io.Writer) (*qualification.Record, error) {
	placement := s.placement
	say(progress, "measuring CPUs %s, %d times %s, controlled from CPUs %s\n", placement.Measured, f.repetitions, f.duration, placement.Control)
	var results []*jitter.Result
	for repetition := range f.repetitions {
		result, err := jitter.Run(ctx, jitter.Options{
			Request:   jitter.Request{Duration: f.duration, WarmUp: min(f.warmUp, f.duration), Threshold: f.threshold},
			Placement: placement, Host: s.host, Command: measuringProcess, Progress: showProgress(progress, f.duration),
		})
		if err != nil {
			return nil, err
		}
		say(out, "repetition %d of %d\n", repetition+1, f.repetitions)
		if f.record != "" {
			if err := writeText(out, result); err != nil {
				return nil, err
			}
		}
		results = append(results, result)
	}
	record, err := testrun.RecordOf(results, s.facts.Kernel.Release.Value, s.facts.Setting("/proc/sys/kernel/random/boot_id").Value)
	return &record, err
}

// place decides where the container measures: on CPUs that it has for itself.
func (f *testFlags) place(facts *host.Facts) (jitter.Placement, error) {
	machine, err := topology.FromFacts(facts)
	if err != nil {
		return jitter.Placement{}, err
	}
	own, err := affinity.Own()
	if err != nil {
		return jitter.Placement{}, err
	}
	return testrun.Place(own, machine.Online, machine.CoreSets(), f.cpus, f.own)
}
