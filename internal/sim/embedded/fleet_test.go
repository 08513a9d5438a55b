// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// agents records which agents run.
type agents struct {
	mutex   sync.Mutex
	running map[string]string
	starts  int
}

func (a *agents) run(ctx context.Context, node, root string) error {
	a.mutex.Lock()
	a.starts++
	first := a.starts == 1
	a.running[node] = root
	a.mutex.Unlock()
	if first {
		return errors.New("the first start fails")
	}
	<-ctx.Done()
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.running, node)
	return nil
}

func (a *agents) rootOf(node string) func() string {
	return func() string {
		a.mutex.Lock()
		defer a.mutex.Unlock()
		return a.running[node]
	}
}

var _ = Describe("a fleet", Ordered, func() {
	var (
		fleet   *Fleet
		watched = &agents{running: map[string]string{}}
		dir     string
	)

	BeforeAll(func() {
		ctx, stop := context.WithCancel(context.Background())
		dir = GinkgoT().TempDir()
		fleet = &Fleet{Client: cluster, Dir: dir, Agent: watched.run, Clock: clock.RealClock{}, BootTime: time.Millisecond}
		Expect(fleet.Add(ctx, "arm-1", hosttree.Arm(), map[string]string{"tuning": "yes"})).To(Succeed())
		Expect(fleet.AddRealHost(ctx, "real", "amd64", nil)).To(Succeed())
		DeferCleanup(func() {
			stop()
			fleet.Wait()
		})
	})

	It("registers its nodes and keeps an agent on each", func(ctx context.Context) {
		Expect(fleet.Names()).To(Equal([]string{"arm-1", "real"}))
		node := &corev1.Node{}
		Expect(cluster.Get(ctx, client.ObjectKey{Name: "arm-1"}, node)).To(Succeed())
		Expect(node.Labels).To(HaveKeyWithValue("kubernetes.io/arch", "arm64"))
		Expect(node.Labels).To(HaveKeyWithValue("tuning", "yes"))
		Eventually(watched.rootOf("arm-1"), timeout, interval).Should(Equal(filepath.Join(dir, "arm-1")))
		Eventually(watched.rootOf("real"), timeout, interval).Should(Equal("/"))
		Expect(fleet.Root("real")).To(Equal("/"))
	})

	It("refuses a node that it does not have", func(ctx context.Context) {
		_, err := fleet.Root("nobody")
		Expect(err).To(MatchError("the fleet has no node nobody"))
		Expect(fleet.Reboot(ctx, "nobody", &mcfgv1.MachineConfig{})).NotTo(Succeed())
		Expect(fleet.Reboots("nobody")).To(BeZero())
	})

	It("reports which boot of a host it is, as a kubelet does", func(ctx context.Context) {
		boots := func(name, root string) (reported, booted string) {
			node := &corev1.Node{}
			Expect(cluster.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
			text, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"))
			Expect(err).NotTo(HaveOccurred())
			return node.Status.NodeInfo.BootID, strings.TrimSpace(string(text))
		}
		first, booted := boots("arm-1", filepath.Join(dir, "arm-1"))
		Expect(first).To(Equal(booted))
		Expect(fleet.Reboot(ctx, "arm-1", &mcfgv1.MachineConfig{})).To(Succeed())
		second, booted := boots("arm-1", filepath.Join(dir, "arm-1"))
		Expect(second).To(And(Equal(booted), Not(Equal(first))))
		reported, booted := boots("real", "/")
		Expect(reported).To(Equal(booted))
	})

	It("reboots a simulated host and leaves the real one alone", func(ctx context.Context) {
		config := &mcfgv1.MachineConfig{Spec: mcfgv1.MachineConfigSpec{KernelArguments: []string{"nohz_full=4-7"}}}
		Expect(fleet.Reboot(ctx, "arm-1", config)).To(Succeed())
		Expect(fleet.Reboot(ctx, "real", config)).To(Succeed())
		Expect(fleet.Reboots("arm-1")).To(Equal(2))
		Expect(fleet.Reboots("real")).To(BeZero())
		Expect(os.ReadFile(filepath.Join(dir, "arm-1/sys/devices/system/cpu/nohz_full"))).To(ContainSubstring("4-7"))
		Eventually(watched.rootOf("arm-1"), timeout, interval).Should(Equal(filepath.Join(dir, "arm-1")))
	})

	It("hands TuneD profiles to the nodes of the machine config pool, and keeps them over a reboot", func(ctx context.Context) {
		role := map[string]string{mcfgv1.MachineConfigRoleLabelKey: "tuning"}
		pool := &mcfgv1.MachineConfigPool{
			ObjectMeta: metav1.ObjectMeta{Name: "tuning"},
			Spec: mcfgv1.MachineConfigPoolSpec{
				Paused: true, MachineConfigSelector: &metav1.LabelSelector{MatchLabels: role},
				NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tuning": "yes"}},
			},
		}
		object := tunedObject("tuning", 15, "tuning", "[sysctl]\nvm.stat_interval=10\n")
		object.SetAPIVersion("tuned.openshift.io/v1")
		object.SetKind("Tuned")
		object.SetNamespace("default")
		createForContainer(ctx, pool, &object)
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		tuning := &NodeTuning{Client: cluster, Fleet: fleet, Clock: clock.RealClock{}, Interval: interval}
		go func() { ended <- tuning.Run(running) }()
		statInterval := func() (string, error) {
			select {
			case err := <-ended:
				return "", StopTrying("the node tuning operator ended").Wrap(err)
			default:
			}
			text, err := os.ReadFile(filepath.Join(dir, "arm-1/proc/sys/vm/stat_interval"))
			return string(text), err
		}
		Eventually(statInterval, timeout, interval).Should(Equal("10\n"))
		stop()
		Eventually(ended, timeout).Should(Receive(BeNil()))
		Expect(fleet.Reboot(ctx, "arm-1", &mcfgv1.MachineConfig{})).To(Succeed())
		Expect(statInterval()).To(Equal("10\n"))

		By("keeping back a profile that is deferred until the node boots")
		next := Profile{Name: "tuning", Text: "[sysctl]\nvm.stat_interval=20\n", Deferred: true}
		Expect(fleet.Tune("arm-1", next)).To(Succeed())
		Expect(statInterval()).To(Equal("10\n"))
		Expect(fleet.Reboot(ctx, "arm-1", &mcfgv1.MachineConfig{})).To(Succeed())
		Expect(statInterval()).To(Equal("20\n"))

		By("applying one of another name, and one that is not deferred any more")
		next.Name, next.Text = "other", "[sysctl]\nvm.stat_interval=30\n"
		Expect(fleet.Tune("arm-1", next)).To(Succeed())
		Expect(statInterval()).To(Equal("30\n"))
		next.Text = "[sysctl]\nvm.stat_interval=40\n"
		Expect(fleet.Tune("arm-1", next)).To(Succeed())
		Expect(statInterval()).To(Equal("30\n"))
		next.Deferred = false
		Expect(fleet.Tune("arm-1", next)).To(Succeed())
		Expect(statInterval()).To(Equal("40\n"))
	})
})
