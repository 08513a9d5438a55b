// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describePools(s *suite) {
	Describe("a pool that its administrator has paused", func() {
		It("is written and stays paused until its administrator resumes it", s.respectsPause)
	})

	Describe("an existing pool", func() {
		BeforeEach(func(ctx SpecContext) {
			pool := &mcfgv1.MachineConfigPool{
				ObjectMeta: metav1.ObjectMeta{Name: "worker-cnf", Labels: map[string]string{"pool": "cnf"}},
				Spec: mcfgv1.MachineConfigPoolSpec{
					NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": "cnf"}},
					MachineConfigSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
						Key: mcfgv1.MachineConfigRoleLabelKey, Operator: metav1.LabelSelectorOpIn, Values: []string{"worker", "worker-cnf"},
					}}},
				},
			}
			Expect(s.client.Create(ctx, pool)).To(Succeed())
			DeferCleanup(func(ctx SpecContext) { Expect(s.client.Delete(ctx, pool)).To(Succeed()) })
		})

		It("carries one shape, and is otherwise left to its owner", s.usesExistingPool)

		It("does not carry two shapes", s.refusesTwoShapes)
	})
}

// bindToPool binds a profile to the pool worker-cnf.
func bindToPool(p *v1alpha1.LowLatencyNodeProfile) {
	p.Spec.Pools = v1alpha1.PoolsSpec{
		Management: v1alpha1.PoolsExisting,
		Existing:   &v1alpha1.ExistingPool{MachineConfigPoolSelector: v1alpha1.Labels{"pool": "cnf"}},
	}
}

func (s *suite) respectsPause(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	s.reboots.reset()
	name := s.profile(ctx, "trading").Status.Shapes[0].Pool
	s.setPaused(ctx, name, true)
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
	})
	ready := s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	Expect(ready.Message).To(ContainSubstring("MachineConfigPool " + name + " is paused by its administrator"))
	Consistently(func(g Gomega) {
		g.Expect(s.managedPools(ctx)[name].Spec.Paused).To(BeTrue())
	}, 2*time.Second, pause).Should(Succeed())
	Expect(s.reboots.of("xeon-1")).To(BeZero())

	s.setPaused(ctx, name, false)
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
}

func (s *suite) usesExistingPool(ctx SpecContext) {
	s.addNodes(ctx, "cnf", "xeon-1", "xeon-2")
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.node(ctx, "xeon-2").Annotations[currentConfig]).To(HavePrefix("rendered-worker-cnf-"))
	})
	s.reboots.reset()
	s.addProfile(ctx, "cnf", "cnf", bindToPool)
	s.expectReady(ctx, "cnf")
	s.expectReboots("xeon-1", "xeon-2")
	pool := &mcfgv1.MachineConfigPool{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: "worker-cnf"}, pool)).To(Succeed())
	Expect(pool.Spec.Paused).To(BeFalse())
	Expect(pool.Annotations).To(BeEmpty())
	Expect(pool.ManagedFields).NotTo(ContainElement(HaveField("Manager", "lowlatency-operator")), "no field is owned at rest")

	By("giving it back with one reboot")
	Expect(s.client.Delete(ctx, s.profile(ctx, "cnf"))).To(Succeed())
	s.eventually(ctx, func(g Gomega) {
		g.Expect(client.IgnoreNotFound(s.client.Get(ctx, client.ObjectKey{Name: "cnf"}, &v1alpha1.LowLatencyNodeProfile{}))).To(Succeed())
		g.Expect(s.ownObjects(ctx)).To(BeEmpty())
	})
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.reboots.of("xeon-1")).To(Equal(1))
		g.Expect(s.reboots.of("xeon-2")).To(Equal(1))
	})
}

func (s *suite) refusesTwoShapes(ctx SpecContext) {
	s.addNodes(ctx, "cnf", "xeon-1", "epyc-1")
	s.addProfile(ctx, "cnf", "cnf", bindToPool)
	degraded := s.expectCondition(ctx, "cnf", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonMachineConfigPoolConflict)
	Expect(degraded.Message).To(And(ContainSubstring("2 different plans"), ContainSubstring("epyc-1"), ContainSubstring("xeon-1")))
	Expect(s.ownObjects(ctx)).To(HaveEach(HavePrefix("ConfigMap")))
}
