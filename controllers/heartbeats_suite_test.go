// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
)

func describeHeartbeats(s *suite) {
	Describe("the heartbeat of an agent", func() {
		It("ends, and what was proven is unknown until it comes back", s.losesAgent)

		It("is awaited where no agent has ever run", s.awaitsAgent)

		It("costs the operator no request", s.hearsForFree)
	})
}

// lease is the Lease of a node, once the operator has made it.
func (s *suite) lease(ctx context.Context, node string) *coordinationv1.Lease {
	GinkgoHelper()
	lease := &coordinationv1.Lease{}
	Eventually(func() error {
		return s.client.Get(ctx, client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: node}, lease)
	}, waitTimeout, pause).Should(Succeed())
	return lease
}

// renew renews the Lease of a node as its agent does, some time ago.
func (s *suite) renew(ctx context.Context, node string, ago time.Duration) *coordinationv1.Lease {
	GinkgoHelper()
	lease := s.lease(ctx, node)
	lease.Spec = heartbeat.Renewed("agent/"+node, time.Now().Add(-ago), 0)
	Expect(s.client.Update(ctx, lease)).To(Succeed())
	return lease
}

// expectWorld waits, without any word of an agent, until the assertion holds.
func (s *suite) expectWorld(assertion func(Gomega)) {
	GinkgoHelper()
	Eventually(assertion, waitTimeout, pause).Should(Succeed())
}

func (s *suite) losesAgent(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
	s.addProfile(ctx, "trading", "trading")
	s.addPool(ctx, "x2", "trading")
	for _, node := range []string{"xeon-1", "xeon-2"} {
		s.reportNICs(ctx, node, "x2", healthyNIC(firstPort))
	}
	s.expectReady(ctx, "trading")
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
	s.renew(ctx, "xeon-1", 0)
	// The lifetime ends a few seconds from now, with nothing happening but time.
	last := s.renew(ctx, "xeon-2", heartbeat.Lifetime-5*time.Second)
	Expect(s.node(ctx, "xeon-2").Status.Conditions).To(ContainElement(nodeCondition(v1alpha1.NodeConditionDeJittered, corev1.ConditionTrue)))

	By("becoming stale")
	report := &v1alpha1.LowLatencyNode{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-2"}, report)).To(Succeed())
	sentence := "the agent on node xeon-2 has not looked at the host since " + last.Spec.RenewTime.UTC().Format(time.RFC3339) +
		", when it renewed Lease lowlatency-operator-agents/xeon-2 last: look at its pod and log " +
		"(kubectl -n lowlatency-operator-agents get pods -o wide --field-selector spec.nodeName=xeon-2)"
	s.expectWorld(func(g Gomega) {
		for _, kind := range []corev1.NodeConditionType{v1alpha1.NodeConditionDeJittered, v1alpha1.NodeConditionNUMAAligned} {
			g.Expect(s.node(ctx, "xeon-2").Status.Conditions).To(ContainElement(And(nodeCondition(kind, corev1.ConditionUnknown),
				HaveField("Reason", v1alpha1.ReasonHeartbeatStale), HaveField("Message", sentence))))
			g.Expect(s.node(ctx, "xeon-1").Status.Conditions).To(ContainElement(nodeCondition(kind, corev1.ConditionTrue)))
		}
		status := s.profile(ctx, "trading").Status
		g.Expect(*status.Nodes).To(Equal(v1alpha1.NodeCounts{Matched: 2, Planned: 2, Applied: 1, DeJittered: 1, NUMAAligned: 1}))
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
			g.Expect(status.Conditions).To(ContainElement(And(HaveField("Type", kind), HaveField("Status", metav1.ConditionUnknown),
				HaveField("Reason", v1alpha1.ReasonHeartbeatStale), HaveField("Message", "node xeon-2: "+sentence))))
		}
		g.Expect(status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionDegraded), HaveField("Status", metav1.ConditionFalse))))
		g.Expect(s.events(ctx, "xeon-2")).To(ContainElement("DeJitteredUnknown: " + sentence))
	})
	stale := s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionUnknown, v1alpha1.ReasonNICsUnknown)
	Expect(stale.Status.NICs.Healthy).To(BeEquivalentTo(1))
	Expect(stale.Status.Findings).To(ContainElement(And(HaveField("Node", "xeon-2"), HaveField("Message", ContainSubstring(sentence)))))

	By("leaving what the agent has written to the agent")
	after := &v1alpha1.LowLatencyNode{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-2"}, after)).To(Succeed())
	Expect(after.ResourceVersion).To(Equal(report.ResourceVersion))

	By("being fresh again, with nothing new to say")
	s.renew(ctx, "xeon-2", 0)
	s.expectWorld(func(g Gomega) {
		g.Expect(s.node(ctx, "xeon-2").Status.Conditions).To(ContainElement(nodeCondition(v1alpha1.NodeConditionDeJittered, corev1.ConditionTrue)))
		g.Expect(s.profile(ctx, "trading").Status.Nodes.DeJittered).To(BeEquivalentTo(2))
	})
	s.expectReady(ctx, "trading")
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
}

func (s *suite) awaitsAgent(ctx SpecContext) {
	s.addProfile(ctx, "trading", "trading", gated)
	s.join(ctx)
	lease := s.lease(ctx, joiner)
	Expect(lease.Spec.HolderIdentity).To(BeNil())
	Expect(lease.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "LowLatencyNode"), HaveField("Name", joiner))))
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)

	By("keeping the node open for a moment after the last renewal of the heartbeat")
	now := metav1.NewTime(time.Now().Add(-time.Hour))
	report := &v1alpha1.LowLatencyNode{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: joiner}, report)).To(Succeed())
	before := report.DeepCopy()
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		report.Status.Transitions = append(report.Status.Transitions, v1alpha1.NodeTransition{
			Time: now, Condition: kind, From: metav1.ConditionUnknown, To: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified,
			PlanHash: report.Spec.PlanHash, BootID: "b1",
		})
	}
	Expect(s.client.Status().Patch(ctx, report, client.MergeFrom(before))).To(Succeed())
	s.renew(ctx, joiner, heartbeat.Lifetime+115*time.Second)
	s.expectWorld(func(g Gomega) {
		g.Expect(s.node(ctx, joiner).Status.Conditions).To(ContainElements(
			nodeCondition(v1alpha1.NodeConditionDeJittered, corev1.ConditionUnknown),
			And(nodeCondition(v1alpha1.NodeConditionReady, corev1.ConditionTrue), HaveField("Message", ContainSubstring("is trusted until"))),
		))
	})
	s.expectGate(ctx, v1alpha1.ReasonHeartbeatStale, true)

	By("losing the Lease, which the operator makes again")
	Expect(s.client.Delete(ctx, s.lease(ctx, joiner))).To(Succeed())
	Expect(s.lease(ctx, joiner).Spec.HolderIdentity).To(BeNil())
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
}

func (s *suite) hearsForFree(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	s.renew(ctx, "xeon-1", 20*time.Second)
	s.renew(ctx, "xeon-2", 20*time.Second)
	s.expectQuiet()
	s.requests.reset()
	for ago := 10 * time.Second; ago >= 0; ago -= 2 * time.Second {
		s.renew(ctx, "xeon-1", ago)
	}
	Consistently(s.requests.snapshot, 3*time.Second, time.Second).Should(BeEmpty())
}

// collectLeases deletes the Leases of nodes that are gone, as a cluster's garbage collector does.
func (s *suite) collectLeases(ctx context.Context) {
	GinkgoHelper()
	Expect(s.client.DeleteAllOf(ctx, &coordinationv1.Lease{}, client.InNamespace(controllers.DefaultAgentNamespace))).To(Succeed())
}
