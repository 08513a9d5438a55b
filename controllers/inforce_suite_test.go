// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describeInForce(s *suite) {
	Describe("the plan in force", func() {
		It("stays in force and proven when the spec cannot be met", s.keepsPlanOfRefusedSpec)

		It("stays in force and proven while the rollout is paused", s.keepsPlanWhilePaused)

		It("stays in force and proven while the pool is paused by its administrator", s.keepsPlanInPausedPool)

		It("stays in force and proven on each node until its own turn comes", s.keepsPlanUntilTurn)
	})
}

// hugepagesBeyondMemory is a spec that no node can meet.
func hugepagesBeyondMemory(p *v1alpha1.LowLatencyNodeProfile) {
	p.Spec.Memory.DefaultHugepageSize = "1Gi"
	p.Spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 100000}}
}

func withAudit(p *v1alpha1.LowLatencyNodeProfile) {
	p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
}

// oneAtATime lets one node of a pool reboot at a time.
func oneAtATime(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Pools.MaximumUnavailableNodes = 1 }

// startGated brings up nodes of a profile whose gate is Taint, and waits until all are verified and open.
func (s *suite) startGated(ctx context.Context, names []string, change ...func(*v1alpha1.LowLatencyNodeProfile)) map[string]*taintLog {
	GinkgoHelper()
	s.addNodes(ctx, "trading", names...)
	s.addProfile(ctx, "trading", "trading", append(change, gated)...)
	s.expectReady(ctx, "trading")
	s.eventually(ctx, func(g Gomega) {
		for _, name := range names {
			g.Expect(s.node(ctx, name).Spec.Taints).NotTo(ContainElement(unverified()))
		}
	})
	s.reboots.reset()
	logs := map[string]*taintLog{}
	for _, name := range names {
		// The log begins with the next change of the node, and a node that stays open says nothing.
		logs[name] = s.watchTaintOf(name)
	}
	return logs
}

// neverClosed checks that no node was tainted since its log began.
func neverClosed(logs map[string]*taintLog, names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(logs[name].states()).NotTo(ContainElement("closed"), "the taint of %s", name)
	}
}

func (s *suite) report(ctx context.Context, name string) *v1alpha1.LowLatencyNode {
	GinkgoHelper()
	report := &v1alpha1.LowLatencyNode{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, report)).To(Succeed())
	return report
}

// expectUnmoved checks for some time, while the agents work, that the nodes keep their plan, that it exists, that they prove it
// and are open, and that none has rebooted.
func (s *suite) expectUnmoved(ctx context.Context, logs map[string]*taintLog, plans map[string]string) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		s.playAgents(ctx)
		for name, plan := range plans {
			report := s.report(ctx, name)
			g.Expect(report.Spec.PlanHash).To(Equal(plan))
			g.Expect(meta.IsStatusConditionTrue(report.Status.Conditions, v1alpha1.ConditionDeJittered)).To(BeTrue())
			g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: report.Spec.PlanConfigMap}, &corev1.ConfigMap{})).To(Succeed())
			g.Expect(s.node(ctx, name).Spec.Taints).NotTo(ContainElement(unverified()))
			g.Expect(s.reboots.of(name)).To(BeZero(), "reboots of %s", name)
		}
	}, 3*time.Second, pause).Should(Succeed())
	for name := range plans {
		neverClosed(logs, name)
	}
}

func (s *suite) plansOf(ctx context.Context, names ...string) map[string]string {
	GinkgoHelper()
	plans := map[string]string{}
	for _, name := range names {
		plans[name] = s.report(ctx, name).Spec.PlanHash
		Expect(plans[name]).NotTo(BeEmpty())
	}
	return plans
}

func (s *suite) keepsPlanOfRefusedSpec(ctx SpecContext) {
	names := []string{"xeon-1", "xeon-2", "epyc-1"}
	logs := s.startGated(ctx, names)
	plans, objects := s.plansOf(ctx, names...), s.ownObjects(ctx)
	s.changeProfile(ctx, "trading", hugepagesBeyondMemory)
	degraded := s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonPlanImpossible)
	Expect(degraded.Message).To(ContainSubstring("spec.memory.hugepages"))
	s.expectUnmoved(ctx, logs, plans)

	By("saying that the wanted spec is not in force, and that the nodes prove the plan that they have")
	for kind, want := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionReady: metav1.ConditionFalse, v1alpha1.ConditionProgressing: metav1.ConditionFalse,
		v1alpha1.ConditionStalled: metav1.ConditionTrue,
	} {
		s.expectCondition(ctx, "trading", kind, want, v1alpha1.ReasonPlanImpossible)
	}
	s.expectCondition(ctx, "trading", v1alpha1.ConditionDeJittered, metav1.ConditionTrue, v1alpha1.ReasonVerified)
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.profile(ctx, "trading").Status.Nodes).To(Equal(&v1alpha1.NodeCounts{Matched: 3, DeJittered: 3, NUMAAligned: 3}))
	})
	Expect(s.ownObjects(ctx)).To(ConsistOf(objects), "the objects of the platform and the plans stay")

	By("closing the gate of a node that contradicts the plan that it has")
	s.find(ctx, "xeon-2", strayInterrupt)
	s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, "xeon-2").Spec.Taints).To(ContainElement(unverified())) })
	s.find(ctx, "xeon-2", "")

	By("correcting the spec, which moves nothing")
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Memory = v1alpha1.MemorySpec{} })
	s.expectReady(ctx, "trading")
	for _, name := range names {
		Expect(s.reboots.of(name)).To(BeZero())
	}
	neverClosed(logs, "xeon-1", "epyc-1")
}

// expectPending waits until the nodes keep the plans that they have, and say which one they wait for.
func (s *suite) expectPending(ctx context.Context, plans map[string]string) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		for name, plan := range plans {
			spec := s.report(ctx, name).Spec
			g.Expect(spec.PlanHash).To(Equal(plan))
			g.Expect(spec.PendingPlanHash).NotTo(Or(BeEmpty(), Equal(plan)))
		}
		status := s.profile(ctx, "trading").Status
		g.Expect(status.Nodes.Pending).To(BeEquivalentTo(len(plans)))
		g.Expect(status.Nodes.DeJittered).To(Equal(status.Nodes.Matched))
		pending := 0
		for _, shape := range status.Shapes {
			pending += int(shape.Pending)
		}
		g.Expect(pending).To(Equal(len(plans)))
	})
}

func (s *suite) keepsPlanWhilePaused(ctx SpecContext) {
	names := []string{"xeon-1", "epyc-1"}
	logs := s.startGated(ctx, names)
	plans := s.plansOf(ctx, names...)
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		withAudit(p)
		p.Spec.Rollout.State = v1alpha1.RolloutPaused
	})
	s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	s.expectPending(ctx, plans)
	s.expectUnmoved(ctx, logs, plans)

	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Rollout.State = v1alpha1.RolloutActive })
	s.expectReady(ctx, "trading")
	s.expectReboots(names...)
	s.expectPruned(ctx, plans)
}

// expectPruned waits until the plans that were in force before are gone.
func (s *suite) expectPruned(ctx context.Context, plans map[string]string) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		for name, plan := range plans {
			g.Expect(s.report(ctx, name).Spec.PendingPlanHash).To(BeEmpty())
			g.Expect(s.ownObjects(ctx)).NotTo(ContainElement("ConfigMap trading-" + plan))
		}
	})
}

func (s *suite) keepsPlanInPausedPool(ctx SpecContext) {
	logs := s.startGated(ctx, []string{"xeon-1"})
	plans := s.plansOf(ctx, "xeon-1")
	pool := s.profile(ctx, "trading").Status.Shapes[0].Pool
	s.setPaused(ctx, pool, true)
	s.changeProfile(ctx, "trading", withAudit)
	s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	s.expectPending(ctx, plans)
	s.expectUnmoved(ctx, logs, plans)
	s.setPaused(ctx, pool, false)
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
}

func (s *suite) keepsPlanUntilTurn(ctx SpecContext) {
	names := []string{"xeon-1", "xeon-2", "xeon-3"}
	logs := s.startGated(ctx, names, oneAtATime)
	plans := s.plansOf(ctx, names...)
	resume := s.reboots.stop()
	DeferCleanup(resume)
	s.changeProfile(ctx, "trading", withAudit)
	var first string
	s.eventually(ctx, func(g Gomega) {
		down := s.reboots.isDown()
		g.Expect(down).To(HaveLen(1))
		first = down[0]
		// It is judged by the plan that it was told to take, and closed.
		g.Expect(s.report(ctx, first).Spec.PlanHash).NotTo(Equal(plans[first]))
		g.Expect(s.report(ctx, first).Spec.PendingPlanHash).To(BeEmpty())
		g.Expect(s.node(ctx, first).Spec.Taints).To(ContainElement(unverified()))
	})
	delete(plans, first)
	s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonRollingOut)
	s.eventually(ctx, func(g Gomega) { g.Expect(s.profile(ctx, "trading").Status.Nodes.Pending).To(BeEquivalentTo(2)) })
	s.expectUnmoved(ctx, logs, plans)

	By("refusing a change of mind half-way, which leaves each node at the plan that it has")
	turned := s.report(ctx, first).Spec.PlanHash
	s.changeProfile(ctx, "trading", hugepagesBeyondMemory)
	s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonPlanImpossible)
	s.expectUnmoved(ctx, logs, plans)
	Expect(s.report(ctx, first).Spec.PlanHash).To(Equal(turned))
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Memory = v1alpha1.MemorySpec{} })

	By("going on")
	resume()
	s.expectReady(ctx, "trading")
	s.expectReboots(names...)
	s.expectPruned(ctx, plans)
	for _, name := range names {
		Expect(s.report(ctx, name).Spec.PlanHash).To(Equal(turned))
	}
}
