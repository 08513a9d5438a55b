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
	own := []latencyTestRule{
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
	return slices.Concat(own, inNodes)
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
