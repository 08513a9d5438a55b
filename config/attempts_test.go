// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package config_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/rollout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// attempt is something that whoever has stolen a token might try. What is not denied is what the program itself does.
type attempt struct {
	who, what string
	isAllowed bool
	do        func(ctx context.Context) error
}

var _ = Describe("Stolen tokens on a real API server", Ordered, ContinueOnFailure, func() {
	var (
		environment            *apiserver.Environment
		manager, agent, driver client.Client
	)

	BeforeAll(func(ctx SpecContext) {
		var err error
		environment, err = apiserver.Start(apiserver.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(environment.Stop()).To(Succeed()) })
		for _, object := range build("default") {
			Expect(applyAs(ctx, environment.Client(), object, client.ForceOwnership)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
		}
		awaitPolicies(ctx, environment.Client())
		furnish(ctx, environment.Client())
		manager = withToken(ctx, environment, systemNamespace, "lowlatency-operator-controller-manager")
		agent = withToken(ctx, environment, agentNamespace, "lowlatency-operator-agent")
		driver = withToken(ctx, environment, agentNamespace, manifests.DriverServiceAccount)
	})

	It("are denied everything but what their programs do", func(ctx SpecContext) {
		attempts := slices.Concat(managerAttempts(manager), jobAttempts(manager), nodeAttempts(manager), agentAttempts(agent), driverAttempts(driver))
		var surprises []string
		var table strings.Builder
		columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(columns, "TOKEN OF\tATTEMPTED\tOUTCOME\tREASON")
		for _, one := range attempts {
			err := one.do(ctx)
			_, _ = fmt.Fprintln(columns, strings.Join([]string{one.who, one.what, outcome(err), reason(err)}, "\t"))
			if wanted := map[bool]string{true: "done", false: "denied"}[one.isAllowed]; outcome(err) != wanted {
				surprises = append(surprises, fmt.Sprintf("%s: %s: %v", one.who, one.what, err))
			}
		}
		Expect(columns.Flush()).To(Succeed())
		show(table.String())
		Expect(surprises).To(BeEmpty())
	})

	It("lets the manager write the control plane with consent", func(ctx SpecContext) {
		role, err := os.ReadFile("control-plane/role.yaml")
		Expect(err).NotTo(HaveOccurred())
		for _, object := range decode(role) {
			Expect(applyAs(ctx, environment.Client(), object)).To(Succeed())
		}
		Eventually(func() error {
			return applyAs(ctx, manager, machineConfig("50-lowlatency-master", "master"), client.DryRunAll)
		}).
			WithTimeout(policyDelay).Should(Succeed())
	})

	It("lets the manager cordon nodes and hand instructions over with consent", func(ctx SpecContext) {
		role, err := os.ReadFile("enactment/role.yaml")
		Expect(err).NotTo(HaveOccurred())
		for _, object := range decode(role) {
			Expect(applyAs(ctx, environment.Client(), object)).To(Succeed())
		}
		Eventually(func() error {
			return patch(ctx, manager, ownNode(), `{"spec":{"unschedulable":true},"metadata":{"annotations":{"lowlatency.dev/cordoned":"now"}}}`)
		}).WithTimeout(policyDelay).Should(Succeed())
		Expect(cordon(ctx, manager)).To(Satisfy(apierrors.IsForbidden), "a cordon that nobody could tell from another's")
		foreign := ownNode()
		Expect(environment.Client().Patch(ctx, foreign, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`)))).To(Succeed())
		Expect(patch(ctx, manager, ownNode(), `{"metadata":{"annotations":{"lowlatency.dev/cordoned":"now"}}}`)).
			To(Satisfy(apierrors.IsForbidden), "the cordon of somebody else as its own")
		Expect(environment.Client().Patch(ctx, foreign, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"unschedulable":null}}`)))).To(Succeed())
		handing := func(change func(*corev1.Pod)) error {
			node := ownNode()
			node.UID = "node-1"
			pod := rollout.Pod(node, "registry.example/lowlatency-operator:v1", agentNamespace)
			change(pod)
			return manager.Create(ctx, pod, client.DryRunAll)
		}
		Expect(handing(func(*corev1.Pod) {})).To(Succeed())
		for what, change := range map[string]func(*corev1.Pod){
			"a shell":            func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"/bin/sh"} },
			"another role":       func(p *corev1.Pod) { p.Spec.Containers[0].Args[0] = "manager" },
			"another account":    func(p *corev1.Pod) { p.Spec.ServiceAccountName = "lowlatency-operator-agent" },
			"a token":            func(p *corev1.Pod) { p.Spec.AutomountServiceAccountToken = new(true) },
			"no owner":           func(p *corev1.Pod) { p.OwnerReferences = nil },
			"the host's network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
			"a secret": func(p *corev1.Pod) {
				p.Spec.Volumes[1].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}
			},
		} {
			Expect(handing(change)).To(Satisfy(apierrors.IsForbidden), what)
		}
		secret := func(name string) error {
			return manager.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: name}, Type: corev1.SecretTypeOpaque}, client.DryRunAll)
		}
		Expect(secret(signingkey.SecretName)).To(Succeed())
		Expect(secret("another")).To(Satisfy(apierrors.IsForbidden))
		Expect(manager.List(ctx, &corev1.SecretList{})).To(Satisfy(apierrors.IsForbidden))
	})

	It("lets the manager write everything that it renders", func(ctx SpecContext) {
		for _, name := range []string{"trading-xeon", "perpod-epyc", "realtime-existing", "arm-64k"} {
			content, err := os.ReadFile("../internal/platform/openshift/manifests/testdata/" + name + ".yaml")
			Expect(err).NotTo(HaveOccurred())
			for _, object := range decode(content) {
				if object.GetKind() == "ConfigMap" {
					object.SetNamespace(systemNamespace)
				}
				// It may write what is in its way, too; others' namespaces are not here.
				if object.GetKind() != "Tuned" {
					Expect(applyAs(ctx, manager, object, client.DryRunAll)).To(Succeed(), "%s %s", object.GetKind(), object.GetName())
				}
			}
		}
		for _, name := range []string{"pool-dpdk", "pool-e810-sockets", "pool-x2-dynamic", "pool-x2"} {
			content, err := os.ReadFile("../internal/bypass/manifests/testdata/" + name + ".yaml")
			Expect(err).NotTo(HaveOccurred())
			for _, object := range decode(content) {
				if object.GetKind() == "DaemonSet" {
					object.SetNamespace(agentNamespace)
					Expect(applyAs(ctx, manager, object, client.DryRunAll)).To(Succeed(), "%s %s", name, object.GetName())
				}
			}
		}
	})
})

// awaitPolicies writes one more admission policy and waits until it is in force. The API server takes policies over in the order in which they
// were written, so all policies of before are in force by then.
func awaitPolicies(ctx context.Context, admin client.Client) {
	GinkgoHelper()
	rule := admissionv1.NamedRuleWithOperations{}
	rule.APIGroups, rule.APIVersions, rule.Resources = []string{""}, []string{"v1"}, []string{"configmaps"}
	rule.Operations = []admissionv1.OperationType{admissionv1.Create}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "last"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
		Validations:      []admissionv1.Validation{{Expression: `object.metadata.name != "last"`}},
	}}
	Expect(admin.Create(ctx, policy)).To(Succeed())
	Expect(admin.Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "last"},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "last", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	})).To(Succeed())
	Eventually(func() error {
		return admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "last"}}, client.DryRunAll)
	}).WithTimeout(policyDelay).Should(Satisfy(apierrors.IsInvalid))
}

// furnish makes what a cluster has before somebody steals a token.
func furnish(ctx context.Context, admin client.Client) {
	GinkgoHelper()
	for _, name := range []string{"node-1", "node-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a"}}}
		Expect(admin.Create(ctx, node)).To(Succeed())
		report := &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading"}}
		Expect(admin.Create(ctx, report)).To(Succeed())
		Expect(admin.Create(ctx, heartbeat.First(report, agentNamespace, time.Now()))).To(Succeed())
	}
	Expect(admin.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "foreign"}})).To(Succeed())
	Expect(applyAs(ctx, admin, pool("worker"))).To(Succeed())
	Expect(applyAs(ctx, admin, pool("master"))).To(Succeed())
	Expect(applyAs(ctx, admin, configuration("MachineConfig", "99-admin", nil))).To(Succeed())
	Expect(admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "foreign"}})).To(Succeed())
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "foreign"}}
	foreign.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}
	Expect(admin.Create(ctx, foreign)).To(Succeed())
}

// withToken is a client with a token of an account that is bound to a pod on node-1.
func withToken(ctx context.Context, environment *apiserver.Environment, namespace, account string) client.Client {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account},
		Spec: corev1.PodSpec{
			NodeName: "node-1", ServiceAccountName: account,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "a", Image: "a", SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}}},
		},
	}
	Expect(environment.Client().Create(ctx, pod)).To(Succeed())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	Expect(environment.Client().SubResource("token").Create(ctx, owner, request)).To(Succeed())
	config := environment.Config()
	config.BearerToken, config.CertData, config.KeyData, config.CertFile, config.KeyFile = request.Status.Token, nil, nil, "", ""
	thief, err := client.New(config, client.Options{Scheme: environment.Client().Scheme()})
	Expect(err).NotTo(HaveOccurred())
	return thief
}

// applyAs applies an object by server-side apply.
func applyAs(ctx context.Context, writer client.Client, object *unstructured.Unstructured, options ...client.ApplyOption) error {
	return writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), append(options, client.FieldOwner("attempt"))...)
}

// configuration is an object of the machine-config operator.
func configuration(kind, name string, labels map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if labels != nil {
		metadata["labels"] = labels
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "machineconfiguration.openshift.io/v1", "kind": kind, "metadata": metadata,
	}}
}

func own(labels map[string]any) map[string]any {
	made := maps.Clone(labels)
	made[v1alpha1.LabelManagedBy] = v1alpha1.ProjectName
	return made
}

func machineConfig(name, role string) *unstructured.Unstructured {
	object := configuration("MachineConfig", name, own(map[string]any{"machineconfiguration.openshift.io/role": role}))
	object.Object["spec"] = map[string]any{"kernelArguments": []any{"init=/bin/sh"}}
	return object
}

func pool(name string) *unstructured.Unstructured {
	object := configuration("MachineConfigPool", name, nil)
	object.Object["spec"] = map[string]any{
		"machineConfigSelector": map[string]any{"matchLabels": map[string]any{"machineconfiguration.openshift.io/role": name}},
		"nodeSelector":          map[string]any{"matchLabels": map[string]any{"node-role.kubernetes.io/" + name: ""}},
	}
	return object
}

func decode(content []byte) []*unstructured.Unstructured {
	GinkgoHelper()
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		Expect(err).NotTo(HaveOccurred())
		if object.Object != nil {
			objects = append(objects, object)
		}
	}
}

// patch changes an object by a merge patch.
func patch(ctx context.Context, writer client.Client, object client.Object, text string) error {
	return writer.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(text)), client.DryRunAll)
}

func ownNode() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}} }

func cordon(ctx context.Context, writer client.Client) error {
	return patch(ctx, writer, ownNode(), `{"spec":{"unschedulable":true}}`)
}

// mountRead mounts a folder of the host in the place of the first one, read-only.
func mountRead(folder string) func(*appsv1.DaemonSet) {
	return func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.Volumes[0].HostPath.Path = folder }
}

// managerAttempts are what the token of the manager is good for, and what not.
func managerAttempts(thief client.Client) []attempt {
	apply := func(object *unstructured.Unstructured) func(context.Context) error {
		return func(ctx context.Context) error {
			return applyAs(ctx, thief, object, client.DryRunAll, client.ForceOwnership)
		}
	}
	daemonSet := func(change func(*appsv1.DaemonSet)) func(context.Context) error {
		return func(ctx context.Context) error {
			rendered, err := manifests.PoolObjects(dynamicPool())
			if err != nil {
				return err
			}
			made := find[appsv1.DaemonSet](rendered, "DaemonSet", "bypass-x2")
			change(made)
			return thief.Create(ctx, made, client.DryRunAll)
		}
	}
	container := func(d *appsv1.DaemonSet) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }
	pause := func(name string) func(context.Context) error {
		return func(ctx context.Context) error { return patch(ctx, thief, pool(name), `{"spec":{"paused":true}}`) }
	}
	const who = "manager"
	return []attempt{
		{who, "its own MachineConfig", true, apply(machineConfig("50-lowlatency-trading", "trading"))},
		{who, "a MachineConfig of the control plane", false, apply(machineConfig("50-lowlatency-master", "master"))},
		{who, "one of the control plane under another name", false, apply(machineConfig("50-lowlatency-trading", "master"))},
		{who, "a MachineConfig that comes after all others", false, apply(machineConfig("99-zz", "worker"))},
		{who, "another's MachineConfig", false, apply(machineConfig("99-admin", "worker"))},
		{who, "to delete another's MachineConfig", false, func(ctx context.Context) error {
			return thief.Delete(ctx, configuration("MachineConfig", "99-admin", nil), client.DryRunAll)
		}},
		{who, "to pause the pool worker", true, pause("worker")},
		{who, "to take nodes into the pool worker", false, apply(func() *unstructured.Unstructured {
			taken := pool("worker")
			taken.Object["spec"].(map[string]any)["nodeSelector"] = map[string]any{"matchLabels": map[string]any{"zone": "a"}}
			return taken
		}())},
		{who, "to pause the pool master", false, pause("master")},
		{who, "its own DaemonSet", true, daemonSet(func(*appsv1.DaemonSet) {})},
		{who, "a DaemonSet of another name", false, daemonSet(func(d *appsv1.DaemonSet) { d.Name = "agent" })},
		{who, "a DaemonSet under the agent's account", false, daemonSet(func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.ServiceAccountName = "lowlatency-operator-agent" })},
		{who, "a privileged DaemonSet", false, daemonSet(func(d *appsv1.DaemonSet) {
			container(d).SecurityContext.Privileged, container(d).SecurityContext.AllowPrivilegeEscalation = new(true), new(true)
		})},
		{who, "a DaemonSet with CAP_SYS_ADMIN", false, daemonSet(func(d *appsv1.DaemonSet) {
			container(d).SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		})},
		{who, "a DaemonSet that runs a shell", false, daemonSet(func(d *appsv1.DaemonSet) { container(d).Command = []string{"/bin/sh", "-c"} })},
		{who, "a DaemonSet that runs the manager", false, daemonSet(func(d *appsv1.DaemonSet) { container(d).Args = []string{"manager"} })},
		{who, "a DaemonSet in the host's process IDs", false, daemonSet(func(d *appsv1.DaemonSet) { d.Spec.Template.Spec.HostPID = true })},
		{who, "a DaemonSet that writes the host", false, daemonSet(func(d *appsv1.DaemonSet) {
			container(d).VolumeMounts[0].ReadOnly, container(d).VolumeMounts[0].RecursiveReadOnly = false, nil
		})},
		{who, "a DaemonSet that reads all of the host", false, daemonSet(mountRead("/"))},
		{who, "a DaemonSet that reads the host's configuration", false, daemonSet(mountRead("/etc/kubernetes"))},
		{who, "a DaemonSet that reads the kubelet's folder", false, daemonSet(mountRead("/var/lib/kubelet"))},
		{who, "a DaemonSet that reads Onload's files", true, daemonSet(mountRead("/opt/onload"))},
		{who, "a DaemonSet with a second container", false, daemonSet(func(d *appsv1.DaemonSet) {
			d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "b", Image: "b"})
		})},
		{who, "a ConfigMap that it has not made", false, func(ctx context.Context) error {
			return patch(ctx, thief, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "foreign"}}, `{"data":{"a":"b"}}`)
		}},
		{who, "to read secrets", false, func(ctx context.Context) error { return thief.List(ctx, &corev1.SecretList{}) }},
		{who, "a pod", false, func(ctx context.Context) error {
			return thief.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "x"}}, client.DryRunAll)
		}},
		{who, "a profile", false, func(ctx context.Context) error {
			return thief.Create(ctx, &v1alpha1.LowLatencyNodeProfile{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, client.DryRunAll)
		}},
	}
}

// jobAttempts are those of the token of the manager on Jobs, and with them on the namespaces of applications.
func jobAttempts(thief client.Client) []attempt {
	job := func(change func(*batchv1.Job)) func(context.Context) error {
		return func(ctx context.Context) error {
			made := testJob()
			change(made)
			return thief.Create(ctx, made, client.DryRunAll)
		}
	}
	host := func(change func(*batchv1.Job)) func(context.Context) error {
		return func(ctx context.Context) error {
			made := hostJob()
			change(made)
			return thief.Create(ctx, made, client.DryRunAll)
		}
	}
	pod := func(change func(*corev1.PodSpec)) func(context.Context) error {
		return job(func(j *batchv1.Job) { change(&j.Spec.Template.Spec) })
	}
	container := func(change func(*corev1.Container)) func(context.Context) error {
		return pod(func(p *corev1.PodSpec) { change(&p.Containers[0]) })
	}
	secret := corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Key: "a"},
	}}
	const who = "manager"
	return []attempt{
		{who, "the Job of a LatencyTest", true, job(func(*batchv1.Job) {})},
		{who, "a Job of nobody", false, job(func(j *batchv1.Job) { j.OwnerReferences = nil })},
		{who, "a Job without its label", false, job(func(j *batchv1.Job) { delete(j.Labels, v1alpha1.LabelManagedBy) })},
		{who, "a Job with a token", false, pod(func(p *corev1.PodSpec) { p.AutomountServiceAccountToken = nil })},
		{who, "a Job under another account", false, pod(func(p *corev1.PodSpec) { p.ServiceAccountName = "admin" })},
		{who, "a Job that mounts a secret", false, pod(func(p *corev1.PodSpec) {
			p.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}}}
		})},
		{who, "a Job with a secret as variable", false, container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{secret} })},
		{who, "a Job that runs a shell", false, container(func(c *corev1.Container) { c.Command = []string{"/bin/sh", "-c"} })},
		{who, "a Job that runs the manager", false, container(func(c *corev1.Container) { c.Args = []string{"manager"} })},
		{who, "a Job with a second container", false, pod(func(p *corev1.PodSpec) { p.Containers = append(p.Containers, corev1.Container{Name: "b", Image: "b"}) })},
		{who, "a Job in the host's network", false, pod(func(p *corev1.PodSpec) { p.HostNetwork = true })},
		{who, "the Job that compares with a host", true, host(func(*batchv1.Job) {})},
		{who, "the Job that compares stacks in the network of a host", true, host(func(j *batchv1.Job) { *j = *sideJob() })},
		{who, "the Job of a server of stacks that listens on one address of a host", true, host(func(j *batchv1.Job) { *j = *sideServerJob("--listen=192.0.2.2") })},
		{who, "the same that listens on all", false, host(func(j *batchv1.Job) { *j = *sideServerJob("--listen=0.0.0.0") })},
		{who, "the same that listens on two", false, host(func(j *batchv1.Job) { *j = *sideServerJob("--listen=192.0.2.2", "--listen=192.0.2.3") })},
		{who, "the same that does not say where", false, host(func(j *batchv1.Job) { *j = *sideServerJob() })},
		{who, "the same of two kinds", false, host(func(j *batchv1.Job) {
			j.Spec.Template.Spec.Containers[0].Args = append(j.Spec.Template.Spec.Containers[0].Args, "--kind=StackComparison")
		})},
		{who, "the same in another namespace", false, host(func(j *batchv1.Job) { j.Namespace = systemNamespace })},
		{who, "the same without its account", false, host(func(j *batchv1.Job) { j.Spec.Template.Spec.ServiceAccountName = "" })},
		{who, "the same under another account", false, host(func(j *batchv1.Job) { j.Spec.Template.Spec.ServiceAccountName = "lowlatency-operator-agent" })},
		{who, "a server in the host's network", false, host(func(j *batchv1.Job) {
			j.Spec.Template.Spec.Containers[0].Args = append(j.Spec.Template.Spec.Containers[0].Args, "--role=Server")
		})},
		{who, "a server in the host's network by two words", false, host(func(j *batchv1.Job) {
			*j = *sideJob()
			j.Spec.Template.Spec.Containers[0].Args = append(j.Spec.Template.Spec.Containers[0].Args, "--role", "Server")
		})},
		{who, "another kind in the host's network", false, host(func(j *batchv1.Job) {
			j.Spec.Template.Spec.Containers[0].Args = append(j.Spec.Template.Spec.Containers[0].Args, "--kind=PingPong")
		})},
		{who, "a port of the host", false, host(func(j *batchv1.Job) {
			j.Spec.Template.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 2048, HostPort: 2048}}
		})},
		{who, "the processes of the host", false, host(func(j *batchv1.Job) { j.Spec.Template.Spec.HostPID = true })},
		{who, "that account without the host's network", false, pod(func(p *corev1.PodSpec) { p.ServiceAccountName = latencytest.HostServiceAccount })},
		{who, "a privileged Job", false, container(func(c *corev1.Container) {
			c.SecurityContext.Privileged, c.SecurityContext.AllowPrivilegeEscalation = new(true), new(true)
		})},
		{who, "a Job as root", false, container(func(c *corev1.Container) { c.SecurityContext.RunAsNonRoot = new(false) })},
		{who, "a Job with CAP_NET_ADMIN", false, container(func(c *corev1.Container) {
			c.SecurityContext.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
		})},
		{who, "to delete another's Job", false, func(ctx context.Context) error {
			return thief.Delete(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "foreign"}}, client.DryRunAll)
		}},
		{who, "a LatencyTest", false, func(ctx context.Context) error {
			return thief.Create(ctx, &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "x"}}, client.DryRunAll)
		}},
	}
}

// testJob is the Job that the operator makes for a node of a LatencyTest.
func testJob() *batchv1.Job {
	node := ownNode()
	node.Status.NodeInfo.KernelVersion = "6.12"
	decision := latencytest.Decide(&latencytest.World{
		Test: &v1alpha1.LatencyTest{
			ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "quiet", UID: "quiet"},
			Spec:       v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter, Nodes: v1alpha1.LatencyTestNodes{Names: []string{"node-1"}}},
		},
		Nodes: []corev1.Node{*node}, Image: "registry.example/lowlatency-operator:v1", Now: time.Now(),
	})
	return decision.Start[0]
}

// hostJob is the Job that the operator makes to measure a node from its own network.
func hostJob() *batchv1.Job {
	node, other := ownNode(), ownNode()
	other.Name = "node-2"
	node.Status.NodeInfo.KernelVersion, other.Status.NodeInfo.KernelVersion = "6.12", "6.12"
	w := &latencytest.World{
		Test: &v1alpha1.LatencyTest{
			ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: "pods", UID: "pods"},
			Spec: v1alpha1.LatencyTestSpec{
				Kind: v1alpha1.LatencyTestContainerVersusHost, Nodes: v1alpha1.LatencyTestNodes{Names: []string{"node-1"}},
				Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{"node-2"}}},
			},
		},
		Nodes: []corev1.Node{*node, *other}, TrafficImage: "registry.example/lowlatency-traffic:v1", HostNamespace: agentNamespace, Now: time.Now(),
	}
	decision := latencytest.Decide(w)
	server := decision.Start[0]
	server.UID = "server"
	w.Test.Status, w.Jobs = decision.Status, []batchv1.Job{*server}
	// One measurement from a pod has ended.
	w.Test.Status.Results[0].ComparedRuns = 1
	ready := corev1.Pod{Spec: server.Spec.Template.Spec}
	ready.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(server, batchv1.SchemeGroupVersion.WithKind("Job"))}
	ready.Spec.NodeName, ready.Status.Phase, ready.Status.PodIP = "node-2", corev1.PodRunning, "10.0.0.9"
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	w.Pods = []corev1.Pod{ready}
	return latencytest.Decide(w).Start[0]
}

// sideJob is the same for a side of a comparison of stacks.
func sideJob() *batchv1.Job {
	job := hostJob()
	args := job.Spec.Template.Spec.Containers[0].Args
	args[slices.Index(args, "--kind="+string(v1alpha1.LatencyTestContainerVersusHost))] = "--kind=" + string(v1alpha1.LatencyTestStackComparison)
	return job
}

// sideServerJob is the Job of the server of such a side in the network of its node, with other arguments.
func sideServerJob(args ...string) *batchv1.Job {
	job := sideJob()
	container := &job.Spec.Template.Spec.Containers[0]
	container.Args[slices.Index(container.Args, "--role=Client")] = "--role=Server"
	container.Args = append(container.Args, args...)
	return job
}

// nodeAttempts are those of the token of the manager on nodes.
func nodeAttempts(thief client.Client) []attempt {
	const who = "manager"
	change := func(text string) func(context.Context) error {
		return func(ctx context.Context) error { return patch(ctx, thief, ownNode(), text) }
	}
	status := func(text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return thief.Status().Patch(ctx, ownNode(), client.RawPatch(types.StrategicMergePatchType, []byte(text)), client.DryRunAll)
		}
	}
	taint := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			text := `[{"op":"add","path":"/spec/taints/-","value":{"key":"` + key + `","effect":"NoExecute"}}]`
			return thief.Patch(ctx, ownNode(), client.RawPatch(types.JSONPatchType, []byte(text)), client.DryRunAll)
		}
	}
	return []attempt{
		{who, "its own label of a node", true, change(`{"metadata":{"labels":{"lowlatency.dev/profile":"trading"}}}`)},
		{who, "another label of a node", false, change(`{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`)},
		{who, "to remove a label of a node", false, change(`{"metadata":{"labels":{"zone":null}}}`)},
		{who, "its own taint of a node", true, taint("lowlatency.dev/unverified")},
		{who, "to evict pods by another taint", false, taint("gone")},
		{who, "to cordon a node", false, change(`{"spec":{"unschedulable":true}}`)},
		{who, "to say that it has cordoned a node", false, change(`{"metadata":{"annotations":{"lowlatency.dev/cordoned":"now"}}}`)},
		{who, "a finalizer of a node", false, change(`{"metadata":{"finalizers":["a.example/b"]}}`)},
		{who, "its own condition of a node", true, status(`{"status":{"conditions":[{"type":"LowLatencyReady","status":"True"}]}}`)},
		{who, "the condition Ready of a node", false, status(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`)},
		{who, "the capacity of a node", false, status(`{"status":{"capacity":{"cpu":"1000"}}}`)},
	}
}

// agentAttempts are those of the token of the agent on node-1.
func agentAttempts(thief client.Client) []attempt {
	lease := func(name, text string) func(context.Context) error {
		return func(ctx context.Context) error {
			return patch(ctx, thief, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: agentNamespace, Name: name}}, text)
		}
	}
	report := func(name string) func(context.Context) error {
		return func(ctx context.Context) error {
			object := &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
			return thief.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"status":{"verifiedPlanHash":"abc"}}`)), client.DryRunAll)
		}
	}
	const who, renewed = "agent of node-1", `{"spec":{"leaseDurationSeconds":120,"holderIdentity":"a"}}`
	return []attempt{
		{who, "the status of its LowLatencyNode", true, report("node-1")},
		{who, "the status of another LowLatencyNode", false, report("node-2")},
		{who, "the spec or finalizers of its LowLatencyNode", false, func(ctx context.Context) error {
			return patch(ctx, thief, &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}, `{"metadata":{"finalizers":["a.example/b"]}}`)
		}},
		{who, "its Lease", true, lease("node-1", renewed)},
		{who, "its Lease, for a year", false, lease("node-1", `{"spec":{"leaseDurationSeconds":31536000}}`)},
		{who, "a finalizer of its Lease", false, lease("node-1", `{"metadata":{"finalizers":["a.example/b"]}}`)},
		{who, "a label of its Lease", false, lease("node-1", `{"metadata":{"labels":{"a":"b"}}}`)},
		{who, "the owner of its Lease", false, lease("node-1", `{"metadata":{"ownerReferences":null}}`)},
		{who, "the Lease of another node", false, lease("node-2", renewed)},
		{who, "a Lease of somebody else", false, lease("foreign", renewed)},
		{who, "to list LowLatencyNodes", false, func(ctx context.Context) error { return thief.List(ctx, &v1alpha1.LowLatencyNodeList{}) }},
		{who, "a label of its node", false, func(ctx context.Context) error {
			return patch(ctx, thief, ownNode(), `{"metadata":{"labels":{"a":"b"}}}`)
		}},
		{who, "to read secrets", false, func(ctx context.Context) error { return thief.List(ctx, &corev1.SecretList{}) }},
		{who, "to list pods", false, func(ctx context.Context) error { return thief.List(ctx, &corev1.PodList{}) }},
	}
}

// driverAttempts are those of the token of a DRA driver on node-1.
func driverAttempts(thief client.Client) []attempt {
	slice := func(node, pool, driver string) func(context.Context) error {
		return func(ctx context.Context) error {
			return thief.Create(ctx, &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: resourcev1.ResourceSliceSpec{
				Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: pool, ResourceSliceCount: 1},
			}}, client.DryRunAll)
		}
	}
	const who = "DRA driver of node-1"
	return []attempt{
		{who, "a ResourceSlice of its node", true, slice("node-1", "node-1", draDriver)},
		{who, "a ResourceSlice of another node", false, slice("node-2", "node-2", draDriver)},
		{who, "one of its node in another node's pool", false, slice("node-1", "node-2", draDriver)},
		{who, "one of another driver", false, slice("node-1", "node-1", "gpu.example.com")},
		{who, "to list claims", false, func(ctx context.Context) error { return thief.List(ctx, &resourcev1.ResourceClaimList{}) }},
		{who, "to read secrets", false, func(ctx context.Context) error { return thief.List(ctx, &corev1.SecretList{}) }},
	}
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "done"
	case apierrors.IsForbidden(err):
		return "denied"
	}
	return "failed"
}

// reason is what the API server says, without what all refusals begin with.
func reason(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if _, sentence, found := strings.Cut(text, "denied request: "); found {
		return sentence
	}
	if strings.Contains(text, "cannot ") {
		return "RBAC"
	}
	return text
}

// show prints a table, and adds it to the file that ATTEMPTS names.
func show(table string) {
	GinkgoHelper()
	GinkgoWriter.Println("\n" + table)
	name := os.Getenv("ATTEMPTS")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	_, err = io.WriteString(file, table+"\n")
	Expect(errors.Join(err, file.Close())).To(Succeed())
}
