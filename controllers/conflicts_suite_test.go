// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describeConflicts(s *suite) {
	Describe("a conflict", func() {
		It("of two profiles is reported on both, and the node stays as it was", s.reportsOverlap)

		It("with a PerformanceProfile is reported, and nothing is applied", s.reportsPeer)

		It("with another custom pool is reported, and the node is not labelled", s.reportsOtherPool)

		It("of a node that cannot have the plan is reported, and the pool stays as it is", s.reportsImpossiblePlan)
	})
}

func (s *suite) reportsOverlap(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
	s.addProfile(ctx, "alpha", "trading")
	s.expectReady(ctx, "alpha")
	s.reboots.reset()
	before := s.node(ctx, "xeon-2").Labels
	s.relabel(ctx, "xeon-2", map[string]string{"second": "yes"})
	s.addProfile(ctx, "beta", "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"second": "yes"}
	})
	for profile, other := range map[string]string{"alpha": "beta", "beta": "alpha"} {
		degraded := s.expectCondition(ctx, profile, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonProfilesOverlap)
		Expect(degraded.Message).To(ContainSubstring("node xeon-2 is selected by profile " + other))
	}
	By("changing nothing on the node even when a profile changes")
	s.changeProfile(ctx, "alpha", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
	})
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.profile(ctx, "alpha").Status.ObservedGeneration).To(BeEquivalentTo(2))
	})
	for _, key := range []string{v1alpha1.LabelPool, v1alpha1.LabelProfile} {
		Expect(s.node(ctx, "xeon-2").Labels[key]).To(Equal(before[key]))
	}
	Expect(s.reboots.of("xeon-2")).To(BeZero())

	By("ending when the selectors do not overlap any more")
	s.relabel(ctx, "xeon-2", map[string]string{"second": ""})
	s.expectReady(ctx, "alpha")
	s.expectReboots("xeon-1", "xeon-2")
}

func (s *suite) reportsPeer(ctx SpecContext) {
	peer := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"nodeSelector": map[string]any{"role": "trading"}},
	}}
	peer.SetGroupVersionKind(schema.GroupVersionKind{Group: "performance.openshift.io", Version: "v2", Kind: "PerformanceProfile"})
	peer.SetName("cnf")
	Expect(s.client.Create(ctx, peer)).To(Succeed())
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	degraded := s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonPerformanceProfileConflict)
	Expect(degraded.Message).To(ContainSubstring("PerformanceProfile cnf governs nodes of MachineConfigPool trading-"))
	Expect(s.managedPools(ctx)).To(BeEmpty())
	s.expectCondition(ctx, "trading", v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonPerformanceProfileConflict)

	Expect(s.client.Delete(ctx, peer)).To(Succeed())
	s.expectReady(ctx, "trading")
}

func (s *suite) reportsOtherPool(ctx SpecContext) {
	infra := &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: "infra"},
		Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"infra": "yes"}},
			MachineConfigSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: "worker"}},
		},
	}
	Expect(s.client.Create(ctx, infra)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(s.client.Delete(ctx, infra)).To(Succeed()) })
	s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
	s.relabel(ctx, "xeon-1", map[string]string{"infra": "yes"})
	s.addProfile(ctx, "trading", "trading")
	degraded := s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonMachineConfigPoolConflict)
	Expect(degraded.Message).To(ContainSubstring("node xeon-1 is in MachineConfigPool infra"))
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.profile(ctx, "trading").Status.Nodes.Applied).To(BeEquivalentTo(1), "the other node is not held up")
	})
	Expect(s.node(ctx, "xeon-1").Labels).NotTo(HaveKey(v1alpha1.LabelPool))
}

func (s *suite) reportsImpossiblePlan(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.Memory.DefaultHugepageSize = "1Gi"
		p.Spec.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 100000}}
	})
	degraded := s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonPlanImpossible)
	Expect(degraded.Message).To(And(ContainSubstring("xeon-1"), ContainSubstring("spec.memory.hugepages")))
	Expect(s.managedPools(ctx)).To(BeEmpty())
	report := &v1alpha1.LowLatencyNode{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-1"}, report)).To(Succeed())
	Expect(report.Spec.PlanHash).To(BeEmpty())
}
