// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"context"
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// TestAPIServer puts the rendered objects before a real API server with OpenShift's own CRDs.
func TestAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Rendered objects on an API server")
}

const fieldOwner = client.FieldOwner("lowlatency-operator")

var _ = Describe("Rendered objects", Ordered, ContinueOnFailure, func() {
	var server *apiserver.Environment

	BeforeAll(func(ctx context.Context) {
		var err error
		server, err = apiserver.Start(apiserver.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		for _, name := range []string{operatorNamespace, TunedNamespace} {
			namespace := &corev1.Namespace{}
			namespace.Name = name
			Expect(server.Client().Create(ctx, namespace)).To(Succeed())
		}
	})

	// apply is server-side apply, which refuses unknown fields.
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

	for _, name := range slices.Sorted(maps.Keys(plannedExamples(GinkgoTB()))) {
		It("are accepted whole, and applying them again changes nothing: "+name, func(ctx context.Context) {
			objects := render(GinkgoTB(), example(GinkgoTB(), name))
			for _, object := range objects {
				Expect(apply(ctx, object)).To(Succeed(), object.GetKind())
				Expect(stored(ctx, object).Object).To(containFields(object.Object), object.GetKind())
			}
			for _, object := range objects {
				before := stored(ctx, object).GetResourceVersion()
				Expect(apply(ctx, object)).To(Succeed(), object.GetKind())
				Expect(stored(ctx, object).GetResourceVersion()).To(Equal(before), object.GetKind())
			}
		})
	}

	It("hold the pool while paused and let an administrator's pause stand", func(ctx context.Context) {
		in := example(GinkgoTB(), "perpod-epyc")
		in.MachineConfigPool.Name = "held"
		in.MachineConfigPool.Paused = true
		held := find(GinkgoTB(), render(GinkgoTB(), in), "MachineConfigPool")
		in.MachineConfigPool.Paused = false
		released := find(GinkgoTB(), render(GinkgoTB(), in), "MachineConfigPool")

		Expect(apply(ctx, held)).To(Succeed())
		Expect(paused(stored(ctx, held))).To(BeTrue())
		Expect(apply(ctx, released)).To(Succeed())
		Expect(paused(stored(ctx, held))).To(BeFalse())

		By("an administrator pausing the pool")
		byHand := stored(ctx, held)
		Expect(unstructured.SetNestedField(byHand.Object, true, "spec", "paused")).To(Succeed())
		Expect(server.Client().Update(ctx, byHand)).To(Succeed())
		Expect(apply(ctx, released)).To(Succeed())
		Expect(paused(stored(ctx, held))).To(BeTrue())
	})

	It("keep the plan from being changed", func(ctx context.Context) {
		in := example(GinkgoTB(), "arm-64k")
		configMap := find(GinkgoTB(), render(GinkgoTB(), in), "ConfigMap")
		Expect(apply(ctx, configMap)).To(Succeed())
		Expect(unstructured.SetNestedField(configMap.Object, "{}", "data", "plan.json")).To(Succeed())
		Expect(apierrors.IsInvalid(apply(ctx, configMap))).To(BeTrue())
	})

	DescribeTable("are refused with an unknown field, so the tests above can fail",
		func(ctx context.Context, kind string) {
			object := find(GinkgoTB(), render(GinkgoTB(), example(GinkgoTB(), "trading-xeon")), kind)
			Expect(unstructured.SetNestedField(object.Object, "x", "spec", "colour")).To(Succeed())
			Expect(apply(ctx, object)).To(MatchError(ContainSubstring("colour")))
		},
		Entry(nil, "MachineConfigPool"), Entry(nil, "MachineConfig"), Entry(nil, "KubeletConfig"), Entry(nil, "Tuned"),
	)
})

func paused(pool *unstructured.Unstructured) bool {
	value, _, err := unstructured.NestedBool(pool.Object, "spec", "paused")
	Expect(err).NotTo(HaveOccurred())
	return value
}

// containFields matches an object that has every field of want, however deep, with the same value.
func containFields(want any) OmegaMatcher {
	fields, ok := want.(map[string]any)
	if !ok {
		return Equal(want)
	}
	matchers := make([]OmegaMatcher, 0, len(fields))
	for key, value := range fields {
		matchers = append(matchers, HaveKeyWithValue(key, containFields(value)))
	}
	return And(matchers...)
}
