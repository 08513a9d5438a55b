// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const currentConfig = "machineconfiguration.openshift.io/currentConfig"

// playAgents lets the agent of every node look at its host once: it reports the hardware, and whether the
// node was booted with its plan. Nodes whose names begin with epyc have that hardware.
func (s *suite) playAgents(ctx context.Context) {
	GinkgoHelper()
	var reports v1alpha1.LowLatencyNodeList
	Expect(s.client.List(ctx, &reports)).To(Succeed())
	nodes := s.nodesByName(ctx)
	for i := range reports.Items {
		report := &reports.Items[i]
		before, node := report.DeepCopy(), nodes[report.Name]
		report.Status.Inventory, report.Status.BootID = s.xeon, node.Status.NodeInfo.BootID
		if strings.HasPrefix(report.Name, "epyc") {
			report.Status.Inventory = s.epyc
		}
		if kernel := node.Status.NodeInfo.KernelVersion; kernel != "" {
			report.Status.Inventory = report.Status.Inventory.DeepCopy()
			report.Status.Inventory.KernelRelease = kernel
		}
		report.Status.BypassNICs = slices.DeleteFunc(report.Status.BypassNICs, func(nic v1alpha1.NodeBypassNIC) bool {
			return !slices.Contains(report.Spec.BypassPools, nic.Pool)
		})
		s.verify(ctx, report, &node)
		s.writeReport(ctx, before, report)
	}
}

// nodesByName reads all nodes at once: on a busy machine one request for each node of a fleet takes too long.
func (s *suite) nodesByName(ctx context.Context) map[string]corev1.Node {
	GinkgoHelper()
	var nodes corev1.NodeList
	Expect(s.client.List(ctx, &nodes)).To(Succeed())
	byName := make(map[string]corev1.Node, len(nodes.Items))
	for i := range nodes.Items {
		byName[nodes.Items[i].Name] = nodes.Items[i]
	}
	return byName
}

// verify sets the conditions for the plan that the node is to have. Findings that a spec has put there decide.
func (s *suite) verify(ctx context.Context, report *v1alpha1.LowLatencyNode, node *corev1.Node) {
	if report.Status.VerifiedPlanHash = report.Spec.PlanHash; report.Spec.PlanHash == "" {
		report.Status.Conditions = nil
		return
	}
	applied := metav1.Condition{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonVerified, Message: "applied"}
	if !s.runsPlan(ctx, report, node) {
		applied.Status, applied.Reason, applied.Message = metav1.ConditionFalse, v1alpha1.ReasonRebootPending, "the kernel has other arguments"
	}
	meta.SetStatusCondition(&report.Status.Conditions, applied)
	for _, kind := range []string{v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned} {
		condition := metav1.Condition{Type: kind, Status: applied.Status, Reason: applied.Reason, Message: "proven"}
		if kind == v1alpha1.ConditionDeJittered && len(report.Status.Findings) > 0 {
			condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.ReasonChecksFailed
			condition.Message = report.Status.Findings[0].Message
		}
		meta.SetStatusCondition(&report.Status.Conditions, condition)
	}
}

// runsPlan reports whether the node was booted with the kernel arguments of the plan that it is to prove.
func (s *suite) runsPlan(ctx context.Context, report *v1alpha1.LowLatencyNode, node *corev1.Node) bool {
	booted, found := s.bootedArguments(ctx, node.Annotations[currentConfig])
	return found && booted == s.argumentsOf(ctx, report.Spec.PlanConfigMap)
}

// bootedArguments are the kernel arguments of a rendered configuration, whose name says what it holds.
func (s *suite) bootedArguments(ctx context.Context, config string) (text string, found bool) {
	if known, found := s.booted[config]; found {
		return known, true
	}
	booted := &mcfgv1.MachineConfig{}
	if config == "" || s.client.Get(ctx, client.ObjectKey{Name: config}, booted) != nil {
		return "", false
	}
	s.booted[config] = strings.Join(booted.Spec.KernelArguments, " ")
	return s.booted[config], true
}

// argumentsOf are the kernel arguments of a plan, which never changes.
func (s *suite) argumentsOf(ctx context.Context, planConfigMap string) string {
	if known, found := s.arguments[planConfigMap]; found {
		return known
	}
	stored, decoded := &corev1.ConfigMap{}, &plan.NodePlan{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: planConfigMap}, stored); err != nil {
		return "unknown"
	}
	Expect(json.Unmarshal([]byte(stored.Data[v1alpha1.PlanKey]), decoded)).To(Succeed())
	s.arguments[planConfigMap] = decoded.ArgumentText()
	return s.arguments[planConfigMap]
}

func (s *suite) writeReport(ctx context.Context, before, report *v1alpha1.LowLatencyNode) {
	GinkgoHelper()
	if equality.Semantic.DeepEqual(before.Status, report.Status) {
		return
	}
	err := s.client.Status().Patch(ctx, report, client.MergeFrom(before))
	if !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
}

// find makes the agent of a node report a critical finding; "" makes it report none.
func (s *suite) find(ctx context.Context, name, message string) {
	GinkgoHelper()
	report := &v1alpha1.LowLatencyNode{}
	Expect(s.client.Get(ctx, client.ObjectKey{Name: name}, report)).To(Succeed())
	before := report.DeepCopy()
	report.Status.Findings = nil
	if message != "" {
		report.Status.Findings = []v1alpha1.Finding{{
			Check: "irq.affinity", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed, Message: message,
		}}
	}
	node := s.nodesByName(ctx)[name]
	s.verify(ctx, report, &node)
	s.writeReport(ctx, before, report)
}

// eventually lets the agents work until the assertion holds.
func (s *suite) eventually(ctx context.Context, assertion func(Gomega)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		s.playAgents(ctx)
		assertion(g)
	}, waitTimeout, pause).Should(Succeed())
}

// expectCondition lets the agents work until a condition of the profile has the status and the reason.
func (s *suite) expectCondition(ctx context.Context, profile, kind string, status metav1.ConditionStatus, reason string) *metav1.Condition {
	GinkgoHelper()
	var found *metav1.Condition
	s.eventually(ctx, func(g Gomega) {
		conditions := s.profile(ctx, profile).Status.Conditions
		found = meta.FindStatusCondition(conditions, kind)
		g.Expect(found).NotTo(BeNil())
		g.Expect([]string{string(found.Status), found.Reason}).To(Equal([]string{string(status), reason}), "%v", conditionsOf(conditions))
	})
	return found
}

// expectReady lets the agents work until the profile is Ready for its current spec because its nodes are verified, and not
// because it has none yet.
func (s *suite) expectReady(ctx context.Context, profile string) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		p := s.profile(ctx, profile)
		ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.ObservedGeneration).To(Equal(p.Generation))
		g.Expect([]string{string(ready.Status), ready.Reason}).To(Equal([]string{string(metav1.ConditionTrue), v1alpha1.ReasonVerified}),
			"%v", conditionsOf(p.Status.Conditions))
	})
}
