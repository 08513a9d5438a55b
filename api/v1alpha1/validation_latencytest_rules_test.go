// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

type (
	latencyTest     = v1alpha1.LatencyTest
	latencyTestRule = rule[v1alpha1.LatencyTest]
)

func newLatencyTest() *latencyTest {
	return &latencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quiet"},
		Spec:       v1alpha1.LatencyTestSpec{Nodes: v1alpha1.LatencyTestNodes{Profile: "trading"}, Kind: v1alpha1.LatencyTestJitter},
	}
}

// latencyTestRules returns a case for each CEL rule of LatencyTest.
func latencyTestRules() []latencyTestRule {
	names := []latencyTestRule{
		{
			message:  "metadata.name must be at most 63 characters long, because Jobs carry it as a label.",
			accepted: func(t *latencyTest) { t.Name = strings.Repeat("a", 63) },
			rejected: func(t *latencyTest) { t.Name = strings.Repeat("a", 64) },
		},
		{
			field:    "spec.nodes",
			message:  "spec.nodes needs exactly one of profile, bypassNICPool, nodeSelector and names.",
			accepted: func(t *latencyTest) { t.Spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{"node-1"}} },
			rejected: func(t *latencyTest) { t.Spec.Nodes.Names = []string{"node-1"} },
		},
	}
	selectors := nodeSelectorRules(func(t *latencyTest, selector v1alpha1.NodeSelector) {
		t.Spec.Nodes = v1alpha1.LatencyTestNodes{NodeSelector: &selector}
	})
	labels := []latencyTestRule{
		{
			field:    "spec.nodeSelector.matchLabels",
			message:  "a label key is a name of at most 63 letters, digits and _.-, which a DNS name and a slash may precede.",
			accepted: labelled(v1alpha1.Labels{"zone_A": "x"}), rejected: labelled(v1alpha1.Labels{"trading nodes": ""}),
		},
		{
			field:    "spec.nodeSelector.matchLabels[]",
			message:  "a label value is empty or begins and ends with a letter or digit, with letters, digits and _.- between.",
			accepted: labelled(v1alpha1.Labels{"zone": "rack-1"}), rejected: labelled(v1alpha1.Labels{"zone": "rack 1"}),
		},
	}
	inNodes := slices.Concat(selectors, labels)
	for i := range inNodes {
		inNodes[i].field = strings.Replace(inNodes[i].field, "spec.nodeSelector", "spec.nodes.nodeSelector", 1)
	}
	return slices.Concat(names, trafficRules(), inNodes)
}

// newPingPong makes a test one that sends messages.
func newPingPong(t *latencyTest) {
	t.Spec.Kind = v1alpha1.LatencyTestPingPong
	t.Spec.Traffic = &v1alpha1.TestTraffic{
		Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{"node-2"}},
	}
}

// pingPong makes a test one that sends messages, and changes it.
func pingPong(change func(*latencyTest)) func(*latencyTest) {
	return func(t *latencyTest) {
		newPingPong(t)
		change(t)
	}
}

// rateSweep makes a test one that sends messages on a schedule, and changes it.
func rateSweep(change func(*latencyTest)) func(*latencyTest) {
	return pingPong(func(t *latencyTest) {
		t.Spec.Kind = v1alpha1.LatencyTestRateSweep
		change(t)
	})
}

// trafficRules returns a case for each CEL rule about messages.
func trafficRules() []latencyTestRule {
	rules := []latencyTestRule{
		{
			field: "spec", message: "spec.jitter stands with spec.kind Jitter only.",
			accepted: func(t *latencyTest) { t.Spec.Jitter = &v1alpha1.JitterTest{CPUs: 1} },
			rejected: pingPong(func(t *latencyTest) { t.Spec.Jitter = &v1alpha1.JitterTest{CPUs: 1} }),
		},
		{
			field: "spec", message: "spec.pingPong stands with spec.kind PingPong only.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64}} }),
			rejected: func(t *latencyTest) { t.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64}} },
		},
		{
			field: "spec", message: "spec.rateSweep stands with spec.kind RateSweep only.",
			accepted: rateSweep(func(t *latencyTest) { t.Spec.RateSweep = &v1alpha1.RateSweepTest{Bytes: 24} }),
			rejected: pingPong(func(t *latencyTest) { t.Spec.RateSweep = &v1alpha1.RateSweepTest{Bytes: 24} }),
		},
		{
			field: "spec", message: "spec.traffic.transport TCP stands with spec.kind PingPong only: messages that leave on a schedule are datagrams, so use UDP or Multicast.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.Traffic.Transport = v1alpha1.TransportTCP }),
			rejected: rateSweep(func(t *latencyTest) { t.Spec.Traffic.Transport = v1alpha1.TransportTCP }),
		},
		{
			field:   "spec",
			message: "spec.traffic.server.nodeNames needs for each of spec.nodes.names a node that is another one: a measured node runs its own server with placement SameNode only.",
			accepted: pingPong(func(t *latencyTest) {
				t.Spec.Nodes, t.Spec.Traffic.Server.NodeNames = v1alpha1.LatencyTestNodes{Names: []string{"node-1", "node-2"}}, []string{"node-2", "node-1"}
			}),
			rejected: pingPong(func(t *latencyTest) {
				t.Spec.Nodes, t.Spec.Traffic.Server.NodeNames = v1alpha1.LatencyTestNodes{Names: []string{"node-1", "node-2"}}, []string{"node-2", "node-2"}
			}),
		},
		{
			field: "spec", message: "spec.budget.latePartsPerMillion stands with spec.kind RateSweep only, whose messages leave on a schedule.",
			accepted: rateSweep(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{LatePartsPerMillion: new(int32)} }),
			rejected: pingPong(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{LatePartsPerMillion: new(int32)} }),
		},
		{
			field: "spec", message: "spec.traffic says between which ends messages go: every spec.kind but Jitter needs it, and Jitter has none.",
			accepted: newPingPong, rejected: pingPong(func(t *latencyTest) { t.Spec.Traffic = nil }),
		},
		{
			field: "spec", message: "spec.pingPong.sizes are 1 to 65536 bytes over TCP, and 0 to 65507 bytes in datagrams.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{0, 65507}} }),
			rejected: pingPong(func(t *latencyTest) {
				t.Spec.Traffic.Transport, t.Spec.PingPong = v1alpha1.TransportTCP, &v1alpha1.PingPongTest{Sizes: []int32{0, 65536}}
			}),
		},
		{
			field: "spec", message: "spec.budget.stolenPartsPerMillion stands with spec.kind Jitter only.",
			accepted: func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{StolenPartsPerMillion: 1} },
			rejected: pingPong(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{StolenPartsPerMillion: 1} }),
		},
		{
			field: "spec", message: "spec.budget.lossPartsPerMillion and spec.budget.path are about messages, which spec.kind Jitter does not send.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{LossPartsPerMillion: new(int32)} }),
			rejected: func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel} },
		},
		{
			field: "spec.traffic.server", message: "spec.traffic.server.nodeNames stands with placement Nodes, which needs it, and with no other.",
			accepted: newPingPong, rejected: pingPong(func(t *latencyTest) { t.Spec.Traffic.Server.Placement = v1alpha1.ServerOnSameNode }),
		},
	}
	return slices.Concat(rules,
		endRules("spec.traffic.server", func(t *latencyTest) *v1alpha1.TestEnd { return &t.Spec.Traffic.Server.TestEnd }),
		endRules("spec.traffic.client", func(t *latencyTest) *v1alpha1.TestEnd {
			t.Spec.Traffic.Client = &v1alpha1.TestEnd{}
			return t.Spec.Traffic.Client
		}))
}

// endRules returns a case for each CEL rule about one end.
func endRules(field string, end func(*latencyTest) *v1alpha1.TestEnd) []latencyTestRule {
	with := func(value v1alpha1.TestEnd) func(*latencyTest) {
		return pingPong(func(t *latencyTest) { *end(t) = value })
	}
	return []latencyTestRule{
		{
			field: field, message: "an address needs bypassNICPool, whose network attachment takes it.",
			accepted: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.1/24"}), rejected: with(v1alpha1.TestEnd{Address: "192.0.2.1/24"}),
		},
		{
			field: field + ".address", message: "an address is one of IPv4 with the length of its prefix, such as 192.0.2.31/24.",
			accepted: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "255.255.255.255/32"}),
			rejected: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.256/24"}),
		},
	}
}

func labelled(labels v1alpha1.Labels) func(*latencyTest) {
	return func(t *latencyTest) {
		t.Spec.Nodes = v1alpha1.LatencyTestNodes{NodeSelector: &v1alpha1.NodeSelector{MatchLabels: labels}}
	}
}

func describeLatencyTestRules(admin func() client.Client) {
	for _, r := range latencyTestRules() {
		It("accepts and rejects at "+r.field+": "+r.message, func(ctx SpecContext) {
			accepted := newLatencyTest()
			r.accepted(accepted)
			Expect(admin().Create(ctx, accepted, client.DryRunAll)).To(Succeed())
			Expect(has(accepted, r.field)).To(BeTrue(), "the accepted object has no value at "+r.field)

			rejected := newLatencyTest()
			r.rejected(rejected)
			expectObjection(admin().Create(ctx, rejected, client.DryRunAll), place{r.field, r.message})
		})
	}
}
