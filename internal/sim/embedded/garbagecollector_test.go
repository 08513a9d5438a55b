// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

var _ = Describe("the garbage collector", func() {
	const namespace = "default"
	var (
		collector *GarbageCollector
		owner     *v1alpha1.BypassNICPool
	)
	owned := func(name string, by metav1.OwnerReference) *corev1.ConfigMap {
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, OwnerReferences: []metav1.OwnerReference{by}}}
		Expect(cluster.Create(GinkgoT().Context(), config)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return client.IgnoreNotFound(cluster.Delete(ctx, config)) })
		return config
	}
	reference := func(uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "BypassNICPool", Name: owner.Name, UID: uid}
	}
	exists := func(ctx SpecContext, config *corev1.ConfigMap) bool {
		err := cluster.Get(ctx, client.ObjectKeyFromObject(config), &corev1.ConfigMap{})
		Expect(client.IgnoreNotFound(err)).To(Succeed())
		return !apierrors.IsNotFound(err)
	}
	BeforeEach(func(ctx SpecContext) {
		collector = &GarbageCollector{Client: cluster, Clock: clock.RealClock{}, Interval: time.Second}
		owner = &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "collected"}}
		owner.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "1924"}}
		owner.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"fast": ""}
		owner.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
			UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
		}}
		owner.Spec.ResourceName = "example.com/collected"
		Expect(cluster.Create(ctx, owner)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) error { return client.IgnoreNotFound(cluster.Delete(ctx, owner)) })
	})

	It("deletes what the deleted object owned, and nothing else", func(ctx SpecContext) {
		kept := owned("kept", reference(owner.UID))
		other := owned("of-a-kind-not-collected", metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "x"})
		orphan := owned("of-a-former-one", reference("former"))
		Expect(collector.Once(ctx)).To(Succeed())
		Expect(exists(ctx, kept)).To(BeTrue(), "its owner is there")
		Expect(exists(ctx, orphan)).To(BeFalse(), "its owner has another UID")
		Expect(cluster.Delete(ctx, owner)).To(Succeed())
		Expect(collector.Once(ctx)).To(Succeed())
		Expect(exists(ctx, kept)).To(BeFalse(), "its owner is no more")
		Expect(exists(ctx, other)).To(BeTrue(), "nobody has looked for its owner")
	})

	It("ends a deletion in the foreground after the dependents", func(ctx SpecContext) {
		dependent := owned("dependent", reference(owner.UID))
		Expect(cluster.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Expect(cluster.Get(ctx, client.ObjectKeyFromObject(owner), owner)).To(Succeed(), "it waits for the collector")
		Expect(collector.Once(ctx)).To(Succeed())
		Expect(exists(ctx, dependent)).To(BeFalse())
		Expect(apierrors.IsNotFound(cluster.Get(ctx, client.ObjectKeyFromObject(owner), owner))).To(BeTrue())
	})

	It("leaves orphans", func(ctx SpecContext) {
		orphan := owned("orphan", reference(owner.UID))
		Expect(cluster.Delete(ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Expect(collector.Once(ctx)).To(Succeed())
		Expect(collector.Once(ctx)).To(Succeed())
		Expect(exists(ctx, orphan)).To(BeTrue())
		Expect(apierrors.IsNotFound(cluster.Get(ctx, client.ObjectKeyFromObject(owner), owner))).To(BeTrue())
	})
})
