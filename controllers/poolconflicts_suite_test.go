// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// sparePort is a NIC of the simulated Xeon that pools of Solarflare NICs do not select.
const sparePort = "0000:18:00.1"

func describePoolConflicts(s *suite) {
	Describe("a BypassNICPool that claims what another one has", func() {
		BeforeEach(func(ctx SpecContext) {
			s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
			s.addProfile(ctx, "trading", "trading", gated)
			s.addPool(ctx, "x2", "trading", withHugepages)
			s.eventuallyServed(ctx, func(g Gomega) {
				s.expectOfPool(ctx, g, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
				s.expectUntouched(ctx, g, 4)
			})
			s.reboots.reset()
		})

		It("gets nothing of it, and no node is touched until it has gone again", s.refusesNewcomers)

		It("gets nothing of it though it is the older one, and on the nodes in question only", s.refusesGrowth)
	})
}

func withHugepages(pool *v1alpha1.BypassNICPool) {
	pool.Spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}}
}

func withNICs(addresses ...v1alpha1.PCIAddress) func(*v1alpha1.BypassNICPool) {
	return func(pool *v1alpha1.BypassNICPool) { pool.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: addresses}} }
}

// eventuallyServed lets agents, device plugins and kubelets work until the assertion holds.
func (s *suite) eventuallyServed(ctx context.Context, assertion func(Gomega)) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		s.playPlugins(ctx, g)
		assertion(g)
	})
}

// playPlugins lets the agent of every node report the NICs of its pools, and its kubelet advertise them, as the pools'
// ConfigMaps say: a NIC that the pool has is healthy, and another one must not be handed out.
func (s *suite) playPlugins(ctx context.Context, g Gomega) {
	var reports v1alpha1.LowLatencyNodeList
	g.Expect(s.client.List(ctx, &reports)).To(Succeed())
	hardware, err := topology.FromInventory(s.xeon)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range reports.Items {
		report := &reports.Items[i]
		before := report.DeepCopy()
		report.Status.BypassNICs = nil
		units := corev1.ResourceList{}
		for _, name := range report.Spec.BypassPools {
			pool := s.poolFile(ctx, g, controllers.DefaultAgentNamespace, name)
			nics := poolNICs(&pool, report.Name, hardware.NICs)
			report.Status.BypassNICs = append(report.Status.BypassNICs, nics...)
			if pool.ResourceOwner == "" {
				units[corev1.ResourceName(pool.Spec.ResourceName)] = *resource.NewQuantity(int64(len(pool.ClaimOn(report.Name, hardware.NICs).NICs)), resource.DecimalSI)
			}
		}
		s.writeReport(ctx, before, report)
		s.advertise(ctx, g, report.Name, units)
	}
}

// poolNICs is what an agent reports of the NICs of a pool.
func poolNICs(pool *bypass.Pool, node string, all []topology.NIC) []v1alpha1.NodeBypassNIC {
	claim := pool.ClaimOn(node, all)
	selected := topology.SelectNICs(pool.Spec.NICs, all)
	nics := make([]v1alpha1.NodeBypassNIC, 0, len(selected))
	for _, found := range selected {
		nic := healthyNIC(found.PCIAddress)
		if !slices.ContainsFunc(claim.NICs, func(own topology.NIC) bool { return own.PCIAddress == found.PCIAddress }) {
			nic.Health, nic.Units, nic.Reasons = v1alpha1.NICIneligible, 0, []string{"It belongs to another pool."}
		}
		nic.Pool, nic.PoolGeneration = pool.Name, pool.Generation
		nics = append(nics, nic)
	}
	return nics
}

// advertise plays a kubelet that is ready and has registered device plugins.
func (s *suite) advertise(ctx context.Context, g Gomega, name string, units corev1.ResourceList) {
	node := &corev1.Node{}
	g.Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.Capacity, node.Status.Allocatable = units, units
	if !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }) {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
	}
	g.Expect(s.client.Status().Patch(ctx, node, client.StrategicMergeFrom(before))).To(Succeed())
}

// expectOfPool wants a condition of a pool for its current spec.
func (s *suite) expectOfPool(ctx context.Context, g Gomega, name, kind string, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	pool := s.pool(ctx, name)
	found := meta.FindStatusCondition(pool.Status.Conditions, kind)
	g.Expect(found).NotTo(BeNil())
	g.Expect([]any{found.Status, found.Reason, found.ObservedGeneration}).To(Equal([]any{status, reason, pool.Generation}),
		"%s: %v", name, conditionsOf(pool.Status.Conditions))
}

// expectUntouched wants pool x2 to have its healthy NICs, and no node to have the taint.
func (s *suite) expectUntouched(ctx context.Context, g Gomega, healthy int32) {
	GinkgoHelper()
	pool := s.pool(ctx, "x2")
	g.Expect(pool.Status.NICs).NotTo(BeNil())
	g.Expect(pool.Status.NICs.Healthy).To(Equal(healthy))
	s.expectOfPool(ctx, g, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
	var nodes corev1.NodeList
	g.Expect(s.client.List(ctx, &nodes)).To(Succeed())
	for i := range nodes.Items {
		g.Expect(nodes.Items[i].Spec.Taints).NotTo(ContainElement(unverified()), nodes.Items[i].Name)
	}
}

// expectStill wants nodes and pool x2 to stay as they are.
func (s *suite) expectStill(ctx context.Context, healthy int32) {
	GinkgoHelper()
	Consistently(func(g Gomega) {
		s.playAgents(ctx)
		s.playPlugins(ctx, g)
		s.expectUntouched(ctx, g, healthy)
	}, 2*time.Second, pause).Should(Succeed())
	for _, node := range []string{"xeon-1", "xeon-2"} {
		Expect(s.reboots.of(node)).To(BeZero(), "reboots of %s", node)
	}
}

func (s *suite) refusesNewcomers(ctx SpecContext) {
	shape := s.profile(ctx, "trading").Status.Shapes[0].Hash
	s.addPool(ctx, "all", "trading", withHugepages)
	s.addPool(ctx, "first", "trading", withHugepages, withNICs(firstPort))
	s.addPool(ctx, "namesake", "trading", withHugepages, withNICs(sparePort), func(pool *v1alpha1.BypassNICPool) {
		pool.Spec.ResourceName = string(resourceX2)
	})
	s.eventuallyServed(ctx, func(g Gomega) {
		for _, newcomer := range []string{"all", "first", "namesake"} {
			s.expectOfPool(ctx, g, newcomer, v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNICClaimConflict)
			s.expectOfPool(ctx, g, newcomer, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNICClaimConflict)
			g.Expect(s.pool(ctx, newcomer).Status.Findings[0].ConflictingPools).To(Equal([]string{"x2"}))
		}
		s.expectOfPool(ctx, g, "x2", v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonNICClaimConflict)
		told := meta.FindStatusCondition(s.profile(ctx, "trading").Status.Conditions, v1alpha1.ConditionDegraded)
		g.Expect([]any{told.Status, told.Reason}).To(Equal([]any{metav1.ConditionFalse, v1alpha1.ReasonNICClaimConflict}), told.Message)
	})
	Expect(s.profile(ctx, "trading").Status.Shapes).To(HaveLen(1))
	Expect(s.profile(ctx, "trading").Status.Shapes[0].Hash).To(Equal(shape))
	Expect(s.objectsOfPools(ctx)).NotTo(ContainElement(HaveSuffix("DaemonSet "+controllers.DefaultAgentNamespace+"/bypass-namesake")),
		"its device plugin would register in the place of the other one")
	s.expectStill(ctx, 4)

	By("deleting the mistakes")
	for _, newcomer := range []string{"all", "first", "namesake"} {
		Expect(s.client.Delete(ctx, s.pool(ctx, newcomer))).To(Succeed())
	}
	s.eventuallyServed(ctx, func(g Gomega) {
		s.expectOfPool(ctx, g, "x2", v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
		told := meta.FindStatusCondition(s.profile(ctx, "trading").Status.Conditions, v1alpha1.ConditionDegraded)
		g.Expect([]any{told.Status, told.Reason}).To(Equal([]any{metav1.ConditionFalse, v1alpha1.ReasonAsExpected}), told.Message)
	})
	s.expectStill(ctx, 4)
}

func (s *suite) refusesGrowth(ctx SpecContext) {
	s.addPool(ctx, "spare", "trading", withNICs(sparePort), func(pool *v1alpha1.BypassNICPool) {
		pool.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"spare": "yes"}
	})
	s.relabel(ctx, "xeon-2", map[string]string{"spare": "yes"})
	s.eventuallyServed(ctx, func(g Gomega) {
		s.expectOfPool(ctx, g, "spare", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
		s.expectUntouched(ctx, g, 4)
	})
	s.reboots.reset()
	shapes := s.profile(ctx, "trading").Status.Shapes
	s.changePool(ctx, func(pool *v1alpha1.BypassNICPool) {
		pool.Spec.Hugepages = nil
		pool.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{firstPort, secondPort, sparePort}}}
	})
	s.eventuallyServed(ctx, func(g Gomega) {
		s.expectOfPool(ctx, g, "spare", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
		s.expectOfPool(ctx, g, "spare", v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonNICClaimConflict)
		s.expectOfPool(ctx, g, "x2", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNICClaimConflict)
		findings := s.pool(ctx, "x2").Status.Findings
		g.Expect(findings).To(ConsistOf(And(HaveField("Node", "xeon-2"), HaveField("PCIAddress", sparePort), HaveField("ConflictingPools", []string{"spare"}))))
		report := &v1alpha1.LowLatencyNode{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-2"}, report)).To(Succeed())
		g.Expect(report.Spec.BypassNICs).To(ContainElement(v1alpha1.BypassNICClaim{PCIAddress: sparePort, Pool: "spare"}))
		g.Expect(s.profile(ctx, "trading").Status.Shapes).NotTo(Equal(shapes))
		g.Expect(s.pool(ctx, "x2").Status.NICs.Healthy).To(BeEquivalentTo(5), "it has the NIC of xeon-1, which nobody else claims")
	})
}
