// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestPlanSurvivesTheConfigMap reads the plan back as an agent does.
func TestPlanSurvivesTheConfigMap(t *testing.T) {
	for name, in := range plannedExamples(t) {
		t.Run(name, func(t *testing.T) {
			configMap, err := PlanConfigMap(in)
			if err != nil {
				t.Fatalf("PlanConfigMap: %v", err)
			}
			if configMap.Immutable == nil || !*configMap.Immutable {
				t.Errorf("the ConfigMap can be changed after the fact")
			}
			if want := in.Plan.Profile + "-" + in.Plan.Hash(); configMap.Name != want || configMap.Namespace != in.Namespace {
				t.Errorf("the ConfigMap is %s/%s, want %s/%s", configMap.Namespace, configMap.Name, in.Namespace, want)
			}
			var read plan.NodePlan
			if err := json.Unmarshal([]byte(configMap.Data[v1alpha1.PlanKey]), &read); err != nil {
				t.Fatalf("reading the plan: %v", err)
			}
			if read.Hash() != in.Plan.Hash() {
				t.Errorf("the plan that was read has hash %s, the one that was written %s", read.Hash(), in.Plan.Hash())
			}
		})
	}
}

// TestOriginsDoNotChangeTheConfigMap has two plans with one name, since origins do not count for the hash: the
// second apply of an immutable ConfigMap with other bytes would be refused.
func TestOriginsDoNotChangeTheConfigMap(t *testing.T) {
	one, other := example(t, "trading-xeon"), example(t, "trading-xeon")
	other.Plan.CPUs.Origin = plan.Origin{Source: plan.FromField, Detail: "spec.cpus.derived"}
	other.Plan.KernelArguments[3].Origin = plan.Origin{Source: plan.FromPreset, Detail: "LowLatency"}
	other.Plan.Sysctls[0].Origin = plan.Origin{Source: plan.FromPreset}
	a, b := configMapText(t, one), configMapText(t, other)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("plans that differ in origins alone print differently (-one +other):\n%s", diff)
	}
	if strings.Contains(a, `"origin"`) {
		t.Errorf("the printed plan still has an origin:\n%s", a)
	}
}

func configMapText(t *testing.T, in Input) string {
	t.Helper()
	configMap, err := PlanConfigMap(in)
	if err != nil {
		t.Fatalf("PlanConfigMap: %v", err)
	}
	return configMap.Data[v1alpha1.PlanKey]
}

func TestPlanTextKeepsNumbersAndForeignOrigins(t *testing.T) {
	in := example(t, "perpod-epyc")
	in.Plan.Kubelet.Additional = map[string]any{"podPidsLimit": int64(9007199254740993), "origin": "kept", "a<b": true}
	text := configMapText(t, in)
	for _, want := range []string{`"podPidsLimit": 9007199254740993`, `"origin": "kept"`, `"a<b": true`} {
		if !strings.Contains(text, want) {
			t.Errorf("the printed plan lacks %s", want)
		}
	}
}

func TestPlanThatCannotBePrinted(t *testing.T) {
	in := example(t, "perpod-epyc")
	in.planHash = "0123456789abcdef"
	in.Plan.Kubelet.Additional = map[string]any{"maxPods": func() {}}
	_, err := Objects(in)
	wantError(t, err, "printing the plan")
}
