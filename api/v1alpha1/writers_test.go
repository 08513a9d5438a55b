// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
)

// describeWriters shows that spec and status, the status subresource included, are written by server-side apply
// without a field that was not set, and without touching the fields of another writer.
func describeWriters(admin func() client.Client) {
	It("keeps the fields of spec and status with those who write them", func(ctx SpecContext) {
		kind := v1alpha1.GroupVersion.WithKind("LowLatencyNode")
		apiVersion, kindName := kind.ToAPIVersionAndKind()
		node := &v1alpha1.LowLatencyNode{
			TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kindName},
			ObjectMeta: metav1.ObjectMeta{Name: "node-2"},
			Spec:       v1alpha1.LowLatencyNodeSpec{Profile: "trading", PlanHash: "abc", PlanConfigMap: "trading-abc"},
		}
		object, err := apply.Object(node)
		Expect(err).NotTo(HaveOccurred())
		Expect(admin().Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("manager"))).To(Succeed())
		want := v1alpha1.LowLatencyNodeStatus{VerifiedPlanHash: "abc", Checks: &v1alpha1.CheckCounts{Passed: 30}}
		status, err := apply.Status(kind, node, &want)
		Expect(err).NotTo(HaveOccurred())
		Expect(admin().Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("agent"))).To(Succeed())

		var got v1alpha1.LowLatencyNode
		Expect(admin().Get(ctx, client.ObjectKey{Name: "node-2"}, &got)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin().Delete(ctx, &got)).To(Succeed()) })
		Expect(got.Spec).To(Equal(node.Spec))
		Expect(got.Status).To(Equal(want))
		written := map[string]string{}
		for _, entry := range got.ManagedFields {
			written[entry.Manager+"/"+entry.Subresource] = string(entry.FieldsV1.GetRawBytes())
		}
		Expect(written).To(HaveLen(2))
		Expect(written["manager/"]).To(MatchJSON(`{"f:spec":{"f:profile":{},"f:planHash":{},"f:planConfigMap":{}}}`))
		Expect(written["agent/status"]).To(MatchJSON(`{"f:status":{"f:verifiedPlanHash":{},
			"f:checks":{"f:passed":{},"f:failed":{},"f:unknown":{},"f:waived":{}}}}`))
	})
}
