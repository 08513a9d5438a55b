// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/ordinaryhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// distributions are the ordinary hosts that everything is written on.
func distributions() map[string]ordinaryhost.Distribution {
	return map[string]ordinaryhost.Distribution{"debian": ordinaryhost.Debian(), "rocky": ordinaryhost.Rocky(), "k3s": ordinaryhost.K3s()}
}

// TestOrdinaryHosts plans all that samples, examples and imports ask for, writes it as on ordinary hosts, boots them with what
// was written, and holds each against its own plan: no check fails.
func TestOrdinaryHosts(t *testing.T) {
	all, hosts, table := allAsked(t), planMachines(), newTable("ordinary hosts")
	t.Run("rows", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, with := range slices.Sorted(maps.Keys(distributions())) {
				for _, on := range oneOrAll(name+with, []string{arm, epyc, xeon}) {
					t.Run(name+"@"+on+"/"+with, func(t *testing.T) {
						t.Parallel()
						table.add(t, writeAsked(t, name, on+"/"+with, all[name], hosts[on], distributions()[with]))
					})
				}
			}
		}
	})
	table.print(t)
}

// writeAsked plans, writes, boots and judges one profile on one host.
func writeAsked(t *testing.T, name, on string, wanted asked, hardware hosttree.Machine, with ordinaryhost.Distribution) line {
	t.Helper()
	report, err := writeAndBoot(t.Context(), t.TempDir(), wanted, hardware, with)
	if err != nil && strings.HasPrefix(err.Error(), "no plan: ") {
		report, err = writeAndBoot(t.Context(), t.TempDir(), wanted.fitting(hardware), hardware, with)
	}
	switch {
	case err != nil && (strings.HasPrefix(err.Error(), "no plan: ") || strings.HasPrefix(err.Error(), "refused: ")):
		return line{name, on, "", outcomeRefused, err.Error()}
	case err != nil:
		return line{name, on, "", outcomeMissed, err.Error()}
	}
	passed := 0
	for _, found := range report.Results {
		if found.Outcome == v1alpha1.OutcomeFailed {
			return line{name, on, found.Check.ID, outcomeFalseRed, found.Message}
		}
		if found.Outcome == v1alpha1.OutcomePassed {
			passed++
		}
	}
	return line{name, on, "", outcomeSound, fmt.Sprintf("%d checks passed", passed)}
}

// writeAndBoot brings a profile to a host and returns what the checks say of it.
func writeAndBoot(ctx context.Context, dir string, wanted asked, hardware hosttree.Machine, with ordinaryhost.Distribution) (verify.Report, error) {
	spec := wanted.profile.Spec
	h, err := ordinaryhost.Install(dir, hardware, with, spec.Kernel.Type, spec.Memory.KernelPageSize)
	if err != nil {
		return verify.Report{}, err
	}
	facts, err := readInstallation(ctx, dir)
	if err != nil {
		return verify.Report{}, err
	}
	found, err := topology.FromFacts(facts)
	if err != nil {
		return verify.Report{}, err
	}
	planned := fleet.PlanHardware(wanted.profile, fleet.NewPoolSet(wanted.pools, nil, nil).On(nil), found, kubernetes.Rules())
	if planned.Plan == nil {
		return verify.Report{}, errors.New("no plan: " + refusals(planned.Findings))
	}
	written, err := kubernetes.Write(planned.Plan, facts)
	if err != nil {
		return verify.Report{}, err
	}
	if written.Refused() {
		return verify.Report{}, errors.New("refused: " + refusals(written.Findings))
	}
	if err := h.BootWith(ctx, written.Operations); err != nil {
		return verify.Report{}, err
	}
	opened, err := host.Open(dir)
	if err != nil {
		return verify.Report{}, err
	}
	after, err := opened.ReadWith(ctx, verify.Requests(planned.Plan))
	if err = errors.Join(err, opened.Close()); err != nil {
		return verify.Report{}, err
	}
	return verify.Evaluate(verify.Input{Plan: planned.Plan, Facts: after}), nil
}

func readInstallation(ctx context.Context, dir string) (*host.Facts, error) {
	opened, err := host.Open(dir)
	if err != nil {
		return nil, err
	}
	facts, err := opened.ReadInstallation(ctx)
	return facts, errors.Join(err, opened.Close())
}
