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

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/inputfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency/recorded"
)

// samplesFlags say what files of samples hold, and by what they are judged.
type samplesFlags struct {
	budgetFlags
	program, holds, report, output *usage.Choice
	version                        string
}

// samplesCommand describes round trips that other programs have measured.
func samplesCommand() *cobra.Command {
	pingers := recorded.Pingers()
	programs := make([]string, len(pingers))
	for i, pinger := range pingers {
		programs[i] = string(pinger)
	}
	flags := &samplesFlags{
		program: &usage.Choice{Allowed: programs}, holds: &usage.Choice{Value: "default", Allowed: []string{"default", "half", "round-trip"}},
		report: &usage.Choice{Value: "half", Allowed: []string{"half", "round-trip"}}, output: recordedForms(),
	}
	command := &cobra.Command{
		Use:   "samples --program PROGRAM SIZE=FILE...",
		Short: "Describe round trips that programs of TCPDirect, ef_vi or sfnt-pingpong have measured",
		Long: `Describe round trips that another program has measured, one message under way at a time, as probe pingpong describes
its own: percentiles that the samples carry, with their intervals. Programs that are written for TCPDirect or ef_vi
cannot be replaced by lowlatency-traffic, for those stacks have no sockets. With -o json, the result is one that probe
stacks and probe compare take. Nothing is measured.

Each file has messages of one size in bytes, and a line for each, in their order, with its time in nanoseconds:
sfnt-pingpong --raw=NAME writes NAME-SIZE.dat, half of each round trip, or all of it with --rtt (--holds round-trip);
zfudppingpong and zftcppingpong -w FILE, and eflatency -o FILE, write whole round trips. These programs wait for each
answer, so that a run that came to its end has lost none.`,
		Example: "  kubectl lowlatency probe samples --program zfudppingpong 64=zf-64.txt 1024=zf-1024.txt -o json > tcpdirect.json\n" +
			"  kubectl lowlatency probe samples --program sfnt-pingpong --limit 99=20us 64=raw-64.dat",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name a file for each size, as 64=zf-64.txt")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return flags.run(command.OutOrStdout(), args) },
	}
	f := command.Flags()
	f.Var(flags.program, "program", "which program has measured")
	f.StringVar(&flags.version, "program-version", "", "`VERSION` of it, or of its stack")
	f.Var(flags.holds, "holds", "what a line of a file is of: half of the round trip, or all of it; what the program writes unless told otherwise without it")
	f.Var(flags.report, "report", "report half of the round trip, or all of it")
	flags.registerLatencies(f)
	f.VarP(flags.output, "output", "o", "output format")
	return command
}

func (f *samplesFlags) run(out io.Writer, args []string) error {
	if f.program.Value == "" {
		return fmt.Errorf("--program is missing: it is one of %s", strings.Join(f.program.Allowed, ", "))
	}
	budget, err := f.budget()
	if err != nil {
		return err
	}
	pinger := recorded.Pinger(f.program.Value)
	result := ofRecords(latency.KindPingPong, f.program.Value, f.version)
	result.Setup = latency.Setup{
		Transport: pinger.Transport(), RoundTrip: f.report.Value == "round-trip", Timestamps: "of the program", Client: latency.Host{CPU: -1}, Server: latency.Host{CPU: -1},
	}
	for _, arg := range args {
		size, err := f.read(pinger, arg)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(result.Sizes, func(other latency.Size) bool { return other.Bytes == size.Bytes }) {
			return fmt.Errorf("%q: there is a file of %d bytes before it; name one for each size", arg, size.Bytes)
		}
		result.Sizes = append(result.Sizes, size)
	}
	result.Outcome = latency.Judge(result, budget)
	return writeJudged(f.output.Value, out, result)
}

// mostOfSamples is how many bytes a file of samples may have: recorded.ParseSamples takes 50 million of them.
const mostOfSamples = 1 << 30

// largestSampled is how many bytes the largest messages have, which are those of sfnt-pingpong over TCP.
const largestSampled = 65536

// read reads the samples of a size from SIZE=FILE.
func (f *samplesFlags) read(pinger recorded.Pinger, arg string) (latency.Size, error) {
	word, file, found := strings.Cut(arg, "=")
	bytes, err := strconv.ParseUint(word, 10, 32)
	if !found || err != nil || bytes > largestSampled || file == "" {
		return latency.Size{}, fmt.Errorf("%q is not SIZE=FILE, as 64=zf-64.txt is, with a size in bytes", arg)
	}
	content, err := inputfile.Read(file, mostOfSamples)
	if err != nil {
		return latency.Size{}, err
	}
	samples, err := recorded.ParseSamples(content)
	if err != nil {
		return latency.Size{}, fmt.Errorf("%s: %w", file, err)
	}
	hasHalves := f.holds.Value == "half" || f.holds.Value == "default" && pinger.WritesHalves()
	distribution, err := latency.Distribute(recorded.SamplesOf(samples, hasHalves, f.report.Value == "half"))
	return latency.Size{Bytes: int(bytes), Distribution: distribution}, err
}
