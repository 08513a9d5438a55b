// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// sample is one value of a metric with its labels.
type sample struct {
	labels map[string]string
	value  float64
}

// world is a cluster that the alerts are asked about.
type world struct {
	pool   v1alpha1.BypassNICPool
	report v1alpha1.LowLatencyNode
	gate   corev1.ConditionStatus
	test   v1alpha1.LatencyTest
	// renewed is how long ago the agent renewed its Lease.
	renewed time.Duration
}

// healthyWorld has a pool with a NIC on a verified node.
func healthyWorld() *world {
	w := &world{gate: corev1.ConditionTrue}
	w.pool.Name, w.report.Name, w.report.Spec.Profile = "x2", "n1", "trading"
	w.pool.Status.Nodes = &v1alpha1.PoolNodeCounts{Matched: 1, Reporting: 1}
	w.pool.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAsExpected}}
	w.report.Status.BypassNICs = []v1alpha1.NodeBypassNIC{{
		Pool: "x2", PCIAddress: "0000:af:00.0", Health: v1alpha1.NICHealthy, ModuleVersion: "9.1.1", UserVersion: "9.1.1", Units: 2,
		Hugepages: v1alpha1.HugepagesLeft, Users: []v1alpha1.NICUser{{Alignment: v1alpha1.AlignmentAligned}},
	}}
	w.report.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionNUMAAligned, Status: metav1.ConditionTrue},
	}
	w.test.Namespace, w.test.Name = "tests", "quiet"
	w.test.Status.Nodes = &v1alpha1.LatencyTestCounts{Selected: 1, Passed: 1}
	w.test.Status.Results = []v1alpha1.LatencyTestResult{{
		Node: "n1", Measured: &v1alpha1.LatencyMeasurement{MaximumNanoseconds: 7000, RepetitionMaximumsNanoseconds: []int64{5000, 6000, 7000}},
		Previous: &v1alpha1.LatencyMeasurement{MaximumNanoseconds: 6500, RepetitionMaximumsNanoseconds: []int64{5500, 6500, 6000}},
	}}
	w.report.Status.Drift = []v1alpha1.CheckDrift{{Check: "irq.delivered", Drifted: 2, Repaired: 2}}
	return w
}

// samples are what a scrape of the world gives, by metric.
func (w *world) samples(t *testing.T) map[string][]sample {
	t.Helper()
	objects := []client.Object{&w.pool, &w.report, &w.test, leaseOf("n1", w.renewed), gateNode("n1", w.gate, "Reason")}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(newCollector(t, true, interceptor.Funcs{}, objects...)); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]sample{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			all[family.GetName()] = append(all[family.GetName()], sample{labels, metric.GetGauge().GetValue()})
		}
	}
	return all
}

// fires evaluates the few forms of expressions that the alerts use: a selector, or the change of one within an hour,
// compared with a number or with another selector that differs in the label state.
func fires(t *testing.T, expression string, hourAgo, now map[string][]sample) bool {
	t.Helper()
	const selector = `(\w+)\{([^}]*)\}`
	changed := regexp.MustCompile(`^delta\(` + selector + `\[1h\]\) > (\d+)$`)
	number := regexp.MustCompile(`^` + selector + ` (>|==) (\d+)$`)
	pair := regexp.MustCompile(`^` + selector + ` < ignoring\(state\) ` + selector + `$`)
	switch {
	case changed.MatchString(expression):
		m := changed.FindStringSubmatch(expression)
		return exceeds(selected(t, now, m[1], m[2]), selected(t, hourAgo, m[1], m[2]), parse(t, m[3]))
	case number.MatchString(expression):
		m := number.FindStringSubmatch(expression)
		limit := parse(t, m[4])
		return slices.ContainsFunc(selected(t, now, m[1], m[2]), func(s sample) bool {
			return m[3] == ">" && s.value > limit || m[3] == "==" && s.value == limit
		})
	case pair.MatchString(expression):
		m := pair.FindStringSubmatch(expression)
		return exceeds(selected(t, now, m[3], m[4]), selected(t, now, m[1], m[2]), 0)
	}
	t.Fatalf("%q is of a form that this test does not know", expression)
	return false
}

// exceeds reports whether a sample is greater than the one of the same labels but the state by more than a limit.
func exceeds(more, less []sample, limit float64) bool {
	return slices.ContainsFunc(more, func(a sample) bool {
		return slices.ContainsFunc(less, func(b sample) bool {
			one, other := maps.Clone(a.labels), maps.Clone(b.labels)
			delete(one, "state")
			delete(other, "state")
			return maps.Equal(one, other) && a.value-b.value > limit
		})
	})
}

func selected(t *testing.T, all map[string][]sample, metric, matchers string) []sample {
	t.Helper()
	return slices.DeleteFunc(slices.Clone(all[metric]), func(s sample) bool {
		for _, m := range regexp.MustCompile(`(\w+)(=~?)"([^"]*)"`).FindAllStringSubmatch(matchers, -1) {
			pattern := m[3]
			if m[2] == "=" {
				pattern = regexp.QuoteMeta(pattern)
			}
			if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(s.labels[m[1]]) {
				return true
			}
		}
		return false
	})
}

func parse(t *testing.T, text string) float64 {
	t.Helper()
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func failed(check v1alpha1.CheckID) func(*world) {
	return func(w *world) {
		w.report.Status.Findings = []v1alpha1.Finding{{Check: check, Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed}}
	}
}

// TestAlertsFire breaks a healthy world in one way for each alert, and expects that alert, and those that it entails.
func TestAlertsFire(t *testing.T) {
	nic := func(w *world) *v1alpha1.NodeBypassNIC { return &w.report.Status.BypassNICs[0] }
	cases := map[string]struct {
		change func(*world)
		want   []string
	}{
		"all is well":          {func(*world) {}, nil},
		"the pool is degraded": {func(w *world) { w.pool.Status.Conditions[0].Status = metav1.ConditionTrue }, []string{"LowLatencyPoolDegraded"}},
		"a NIC is unhealthy":   {func(w *world) { nic(w).Health = v1alpha1.NICUnhealthy }, []string{"LowLatencyPoolNICUnhealthy"}},
		"a NIC is unknown":     {func(w *world) { nic(w).Health = v1alpha1.NICUnknown }, []string{"LowLatencyPoolNICUnhealthy"}},
		"user files of another build": {func(w *world) { nic(w).Health, nic(w).UserVersion = v1alpha1.NICUnhealthy, "9.0.2" },
			[]string{"LowLatencyPoolNICUnhealthy", "LowLatencyPoolVersionMismatch"}},
		"an agent reports no NICs": {func(w *world) { w.pool.Status.Nodes.Reporting = 0 }, []string{"LowLatencyPoolNotReporting"}},
		"a heartbeat is stale": {func(w *world) { w.renewed = time.Hour },
			[]string{"LowLatencyPoolNICUnhealthy", "LowLatencyHeartbeatStale"}},
		"a heartbeat is stale, and nothing was proven before": {func(w *world) {
			w.renewed = time.Hour
			w.report.Status.Conditions[0].Status = metav1.ConditionFalse
			w.report.Status.BypassNICs = nil
		}, []string{"LowLatencyNodeNotProven", "LowLatencyHeartbeatStale"}},
		"a container is split":        {func(w *world) { nic(w).Users[0].Alignment = v1alpha1.AlignmentSplit }, []string{"LowLatencyPoolContainersSplit"}},
		"no page is left":             {func(w *world) { nic(w).Hugepages = v1alpha1.HugepagesExhausted }, []string{"LowLatencyHugepagesExhausted"}},
		"no page is left, and no NIC": {func(w *world) { nic(w).Hugepages, nic(w).Units = v1alpha1.HugepagesExhausted, 1 }, nil},
		"no page is left for a sick NIC": {func(w *world) { nic(w).Hugepages, nic(w).Health = v1alpha1.HugepagesExhausted, v1alpha1.NICUnhealthy },
			[]string{"LowLatencyPoolNICUnhealthy"}},
		"half of the lanes":               {failed("nic.pcie-link"), []string{"LowLatencyPCIeLinkTrainedDown"}},
		"too few pages":                   {failed("memory.hugepages-numa"), []string{"LowLatencyHugepagesMissing"}},
		"an affinity of an isolated CPU":  {failed("irq.effective-affinity"), []string{"LowLatencyVectorsOnIsolatedCPUs"}},
		"an interrupt on an isolated CPU": {failed("irq.delivered"), []string{"LowLatencyVectorsOnIsolatedCPUs"}},
		"an interrupt of a NIC elsewhere": {failed("nic.interrupts"), []string{"LowLatencyVectorsOnIsolatedCPUs"}},
		"another check":                   {failed("irq.managed"), nil},
		"not de-jittered":                 {func(w *world) { w.report.Status.Conditions[0].Status = metav1.ConditionFalse }, []string{"LowLatencyNodeNotProven"}},
		"not aligned":                     {func(w *world) { w.report.Status.Conditions[1].Status = metav1.ConditionFalse }, []string{"LowLatencyNodeNotProven"}},
		"the gate is closed":              {func(w *world) { w.gate = corev1.ConditionFalse }, []string{"LowLatencyNodeClosed"}},
		"the gate does not know":          {func(w *world) { w.gate = corev1.ConditionUnknown }, []string{"LowLatencyNodeClosed"}},
		"drift":                           {func(w *world) { w.report.Status.Drift[0].Drifted++ }, []string{"LowLatencyDrift"}},
		"a repair":                        {func(w *world) { w.report.Status.Drift[0].Repaired++ }, nil},
		"a node fails a test":             {func(w *world) { w.test.Status.Nodes.Failed = 1 }, []string{"LowLatencyTestFailed"}},
		"a node becomes worse":            {func(w *world) { w.test.Status.Results[0].Previous.RepetitionMaximumsNanoseconds = []int64{1, 2, 3} }, []string{"LowLatencyTestWorse"}},
		"a node becomes better": {func(w *world) {
			w.test.Status.Results[0].Previous.RepetitionMaximumsNanoseconds = []int64{8000, 9000, 9500}
		}, nil},
		"too few repetitions": {func(w *world) { w.test.Status.Results[0].Previous.RepetitionMaximumsNanoseconds = []int64{1} }, nil},
		"drift that stays":    {func(w *world) { w.report.Status.Drift[0].Unrepaired = []string{"/proc/irq/7"} }, []string{"LowLatencyDriftNotRepaired"}},
	}
	before := healthyWorld().samples(t)
	covered := map[string]bool{}
	for name, tc := range cases {
		w := healthyWorld()
		tc.change(w)
		now := w.samples(t)
		var firing []string
		for _, rule := range readAlerts(t) {
			if fires(t, rule.Expr, before, now) {
				firing = append(firing, rule.Alert)
				covered[rule.Alert] = true
			}
		}
		if diff := cmp.Diff(tc.want, firing); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, rule := range readAlerts(t) {
		if !covered[rule.Alert] {
			t.Errorf("no case makes %s fire", rule.Alert)
		}
	}
}
