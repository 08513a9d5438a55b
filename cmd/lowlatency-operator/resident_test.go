// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

// BenchmarkResidentMemory runs the real program as an agent on a worker of 80 CPUs, against a real API server, and
// reports the memory that it holds after some dozens of passes. The time of an iteration means nothing.
func BenchmarkResidentMemory(b *testing.B) {
	g := NewWithT(b)
	environment, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
	g.Expect(err).NotTo(HaveOccurred())
	b.Cleanup(func() { g.Expect(environment.Stop()).To(Succeed()) })
	machine := hosttree.Xeon()
	machine.CoresPerNUMANode, machine.CoresPerL3 = 20, 20
	folder := b.TempDir()
	h, err := tunedhost.New(b.Context(), filepath.Join(folder, "host"), machine, tunedhost.Profile())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(h.Apply()).To(Succeed())
	publishPlan(b.Context(), g, environment.Client(), h)
	program := filepath.Join(folder, "lowlatency-operator")
	output, err := exec.CommandContext(b.Context(), "go", "build", "-o", program, ".").CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(output))
	kubeconfig := connectionFile(g, environment.Config(), folder)

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
		for _, name := range []string{"VmRSS", "VmHWM", "RssAnon"} {
			b.ReportMetric(memoryOf(g, agent.Process.Pid, name)/1024, "MiB-"+name)
		}
		g.Expect(agent.Process.Kill()).To(Succeed())
		_ = agent.Wait()
	}
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

// connectionFile writes a connection as a file for KUBECONFIG.
func connectionFile(g Gomega, config *rest.Config, folder string) string {
	file := clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	file.CurrentContext = "test"
	path := filepath.Join(folder, "kubeconfig")
	g.Expect(clientcmd.WriteToFile(*file, path)).To(Succeed())
	return path
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
