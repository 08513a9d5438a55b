// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"net/netip"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	pluginNode     = "xeon-plugin"
	pluginResource = "lowlatency.dev/x2"
	pluginPace     = 20 * time.Millisecond
)

// runPlugin runs the real device plugin.
func runPlugin(ctx context.Context, on PluginOnNode) error {
	source := &deviceplugin.Source{
		PoolFile: on.PoolFile, Root: on.Root, NodeName: on.Node, HostAddresses: []netip.Addr{netip.MustParseAddr(hosttree.NodeAddress)},
	}
	plugin := &deviceplugin.Plugin{
		Evaluate: source.Evaluate, PoolFile: on.PoolFile, KubeletFolder: on.KubeletFolder, CDIFolder: on.CDIFolder, Interval: pluginPace,
	}
	return plugin.Run(ctx)
}

// createPool creates what the operator creates for a pool of the Solarflare NICs.
func createPool(ctx context.Context) {
	GinkgoHelper()
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2", Generation: 1}}
	pool.Spec = v1alpha1.BypassNICPoolSpec{
		NodeSelector: v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"bypass": "yes"}},
		NICs:         []v1alpha1.NICSelector{{Vendor: "1924"}},
		Stack: v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
			UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
		}},
		ResourceName: pluginResource,
	}
	objects, err := manifests.PoolObjects(manifests.PoolInput{
		Pool: pool, Config: bypass.Pool{Name: "x2", Generation: 1, Spec: pool.Spec},
		Image: "operator:v1", OperatorNamespace: "default", AgentNamespace: "kube-system",
	})
	Expect(err).NotTo(HaveOccurred())
	for _, object := range objects {
		Expect(cluster.Create(ctx, object)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(cluster.Delete(ctx, object)).To(Succeed()) })
	}
}

var _ = Describe("simulated kubelets", func() {
	It("run the device plugins of pools and report what they advertise", func(ctx SpecContext) {
		running, stop := context.WithCancel(context.Background())
		dir, err := os.MkdirTemp("", "kubelets")
		Expect(err).NotTo(HaveOccurred())
		fleet := &Fleet{
			Client: cluster, Dir: GinkgoT().TempDir(), Clock: clock.RealClock{}, BootTime: time.Millisecond,
			Agent: func(ctx context.Context, _, _ string) error { <-ctx.Done(); return nil },
		}
		machine := hosttree.Xeon()
		machine.Onload = hosttree.NewOnload()
		Expect(fleet.Add(running, pluginNode, machine, map[string]string{"bypass": "yes", v1alpha1.LabelProfile: "trading"})).To(Succeed())
		kubelets := &Kubelets{Client: cluster, Fleet: fleet, Dir: dir, Plugin: runPlugin, Clock: clock.RealClock{}, Interval: pluginPace}
		ended := make(chan error, 1)
		go func() { ended <- kubelets.Run(running) }()
		DeferCleanup(func(ctx SpecContext) {
			stop()
			Expect(<-ended).To(Succeed())
			fleet.Wait()
			Expect(cluster.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pluginNode}})).To(Succeed())
			Expect(os.RemoveAll(dir)).To(Succeed())
		})
		createPool(ctx)
		expectPlugins(ctx, 2, 1)

		By("losing every unit while modules and user files are of different releases")
		root, err := fleet.Root(pluginNode)
		Expect(err).NotTo(HaveOccurred())
		Expect(hosttree.SetOnloadVersion(root, "9.9.9.9", "00000000000000000000000000000000")).To(Succeed())
		expectPlugins(ctx, 0, 1)
		Expect(hosttree.SetOnload(root, hosttree.NewOnload())).To(Succeed())
		expectPlugins(ctx, 2, 1)

		By("ending the plugin on a node that the pool no longer selects")
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pluginNode}}
		Expect(cluster.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"bypass":null}}}`)))).To(Succeed())
		expectPlugins(ctx, 0, 0)
	}, SpecTimeout(5*time.Minute))
})

// expectPlugins waits until so many units are allocatable on the node, and so many pods of the DaemonSet are ready.
func expectPlugins(ctx context.Context, units, pods int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		node := &corev1.Node{}
		g.Expect(cluster.Get(ctx, client.ObjectKey{Name: pluginNode}, node)).To(Succeed())
		allocatable, known := node.Status.Allocatable[pluginResource]
		g.Expect(known).To(BeTrue())
		g.Expect(allocatable.Value()).To(BeEquivalentTo(units))
		daemonSet := &appsv1.DaemonSet{}
		g.Expect(cluster.Get(ctx, client.ObjectKey{Namespace: "kube-system", Name: "bypass-x2"}, daemonSet)).To(Succeed())
		g.Expect([]int32{daemonSet.Status.DesiredNumberScheduled, daemonSet.Status.NumberReady}).To(Equal([]int32{int32(pods), int32(pods)})) //nolint:gosec // 0 or 1.
	}).WithContext(ctx).WithTimeout(time.Minute).WithPolling(pluginPace).Should(Succeed())
}
