// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"errors"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	timeout  = time.Minute
	interval = 20 * time.Millisecond
)

// rebooter records reboots and lets the test decide when and how they end.
type rebooter struct {
	mutex   sync.Mutex
	booted  []string
	release chan error
}

func (r *rebooter) Reboot(ctx context.Context, node string, rendered *mcfgv1.MachineConfig) error {
	r.mutex.Lock()
	r.booted = append(r.booted, node+" "+rendered.Name)
	r.mutex.Unlock()
	select {
	case err := <-r.release:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *rebooter) count() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.booted)
}

func currentPool() *mcfgv1.MachineConfigPool {
	GinkgoHelper()
	p := &mcfgv1.MachineConfigPool{}
	Expect(cluster.Get(context.Background(), client.ObjectKey{Name: "fast"}, p)).To(Succeed())
	return p
}

func poolIs(kind mcfgv1.MachineConfigPoolConditionType) func() corev1.ConditionStatus {
	return func() corev1.ConditionStatus {
		for _, condition := range currentPool().Status.Conditions {
			if condition.Type == kind {
				return condition.Status
			}
		}
		return corev1.ConditionUnknown
	}
}

// firstNode is the node that the operator updates first.
func firstNode() *corev1.Node {
	GinkgoHelper()
	n := &corev1.Node{}
	Expect(cluster.Get(context.Background(), client.ObjectKey{Name: "fast-a"}, n)).To(Succeed())
	return n
}

// createForContainer creates objects that the specs of this container share, and deletes them after the last: the
// containers of the suite run in any order on one API server.
func createForContainer(ctx context.Context, objects ...client.Object) {
	GinkgoHelper()
	for _, object := range objects {
		Expect(cluster.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(cluster.Delete(ctx, object)).To(Succeed()) })
	}
}

var _ = Describe("the simulated machine-config operator", Ordered, func() {
	reboots := &rebooter{release: make(chan error)}

	BeforeAll(func(ctx context.Context) {
		role := map[string]string{mcfgv1.MachineConfigRoleLabelKey: "fast"}
		objects := []client.Object{
			&mcfgv1.MachineConfigPool{
				ObjectMeta: metav1.ObjectMeta{Name: "fast", Labels: map[string]string{"pool": "fast"}},
				Spec: mcfgv1.MachineConfigPoolSpec{
					Paused:                true,
					MachineConfigSelector: &metav1.LabelSelector{MatchLabels: role},
					NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"fast": ""}},
				},
			},
			&mcfgv1.MachineConfig{
				ObjectMeta: metav1.ObjectMeta{Name: "50-fast", Labels: role},
				Spec: mcfgv1.MachineConfigSpec{
					KernelArguments: []string{"nohz=on"}, Config: runtime.RawExtension{Raw: []byte(`{"ignition":{"version":"3.2.0"}}`)},
				},
			},
			&mcfgv1.KubeletConfig{
				ObjectMeta: metav1.ObjectMeta{Name: "fast"},
				Spec: mcfgv1.KubeletConfigSpec{
					MachineConfigPoolSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "fast"}},
					KubeletConfig:             &runtime.RawExtension{Raw: []byte(`{"maxPods":10}`)},
				},
			},
			node("fast-a", map[string]string{"fast": ""}),
			node("fast-b", map[string]string{"fast": ""}),
		}
		createForContainer(ctx, objects...)
		running, stop := context.WithCancel(context.Background())
		operator := &MachineConfigOperator{Client: cluster, Rebooter: reboots, Clock: clock.RealClock{}, Interval: interval}
		ended := make(chan error)
		go func() { ended <- operator.Run(running) }()
		DeferCleanup(func() {
			stop()
			Eventually(ended, timeout).Should(Receive(BeNil()))
		})
	})

	It("renders MachineConfig and KubeletConfig of a paused machine config pool, and reboots nothing", func() {
		Eventually(func() []string {
			source := currentPool().Spec.Configuration.Source
			names := make([]string, len(source))
			for i := range source {
				names[i] = source[i].Name
			}
			return names
		}, timeout, interval).Should(Equal([]string{"50-fast", "99-fast-generated-kubelet"}))
		Consistently(reboots.count, 10*interval, interval).Should(BeZero())
		Expect(poolIs(mcfgv1.MachineConfigPoolUpdated)()).To(Equal(corev1.ConditionFalse))
	})

	It("reports Success for the current generation of the KubeletConfig", func(ctx context.Context) {
		config := &mcfgv1.KubeletConfig{}
		Eventually(func() int64 {
			Expect(cluster.Get(ctx, client.ObjectKey{Name: "fast"}, config)).To(Succeed())
			return config.Status.ObservedGeneration
		}, timeout, interval).Should(Equal(int64(1)))
		Expect(config.Status.Conditions[0].Type).To(Equal(mcfgv1.KubeletConfigSuccess))
	})

	It("deletes what was generated from a KubeletConfig that is no more", func(ctx context.Context) {
		orphan := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: "99-orphan-generated-kubelet", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: mcfgv1.GroupVersion.String(), Kind: "KubeletConfig", Name: "gone", UID: "11111111-2222-3333-4444-555555555555",
		}}}}
		Expect(cluster.Create(ctx, orphan)).To(Succeed())
		Eventually(func() error {
			return cluster.Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
		}, timeout, interval).Should(Satisfy(apierrors.IsNotFound))
		Expect(cluster.Get(ctx, client.ObjectKey{Name: "99-fast-generated-kubelet"}, &mcfgv1.MachineConfig{})).To(Succeed())
	})

	It("rolls an unpaused machine config pool node by node", func(ctx context.Context) {
		p := currentPool()
		before := p.DeepCopy()
		p.Spec.Paused = false
		Expect(cluster.Patch(ctx, p, client.MergeFrom(before))).To(Succeed())
		Eventually(reboots.count, timeout, interval).Should(Equal(1))
		Expect(firstNode().Spec.Unschedulable).To(BeTrue())
		Consistently(reboots.count, 10*interval, interval).Should(Equal(1))
		reboots.release <- nil
		Eventually(reboots.count, timeout, interval).Should(Equal(2))
		reboots.release <- nil
		Eventually(poolIs(mcfgv1.MachineConfigPoolUpdated), timeout, interval).Should(Equal(corev1.ConditionTrue))
		Expect(firstNode().Spec.Unschedulable).To(BeFalse())
		Expect(firstNode().Annotations).To(HaveKeyWithValue(annotationCurrentConfig, currentPool().Spec.Configuration.Name))
	})

	It("leaves a node that does not come up cordoned and the machine config pool degraded", func(ctx context.Context) {
		config := &mcfgv1.KubeletConfig{}
		Expect(cluster.Get(ctx, client.ObjectKey{Name: "fast"}, config)).To(Succeed())
		config.Spec.KubeletConfig.Raw = []byte(`{"maxPods":11}`)
		Expect(cluster.Update(ctx, config)).To(Succeed())
		Eventually(reboots.count, timeout, interval).Should(Equal(3))
		reboots.release <- errors.New("no space for hugepages")
		Eventually(poolIs(mcfgv1.MachineConfigPoolNodeDegraded), timeout, interval).Should(Equal(corev1.ConditionTrue))
		Expect(firstNode().Spec.Unschedulable).To(BeTrue())
		Expect(firstNode().Annotations).To(HaveKeyWithValue(annotationReason, "no space for hugepages"))
		Consistently(reboots.count, 10*interval, interval).Should(Equal(3))
	})
})
