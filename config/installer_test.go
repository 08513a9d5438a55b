// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/installer"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	// olmNamespace is where an administrator has put the operator: not where the manifests have it.
	olmNamespace     = "openshift-quiet-nodes"
	installerAccount = "lowlatency-operator-installer"
	managerAccount   = "lowlatency-operator-controller-manager"
)

// permission are the rights that a ClusterServiceVersion gives to a service account.
type permission struct {
	ServiceAccountName string              `json:"serviceAccountName"`
	Rules              []rbacv1.PolicyRule `json:"rules"`
}

// grantPermissions does with the rights of the ClusterServiceVersion what Operator Lifecycle Manager does.
func grantPermissions(ctx context.Context, admin client.Client) {
	GinkgoHelper()
	content, err := os.ReadFile("../bundle/manifests/lowlatency-operator.clusterserviceversion.yaml")
	Expect(err).NotTo(HaveOccurred())
	var csv struct {
		Spec struct {
			Install struct {
				Spec struct{ ClusterPermissions, Permissions []permission }
			}
		}
	}
	Expect(yaml.Unmarshal(content, &csv)).To(Succeed())
	granted := csv.Spec.Install.Spec
	Expect(granted.ClusterPermissions).To(HaveLen(2))
	for _, one := range granted.ClusterPermissions {
		meta := metav1.ObjectMeta{Name: one.ServiceAccountName}
		Expect(admin.Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: one.Rules})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, Subjects: subjects(one.ServiceAccountName),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: one.ServiceAccountName},
		})).To(Succeed())
	}
	for _, one := range granted.Permissions {
		meta := metav1.ObjectMeta{Namespace: olmNamespace, Name: one.ServiceAccountName}
		Expect(admin.Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: one.Rules})).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects(one.ServiceAccountName),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: one.ServiceAccountName},
		})).To(Succeed())
	}
}

func subjects(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: olmNamespace, Name: account}}
}

var _ = Describe("The installer of what a bundle cannot hold", Ordered, func() {
	var (
		environment *apiserver.Environment
		admin       client.Client
		objects     []*unstructured.Unstructured
	)

	// as has the identity of a service account.
	as := func(account string) client.Client {
		GinkgoHelper()
		config := environment.Config()
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + olmNamespace + ":" + account,
			Groups:   []string{"system:serviceaccounts", "system:authenticated"},
		}
		impersonated, err := client.New(config, client.Options{Scheme: admin.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		return impersonated
	}

	BeforeAll(func(ctx SpecContext) {
		var err error
		environment, err = apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(environment.Stop()).To(Succeed()) })
		admin = environment.Client()
		Expect(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: olmNamespace}})).To(Succeed())
		grantPermissions(ctx, admin)
		objects, err = installer.Objects(installer.Options{Namespace: olmNamespace, Image: "operator:1", Agents: installer.AgentsRead})
		Expect(err).NotTo(HaveOccurred())
	})

	It("installs everything with the rights that the bundle gives it, again and again", func(ctx SpecContext) {
		own := as(installerAccount)
		install := &installer.Installer{Client: own, Mapper: own.RESTMapper(), Objects: objects, Clock: clock.RealClock{}, Log: logr.Discard()}
		// The API server authorizes by what it has seen of the rights.
		Eventually(func() error { return install.Install(ctx) }).WithTimeout(policyDelay).Should(Succeed())
		Expect(install.Install(ctx)).To(Succeed())

		for _, object := range objects {
			served, err := platform.Serves(admin.RESTMapper(), object.GroupVersionKind())
			Expect(err).NotTo(HaveOccurred())
			if !served {
				continue
			}
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(object.GroupVersionKind())
			Expect(admin.Get(ctx, client.ObjectKeyFromObject(object), live)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
			Expect(live.GetOwnerReferences()).To(HaveExactElements(HaveField("Name", installer.OwnerCRD)))
		}
		var agent appsv1.DaemonSet
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: agentNamespace, Name: "lowlatency-operator-agent"}, &agent)).To(Succeed())
		Expect(agent.Spec.Template.Spec.Containers[0].Image).To(Equal("operator:1"))
		Expect(agent.Spec.Template.Spec.Containers[0].Args).To(ContainElement("--namespace=" + olmNamespace))
	})

	It("gives the manager its rights where the agents are, and the policies that bind it", func(ctx SpecContext) {
		manager := as(managerAccount)
		Eventually(func() error {
			return manager.List(ctx, &appsv1.DaemonSetList{}, client.InNamespace(agentNamespace))
		}).WithTimeout(policyDelay).Should(Succeed())
		Expect(manager.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(olmNamespace))).To(Succeed())
		Expect(manager.List(ctx, &appsv1.DaemonSetList{}, client.InNamespace("default"))).To(Satisfy(apierrors.IsForbidden))
		other := &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "lowlatency-operator-agent"},
		}
		Eventually(func() error {
			return manager.Patch(ctx, other, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		}).WithTimeout(policyDelay).Should(Satisfy(apierrors.IsForbidden))
	})

	It("can write nothing else", func(ctx SpecContext) {
		own := as(installerAccount)
		role := &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "another"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
		}
		Expect(own.Create(ctx, role)).To(Satisfy(apierrors.IsForbidden))
		binding := &rbacv1.ClusterRoleBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: "another"}, Subjects: subjects(installerAccount),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}
		Expect(own.Create(ctx, binding)).To(Satisfy(apierrors.IsForbidden))
		binding.Name = "lowlatency-operator-agent"
		Expect(own.Create(ctx, binding)).To(Satisfy(apierrors.IsForbidden))
		Expect(own.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "another"}})).To(Satisfy(apierrors.IsForbidden))
		Expect(own.Get(ctx, client.ObjectKey{Namespace: olmNamespace, Name: "lowlatency-operator-metrics-reader-token"}, &corev1.Secret{})).
			To(Satisfy(apierrors.IsForbidden))
		Expect(own.List(ctx, &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden))
		Expect(own.Delete(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "lowlatency-operator-agent"}})).
			To(Satisfy(apierrors.IsForbidden))
	})

	It("starts the binary with flags that it has", func(ctx SpecContext) {
		deployment := find[appsv1.Deployment](build("olm"), "Deployment", installerAccount)
		expectCommand(ctx, deployment.Spec.Template.Spec.Containers[0])
		Expect(createPod(ctx, admin, olmNamespace, deployment.Spec.Template)).To(Succeed())
	})
})
