// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package footprint

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// BenchmarkAgent runs the real program on a worker of 80 CPUs, against a real API server, and
// reports the memory that it holds after some dozens of passes. The time of an iteration means nothing.
func BenchmarkAgent(b *testing.B) {
	g := NewWithT(b)
	environment, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
	g.Expect(err).NotTo(HaveOccurred())
	b.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) })
	folder := b.TempDir()
	h, err := tunedhost.New(b.Context(), filepath.Join(folder, "host"), machine(), tunedhost.Profile())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.Apply()).To(Succeed())
	publishPlan(b.Context(), g, environment.Client(), h)
	program := build(b, "cmd/lowlatency-agent")
	kubeconfig := filepath.Join(folder, "kubeconfig")
	g.Expect(environment.WriteKubeconfig(kubeconfig)).To(Succeed())

	for b.Loop() {
		agent := exec.CommandContext(b.Context(), program, "agent", "--node-name", "worker-1", "--namespace", "operator",
			"--root", h.Dir, "--interval", "500ms", "--full-interval", "2s", "--listen", "127.0.0.1:0")
		agent.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "GOMAXPROCS=2")
		g.Expect(agent.Start()).To(Succeed())
		node := &v1alpha1.LowLatencyNode{}
		g.Eventually(func() string {
			g.Expect(environment.Client().Get(b.Context(), client.ObjectKey{Name: "worker-1"}, node)).To(Succeed())
			return node.Status.VerifiedPlanHash
		}, time.Minute, time.Second).Should(Equal(h.Plan.Hash()))
		time.Sleep(20 * time.Second)
		for name, unit := range map[string]string{"VmRSS": "MiB-resident", "VmHWM": "MiB-peak", "RssAnon": "MiB-anonymous"} {
			b.ReportMetric(memoryOf(g, agent.Process.Pid, name)/kibPerMiB, unit)
		}
		g.Expect(agent.Process.Kill()).To(Succeed())
		_ = agent.Wait()
	}
}

// machine has 80 CPUs: two packages of 20 cores with two threads.
func machine() hosttree.Machine {
	xeon := hosttree.Xeon()
	xeon.CoresPerNUMANode, xeon.CoresPerL3 = 20, 20
	return xeon
}

// publishPlan stores a plan as the operator does.
func publishPlan(ctx context.Context, g Gomega, cluster client.Client, h *tunedhost.Host) {
	text, err := json.Marshal(h.Plan)
	g.Expect(err).NotTo(HaveOccurred())
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "operator"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plan", Namespace: "operator"}, Data: map[string]string{v1alpha1.PlanKey: string(text)}},
		&v1alpha1.LowLatencyNode{
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
			Spec:       v1alpha1.LowLatencyNodeSpec{Profile: "trading", PlanHash: h.Plan.Hash(), PlanConfigMap: "plan"},
		},
	} {
		g.Expect(cluster.Create(ctx, object)).To(Succeed())
	}
}

// memoryOf is a line of a process's status in KiB, as proc_pid_status(5) describes them.
func memoryOf(g Gomega, pid int, name string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	g.Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			g.Expect(err).NotTo(HaveOccurred())
			return kib
		}
	}
	g.Expect(status).To(BeNil(), "no line "+name)
	return 0
}
