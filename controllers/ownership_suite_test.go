// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// longDelay is for how long the simulated machine-config operator waits before it moves a node, where a spec wants to
// see that the operator takes something back first. It is long, because the machine may be slow.
const longDelay = time.Minute

func describeOwnership(s *suite) {
	Describe("what another manager owns, too,", func() {
		It("does not keep a profile from going when it is the finalizer", s.dropsForeignFinalizer)

		It("brings no plan to a node when it is our labels on a node that no profile selects", s.dropsForeignLabels)

		It("brings no plan to a node while its profile is paused", s.dropsForeignLabelsWhilePaused)
	})
}

// applyAs applies fields as a user of kubectl does.
func (s *suite) applyAs(ctx context.Context, manager string, fields map[string]any) {
	GinkgoHelper()
	Expect(s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields}),
		client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}

// exported is an object as kubectl get -o yaml prints it, and as its user applies it again.
func (s *suite) exported(ctx context.Context, object *unstructured.Unstructured) map[string]any {
	GinkgoHelper()
	Expect(s.client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	text, err := yaml.Marshal(object.Object)
	Expect(err).NotTo(HaveOccurred())
	read := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(text, &read.Object)).To(Succeed())
	read.SetManagedFields(nil)
	read.SetResourceVersion("")
	return read.Object
}

func (s *suite) dropsForeignFinalizer(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	profile := &unstructured.Unstructured{}
	profile.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LowLatencyNodeProfile"))
	profile.SetName("trading")
	s.applyAs(ctx, "kubectl", s.exported(ctx, profile))
	s.expectReboots("xeon-1")

	Expect(s.client.Delete(ctx, s.profile(ctx, "trading"))).To(Succeed())
	s.eventually(ctx, func(g Gomega) {
		err := s.client.Get(ctx, client.ObjectKey{Name: "trading"}, &v1alpha1.LowLatencyNodeProfile{})
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
		g.Expect(err).To(HaveOccurred(), "the profile is gone")
	})
	s.expectReboots("xeon-1")
}

// onePool is the name of the only managed machine config pool.
func (s *suite) onePool(ctx context.Context) string {
	GinkgoHelper()
	pools := s.managedPools(ctx)
	Expect(pools).To(HaveLen(1))
	for name := range pools {
		return name
	}
	return ""
}

// labelAs labels a node by server-side apply, so that the labels have an owner of their own.
func (s *suite) labelAs(ctx context.Context, manager, node string, labels map[string]any) {
	GinkgoHelper()
	s.applyAs(ctx, manager, map[string]any{
		"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": node, "labels": labels},
	})
}

// expectNoLabels waits until the node has none of our labels.
func (s *suite) expectNoLabels(ctx context.Context, name string) {
	GinkgoHelper()
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.node(ctx, name).Labels).NotTo(Or(HaveKey(v1alpha1.LabelPool), HaveKey(v1alpha1.LabelProfile)))
	})
}

func (s *suite) dropsForeignLabels(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addNodes(ctx, "web", "xeon-2")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
	s.platform.DelayUpdates(longDelay)
	DeferCleanup(func() { s.platform.DelayUpdates(0) })
	pool := s.onePool(ctx)
	for _, labels := range []map[string]any{
		{v1alpha1.LabelPool: pool},
		{v1alpha1.LabelPool: pool, v1alpha1.LabelProfile: "trading"},
		{v1alpha1.LabelPool: pool, v1alpha1.LabelProfile: "gone"},
		{v1alpha1.LabelProfile: "trading"},
	} {
		s.labelAs(ctx, "restore", "xeon-2", labels)
		s.expectNoLabels(ctx, "xeon-2")
	}
	s.platform.DelayUpdates(0)

	By("ending the deletion of the profile, too")
	s.labelAs(ctx, "restore", "xeon-2", map[string]any{v1alpha1.LabelPool: pool})
	Expect(s.client.Delete(ctx, s.profile(ctx, "trading"))).To(Succeed())
	s.eventually(ctx, func(g Gomega) {
		var profiles v1alpha1.LowLatencyNodeProfileList
		g.Expect(s.client.List(ctx, &profiles)).To(Succeed())
		g.Expect(profiles.Items).To(BeEmpty())
	})
	Expect(s.reboots.of("xeon-1")).To(Equal(1))
}

func (s *suite) dropsForeignLabelsWhilePaused(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addNodes(ctx, "web", "xeon-2")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
	s.changeProfile(ctx, "trading", func(p *v1alpha1.LowLatencyNodeProfile) { p.Spec.Rollout.State = v1alpha1.RolloutPaused })
	s.expectCondition(ctx, "trading", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonVerified)
	s.platform.DelayUpdates(longDelay)
	DeferCleanup(func() { s.platform.DelayUpdates(0) })
	s.labelAs(ctx, "restore", "xeon-2", map[string]any{v1alpha1.LabelPool: s.onePool(ctx), v1alpha1.LabelProfile: "trading"})
	s.eventually(ctx, func(g Gomega) {
		g.Expect(s.node(ctx, "xeon-2").Labels).NotTo(HaveKey(v1alpha1.LabelPool))
	})
	Expect(s.reboots.of("xeon-1") + s.reboots.of("xeon-2")).To(BeZero())
}
