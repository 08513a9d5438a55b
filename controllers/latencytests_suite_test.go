// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// tested is a node that a LatencyTest measures, without a profile.
const tested = "tested-1"

func describeLatencyTests(s *suite) {
	Describe("latency tests", func() {
		AfterEach(s.removeTests)

		It("measure a node with a Job, judge it, and measure it again under another kernel", s.measuresAndMeasuresAgain)

		It("believe no pod but that of their own Job", s.refusesForeignResults)

		It("measure the way between two nodes: the server first, its client when it is ready, and both go", s.measuresBetweenNodes)

		It("compare a pod with its host in turns, with one server, from Job to Job", s.comparesWithTheHost)

		It("compare stacks in turns, with a server of each side, from Job to Job", s.comparesStacks)

		It("follow a measurement to its end whose node is not Ready for a moment", s.outlastsTheKubelet)

		It("say that a node left while it was measured, and leave nothing behind", s.endsWithTheNode)
	})
}

// addTestedNode is a node in boot b1 of kernel 6.12, without a profile.
func (s *suite) addTestedNode(ctx context.Context) {
	GinkgoHelper()
	s.addNode(ctx, tested, "b1")
}

// addNode is a node in a boot of kernel 6.12.
func (s *suite) addNode(ctx context.Context, name, boot string) {
	GinkgoHelper()
	Expect(s.client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	s.boots(ctx, name, boot, "6.12")
}

// boots is what a kubelet writes after a boot.
func (s *suite) boots(ctx context.Context, name, boot, kernel string) {
	GinkgoHelper()
	node := s.node(ctx, name)
	before := node.DeepCopy()
	node.Status.NodeInfo.BootID, node.Status.NodeInfo.KernelVersion = boot, kernel
	Expect(s.client.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

func (s *suite) addTest(ctx context.Context, name string) {
	GinkgoHelper()
	test := &v1alpha1.LatencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: applications, Name: name},
		Spec: v1alpha1.LatencyTestSpec{
			Nodes: v1alpha1.LatencyTestNodes{Names: []string{tested}}, Kind: v1alpha1.LatencyTestJitter,
			Budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000},
		},
	}
	Expect(s.client.Create(ctx, test)).To(Succeed())
}

// result is what a test says of its only node.
func (s *suite) result(ctx context.Context, g Gomega, name string) *v1alpha1.LatencyTestResult {
	test := &v1alpha1.LatencyTest{}
	g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: name}, test)).To(Succeed())
	g.Expect(test.Status.Results).To(HaveLen(1))
	return &test.Status.Results[0]
}

// runningJob is the Job of test quiet that measures the node now, another one than the former.
func (s *suite) runningJob(ctx context.Context, former string) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{}
	Eventually(func(g Gomega) {
		result := s.result(ctx, g, "quiet")
		g.Expect(result.Activity).To(Equal(v1alpha1.LatencyRunning), result.Message)
		g.Expect(result.Job).NotTo(Equal(former))
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: result.Job}, job)).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
	return job
}

// leaves plays the Job controller and the kubelet: a pod of the Job ends and leaves a message.
func (s *suite) leaves(ctx context.Context, job *batchv1.Job, name, message string) {
	GinkgoHelper()
	s.leavesOn(ctx, tested, job, name, message)
}

// leavesOn is leaves on the node of the given name.
func (s *suite) leavesOn(ctx context.Context, node string, job *batchv1.Job, name, message string) {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: name, Labels: job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = node
	Expect(s.client.Create(ctx, pod)).To(Succeed())
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "measure", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: message}},
	}}
	Expect(s.client.Status().Update(ctx, pod)).To(Succeed())
}

// ends plays the Job controller.
func (s *suite) ends(ctx context.Context, job *batchv1.Job) {
	GinkgoHelper()
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = new(metav1.NewTime(now.Add(-time.Second))), &now, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	Expect(s.client.Status().Update(ctx, job)).To(Succeed())
}

// jitterRecord is what the program of a test leaves behind that has seen one interruption.
func jitterRecord(kernel, boot string, maximum int64) string {
	GinkgoHelper()
	record := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestJitter, Kernel: kernel, BootID: boot, CPUs: "2", WorstCPU: new(int32(2)),
		Interruptions: 1, MaximumNanoseconds: maximum, RepetitionMaximums: []int64{maximum},
	}
	for _, name := range qualification.Percentiles() {
		record.Percentiles = append(record.Percentiles, v1alpha1.LatencyPercentile{Percentile: name})
	}
	text, err := qualification.Encode(record)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func (s *suite) expectResult(ctx context.Context, outcome v1alpha1.LatencyOutcome, freshness v1alpha1.LatencyFreshness, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		result := s.result(ctx, g, "quiet")
		g.Expect(result.Outcome).To(Equal(outcome), result.Message)
		g.Expect(result.Freshness).To(Equal(freshness), result.Message)
		g.Expect(result.Reason).To(Equal(reason), result.Message)
	}, waitTimeout, pause).Should(Succeed())
}

func (s *suite) expectTest(ctx context.Context, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		test := &v1alpha1.LatencyTest{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: "quiet"}, test)).To(Succeed())
		ready := meta.FindStatusCondition(test.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Status).To(Equal(status), ready.Message)
		g.Expect(ready.Reason).To(Equal(reason), ready.Message)
	}, waitTimeout, pause).Should(Succeed())
}

func (s *suite) measuresAndMeasuresAgain(ctx SpecContext) {
	s.addTestedNode(ctx)
	s.addTest(ctx, "quiet")
	first := s.runningJob(ctx, "")
	s.leaves(ctx, first, "first", jitterRecord("6.12", "b1", 9_000))
	s.ends(ctx, first)
	s.expectResult(ctx, v1alpha1.LatencyPassed, v1alpha1.LatencyFresh, v1alpha1.TestWithinBudget)
	s.expectTest(ctx, metav1.ConditionTrue, v1alpha1.ReasonTestsPassed)

	s.boots(ctx, tested, "b2", "6.13")
	second := s.runningJob(ctx, first.Name)
	s.expectResult(ctx, v1alpha1.LatencyPassed, v1alpha1.LatencyStale, v1alpha1.TestWithinBudget)
	s.leaves(ctx, second, "second", jitterRecord("6.13", "b2", 11_000))
	s.ends(ctx, second)
	s.expectResult(ctx, v1alpha1.LatencyFailed, v1alpha1.LatencyFresh, v1alpha1.TestMaximumExceeded)
	s.expectTest(ctx, metav1.ConditionFalse, v1alpha1.ReasonTestsFailed)
}

// answering is another node, which runs servers.
const answering = "answering-1"

func (s *suite) measuresBetweenNodes(ctx SpecContext) {
	s.addTestedNode(ctx)
	s.addNode(ctx, answering, "b9")
	test := &v1alpha1.LatencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: applications, Name: "quiet"},
		Spec: v1alpha1.LatencyTestSpec{
			Nodes: v1alpha1.LatencyTestNodes{Names: []string{tested}}, Kind: v1alpha1.LatencyTestPingPong,
			Traffic: &v1alpha1.TestTraffic{
				Transport: v1alpha1.TransportTCP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{answering}},
			},
			PingPong: &v1alpha1.PingPongTest{Sizes: []int32{64}}, Budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000},
		},
	}
	Expect(s.client.Create(ctx, test)).To(Succeed())
	server := s.serverJob(ctx)
	Expect(server.OwnerReferences).To(ConsistOf(HaveField("UID", test.UID)), "the Job goes with its test")
	Expect(server.Spec.Template.Spec.Containers[0].Image).To(Equal("traffic:v1"))
	s.becomesReady(ctx, server, "10.0.0.9")
	measuring := s.measuringJob(ctx)
	Expect(measuring.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--server=10.0.0.9"))
	s.leaves(ctx, measuring, "client", pingPongRecord("6.12", "b1", 9_000))
	s.ends(ctx, measuring)
	s.expectResult(ctx, v1alpha1.LatencyPassed, v1alpha1.LatencyFresh, v1alpha1.TestWithinBudget)
	s.expectGone(ctx, server)
	Eventually(func(g Gomega) {
		measured := s.result(ctx, g, "quiet").Measured
		g.Expect(measured.Network.Server).To(Equal(answering))
		g.Expect(measured.Network.Sizes).To(ConsistOf(HaveField("Samples", int64(2000))))
		g.Expect(measured.Network.ServerCounts).To(Equal(countedAtServer()))
	}, waitTimeout, pause).Should(Succeed())

	// It is measured again, and the server vanishes with its node.
	s.forget(ctx, server)
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: "quiet"}, test)).To(Succeed())
		test.Spec.Run = 1
		g.Expect(s.client.Update(ctx, test)).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
	second := s.serverJob(ctx)
	Expect(second.Name).NotTo(Equal(server.Name))
	Expect(s.client.Delete(ctx, s.node(ctx, answering))).To(Succeed())
	s.expectGone(ctx, second)
	Eventually(func(g Gomega) {
		result := s.result(ctx, g, "quiet")
		g.Expect(result.Attempts).To(Equal(int32(1)), result.Message)
		g.Expect(result.Outcome).To(Equal(v1alpha1.LatencyPassed), "a run without a result takes nothing from a fresh one")
	}, waitTimeout, pause).Should(Succeed())
	Expect(s.client.Delete(ctx, s.node(ctx, tested))).To(Succeed())
}

func (s *suite) comparesWithTheHost(ctx SpecContext) {
	s.addTestedNode(ctx)
	s.addNode(ctx, answering, "b9")
	test := &v1alpha1.LatencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: applications, Name: "quiet"},
		Spec: v1alpha1.LatencyTestSpec{
			Nodes: v1alpha1.LatencyTestNodes{Names: []string{tested}}, Kind: v1alpha1.LatencyTestContainerVersusHost, Repetitions: 5,
			Traffic: &v1alpha1.TestTraffic{
				Transport: v1alpha1.TransportTCP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{answering}},
			},
			PingPong: &v1alpha1.PingPongTest{Sizes: []int32{64}},
			Budget:   &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 1050}}},
		},
	}
	elsewhere := test.DeepCopy()
	Expect(s.client.Create(ctx, elsewhere)).To(Succeed())
	s.expectTest(ctx, metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotPermitted)

	test.Namespace = controllers.DefaultAgentNamespace
	Expect(s.client.Create(ctx, test)).To(Succeed())
	key := client.ObjectKeyFromObject(test)
	server := &batchv1.Job{}
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, key, test)).To(Succeed())
		g.Expect(test.Status.Results).To(ConsistOf(HaveField("Server", Not(BeNil()))))
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: test.Status.Results[0].Server.Job}, server)).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
	s.becomesReady(ctx, server, "10.0.0.9")
	order := make([]bool, 0, 10)
	for run := range 10 {
		job := &batchv1.Job{}
		Eventually(func(g Gomega) {
			g.Expect(s.client.Get(ctx, key, test)).To(Succeed())
			g.Expect(test.Status.Results[0].ComparedRuns).To(Equal(int32(run)), test.Status.Results[0].Message)
			g.Expect(test.Status.Results[0].Server.Address).NotTo(BeEmpty())
			g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: test.Status.Results[0].Job}, job)).To(Succeed())
		}, waitTimeout, pause).Should(Succeed())
		isHost, median := job.Spec.Template.Spec.HostNetwork, int64(2000)
		if isHost {
			median = 1000
		}
		order = append(order, isHost)
		s.leaves(ctx, job, job.Name, comparedRecord(v1alpha1.LatencyTestContainerVersusHost, v1alpha1.LatencyPathKernel, median))
		s.ends(ctx, job)
	}
	Expect(order).To(Equal([]bool{false, true, true, false, false, true, true, false, false, true}))
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, key, test)).To(Succeed())
		g.Expect(test.Status.Results[0].Outcome).To(Equal(v1alpha1.LatencyFailed), test.Status.Results[0].Message)
		g.Expect(test.Status.Results[0].Reason).To(Equal(v1alpha1.TestRatio))
		g.Expect(test.Status.Results[0].Measured.Network.Comparison.Sides).To(HaveEach(HaveField("ServerCounts", countedAtServer())))
		g.Expect(test.Status.Results[0].Message).To(ContainSubstring("; on CPU 3 of the server the kernel counted Interrupt 9 sdb 60 a second"))
		g.Expect(test.Status.Results[0].Measured.Network.Comparison.Sides[0].Ratios).To(ConsistOf(v1alpha1.LatencyRatio{
			Bytes: 64, Percentile: v1alpha1.P50, PartsPerThousand: 2000, LowPartsPerThousand: 2000, HighPartsPerThousand: 2000,
		}))
	}, waitTimeout, pause).Should(Succeed())
	s.expectGone(ctx, server)
	Expect(s.client.Delete(ctx, s.node(ctx, answering))).To(Succeed())
	Expect(s.client.Delete(ctx, s.node(ctx, tested))).To(Succeed())
}

func (s *suite) comparesStacks(ctx SpecContext) {
	s.addTestedNode(ctx)
	s.addNode(ctx, answering, "b9")
	test := &v1alpha1.LatencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: applications, Name: "quiet"},
		Spec: v1alpha1.LatencyTestSpec{
			Nodes: v1alpha1.LatencyTestNodes{Names: []string{tested}}, Kind: v1alpha1.LatencyTestStackComparison, Repetitions: 5,
			Traffic: &v1alpha1.TestTraffic{
				Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{answering}},
			},
			StackComparison: &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
				{Name: "kernel", Path: v1alpha1.LatencyPathKernel},
				{
					Name: "onload", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: v1alpha1.TestEnd{BypassNICPool: "x2"}},
					Server: v1alpha1.StackServer{TestEnd: v1alpha1.TestEnd{BypassNICPool: "x2"}},
				},
			}},
			PingPong: &v1alpha1.PingPongTest{Sizes: []int32{64}},
			Budget:   &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 700}}},
		},
	}
	Expect(s.client.Create(ctx, test)).To(Succeed())
	key := client.ObjectKeyFromObject(test)
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, key, test)).To(Succeed())
		g.Expect(test.Status.Results).To(ConsistOf(HaveField("Message", "waits for BypassNICPool x2, which does not exist")))
	}, waitTimeout, pause).Should(Succeed())
	s.addPool(ctx, "x2", "nowhere")
	order, former := make([]string, 0, 10), ""
	for run := range 10 {
		server, job := s.serverOfRun(ctx, key, run), &batchv1.Job{}
		if server.Name != former {
			s.becomesReady(ctx, server, "10.0.0.9")
			former = server.Name
		}
		Eventually(func(g Gomega) {
			g.Expect(s.client.Get(ctx, key, test)).To(Succeed())
			g.Expect(test.Status.Results[0].Server.Address).NotTo(BeEmpty(), test.Status.Results[0].Message)
			g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: test.Namespace, Name: test.Status.Results[0].Job}, job)).To(Succeed())
		}, waitTimeout, pause).Should(Succeed())
		side, median, path := "kernel", int64(2000), v1alpha1.LatencyPathKernel
		if _, found := job.Spec.Template.Spec.Containers[0].Resources.Limits["lowlatency.dev/x2"]; found {
			side, median, path = "onload", 1000, v1alpha1.LatencyPathAccelerated
		}
		order = append(order, side)
		s.leaves(ctx, job, job.Name, comparedRecord(v1alpha1.LatencyTestStackComparison, path, median))
		s.ends(ctx, job)
		if run%2 == 0 {
			s.expectGone(ctx, server)
			s.forget(ctx, server)
		}
	}
	Expect(strings.Join(order, ",")).To(Equal("kernel,onload,onload,kernel,kernel,onload,onload,kernel,kernel,onload"))
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, key, test)).To(Succeed())
		g.Expect(test.Status.Results[0].Outcome).To(Equal(v1alpha1.LatencyPassed), test.Status.Results[0].Message)
		g.Expect(test.Status.Results[0].Measured.Network.Comparison.Sides[1].Ratios).To(ConsistOf(v1alpha1.LatencyRatio{
			Bytes: 64, Percentile: v1alpha1.P50, PartsPerThousand: 500, LowPartsPerThousand: 500, HighPartsPerThousand: 500,
		}))
	}, waitTimeout, pause).Should(Succeed())
	Expect(s.client.Delete(ctx, s.pool(ctx, "x2"))).To(Succeed())
	Expect(s.client.Delete(ctx, s.node(ctx, answering))).To(Succeed())
	Expect(s.client.Delete(ctx, s.node(ctx, tested))).To(Succeed())
}

// serverOfRun is the Job of the server that a run of a test measures with, once it is made.
func (s *suite) serverOfRun(ctx context.Context, key client.ObjectKey, run int) *batchv1.Job {
	GinkgoHelper()
	test, server := &v1alpha1.LatencyTest{}, &batchv1.Job{}
	Eventually(func(g Gomega) {
		g.Expect(s.client.Get(ctx, key, test)).To(Succeed())
		g.Expect(test.Status.Results).To(ConsistOf(HaveField("Server", Not(BeNil()))))
		g.Expect(test.Status.Results[0].ComparedRuns).To(Equal(int32(run)), test.Status.Results[0].Message)
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: test.Status.Results[0].Server.Job}, server)).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
	return server
}

// comparedRecord is what a measurement of a comparison leaves behind.
func comparedRecord(kind v1alpha1.LatencyTestKind, path v1alpha1.LatencyPath, median int64) string {
	GinkgoHelper()
	record := qualification.Record{}
	Expect(json.Unmarshal([]byte(pingPongRecord("6.12", "b1", 2*median)), &record)).To(Succeed())
	record.Kind, record.Network.Path = kind, path
	text, err := qualification.Encode(record)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// serverJob is the Job of the server of test quiet, whose client waits for it.
func (s *suite) serverJob(ctx context.Context) *batchv1.Job {
	GinkgoHelper()
	job := &batchv1.Job{}
	Eventually(func(g Gomega) {
		result := s.result(ctx, g, "quiet")
		g.Expect(result.Activity).To(Equal(v1alpha1.LatencyRunning), result.Message)
		g.Expect(result.Server).NotTo(BeNil())
		g.Expect(result.Server.Address).To(BeEmpty())
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: result.Server.Job}, job)).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
	return job
}

// measuringJob is the Job of the client of test quiet, which is made when its server is ready.
func (s *suite) measuringJob(ctx context.Context) *batchv1.Job {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(s.result(ctx, g, "quiet").Server).To(HaveField("Address", Not(BeEmpty())))
	}, waitTimeout, pause).Should(Succeed())
	return s.runningJob(ctx, "")
}

// becomesReady plays scheduler and kubelet: the pod of a server has started.
func (s *suite) becomesReady(ctx context.Context, job *batchv1.Job, address string) {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: job.Name, Labels: job.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = job.Annotations[v1alpha1.AnnotationNode]
	Expect(s.client.Create(ctx, pod)).To(Succeed())
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
	Expect(s.client.Status().Update(ctx, pod)).To(Succeed())
}

// expectGone waits until a Job is deleted, but for what the garbage collector does.
func (s *suite) expectGone(ctx context.Context, job *batchv1.Job) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		left := &batchv1.Job{}
		err := s.client.Get(ctx, client.ObjectKeyFromObject(job), left)
		g.Expect(err != nil || !left.DeletionTimestamp.IsZero()).To(BeTrue(), "the Job is deleted")
	}, waitTimeout, pause).Should(Succeed())
}

// forget plays the garbage collector for a Job that is deleted: its pods go first.
func (s *suite) forget(ctx context.Context, job *batchv1.Job) {
	GinkgoHelper()
	Expect(s.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(job.Namespace), client.MatchingLabels(job.Spec.Template.Labels), client.GracePeriodSeconds(0))).To(Succeed())
	Eventually(func(g Gomega) {
		left := &batchv1.Job{}
		if err := s.client.Get(ctx, client.ObjectKeyFromObject(job), left); err != nil {
			g.Expect(client.IgnoreNotFound(err)).To(Succeed())
			return
		}
		left.Finalizers = nil
		g.Expect(client.IgnoreNotFound(s.client.Update(ctx, left))).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
}

// countedAtServer is what was counted on the CPU of a server.
func countedAtServer() v1alpha1.ServerCounts {
	return v1alpha1.ServerCounts{
		ServerCPUs: "3", ServerCauses: []string{"Interrupt 9 sdb 60 a second"}, ServerCountedInterrupts: v1alpha1.CountedInterruptsAll,
		ServerIsolation: &v1alpha1.LatencyIsolation{
			RunQueue:   v1alpha1.LatencyRunQueue{State: v1alpha1.StateCounted, CPU: new(int32(3)), WaitedNanoseconds: 5e6, CountedNanoseconds: 1e9},
			IdleStates: v1alpha1.LatencyIdleStates{State: v1alpha1.StateUnknown, UnknownReason: "none are listed"},
			Busy:       &v1alpha1.LatencyBusy{State: v1alpha1.StateCounted, CPU: new(int32(3)), Percent: new(int32(100))},
		},
	}
}

// pingPongRecord is what a client leaves behind whose longest latency is so long.
func pingPongRecord(kernel, boot string, maximum int64) string {
	GinkgoHelper()
	record := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestPingPong, Kernel: kernel, BootID: boot, CPUs: "2", MaximumNanoseconds: maximum,
		RepetitionMaximums: []int64{maximum}, Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: maximum / 2}},
		Network: &qualification.NetworkRecord{
			Path: v1alpha1.LatencyPathKernel, PathMessage: "counted", ServerKernel: kernel, ServerCounts: countedAtServer(), Medians: []int64{maximum / 2},
			Sizes: [][]int64{{64, 0, 0, 2000, maximum / 4, maximum / 2, 10, maximum, maximum / 2}},
		},
	}
	text, err := qualification.Encode(record)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func (s *suite) refusesForeignResults(ctx SpecContext) {
	s.addTestedNode(ctx)
	s.addTest(ctx, "quiet")
	job := s.runningJob(ctx, "")
	s.leaves(ctx, job, "own", jitterRecord("6.12", "b1", 90_000))
	s.leaves(ctx, job, "forged", jitterRecord("6.12", "b1", 1))
	s.ends(ctx, job)
	s.expectResult(ctx, v1alpha1.LatencyInconclusive, "", v1alpha1.TestForeignPod)

	Eventually(func(g Gomega) {
		test := &v1alpha1.LatencyTest{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: "quiet"}, test)).To(Succeed())
		test.Spec.Run = 1
		g.Expect(s.client.Update(ctx, test)).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
	again := s.runningJob(ctx, job.Name)
	s.leaves(ctx, again, "garbage", "\x1b[2J Passed")
	s.ends(ctx, again)
	s.expectResult(ctx, v1alpha1.LatencyInconclusive, "", v1alpha1.TestBadResult)
	s.expectTest(ctx, metav1.ConditionUnknown, v1alpha1.ReasonTestsInconclusive)
}

func (s *suite) outlastsTheKubelet(ctx SpecContext) {
	s.addTestedNode(ctx)
	s.addTest(ctx, "quiet")
	job := s.runningJob(ctx, "")
	s.says(ctx, corev1.ConditionFalse)
	Consistently(func(g Gomega) {
		g.Expect(s.result(ctx, g, "quiet").Activity).To(Equal(v1alpha1.LatencyRunning))
		left := &batchv1.Job{}
		g.Expect(s.client.Get(ctx, client.ObjectKeyFromObject(job), left)).To(Succeed())
		g.Expect(left.DeletionTimestamp).To(BeNil())
	}, 3*time.Second, pause).Should(Succeed())
	s.says(ctx, corev1.ConditionTrue)
	s.leaves(ctx, job, "first", jitterRecord("6.12", "b1", 9_000))
	s.ends(ctx, job)
	s.expectResult(ctx, v1alpha1.LatencyPassed, v1alpha1.LatencyFresh, v1alpha1.TestWithinBudget)
}

// says plays the kubelet of the tested node, which says whether the node is Ready.
func (s *suite) says(ctx context.Context, ready corev1.ConditionStatus) {
	GinkgoHelper()
	node := s.node(ctx, tested)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastTransitionTime: metav1.Now()}}
	Expect(s.client.Status().Update(ctx, node)).To(Succeed())
}

func (s *suite) endsWithTheNode(ctx SpecContext) {
	s.addTestedNode(ctx)
	s.addTest(ctx, "quiet")
	job := s.runningJob(ctx, "")
	test := &v1alpha1.LatencyTest{}
	Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: "quiet"}, test)).To(Succeed())
	Expect(job.OwnerReferences).To(ConsistOf(HaveField("UID", test.UID)), "the Job goes with its test")

	// Another test waits for the node, and has it when the first lets it go.
	s.addTest(ctx, "other")
	Eventually(func(g Gomega) {
		g.Expect(s.result(ctx, g, "other").Message).To(Equal("LatencyTest " + applications + "/quiet measures the node now"))
	}, waitTimeout, pause).Should(Succeed())
	Expect(s.client.Delete(ctx, s.node(ctx, tested))).To(Succeed())
	s.expectResult(ctx, v1alpha1.LatencyInconclusive, "", v1alpha1.TestNodeLeft)
	Eventually(func(g Gomega) {
		left := &batchv1.Job{}
		err := s.client.Get(ctx, client.ObjectKeyFromObject(job), left)
		g.Expect(err != nil || !left.DeletionTimestamp.IsZero()).To(BeTrue(), "the Job is deleted")
	}, waitTimeout, pause).Should(Succeed())
}

// removeTests deletes tests, and what the garbage collector would.
func (s *suite) removeTests(ctx SpecContext) {
	for _, namespace := range []string{applications, controllers.DefaultAgentNamespace} {
		s.removeTestsOf(ctx, namespace)
	}
}

func (s *suite) removeTestsOf(ctx context.Context, namespace string) {
	GinkgoHelper()
	Expect(s.client.DeleteAllOf(ctx, &v1alpha1.LatencyTest{}, client.InNamespace(namespace))).To(Succeed())
	var jobs batchv1.JobList
	Expect(s.client.List(ctx, &jobs, client.InNamespace(namespace))).To(Succeed())
	for i := range jobs.Items {
		job := &jobs.Items[i]
		Expect(metav1.GetControllerOf(job)).To(HaveField("Kind", "LatencyTest"), "everything is owned by a test")
		job.Finalizers = nil
		Expect(client.IgnoreNotFound(s.client.Update(ctx, job))).To(Succeed())
		Expect(client.IgnoreNotFound(s.client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)))).To(Succeed())
	}
	Expect(s.client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelLatencyTest}, client.GracePeriodSeconds(0))).To(Succeed())
}
