// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describeRollout(s *suite) {
	Describe("a profile", func() {
		It("brings each shape of nodes into a pool of its own, with one reboot for each change", s.rollsShapes)

		It("takes in nodes that join and gives back nodes that leave", s.followsNodes)

		It("hands a node over to another profile with one write and one reboot", s.handsOver)

		It("writes nothing to the platform while it is paused", s.pausesRollout)

		It("restores what somebody has changed", s.restoresObjects)

		It("says what a deletion waits for", s.explainsDeletion)
	})
}

// expectMembers checks that every node is in the pool of its hardware.
func (s *suite) expectMembers(ctx SpecContext, pools map[string]*mcfgv1.MachineConfigPool) {
	GinkgoHelper()
	byPool := map[string][]string{}
	for _, name := range []string{"xeon-1", "xeon-2", "epyc-1", "epyc-2"} {
		pool := s.node(ctx, name).Labels[v1alpha1.LabelPool]
		Expect(pools).To(HaveKey(pool))
		byPool[pool] = append(byPool[pool], strings.Split(name, "-")[0])
	}
	Expect(slices.Collect(maps.Values(byPool))).To(ConsistOf([]string{"xeon", "xeon"}, []string{"epyc", "epyc"}))
}

// expectReboots checks that each of the nodes, and no other, has rebooted once since the last time.
func (s *suite) expectReboots(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		Expect(s.reboots.of(name)).To(Equal(1), "reboots of %s", name)
	}
	s.reboots.reset()
}

// setPaused pauses or resumes a machine config pool as an administrator does, and waits until the machine-config operator has
// seen it: what it was about to do before, it may do still.
func (s *suite) setPaused(ctx SpecContext, name string, paused bool) {
	GinkgoHelper()
	pool := &mcfgv1.MachineConfigPool{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, pool)).To(Succeed())
	before := pool.DeepCopy()
	pool.Spec.Paused = paused
	Expect(s.client.Patch(ctx, pool, client.MergeFrom(before), client.FieldOwner("kubectl-patch"))).To(Succeed())
	changed := pool.Generation
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, pool)).To(Succeed())
		g.Expect(pool.Status.ObservedGeneration).To(BeNumerically(">=", changed))
	}, waitTimeout, pause).Should(Succeed())
}

func (s *suite) rollsShapes(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1", "xeon-2", "epyc-1", "epyc-2")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")

	By("having one pool, one plan and one set of objects for each shape")
	pools := s.managedPools(ctx)
	Expect(pools).To(HaveLen(2))
	Expect(s.ownObjects(ctx)).To(HaveLen(2*5 + 1))
	status := s.profile(ctx, "trading").Status
	Expect(status.Nodes).To(Equal(&v1alpha1.NodeCounts{Matched: 4, Planned: 4, Applied: 4, DeJittered: 4, NUMAAligned: 4}))
	Expect(status.Shapes).To(HaveLen(2))
	Expect(status.Effective).NotTo(BeEmpty())
	for _, shape := range status.Shapes {
		Expect(pools).To(HaveKey(shape.Pool))
		Expect(shape.Reboot).To(Equal(v1alpha1.RebootNotRequired))
	}
	s.expectMembers(ctx, pools)
	s.expectReboots("xeon-1", "xeon-2", "epyc-1", "epyc-2")

	By("keeping the pools when the profile changes")
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
		p.Spec.Kubelet.SystemReservedMemory = "600Mi"
	})
	s.expectReady(ctx, "trading")
	Expect(slices.Sorted(maps.Keys(s.managedPools(ctx)))).To(Equal(slices.Sorted(maps.Keys(pools))))
	s.expectReboots("xeon-1", "xeon-2", "epyc-1", "epyc-2")
	for _, shape := range s.profile(ctx, "trading").Status.Shapes {
		Expect(shape.KernelArguments).To(HaveSuffix("audit=0"))
	}
	moves := func() []string { return s.twice.movesOf("xeon-1") }
	Eventually(moves, waitTimeout, pause).Should(HaveLen(2))
	Consistently(moves, time.Second, pause).Should(HaveLen(2), "a node is put into its pool once")
}

func (s *suite) followsNodes(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	s.addNodes(ctx, "trading", "xeon-2")
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.profile(ctx, "trading").Status.Nodes.Applied).To(BeEquivalentTo(2))
	})
	s.expectReboots("xeon-1", "xeon-2")

	s.relabel(ctx, "xeon-2", map[string]string{"role": ""})
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.node(ctx, "xeon-2").Labels).NotTo(HaveKey(v1alpha1.LabelPool))
		g.Expect(s.node(ctx, "xeon-2").Annotations[currentConfig]).To(HavePrefix("rendered-worker-"))
		g.Expect(client.IgnoreNotFound(s.client.Get(ctx, client.ObjectKey{Name: "xeon-2"}, &v1alpha1.LowLatencyNode{}))).To(Succeed())
	})
	s.expectReady(ctx, "trading")
	Expect(s.profile(ctx, "trading").Status.Nodes.Matched).To(BeEquivalentTo(1))
	s.expectReboots("xeon-2")
}

func (s *suite) handsOver(ctx SpecContext) {
	s.addNodes(ctx, "alpha", "xeon-1", "xeon-2")
	s.addProfile(ctx, "alpha", "alpha")
	s.expectReady(ctx, "alpha")
	s.addProfile(ctx, "beta", "beta", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0"}
	})
	s.expectCondition(ctx, "beta", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNoNodes)
	s.reboots.reset()

	s.relabel(ctx, "xeon-2", map[string]string{"role": "beta"})
	s.expectReady(ctx, "beta")
	s.expectReady(ctx, "alpha")
	Expect(s.node(ctx, "xeon-2").Labels).To(HaveKeyWithValue(v1alpha1.LabelProfile, "beta"))
	s.expectReboots("xeon-2")
	// The beginning is in no pool.
	Eventually(func() []string { return s.twice.movesOf("xeon-2") }, waitTimeout, pause).
		Should(HaveExactElements(BeEmpty(), HavePrefix("alpha-"), HavePrefix("beta-")), "it was never in no pool")
}

func (s *suite) pausesRollout(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.Rollout.State = v1alpha1.RolloutPaused
	})
	s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonPaused)
	s.eventually(ctx, func(g Gomega) {
		status := s.profile(ctx, "trading").Status
		g.Expect(status.Shapes).To(HaveLen(1))
		g.Expect(status.Shapes[0].Reboot).To(Equal(v1alpha1.RebootRequired))
	})
	Expect(s.ownObjects(ctx)).To(HaveExactElements(HavePrefix("ConfigMap trading-")), "the plan is there to be verified")
	Expect(s.node(ctx, "xeon-1").Labels).NotTo(HaveKey(v1alpha1.LabelPool))

	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Rollout.State = v1alpha1.RolloutActive })
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
}

func (s *suite) restoresObjects(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	for name := range s.managedPools(ctx) {
		config := &mcfgv1.MachineConfig{}
		Expect(s.client.Get(ctx, client.ObjectKey{Name: "50-lowlatency-" + name}, config)).To(Succeed())
		before := config.DeepCopy()
		config.Spec.KernelArguments = append(config.Spec.KernelArguments, "mitigations=off")
		Expect(s.client.Patch(ctx, config, client.MergeFrom(before))).To(Succeed())
		s.eventually(ctx, func(g Gomega) {
			g.Expect(s.client.Get(ctx, client.ObjectKeyFromObject(config), config)).To(Succeed())
			g.Expect(config.Spec.KernelArguments).To(Equal(before.Spec.KernelArguments))
		})
	}
	s.expectReady(ctx, "trading")
}

func (s *suite) explainsDeletion(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	worker := &mcfgv1.MachineConfigPool{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: "worker"}, worker)).To(Succeed())
	s.setPaused(ctx, worker.Name, true)
	Expect(s.client.Delete(ctx, s.profile(ctx, "trading"))).To(Succeed())
	progressing := s.expectCondition(ctx, "trading", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonDeleting)
	Expect(progressing.Message).To(ContainSubstring("1 nodes and 0 objects are left to give back: nodes xeon-1 are leaving MachineConfigPool trading-"))
	Consistently(func(g Gomega) {
		g.Expect(s.managedPools(ctx)).To(HaveLen(1), "the pool goes last")
	}, 2*time.Second, pause).Should(Succeed())
	s.setPaused(ctx, worker.Name, false)
}
