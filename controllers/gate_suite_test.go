// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// joiner is the node that joins.
const joiner = "xeon-1"

const resourceX2 = corev1.ResourceName("lowlatency.dev/x2")

func describeGate(s *suite) {
	Describe("the gate", func() {
		It("keeps the taint of a node that joins with it until it is verified", s.keepsTaint)

		It("opens only after the device plugin advertises, and closes with the next boot", s.waitsForPlugin)

		It("waits for device plugins where a pool says so and the profile only reports", s.startsTainted)

		It("stays closed after a failure until the node has settled, and opens by itself", s.settles)

		It("trusts a verified node while facts are missing for a moment, and no longer", s.trusts)
	})
}

func gated(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Verification.Gate = v1alpha1.GateTaint }

// join creates a node in boot b1, as a kubelet does that was told to register with the taint.
func (s *suite) join(ctx context.Context) {
	GinkgoHelper()
	Expect(s.client.Create(ctx, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: joiner, Labels: map[string]string{"node-role.kubernetes.io/worker": "", "role": "trading"},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{unverified()}},
	})).To(Succeed())
	s.kubeletSays(ctx, "b1", corev1.ConditionTrue, "0")
}

// kubeletSays writes the status of a node: its boot, whether it is ready, and how many units of x2 are allocatable.
func (s *suite) kubeletSays(ctx context.Context, boot string, ready corev1.ConditionStatus, units string) {
	GinkgoHelper()
	node := s.node(ctx, joiner)
	before := node.DeepCopy()
	node.Status.NodeInfo.BootID = boot
	node.Status.Allocatable = corev1.ResourceList{resourceX2: resource.MustParse(units)}
	node.Status.Capacity = node.Status.Allocatable
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.Now()})
	Expect(s.client.Status().Patch(ctx, node, client.StrategicMergeFrom(before))).To(Succeed())
}

// taintLog notes each time the taint of a node comes or goes, from the node's creation on.
type taintLog struct {
	mutex sync.Mutex
	seen  []string
}

func (s *suite) watchTaint() *taintLog {
	GinkgoHelper()
	return s.watchTaintOf(joiner)
}

// watchTaintOf notes the taint of the node of the given name.
func (s *suite) watchTaintOf(name string) *taintLog {
	GinkgoHelper()
	ctx, stop := context.WithCancel(context.Background())
	log := &taintLog{}
	stream, err := s.client.Watch(ctx, &corev1.NodeList{}, &client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name)})
	Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		for event := range stream.ResultChan() {
			if node, ok := event.Object.(*corev1.Node); ok {
				log.note(node)
			}
		}
	})
	DeferCleanup(func() {
		stop()
		stream.Stop()
		running.Wait()
	})
	return log
}

func (l *taintLog) note(node *corev1.Node) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	state := "open"
	if slices.Contains(node.Spec.Taints, unverified()) {
		state = "closed"
	}
	l.seen = slices.Compact(append(l.seen, state))
}

// states are those that the node has been in, in order.
func (l *taintLog) states() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Clone(l.seen)
}

// expect waits until the log has these states and no other. The log is a watch of its own, which may lag behind what a read of
// the node has shown, and misses nothing: a taint that came and went stays in it.
func (l *taintLog) expect(states ...string) {
	GinkgoHelper()
	Eventually(l.states, waitTimeout, pause).Should(Equal(states))
}

// expectStill is expect, and for some time no other state follows.
func (l *taintLog) expectStill(states ...string) {
	GinkgoHelper()
	l.expect(states...)
	Consistently(l.states, 2*time.Second, pause).Should(Equal(states))
}

// expectGate waits, without any word of an agent, until the node has the taint or not, with the reason in its condition.
func (s *suite) expectGate(ctx context.Context, reason string, tainted bool) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		node := s.node(ctx, joiner)
		g.Expect(node.Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.NodeConditionType(v1alpha1.NodeConditionReady)), HaveField("Reason", reason))))
		g.Expect(slices.Contains(node.Spec.Taints, unverified())).To(Equal(tainted))
	}, waitTimeout, pause).Should(Succeed())
}

func (s *suite) keepsTaint(ctx SpecContext) {
	log := s.watchTaint()
	s.addProfile(ctx, "trading", "trading", gated)
	s.join(ctx)
	s.expectGate(ctx, v1alpha1.ReasonAwaitingInventory, true)
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
	log.expect("closed", "open") // at no moment before could a pod be sent there

	By("rebooting: what was proven before proves nothing")
	s.kubeletSays(ctx, "b2", corev1.ConditionTrue, "0")
	s.expectGate(ctx, v1alpha1.ReasonAwaitingVerification, true)
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)

	By("failing")
	s.find(ctx, joiner, strayInterrupt)
	s.expectGate(ctx, v1alpha1.ReasonChecksFailed, true)
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.events(ctx, joiner)).To(ContainElement("GateClosed: pods without a toleration of lowlatency.dev/unverified " +
			"are kept away, those that run are left alone: DeJittered is False: " + strayInterrupt))
	})

	By("deleting the profile")
	Expect(s.client.Delete(ctx, s.profile(ctx, "trading"))).To(Succeed())
	s.eventually(ctx, func(g Gomega) {
		node := s.node(ctx, joiner)
		g.Expect(node.Spec.Taints).NotTo(ContainElement(unverified()))
		g.Expect(node.Annotations).NotTo(HaveKey(v1alpha1.AnnotationStarted))
	})
}

func (s *suite) waitsForPlugin(ctx SpecContext) {
	log := s.watchTaint()
	s.addProfile(ctx, "trading", "trading", gated)
	s.addPool(ctx, "x2", "trading")
	s.join(ctx)
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonAwaitingPlugins, true)
	s.agentReportsNICs(ctx, joiner, "x2", healthyNIC(firstPort), healthyNIC(secondPort))
	s.kubeletSays(ctx, "b1", corev1.ConditionTrue, "1")
	log.expectStill("closed") // one of two units is not all
	s.kubeletSays(ctx, "b1", corev1.ConditionTrue, "2")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)

	By("losing a unit, which the scheduler sees by itself")
	s.kubeletSays(ctx, "b1", corev1.ConditionTrue, "1")
	log.expectStill("closed", "open")

	By("rebooting: the kubelet goes, and comes back before its plugin")
	s.kubeletSays(ctx, "b1", corev1.ConditionUnknown, "2")
	s.expectGate(ctx, v1alpha1.ReasonNodeNotReady, true)
	s.kubeletSays(ctx, "b2", corev1.ConditionTrue, "0")
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonAwaitingPlugins, true)
	log.expect("closed", "open", "closed")
	s.kubeletSays(ctx, "b2", corev1.ConditionTrue, "2")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
	log.expect("closed", "open", "closed", "open")
	Expect(s.node(ctx, joiner).Annotations).To(HaveKeyWithValue(v1alpha1.AnnotationStarted, "b2"))
}

func (s *suite) startsTainted(ctx SpecContext) {
	s.addProfile(ctx, "trading", "trading")
	s.addPool(ctx, "x2", "trading", func(pool *v1alpha1.BypassNICPool) { pool.Spec.Startup = v1alpha1.StartupTaint })
	s.join(ctx)
	s.agentReportsNICs(ctx, joiner, "x2", healthyNIC(firstPort))
	s.find(ctx, joiner, strayInterrupt)
	s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, joiner).Spec.Taints).To(ContainElement(unverified())) })
	s.kubeletSays(ctx, "b1", corev1.ConditionTrue, "1")
	// The profile only reports: what the checks say keeps no pod away.
	s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, joiner).Spec.Taints).NotTo(ContainElement(unverified())) })
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.events(ctx, joiner)).To(ContainElement("GateOpened: the device plugins of the node advertise"))
	})

	By("rebooting, as fast as only the boot tells")
	s.kubeletSays(ctx, "b2", corev1.ConditionTrue, "0")
	Eventually(func(g Gomega) {
		g.Expect(s.node(ctx, joiner).Spec.Taints).To(ContainElement(unverified()))
	}, waitTimeout, pause).Should(Succeed())

	By("asking for it no longer")
	s.changePool(ctx, func(pool *v1alpha1.BypassNICPool) { pool.Spec.Startup = v1alpha1.StartupAsProfile })
	s.eventually(ctx, func(g Gomega) { g.Expect(s.node(ctx, joiner).Spec.Taints).NotTo(ContainElement(unverified())) })
}

// change is a transition some time ago.
func change(ago time.Duration, from, to metav1.ConditionStatus, reason string) v1alpha1.NodeTransition {
	return v1alpha1.NodeTransition{
		Time: metav1.NewTime(time.Now().Add(-ago)), Condition: v1alpha1.ConditionDeJittered, From: from, To: to, Reason: reason, BootID: "b1",
	}
}

// record lets the agent of a node have seen DeJittered change, the latest first, and end as the latest says.
func (s *suite) record(ctx context.Context, changes ...v1alpha1.NodeTransition) {
	GinkgoHelper()
	report := &v1alpha1.LowLatencyNode{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: joiner}, report)).To(Succeed())
	before := report.DeepCopy()
	for i := range changes {
		changes[i].PlanHash = report.Spec.PlanHash
	}
	report.Status.Transitions = changes
	meta.SetStatusCondition(&report.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionDeJittered, Status: changes[0].To, Reason: changes[0].Reason, Message: strayInterrupt,
	})
	Expect(s.client.Status().Patch(ctx, report, client.MergeFrom(before))).To(Succeed())
}

func (s *suite) settles(ctx SpecContext) {
	s.addProfile(ctx, "trading", "trading", gated)
	s.join(ctx)
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
	failed := change(50*time.Second, metav1.ConditionTrue, metav1.ConditionFalse, v1alpha1.ReasonChecksFailed)
	mended := change(20*time.Second, metav1.ConditionFalse, metav1.ConditionTrue, v1alpha1.ReasonVerified)
	s.record(ctx, mended, failed)
	s.expectGate(ctx, v1alpha1.ReasonSettling, true)

	By("starting the operator again")
	again, stop := context.WithCancel(context.Background())
	var processes sync.WaitGroup
	requests := newRequestCounter()
	s.startManager(again, &processes, requests)
	Eventually(requests.watches("/api/v1/nodes"), waitTimeout, pause).Should(BeTrue())
	Consistently(func(g Gomega) { g.Expect(s.node(ctx, joiner).Spec.Taints).To(ContainElement(unverified())) }, 3*time.Second, pause).Should(Succeed())
	stop()
	processes.Wait()

	By("waiting, with nothing happening but time")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)

	By("failing for the second time within an hour")
	failedAgain := change(100*time.Second, metav1.ConditionTrue, metav1.ConditionFalse, v1alpha1.ReasonChecksFailed)
	mendedAgain := change(80*time.Second, metav1.ConditionFalse, metav1.ConditionTrue, v1alpha1.ReasonVerified)
	mended.Time, failed.Time = metav1.NewTime(time.Now().Add(-50*time.Minute)), metav1.NewTime(time.Now().Add(-51*time.Minute))
	s.record(ctx, mendedAgain, failedAgain, mended, failed)
	s.expectGate(ctx, v1alpha1.ReasonSettling, true)
}

func (s *suite) trusts(ctx SpecContext) {
	log := s.watchTaint()
	s.addProfile(ctx, "trading", "trading", gated)
	s.join(ctx)
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
	proven := change(time.Hour, metav1.ConditionUnknown, metav1.ConditionTrue, v1alpha1.ReasonVerified)
	lost := change(110*time.Second, metav1.ConditionTrue, metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown)
	s.record(ctx, lost, proven)
	Eventually(func(g Gomega) {
		g.Expect(s.node(ctx, joiner).Status.Conditions).To(ContainElements(
			nodeCondition(v1alpha1.NodeConditionDeJittered, corev1.ConditionUnknown),
			And(nodeCondition(v1alpha1.NodeConditionReady, corev1.ConditionTrue), HaveField("Message", ContainSubstring("is trusted until"))),
		))
	}, waitTimeout, pause).Should(Succeed())
	log.expect("closed", "open")
	s.expectGate(ctx, v1alpha1.ReasonChecksUnknown, true)
}
