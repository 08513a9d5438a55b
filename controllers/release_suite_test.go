// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describeRelease(s *suite) {
	Describe("many nodes at once", func() {
		It("leave a profile only with consent, and then one after another", s.holdsRelease)

		It("change one after another, over all pools and profiles", s.keepsNodesAvailable)
	})
}

// setWorkerLimit sets how many nodes of the machine config pool worker may be unavailable; nil is its default.
func (s *suite) setWorkerLimit(ctx context.Context, limit *intstr.IntOrString) {
	GinkgoHelper()
	pool := &mcfgv1.MachineConfigPool{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: "worker"}, pool)).To(Succeed())
	before := pool.DeepCopy()
	pool.Spec.MaxUnavailable = limit
	Expect(s.client.Patch(ctx, pool, client.MergeFrom(before))).To(Succeed())
}

// expectOneDown waits until a node reboots and stays down, and checks for some time that no other does.
func (s *suite) expectOneDown(ctx context.Context) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) { g.Expect(s.reboots.isDown()).To(HaveLen(1)) })
	Consistently(func(g Gomega) {
		s.playAgents(ctx)
		g.Expect(s.reboots.isDown()).To(HaveLen(1))
	}, 3*time.Second, pause).Should(Succeed())
}

func (s *suite) holdsRelease(ctx SpecContext) {
	names := []string{"xeon-1", "xeon-2", "epyc-1"}
	logs := s.startGated(ctx, names, oneAtATime)
	plans, objects := s.plansOf(ctx, names...), s.ownObjects(ctx)
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": "tradign"}
	})
	degraded := s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonReleaseHeld)
	Expect(degraded.Message).To(ContainSubstring("3 of the 3 nodes that the profile governs are no longer selected (epyc-1, xeon-1, xeon-2)"))
	Expect(degraded.Message).To(ContainSubstring("set spec.rollout.maximumReleasedNodes to 3 to let them go"))
	s.expectUnmoved(ctx, logs, plans)
	s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonReleaseHeld)
	s.expectCondition(ctx, "trading", v1alpha1.ConditionDeJittered, metav1.ConditionTrue, v1alpha1.ReasonVerified)
	Expect(s.ownObjects(ctx)).To(ConsistOf(objects))

	By("correcting the selector, which moves nothing")
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": "trading"}
	})
	s.expectReady(ctx, "trading")
	s.expectUnmoved(ctx, logs, plans)

	By("taking the label from all nodes, and consenting")
	many := intstr.FromInt32(10)
	s.setWorkerLimit(ctx, &many)
	DeferCleanup(func(ctx SpecContext) { s.setWorkerLimit(ctx, nil) })
	resume := s.reboots.stop()
	DeferCleanup(resume)
	for _, name := range names {
		s.relabel(ctx, name, map[string]string{"role": ""})
	}
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Rollout.MaximumReleasedNodes = new(int32(3)) })
	s.expectOneDown(ctx)
	progressing := s.expectCondition(ctx, "trading", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonReleasing)
	Expect(progressing.Message).To(ContainSubstring("3 nodes that spec.nodeSelector no longer selects are being released"))
	resume()
	s.eventually(ctx, func(g Gomega) {
		for _, name := range names {
			g.Expect(s.node(ctx, name).Annotations[currentConfig]).To(HavePrefix("rendered-worker-"))
			g.Expect(client.IgnoreNotFound(s.client.Get(ctx, client.ObjectKey{Name: name}, &v1alpha1.LowLatencyNode{}))).To(Succeed())
		}
		g.Expect(s.managedPools(ctx)).To(BeEmpty())
	})
	s.expectReboots(names...)
	s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNoNodes)
	s.expectCondition(ctx, "trading", v1alpha1.ConditionDeJittered, metav1.ConditionUnknown, v1alpha1.ReasonNoNodes)
}

func (s *suite) keepsNodesAvailable(ctx SpecContext) {
	s.addNodes(ctx, "alpha", "xeon-1", "epyc-1")
	s.addNodes(ctx, "beta", "xeon-2")
	for _, name := range []string{"alpha", "beta"} {
		s.addProfile(ctx, name, name, oneAtATime)
		s.expectReady(ctx, name)
	}
	s.reboots.reset()
	resume := s.reboots.stop()
	DeferCleanup(resume)
	for _, name := range []string{"alpha", "beta"} {
		s.changeProfile(ctx, name, withAudit)
	}
	s.expectOneDown(ctx)
	resume()
	for _, name := range []string{"alpha", "beta"} {
		s.expectReady(ctx, name)
	}
	s.expectReboots("xeon-1", "epyc-1", "xeon-2")
}
