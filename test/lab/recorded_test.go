// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

const (
	// truthFolder holds the profile of each machine of make lab, and a folder with what its kernels said.
	truthFolder = "testdata/truth"
	// untunedState is the snapshot from which the plan of a machine is made.
	untunedState = "untuned"
	skipped      = "Skipped"
)

// TestRecordedKernels judges what real kernels said in the scenarios of make lab, without QEMU: snapshots of its
// machines, compared with the plan that is made from the machine's first one.
func TestRecordedKernels(t *testing.T) {
	snapshots, err := filepath.Glob(truthFolder + "/*/*.tar.gz")
	if err != nil || len(snapshots) == 0 {
		t.Fatalf("no snapshots are in %s: %v", truthFolder, err)
	}
	for _, snapshot := range snapshots {
		machine := filepath.Base(filepath.Dir(snapshot))
		state := strings.TrimSuffix(filepath.Base(snapshot), ".tar.gz")
		t.Run(machine+"/"+state, func(t *testing.T) {
			untuned := readFacts(t, filepath.Join(filepath.Dir(snapshot), untunedState+".tar.gz"))
			planned := planOf(t, machine, untuned)
			found := judgementOf(verify.Evaluate(verify.Input{Plan: planned, Facts: readFacts(t, snapshot)}))
			golden.Assert(t, found.String(), filepath.Join(filepath.Base(truthFolder), machine, state+".golden"))
		})
	}
}

// planOf makes the plan of a machine from its own topology and the profile with its name.
func planOf(t *testing.T, machine string, facts *host.Facts) *plan.NodePlan {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(truthFolder, machine+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := yaml.UnmarshalStrict(text, profile); err != nil {
		t.Fatal(err)
	}
	layout, err := topology.FromFacts(facts)
	if err != nil {
		t.Fatal(err)
	}
	made, findings := plan.New(plan.Input{Profile: profile, Topology: layout})
	if made == nil {
		t.Fatalf("the profile does not fit machine %s: %v", machine, findings)
	}
	return made
}

func readFacts(t *testing.T, snapshot string) *host.Facts {
	t.Helper()
	opened, err := host.Open(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := opened.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	return facts
}

// verdicts are the conditions that an agent would report.
type verdicts struct{ Applied, DeJittered, NUMAAligned metav1.ConditionStatus }

// judgement is what the checks say about a machine.
type judgement struct {
	verdicts
	outcomes map[string]string
	messages map[string]string
	order    []string
}

func judgementOf(report verify.Report) judgement {
	j := judgement{outcomes: map[string]string{}, messages: map[string]string{}}
	for _, condition := range report.Conditions(0) {
		switch condition.Type {
		case v1alpha1.ConditionApplied:
			j.Applied = condition.Status
		case v1alpha1.ConditionDeJittered:
			j.DeJittered = condition.Status
		case v1alpha1.ConditionNUMAAligned:
			j.NUMAAligned = condition.Status
		}
	}
	for _, result := range report.Results {
		check := string(result.Check.ID)
		j.outcomes[check] = string(result.Outcome)
		j.messages[check] = result.Message
		j.order = append(j.order, check)
	}
	for _, skip := range report.Skipped {
		j.outcomes[string(skip.Check)] = skipped
	}
	return j
}

// String lists the conditions, then each check that was evaluated with its outcome, and its message where it did not
// pass.
func (j judgement) String() string {
	lines := make([]string, 1, 1+len(j.order))
	lines[0] = fmt.Sprintf("Applied %s, DeJittered %s, NUMAAligned %s", j.Applied, j.DeJittered, j.NUMAAligned)
	for _, check := range slices.Sorted(slices.Values(j.order)) {
		line := check + " " + j.outcomes[check]
		if j.outcomes[check] != string(v1alpha1.OutcomePassed) {
			line += ": " + j.messages[check]
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n") + "\n"
}
