// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	applyv1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1/applyconfiguration/api/v1alpha1"
)

// describeApply shows that the generated builders write what they say, the status subresource included, and leave
// the fields of another writer alone.
func describeApply(admin func() client.Client) {
	It("writes spec and status with the generated apply configurations", func(ctx SpecContext) {
		spec := applyv1alpha1.LowLatencyNode("node-2").
			WithSpec(applyv1alpha1.LowLatencyNodeSpec().
				WithProfile("trading").WithPlanHash("abc").WithPlanConfigMap("trading-abc"))
		Expect(admin().Apply(ctx, spec, client.FieldOwner("manager"))).To(Succeed())
		status := applyv1alpha1.LowLatencyNode("node-2").
			WithStatus(applyv1alpha1.LowLatencyNodeStatus().WithVerifiedPlanHash("abc").
				WithChecks(applyv1alpha1.CheckCounts().WithPassed(30).WithFailed(0).WithUnknown(0).WithWaived(0)))
		Expect(admin().Status().Apply(ctx, status, client.FieldOwner("agent"))).To(Succeed())

		var got v1alpha1.LowLatencyNode
		Expect(admin().Get(ctx, client.ObjectKey{Name: "node-2"}, &got)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin().Delete(ctx, &got)).To(Succeed()) })
		Expect(got.Spec).To(Equal(v1alpha1.LowLatencyNodeSpec{Profile: "trading", PlanHash: "abc", PlanConfigMap: "trading-abc"}))
		Expect(got.Status).To(Equal(v1alpha1.LowLatencyNodeStatus{
			VerifiedPlanHash: "abc", Checks: &v1alpha1.CheckCounts{Passed: 30},
		}))
	})
}
