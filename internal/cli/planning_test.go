// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// TestPlanReadsAllThatPlansAreComparedWith: plans and what they change are the same when no more of a host is read than its
// configuration.
func TestPlanReadsAllThatPlansAreComparedWith(t *testing.T) {
	pool, err := filepath.Abs("../../config/samples/dataplane/pool.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, machine := range map[string]hosttree.Machine{"Xeon": hosttree.Xeon(), "EPYC": hosttree.EPYC(), "Arm": hosttree.Arm()} {
		t.Run(name, func(t *testing.T) {
			profile := tunedhost.Profile()
			profile.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"node-role.kubernetes.io/trading": ""}
			if name == "EPYC" {
				profile.Spec.Kernel.Type, profile.Spec.Interrupts.Placement = v1alpha1.KernelRealTime, v1alpha1.InterruptsPerPod
			}
			root := filepath.Join(t.TempDir(), "host")
			tuned, err := tunedhost.New(t.Context(), root, tunedhost.Small(machine), profile)
			if err != nil {
				t.Fatal(err)
			}
			text, err := yaml.Marshal(profile)
			if err != nil {
				t.Fatal(err)
			}
			file := write(t, "profile.yaml", "apiVersion: lowlatency.dev/v1alpha1\nkind: LowLatencyNodeProfile\n"+string(text))
			options := targets{files: []string{file, pool}, roots: []string{"a=" + root}}
			expectSamePlans(t, options)
			if err := tuned.Apply(); err != nil {
				t.Fatal(err)
			}
			expectSamePlans(t, options)
		})
	}
}

func expectSamePlans(t *testing.T, options targets) {
	t.Helper()
	var all [2]view.Plan
	for i := range all {
		options.configuration = i == 1
		wanted, nodes, err := options.load(t.Context(), &app{})
		if err != nil {
			t.Fatal(err)
		}
		node := wanted.planned(nodes[0])
		if node.Plan == nil {
			t.Fatalf("no plan: %v", node.Findings)
		}
		if all[i], err = view.OfPlan("a", wanted.profile, node.Plan, node.Findings, againstRunning, differsFromRunning(node)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" {
		t.Errorf("(-everything +configuration):\n%s", diff)
	}
}
