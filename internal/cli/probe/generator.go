// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency/recorded"
)

// otherGenerator is a program of somebody else that sends, all of whose runs are of one version.
type otherGenerator struct {
	name    *usage.Choice
	version string
}

func newOtherGenerator() otherGenerator {
	return otherGenerator{name: &usage.Choice{
		Value: string(recorded.TRex), Allowed: []string{string(recorded.TRex), string(recorded.Testpmd), string(recorded.TestpmdForwarder)},
	}}
}

func (g *otherGenerator) register(flags *pflag.FlagSet) {
	flags.Var(g.name, "generator", "which program records the runs, and as what")
	flags.StringVar(&g.version, "generator-version", "", "`VERSION` of it, where the records do not have it")
}

// read reads the record of a run.
func (g *otherGenerator) read(content []byte, rate uint64, duration time.Duration) (*recorded.Run, error) {
	run, err := recorded.Parse(recorded.Generator(g.name.Value), content, rate, duration)
	if err != nil {
		return nil, err
	}
	if run.Version != "" && g.version != "" && run.Version != g.version {
		return nil, fmt.Errorf("it is of version %s, and another run of %s: compare runs of one version", run.Version, g.version)
	}
	g.version = cmp.Or(run.Version, g.version)
	return run, nil
}

// result is what its runs show. least is the rate that is asked for; 0 for none.
func (g *otherGenerator) result(load *latency.Load, least uint64) *latency.Result {
	result := ofRecords(latency.KindLoadSearch, g.name.Value, g.version)
	result.Load, result.Outcome = load, load.Outcome(least)
	return result
}

// ofRecords is a result of what another program has recorded, which has nothing yet. The version is "" where nobody knows it.
func ofRecords(kind latency.Kind, program, version string) *latency.Result {
	return &latency.Result{
		Version: latency.Version, Kind: kind, Generator: program + " " + cmp.Or(version, "of an unknown version"),
		Path: latency.Path{State: latency.PathUnknown, Message: "records do not tell by which way messages went"},
	}
}

// registerRecorded registers the limits by which runs of other generators are judged.
func (f *budgetFlags) registerRecorded(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.limits, "limit", nil, "a rate passes up to this latency of a percentile, such as 99=100us; may be repeated")
	flags.DurationVar(&f.maximum, "maximum", 0, "a rate passes when no message takes longer; 0 for no limit")
	flags.Float64Var(&f.loss, "loss", -1, lossOfRates)
}

// recordedForms are the forms in which their results are written.
func recordedForms() *usage.Choice {
	return &usage.Choice{Value: "text", Allowed: []string{"text", "json", "csv", "hdr"}}
}

// histogramsForm is the form that has nothing but histograms.
const histogramsForm = "hdr"

// whoseHistograms says which runs have one.
const whoseHistograms = "TRex records one when its server was started with --hdrh, and goes on with it after clear_stats()"

// checkForm refuses a form that has nothing of what the generator records.
func (g *otherGenerator) checkForm(form string) error {
	if form == histogramsForm && g.name.Value != string(recorded.TRex) {
		return fmt.Errorf("-o %s: %s takes no latencies, so that its runs have no histogram: choose another form", form, g.name.Value)
	}
	return nil
}
