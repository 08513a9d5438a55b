// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestLossOfRates: whoever searches lets no message be lost unless told how many, and says so of the number that stands for no limit elsewhere.
func TestLossOfRates(t *testing.T) {
	for name, tc := range map[string]struct {
		command *cobra.Command
		want    string
	}{
		"load": {loadCommand("/"), lossOfRates}, "drive": {driveCommand(), lossOfRates}, "recorded": {recordedCommand(), lossOfRates},
		"rate": {rateCommand("/"), lossOfAll}, "pingpong": {pingPongCommand("/"), lossOfAll},
	} {
		if got := tc.command.Flags().Lookup("loss").Usage; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	for given, want := range map[string]float64{"-1": 0, "0": 0, "20": 20} {
		flags := &loadFlags{streamFlags: newStreamFlags(), searchFlags: newSearchFlags()}
		set := pflag.NewFlagSet("load", pflag.ContinueOnError)
		flags.streamFlags.register(set, "/", lossOfRates)
		flags.searchFlags.register(set)
		if err := set.Parse([]string{"--loss=" + given}); err != nil {
			t.Fatal(err)
		}
		budget, err := flags.budget()
		if err != nil || (budget.LossPartsPerMillion == nil) != (given == "-1") {
			t.Errorf("--loss %s: %+v, %v", given, budget, err)
		}
		if got := flags.options(&budget).Budget.LossPartsPerMillion; got == nil || *got != want {
			t.Errorf("--loss %s: a search has %v, want %g", given, got, want)
		}
	}
}
