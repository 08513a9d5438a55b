// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	namespace     = "operator"
	documentation = "../../docs/metrics.md"
)

// collector speaks of the given objects, one hour after the epoch.
func collector(t *testing.T, leads bool, objects ...client.Object) *Collector {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, v1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		t.Fatalf("building the scheme: %v", err)
	}
	elected := make(chan struct{})
	if leads {
		close(elected)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return New(reader, namespace, clocktesting.NewFakePassiveClock(time.Unix(3600, 0)), elected)
}

func world() []client.Object {
	return []client.Object{
		&v1alpha1.LowLatencyNodeProfile{
			ObjectMeta: metav1.ObjectMeta{Name: "trading"},
			Status: v1alpha1.LowLatencyNodeProfileStatus{
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}},
				Nodes:      &v1alpha1.NodeCounts{Matched: 3, Planned: 2, Applied: 1},
				Shapes:     []v1alpha1.ShapeStatus{{Hash: "a"}, {Hash: "b"}},
			},
		},
		&v1alpha1.LowLatencyNode{
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
			Spec:       v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
			Status: v1alpha1.LowLatencyNodeStatus{
				Conditions: []metav1.Condition{{Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionTrue}},
				Checks:     &v1alpha1.CheckCounts{Passed: 40, Failed: 1, Unknown: 2, Waived: 3},
				Findings:   []v1alpha1.Finding{{Check: "irq.balancer", Severity: v1alpha1.SeverityHigh, Outcome: v1alpha1.OutcomeFailed}},
			},
		},
	}
}

func TestCollect(t *testing.T) {
	c := collector(t, true, world()...)
	cases := map[string]string{
		profileNodes: `lowlatency_profile_nodes{profile="trading",state="applied"} 1
lowlatency_profile_nodes{profile="trading",state="deJittered"} 0
lowlatency_profile_nodes{profile="trading",state="matched"} 3
lowlatency_profile_nodes{profile="trading",state="numaAligned"} 0
lowlatency_profile_nodes{profile="trading",state="planned"} 2
`,
		profileShapes: `lowlatency_profile_shapes{profile="trading"} 2
`,
		profileCondition: `lowlatency_profile_status_condition{profile="trading",status="False",type="Ready"} 1
lowlatency_profile_status_condition{profile="trading",status="True",type="Ready"} 0
lowlatency_profile_status_condition{profile="trading",status="Unknown",type="Ready"} 0
`,
		nodeCondition: `lowlatency_node_status_condition{node="worker-1",profile="trading",status="True",type="DeJittered"} 1
`,
		nodeChecks: `lowlatency_node_checks{node="worker-1",outcome="failed",profile="trading"} 1
lowlatency_node_checks{node="worker-1",outcome="passed",profile="trading"} 40
lowlatency_node_checks{node="worker-1",outcome="unknown",profile="trading"} 2
lowlatency_node_checks{node="worker-1",outcome="waived",profile="trading"} 3
`,
		findings: `lowlatency_findings_nodes{check="irq.balancer",outcome="Failed",profile="trading",severity="High"} 1
`,
	}
	for name, want := range cases {
		t.Run(name, func(t *testing.T) {
			header := fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n", name, helpOf(name), name)
			if err := testutil.CollectAndCompare(c, strings.NewReader(header+want), name); err != nil {
				t.Error(err)
			}
		})
	}
}

func helpOf(name string) string {
	for _, d := range Descriptions() {
		if d.Name == name {
			return d.Help
		}
	}
	return ""
}

func TestPlanAge(t *testing.T) {
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "trading-0123", CreationTimestamp: metav1.NewTime(time.Unix(0, 0)),
		Labels: map[string]string{v1alpha1.LabelProfile: "trading"},
	}}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector(t, true, plan))
	families, err := registry.Gather()
	if err != nil {
		t.Fatalf("gathering: %v", err)
	}
	for _, family := range families {
		if family.GetName() == planAge {
			if age := family.GetMetric()[0].GetGauge().GetValue(); age != 3600 {
				t.Errorf("the plan is %v seconds old, want 3600", age)
			}
			return
		}
	}
	t.Error("no metric tells the age of the plan")
}

func TestOnlyTheLeaderTells(t *testing.T) {
	if count := testutil.CollectAndCount(collector(t, false, world()...)); count != 0 {
		t.Errorf("a replica that does not lead tells %d metrics", count)
	}
}

func TestNamesFollowTheConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(collector(t, true, world()...))
	if err != nil {
		t.Fatalf("linting: %v", err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

func TestDocumentation(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics\n\nServed by the operator on its metrics port, beside those of controller-runtime. " +
		"Made of `Descriptions` in `internal/metrics`;\nupdate it with `go test ./internal/metrics -update`.\n\n" +
		"| Metric | Labels | Meaning |\n|---|---|---|\n")
	for _, d := range Descriptions() {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", d.Name, strings.Join(d.Labels, "`, `"), d.Help)
	}
	b.WriteString("\nFailed reconciliations are counted by `controller_runtime_reconcile_errors_total`.\n")
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(documentation, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	written, err := os.ReadFile(documentation)
	if err != nil {
		t.Fatalf("reading the documentation: %v", err)
	}
	if diff := cmp.Diff(b.String(), string(written)); diff != "" {
		t.Errorf("docs/metrics.md (-want +got):\n%s", diff)
	}
}

func TestMain(m *testing.M) {
	flag.Bool("update", false, "write docs/metrics.md")
	flag.Parse()
	os.Exit(m.Run())
}
