// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

func describeQualification(s *suite) {
	Describe("a gate that asks for a latency test", func() {
		AfterEach(s.removeTests)

		It("waits for it, opens, goes stale under another kernel, and opens again", s.waitsForTests)

		It("stays open when it asks for a test that does not exist, and when its test is deleted", s.keepsWhatIsOpen)
	})
}

// qualified asks for test quiet.
func qualified(p *v1alpha1.LowLatencyNodeProfile) {
	gated(p)
	p.Spec.Verification.Qualification = &v1alpha1.Qualification{Tests: []v1alpha1.LatencyTestReference{{Namespace: applications, Name: "quiet"}}}
}

// addQuietTest measures the nodes of profile trading.
func (s *suite) addQuietTest(ctx context.Context) {
	GinkgoHelper()
	Expect(s.client.Create(ctx, &v1alpha1.LatencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: applications, Name: "quiet"},
		Spec: v1alpha1.LatencyTestSpec{
			Nodes: v1alpha1.LatencyTestNodes{Profile: "trading"}, Kind: v1alpha1.LatencyTestJitter, Budget: &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000},
		},
	})).To(Succeed())
}

// measures lets the Job that measures the joiner now end with a longest interruption.
func (s *suite) measures(ctx context.Context, former string, boot string, maximum int64) *batchv1.Job {
	GinkgoHelper()
	job := s.runningJob(ctx, former)
	// The kernel is that of the inventory that the agents of these specs report.
	kernel := s.report(ctx, joiner).Status.Inventory.KernelRelease
	s.leavesOn(ctx, joiner, job, job.Name, jitterRecord(kernel, boot, maximum))
	s.ends(ctx, job)
	return job
}

// expectProfile waits until the condition Ready of profile trading has a reason.
func (s *suite) expectProfile(ctx context.Context, status metav1.ConditionStatus, reason, message string) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		ready := meta.FindStatusCondition(s.profile(ctx, "trading").Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Reason).To(Equal(reason), ready.Message)
		g.Expect(ready.Status).To(Equal(status))
		g.Expect(ready.Message).To(ContainSubstring(message))
	})
}

func (s *suite) waitsForTests(ctx SpecContext) {
	log := s.watchTaint()
	s.addProfile(ctx, "trading", "trading", qualified)
	s.join(ctx)
	s.expectProfile(ctx, metav1.ConditionUnknown, v1alpha1.ReasonQualificationMissing, "node xeon-1: LatencyTest applications/quiet, which")
	s.expectGate(ctx, v1alpha1.ReasonQualificationMissing, true)

	By("measuring for the first time")
	s.addQuietTest(ctx)
	job := s.runningJob(ctx, "")
	s.expectGate(ctx, v1alpha1.ReasonAwaitingQualification, true)
	s.expectProfile(ctx, metav1.ConditionUnknown, v1alpha1.ReasonAwaitingQualification, "LatencyTest applications/quiet has not measured the node yet")
	Expect(job.Spec.Template.Spec.Tolerations).To(ContainElement(HaveField("Key", v1alpha1.TaintUnverified)), "the test comes to the node that waits for it")
	job = s.measures(ctx, "", "b1", 90_000)
	s.expectGate(ctx, v1alpha1.ReasonQualificationFailed, true)
	s.expectProfile(ctx, metav1.ConditionFalse, v1alpha1.ReasonQualificationFailed, "node xeon-1: LatencyTest applications/quiet: the longest interruption (CPU 2) was 90 µs, more than 10 µs")
	log.expect("closed")

	By("passing")
	s.runAgain(ctx)
	job = s.measures(ctx, job.Name, "b1", 9_000)
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
	s.expectReady(ctx, "trading")
	log.expect("closed", "open")
	s.expectQualified(ctx, s.xeon.KernelRelease)

	By("booting another kernel")
	s.boots(ctx, joiner, "b2", s.xeon.KernelRelease+".next")
	s.expectProfile(ctx, metav1.ConditionUnknown, v1alpha1.ReasonQualificationStale, "the kernel ("+s.xeon.KernelRelease+".next, was "+s.xeon.KernelRelease+")")
	s.expectGate(ctx, v1alpha1.ReasonQualificationStale, true)
	s.expectQualified(ctx, s.xeon.KernelRelease)
	s.measures(ctx, job.Name, "b2", 8_000)
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
	log.expect("closed", "open", "closed", "open")
	s.expectQualified(ctx, s.xeon.KernelRelease+".next")
}

func (s *suite) keepsWhatIsOpen(ctx SpecContext) {
	s.addProfile(ctx, "trading", "trading", gated)
	s.join(ctx)
	s.expectReady(ctx, "trading")
	s.expectGate(ctx, v1alpha1.ReasonVerified, false)
	log := s.watchTaint()
	log.expect("open")

	By("asking for a test that does not exist")
	s.changeProfile(ctx, "trading", qualified)
	s.expectProfile(ctx, metav1.ConditionUnknown, v1alpha1.ReasonQualificationMissing, "does not exist: create it or correct the name")
	log.expectStill("open")

	By("making it, and deleting it when it has passed")
	s.addQuietTest(ctx)
	s.measures(ctx, "", "b1", 9_000)
	s.expectReady(ctx, "trading")
	s.expectQualified(ctx, s.xeon.KernelRelease)
	s.removeTests(ctx)
	s.expectProfile(ctx, metav1.ConditionUnknown, v1alpha1.ReasonQualificationMissing, "does not exist")
	s.expectQualified(ctx, "")
	log.expectStill("open")
}

// expectQualified waits until the agent of the joiner is told which kernel test quiet has found within the budget; "" for none.
func (s *suite) expectQualified(ctx context.Context, kernel string) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		told := s.report(ctx, joiner).Spec.Qualification
		if kernel == "" {
			g.Expect(told).To(BeNil())
			return
		}
		g.Expect(told).NotTo(BeNil())
		g.Expect(told.Test).To(Equal(v1alpha1.LatencyTestReference{Namespace: applications, Name: "quiet"}))
		g.Expect(told.Fingerprint.Kernel).To(Equal(kernel))
	})
}

// runAgain raises spec.run of test quiet.
func (s *suite) runAgain(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		test := &v1alpha1.LatencyTest{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Namespace: applications, Name: "quiet"}, test)).To(Succeed())
		test.Spec.Run++
		g.Expect(s.client.Update(ctx, test)).To(Succeed())
	}, waitTimeout, pause).Should(Succeed())
}
