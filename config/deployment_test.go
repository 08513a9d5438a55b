// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package config_test holds the manifests against a real API server: that it accepts them, and that they permit what
// is meant and nothing else.
package config_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/apply"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/repair"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	// nodeNameExtra is where the API server puts the node of the pod that a token was issued for.
	nodeNameExtra   = "authentication.kubernetes.io/node-name"
	systemNamespace = "lowlatency-operator-system"
	agentNamespace  = "lowlatency-operator-agents"
	// policyDelay is how long the API server may take to put a new admission policy in force.
	policyDelay = 30 * time.Second
)

func TestDeployment(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The deployment on a real API server")
}

// build runs kustomize on a folder.
func build(folder string) []*unstructured.Unstructured {
	GinkgoHelper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	Expect(err).NotTo(HaveOccurred())
	objects := make([]*unstructured.Unstructured, 0, resources.Size())
	for _, resource := range resources.Resources() {
		content, err := resource.MarshalJSON()
		Expect(err).NotTo(HaveOccurred())
		object := &unstructured.Unstructured{}
		Expect(object.UnmarshalJSON(content)).To(Succeed())
		objects = append(objects, object)
	}
	return objects
}

// find returns the object of a kind and name as its own type.
func find[T any](objects []*unstructured.Unstructured, kind, name string) *T {
	GinkgoHelper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			typed := new(T)
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)).To(Succeed())
			return typed
		}
	}
	Fail("there is no " + kind + " " + name)
	return nil
}

// refusal matches a refusal with a sentence.
func refusal(sentence string) OmegaMatcher {
	return And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring(sentence)))
}

var _ = Describe("The deployment on a real API server", Ordered, ContinueOnFailure, func() {
	var (
		environment *apiserver.Environment
		objects     []*unstructured.Unstructured
	)

	BeforeAll(func(ctx SpecContext) {
		constraints, err := apiserver.SecurityConstraintsCRD()
		Expect(err).NotTo(HaveOccurred())
		prometheus, err := apiserver.PrometheusOperatorCRDs()
		Expect(err).NotTo(HaveOccurred())
		certificates, err := apiserver.CertManagerCRDs()
		Expect(err).NotTo(HaveOccurred())
		definitions := slices.Concat(prometheus, certificates, []string{constraints})
		environment, err = apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes, CRDs: definitions})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(environment.Stop()).To(Succeed()) })

		objects = build("default")
		for _, object := range objects {
			apply := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
			Expect(environment.Client().Apply(ctx, apply, client.FieldOwner("kubectl"), client.ForceOwnership)).
				To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		for _, name := range []string{"node-1", "node-2"} {
			Expect(environment.Client().Create(ctx, &v1alpha1.LowLatencyNode{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
			})).To(Succeed())
		}
	})

	It("brings security context constraints that the definition of OpenShift permits", func(ctx SpecContext) {
		applied := 0
		for _, object := range build("openshift") {
			if object.GetKind() == "SecurityContextConstraints" {
				apply := client.ApplyConfigurationFromUnstructured(object)
				Expect(environment.Client().Apply(ctx, apply, client.FieldOwner("kubectl"))).To(Succeed(), object.GetName())
				applied++
			}
		}
		Expect(applied).To(Equal(3))
	})

	DescribeTable("brings monitoring that the definitions of cert-manager and of the Prometheus operator permit", func(ctx SpecContext, component string, kinds ...string) {
		applied := map[string]bool{}
		for _, object := range overlay("default", component) {
			applied[object.GetKind()] = true
			err := environment.Client().Patch(ctx, object, client.Apply, //nolint:staticcheck // The method Apply cannot ask for strict fields.
				client.DryRunAll, client.FieldOwner("kubectl"), client.ForceOwnership, client.FieldValidation("Strict"))
			Expect(err).NotTo(HaveOccurred(), "%s %s", object.GetKind(), object.GetName())
		}
		for _, kind := range kinds {
			Expect(applied).To(HaveKey(kind))
		}
	},
		Entry("verified by cert-manager's issuer", "prometheus-cert-manager", "Certificate", "Issuer", "ServiceMonitor", "PrometheusRule"),
		Entry("verified by the service CA", "prometheus", "ServiceMonitor", "PrometheusRule"),
		Entry("not verified", "prometheus-unverified", "ServiceMonitor", "PrometheusRule"),
	)

	Context("the manager", func() {
		It("runs under the restricted pod security standard", func(ctx SpecContext) {
			deployment := find[appsv1.Deployment](objects, "Deployment", "lowlatency-operator-controller-manager")
			Expect(deployment.Namespace).To(Equal(systemNamespace))
			Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(2))
			Expect(createPod(ctx, environment.Client(), systemNamespace, deployment.Spec.Template)).To(Succeed())
		})

		It("writes plans into its own namespace only, and reads no secret", func(ctx SpecContext) {
			deployment := find[appsv1.Deployment](objects, "Deployment", "lowlatency-operator-controller-manager")
			manager := impersonate(environment, deployment.Namespace, deployment.Spec.Template, "node-1")
			plan := func(namespace string) error {
				return manager.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: namespace, Name: "a", Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ProjectName},
				}}, client.DryRunAll)
			}
			Expect(plan(systemNamespace)).To(Succeed())
			Expect(plan("default")).To(Satisfy(apierrors.IsForbidden))
			Expect(manager.List(ctx, &corev1.SecretList{}, client.InNamespace(systemNamespace))).To(Satisfy(apierrors.IsForbidden))
			Expect(manager.List(ctx, &v1alpha1.LowLatencyNodeProfileList{})).To(Succeed())
			Expect(manager.List(ctx, &corev1.NodeList{})).To(Succeed())
		})
	})

	It("starts the binary with flags that it has", func(ctx SpecContext) {
		for _, template := range []corev1.PodTemplateSpec{
			find[appsv1.Deployment](build("openshift"), "Deployment", "lowlatency-operator-controller-manager").Spec.Template,
			find[appsv1.DaemonSet](objects, "DaemonSet", "lowlatency-operator-agent").Spec.Template,
			find[appsv1.DaemonSet](build("repair"), "DaemonSet", "lowlatency-operator-agent").Spec.Template,
		} {
			expectCommand(ctx, template.Spec.Containers[0])
		}
	})

	It("lets agents write to the kernel's files only where repair is asked for", func(ctx SpecContext) {
		// writable are the folders of the host that a container may write to.
		writable := func(template corev1.PodTemplateSpec) []string {
			var paths []string
			for _, mount := range template.Spec.Containers[0].VolumeMounts {
				if !mount.ReadOnly {
					paths = append(paths, mount.MountPath)
				}
			}
			return paths
		}
		reader := find[appsv1.DaemonSet](objects, "DaemonSet", "lowlatency-operator-agent").Spec.Template
		Expect(writable(reader)).To(BeEmpty())
		Expect(reader.Spec.Containers[0].Args).NotTo(ContainElement("--repair"))

		writer := find[appsv1.DaemonSet](build("repair"), "DaemonSet", "lowlatency-operator-agent").Spec.Template
		folders := make([]string, 0, len(repair.Folders()))
		for _, folder := range repair.Folders() {
			// Kernels with PREEMPT_RT do not have it, so that it is in a component of its own.
			if folder != "/proc/sys/kernel/numa_balancing" {
				folders = append(folders, "/host"+folder)
			}
		}
		Expect(writable(writer)).To(ConsistOf(folders))
		Expect(writer.Spec.Containers[0].Args).To(ContainElements(append(reader.Spec.Containers[0].Args, "--repair")))
		security := writer.Spec.Containers[0].SecurityContext
		Expect(security.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
		Expect(security.Capabilities.Add).To(BeEmpty())
		Expect(*security.Privileged).To(BeFalse())
		Expect(createPod(ctx, environment.Client(), agentNamespace, writer)).To(Succeed())
	})

	Context("the monitoring of OpenShift", func() {
		It("verifies the certificate of the metrics that the manager serves", func(ctx SpecContext) {
			monitored := build("openshift")
			deployment := find[appsv1.Deployment](monitored, "Deployment", "lowlatency-operator-controller-manager")
			Expect(createPod(ctx, environment.Client(), systemNamespace, deployment.Spec.Template)).To(Succeed())
			pod := deployment.Spec.Template.Spec
			Expect(pod.Containers[0].Args).To(ContainElement("--metrics-cert-path=" + pod.Containers[0].VolumeMounts[0].MountPath))

			service := find[corev1.Service](monitored, "Service", "lowlatency-operator-controller-manager-metrics")
			Expect(service.Annotations).To(HaveKeyWithValue(
				"service.beta.openshift.io/serving-cert-secret-name", pod.Volumes[0].Secret.SecretName))
			monitor := find[unstructured.Unstructured](monitored, "ServiceMonitor", "lowlatency-operator-controller-manager")
			endpoints, _, err := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
			Expect(err).NotTo(HaveOccurred())
			Expect(endpoints).To(ConsistOf(HaveKeyWithValue("tlsConfig",
				HaveKeyWithValue("serverName", service.Name+"."+service.Namespace+".svc"))))
		})
	})

	Context("the agent", func() {
		var daemonSet *appsv1.DaemonSet

		BeforeAll(func() {
			daemonSet = find[appsv1.DaemonSet](objects, "DaemonSet", "lowlatency-operator-agent")
		})

		as := func(nodes ...string) client.Client {
			GinkgoHelper()
			return impersonate(environment, daemonSet.Namespace, daemonSet.Spec.Template, nodes...)
		}

		report := func(ctx context.Context, agent client.Client, node string) error {
			status, err := apply.Status(v1alpha1.GroupVersion.WithKind("LowLatencyNode"),
				&metav1.ObjectMeta{Name: node}, &v1alpha1.LowLatencyNodeStatus{VerifiedPlanHash: "abc"})
			Expect(err).NotTo(HaveOccurred())
			return agent.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("lowlatency-agent"))
		}

		It("mounts the host, which only its own namespace admits", func(ctx SpecContext) {
			Expect(daemonSet.Namespace).To(Equal(agentNamespace))
			Expect(createPod(ctx, environment.Client(), agentNamespace, daemonSet.Spec.Template)).To(Succeed())
			Expect(createPod(ctx, environment.Client(), systemNamespace, daemonSet.Spec.Template)).
				To(refusal(`violates PodSecurity "restricted:latest"`))
		})

		It("mounts what facts need, and hides what is secret beside it", func() {
			// A mount of the kubelet's file about the platform's pods would keep the pod from starting where it is missing, or make it.
			expectMounts(daemonSet.Spec.Template.Spec, "/etc/sysconfig", host.RuntimeFolder, host.PlatformPodsFile,
				"/etc/kubernetes/kubelet.conf", "/etc/kubernetes/kubelet/config.yaml", "/etc/kubernetes/kubelet/config.json")
			expectMounts(find[appsv1.DaemonSet](build("openshift"), "DaemonSet", "lowlatency-operator-agent").Spec.Template.Spec,
				host.PlatformPodsFile, "/etc/kubernetes/kubelet/config.yaml", "/etc/kubernetes/kubelet/config.json")
		})

		It("can change nothing on the host", func() {
			container := daemonSet.Spec.Template.Spec.Containers[0]
			Expect(container.SecurityContext.Capabilities.Drop).To(ConsistOf(corev1.Capability("ALL")))
			Expect(container.SecurityContext.Capabilities.Add).To(BeEmpty())
			Expect(*container.SecurityContext.Privileged).To(BeFalse())
			for _, mount := range container.VolumeMounts {
				Expect(mount.ReadOnly).To(BeTrue(), mount.Name)
			}
		})

		It("writes the status of its own node and of no other", func(ctx SpecContext) {
			// A policy is in force some time after it was written.
			Eventually(func() error { return report(ctx, as("node-1"), "node-2") }).WithTimeout(policyDelay).Should(refusal(
				"the status of LowLatencyNode node-2 is written by the agent on that node only; this token is bound to node node-1."))
			Expect(report(ctx, as("node-1"), "node-1")).To(Succeed())
			Expect(report(ctx, as("node-2"), "node-2")).To(Succeed())

			var node v1alpha1.LowLatencyNode
			Expect(environment.Client().Get(ctx, client.ObjectKey{Name: "node-1"}, &node)).To(Succeed())
			Expect(node.Status.VerifiedPlanHash).To(Equal("abc"))
		})

		It("writes no status with a token that is bound to no node, or to two", func(ctx SpecContext) {
			Eventually(func() error { return report(ctx, as(), "node-1") }).WithTimeout(policyDelay).Should(refusal(
				"this token is bound to no node."))
			Expect(report(ctx, as("node-1", "node-2"), "node-1")).To(refusal("is written by the agent on that node only"))
		})

		// renew renews the Lease of a node as an agent does.
		renew := func(ctx context.Context, agent client.Client, node string) error {
			patch, err := json.Marshal(map[string]any{"spec": heartbeat.Renewed("agent/"+node, time.Now(), 0)})
			Expect(err).NotTo(HaveOccurred())
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: node}}
			return agent.Patch(ctx, lease, client.RawPatch(types.MergePatchType, patch))
		}

		It("renews the Lease of its own node and of no other", func(ctx SpecContext) {
			deployment := find[appsv1.Deployment](objects, "Deployment", "lowlatency-operator-controller-manager")
			manager := impersonate(environment, deployment.Namespace, deployment.Spec.Template, "node-1")
			for _, name := range []string{"node-1", "node-2"} {
				var node v1alpha1.LowLatencyNode
				Expect(environment.Client().Get(ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
				Expect(manager.Create(ctx, heartbeat.First(&node, agentNamespace, time.Now()))).To(Succeed())
			}
			Eventually(func() error { return renew(ctx, as("node-1"), "node-2") }).WithTimeout(policyDelay).Should(refusal(
				"the Lease of LowLatencyNode node-2 is renewed by the agent on that node only; this token is bound to node node-1."))
			Expect(renew(ctx, as(), "node-1")).To(refusal("this token is bound to no node."))
			Expect(renew(ctx, as("node-1", "node-2"), "node-1")).To(refusal("is renewed by the agent on that node only"))
			Expect(renew(ctx, as("node-1"), "node-1")).To(Succeed())
			Expect(renew(ctx, as("node-2"), "node-2")).To(Succeed())

			By("leaving it to its LowLatencyNode")
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "node-1"}}
			Expect(as("node-1").Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`)))).
				To(refusal("the Lease of LowLatencyNode node-1 belongs to that LowLatencyNode for good."))

			By("making, reading and deleting none")
			other := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "node-3"}}
			Expect(as("node-1").Create(ctx, other)).To(Satisfy(apierrors.IsForbidden))
			Expect(as("node-1").Get(ctx, client.ObjectKeyFromObject(lease), lease)).To(Satisfy(apierrors.IsForbidden))
			Expect(as("node-1").Delete(ctx, lease)).To(Satisfy(apierrors.IsForbidden))
			elsewhere := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "leader"}}
			Expect(as("node-1").Patch(ctx, elsewhere, client.RawPatch(types.MergePatchType, []byte(`{"spec":{}}`)))).To(Satisfy(apierrors.IsForbidden))

			By("and the manager renewing none")
			Expect(manager.Update(ctx, lease)).To(Satisfy(apierrors.IsForbidden))
			Expect(manager.List(ctx, &coordinationv1.LeaseList{}, client.InNamespace(agentNamespace))).To(Succeed())
		})

		It("is told where its Lease is", func() {
			container := daemonSet.Spec.Template.Spec.Containers[0]
			Expect(container.Args).To(ContainElement("--heartbeat-namespace=$(POD_NAMESPACE)"))
			Expect(container.Env).To(ContainElement(And(HaveField("Name", "POD_NAMESPACE"),
				HaveField("ValueFrom.FieldRef.FieldPath", "metadata.namespace"))))
		})

		It("reads plans, and no other ConfigMap", func(ctx SpecContext) {
			for _, namespace := range []string{systemNamespace, agentNamespace} {
				Expect(environment.Client().Create(ctx, &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trading-abc"},
				})).To(Succeed())
			}
			var plan corev1.ConfigMap
			Expect(as("node-1").Get(ctx, client.ObjectKey{Namespace: systemNamespace, Name: "trading-abc"}, &plan)).To(Succeed())
			Expect(as("node-1").Get(ctx, client.ObjectKey{Namespace: agentNamespace, Name: "trading-abc"}, &plan)).
				To(Satisfy(apierrors.IsForbidden))
		})

		It("may watch its LowLatencyNode and do nothing else with it", func(ctx SpecContext) {
			agent := as("node-1")
			var node v1alpha1.LowLatencyNode
			Expect(agent.Get(ctx, client.ObjectKey{Name: "node-1"}, &node)).To(Succeed())
			node.Spec.Profile = "another"
			Expect(agent.Update(ctx, &node)).To(Satisfy(apierrors.IsForbidden))
			Expect(agent.Delete(ctx, &node)).To(Satisfy(apierrors.IsForbidden))
			Expect(agent.Create(ctx, &v1alpha1.LowLatencyNode{
				ObjectMeta: metav1.ObjectMeta{Name: "node-3"}, Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
			})).To(Satisfy(apierrors.IsForbidden))
			Expect(agent.List(ctx, &corev1.NodeList{})).To(Satisfy(apierrors.IsForbidden))
			Expect(agent.List(ctx, &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden))
		})
	})
})

// expectCommand expects that the program of a container is one of the image's and takes the arguments.
func expectCommand(ctx context.Context, container corev1.Container) {
	GinkgoHelper()
	image, err := os.ReadFile("../Dockerfile")
	Expect(err).NotTo(HaveOccurred())
	program := "/lowlatency-operator"
	if len(container.Command) > 0 {
		Expect(container.Command).To(HaveLen(1))
		program = container.Command[0]
	}
	Expect(string(image)).To(ContainSubstring("/workspace" + program + " " + program + "\n"))
	args := append([]string{"run", "../cmd" + program}, container.Args...)
	output, err := exec.CommandContext(ctx, "go", append(args, "--help")...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// expectMounts expects that a pod has those folders of the host which facts need, except some, and nothing else but what hides
// a part of them.
func expectMounts(pod corev1.PodSpec, except ...string) {
	GinkgoHelper()
	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = volume
	}
	var mounted []string
	for _, mount := range pod.Containers[0].VolumeMounts {
		path := strings.TrimPrefix(mount.MountPath, "/host")
		source := volumes[mount.Name].HostPath
		if source == nil || source.Path == "/dev/null" {
			Expect(path).To(HavePrefix("/var/lib/kubelet/"))
			continue
		}
		Expect(source.Path).To(Equal(path))
		mounted = append(mounted, path)
	}
	Expect(append(mounted, except...)).To(ConsistOf(host.Folders()))
}

// createPod asks the API server whether it would admit a pod of a template.
func createPod(ctx context.Context, admin client.Client, namespace string, template corev1.PodTemplateSpec) error {
	return admin.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "trial", Labels: template.Labels, Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}, client.DryRunAll, client.FieldValidation("Strict"))
}

// impersonate returns a client with the identity of a template's pods, on nodes.
func impersonate(
	environment *apiserver.Environment, namespace string, template corev1.PodTemplateSpec, nodes ...string,
) client.Client {
	GinkgoHelper()
	config := environment.Config()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + template.Spec.ServiceAccountName,
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	if len(nodes) > 0 {
		config.Impersonate.Extra = map[string][]string{nodeNameExtra: nodes}
	}
	impersonated, err := client.New(config, client.Options{Scheme: environment.Client().Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return impersonated
}
