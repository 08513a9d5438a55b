// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const timeout = time.Minute

func TestProcesses(t *testing.T) {
	RegisterFailHandler(Fail)
	folder := t.TempDir()
	It("manage and report on a cluster without OpenShift", func(ctx SpecContext) {
		environment, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(environment.Stop)
		kubeconfig := filepath.Join(folder, "kubeconfig")
		Expect(environment.WriteKubeconfig(kubeconfig)).To(Succeed())
		GinkgoT().Setenv("KUBECONFIG", kubeconfig)
		cluster := environment.Client()
		prepare(ctx, cluster)
		root := filepath.Join(folder, "host")
		Expect(hosttree.Xeon().Write(root)).To(Succeed())

		probe := freeAddress()
		run("manager", "--namespace", "operator", "--health-probe-bind-address", probe, "--leader-elect")
		Eventually(func(g Gomega) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+probe+"/readyz", nil)
			g.Expect(err).NotTo(HaveOccurred())
			answer, err := http.DefaultClient.Do(request)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(answer.Body.Close()).To(Succeed())
			g.Expect(answer.StatusCode).To(Equal(http.StatusOK))
		}, timeout, time.Second).Should(Succeed())
		run("agent", "--namespace", "operator", "--node-name", "worker-1", "--root", root)

		Eventually(func(g Gomega) {
			var profile v1alpha1.LowLatencyNodeProfile
			g.Expect(cluster.Get(ctx, client.ObjectKey{Name: "trading"}, &profile)).To(Succeed())
			g.Expect(profile.Status.Shapes).To(HaveLen(1), "%+v", profile.Status.Conditions)
			var report v1alpha1.LowLatencyNode
			g.Expect(cluster.Get(ctx, client.ObjectKey{Name: "worker-1"}, &report)).To(Succeed())
			g.Expect(report.Status.VerifiedPlanHash).To(Equal(profile.Status.Shapes[0].Hash))
		}, timeout, time.Second).Should(Succeed())
	})
	RunSpecs(t, "processes")
}

func prepare(ctx context.Context, cluster client.Client) {
	GinkgoHelper()
	profile := &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "trading"}}
	profile.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"role": "trading"}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "operator"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Labels: map[string]string{"role": "trading"}}},
		profile,
	} {
		Expect(cluster.Create(ctx, object)).To(Succeed())
	}
}

// run runs a subcommand until the spec ends.
func run(arguments ...string) {
	ctx, stop := context.WithCancel(context.Background())
	var process sync.WaitGroup
	process.Go(func() {
		defer GinkgoRecover()
		command := newCommand()
		command.SetArgs(arguments)
		err := command.ExecuteContext(ctx)
		if ctx.Err() == nil {
			Expect(err).NotTo(HaveOccurred(), "%v", arguments)
		}
	})
	DeferCleanup(func() {
		stop()
		process.Wait()
	})
}

func freeAddress() string {
	GinkgoHelper()
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(listener.Close()).To(Succeed()) }()
	return listener.Addr().String()
}
