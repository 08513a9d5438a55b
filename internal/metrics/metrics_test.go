// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"gotest.tools/v3/golden"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

func now() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// newCollector makes a collector over objects, with interceptors for its reads.
func newCollector(t *testing.T, elected bool, failing interceptor.Funcs, objects ...client.Object) *Collector {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(failing).Build()
	leading := make(chan struct{})
	if elected {
		close(leading)
	}
	return New(reader, "v1.2.3", "operator", "agents", testingclock.NewFakePassiveClock(now()), leading)
}

func exampleObjects() []client.Object {
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	profile.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed}}
	profile.Status.Nodes = &v1alpha1.NodeCounts{Matched: 3, Planned: 2, Applied: 2, DeJittered: 1, NUMAAligned: 2}
	profile.Status.Shapes = []v1alpha1.ShapeStatus{{Hash: "a"}, {Hash: "b"}}
	node := func(name string) *v1alpha1.LowLatencyNode {
		n := &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Spec.Profile = "trading"
		n.Status.Findings = []v1alpha1.Finding{{Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed}}
		return n
	}
	first := node("n1")
	first.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonChecksUnknown}}
	first.Status.Checks = &v1alpha1.CheckCounts{Passed: 30, Failed: 1, Unknown: 2, Waived: 3}
	plan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "trading-a", Namespace: "operator", Labels: map[string]string{v1alpha1.LabelProfile: "trading"},
		CreationTimestamp: metav1.NewTime(now().Add(-90 * time.Second)),
	}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "operator"}}
	first.Status.BypassNICs = []v1alpha1.NodeBypassNIC{
		{Pool: "x2", Health: v1alpha1.NICHealthy, ModuleVersion: "9.1.1", UserVersion: "9.1.1", Users: []v1alpha1.NICUser{
			{Alignment: v1alpha1.AlignmentAligned}, {Alignment: v1alpha1.AlignmentAligned}, {Alignment: v1alpha1.AlignmentSplit},
		}},
		{Pool: "x2", Health: v1alpha1.NICUnhealthy, ModuleVersion: "9.1.1", UserVersion: "9.0.2"},
		{Pool: "x2", Health: v1alpha1.NICUnhealthy, ModuleVersion: "9.1.1", UserVersion: "9.0.2"},
		{Pool: "dpdk", Health: v1alpha1.NICUnknown, ModuleVersion: "9.1.1"},
	}
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
	pool.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNICsUnhealthy,
	}}
	pool.Status.Nodes = &v1alpha1.PoolNodeCounts{Matched: 3, Reporting: 1}
	pool.Status.NICs = &v1alpha1.PoolNICCounts{Found: 3, Eligible: 3, Healthy: 1, Units: 8, Allocated: 3}
	first.Status.BypassNICs[0].Units, first.Status.BypassNICs[0].Hugepages = 4, v1alpha1.HugepagesExhausted
	first.Status.Transitions = []v1alpha1.NodeTransition{{Time: metav1.NewTime(now().Add(-time.Hour))}, {Time: metav1.NewTime(now().Add(-2 * time.Hour))}}
	first.Status.Drift = []v1alpha1.CheckDrift{{Check: "irq.affinity", Drifted: 3, Repaired: 2, Unrepaired: []string{"/proc/irq/7"}}}
	second := node("n2")
	second.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionTrue}}
	second.Status.BypassNICs = []v1alpha1.NodeBypassNIC{{Pool: "x2", Health: v1alpha1.NICHealthy}}
	second.Status.Drift = []v1alpha1.CheckDrift{{Check: "irq.affinity", Drifted: 1, Repaired: 1}}
	third := node("n3")
	third.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRebootPending}}
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "quiet"}}
	test.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonTestsFailed}}
	test.Status.Nodes = &v1alpha1.LatencyTestCounts{Selected: 3, Passed: 1, Failed: 1, Waiting: 1}
	test.Status.Results = []v1alpha1.LatencyTestResult{
		{
			Node: "n1", Measured: &v1alpha1.LatencyMeasurement{
				CompletedTime: metav1.NewTime(now().Add(-time.Hour)), MaximumNanoseconds: 12_500, StolenPartsPerMillion: 50,
				RepetitionMaximumsNanoseconds: []int64{12_000, 12_500, 11_000}, Fingerprint: v1alpha1.LatencyFingerprint{Kernel: "6.13", PlanHash: "b"},
			},
			Previous: &v1alpha1.LatencyMeasurement{
				RepetitionMaximumsNanoseconds: []int64{9000, 8000, 10_000}, Fingerprint: v1alpha1.LatencyFingerprint{Kernel: "6.12", PlanHash: "a"},
			},
		},
		{Node: "n2", Measured: &v1alpha1.LatencyMeasurement{CompletedTime: metav1.NewTime(now())}},
		{Node: "n3", Activity: v1alpha1.LatencyWaiting},
	}
	way := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "way"}}
	way.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Measured: &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(now()), MaximumNanoseconds: 45_000, Network: &v1alpha1.NetworkMeasurement{Sizes: []v1alpha1.SizeMeasurement{
			{Bytes: 64, LatencyFigures: v1alpha1.LatencyFigures{Samples: 99, MaximumNanoseconds: 45_000, Percentiles: []v1alpha1.LatencyPercentile{
				{Percentile: v1alpha1.P50, Nanoseconds: 5000}, {Percentile: v1alpha1.P90, Nanoseconds: 6000}, {Percentile: v1alpha1.P99, Nanoseconds: 20_000},
			}}, Lost: 1},
			{Bytes: 1024, LatencyFigures: v1alpha1.LatencyFigures{MaximumNanoseconds: 40_000}},
		}, Server: "n2", ServerFingerprint: &v1alpha1.LatencyFingerprint{Kernel: "6.13"}},
	}, Previous: &v1alpha1.LatencyMeasurement{
		Network: &v1alpha1.NetworkMeasurement{Server: "n2", ServerFingerprint: &v1alpha1.LatencyFingerprint{Kernel: "6.12"}},
	}}}
	return []client.Object{
		test, way, exampleRates(), leaseOf("n1", 20*time.Second), leaseOf("n2", 3*time.Minute), leaseOf("n3", 20*time.Second),
		profile, first, second, third, plan, other, pool, gateNode("n1", corev1.ConditionTrue, "Verified"),
		gateNode("n2", corev1.ConditionUnknown, "ChecksUnknown"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n3"}},
	}
}

// exampleRates is a test of kind RateSweep that has measured one node.
func exampleRates() *v1alpha1.LatencyTest {
	rates := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "rates"}}
	rates.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Measured: &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(now()), MaximumNanoseconds: 30_000, Network: &v1alpha1.NetworkMeasurement{
			Sizes: []v1alpha1.SizeMeasurement{{Bytes: 64}},
			Rates: []v1alpha1.RateMeasurement{{
				MessagesPerSecond: 5000, Bytes: 64, Sent: 1000, Lost: 2, Late: 5, FromIntended: v1alpha1.LatencyFigures{
					MaximumNanoseconds: 30_000, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 7000}},
				},
			}},
		},
	}}}
	return rates
}

// leaseOf is the Lease of a node that its agent has renewed some time ago.
func leaseOf(node string, ago time.Duration) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "agents", Name: node}}
	lease.Spec = heartbeat.Renewed("agent-x7k2p/"+node, now().Add(-ago), 0)
	return lease
}

// gateNode is a Node with the condition LowLatencyReady.
func gateNode(name string, status corev1.ConditionStatus, reason string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: v1alpha1.NodeConditionReady, Status: status, Reason: reason},
	}
	return node
}

// noDrift are the samples of checks, other than one, that have drifted on no node of a profile.
func noDrift(but v1alpha1.CheckID) string {
	var text strings.Builder
	for _, check := range verify.Catalogue() {
		if check.ID != but {
			fmt.Fprintf(&text, "lowlatency_drift{check=%q,profile=\"trading\",state=\"drifted\"} 0\n", check.ID)
		}
	}
	return text.String()
}

func TestCollector(t *testing.T) {
	collector := newCollector(t, true, interceptor.Funcs{}, exampleObjects()...)
	want := `
lowlatency_agent_heartbeat{node="n1",profile="trading",state="Fresh"} 1
lowlatency_agent_heartbeat{node="n2",profile="trading",state="Stale"} 1
lowlatency_agent_heartbeat{node="n3",profile="trading",state="Fresh"} 1
lowlatency_agent_heartbeat_timestamp_seconds{node="n1",profile="trading"} 1.79526238e+09
lowlatency_agent_heartbeat_timestamp_seconds{node="n2",profile="trading"} 1.79526222e+09
lowlatency_agent_heartbeat_timestamp_seconds{node="n3",profile="trading"} 1.79526238e+09
lowlatency_drift{check="irq.affinity",profile="trading",state="drifted"} 4
lowlatency_drift{check="irq.affinity",profile="trading",state="repaired"} 3
lowlatency_drift{check="irq.affinity",profile="trading",state="unrepaired"} 1
lowlatency_findings_nodes{check="irq.affinity",outcome="Failed",profile="trading",reboot="None",severity="Critical"} 2
lowlatency_findings_nodes{check="irq.affinity",outcome="Failed",profile="trading",reboot="Pending",severity="Critical"} 1
lowlatency_node_checks{node="n1",outcome="failed",profile="trading"} 1
lowlatency_node_checks{node="n1",outcome="passed",profile="trading"} 30
lowlatency_node_checks{node="n1",outcome="unknown",profile="trading"} 2
lowlatency_node_checks{node="n1",outcome="waived",profile="trading"} 3
lowlatency_node_condition{node="n1",profile="trading",reason="ChecksUnknown",status="Unknown",type="DeJittered"} 1
lowlatency_node_condition{node="n2",profile="trading",reason="HeartbeatStale",status="Unknown",type="DeJittered"} 1
lowlatency_node_condition{node="n3",profile="trading",reason="RebootPending",status="False",type="Applied"} 1
lowlatency_node_gate{node="n1",reason="Verified",state="Open"} 1
lowlatency_node_gate{node="n2",reason="ChecksUnknown",state="Closed"} 1
lowlatency_node_last_transition_timestamp_seconds{node="n1",profile="trading"} 1.7952588e+09
lowlatency_node_last_transition_timestamp_seconds{node="n2",profile="trading"} 1.79526234e+09
lowlatency_operator_info{version="v1.2.3"} 1
lowlatency_plan_age_seconds{plan="trading-a",profile="trading"} 90
lowlatency_pool_condition{pool="x2",reason="NICsUnhealthy",status="True",type="Degraded"} 1
lowlatency_pool_containers{alignment="Aligned",pool="x2"} 2
lowlatency_pool_containers{alignment="Split",pool="x2"} 1
lowlatency_pool_free_nics{hugepages="Exhausted",pool="x2"} 1
lowlatency_pool_nics{health="Healthy",pool="x2"} 1
lowlatency_pool_nics{health="Unhealthy",pool="x2"} 2
lowlatency_pool_nics{health="Unknown",pool="dpdk"} 1
lowlatency_pool_nics{health="Unknown",pool="x2"} 1
lowlatency_pool_nodes{pool="x2",state="matched"} 3
lowlatency_pool_nodes{pool="x2",state="reporting"} 1
lowlatency_pool_units{pool="x2",state="advertised"} 8
lowlatency_pool_units{pool="x2",state="allocated"} 3
lowlatency_pool_version_nics{health="Healthy",module="9.1.1",pool="x2",user="9.1.1",versions="Equal"} 1
lowlatency_pool_version_nics{health="Unhealthy",module="9.1.1",pool="x2",user="9.0.2",versions="Different"} 2
lowlatency_pool_version_nics{health="Unknown",module="9.1.1",pool="dpdk",user="",versions="Incomplete"} 1
lowlatency_profile_condition{profile="trading",reason="ChecksFailed",status="False",type="Ready"} 1
lowlatency_profile_nodes{profile="trading",state="applied"} 2
lowlatency_profile_nodes{profile="trading",state="deJittered"} 1
lowlatency_profile_nodes{profile="trading",state="matched"} 3
lowlatency_profile_nodes{profile="trading",state="numaAligned"} 2
lowlatency_profile_nodes{profile="trading",state="pending"} 0
lowlatency_profile_nodes{profile="trading",state="planned"} 2
lowlatency_profile_shapes{profile="trading"} 2
lowlatency_test_change{changed="kernel, plan",node="n1",test="quiet",test_namespace="tests",trend="Worse"} 1
lowlatency_test_change{changed="server kernel",node="n1",test="way",test_namespace="tests",trend="Unknown"} 1
lowlatency_test_completed_timestamp_seconds{node="n1",test="quiet",test_namespace="tests"} 1.7952588e+09
lowlatency_test_completed_timestamp_seconds{node="n2",test="quiet",test_namespace="tests"} 1.7952624e+09
lowlatency_test_completed_timestamp_seconds{node="n1",test="rates",test_namespace="tests"} 1.7952624e+09
lowlatency_test_completed_timestamp_seconds{node="n1",test="way",test_namespace="tests"} 1.7952624e+09
lowlatency_test_condition{reason="TestsFailed",status="False",test="quiet",test_namespace="tests",type="Ready"} 1
lowlatency_test_latency_seconds{bytes="64",node="n1",percentile="P50",rate="",side="",test="way",test_namespace="tests"} 5e-06
lowlatency_test_latency_seconds{bytes="64",node="n1",percentile="P99",rate="",side="",test="way",test_namespace="tests"} 2e-05
lowlatency_test_latency_seconds{bytes="64",node="n1",percentile="P50",rate="5000",side="",test="rates",test_namespace="tests"} 7e-06
lowlatency_test_late_ratio{bytes="64",node="n1",rate="5000",side="",test="rates",test_namespace="tests"} 0.005
lowlatency_test_longest_interruption_seconds{node="n1",test="quiet",test_namespace="tests"} 1.25e-05
lowlatency_test_longest_interruption_seconds{node="n2",test="quiet",test_namespace="tests"} 0
lowlatency_test_longest_latency_seconds{bytes="1024",node="n1",rate="",side="",test="way",test_namespace="tests"} 4e-05
lowlatency_test_longest_latency_seconds{bytes="64",node="n1",rate="",side="",test="way",test_namespace="tests"} 4.5e-05
lowlatency_test_longest_latency_seconds{bytes="64",node="n1",rate="5000",side="",test="rates",test_namespace="tests"} 3e-05
lowlatency_test_lost_ratio{bytes="1024",node="n1",rate="",side="",test="way",test_namespace="tests"} 0
lowlatency_test_lost_ratio{bytes="64",node="n1",rate="",side="",test="way",test_namespace="tests"} 0.01
lowlatency_test_lost_ratio{bytes="64",node="n1",rate="5000",side="",test="rates",test_namespace="tests"} 0.002
lowlatency_test_nodes{state="failed",test="quiet",test_namespace="tests"} 1
lowlatency_test_nodes{state="inconclusive",test="quiet",test_namespace="tests"} 0
lowlatency_test_nodes{state="passed",test="quiet",test_namespace="tests"} 1
lowlatency_test_nodes{state="running",test="quiet",test_namespace="tests"} 0
lowlatency_test_nodes{state="selected",test="quiet",test_namespace="tests"} 3
lowlatency_test_nodes{state="stale",test="quiet",test_namespace="tests"} 0
lowlatency_test_nodes{state="waiting",test="quiet",test_namespace="tests"} 1
lowlatency_test_stolen_ratio{node="n1",test="quiet",test_namespace="tests"} 5e-05
lowlatency_test_stolen_ratio{node="n2",test="quiet",test_namespace="tests"} 0
` + noDrift("irq.affinity")
	expectSamples(t, collector, want)
}

// exampleSearch is a test that has looked for the highest rate.
func exampleSearch() *v1alpha1.LatencyTest {
	load := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "load"}}
	load.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Measured: &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(now()), Network: &v1alpha1.NetworkMeasurement{
			Load: &v1alpha1.LoadMeasurement{BestPassPerSecond: 49_000, LowestFailPerSecond: 49_400},
			Rates: []v1alpha1.RateMeasurement{{MessagesPerSecond: 49_000, Trial: v1alpha1.LoadTrialBestPass, Bytes: 64, Sent: 1000, FromIntended: v1alpha1.LatencyFigures{
				MaximumNanoseconds: 20_000,
			}}},
		},
	}}}
	return load
}

// TestHighestRates: what a search found, whose rates are other ones in each run and therefore no labels.
func TestHighestRates(t *testing.T) {
	collector := newCollector(t, true, interceptor.Funcs{}, exampleSearch())
	want := `
lowlatency_operator_info{version="v1.2.3"} 1
lowlatency_test_completed_timestamp_seconds{node="n1",test="load",test_namespace="tests"} 1.7952624e+09
lowlatency_test_highest_rate{bound="BestPass",node="n1",test="load",test_namespace="tests"} 49000
lowlatency_test_highest_rate{bound="LowestFail",node="n1",test="load",test_namespace="tests"} 49400
lowlatency_test_late_ratio{bytes="64",node="n1",rate="BestPass",side="",test="load",test_namespace="tests"} 0
lowlatency_test_longest_latency_seconds{bytes="64",node="n1",rate="BestPass",side="",test="load",test_namespace="tests"} 2e-05
lowlatency_test_lost_ratio{bytes="64",node="n1",rate="BestPass",side="",test="load",test_namespace="tests"} 0
`
	expectSamples(t, collector, want)
}

// exampleComparison is a test that has compared a container with its host.
func exampleComparison() *v1alpha1.LatencyTest {
	test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "pods"}}
	sizes := []v1alpha1.SizeMeasurement{{Bytes: 64, LatencyFigures: v1alpha1.LatencyFigures{MaximumNanoseconds: 20_000}}}
	test.Status.Results = []v1alpha1.LatencyTestResult{{Node: "n1", Measured: &v1alpha1.LatencyMeasurement{
		CompletedTime: metav1.NewTime(now()), Network: &v1alpha1.NetworkMeasurement{Comparison: &v1alpha1.ComparisonMeasurement{
			Base: v1alpha1.LatencySideHost, Sides: []v1alpha1.SideMeasurement{
				{Side: v1alpha1.LatencySideContainer, Sizes: sizes, Ratios: []v1alpha1.LatencyRatio{
					{Bytes: 64, Percentile: v1alpha1.P50, PartsPerThousand: 1020, LowPartsPerThousand: 990, HighPartsPerThousand: 1040},
				}},
				{Side: v1alpha1.LatencySideHost, Sizes: sizes},
			},
		}},
	}}}
	return test
}

func TestRatios(t *testing.T) {
	collector := newCollector(t, true, interceptor.Funcs{}, exampleComparison())
	want := `
lowlatency_operator_info{version="v1.2.3"} 1
lowlatency_test_completed_timestamp_seconds{node="n1",test="pods",test_namespace="tests"} 1.7952624e+09
lowlatency_test_latency_ratio{bound="High",bytes="64",node="n1",percentile="P50",side="Container",test="pods",test_namespace="tests"} 1.04
lowlatency_test_latency_ratio{bound="Low",bytes="64",node="n1",percentile="P50",side="Container",test="pods",test_namespace="tests"} 0.99
lowlatency_test_latency_ratio{bound="Ratio",bytes="64",node="n1",percentile="P50",side="Container",test="pods",test_namespace="tests"} 1.02
lowlatency_test_longest_latency_seconds{bytes="64",node="n1",rate="",side="Container",test="pods",test_namespace="tests"} 2e-05
lowlatency_test_longest_latency_seconds{bytes="64",node="n1",rate="",side="Host",test="pods",test_namespace="tests"} 2e-05
lowlatency_test_lost_ratio{bytes="64",node="n1",rate="",side="Container",test="pods",test_namespace="tests"} 0
lowlatency_test_lost_ratio{bytes="64",node="n1",rate="",side="Host",test="pods",test_namespace="tests"} 0
`
	expectSamples(t, collector, want)
}

// expectSamples wants a collector to tell these samples and no others.
func expectSamples(t *testing.T, collector *Collector, samples string) {
	t.Helper()
	if err := testutil.CollectAndCompare(collector, strings.NewReader(withHeaders(samples))); err != nil {
		t.Error(err)
	}
}

// withHeaders puts the comments of a scrape before the samples of each metric.
func withHeaders(samples string) string {
	var text strings.Builder
	for _, d := range Descriptions() {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s gauge\n", d.Name, d.Help, d.Name)
		for line := range strings.Lines(samples) {
			if strings.HasPrefix(line, d.Name+"{") {
				text.WriteString(line)
			}
		}
	}
	return text.String()
}

// TestSeriesOfTestsAreBounded: whoever makes many tests does not fill the memory of Prometheus.
func TestSeriesOfTestsAreBounded(t *testing.T) {
	objects := make([]client.Object, 0, 20)
	for i := range 20 {
		test := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: fmt.Sprintf("t%d", i)}}
		for j := range v1alpha1.MaxTestedNodes {
			test.Status.Results = append(test.Status.Results, v1alpha1.LatencyTestResult{Node: fmt.Sprintf("n%d", j), Measured: &v1alpha1.LatencyMeasurement{}})
		}
		objects = append(objects, test)
	}
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	profile.Spec.Verification.Qualification = &v1alpha1.Qualification{Tests: []v1alpha1.LatencyTestReference{{Namespace: "tests", Name: "t9"}}}
	collector := newCollector(t, true, interceptor.Funcs{}, append(objects, profile)...)
	if count := testutil.CollectAndCount(collector, testMaximum); count != maximumTestedNodes {
		t.Errorf("%d nodes are told", count)
	}
	// By its name, t9 comes last.
	told, err := testutil.CollectAndFormat(collector, expfmt.TypeTextPlain, testMaximum)
	if err != nil {
		t.Fatal(err)
	}
	if count := strings.Count(string(told), `test="t9"`); count != v1alpha1.MaxTestedNodes {
		t.Errorf("%d nodes are told of the test that a profile asks for, want all %d", count, v1alpha1.MaxTestedNodes)
	}
}

func TestOnlyTheLeaderTells(t *testing.T) {
	if count := testutil.CollectAndCount(newCollector(t, false, interceptor.Funcs{}, exampleObjects()...)); count != 0 {
		t.Errorf("a replica that is not the leader tells %d samples, want none", count)
	}
}

func TestOneUnreadableKindDoesNotHideTheOthers(t *testing.T) {
	unreadable := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, isNode := list.(*v1alpha1.LowLatencyNodeList); isNode {
			return errors.New("no cache")
		}
		return c.List(ctx, list, options...)
	}}
	collector := newCollector(t, true, unreadable, exampleObjects()...)
	for name, want := range map[string]int{operatorInfo: 1, profileNodes: 6, planAge: 1, nodeChecks: 0} {
		if count := testutil.CollectAndCount(collector, name); count != want {
			t.Errorf("%s has %d samples, want %d", name, count, want)
		}
	}
}

func TestNamesAndHelpFollowTheConventions(t *testing.T) {
	problems, err := testutil.CollectAndLint(newCollector(t, true, interceptor.Funcs{}, exampleObjects()...))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
}

// TestLabelsAreNotThoseOfTargets: where a metric has a label that Prometheus gives to the target, as by a ServiceMonitor, it renames
// that of the metric, and alerts and dashboard find the operator's own namespace in its place.
func TestLabelsAreNotThoseOfTargets(t *testing.T) {
	for _, d := range Descriptions() {
		for _, label := range []string{"container", "endpoint", "exported_namespace", "instance", "job", "namespace", "pod", "prometheus", "service"} {
			if slices.Contains(d.Labels, label) {
				t.Errorf("%s has the label %s", d.Name, label)
			}
		}
	}
}

func TestRegister(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(newCollector(t, true, interceptor.Funcs{}, append(exampleObjects(), exampleSearch(), exampleComparison())...)); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if len(families) != len(Descriptions()) {
		t.Errorf("%d metrics are told of %d that are described", len(families), len(Descriptions()))
	}
}

func TestDocumentation(t *testing.T) {
	golden.Assert(t, documentation(t), filepath.Join("..", "..", "..", "docs", "metrics.md"))
}

// documentation is docs/metrics.md.
func documentation(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString(`# Metrics

The manager serves these metrics, all gauges, in addition to those of controller-runtime and Go. They are computed from
the state of the objects at the time of the scrape; of several replicas, only the leader reports them. Controller-runtime
counts failures of reconciling: ` + "`controller_runtime_reconcile_errors_total`" + `, with the controllers
` + "`lowlatencynodeprofile`, `lowlatencynode`, `bypassnicpool` and `latencytest`" + `.

This file is written by ` + "`go test ./internal/metrics -update`" + `.

| Metric | Labels | Meaning |
|---|---|---|
`)
	for _, d := range Descriptions() {
		fmt.Fprintf(&text, "| `%s` | `%s` | %s |\n", d.Name, strings.Join(d.Labels, "`, `"), d.Help)
	}
	text.WriteString(`
## Alerts

` + "`config/prometheus`" + ` has these rules for the Prometheus operator. [alerts.md](alerts.md) says what to do about each.

| Alert | Fires after | When |
|---|---|---|
`)
	for _, alert := range readAlerts(t) {
		fmt.Fprintf(&text, "| [`%s`](alerts.md#%s) | %s | `%s` |\n", alert.Alert, strings.ToLower(alert.Alert), alert.For, strings.ReplaceAll(alert.Expr, "|", `\|`))
	}
	text.WriteString(`
## Dashboard

` + "`config/dashboard/lowlatency.json`" + ` shows the fleet, the checks that fail, what disturbs isolated CPUs, what [LatencyTests](latency-tests.md)
measured (of the 20 nodes with the longest interruption or latency, or the lowest rate that a load search found, and how they stand to the
run before), NUMA alignment, and NICs with their versions and hugepages.

- On OpenShift, ` + "`kubectl apply -k config/dashboard`" + ` puts it into the console, below Observe, Dashboards; the chart does so with
  ` + "`dashboard=Console`" + `.
- Grafana with the sidecar of its Helm chart, such as that of kube-prometheus-stack, takes it from the ConfigMap of
  ` + "`kubectl apply -k config/dashboard-grafana`" + `, or of the chart with ` + "`dashboard=Grafana`" + `; elsewhere, import the file. It is in the schema
  that the console reads, whose panels Grafana converts when it loads them. It has not
  been looked at in a running Grafana yet; its queries are compared with the metrics above by a test, and ` + "`make dashboard`" + ` lets the engine of
  Prometheus answer each of them from what the operator of the demo exposes; only the panel of containers with NICs has nothing to show
  there, as no pod of the demo takes a NIC.

![The dashboard, at the moment when an interrupt sits on an isolated CPU of one of eight nodes](images/dashboard.png)

` + "`make dashboard-picture`" + ` drew this from that file: a Prometheus with the shipped rules scraped the operator of the demo, and the components of
[Perses](https://perses.dev), not Grafana, drew the panels (` + "`hack/dashboard`" + `). What LatencyTests measured in it is invented by the demo's
simulated platform.
`)
	return text.String()
}

// TestConditionsAreToldAlike: what is asked of one kind's conditions can be asked of another's by the name of the kind.
func TestConditionsAreToldAlike(t *testing.T) {
	found := map[string][]string{}
	for _, d := range Descriptions() {
		if strings.Contains(d.Name, "condition") {
			found[d.Name] = d.Labels
		}
	}
	want := map[string][]string{
		"lowlatency_profile_condition": {"profile", "type", "status", "reason"},
		"lowlatency_node_condition":    {"node", "profile", "type", "status", "reason"},
		"lowlatency_pool_condition":    {"pool", "type", "status", "reason"},
		"lowlatency_test_condition":    {"test_namespace", "test", "type", "status", "reason"},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("metrics of conditions and their labels (-want +got):\n%s", diff)
	}
}
