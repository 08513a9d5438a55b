// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
)

const operatorNamespace = "lowlatency-system"

// goldenPlans are the planner's own golden plans, by the names of their files.
func goldenPlans(t testing.TB) map[string]*plan.NodePlan {
	t.Helper()
	return objects.GoldenPlans(t, filepath.Join("..", "plan", "testdata"))
}

func goldenPlan(t testing.TB, name string) *plan.NodePlan {
	t.Helper()
	found := goldenPlans(t)[name]
	if found == nil {
		t.Fatalf("no golden plan %q", name)
	}
	return found
}

// TestPlanSurvivesTheConfigMap reads the plan back as an agent does.
func TestPlanSurvivesTheConfigMap(t *testing.T) {
	for name, written := range goldenPlans(t) {
		t.Run(name, func(t *testing.T) {
			configMap, err := PlanConfigMap(written, written.Hash(), operatorNamespace)
			if err != nil {
				t.Fatalf("PlanConfigMap: %v", err)
			}
			if configMap.Immutable == nil || !*configMap.Immutable {
				t.Errorf("the ConfigMap can be changed after the fact")
			}
			if want := written.Profile + "-" + written.Hash(); configMap.Name != want || configMap.Namespace != operatorNamespace {
				t.Errorf("the ConfigMap is %s/%s, want %s/%s", configMap.Namespace, configMap.Name, operatorNamespace, want)
			}
			var read plan.NodePlan
			if err := json.Unmarshal([]byte(configMap.Data[v1alpha1.PlanKey]), &read); err != nil {
				t.Fatalf("reading the plan: %v", err)
			}
			if read.Hash() != written.Hash() {
				t.Errorf("the plan that was read has hash %s, the one that was written %s", read.Hash(), written.Hash())
			}
		})
	}
}

// TestOriginsDoNotChangeTheConfigMap has two plans with one name, since origins do not count for the hash: the
// second apply of an immutable ConfigMap with other bytes would be refused.
func TestOriginsDoNotChangeTheConfigMap(t *testing.T) {
	one, other := goldenPlan(t, "epyc-real-time"), goldenPlan(t, "epyc-real-time")
	other.CPUs.Origin = plan.Origin{Source: plan.FromField, Detail: "spec.cpus.derived"}
	other.KernelArguments[3].Origin = plan.Origin{Source: plan.FromPreset, Detail: "LowLatency"}
	other.Sysctls[0].Origin = plan.Origin{Source: plan.FromPreset}
	a, b := configMapText(t, one), configMapText(t, other)
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("plans that differ in origins alone print differently (-one +other):\n%s", diff)
	}
	if strings.Contains(a, `"origin"`) {
		t.Errorf("the printed plan still has an origin:\n%s", a)
	}
}

func configMapText(t *testing.T, in *plan.NodePlan) string {
	t.Helper()
	configMap, err := PlanConfigMap(in, in.Hash(), operatorNamespace)
	if err != nil {
		t.Fatalf("PlanConfigMap: %v", err)
	}
	return configMap.Data[v1alpha1.PlanKey]
}

func TestPlanTextKeepsNumbersAndForeignOrigins(t *testing.T) {
	in := goldenPlan(t, "xeon-trading")
	in.Kubelet.Additional = map[string]any{"podPidsLimit": int64(9007199254740993), "origin": "kept", "a<b": true}
	text := configMapText(t, in)
	for _, want := range []string{`"podPidsLimit": 9007199254740993`, `"origin": "kept"`, `"a<b": true`} {
		if !strings.Contains(text, want) {
			t.Errorf("the printed plan lacks %s", want)
		}
	}
}

func TestPlanThatCannotBePrinted(t *testing.T) {
	in := goldenPlan(t, "xeon-trading")
	in.Kubelet.Additional = map[string]any{"maxPods": func() {}}
	_, err := PlanConfigMap(in, "0123456789abcdef", operatorNamespace)
	if err == nil || !strings.Contains(err.Error(), "printing the plan") {
		t.Errorf("error = %v, want that of printing the plan", err)
	}
}
