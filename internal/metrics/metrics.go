// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package metrics exposes what the objects of the operator say as Prometheus metrics. They are computed from
// the cache when they are scraped, so that they cannot be stale and end with the objects they speak of.
// docs/metrics.md is made of Descriptions. How often reconciling fails is told by controller-runtime
// (controller_runtime_reconcile_errors_total).
package metrics

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// scrapeTimeout bounds how long a scrape waits for the cache.
const scrapeTimeout = 5 * time.Second

// Description describes one metric.
type Description struct {
	Name   string
	Labels []string
	Help   string
}

// Names of the metrics.
const (
	operatorInfo     = "lowlatency_operator_info"
	profileCondition = "lowlatency_profile_condition"
	profileNodes     = "lowlatency_profile_nodes"
	profileShapes    = "lowlatency_profile_shapes"
	nodeCondition    = "lowlatency_node_condition"
	nodeChecks       = "lowlatency_node_checks"
	findings         = "lowlatency_findings_nodes"
	planAge          = "lowlatency_plan_age_seconds"
	poolCondition    = "lowlatency_pool_condition"
	poolNodes        = "lowlatency_pool_nodes"
	poolNICs         = "lowlatency_pool_nics"
	poolUnits        = "lowlatency_pool_units"
	poolUsers        = "lowlatency_pool_containers"
	poolVersions     = "lowlatency_pool_version_nics"
	poolHugepages    = "lowlatency_pool_free_nics"
	nodeGate         = "lowlatency_node_gate"
	nodeChange       = "lowlatency_node_last_transition_timestamp_seconds"
	drift            = "lowlatency_drift"
	testCondition    = "lowlatency_test_condition"
	testNodes        = "lowlatency_test_nodes"
	testMaximum      = "lowlatency_test_longest_interruption_seconds"
	testStolen       = "lowlatency_test_stolen_ratio"
	testLatency      = "lowlatency_test_latency_seconds"
	testLongest      = "lowlatency_test_longest_latency_seconds"
	testLost         = "lowlatency_test_lost_ratio"
	testLate         = "lowlatency_test_late_ratio"
	testHighest      = "lowlatency_test_highest_rate"
	testRatio        = "lowlatency_test_latency_ratio"
	testCompleted    = "lowlatency_test_completed_timestamp_seconds"
	testChange       = "lowlatency_test_change"
	agentHeartbeat   = "lowlatency_agent_heartbeat"
	agentBeat        = "lowlatency_agent_heartbeat_timestamp_seconds"
)

// Descriptions describes all metrics, in the order of the documentation. Labels are bounded: by the number of
// profiles, of nodes, of checks in the catalogue, of plans in use, and of tests. None is one that Prometheus gives to what it scrapes, such as namespace: it would rename ours.
func Descriptions() []Description {
	return []Description{
		{operatorInfo, []string{"version"},
			"The version of the operator that leads, 1. It is there whatever else is: where it is missing, nobody tells the metrics below."},
		{profileCondition, []string{"profile", "type", "status", "reason"},
			"Conditions of each LowLatencyNodeProfile with their reasons: 1 for the status that a condition has; the other statuses are left out."},
		{profileNodes, []string{"profile", "state"},
			"Number of nodes of each LowLatencyNodeProfile that are matched, planned, applied, pending, deJittered and numaAligned."},
		{profileShapes, []string{"profile"},
			"Number of distinct plans of each LowLatencyNodeProfile."},
		{nodeCondition, []string{"node", "profile", "type", "status", "reason"},
			"Conditions of each LowLatencyNode with their reasons: 1 for the status that a condition has; the other statuses are left out. While the heartbeat of an agent is stale, what it had proven is Unknown."},
		{nodeChecks, []string{"node", "profile", "outcome"},
			"Number of checks on each node that are passed, failed, unknown and waived."},
		{agentHeartbeat, []string{"node", "profile", "state"},
			"Whether the agent of each LowLatencyNode shows that it still looks at the host: 1 for Fresh or Stale."},
		{agentBeat, []string{"node", "profile"},
			"When the agent of each LowLatencyNode last looked at the host, in seconds since 1970, as its Lease says."},
		{nodeGate, []string{"node", "state", "reason"},
			"Whether pods that need low latency may be sent to each node, by its condition LowLatencyReady: 1 for Open or Closed, with the reason."},
		{nodeChange, []string{"node", "profile"},
			"When Applied, DeJittered or NUMAAligned last changed on each node, in seconds since 1970."},
		{drift, []string{"profile", "check", "state"},
			"How often a check failed on nodes of each LowLatencyNodeProfile after it had passed for the same plan (drifted), how many files were put back (repaired), and how many are not put back now (unrepaired). Each check of the catalogue has drifted 0 times at first. Nodes that are removed no longer count."},
		{findings, []string{"profile", "check", "severity", "outcome", "reboot"},
			"Number of nodes of each LowLatencyNodeProfile on which a check has this outcome, other than passed. The reboot is Pending on nodes that have yet to boot as planned (condition Applied False for the reason RebootPending), and None on others: before its reboot, no node is as its plan wants it."},
		{planAge, []string{"profile", "plan"},
			"Seconds since each plan in use was made."},
		{poolCondition, []string{"pool", "type", "status", "reason"},
			"Conditions of each BypassNICPool with their reasons: 1 for the status that a condition has; the other statuses are left out."},
		{poolNodes, []string{"pool", "state"},
			"Number of nodes of each BypassNICPool that are matched and reporting."},
		{poolNICs, []string{"pool", "health"},
			"Number of NICs of each BypassNICPool that are Healthy, Unhealthy, Unknown and Ineligible."},
		{poolUnits, []string{"pool", "state"},
			"Number of units of the resource of each BypassNICPool that healthy NICs give (advertised) and that containers hold (allocated)."},
		{poolUsers, []string{"pool", "alignment"},
			"Number of containers that hold a unit of a BypassNICPool, by whether CPUs, hugepages and NIC are on one NUMA node: Aligned, Split or Unknown."},
		{poolVersions, []string{"pool", "health", "versions", "module", "user"},
			"Number of NICs of each BypassNICPool by the versions of kernel module and user files that their nodes have, and whether these are Equal, Different or Incomplete."},
		{poolHugepages, []string{"pool", "hugepages"},
			"Number of healthy NICs with a free unit of each BypassNICPool that reserves hugepages, by whether pages of every size are Left on the NIC's NUMA node, Exhausted or Unknown."},
		{testCondition, []string{"test_namespace", "test", "type", "status", "reason"},
			"Conditions of each LatencyTest with their reasons: 1 for the status that a condition has; the other statuses are left out."},
		{testNodes, []string{"test_namespace", "test", "state"},
			"Number of nodes of each LatencyTest that are selected, passed, failed, inconclusive, stale, running and waiting."},
		{testMaximum, []string{"test_namespace", "test", "node"},
			"The longest interruption that a LatencyTest of kind Jitter last measured on each node. Of all tests together, 2048 nodes are told at most, here and in the metrics below; each size or rate of messages counts as one."},
		{testStolen, []string{"test_namespace", "test", "node"},
			"The share of time that was taken from the measured CPU which lost most, 0 to 1."},
		{testLatency, []string{"test_namespace", "test", "node", "side", "bytes", "rate", "percentile"},
			"How long messages took one way, of LatencyTests that send messages: the percentiles P50 and P99, where the samples carry them, by the size of messages and by the rate at which they left; without a rate, one was under way at a time. The side is Container or Host of kind ContainerVersusHost, a name of spec.stackComparison.sides of kind StackComparison, and empty of others. Rates of a search are told by their trial, Low, BestPass or LowestFail."},
		{testLongest, []string{"test_namespace", "test", "node", "side", "bytes", "rate"},
			"The longest of these latencies."},
		{testLost, []string{"test_namespace", "test", "node", "side", "bytes", "rate"},
			"The share of these messages that was lost, 0 to 1."},
		{testLate, []string{"test_namespace", "test", "node", "side", "bytes", "rate"},
			"The share of messages on a schedule that left more than an interval of their rate after their time, 0 to 1."},
		{testHighest, []string{"test_namespace", "test", "node", "bound"},
			"What a LatencyTest of kind LoadSearch last found on each node, in messages a second: BestPass is the highest rate that passed, 0 where none did, and LowestFail the lowest above it that did not; without it, every rate passed that was tried."},
		{testRatio, []string{"test_namespace", "test", "node", "side", "bytes", "percentile", "bound"},
			"How many times as long messages took as on the side with which others are compared, of LatencyTests of kinds ContainerVersusHost and StackComparison: the ratio of the percentile P50 and of the highest that the samples carry, with the bound Ratio, and Low and High, between which it is with 95 % confidence."},
		{testCompleted, []string{"test_namespace", "test", "node"},
			"When a LatencyTest last measured each node, in seconds since 1970."},
		{testChange, []string{"test_namespace", "test", "node", "trend", "changed"},
			"How the last measurement of each node stands to the one before: 1 for Better, Same, Worse or Unknown, with what has changed of the node meanwhile (machine, kernel, command line, microcode, firmware, mitigations, plan, NIC, NIC driver, NIC firmware, stack, each after the word server where it is of the node of the server, server alone for another node, or nothing). Better and Worse mean that every repetition is shorter or longer than all of the one before, and than all of up to five runs before that which were measured alike, of kind LoadSearch that every highest rate is higher or lower, and of kinds ContainerVersusHost and StackComparison that every ratio of the first side that is not the base is smaller or larger."},
	}
}

// Collector computes the metrics.
type Collector struct {
	reader    client.Reader
	version   string
	namespace string
	// agents is the namespace of the agents' Leases.
	agents    string
	clock     clock.PassiveClock
	elected   <-chan struct{}
	described map[string]*prometheus.Desc
	// checks are those of the catalogue.
	checks []verify.Check
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector for a version of the operator that reads from a cache: plans from the operator's namespace, Leases from that of the
// agents. It collects nothing before elected is closed, so that of several replicas of the operator one tells.
func New(reader client.Reader, version, namespace, agents string, clock clock.PassiveClock, elected <-chan struct{}) *Collector {
	c := &Collector{
		reader: reader, version: version, namespace: namespace, agents: agents, clock: clock, elected: elected, described: map[string]*prometheus.Desc{},
		checks: verify.Catalogue(),
	}
	for _, d := range Descriptions() {
		c.described[d.Name] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range Descriptions() {
		descriptions <- c.described[d.Name]
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	select {
	case <-c.elected:
	default:
		return
	}
	c.gauge(out, operatorInfo, 1, c.version)
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	for _, collect := range []func(context.Context, chan<- prometheus.Metric) error{
		c.collectProfiles, c.collectNodes, c.collectPlans, c.collectPools, c.collectGates, c.collectTests,
	} {
		if err := collect(ctx, out); err != nil {
			logf.Log.WithName("metrics").Error(err, "Failed to read from the cache for a scrape")
		}
	}
}

func (c *Collector) gauge(out chan<- prometheus.Metric, name string, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(c.described[name], prometheus.GaugeValue, value, labels...)
}

// conditions tells conditions of any object in the one way: a series of value 1 for each, with the labels of the object
// and type, status and reason. A condition has one status, so that there are no more series than conditions.
func (c *Collector) conditions(out chan<- prometheus.Metric, name string, conditions []metav1.Condition, object ...string) {
	for _, condition := range conditions {
		c.gauge(out, name, 1, append(slices.Clone(object), condition.Type, string(condition.Status), condition.Reason)...)
	}
}

func (c *Collector) collectProfiles(ctx context.Context, out chan<- prometheus.Metric) error {
	var profiles v1alpha1.LowLatencyNodeProfileList
	if err := c.reader.List(ctx, &profiles, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range profiles.Items {
		profile := &profiles.Items[i]
		c.conditions(out, profileCondition, profile.Status.Conditions, profile.Name)
		c.gauge(out, profileShapes, float64(len(profile.Status.Shapes)), profile.Name)
		if nodes := profile.Status.Nodes; nodes != nil {
			c.gauge(out, profileNodes, float64(nodes.Matched), profile.Name, "matched")
			c.gauge(out, profileNodes, float64(nodes.Planned), profile.Name, "planned")
			c.gauge(out, profileNodes, float64(nodes.Applied), profile.Name, "applied")
			c.gauge(out, profileNodes, float64(nodes.Pending), profile.Name, "pending")
			c.gauge(out, profileNodes, float64(nodes.DeJittered), profile.Name, "deJittered")
			c.gauge(out, profileNodes, float64(nodes.NUMAAligned), profile.Name, "numaAligned")
		}
	}
	return nil
}

// findingKey is what findings are counted by.
type findingKey struct{ profile, check, severity, outcome, reboot string }

// rebootOf tells nodes that have yet to boot as planned from the others. A plan that a host has refused or taken back is pending no more: the
// condition Applied gives that as its reason.
func rebootOf(node *v1alpha1.LowLatencyNode) string {
	applied := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionApplied)
	if applied != nil && applied.Status == metav1.ConditionFalse && applied.Reason == v1alpha1.ReasonRebootPending {
		return "Pending"
	}
	return "None"
}

func (c *Collector) collectNodes(ctx context.Context, out chan<- prometheus.Metric) error {
	var nodes v1alpha1.LowLatencyNodeList
	if err := c.reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	leases, err := c.leases(ctx)
	if err != nil {
		return err
	}
	counts, nics, drifts, profiles := map[findingKey]int{}, nicCounts{}, driftCounts{}, map[string]struct{}{}
	for i := range nodes.Items {
		node := c.judge(out, &nodes.Items[i], leases[nodes.Items[i].Name])
		profile := node.Spec.Profile
		c.conditions(out, nodeCondition, node.Status.Conditions, node.Name, profile)
		if checks := node.Status.Checks; checks != nil {
			c.gauge(out, nodeChecks, float64(checks.Passed), node.Name, profile, "passed")
			c.gauge(out, nodeChecks, float64(checks.Failed), node.Name, profile, "failed")
			c.gauge(out, nodeChecks, float64(checks.Unknown), node.Name, profile, "unknown")
			c.gauge(out, nodeChecks, float64(checks.Waived), node.Name, profile, "waived")
		}
		if transitions := node.Status.Transitions; len(transitions) > 0 {
			c.gauge(out, nodeChange, float64(transitions[0].Time.Unix()), node.Name, profile)
		}
		nics.add(node)
		drifts.add(node)
		profiles[profile] = struct{}{}
		for _, f := range node.Status.Findings {
			counts[findingKey{profile, string(f.Check), string(f.Severity), string(f.Outcome), rebootOf(node)}]++
		}
	}
	for key, count := range counts {
		c.gauge(out, findings, float64(count), key.profile, key.check, key.severity, key.outcome, key.reboot)
	}
	for profile := range profiles {
		drifts.begin(profile, c.checks)
	}
	for key, count := range drifts {
		c.gauge(out, drift, float64(count), key.profile, key.check, key.state)
	}
	for key, count := range nics {
		c.gauge(out, key.metric, float64(count), key.labels()...)
	}
	return nil
}

func (c *Collector) collectPlans(ctx context.Context, out chan<- prometheus.Metric) error {
	var plans metav1.PartialObjectMetadataList
	plans.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	err := c.reader.List(ctx, &plans, client.InNamespace(c.namespace), client.HasLabels{v1alpha1.LabelProfile}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	for i := range plans.Items {
		plan := &plans.Items[i]
		age := c.clock.Since(plan.CreationTimestamp.Time)
		c.gauge(out, planAge, max(age.Seconds(), 0), plan.Labels[v1alpha1.LabelProfile], plan.Name)
	}
	return nil
}
