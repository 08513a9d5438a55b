// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"maps"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// longDelay is for how long the simulated machine-config operator waits before it moves a node, where a spec wants to
// see that the operator takes something back first. It is long, because the machine may be slow.
const longDelay = time.Minute

func describeOwnership(s *suite) {
	Describe("what another manager owns, too,", func() {
		It("does not keep a profile from going when it is the finalizer", s.dropsForeignFinalizer)

		It("brings no plan to a node when it is our labels on a node that no profile selects", s.dropsForeignLabels)

		It("brings no plan to a node while its profile is paused", s.dropsForeignLabelsWhilePaused)

		It("is taken out of a generated object before a node reboots into it", s.takesOutForeignFields)

		It("is left alone where somebody else has made an object of the operator's name", s.reportsForeignObject)

		It("does not stay in a LowLatencyNode", s.takesOutForeignNodeSpec)

		It("does not stay in the DaemonSet of a pool, defaults excepted", s.takesOutForeignContainer)

		It("does not keep a dead agent's word in what kubectl get prints", s.showsDeadAgent)
	})
}

// edits are what people do to generated objects of each kind by kubectl edit: the kind, the prefix of its name, and what
// they write.
func edits() []edit {
	config := mcfgv1.GroupVersion
	return []edit{
		{config.WithKind("KubeletConfig"), "lowlatency-", "", `{"spec":{"kubeletConfig":{"maxPods":500}}}`},
		{config.WithKind("KubeletConfig"), "lowlatency-", "", `{"spec":{"autoSizingReserved":true}}`},
		{config.WithKind("MachineConfig"), "50-lowlatency-", "", `{"spec":{"extensions":["usbguard"]}}`},
		{config.WithKind("MachineConfig"), "50-lowlatency-", "", `{"spec":{"kernelArguments":["mitigations=off"]}}`},
		{config.WithKind("MachineConfig"), "50-lowlatency-", "", `{"metadata":{"labels":{"machineconfiguration.openshift.io/role":null}}}`},
		{config.WithKind("MachineConfigPool"), "", "", `{"spec":{"machineConfigSelector":{"matchLabels":{"mine":"yes"}}}}`},
		{config.WithKind("MachineConfigPool"), "", "", `{"spec":{"nodeSelector":{"matchLabels":{"mine":"yes"}}}}`},
		{schema.GroupVersionKind{Group: "tuned.openshift.io", Version: "v1", Kind: "Tuned"}, "lowlatency-", manifests.TunedNamespace,
			`{"spec":{"managementState":"Unmanaged"}}`},
	}
}

// edit is a change of a generated object.
type edit struct {
	kind              schema.GroupVersionKind
	prefix, namespace string
	patch             string
}

// object is the edited one without content.
func (e edit) object(pool string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(e.kind)
	object.SetNamespace(e.namespace)
	object.SetName(e.prefix + pool)
	return object
}

// contentOf is what an object is, apart from what changes with every write.
func contentOf(object *unstructured.Unstructured) map[string]any {
	content := map[string]any{"labels": object.GetLabels()}
	for key, value := range object.Object {
		if key != "metadata" && key != "status" {
			content[key] = value
		}
	}
	if spec, ok := content["spec"].(map[string]any); ok {
		// What the machine-config operator and the operator's pause write of a machine config pool.
		spec = maps.Clone(spec)
		delete(spec, "configuration")
		delete(spec, "paused")
		content["spec"] = spec
	}
	return content
}

func (s *suite) takesOutForeignFields(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
	pool := s.onePool(ctx)
	rendered := s.managedPools(ctx)[pool].Spec.Configuration.Name
	for _, e := range edits() {
		By("editing " + e.kind.Kind + ": " + e.patch)
		s.platform.DelayUpdates(longDelay)
		object := e.object(pool)
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		before := contentOf(object)
		object = e.object(pool)
		Expect(s.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(e.patch)), client.FieldOwner("kubectl-edit"))).To(Succeed())
		Expect(contentOf(object)).NotTo(Equal(before))
		s.eventually(ctx, func(g Gomega) {
			g.Expect(s.client.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
			g.Expect(contentOf(object)).To(Equal(before))
		})
		s.expectRendered(ctx, pool, rendered)
		s.platform.DelayUpdates(0)
		s.expectReady(ctx, "trading")
		Expect(s.reboots.of("xeon-1")).To(BeZero(), e.patch)
	}
}

// expectRendered waits until a machine config pool is not paused and has had this rendered configuration for some time: the
// platform may be late, and render what was edited after the edit was taken back.
func (s *suite) expectRendered(ctx context.Context, pool, rendered string) {
	GinkgoHelper()
	var since time.Time
	s.eventually(ctx, func(g Gomega) {
		managed := s.managedPools(ctx)[pool]
		if managed.Spec.Paused || managed.Spec.Configuration.Name != rendered {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		g.Expect(managed.Spec.Paused).To(BeFalse())
		g.Expect(managed.Spec.Configuration.Name).To(Equal(rendered))
		g.Expect(time.Since(since)).To(BeNumerically(">", 2*time.Second))
	})
}

func (s *suite) reportsForeignObject(ctx SpecContext) {
	mine := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "performance-mine"}, Handler: "kata"}
	Expect(s.client.Create(ctx, mine)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(s.client.Delete(ctx, mine))).To(Succeed()) })
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading", func(p *v1alpha1.LowLatencyNodeProfile) {
		p.Spec.ContainerRuntime.RuntimeClassName = "performance-mine"
	})
	degraded := s.expectCondition(ctx, "trading", v1alpha1.ConditionDegraded, metav1.ConditionTrue, v1alpha1.ReasonObjectConflict)
	Expect(degraded.Message).To(ContainSubstring("RuntimeClass performance-mine exists and was not made by the operator"))
	Expect(s.client.Get(ctx, client.ObjectKeyFromObject(mine), mine)).To(Succeed())
	Expect(mine.Handler).To(Equal("kata"))
	Expect(s.reboots.of("xeon-1")).To(BeZero())
}

func (s *suite) takesOutForeignNodeSpec(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	s.applyAs(ctx, "kubectl", map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "LowLatencyNode", "metadata": map[string]any{"name": "xeon-1"},
		"spec": map[string]any{"bypassPools": []any{"not-mine"}},
	})
	s.eventually(ctx, func(g Gomega) {
		report := &v1alpha1.LowLatencyNode{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-1"}, report)).To(Succeed())
		g.Expect(report.Spec.BypassPools).To(BeEmpty())
	})
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
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

func (s *suite) takesOutForeignContainer(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addPool(ctx, "x2", "trading")
	daemonSet := &appsv1.DaemonSet{}
	var key client.ObjectKey
	s.expectWorld(func(g Gomega) {
		var all appsv1.DaemonSetList
		g.Expect(s.client.List(ctx, &all, client.MatchingLabels{v1alpha1.LabelBypassPool: "x2"})).To(Succeed())
		g.Expect(all.Items).To(HaveLen(1))
		*daemonSet = all.Items[0]
		key = client.ObjectKeyFromObject(daemonSet)
	})
	before := daemonSet.DeepCopy()
	change := daemonSet.DeepCopy()
	change.Spec.Template.Spec.Containers = append(change.Spec.Template.Spec.Containers, corev1.Container{Name: "sidecar", Image: "sidecar"})
	change.Spec.Template.Spec.Containers[0].TTY = true
	change.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(600))
	change.Spec.Template.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "now"}
	Expect(s.client.Patch(ctx, change, client.MergeFrom(daemonSet), client.FieldOwner("kubectl-edit"))).To(Succeed())
	s.expectWorld(func(g Gomega) {
		g.Expect(s.client.Get(ctx, key, daemonSet)).To(Succeed())
		g.Expect(daemonSet.Spec.Template.Spec).To(Equal(before.Spec.Template.Spec))
	})
	Expect(daemonSet.Spec.Template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"), "kubectl rollout restart works")

	By("coming to rest")
	s.expectQuiet()
}

func (s *suite) showsDeadAgent(ctx SpecContext) {
	s.addNodes(ctx, "trading", "xeon-1")
	s.addProfile(ctx, "trading", "trading")
	s.expectReady(ctx, "trading")
	say := func(at time.Time) {
		GinkgoHelper()
		s.applyStatusAs(ctx, v1alpha1.AgentFieldManager, map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "LowLatencyNode", "metadata": map[string]any{"name": "xeon-1"},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": v1alpha1.ConditionReady, "status": "True", "reason": v1alpha1.ReasonVerified, "message": "proven",
				"lastTransitionTime": at.UTC().Format(time.RFC3339),
			}}},
		})
	}
	said := func(g Gomega) []metav1.Condition {
		report := &v1alpha1.LowLatencyNode{}
		g.Expect(s.client.Get(ctx, client.ObjectKey{Name: "xeon-1"}, report)).To(Succeed())
		return report.Status.Conditions
	}
	is := func(status metav1.ConditionStatus, reason string) gomegatypes.GomegaMatcher {
		return ContainElement(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", status), HaveField("Reason", reason)))
	}
	say(time.Now().Add(-time.Hour))
	s.renew(ctx, "xeon-1", heartbeat.Lifetime)
	s.expectWorld(func(g Gomega) { g.Expect(said(g)).To(is(metav1.ConditionUnknown, v1alpha1.ReasonHeartbeatStale)) })

	By("leaving the word of an agent that is alive and renews no Lease")
	say(time.Now())
	s.expectQuiet()
	Expect(said(NewGomega(Fail))).To(is(metav1.ConditionTrue, v1alpha1.ReasonVerified))
	s.renew(ctx, "xeon-1", 0)
	s.expectReady(ctx, "trading")
	s.expectReboots("xeon-1")
}

// applyStatusAs applies a status as another manager.
func (s *suite) applyStatusAs(ctx context.Context, manager string, fields map[string]any) {
	GinkgoHelper()
	Expect(s.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: fields}),
		client.FieldOwner(manager), client.ForceOwnership)).To(Succeed())
}
