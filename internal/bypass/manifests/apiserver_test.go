// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"context"
	"maps"
	"slices"

	attachmentv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

var _ = Describe("Objects of a BypassNICPool", Ordered, ContinueOnFailure, func() {
	var server *apiserver.Environment

	BeforeAll(func(ctx context.Context) {
		attachments, err := apiserver.NetworkAttachmentCRD()
		Expect(err).NotTo(HaveOccurred())
		server, err = apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes, CRDs: []string{attachments}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		for _, name := range []string{operatorNamespace, agentNamespace, "trading", "research", "dataplane"} {
			namespace := &corev1.Namespace{}
			namespace.Name = name
			Expect(server.Client().Create(ctx, namespace)).To(Succeed())
		}
	})

	apply := func(ctx context.Context, object *unstructured.Unstructured) error {
		return server.Client().Apply(ctx,
			client.ApplyConfigurationFromUnstructured(object.DeepCopy()), fieldOwner, client.ForceOwnership)
	}

	stored := func(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(object.GroupVersionKind())
		Expect(server.Client().Get(ctx, client.ObjectKeyFromObject(object), found)).To(Succeed())
		return found
	}

	for _, name := range slices.Sorted(maps.Keys(pools())) {
		It("are accepted whole, and applying them again changes nothing: "+name, func(ctx context.Context) {
			objects := renderPool(GinkgoTB(), pools()[name])
			for _, object := range objects {
				Expect(apply(ctx, object)).To(Succeed(), object.GetKind())
				Expect(stored(ctx, object).GetLabels()).To(Equal(object.GetLabels()), object.GetKind())
			}
			for _, object := range objects {
				before := stored(ctx, object).GetResourceVersion()
				Expect(apply(ctx, object)).To(Succeed(), object.GetKind())
				Expect(stored(ctx, object).GetResourceVersion()).To(Equal(before), object.GetKind())
			}
		})
	}

	It("are what Multus reads", func(ctx context.Context) {
		definition := find(GinkgoTB(), renderPool(GinkgoTB(), pools()["pool-dpdk"]), "NetworkAttachmentDefinition")
		Expect(apply(ctx, definition)).To(Succeed())
		var typed attachmentv1.NetworkAttachmentDefinition
		Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(stored(ctx, definition).Object, &typed)).To(Succeed())
		Expect(typed.Spec.Config).To(Equal(`{"cniVersion":"1.0.0","name":"dpdk","type":"sriov"}`))
		Expect(typed.Annotations).To(HaveKeyWithValue("k8s.v1.cni.cncf.io/resourceName", "lowlatency.dev/dpdk"))
	})

	It("are refused with an unknown field, so the tests above can fail", func(ctx context.Context) {
		for _, kind := range []string{"DaemonSet", "NetworkAttachmentDefinition"} {
			object := find(GinkgoTB(), renderPool(GinkgoTB(), pools()["pool-dpdk"]), kind)
			Expect(unstructured.SetNestedField(object.Object, "x", "spec", "colour")).To(Succeed())
			Expect(apply(ctx, object)).To(MatchError(ContainSubstring("colour")), kind)
		}
	})
})
