// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/rollout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/guardedhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// TestCommandsOfAnOrdinaryCluster runs the commands about ordinary hosts, with the real kubectl, on an API server without the kinds of
// OpenShift: the operator has changed one simulated host there by the real guard, so that there is a key which that trusts.
func TestCommandsOfAnOrdinaryCluster(t *testing.T) {
	if !*all {
		t.Skip("make docs-test runs these")
	}
	w := newWorld(t)
	w.ordinaryCluster(t)
	for _, text := range []string{
		"kubectl apply -f config/samples/minimal.yaml", "kubectl wait llnp/minimal --for=condition=Ready --timeout=10m",
	} {
		w.run(t, &command{file: "ordinary_test.go", text: text})
	}
	if t.Failed() {
		t.FailNow()
	}
	for _, c := range allCommands(t) {
		if r, _ := ruleOf(&c); r.need == ordinary {
			w.runAndCompare(t, &c)
		}
	}
}

// ordinaryCluster starts a cluster with one host that a guard changes, and the operator, and tells the commands where it is.
func (w *world) ordinaryCluster(t *testing.T) {
	t.Helper()
	environment := w.server(t, apiserver.Options{Platform: apiserver.Kubernetes})
	for _, text := range []string{
		"kubectl create namespace " + cluster.Namespace, "kubectl create namespace " + controllers.DefaultAgentNamespace,
		"kubectl -n " + controllers.DefaultAgentNamespace + " create serviceaccount " + rollout.Account,
	} {
		w.run(t, &command{file: "ordinary_test.go", text: text})
	}
	connection := environment.Config()
	connection.QPS = -1
	agents, err := nodeclient.New(connection)
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	administrator, err := client.New(connection, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	fleet := &guardedhost.Fleet{
		Client: administrator, Dir: filepath.Join(shortFolder(t), "hosts"), Namespace: controllers.DefaultAgentNamespace,
		Pace: 300 * time.Millisecond, BootTime: time.Second,
		Agent: func(ctx context.Context, node, root string) error {
			a := cluster.NewAgent(agents, node, root, "", cluster.AgentPace{Interval: time.Second, FullInterval: 4 * time.Second})
			a.Guard = guard.ReadReport
			return a.Run(ctx)
		},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	if err := fleet.Add(ctx, "worker-1", hosttree.Xeon().Small(), map[string]string{"node-role.kubernetes.io/low-latency": ""}); err != nil {
		t.Fatal(err)
	}
	for _, run := range []func() error{
		func() error { return fleet.Run(ctx) },
		func() error { return cluster.RunOperator(ctx, connection, platform.Kubernetes) },
	} {
		running.Go(func() {
			if err := run(); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
}

// server starts an API server that nothing runs on, and tells the commands where it is.
func (w *world) server(t *testing.T, options apiserver.Options) *apiserver.Environment {
	t.Helper()
	environment, err := apiserver.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	kubeconfig := filepath.Join(w.dir, "kubeconfig")
	if err := environment.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "KUBECONFIG="+kubeconfig)
	return environment
}

// shortFolder is a folder of the test whose path is short: Unix sockets are below it.
func shortFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "docs-") //nolint:usetesting // See above.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
