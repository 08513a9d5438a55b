// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

const (
	// firstPort and secondPort are the Solarflare NICs of the simulated Xeon, on NUMA node 1.
	firstPort  = "0000:af:00.0"
	secondPort = "0000:af:00.1"
	// otherVersion is what an agent says about user files of another build.
	otherVersion = "/opt/onload/usr/lib64/libonload.so has version 9.0.2, but the module has 9.1.1: install Onload 9.1.1 below /opt/onload."
)

func describeBypassNICPools(s *suite) {
	Describe("a BypassNICPool", func() {
		BeforeEach(func(ctx SpecContext) {
			s.addNodes(ctx, "trading", "xeon-1", "xeon-2")
			s.addProfile(ctx, "trading", "trading")
			s.expectReady(ctx, "trading")
			s.reboots.reset()
		})

		It("runs its device plugin, and is ready when the agents have found healthy NICs", s.servesNICs)

		It("changes the plan of its nodes once, and gives the hugepages back when it goes", s.reservesHugepages)

		It("names a node that no profile governs, until one does", s.reportsUngovernedNodes)

		It("reports user files of another version, and that they were replaced", s.reportsVersions)

		It("makes network attachments where its spec says, and nowhere else", s.makesAttachments)

		It("runs its DRA driver instead, and drains it before the device plugin comes back", s.changesAllocation)

		It("brings back what somebody has changed or deleted", s.repairsObjects)

		It("costs one write for what one agent says, and nothing at rest", s.writesLittle)
	})
}

// addPool creates a pool of the Solarflare NICs on the nodes of a role.
func (s *suite) addPool(ctx context.Context, name, role string, change ...func(*v1alpha1.BypassNICPool)) {
	GinkgoHelper()
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pool.Spec = v1alpha1.BypassNICPoolSpec{
		NodeSelector: v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"role": v1alpha1.LabelValue(role)}},
		NICs:         []v1alpha1.NICSelector{{Vendor: "1924", Drivers: []v1alpha1.DriverName{"sfc"}}},
		Stack: v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
			UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
		}},
		ResourceName: "lowlatency.dev/" + name,
	}
	for _, c := range change {
		c(pool)
	}
	Expect(s.client.Create(ctx, pool)).To(Succeed())
}

func (s *suite) pool(ctx context.Context, name string) *v1alpha1.BypassNICPool {
	GinkgoHelper()
	pool := &v1alpha1.BypassNICPool{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, pool)).To(Succeed())
	return pool
}

// changePool changes the pool x2.
func (s *suite) changePool(ctx context.Context, change func(*v1alpha1.BypassNICPool)) {
	GinkgoHelper()
	pool := s.pool(ctx, "x2")
	before := pool.DeepCopy()
	change(pool)
	Expect(s.client.Patch(ctx, pool, client.MergeFrom(before))).To(Succeed())
}

// healthyNIC is what an agent says about a NIC that can be handed out.
func healthyNIC(address string) v1alpha1.NodeBypassNIC {
	return v1alpha1.NodeBypassNIC{
		PCIAddress: address, InterfaceName: "ens2f0np0", Model: "X2", NUMANode: new(int32(1)), Health: v1alpha1.NICHealthy,
		ModuleVersion: "9.1.1", UserVersion: "9.1.1", Units: 1,
	}
}

func unhealthyNIC(address, reason string) v1alpha1.NodeBypassNIC {
	nic := healthyNIC(address)
	nic.Health, nic.Reasons, nic.UserVersion = v1alpha1.NICUnhealthy, []string{reason}, "9.0.2"
	return nic
}

// reportNICs lets the agent of a node say something about the NICs of a pool, for its current spec, and the kubelet advertise
// those that are healthy.
func (s *suite) reportNICs(ctx context.Context, node, pool string, nics ...v1alpha1.NodeBypassNIC) {
	GinkgoHelper()
	s.agentReportsNICs(ctx, node, pool, nics...)
	if spec := s.pool(ctx, pool).Spec; bypass.Allocation(&spec) == v1alpha1.AllocationDevicePlugin {
		s.allocates(ctx, node, corev1.ResourceName(spec.ResourceName), int64(len(slices.DeleteFunc(slices.Clone(nics),
			func(nic v1alpha1.NodeBypassNIC) bool { return nic.Health != v1alpha1.NICHealthy }))))
	}
}

// agentReportsNICs lets the agent alone speak: what the kubelet advertises stays as it is.
func (s *suite) agentReportsNICs(ctx context.Context, node, pool string, nics ...v1alpha1.NodeBypassNIC) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		report := &v1alpha1.LowLatencyNode{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Name: node}, report)).To(Succeed())
		g.Expect(report.Spec.BypassPools).To(ContainElement(pool))
		before := report.DeepCopy()
		report.Status.BypassNICs = slices.DeleteFunc(report.Status.BypassNICs, func(nic v1alpha1.NodeBypassNIC) bool { return nic.Pool == pool })
		for _, nic := range nics {
			nic.Pool, nic.PoolGeneration = pool, s.pool(ctx, pool).Generation
			report.Status.BypassNICs = append(report.Status.BypassNICs, nic)
		}
		g.Expect(s.client.Status().Patch(ctx, report, client.MergeFrom(before))).To(Succeed())
	})
}

// allocates plays a kubelet that lets the scheduler hand out units of a device plugin.
func (s *suite) allocates(ctx context.Context, name string, of corev1.ResourceName, units int64) {
	GinkgoHelper()
	node := s.node(ctx, name)
	before := node.DeepCopy()
	node.Status.Allocatable = corev1.ResourceList{of: *resource.NewQuantity(units, resource.DecimalSI)}
	Expect(s.client.Status().Patch(ctx, node, client.StrategicMergeFrom(before))).To(Succeed())
}

// expectPool lets the agents work until a condition of the pool has the status and the reason.
func (s *suite) expectPool(ctx context.Context, name, kind string, status metav1.ConditionStatus, reason string) *v1alpha1.BypassNICPool {
	GinkgoHelper()
	var found *v1alpha1.BypassNICPool
	s.eventually(ctx, func(g Gomega) {
		found = s.pool(ctx, name)
		condition := meta.FindStatusCondition(found.Status.Conditions, kind)
		g.Expect(condition).NotTo(BeNil())
		g.Expect([]any{condition.Status, condition.Reason, condition.ObservedGeneration}).
			To(Equal([]any{status, reason, found.Generation}), "%v", conditionsOf(found.Status.Conditions))
	})
	return found
}

// poolKinds are the kinds of the objects that are made for pools.
func poolKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"},
		resourcev1.SchemeGroupVersion.WithKind("DeviceClass"),
	}
}

func (s *suite) listObjectsOfPools(ctx context.Context) []unstructured.Unstructured {
	GinkgoHelper()
	kinds := poolKinds()
	objects := make([]unstructured.Unstructured, 0, len(kinds))
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		Expect(s.client.List(ctx, list, client.HasLabels{v1alpha1.LabelBypassPool})).To(Succeed())
		objects = append(objects, list.Items...)
	}
	return objects
}

// objectsOfPools are the objects that were made for pools, as "Kind namespace/name".
func (s *suite) objectsOfPools(ctx context.Context) []string {
	GinkgoHelper()
	objects := s.listObjectsOfPools(ctx)
	names := make([]string, 0, len(objects))
	for _, object := range objects {
		names = append(names, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
	}
	return names
}

// collectObjectsOfPools deletes the objects whose owner is gone.
func (s *suite) collectObjectsOfPools(ctx context.Context) {
	GinkgoHelper()
	var pools v1alpha1.BypassNICPoolList
	Expect(s.client.List(ctx, &pools)).To(Succeed())
	for _, object := range s.listObjectsOfPools(ctx) {
		owned := slices.ContainsFunc(pools.Items, func(pool v1alpha1.BypassNICPool) bool {
			return object.GetOwnerReferences()[0].UID == pool.UID
		})
		if !owned {
			Expect(s.client.Delete(ctx, &object)).To(Succeed())
		}
	}
}

// poolFile is what the nodes are told about a pool, from one of its ConfigMaps.
func (s *suite) poolFile(ctx context.Context, g Gomega, namespace, name string) bypass.Pool {
	config := &corev1.ConfigMap{}
	g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "bypass-" + name}, config)).To(Succeed())
	pool, err := bypass.ParsePool([]byte(config.Data[v1alpha1.PoolKey]))
	g.Expect(err).NotTo(HaveOccurred())
	return pool
}

func (s *suite) servesNICs(ctx SpecContext) {
	s.addPool(ctx, "x2", "trading")
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.objectsOfPools(ctx)).To(ConsistOf(
			"ConfigMap "+namespace+"/bypass-x2", "ConfigMap "+controllers.DefaultAgentNamespace+"/bypass-x2",
			"DaemonSet "+controllers.DefaultAgentNamespace+"/bypass-x2"))
	})
	for _, where := range []string{namespace, controllers.DefaultAgentNamespace} {
		told := s.poolFile(ctx, Default, where, "x2")
		Expect(told.Name).To(Equal("x2"))
		Expect(told.Generation).To(Equal(s.pool(ctx, "x2").Generation))
		Expect(told.Spec).To(Equal(s.pool(ctx, "x2").Spec))
		Expect(told.OtherPools).To(BeEmpty())
	}
	daemonSet := &appsv1.DaemonSet{}
	Expect(s.client.Get(ctx, client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "bypass-x2"}, daemonSet)).To(Succeed())
	Expect(daemonSet.Spec.Template.Spec.Containers[0].Image).To(Equal(image))

	waiting := s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingNodes)
	Expect(*waiting.Status.Nodes).To(Equal(v1alpha1.PoolNodeCounts{Matched: 2}))
	s.reportNICs(ctx, "xeon-1", "x2", healthyNIC(firstPort), healthyNIC(secondPort))
	held := healthyNIC(firstPort)
	held.Users = []v1alpha1.NICUser{{
		Namespace: applications, Pod: "feed", Container: "handler", Alignment: v1alpha1.AlignmentSplit,
		Message: "CPU 4 is on NUMA node 0.",
	}}
	s.reportNICs(ctx, "xeon-2", "x2", held)
	ready := s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
	Expect(*ready.Status.Nodes).To(Equal(v1alpha1.PoolNodeCounts{Matched: 2, Reporting: 2}))
	Expect(*ready.Status.NICs).To(Equal(v1alpha1.PoolNICCounts{Found: 3, Eligible: 3, Healthy: 3, Units: 3, Allocated: 1}))
	Expect(ready.Status.Members[1]).To(Equal(v1alpha1.PoolMember{Node: "xeon-2", NICs: []v1alpha1.PoolNIC{{
		PCIAddress: firstPort, NUMANode: new(int32(1)), Health: v1alpha1.NICHealthy, Units: 1, Allocated: 1,
	}}}))
	Expect(ready.Status.Findings).To(ConsistOf(And(HaveField("Node", "xeon-2"), HaveField("Message", ContainSubstring(
		"container handler of pod applications/feed holds NIC 0000:af:00.0 (ens2f0np0) on node xeon-2, but is split over NUMA nodes")))))
	Expect(meta.IsStatusConditionFalse(ready.Status.Conditions, v1alpha1.ConditionDegraded)).To(BeTrue())

	By("evaluating it again after a change of the spec")
	s.expectReady(ctx, "trading")
	s.reboots.reset()
	s.changePool(ctx, func(pool *v1alpha1.BypassNICPool) { pool.Spec.Stack.Onload.Version = "9.1.1" })
	s.expectPool(ctx, "x2", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonAwaitingNodes)
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.poolFile(ctx, g, namespace, "x2").Generation).To(Equal(int64(2)))
	})
	s.expectReady(ctx, "trading")
	Expect(s.reboots.of("xeon-1")).To(BeZero(), "nothing in the plan depends on the stack's version")
}

func (s *suite) reservesHugepages(ctx SpecContext) {
	before := s.profile(ctx, "trading").Status.Shapes[0].Hash
	s.addPool(ctx, "x2", "trading", func(pool *v1alpha1.BypassNICPool) {
		pool.Spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}}
	})
	s.eventually(ctx, func(g Gomega) {
		report := &v1alpha1.LowLatencyNode{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-1"}, report)).To(Succeed())
		g.Expect(report.Spec.BypassPools).To(Equal([]string{"x2"}))
		g.Expect(s.profile(ctx, "trading").Status.Shapes[0].Hash).NotTo(Equal(before))
	})
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1", "xeon-2")

	By("deleting it")
	s.reboots.reset()
	s.reportNICs(ctx, "xeon-1", "x2", healthyNIC(firstPort))
	Expect(s.client.Delete(ctx, s.pool(ctx, "x2"))).To(Succeed())
	s.eventually(ctx, func(g Gomega) {
		report := &v1alpha1.LowLatencyNode{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-1"}, report)).To(Succeed())
		g.Expect(report.Spec.BypassPools).To(BeEmpty())
		g.Expect(s.profile(ctx, "trading").Status.Shapes[0].Hash).To(Equal(before))
	})
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1", "xeon-2")
	s.collectObjectsOfPools(ctx)
	Consistently(func() []string { return s.objectsOfPools(ctx) }, 2*time.Second, pause).Should(BeEmpty())
}

func (s *suite) reportsUngovernedNodes(ctx SpecContext) {
	s.addNodes(ctx, "bare", "xeon-3")
	s.addPool(ctx, "bare", "bare")
	pool := s.expectPool(ctx, "bare", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodesUngoverned)
	Expect(pool.Status.Findings).To(Equal([]v1alpha1.PoolFinding{{
		Node: "xeon-3", Message: "no LowLatencyNodeProfile selects node xeon-3, so none of its NICs is handed out: " +
			"let spec.nodeSelector of a profile match the node, or create a profile for it",
	}}))

	By("creating a profile")
	s.addProfile(ctx, "bare", "bare")
	s.expectPool(ctx, "bare", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingNodes)
	s.reportNICs(ctx, "xeon-3", "bare", healthyNIC(firstPort))
	s.expectPool(ctx, "bare", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)

	By("relabelling the node")
	s.relabel(ctx, "xeon-3", map[string]string{"role": "none"})
	s.expectPool(ctx, "bare", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNoNodes)
}

func (s *suite) reportsVersions(ctx SpecContext) {
	s.addPool(ctx, "x2", "trading")
	s.reportNICs(ctx, "xeon-1", "x2", healthyNIC(firstPort))
	s.reportNICs(ctx, "xeon-2", "x2", unhealthyNIC(firstPort, otherVersion))
	broken := s.expectPool(ctx, "x2", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNICsUnhealthy)
	message := "NIC 0000:af:00.0 (ens2f0np0) on node xeon-2 is unhealthy: " + otherVersion
	Expect(meta.FindStatusCondition(broken.Status.Conditions, v1alpha1.ConditionReady).Message).To(Equal(message))
	Expect(broken.Status.Findings).To(Equal([]v1alpha1.PoolFinding{{Node: "xeon-2", PCIAddress: firstPort, Message: message}}))
	Expect(broken.Status.Members[0].Node).To(Equal("xeon-2"), "what is not healthy comes first")
	Expect(*broken.Status.NICs).To(Equal(v1alpha1.PoolNICCounts{Found: 2, Eligible: 2, Healthy: 1, Units: 1}))

	By("installing the right version")
	s.reportNICs(ctx, "xeon-2", "x2", healthyNIC(firstPort))
	mended := s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
	Expect(mended.Status.Findings).To(BeEmpty())
	Eventually(func(g Gomega) {
		var events eventsv1.EventList
		g.Expect(s.client.List(ctx, &events)).To(Succeed())
		var reasons []string
		for i := range events.Items {
			if regarding := events.Items[i].Regarding; regarding.Kind == "BypassNICPool" && regarding.UID == mended.UID {
				reasons = append(reasons, events.Items[i].Reason)
			}
		}
		g.Expect(reasons).To(ContainElements(v1alpha1.ReasonAwaitingNodes, v1alpha1.ReasonNICsUnhealthy, "Recovered", v1alpha1.ReasonNICsHealthy))
	}, waitTimeout, pause).Should(Succeed())
}

func (s *suite) makesAttachments(ctx SpecContext) {
	s.addPool(ctx, "x2", "trading", func(pool *v1alpha1.BypassNICPool) {
		pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{
			Type: v1alpha1.AttachmentHostDevice, Namespaces: []string{applications, "default"},
		}
	})
	attachment := func(namespace string) string { return "NetworkAttachmentDefinition " + namespace + "/x2" }
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.objectsOfPools(ctx)).To(ContainElements(attachment(applications), attachment("default")))
	})
	s.changePool(ctx, func(pool *v1alpha1.BypassNICPool) { pool.Spec.NetworkAttachment.Namespaces = []string{applications} })
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.objectsOfPools(ctx)).To(And(ContainElement(attachment(applications)), Not(ContainElement(attachment("default")))))
	})

	By("naming a namespace that does not exist")
	s.changePool(ctx, func(pool *v1alpha1.BypassNICPool) { pool.Spec.NetworkAttachment.Namespaces = []string{"missing"} })
	pool := s.expectPool(ctx, "x2", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonPlatformFailed)
	Expect(meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring(`namespaces "missing" not found`))
	s.changePool(ctx, func(pool *v1alpha1.BypassNICPool) { pool.Spec.NetworkAttachment = nil })
	s.expectPool(ctx, "x2", v1alpha1.ConditionDegraded, metav1.ConditionFalse, v1alpha1.ReasonAsExpected)
	Expect(s.objectsOfPools(ctx)).NotTo(ContainElement(HavePrefix("NetworkAttachmentDefinition")))
}

func (s *suite) changesAllocation(ctx SpecContext) {
	const class = "DeviceClass /x2.bypass.lowlatency.dev"
	s.addPool(ctx, "x2", "trading", func(pool *v1alpha1.BypassNICPool) { pool.Spec.Allocation = v1alpha1.AllocationDynamic })
	daemonSet := &appsv1.DaemonSet{}
	expectArguments := func(matcher gomegatypes.GomegaMatcher) {
		GinkgoHelper()
		s.eventually(ctx, func(g Gomega) {
			key := client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "bypass-x2"}
			g.Expect(s.client.Get(ctx, key, daemonSet)).To(Succeed())
			g.Expect(daemonSet.Spec.Template.Spec.Containers[0].Args).To(matcher)
		})
	}
	expectArguments(And(ContainElement("dra-driver"), Not(ContainElement("--drain"))))
	s.eventually(ctx, func(g Gomega) { g.Expect(s.objectsOfPools(ctx)).To(ContainElement(class)) })
	for _, node := range []string{"xeon-1", "xeon-2"} {
		s.reportNICs(ctx, node, "x2", healthyNIC(firstPort))
	}
	s.publishes(ctx, "xeon-1", "x2", 1)
	waiting := s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingPlugins)
	Expect(meta.FindStatusCondition(waiting.Status.Conditions, v1alpha1.ConditionReady).Message).To(ContainSubstring("ResourceSlices of node xeon-2 0 of 1 units"))
	s.publishes(ctx, "xeon-2", "x2", 1)
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)

	By("waiting with the name of the resource until the kubelet has forgotten the device plugin")
	expectName := func(matcher gomegatypes.GomegaMatcher) {
		GinkgoHelper()
		s.eventually(ctx, func(g Gomega) {
			made := &resourcev1.DeviceClass{}
			g.Expect(s.client.Get(ctx, client.ObjectKey{Name: "x2.bypass.lowlatency.dev"}, made)).To(Succeed())
			g.Expect(made.Spec.ExtendedResourceName).To(matcher)
		})
	}
	expectName(HaveValue(BeEquivalentTo(resourceX2)))
	s.counts(ctx, "xeon-2", "2")
	expectName(BeNil())
	s.expectPool(ctx, "x2", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonAllocationChanging)
	s.counts(ctx, "xeon-2", "0")
	expectName(HaveValue(BeEquivalentTo(resourceX2)))
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)

	By("changing to the device plugin while a pod holds a claim")
	held := healthyNIC(firstPort)
	held.Users = []v1alpha1.NICUser{{
		Namespace: "trading", Pod: "feed", Container: "main", Alignment: v1alpha1.AlignmentAligned, Allocation: v1alpha1.AllocationDynamic,
	}}
	s.changePool(ctx, func(pool *v1alpha1.BypassNICPool) { pool.Spec.Allocation = v1alpha1.AllocationDevicePlugin })
	expectArguments(ContainElement("--drain"))
	s.eventually(ctx, func(g Gomega) { g.Expect(s.objectsOfPools(ctx)).NotTo(ContainElement(class)) })
	daemonSet.Status.ObservedGeneration = daemonSet.Generation
	Expect(s.client.Status().Update(ctx, daemonSet)).To(Succeed())
	s.reportNICs(ctx, "xeon-1", "x2", held)
	s.reportNICs(ctx, "xeon-2", "x2", healthyNIC(firstPort))
	pool := s.expectPool(ctx, "x2", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonAllocationChanging)
	Expect(pool.Status.Findings).To(ContainElement(HaveField("Message", ContainSubstring("container main of pod trading/feed holds NIC"))))
	expectArguments(ContainElement("--drain"))

	By("ending the pod")
	s.reportNICs(ctx, "xeon-1", "x2", healthyNIC(firstPort))
	expectArguments(ContainElement("device-plugin"))
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
}

// publishes plays the DRA driver of a pool on a node.
func (s *suite) publishes(ctx context.Context, node, pool string, units int) {
	GinkgoHelper()
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node + "-" + pool},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: bypass.DriverName(pool), NodeName: new(node), Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range units {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("unit-%d", i)})
	}
	Expect(s.client.Create(ctx, slice)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(s.client.Delete(ctx, slice))).To(Succeed()) })
}

// counts plays a kubelet that is ready and counts units of a device plugin.
func (s *suite) counts(ctx context.Context, name, units string) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Status.Capacity = corev1.ResourceList{resourceX2: resource.MustParse(units)}
	node.Status.Conditions = slices.DeleteFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now(),
	})
	Expect(s.client.Status().Patch(ctx, node, client.StrategicMergeFrom(before))).To(Succeed())
}

func (s *suite) repairsObjects(ctx SpecContext) {
	s.addPool(ctx, "x2", "trading")
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonAwaitingNodes)
	key := client.ObjectKey{Namespace: controllers.DefaultAgentNamespace, Name: "bypass-x2"}
	daemonSet := &appsv1.DaemonSet{}
	Expect(s.client.Get(ctx, key, daemonSet)).To(Succeed())
	before := daemonSet.DeepCopy()
	daemonSet.Spec.Template.Spec.Containers[0].Image = "registry.example/another:v1"
	Expect(s.client.Patch(ctx, daemonSet, client.MergeFrom(before))).To(Succeed())
	Expect(s.client.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bypass-x2"}})).To(Succeed())
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.client.Get(ctx, key, daemonSet)).To(Succeed())
		g.Expect(daemonSet.Spec.Template.Spec.Containers[0].Image).To(Equal(image))
		g.Expect(s.poolFile(ctx, g, namespace, "x2").Name).To(Equal("x2"))
	})

	By("waiting for the pods of the device plugin")
	s.reportNICs(ctx, "xeon-1", "x2", healthyNIC(firstPort))
	s.reportNICs(ctx, "xeon-2", "x2", healthyNIC(firstPort))
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
	s.reportPlugins(ctx, key, 2, 1)
	starting := s.expectPool(ctx, "x2", v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonPluginsStarting)
	Expect(meta.FindStatusCondition(starting.Status.Conditions, v1alpha1.ConditionReady).Message).To(Equal("the device plugin runs on 1 of 2 nodes"))
	s.reportPlugins(ctx, key, 2, 2)
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
}

// reportPlugins plays the DaemonSet controller.
func (s *suite) reportPlugins(ctx context.Context, key client.ObjectKey, wanted, ready int32) {
	GinkgoHelper()
	daemonSet := &appsv1.DaemonSet{}
	Expect(s.client.Get(ctx, key, daemonSet)).To(Succeed())
	before := daemonSet.DeepCopy()
	daemonSet.Status.DesiredNumberScheduled, daemonSet.Status.NumberReady, daemonSet.Status.UpdatedNumberScheduled = wanted, ready, ready
	Expect(s.client.Status().Patch(ctx, daemonSet, client.MergeFrom(before))).To(Succeed())
}

func (s *suite) writesLittle(ctx SpecContext) {
	s.addPool(ctx, "x2", "trading")
	s.reportNICs(ctx, "xeon-1", "x2", healthyNIC(firstPort))
	s.reportNICs(ctx, "xeon-2", "x2", healthyNIC(firstPort))
	s.expectPool(ctx, "x2", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonNICsHealthy)
	s.expectReady(ctx, "trading")
	s.expectQuiet()
	s.requests.reset()
	// The kubelet would say something of its own, which may cost another write.
	s.agentReportsNICs(ctx, "xeon-2", "x2", unhealthyNIC(firstPort, otherVersion))
	s.expectPool(ctx, "x2", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonNICsUnhealthy)
	s.expectQuiet()
	Expect(s.requests.snapshot()).To(Equal(map[string]int{
		"PATCH /apis/lowlatency.dev/v1alpha1/bypassnicpools/x2/status": 1,
	}))
}
