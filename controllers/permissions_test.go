// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package controllers_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
)

// operatorUser is the user as whom the operator runs in the suite.
const operatorUser = "system:serviceaccount:" + namespace + ":lowlatency-operator"

// impersonation makes the API server judge requests as those of the operator's service account.
func impersonation() rest.ImpersonationConfig {
	return rest.ImpersonationConfig{UserName: operatorUser, Groups: []string{"system:authenticated"}}
}

// grantPermissions gives the operator the roles that it is deployed with, and nothing else: the suite fails when
// a marker of a reconciler is missing.
func (s *suite) grantPermissions(ctx context.Context) {
	GinkgoHelper()
	file, err := os.Open(filepath.Join("..", "config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(file.Close()).To(Succeed()) }()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	for {
		role := &unstructured.Unstructured{}
		err := decoder.Decode(&role.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(s.client.Create(ctx, role)).To(Succeed())
		s.bindRole(ctx, role)
	}
}

func (s *suite) bindRole(ctx context.Context, role *unstructured.Unstructured) {
	GinkgoHelper()
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}}
	meta := metav1.ObjectMeta{Name: role.GetName(), Namespace: role.GetNamespace()}
	if role.GetKind() == "Role" {
		Expect(s.client.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects})).To(Succeed())
		return
	}
	Expect(s.client.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: reference, Subjects: subjects})).To(Succeed())
}
