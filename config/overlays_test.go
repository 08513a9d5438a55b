// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// builtImage are the names of the images in config/, which an overlay replaces.
var builtImage = regexp.MustCompile(`\bcontroller:latest\b|\bghcr\.io/`)

// givenTraffic is what an overlay replaces the image by that measures over the network, givenImage that of the operator.
const givenTraffic = "registry.example.com/team/traffic:v9"

const givenImage = "registry.example.com/team/lowlatency-operator@sha256:" +
	"0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"

// overlay builds somebody's own kustomization of a folder of config/ with components and another image.
func overlay(resource string, components ...string) []*unstructured.Unstructured {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	here, err := filepath.Abs(".")
	Expect(err).NotTo(HaveOccurred())
	relative := func(name string) string {
		GinkgoHelper()
		if strings.Contains(name, "://") {
			return name
		}
		path, err := filepath.Rel(folder, filepath.Join(here, name))
		Expect(err).NotTo(HaveOccurred())
		return path
	}
	name, digest, _ := strings.Cut(givenImage, "@")
	kustomization := map[string]any{
		"resources": []string{relative(resource)},
		"images": []map[string]string{
			{"name": "controller", "newName": name, "digest": digest},
			{"name": "ghcr.io/lowlatency-dev/lowlatency-traffic", "newName": "registry.example.com/team/traffic", "newTag": "v9"},
		},
	}
	paths := make([]string, 0, len(components))
	for _, component := range components {
		paths = append(paths, relative(component))
	}
	if len(paths) > 0 {
		kustomization["components"] = paths
	}
	content, err := yaml.Marshal(kustomization)
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), content, 0o600)).To(Succeed())
	return build(folder)
}

// untyped is the one object of a kind and name.
func untyped(objects []*unstructured.Unstructured, kind, name string) map[string]any {
	GinkgoHelper()
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	Expect(at).NotTo(Equal(-1), "there is no %s %s", kind, name)
	return objects[at].Object
}

// expectImage expects that images: alone has set the image wherever it stands, and that the manager reads it from its own Pod.
func expectImage(objects []*unstructured.Unstructured, traffic string) {
	GinkgoHelper()
	for _, object := range objects {
		content, err := object.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		Expect(builtImage.FindString(string(content))).To(BeEmpty(), "%s %s", object.GetKind(), object.GetName())
	}
	manager := find[appsv1.Deployment](objects, "Deployment", "lowlatency-operator-controller-manager").Spec.Template.Spec.Containers[0]
	Expect(manager.Image).To(Equal(givenImage))
	Expect(manager.Env).To(ContainElements(
		And(HaveField("Name", "POD_NAME"), HaveField("ValueFrom.FieldRef.FieldPath", "metadata.name")),
		And(HaveField("Name", "POD_NAMESPACE"), HaveField("ValueFrom.FieldRef.FieldPath", "metadata.namespace"))))
	agent := find[appsv1.DaemonSet](objects, "DaemonSet", "lowlatency-operator-agent").Spec.Template.Spec.Containers[0]
	Expect(agent.Image).To(Equal(givenImage))
	template := find[corev1.PodTemplate](objects, "PodTemplate", "lowlatency-operator-traffic-image")
	Expect(template.Namespace).To(Equal("lowlatency-operator-system"))
	Expect(template.Labels).To(HaveKeyWithValue(v1alpha1.LabelComponent, v1alpha1.ComponentTrafficImage))
	Expect(template.Template.Spec.Containers).To(HaveExactElements(HaveField("Image", traffic)))
}

var _ = Describe("Overlays", func() {
	DescribeTable("take another image by images: alone", func(resource string, components ...string) {
		expectImage(overlay(resource, components...), givenTraffic)
	},
		Entry("Kubernetes", "default"),
		Entry("Kubernetes with repair", "repair"),
		Entry("OpenShift", "openshift"),
		Entry("OpenShift with repair", "openshift-repair"),
		Entry("Kubernetes with monitoring", "default", "prometheus"),
		Entry("Kubernetes with monitoring by cert-manager", "default", "prometheus-cert-manager"),
		Entry("Kubernetes with monitoring that is not verified", "default", "prometheus-unverified"),
		Entry("Kubernetes with monitoring and repair", "default", "prometheus", "agent-repair"),
		Entry("Kubernetes with every repair", "default", "agent-repair", "agent-repair-steering", "agent-repair-numa-balancing"),
		Entry("Kubernetes whose hosts are changed", "default", "enactment"),
		Entry("K3s whose hosts are changed", "default", "agent-k3s", "enactment"),
		Entry("RKE2 with repair", "repair", "agent-rke2"),
		Entry("OpenShift with every repair and the control plane", "openshift",
			"agent-repair", "agent-repair-steering", "agent-repair-numa-balancing", "control-plane"),
	)

	DescribeTable("show agents the folder of another distribution's kubelet, to read and no more of it", func(component, folder string) {
		agent := func(components ...string) corev1.PodSpec {
			return find[appsv1.DaemonSet](overlay("default", components...), "DaemonSet", "lowlatency-operator-agent").Spec.Template.Spec
		}
		without, with := agent(), agent(component)
		added := slices.DeleteFunc(slices.Clone(with.Containers[0].VolumeMounts), func(mount corev1.VolumeMount) bool {
			return slices.ContainsFunc(without.Containers[0].VolumeMounts, func(other corev1.VolumeMount) bool { return other.MountPath == mount.MountPath })
		})
		Expect(added).To(ConsistOf(And(HaveField("MountPath", "/host"+folder), HaveField("ReadOnly", true),
			HaveField("RecursiveReadOnly", HaveValue(Equal(corev1.RecursiveReadOnlyIfPossible))))))
		Expect(with.Volumes).To(ContainElement(And(HaveField("Name", added[0].Name), HaveField("HostPath.Path", folder),
			HaveField("HostPath.Type", HaveValue(Equal(corev1.HostPathDirectory))))))
		Expect(host.DistributionFolders()).To(ContainElement(folder))
	},
		Entry("K3s", "agent-k3s", "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d"),
		Entry("RKE2", "agent-rke2", "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"),
	)

	DescribeTable("give the manager a certificate that Prometheus verifies, or say that it does not", func(component string, verified map[string]any, mounted bool) {
		objects := overlay("default", component)
		monitor := untyped(objects, "ServiceMonitor", "lowlatency-operator-controller-manager")
		endpoints, _, err := unstructured.NestedSlice(monitor, "spec", "endpoints")
		Expect(err).NotTo(HaveOccurred())
		Expect(endpoints).To(HaveLen(1))
		Expect(endpoints[0]).To(HaveKeyWithValue("tlsConfig", verified))
		Expect(endpoints[0]).To(HaveKey("authorization"))
		manager := find[appsv1.Deployment](objects, "Deployment", "lowlatency-operator-controller-manager").Spec.Template.Spec
		service := find[corev1.Service](objects, "Service", "lowlatency-operator-controller-manager-metrics")
		const serviceCA = "service.beta.openshift.io/serving-cert-secret-name"
		Expect(service.Annotations).To(And(Not(HaveKey(serviceCA)), Not(HaveKeyWithValue(serviceCA, ""))))
		secret := HaveField("Secret", HaveField("SecretName", "lowlatency-operator-metrics-cert"))
		if !mounted {
			Expect(manager.Volumes).NotTo(ContainElement(secret))
			Expect(manager.Containers[0].Args).NotTo(ContainElement(HavePrefix("--metrics-cert-path")))
			Expect(manager.Containers[0].VolumeMounts).NotTo(ContainElement(HaveField("Name", "metrics-cert")))
			return
		}
		Expect(manager.Volumes).To(ContainElement(secret))
		certificate := untyped(objects, "Certificate", "lowlatency-operator-metrics")
		Expect(certificate["spec"]).To(And(HaveKeyWithValue("secretName", "lowlatency-operator-metrics-cert"),
			HaveKeyWithValue("dnsNames", ContainElement(verified["serverName"]))))
	},
		Entry("by cert-manager", "prometheus-cert-manager", map[string]any{
			"serverName": "lowlatency-operator-controller-manager-metrics.lowlatency-operator-system.svc",
			"ca":         map[string]any{"secret": map[string]any{"name": "lowlatency-operator-metrics-cert", "key": "ca.crt"}},
		}, true),
		Entry("not verified", "prometheus-unverified", map[string]any{"insecureSkipVerify": true}, false),
	)

	DescribeTable("keep what each component adds to the manager, in whichever order they stand", func(monitoring string, verified bool) {
		certificate := "--metrics-cert-path=/etc/lowlatency-operator/metrics-cert"
		manager := func(components ...string) corev1.Container {
			return find[appsv1.Deployment](overlay("default", components...), "Deployment", "lowlatency-operator-controller-manager").Spec.Template.Spec.Containers[0]
		}
		want := append(manager().Args, "--platform=Kubernetes")
		mounts := BeEmpty()
		if verified {
			want = append(want, certificate)
			mounts = ConsistOf(HaveField("MountPath", "/etc/lowlatency-operator/metrics-cert"))
		}
		for _, components := range [][]string{{monitoring, "enactment"}, {"enactment", monitoring}} {
			built := manager(components...)
			Expect(built.Args).To(ConsistOf(want), "%v", components)
			Expect(built.Args[0]).To(Equal("manager"), "%v", components)
			Expect(built.VolumeMounts).To(mounts, "%v", components)
		}
	},
		Entry("by the service CA", "prometheus", true),
		Entry("by cert-manager", "prometheus-cert-manager", true),
		Entry("not verified", "prometheus-unverified", false),
	)

	// shown is what the overlay below a heading of docs/install.md builds.
	shown := func(heading string) []*unstructured.Unstructured {
		GinkgoHelper()
		page, err := os.ReadFile("../docs/install.md")
		Expect(err).NotTo(HaveOccurred())
		_, below, found := strings.Cut(string(page), "# "+heading+"\n")
		Expect(found).To(BeTrue(), heading)
		_, text, found := strings.Cut(below, "kind: Kustomization\n")
		Expect(found).To(BeTrue(), heading)
		text, _, _ = strings.Cut(text, "\n```")
		folder := GinkgoT().TempDir()
		here, err := filepath.Abs(".")
		Expect(err).NotTo(HaveOccurred())
		from, err := filepath.Rel(folder, here)
		Expect(err).NotTo(HaveOccurred())
		registry, digest, _ := strings.Cut(givenImage, "/lowlatency-operator@sha256:")
		written := strings.NewReplacer("https://github.com/lowlatency-dev/lowlatency-operator//config", from, "?ref=<tag or commit>", "",
			"<registry>", registry, "<digest>", digest, "<release of kube-prometheus-stack>", "stack", "<Secret>", "registry").Replace(text)
		Expect(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(written), 0o600)).To(Succeed())
		return build(folder)
	}

	It("are written as the documents show them", func() {
		registry, digest, _ := strings.Cut(givenImage, "/lowlatency-operator@sha256:")
		expectImage(shown("In your own overlay"), registry+"/lowlatency-traffic@sha256:"+digest)
	})

	It("give monitoring a label as the documents show it", func() {
		var labelled []string
		for _, object := range shown("The labels that Prometheus wants") {
			if object.GetLabels()["release"] == "stack" {
				labelled = append(labelled, object.GetKind())
			}
		}
		Expect(labelled).To(ConsistOf("ServiceMonitor", "PrometheusRule"))
	})

	It("give every ServiceAccount the Secret of a registry as the documents show it", func() {
		accounts := 0
		for _, object := range shown("A registry that asks who pulls") {
			secrets, found, err := unstructured.NestedSlice(object.Object, "imagePullSecrets")
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(Equal(object.GetKind() == "ServiceAccount"), object.GetKind()+" "+object.GetName())
			if found {
				Expect(secrets).To(ConsistOf(map[string]any{"name": "registry"}))
				accounts++
			}
		}
		Expect(accounts).To(BeNumerically(">", 3))
	})

	It("of a repository elsewhere are built by its URL", func(ctx SpecContext) {
		repository := GinkgoT().TempDir()
		Expect(os.CopyFS(filepath.Join(repository, "config"), os.DirFS("."))).To(Succeed())
		for _, arguments := range [][]string{
			{"init", "--quiet", "--initial-branch=main"},
			{"add", "--all"},
			{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=config"},
		} {
			command := exec.CommandContext(ctx, "git", arguments...)
			command.Dir = repository
			output, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(output))
		}
		expectImage(overlay("file://"+repository+"//config/openshift-repair?ref=main"), givenTraffic)
	})
})
