// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

func TestAPIServer(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The objects on a real API server")
}

var _ = Describe("The objects on a real API server", Ordered, ContinueOnFailure, func() {
	var environment *apiserver.Environment

	BeforeAll(func(ctx SpecContext) {
		var err error
		environment, err = apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes, CRDs: imagePolicies()})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(environment.Stop()).To(Succeed()) })
		agents := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lowlatency-operator-agents"}}
		Expect(environment.Client().Create(ctx, agents)).To(Succeed())
	})

	admin := func() client.Client { return environment.Client() }

	Context("the rules of LowLatencyNodeProfile", func() { describeProfileRules(admin) })
	Context("the rules of LowLatencyNode", func() { describeNodeRules(admin) })
	Context("the rules of BypassNICPool", func() { describeNICPoolRules(admin) })
	Context("the rules of LatencyTest", func() { describeLatencyTestRules(admin) })
	Context("the bounds and enums", func() { describeBounds(admin) })
	Context("the samples", func() { describeSamples(admin) })
	Context("the examples of the documents", func() { describeDocuments(admin) })
	Context("the fields of two writers", func() { describeWriters(admin) })
})
