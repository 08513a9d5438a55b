// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
)

var _ = Describe("The account of device plugins", func() {
	It("is deployed under the name that the operator gives its DaemonSets, without rights in the API", func() {
		objects := build("default")
		account := find[corev1.ServiceAccount](objects, "ServiceAccount", manifests.PoolServiceAccount)
		Expect(account.Namespace).To(Equal(agentNamespace))
		Expect(*account.AutomountServiceAccountToken).To(BeFalse())
		for _, object := range objects {
			Expect(object.GetName() == "lowlatency-operator-device-plugin-scc" || !grants(object.Object, manifests.PoolServiceAccount)).
				To(BeTrue(), object.GetKind()+" "+object.GetName())
		}
		binding := find[rbacv1.RoleBinding](objects, "RoleBinding", "lowlatency-operator-device-plugin-scc")
		Expect(binding.RoleRef.Name).To(Equal("lowlatency-operator-bypass-scc"))
		Expect(binding.Subjects).To(HaveExactElements(HaveField("Name", manifests.PoolServiceAccount)))
	})
})

// grants reports whether an object names the account among its subjects.
func grants(object map[string]any, account string) bool {
	subjects, _ := object["subjects"].([]any)
	for _, subject := range subjects {
		if fields, ok := subject.(map[string]any); ok && fields["name"] == account {
			return true
		}
	}
	return false
}
