// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package metrics

import (
	"fmt"
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
	profile v1alpha1.LowLatencyNodeProfile
	pool    v1alpha1.BypassNICPool
	report  v1alpha1.LowLatencyNode
	gate    corev1.ConditionStatus
	test    v1alpha1.LatencyTest
	// reason is that of the gate.
	reason string
	// led tells that an operator leads.
	led bool
	// renewed is how long ago the agent renewed its Lease.
	renewed time.Duration
}

// healthyWorld has a pool with a NIC on a verified node.
func healthyWorld() *world {
	w := &world{gate: corev1.ConditionTrue, reason: v1alpha1.ReasonVerified, led: true}
	w.profile.Name = "trading"
	w.profile.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonAsExpected}}
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
	objects := []client.Object{&w.profile, &w.pool, &w.report, &w.test, leaseOf("n1", w.renewed), gateNode("n1", w.gate, w.reason)}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(newCollector(t, w.led, interceptor.Funcs{}, objects...)); err != nil {
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

// moment is what Prometheus knows when it evaluates a rule.
type moment struct{ hourAgo, now map[string][]sample }

// vector evaluates the few forms of expressions that the alerts use: a selector; what changed of one within an hour; the sum or the greatest
// over a label; a comparison with a number, or with another selector that differs in the label state; and what is left of one without the
// nodes of another, or when there is nothing.
func (m moment) vector(t *testing.T, expression string) []sample {
	t.Helper()
	const selector = `(\w+)(?:\{([^}]*)\})?`
	for _, form := range []struct {
		pattern string
		value   func(m []string) []sample
	}{
		{`^(.*) unless on\((\w+)\) (.*)$`, func(p []string) []sample { return without(m.vector(t, p[1]), m.vector(t, p[3]), p[2]) }},
		{`^` + selector + ` < ignoring\((\w+)\) ` + selector + `$`, func(p []string) []sample {
			return changes(selected(t, m.now, p[1], p[2]), selected(t, m.now, p[4], p[5]), p[3], func(a, b float64) (float64, bool) { return a, a < b })
		}},
		{`^(.*) (>|==) (\d+)$`, func(p []string) []sample { return compared(m.vector(t, p[1]), p[2], parse(t, p[3])) }},
		{`^delta\(` + selector + `\[1h\]\)$`, func(p []string) []sample {
			return changes(selected(t, m.now, p[1], p[2]), selected(t, m.hourAgo, p[1], p[2]), "", func(a, b float64) (float64, bool) { return a - b, true })
		}},
		{`^(sum|max) without\((\w+)\) \(` + selector + `\)$`, func(p []string) []sample { return aggregated(selected(t, m.now, p[3], p[4]), p[1], p[2]) }},
		{`^absent\(` + selector + `\)$`, func(p []string) []sample {
			if len(selected(t, m.now, p[1], p[2])) > 0 {
				return nil
			}
			return []sample{{value: 1}}
		}},
		{`^` + selector + `$`, func(p []string) []sample { return selected(t, m.now, p[1], p[2]) }},
	} {
		if parts := regexp.MustCompile(form.pattern).FindStringSubmatch(expression); parts != nil {
			return form.value(parts)
		}
	}
	t.Fatalf("%q is of a form that this test does not know", expression)
	return nil
}

// without are the samples whose label has a value that none of the others has.
func without(samples, others []sample, label string) []sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
		return slices.ContainsFunc(others, func(o sample) bool { return o.labels[label] == s.labels[label] })
	})
}

func compared(samples []sample, operator string, limit float64) []sample {
	return slices.DeleteFunc(slices.Clone(samples), func(s sample) bool {
		return operator == ">" && s.value <= limit || operator == "==" && s.value != limit
	})
}

// changes pairs samples of the same labels but one, and gives what is made of each pair.
func changes(samples, others []sample, but string, difference func(a, b float64) (float64, bool)) []sample {
	byLabels := map[string]sample{}
	for _, b := range others {
		byLabels[fmt.Sprint(lessLabel(b, but))] = b
	}
	var all []sample
	for _, a := range samples {
		labels := lessLabel(a, but)
		if b, found := byLabels[fmt.Sprint(labels)]; found {
			if value, there := difference(a.value, b.value); there {
				all = append(all, sample{labels, value})
			}
		}
	}
	return all
}

// aggregated are the sums, or the greatest, of samples of the same labels but one.
func aggregated(samples []sample, operation, but string) []sample {
	var all []sample
	for _, s := range samples {
		labels := lessLabel(s, but)
		at := slices.IndexFunc(all, func(other sample) bool { return maps.Equal(other.labels, labels) })
		switch {
		case at < 0:
			all = append(all, sample{labels, s.value})
		case operation == "sum":
			all[at].value += s.value
		default:
			all[at].value = max(all[at].value, s.value)
		}
	}
	return all
}

func lessLabel(s sample, label string) map[string]string {
	labels := maps.Clone(s.labels)
	delete(labels, label)
	return labels
}

func selected(t *testing.T, all map[string][]sample, metric, matchers string) []sample {
	t.Helper()
	patterns := map[string]*regexp.Regexp{}
	for _, m := range regexp.MustCompile(`(\w+)(=~?)"([^"]*)"`).FindAllStringSubmatch(matchers, -1) {
		pattern := m[3]
		if m[2] == "=" {
			pattern = regexp.QuoteMeta(pattern)
		}
		patterns[m[1]] = regexp.MustCompile("^(?:" + pattern + ")$")
	}
	return slices.DeleteFunc(slices.Clone(all[metric]), func(s sample) bool {
		for label, pattern := range patterns {
			if !pattern.MatchString(s.labels[label]) {
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

// awaitReboot has the kernel of the node run without its plan, for a reason, as before the first reboot.
func (w *world) awaitReboot(reason string) {
	w.report.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: reason},
		{Type: v1alpha1.ConditionDeJittered, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed},
		{Type: v1alpha1.ConditionNUMAAligned, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChecksFailed},
	}
}

// brokenWorld is a healthy world that is changed in one way, and the alerts that this raises.
type brokenWorld struct {
	change func(*world)
	want   []string
}

func worlds() map[string]brokenWorld {
	nic := func(w *world) *v1alpha1.NodeBypassNIC { return &w.report.Status.BypassNICs[0] }
	return map[string]brokenWorld{
		"all is well":             {func(*world) {}, nil},
		"no operator leads":       {func(w *world) { w.led = false }, []string{"LowLatencyOperatorAbsent"}},
		"the profile is degraded": {func(w *world) { w.profile.Status.Conditions[0].Status = metav1.ConditionTrue }, []string{"LowLatencyProfileDegraded"}},
		"the pool is degraded":    {func(w *world) { w.pool.Status.Conditions[0].Status = metav1.ConditionTrue }, []string{"LowLatencyPoolDegraded"}},
		"a NIC is unhealthy":      {func(w *world) { nic(w).Health = v1alpha1.NICUnhealthy }, []string{"LowLatencyPoolNICUnhealthy"}},
		"a NIC is unknown":        {func(w *world) { nic(w).Health = v1alpha1.NICUnknown }, []string{"LowLatencyPoolNICUnhealthy"}},
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
		"interrupts before the reboot into the plan": {func(w *world) {
			failed("irq.effective-affinity")(w)
			w.awaitReboot(v1alpha1.ReasonRebootPending)
		}, nil},
		"a PCIe link before the reboot into the plan": {func(w *world) {
			failed("nic.pcie-link")(w)
			w.awaitReboot(v1alpha1.ReasonRebootPending)
		}, []string{"LowLatencyPCIeLinkTrainedDown"}},
		"a reboot that never comes": {func(w *world) {
			w.awaitReboot(v1alpha1.ReasonRebootPending)
			w.gate = corev1.ConditionFalse
		}, []string{"LowLatencyNodeClosed"}},
		"interrupts after the host has taken the plan back": {func(w *world) {
			failed("irq.delivered")(w)
			w.awaitReboot(v1alpha1.ReasonTakenBack)
		}, []string{"LowLatencyVectorsOnIsolatedCPUs", "LowLatencyNodeNotProven"}},
		"a node fails a test":  {func(w *world) { w.test.Status.Nodes.Failed = 1 }, []string{"LowLatencyTestFailed"}},
		"a node becomes worse": {func(w *world) { w.test.Status.Results[0].Previous.RepetitionMaximumsNanoseconds = []int64{1, 2, 3} }, []string{"LowLatencyTestWorse"}},
		"a node becomes better": {func(w *world) {
			w.test.Status.Results[0].Previous.RepetitionMaximumsNanoseconds = []int64{8000, 9000, 9500}
		}, nil},
		"a node was so before": {func(w *world) {
			w.test.Status.Results[0].Previous.RepetitionMaximumsNanoseconds = []int64{1, 2, 3}
			w.test.Status.Results[0].Earlier = []v1alpha1.LatencyRunSpread{{Least: 1, Most: 1_000_000}}
		}, nil},
		"too few repetitions": {func(w *world) { w.test.Status.Results[0].Previous.RepetitionMaximumsNanoseconds = []int64{1} }, nil},
		"the first drift of a check": {func(w *world) {
			w.report.Status.Drift = append(w.report.Status.Drift, v1alpha1.CheckDrift{Check: "cpu.tick", Drifted: 1})
		}, []string{"LowLatencyDrift"}},
		"drift that stays": {func(w *world) { w.report.Status.Drift[0].Unrepaired = []string{"/proc/irq/7"} }, []string{"LowLatencyDriftNotRepaired"}},
	}
}

// TestAlertsFire breaks a healthy world in one way for each alert, and expects that alert, and those that it entails.
func TestAlertsFire(t *testing.T) {
	before := healthyWorld().samples(t)
	covered := map[string]bool{}
	for name, tc := range worlds() {
		w := healthyWorld()
		tc.change(w)
		now := w.samples(t)
		var firing []string
		for _, rule := range readAlerts(t) {
			if len((moment{before, now}).vector(t, rule.Expr)) > 0 {
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

// TestAnotherReasonIsTheSameAlert: a node that settles and fails in turn has been closed all the time. Prometheus begins to wait anew when labels of
// what an expression gives become others.
func TestAnotherReasonIsTheSameAlert(t *testing.T) {
	rules := readAlerts(t)
	closed := rules[slices.IndexFunc(rules, func(rule alertRule) bool { return rule.Alert == "LowLatencyNodeClosed" })]
	reasons := []string{v1alpha1.ReasonChecksFailed, v1alpha1.ReasonSettling}
	found := make([]map[string]string, 0, len(reasons))
	for _, reason := range reasons {
		w := healthyWorld()
		w.gate, w.reason = corev1.ConditionFalse, reason
		for _, s := range (moment{now: w.samples(t)}).vector(t, closed.Expr) {
			found = append(found, s.labels)
		}
	}
	want := map[string]string{"node": "n1", "state": "Closed"}
	if diff := cmp.Diff([]map[string]string{want, want}, found); diff != "" {
		t.Errorf("labels of a closed node for one reason, then for another (-want +got):\n%s", diff)
	}
}
