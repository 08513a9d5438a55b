// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package probe holds the commands that measure: the jitter of CPUs, and latencies over the network. It is part of kubectl-lowlatency,
// and of the operator's program, so that it is in the image, too.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/podresources"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const (
	// busyWindow is how long the probe looks whether the CPUs are at work for others.
	busyWindow = 500 * time.Millisecond
	// busyWindows is how often it looks while they are: what a container's own start leaves to the kernel ends by itself.
	busyWindows = 10
)

// reportColumns is the width of the report, which is read in logs, too.
const reportColumns = 120

// probeFlags say what the probe measures.
type probeFlags struct {
	request jitter.Request
	cpus    string
	root    string
	output  *usage.Choice
	onBusy  *usage.Choice
	dryRun  bool
	measure bool
}

// Command is the command "probe" of a program, for a host that is at root unless the user says otherwise.
func Command(root string) *cobra.Command {
	command := usage.Group(&cobra.Command{Use: "probe", Short: "Measure this host, and compare measurements"})
	flags := &probeFlags{
		output: &usage.Choice{Value: "text", Allowed: []string{"text", "json", "svg", "html"}},
		onBusy: &usage.Choice{Value: "refuse", Allowed: []string{"refuse", "measure"}},
	}
	measure := &cobra.Command{
		Use:   "jitter",
		Short: "Measure how often and for how long something else runs on CPUs",
		Long: `Measure how often and for how long something else runs on CPUs, with a loop on the cycle counter, and say what the
kernel counted when it happened. Without --cpus, the isolated CPUs of the running kernel are measured. The probe never
runs on CPUs that a pod owns, nor on CPUs that are at work. It runs on the host itself, as root where --priority is
set.`,
		Example: "  kubectl lowlatency probe jitter --cpus 4-7 --duration 60s\n  kubectl lowlatency probe jitter --cpus 4-7 -o svg > jitter.svg\n  kubectl lowlatency probe jitter --cpus 4-7 -o json > before.json",
		Args:    usage.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if flags.measure {
				return jitter.Serve(command.InOrStdin(), command.OutOrStdout())
			}
			return runJitterProbe(command.Context(), flags, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags.register(measure.Flags(), root)
	command.AddCommand(measure, compareCommand(), pingPongCommand(root), rateCommand(root), loadCommand(root), driveCommand(), recordedCommand(), samplesCommand(), stacksCommand(), testCommand())
	return command
}

func (f *probeFlags) register(flags *pflag.FlagSet, root string) {
	flags.StringVar(&f.cpus, "cpus", "", "`LIST` of the CPUs to measure, such as 2-5,8; the isolated CPUs of the running kernel without it")
	flags.DurationVar(&f.request.Duration, "duration", 10*time.Second, "how long to measure")
	flags.DurationVar(&f.request.WarmUp, "warm-up", time.Second, "how long to run the loop before")
	flags.DurationVar(&f.request.Threshold, "threshold", 500*time.Nanosecond, "the least length of an interruption")
	flags.IntVar(&f.request.Priority, "priority", 0, "run as SCHED_FIFO with this priority; 0 is SCHED_OTHER")
	flags.StringVar(&f.root, "root", root, "`PATH` at which the root file system of this host is mounted")
	flags.VarP(f.output, "output", "o", "output format")
	flags.Var(f.onBusy, "on-busy", "when a CPU is at work for others: refuse, or measure nevertheless")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be measured from where, and measure nothing")
	flags.BoolVar(&f.measure, "measure", false, "be the process that measures, which the probe starts itself")
	_ = flags.MarkHidden("measure")
}

// runJitterProbe measures, or says what it would do.
func runJitterProbe(ctx context.Context, flags *probeFlags, out, progress io.Writer) error {
	write := map[string]func(io.Writer, *jitter.Result) error{
		"text": writeText, "json": writeJSON, "svg": writePlot, "html": writeJitterHTML,
	}[flags.output.Value]
	h, err := host.Open(flags.root)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	placement, err := flags.place(ctx, h)
	if err != nil {
		return err
	}
	flags.request.CPUs = placement.Measured.IDs()
	if err := flags.request.Check(); err != nil {
		return err
	}
	say(progress, "measuring CPUs %s for %s after a warm-up of %s, controlled from CPUs %s\n",
		placement.Measured, flags.request.Duration, flags.request.WarmUp, placement.Control)
	if flags.dryRun {
		return nil
	}
	if flags.onBusy.Value != "measure" {
		if err := refuseBusy(ctx, flags.root, placement.Measured); err != nil {
			return err
		}
	}
	result, err := jitter.Run(ctx, jitter.Options{
		Request: flags.request, Placement: placement, Host: h, Command: measuringProcess,
		Progress: showProgress(progress, flags.request.Duration),
	})
	if err != nil {
		return err
	}
	return write(out, result)
}

// place decides on which CPUs the probe runs.
func (f *probeFlags) place(ctx context.Context, h *host.Host) (jitter.Placement, error) {
	facts, err := h.Read(ctx)
	if err != nil {
		return jitter.Placement{}, err
	}
	machine, err := topology.FromFacts(facts)
	if err != nil {
		return jitter.Placement{}, err
	}
	measured, err := f.measured(facts)
	if err != nil {
		return jitter.Placement{}, err
	}
	owners, err := cpuOwners(ctx, f.root)
	if err != nil {
		return jitter.Placement{}, err
	}
	return jitter.Place(measured, machine.Online, machine.CoreSets(), owners)
}

func (f *probeFlags) measured(facts *host.Facts) (cpus.Set, error) {
	if f.cpus != "" {
		set, err := cpus.Parse(f.cpus)
		if err != nil {
			return cpus.Set{}, fmt.Errorf("--cpus: %w", err)
		}
		return set, nil
	}
	isolated, known := facts.CPUs.Isolated.Get()
	if !known || isolated.IsEmpty() {
		return cpus.Set{}, errors.New("the running kernel isolates no CPUs: say with --cpus which to measure")
	}
	return isolated, nil
}

// cpuOwners are the containers that own CPUs. A host without the kubelet's socket has none; where the kubelet does not
// answer, nobody knows, and nothing is measured.
func cpuOwners(ctx context.Context, root string) ([]jitter.Owner, error) {
	socket := filepath.Join(root, podresources.Socket)
	if _, err := os.Stat(socket); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	containers, known := podresources.List(ctx, socket).Get()
	if !known {
		return nil, fmt.Errorf("the kubelet does not say at %s which pods own CPUs, and the probe never runs on those", socket)
	}
	var owners []jitter.Owner
	for _, c := range containers {
		owners = append(owners, jitter.Owner{Name: strings.Join([]string{c.Namespace, c.Pod, c.Name}, "/"), CPUs: c.CPUs})
	}
	return owners, nil
}

// refuseBusy is an error that names the CPUs that are at work.
func refuseBusy(ctx context.Context, root string, measured cpus.Set) error {
	busy, err := busyAmong(ctx, root, measured)
	if err != nil || busy == "" {
		return err
	}
	return fmt.Errorf("%s: the probe would disturb that work and measure it; stop it, measure other CPUs, or say --on-busy=measure", busy)
}

// busyAmong names those CPUs of a host that are at work for others, and stay so; "" when none is.
func busyAmong(ctx context.Context, root string, measured cpus.Set) (string, error) {
	proc, err := procfs.NewFS(filepath.Join(root, "proc"))
	if err != nil {
		return "", fmt.Errorf("reading /proc of the host: %w", err)
	}
	return stayBusy(measured, proc.Stat, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(busyWindow):
			return nil
		}
	})
}

// stayBusy names those CPUs that are at work in each of the windows between readings of /proc/stat; "" as soon as none is left.
func stayBusy(measured cpus.Set, read func() (procfs.Stat, error), wait func() error) (string, error) {
	before, err := read()
	if err != nil {
		return "", fmt.Errorf("reading /proc/stat: %w", err)
	}
	busy := ""
	for range busyWindows {
		if err := wait(); err != nil {
			return "", err
		}
		after, err := read()
		if err != nil {
			return "", fmt.Errorf("reading /proc/stat: %w", err)
		}
		measured = measured.Filter(func(id int) bool { return jitter.Busy(cpus.Of(id), before, after) != "" })
		if busy = jitter.Busy(measured, before, after); busy == "" {
			break
		}
		before = after
	}
	return busy, nil
}

// measuringProcess is this program again.
func measuringProcess(ctx context.Context) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	command := exec.CommandContext(ctx, self, "probe", "jitter", "--measure")
	command.Env = append(os.Environ(), jitter.Environment()...)
	return command
}

// say writes a line for people; whether it can be written changes nothing.
func say(w io.Writer, format string, values ...any) { _, _ = fmt.Fprintf(w, format, values...) }

// showProgress says every few seconds how far the measurement is.
func showProgress(w io.Writer, duration time.Duration) func(time.Duration) {
	const every = 2 * time.Second
	next := every
	return func(passed time.Duration) {
		if passed >= next && passed < duration {
			say(w, "%s of %s\n", passed.Round(time.Second), duration)
			next = passed + every
		}
	}
}

func writeText(w io.Writer, result *jitter.Result) error {
	_, err := io.WriteString(w, text.Jitter(result, text.NewPalette(false), reportColumns))
	return err
}

func writeJSON(w io.Writer, result *jitter.Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

func writePlot(w io.Writer, result *jitter.Result) error {
	_, err := io.WriteString(w, jitter.Plot(result))
	return err
}
