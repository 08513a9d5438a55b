// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build promtool

package alerts

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// rule is a rule of a PrometheusRule.
type rule struct {
	Alert       string            `json:"alert"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// group is a group of rules.
type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// series is a time series as promtool takes it: "1x30" is thirty-one times 1, a value a minute.
type series struct {
	Series string `json:"series"`
	Values string `json:"values"`
}

// fires is an alert that must fire.
type fires struct {
	labels  map[string]string
	value   string
	summary string
}

// scenario is what Prometheus sees, and what it must say of it.
type scenario struct {
	alert  string
	series []series
	// at is when the alert must fire, and quiet when it must not yet or no longer.
	at, quiet string
	want      []fires
}

// always is a series that has one value for three hours.
func always(name, value string) series { return series{name, value + "x180"} }

// scenarios has at least one for each alert, with series beside it that must not raise it.
func scenarios() []scenario {
	return slices.Concat(operatorScenarios(), poolScenarios(), nodeScenarios())
}

func operatorScenarios() []scenario {
	return []scenario{
		// The operator goes away after an hour; what it told last counts for five minutes more.
		{alert: "LowLatencyOperatorAbsent", quiet: "60m", at: "80m",
			series: []series{{`lowlatency_operator_info{version="v1.2.3"}`, "1x60 _x120"}},
			want:   []fires{{labels(), "1", "Prometheus sees no Low Latency Node Operator that leads."}}},
		// A new version leads after an hour: for less than ten minutes nobody does.
		{alert: "LowLatencyOperatorAbsent", quiet: "80m", at: "172m", series: []series{
			{`lowlatency_operator_info{version="v1.2.3"}`, "1x60 _x120"}, {`lowlatency_operator_info{version="v1.2.4"}`, "_x70 1x85 _x25"},
		}, want: []fires{{labels(), "1", "Prometheus sees no Low Latency Node Operator that leads."}}},
		{alert: "LowLatencyProfileDegraded", quiet: "9m", at: "11m", series: []series{
			always(`lowlatency_profile_condition{profile="trading",type="Degraded",status="True",reason="EnactmentFailed"}`, "1"),
			always(`lowlatency_profile_condition{profile="trading",type="Stalled",status="True",reason="PlanImpossible"}`, "1"),
			always(`lowlatency_profile_condition{profile="other",type="Degraded",status="False",reason="AsExpected"}`, "1"),
		}, want: []fires{{labels("profile", "trading", "type", "Degraded", "status", "True", "reason", "EnactmentFailed"), "1",
			"LowLatencyNodeProfile trading is degraded by EnactmentFailed."}}},
	}
}

func poolScenarios() []scenario {
	pool := func(more ...string) map[string]string { return labels(append(more, "pool", "x2")...) }
	return []scenario{
		{alert: "LowLatencyPoolDegraded", quiet: "4m", at: "6m", series: []series{
			always(`lowlatency_pool_condition{pool="x2",type="Degraded",status="True",reason="NICsUnhealthy"}`, "1"),
			always(`lowlatency_pool_condition{pool="dpdk",type="Degraded",status="False",reason="NICsHealthy"}`, "1"),
			always(`lowlatency_pool_condition{pool="dpdk",type="Ready",status="True",reason="NICsHealthy"}`, "1"),
		}, want: []fires{{pool("type", "Degraded", "status", "True", "reason", "NICsUnhealthy"), "1",
			"BypassNICPool x2 is degraded by NICsUnhealthy."}}},
		{alert: "LowLatencyPoolNICUnhealthy", quiet: "4m", at: "6m", series: []series{
			always(`lowlatency_pool_nics{pool="x2",health="Unhealthy"}`, "2"),
			always(`lowlatency_pool_nics{pool="x2",health="Unknown"}`, "0"),
			always(`lowlatency_pool_nics{pool="x2",health="Healthy"}`, "6"),
			always(`lowlatency_pool_nics{pool="x2",health="Ineligible"}`, "1"),
		}, want: []fires{{pool("health", "Unhealthy"), "2", "2 NICs of BypassNICPool x2 are not handed out, because they are Unhealthy."}}},
		{alert: "LowLatencyPoolVersionMismatch", quiet: "4m", at: "6m", series: []series{
			always(`lowlatency_pool_version_nics{pool="x2",health="Unhealthy",versions="Different",module="9.2.0",user="9.1.0"}`, "2"),
			always(`lowlatency_pool_version_nics{pool="x2",health="Unhealthy",versions="Equal",module="9.1.0",user="9.1.0"}`, "1"),
		}, want: []fires{{pool("health", "Unhealthy", "versions", "Different", "module", "9.2.0", "user", "9.1.0"), "2",
			"2 unhealthy NICs of BypassNICPool x2 have module 9.2.0 and user files 9.1.0."}}},
		{alert: "LowLatencyPoolNotReporting", quiet: "14m", at: "16m", series: []series{
			always(`lowlatency_pool_nodes{pool="x2",state="matched"}`, "8"), always(`lowlatency_pool_nodes{pool="x2",state="reporting"}`, "7"),
			always(`lowlatency_pool_nodes{pool="dpdk",state="matched"}`, "2"), always(`lowlatency_pool_nodes{pool="dpdk",state="reporting"}`, "2"),
		}, want: []fires{{pool(), "7", "The agents of only 7 nodes have reported the NICs of BypassNICPool x2."}}},
		{alert: "LowLatencyPoolContainersSplit", quiet: "4m", at: "6m", series: []series{
			always(`lowlatency_pool_containers{pool="x2",alignment="Split"}`, "1"), always(`lowlatency_pool_containers{pool="x2",alignment="Aligned"}`, "5"),
		}, want: []fires{{pool("alignment", "Split"), "1", "1 containers with NICs of BypassNICPool x2 are split over NUMA nodes."}}},
		{alert: "LowLatencyHugepagesExhausted", quiet: "14m", at: "16m", series: []series{
			always(`lowlatency_pool_free_nics{pool="x2",hugepages="Exhausted"}`, "3"), always(`lowlatency_pool_free_nics{pool="x2",hugepages="Left"}`, "4"),
		}, want: []fires{{pool("hugepages", "Exhausted"), "3", "3 free NICs of BypassNICPool x2 have no hugepage left on their NUMA node."}}},
	}
}

func nodeScenarios() []scenario {
	profile := func(more ...string) map[string]string { return labels(append(more, "profile", "trading")...) }
	failing := func(check, outcome, reboot, count string) series {
		return always(`lowlatency_findings_nodes{profile="trading",check="`+check+`",severity="High",outcome="`+outcome+`",reboot="`+reboot+`"}`, count)
	}
	failed := func(check string, more ...string) map[string]string {
		return profile(append(more, "check", check, "severity", "High", "outcome", "Failed")...)
	}
	return []scenario{
		{alert: "LowLatencyPCIeLinkTrainedDown", quiet: "4m", at: "6m",
			series: []series{failing("nic.pcie-link", "Failed", "None", "1"), failing("nic.pcie-link", "Failed", "Pending", "2"), failing("nic.pcie-link", "Unknown", "None", "4")},
			want:   []fires{{failed("nic.pcie-link"), "3", "On 3 nodes of profile trading the PCIe link of a bypass NIC is slower than it could be."}}},
		{alert: "LowLatencyHugepagesMissing", quiet: "4m", at: "6m",
			series: []series{
				failing("memory.hugepages-numa", "Failed", "None", "2"), failing("memory.transparent-hugepages", "Failed", "None", "2"),
				// Before their reboot into the plan, nodes have no hugepages of it.
				failing("memory.hugepages-numa", "Failed", "Pending", "20"),
			},
			want: []fires{{failed("memory.hugepages-numa", "reboot", "None"), "2", "On 2 nodes of profile trading a NUMA node lacks hugepages of the plan."}}},
		{alert: "LowLatencyVectorsOnIsolatedCPUs", quiet: "4m", at: "6m",
			series: []series{
				failing("irq.effective-affinity", "Failed", "None", "1"), failing("nic.interrupts", "Waived", "None", "1"), failing("irq.delivered", "Failed", "Pending", "20"),
			},
			want: []fires{{failed("irq.effective-affinity", "reboot", "None"), "1",
				"On 1 nodes of profile trading interrupts reach isolated CPUs (irq.effective-affinity)."}}},
		{alert: "LowLatencyNodeNotProven", quiet: "14m", at: "16m", series: []series{
			always(`lowlatency_node_condition{node="a",profile="trading",type="DeJittered",status="False",reason="ChecksFailed"}`, "1"),
			always(`lowlatency_node_condition{node="b",profile="trading",type="DeJittered",status="Unknown",reason="HeartbeatStale"}`, "1"),
			// A node that waits for its reboot into the plan raises nothing; one on which the guard has taken the plan back does.
			always(`lowlatency_node_condition{node="c",profile="trading",type="DeJittered",status="False",reason="ChecksFailed"}`, "1"),
			always(`lowlatency_node_condition{node="c",profile="trading",type="Applied",status="False",reason="RebootPending"}`, "1"),
			always(`lowlatency_node_condition{node="e",profile="trading",type="NUMAAligned",status="False",reason="ChecksFailed"}`, "1"),
			always(`lowlatency_node_condition{node="e",profile="trading",type="Applied",status="False",reason="TakenBack"}`, "1"),
			// A node that is proven again within the fifteen minutes raises nothing.
			{`lowlatency_node_condition{node="d",profile="trading",type="NUMAAligned",status="False",reason="ChecksFailed"}`, "1x10 _x170"},
		}, want: []fires{{labels("node", "a", "profile", "trading", "type", "DeJittered", "status", "False", "reason", "ChecksFailed"), "1",
			"DeJittered of node a is False."},
			{labels("node", "e", "profile", "trading", "type", "NUMAAligned", "status", "False", "reason", "ChecksFailed"), "1",
				"NUMAAligned of node e is False."}}},
		{alert: "LowLatencyHeartbeatStale", quiet: "9m", at: "11m", series: []series{
			always(`lowlatency_agent_heartbeat{node="a",profile="trading",state="Stale"}`, "1"),
			always(`lowlatency_agent_heartbeat{node="b",profile="trading",state="Fresh"}`, "1"),
		}, want: []fires{{labels("node", "a", "profile", "trading", "state", "Stale"), "1",
			"Nothing is known of node a any more: the heartbeat of its agent is stale."}}},
		{alert: "LowLatencyNodeClosed", quiet: "29m", at: "31m", series: []series{
			// It fails for ten minutes, settles for ten, and fails again: closed since minute 0.
			{`lowlatency_node_gate{node="a",state="Closed",reason="ChecksFailed"}`, "1x9 stale _x9 1x160"},
			{`lowlatency_node_gate{node="a",state="Closed",reason="Settling"}`, "_x10 1x9 stale _x160"},
			always(`lowlatency_node_gate{node="b",state="Open",reason="Verified"}`, "1"),
			// Open for a minute: the time begins anew.
			{`lowlatency_node_gate{node="c",state="Closed",reason="ChecksFailed"}`, "1x9 stale 1x170"},
			{`lowlatency_node_gate{node="c",state="Open",reason="Verified"}`, "_x10 1 stale _x170"},
		}, want: []fires{{labels("node", "a", "state", "Closed"), "1", "Node a has not been fit for low latency for 30 minutes."}}},
		{alert: "LowLatencyDrift", quiet: "60m", at: "64m", series: []series{
			{`lowlatency_drift{profile="trading",check="irq.affinity",state="drifted"}`, "4x62 6x118"},
			{`lowlatency_drift{profile="trading",check="irq.affinity",state="repaired"}`, "4x62 6x118"},
			always(`lowlatency_drift{profile="trading",check="power.governor",state="drifted"}`, "9"),
			{`lowlatency_drift{profile="trading",check="cpu.tick",state="drifted"}`, "0x62 1x118"},
		}, want: []fires{
			{profile("check", "irq.affinity", "state", "drifted"), "2", "irq.affinity drifted 2 times in an hour on nodes of profile trading."},
			{profile("check", "cpu.tick", "state", "drifted"), "1", "cpu.tick drifted 1 times in an hour on nodes of profile trading."},
		}},
		{alert: "LowLatencyDriftNotRepaired", quiet: "14m", at: "16m", series: []series{
			always(`lowlatency_drift{profile="trading",check="irq.affinity",state="unrepaired"}`, "1"),
			always(`lowlatency_drift{profile="trading",check="irq.affinity",state="repaired"}`, "3"),
			always(`lowlatency_drift{profile="trading",check="power.governor",state="unrepaired"}`, "0"),
		}, want: []fires{{profile("check", "irq.affinity", "state", "unrepaired"), "1",
			"1 files of irq.affinity on nodes of profile trading are not put back."}}},
		{alert: "LowLatencyTestFailed", quiet: "4m", at: "6m", series: []series{
			always(`lowlatency_test_nodes{test_namespace="tests",test="quiet",state="failed"}`, "2"),
			always(`lowlatency_test_nodes{test_namespace="tests",test="quiet",state="inconclusive"}`, "1"),
			always(`lowlatency_test_nodes{test_namespace="tests",test="other",state="failed"}`, "0"),
		}, want: []fires{{labels("test_namespace", "tests", "test", "quiet", "state", "failed"), "2", "2 nodes have failed LatencyTest tests/quiet."}}},
		{alert: "LowLatencyTestWorse", quiet: "0m", at: "2m", series: []series{
			always(`lowlatency_test_change{test_namespace="tests",test="quiet",node="a",trend="Worse",changed="kernel, plan"}`, "1"),
			always(`lowlatency_test_change{test_namespace="tests",test="quiet",node="b",trend="Better",changed="kernel"}`, "1"),
			always(`lowlatency_test_change{test_namespace="tests",test="quiet",node="c",trend="Unknown",changed="nothing"}`, "1"),
		}, want: []fires{{labels("test_namespace", "tests", "test", "quiet", "node", "a", "trend", "Worse", "changed", "kernel, plan"), "1",
			"Node a has become worse in LatencyTest tests/quiet; changed since the run before: kernel, plan."}}},
	}
}

func labels(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// readGroups are the groups of rules that are deployed, and the text of the file that promtool takes.
func readGroups(t *testing.T) (groups []group, file []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "prometheus", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var object struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	if file, err = yaml.Marshal(object.Spec); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Groups []group `json:"groups"`
	}
	if err := yaml.Unmarshal(file, &read); err != nil {
		t.Fatal(err)
	}
	return read.Groups, file
}

// TestAlerts runs promtool: the rules are right in themselves, and each fires when it must, with the text that a person reads,
// and not before.
func TestAlerts(t *testing.T) {
	groups, rulesFile := readGroups(t)
	rules := map[string]rule{}
	for _, g := range groups {
		for _, r := range g.Rules {
			rules[r.Alert] = r
		}
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yaml"), rulesFile)
	promtool(t, dir, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")

	var tests []any
	covered := map[string]bool{}
	for _, s := range scenarios() {
		r, there := rules[s.alert]
		if !there {
			t.Errorf("there is no alert %s", s.alert)
			continue
		}
		covered[s.alert] = true
		tests = append(tests, s.test(t, r))
	}
	for name := range rules {
		if !covered[name] {
			t.Errorf("no scenario raises %s", name)
		}
	}
	file, err := yaml.Marshal(map[string]any{"rule_files": []string{"rules.yaml"}, "evaluation_interval": "1m", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tests.yaml"), file)
	promtool(t, dir, "test", "rules", "tests.yaml")
}

// test is the scenario as promtool takes it.
func (s scenario) test(t *testing.T, r rule) any {
	t.Helper()
	expected := make([]any, 0, len(s.want))
	for _, alert := range s.want {
		all := maps.Clone(alert.labels)
		maps.Copy(all, r.Labels)
		annotations := map[string]string{}
		for name, text := range r.Annotations {
			annotations[name] = expand(text, alert)
		}
		if annotations["summary"] != alert.summary || strings.Contains(annotations["summary"]+annotations["description"], "{{") {
			t.Errorf("%s says %q, wanted %q", s.alert, annotations["summary"], alert.summary)
		}
		expected = append(expected, map[string]any{"exp_labels": all, "exp_annotations": annotations})
	}
	return map[string]any{
		"name": s.alert, "interval": "1m", "input_series": s.series,
		"alert_rule_test": []any{
			map[string]any{"eval_time": s.quiet, "alertname": s.alert},
			map[string]any{"eval_time": s.at, "alertname": s.alert, "exp_alerts": expected},
		},
	}
}

// expand puts labels and value into a text.
func expand(text string, alert fires) string {
	text = strings.NewReplacer("{{ $value }}", alert.value, `{{ printf "%.0f" $value }}`, alert.value).Replace(text)
	return regexp.MustCompile(`{{ \$labels\.(\w+) }}`).ReplaceAllStringFunc(text, func(use string) string {
		return alert.labels[strings.TrimSuffix(strings.TrimPrefix(use, "{{ $labels."), " }}")]
	})
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// promtool runs the program that make test-alerts provides.
func promtool(t *testing.T, dir string, arguments ...string) {
	t.Helper()
	program := os.Getenv("PROMTOOL")
	if program == "" {
		t.Fatal("PROMTOOL does not name promtool: run make test-alerts")
	}
	command := exec.Command(program, arguments...)
	command.Dir = dir
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	t.Log(strings.TrimSpace(fmt.Sprintf("promtool %s: %s", strings.Join(arguments, " "), out)))
}
