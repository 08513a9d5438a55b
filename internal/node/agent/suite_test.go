// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/agent"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodeclient"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	namespace = "lowlatency-system"
	// agentNamespace is that of the Leases.
	agentNamespace = "lowlatency-agents"
	nodeName       = "worker-1"
	agentUser      = "agent-of-worker-1"
)

// cluster is the real API server that all specs share; each spec removes what it made.
type cluster struct {
	environment *apiserver.Environment
	// admin may do everything, agent what the agent's documentation says and no more.
	admin client.Client
	agent *nodeclient.Client
}

// intercepted is a client of which some answers are those of a test.
type intercepted struct {
	agent.Client

	get   func(ctx context.Context, name string) (*v1alpha1.LowLatencyNode, error)
	apply func(ctx context.Context, node *unstructured.Unstructured) error
	patch func() error
}

func (i intercepted) LowLatencyNode(ctx context.Context, name string) (*v1alpha1.LowLatencyNode, error) {
	if i.get != nil {
		return i.get(ctx, name)
	}
	return i.Client.LowLatencyNode(ctx, name)
}

func (i intercepted) ApplyStatus(ctx context.Context, node *unstructured.Unstructured) error {
	if i.apply != nil {
		return i.apply(ctx, node)
	}
	return i.Client.ApplyStatus(ctx, node)
}

func (i intercepted) PatchLease(ctx context.Context, namespace, name string, patch []byte) error {
	if i.patch != nil {
		return i.patch()
	}
	return i.Client.PatchLease(ctx, namespace, name, patch)
}

// watching is an intercepted client that can watch, too.
type watching struct {
	intercepted

	watch func(ctx context.Context, name string) (watch.Interface, error)
}

func (w watching) WatchLowLatencyNode(ctx context.Context, name string) (watch.Interface, error) {
	return w.watch(ctx, name)
}

func TestAgent(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Agent")
}

// startCluster starts the API server and gives the agent's user its rights.
func startCluster(ctx context.Context) *cluster {
	environment, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
	Expect(err).NotTo(HaveOccurred())
	c := &cluster{environment: environment, admin: environment.Client()}
	for _, object := range rights() {
		Expect(c.admin.Create(ctx, object)).To(Succeed())
	}
	config := environment.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: agentUser}
	c.agent, err = nodeclient.New(config)
	Expect(err).NotTo(HaveOccurred())
	return c
}

// rights are those that the package's documentation grants.
func rights() []client.Object {
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: agentUser}}
	named := func(name, inNamespace string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: inNamespace}
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: named(namespace, "")},
		&rbacv1.ClusterRole{ObjectMeta: named("agent", ""), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"lowlatency.dev"}, Resources: []string{"lowlatencynodes"}, ResourceNames: []string{nodeName}, Verbs: []string{"get", "watch"}},
			{APIGroups: []string{"lowlatency.dev"}, Resources: []string{"lowlatencynodes/status"}, ResourceNames: []string{nodeName}, Verbs: []string{"patch"}},
		}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: named("agent", ""), Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "agent"},
		},
		&rbacv1.Role{ObjectMeta: named("agent", namespace), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}},
		}},
		&corev1.Namespace{ObjectMeta: named(agentNamespace, "")},
		&rbacv1.Role{ObjectMeta: named("agent", agentNamespace), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{nodeName}, Verbs: []string{"patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: named("agent", agentNamespace), Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: named("agent", namespace), Subjects: subject,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
		},
	}
}
