// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// TestCommandsOfACluster runs the commands that need a cluster, with the real kubectl, on an API server with a simulated fleet on
// which the operator runs. The documents' own commands create the profile and the pool.
func TestCommandsOfACluster(t *testing.T) {
	if !*all {
		t.Skip("make docs-test runs these")
	}
	w := newWorld(t)
	w.cluster(t)
	for _, text := range []string{
		"kubectl apply -f config/samples/tick-to-trade/profile.yaml -f config/samples/tick-to-trade/pool.yaml",
		"kubectl wait llnp/trading bnp/x2-onload --for=condition=Ready --timeout=5m",
	} {
		w.run(t, &command{file: "cluster_test.go", text: text})
	}
	w.performanceProfile(t)
	w.latencyTests(t)
	if t.Failed() {
		t.FailNow()
	}
	for _, stage := range []need{clusters, last} {
		for _, c := range allCommands(t) {
			if r, _ := ruleOf(&c); r.need == stage {
				w.forgetTest(t, &c)
				w.runAndCompare(t, &c)
			}
		}
	}
}

const performanceProfileCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: performanceprofiles.performance.openshift.io}
spec:
  group: performance.openshift.io
  scope: Cluster
  names: {plural: performanceprofiles, singular: performanceprofile, kind: PerformanceProfile, listKind: PerformanceProfileList}
  versions:
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// performanceProfile gives the cluster the kind of the Node Tuning Operator, which no module has, and the object that readers import.
func (w *world) performanceProfile(t *testing.T) {
	t.Helper()
	w.write(t, "performanceprofiles.yaml", []byte(performanceProfileCRD), 0o644)
	for _, text := range []string{
		"kubectl apply -f performanceprofiles.yaml", "kubectl wait crd/performanceprofiles.performance.openshift.io --for=condition=Established --timeout=1m",
		"kubectl apply -f performanceprofile.yaml",
	} {
		w.run(t, &command{file: "cluster_test.go", text: text})
	}
}

// latencyTests measures the nodes twice, and keeps both results in files, as readers have done who compare them.
func (w *world) latencyTests(t *testing.T) {
	t.Helper()
	w.copy(t, filepath.Join(repository, "config/samples/qualification/jitter.yaml"), "test.yaml")
	for _, text := range []string{
		"kubectl lowlatency test run quiet-cpus --profile trading --duration 10s --repetitions 3 --maximum 10us",
		"kubectl get latencytests -A -o yaml > before.yaml", "kubectl lowlatency test run quiet-cpus", "kubectl get latencytests -A -o yaml | tee after.yaml > tests.yaml",
	} {
		w.run(t, &command{file: "cluster_test.go", text: text})
	}
}

// forgetTest removes the LatencyTest that a command is to make.
func (w *world) forgetTest(t *testing.T, c *command) {
	t.Helper()
	if made := regexp.MustCompile(`lowlatency test run (\S+) --`).FindStringSubmatch(c.text); made != nil {
		w.run(t, &command{file: "cluster_test.go", text: "kubectl delete latencytest -n " + controllers.DefaultAgentNamespace + " --ignore-not-found " + made[1]})
	}
}

// cluster starts a cluster with two trading nodes and another one, on which Onload is installed, and tells the commands where it is.
func (w *world) cluster(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "docs-") //nolint:usetesting // Unix sockets are below it, so its path must be short.
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c, err := cluster.Start(ctx, cluster.Options{
		Dir: dir, Pace: 300 * time.Millisecond, BootTime: time.Second, PluginInterval: time.Second,
		AgentPace: cluster.AgentPace{Interval: time.Second, FullInterval: 4 * time.Second},
	})
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		c.Fleet.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	trading := map[string]string{"node-role.kubernetes.io/trading": ""}
	for name, labels := range map[string]map[string]string{"worker-1": trading, "worker-2": trading, "worker-3": nil} {
		machine := hosttree.Xeon().Small()
		machine.Hostname = name
		if err := c.Fleet.Add(ctx, name, machine, labels); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig := filepath.Join(w.dir, "kubeconfig")
	if err := c.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "KUBECONFIG="+kubeconfig)
	attachments, err := apiserver.NetworkAttachmentCRD()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"kubectl create namespace trading", "kubectl apply -f " + attachments,
		"kubectl wait crd/network-attachment-definitions.k8s.cni.cncf.io --for=condition=Established --timeout=1m",
	} {
		w.run(t, &command{file: "cluster_test.go", text: text})
	}
	c.StartPlatform(ctx)
	if _, err := c.StartOperator(ctx, nil); err != nil {
		t.Fatal(err)
	}
}
