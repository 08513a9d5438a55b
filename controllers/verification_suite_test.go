// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const strayInterrupt = "IRQ 142 may run on isolated CPU 6"

func describeVerification(s *suite) {
	Describe("what the agents report", func() {
		BeforeEach(func(ctx SpecContext) {
			s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
			s.addProfile(ctx, "trading", "trading")
			s.expectReady(ctx, "trading")
		})

		It("is on the node and on the profile, with an event for each transition", func(ctx SpecContext) {
			Expect(s.node(ctx, "xeon-2").Status.Conditions).To(ConsistOf(
				nodeCondition(v1alpha1.NodeConditionDeJittered, corev1.ConditionTrue),
				nodeCondition(v1alpha1.NodeConditionNUMAAligned, corev1.ConditionTrue),
				nodeCondition(v1alpha1.NodeConditionReady, corev1.ConditionTrue),
			))
			s.find(ctx, "xeon-2", strayInterrupt)
			degraded := s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonChecksFailed)
			Expect(degraded.Message).To(Equal("node xeon-2: " + strayInterrupt))
			deJittered := s.expectCondition(ctx, "trading", v1alpha1.ConditionDeJittered, metav1.ConditionFalse, v1alpha1.ReasonChecksFailed)
			Expect(deJittered.Message).To(Equal("node xeon-2: " + strayInterrupt))
			status := s.profile(ctx, "trading").Status
			Expect(status.Nodes.DeJittered).To(BeEquivalentTo(1))
			Expect(status.Findings).To(ContainElement(v1alpha1.ProfileFinding{
				Node: "xeon-2", Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Message: strayInterrupt,
			}))
			s.eventually(ctx, func(g Gomega) {
				g.Expect(s.node(ctx, "xeon-2").Status.Conditions).To(ContainElement(nodeCondition(v1alpha1.NodeConditionDeJittered, corev1.ConditionFalse)))
				g.Expect(s.node(ctx, "xeon-1").Status.Conditions).To(ContainElement(nodeCondition(v1alpha1.NodeConditionDeJittered, corev1.ConditionTrue)))
			})
			s.find(ctx, "xeon-2", "")
			s.expectReady(ctx, "trading")

			By("telling the story in events")
			s.eventually(ctx, func(g Gomega) {
				g.Expect(s.events(ctx, "xeon-2")).To(ContainElements("DeJittered", "NotDeJittered: "+strayInterrupt))
				g.Expect(s.events(ctx, "trading")).To(ContainElements("Verified", "RollingOut", "ChecksFailed: node xeon-2: "+strayInterrupt, "Recovered"))
			})
		})

		It("opens and closes the gate", func(ctx SpecContext) {
			Expect(s.node(ctx, "xeon-1").Spec.Taints).NotTo(ContainElement(unverified()))
			s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Verification.Gate = v1alpha1.GateTaint })
			s.expectReady(ctx, "trading")
			s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, "xeon-1").Spec.Taints).NotTo(ContainElement(unverified())) })

			s.find(ctx, "xeon-1", strayInterrupt)
			s.eventually(ctx, func(g Gomega) {
				g.Expect(s.node(ctx, "xeon-1").Spec.Taints).To(ContainElement(unverified()))
				g.Expect(s.node(ctx, "xeon-2").Spec.Taints).NotTo(ContainElement(unverified()))
				g.Expect(s.events(ctx, "xeon-1")).To(ContainElement(HavePrefix("GateClosed: pods without a toleration")))
			})
			s.find(ctx, "xeon-1", "")
			s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, "xeon-1").Spec.Taints).NotTo(ContainElement(unverified())) })

			By("keeping a node that joins closed until it is verified")
			s.addNodes(ctx, "trading", "xeon-3")
			Eventually(func(g Gomega) {
				g.Expect(s.node(ctx, "xeon-3").Spec.Taints).To(ContainElement(unverified()))
			}, waitTimeout, pause).Should(Succeed())
			s.expectReady(ctx, "trading")
			s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, "xeon-3").Spec.Taints).NotTo(ContainElement(unverified())) })

			By("opening it when the profile asks for no gate")
			s.find(ctx, "xeon-1", strayInterrupt)
			s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, "xeon-1").Spec.Taints).To(ContainElement(unverified())) })
			s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Verification.Gate = v1alpha1.GateReportOnly })
			s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, "xeon-1").Spec.Taints).NotTo(ContainElement(unverified())) })
		})
	})
}

func unverified() corev1.Taint {
	return corev1.Taint{Key: v1alpha1.TaintUnverified, Effect: corev1.TaintEffectNoSchedule}
}

func nodeCondition(kind corev1.NodeConditionType, status corev1.ConditionStatus) gomegatypes.GomegaMatcher {
	return And(HaveField("Type", kind), HaveField("Status", status))
}

// events are those about an object of this name: the reason, and the reason with the note.
func (s *suite) events(ctx context.Context, name string) []string {
	GinkgoHelper()
	var list eventsv1.EventList
	Expect(s.client.List(ctx, &list)).To(Succeed())
	var texts []string
	for i := range list.Items {
		if event := &list.Items[i]; event.Regarding.Name == name {
			texts = append(texts, event.Reason, event.Reason+": "+event.Note)
		}
	}
	return texts
}
