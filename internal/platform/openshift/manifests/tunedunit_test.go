// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"slices"
	"strings"
	"testing"

	"github.com/coreos/go-systemd/v22/unit"
)

// optionsOf reads the values of a unit by section and name.
func optionsOf(t *testing.T, text string) map[string][]string {
	t.Helper()
	parsed, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	options := map[string][]string{}
	for _, o := range parsed {
		options[o.Section+"."+o.Name] = append(options[o.Section+"."+o.Name], strings.Fields(o.Value)...)
	}
	return options
}

// TestTunedRunsBeforePods: what starts pods waits for the unit, but does not need it.
func TestTunedRunsBeforePods(t *testing.T) {
	options := optionsOf(t, tunedUnit().Content)
	for _, starter := range []string{"kubelet.service", "crio.service"} {
		if !slices.Contains(options["Unit.Before"], starter) {
			t.Errorf("%s does not wait for TuneD: Before=%v", starter, options["Unit.Before"])
		}
	}
	if required := slices.Concat(options["Install.RequiredBy"], options["Install.UpheldBy"]); len(required) > 0 {
		t.Errorf("%v would stay down when TuneD fails", required)
	}
	if timeout := options["Service.TimeoutStartSec"]; len(timeout) != 1 || timeout[0] == "0" || timeout[0] == "infinity" {
		t.Errorf("the kubelet would wait for ever: TimeoutStartSec=%v", timeout)
	}
}

// TestTunedUnitNamesNoSetting: a unit is a part of the MachineConfig, and another text of it reboots every node.
func TestTunedUnitNamesNoSetting(t *testing.T) {
	texts := map[string]bool{}
	for _, in := range plannedExamples(t) {
		for _, planned := range hostUnits(in.Plan) {
			if planned.Name == tunedUnitName {
				texts[planned.Content] = true
			}
		}
	}
	if len(texts) != 1 {
		t.Errorf("the unit has %d texts for different plans", len(texts))
	}
}
