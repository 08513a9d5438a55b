// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"os"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// constraint are the fields of a SecurityContextConstraints that the pods of this project have to do with.
type constraint struct {
	AllowHostNetwork    bool                `json:"allowHostNetwork"`
	AllowedCapabilities []corev1.Capability `json:"allowedCapabilities"`
	Volumes             []string            `json:"volumes"`
}

// needs adds what a pod needs to a constraint, and expects what all of them have in common.
func (c *constraint) needs(pod corev1.PodSpec) {
	GinkgoHelper()
	c.AllowHostNetwork = c.AllowHostNetwork || pod.HostNetwork
	Expect(pod.HostPID || pod.HostIPC).To(BeFalse())
	Expect(pod.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeRuntimeDefault))
	for _, container := range pod.Containers {
		security := container.SecurityContext
		Expect(*security.Privileged || *security.AllowPrivilegeEscalation).To(BeFalse())
		Expect(*security.RunAsUser).To(BeZero())
		Expect(*security.ReadOnlyRootFilesystem).To(BeTrue())
		Expect(security.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
		c.AllowedCapabilities = append(c.AllowedCapabilities, security.Capabilities.Add...)
	}
	for _, volume := range pod.Volumes {
		switch {
		case volume.HostPath != nil:
			c.Volumes = append(c.Volumes, "hostPath")
		case volume.EmptyDir != nil:
			c.Volumes = append(c.Volumes, "emptyDir")
		case volume.ConfigMap != nil:
			c.Volumes = append(c.Volumes, "configMap")
		default:
			Fail("a volume of another type: " + volume.Name)
		}
	}
}

// constraintOf is the constraint that a pod asks for, which its account must be allowed to use.
func constraintOf(objects []*unstructured.Unstructured, template corev1.PodTemplateSpec) constraint {
	GinkgoHelper()
	name := template.Annotations["openshift.io/required-scc"]
	var found constraint
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(
		find[unstructured.Unstructured](objects, "SecurityContextConstraints", name).Object, &found)).To(Succeed())
	account := template.Spec.ServiceAccountName
	binding := find[rbacv1.RoleBinding](objects, "RoleBinding", account+"-scc")
	Expect(binding.Subjects).To(HaveExactElements(HaveField("Name", account)))
	role := find[rbacv1.ClusterRole](objects, "ClusterRole", binding.RoleRef.Name)
	Expect(role.Rules).To(HaveExactElements(HaveField("ResourceNames", HaveExactElements(name))))
	return found
}

var _ = Describe("The security context constraints of OpenShift", func() {
	It("give agents what they need and no more", func() {
		objects := build("openshift")
		template := find[appsv1.DaemonSet](objects, "DaemonSet", "lowlatency-operator-agent").Spec.Template
		given := constraintOf(objects, template)
		var needed constraint
		needed.needs(template.Spec)
		needed.needs(find[appsv1.DaemonSet](build("openshift-repair"), "DaemonSet", "lowlatency-operator-agent").Spec.Template.Spec)
		expectCovered(given, needed)
	})

	It("give device plugins and DRA drivers of all stacks what they need and no more", func() {
		objects := build("openshift")
		var given, needed constraint
		for _, name := range []string{"pool-dpdk", "pool-e810-sockets", "pool-x2-dynamic", "pool-x2"} {
			content, err := os.ReadFile("../internal/bypass/manifests/testdata/" + name + ".yaml")
			Expect(err).NotTo(HaveOccurred())
			for _, object := range decode(content) {
				if object.GetKind() == "DaemonSet" {
					template := find[appsv1.DaemonSet]([]*unstructured.Unstructured{object}, "DaemonSet", object.GetName()).Spec.Template
					given = constraintOf(objects, template)
					needed.needs(template.Spec)
				}
			}
		}
		expectCovered(given, needed)
	})

	It("give clients of LatencyTests the network of their node, and nothing else of it", func() {
		template := hostJob().Spec.Template
		Expect(template.Spec.HostNetwork).To(BeTrue())
		Expect(template.Spec.HostPID || template.Spec.HostIPC).To(BeFalse())
		given := constraintOf(build("openshift"), template)
		Expect(given).To(Equal(constraint{AllowHostNetwork: true, AllowedCapabilities: []corev1.Capability{}, Volumes: []string{"none"}}))
		content := find[unstructured.Unstructured](build("openshift"), "SecurityContextConstraints", template.Annotations["openshift.io/required-scc"]).Object
		Expect(content).To(HaveKeyWithValue("seccompProfiles", []any{"unconfined"}))
		Expect(content).To(HaveKeyWithValue("runAsUser", map[string]any{"type": "MustRunAsNonRoot"}))
		for _, field := range []string{"allowHostDirVolumePlugin", "allowHostIPC", "allowHostPID", "allowHostPorts", "allowPrivilegedContainer", "allowPrivilegeEscalation"} {
			Expect(content).To(HaveKeyWithValue(field, false))
		}
		Expect(template.Spec.SecurityContext.SeccompProfile.Type).To(Equal(corev1.SeccompProfileTypeUnconfined))
		Expect(*template.Spec.SecurityContext.RunAsNonRoot && *template.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem).To(BeTrue())
		Expect(template.Spec.Containers[0].SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
	})

	It("are asked for by no pod as privileged", func() {
		for _, object := range build("openshift-repair") {
			content, err := object.MarshalJSON()
			Expect(err).NotTo(HaveOccurred())
			Expect(string(content)).NotTo(ContainSubstring(`required-scc":"privileged`), object.GetName())
			Expect(string(content)).NotTo(ContainSubstring(`"resourceNames":["privileged"]`), object.GetName())
		}
	})
})

// expectCovered expects that a constraint gives what is needed and nothing else but the volumes that the API server adds to
// pods with a token.
func expectCovered(given, needed constraint) {
	GinkgoHelper()
	Expect(given.AllowHostNetwork).To(Equal(needed.AllowHostNetwork))
	slices.Sort(needed.AllowedCapabilities)
	Expect(given.AllowedCapabilities).To(ConsistOf(slices.Compact(needed.AllowedCapabilities)))
	slices.Sort(needed.Volumes)
	volumes := slices.DeleteFunc(slices.Clone(given.Volumes), func(kind string) bool {
		return kind == "projected" || kind == "downwardAPI" || kind == "emptyDir" && !slices.Contains(needed.Volumes, kind)
	})
	Expect(volumes).To(ConsistOf(slices.Compact(needed.Volumes)))
}
