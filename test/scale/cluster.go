// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/embedded"
)

const (
	namespace = "lowlatency-operator-system"
	// managerUser is as whom the manager works. It is no administrator, so that the API server shares itself out between the
	// manager and others as it does in a cluster.
	managerUser = "system:serviceaccount:" + namespace + ":lowlatency-operator"

	// writers is how many requests the simulation has under way at once.
	writers = 16
)

// auditPolicy records what the manager asks for, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, users: ["` + managerUser + `"]}
- {level: None}
`

// cluster is etcd and kube-apiserver with the kinds of OpenShift.
type cluster struct {
	dir         string
	environment *apiserver.Environment
	config      *rest.Config
	// direct reads from and writes to the API server.
	direct client.Client
	audit  *auditLog
}

// startCluster starts a cluster without nodes that has the kinds of OpenShift. The caller must stop it.
func startCluster(ctx context.Context) (*cluster, error) {
	c, err := startClusterOf(ctx, apiserver.Options{})
	if err != nil {
		return nil, err
	}
	return c, c.direct.Create(ctx, embedded.WorkerPool())
}

// startClusterOf starts a cluster without nodes. The caller must stop it.
func startClusterOf(ctx context.Context, options apiserver.Options) (*cluster, error) {
	dir, err := os.MkdirTemp("", "lowlatency-scale-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	c := &cluster{dir: dir, audit: &auditLog{path: filepath.Join(dir, "audit.log")}}
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	restore, err := spareGarbageCollection()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer restore()
	options.Flags = map[string]string{"audit-policy-file": policy, "audit-log-path": c.audit.path}
	c.environment, err = apiserver.Start(options)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c.config, c.direct = c.environment.Config(), c.environment.Client()
	c.config.QPS = -1
	return c, errors.Join(c.prepare(ctx), c.environment.WriteKubeconfigOf(c.kubeconfig(), managerUser, "system:serviceaccounts"))
}

// spareGarbageCollection lets etcd and kube-apiserver, which take it from the environment, collect garbage more seldom: memory
// is not scarce, and the processors that a real API server has for itself are shared with the manager here. The manager runs
// as its manifest says.
func spareGarbageCollection() (restore func(), err error) {
	const variable, percent = "GOGC", "400"
	before, found := os.LookupEnv(variable)
	if err := os.Setenv(variable, percent); err != nil {
		return nil, fmt.Errorf("setting %s: %w", variable, err)
	}
	return func() {
		if found {
			err = os.Setenv(variable, before)
		} else {
			err = os.Unsetenv(variable)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "restoring %s: %v\n", variable, err)
		}
	}, nil
}

// kubeconfig is the file by which the manager reaches the API server.
func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

func (c *cluster) stop() error { return errors.Join(c.environment.Stop(), os.RemoveAll(c.dir)) }

// prepare makes what a cluster has before the operator is installed. What the manager may do is tested elsewhere.
func (c *cluster) prepare(ctx context.Context) error {
	objects := []client.Object{
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "manager"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: managerUser}},
		},
		namespaceOf(namespace), namespaceOf(controllers.DefaultAgentNamespace), namespaceOf(manifests.TunedNamespace),
	}
	for _, object := range objects {
		if err := c.direct.Create(ctx, object); err != nil {
			return fmt.Errorf("preparing the cluster: %w", err)
		}
	}
	return nil
}

func namespaceOf(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// addNodes registers nodes that have the configuration of the pool worker.
func (c *cluster) addNodes(ctx context.Context, names []string) error {
	current, err := c.workerConfig(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, name := range names {
		group.Go(func() error { return c.direct.Create(ctx, workerNode(name, current)) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("creating Nodes: %w", err)
	}
	return nil
}

// workerConfig waits until the simulated machine-config operator has rendered the pool worker.
func (c *cluster) workerConfig(ctx context.Context) (string, error) {
	pool, current := embedded.WorkerPool(), ""
	err := until(ctx, time.Minute, func() (bool, error) {
		if err := c.direct.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
			return false, err
		}
		current = pool.Spec.Configuration.Name
		return current != "", nil
	})
	return current, err
}

// workerNode has as much of a Node as the kubelet of a real one writes: it is what the manager's cache has to drop.
func workerNode(name, config string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/trading": "",
			"node.openshift.io/os_id": "rhel", "topology.kubernetes.io/zone": "hall-1",
		},
		Annotations: map[string]string{
			"machineconfiguration.openshift.io/currentConfig": config, "machineconfiguration.openshift.io/desiredConfig": config,
			"machineconfiguration.openshift.io/state": "Done",
		},
	}}
	node.Status.NodeInfo.BootID = "boot-of-" + name
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
	}}
	for i := range imagesOfNode {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{fmt.Sprintf("registry.example/images/name-%02d@sha256:3f1c0c1b1a6f0a9b5b0d4f1ce2d3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5", i)}, SizeBytes: 1 << 28,
		})
	}
	return node
}

// imagesOfNode is how many images a node tells of: the kubelet's own bound.
const imagesOfNode = 50

// quiet answers whether the manager has written nothing for a while, for those who ask again and again.
func (c *cluster) quiet() func() (bool, error) {
	const while = 3 * time.Second
	last, since := -1, time.Now()
	return func() (bool, error) {
		requests, err := c.audit.requests()
		if n := count(requests, (*request).writes); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > while, err
	}
}

// until asks again until it is so; the error says when that takes too long.
func until(ctx context.Context, limit time.Duration, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		if done, err := so(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", limit, ctx.Err())
		case <-ticker.C:
		}
	}
}
