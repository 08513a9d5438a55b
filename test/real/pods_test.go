// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// podPace is the time between two looks at the pods.
	podPace = 500 * time.Millisecond
	// certificateAnnotation asks OpenShift's service CA for a certificate in a Secret of this name.
	certificateAnnotation = "service.beta.openshift.io/serving-cert-secret-name"
)

// listens matches the value of a flag that is a port on all addresses.
var listens = regexp.MustCompile(`=:([0-9]+)$`)

// podRunner does for the pods of one namespace what scheduler and kubelet do, and OpenShift's service CA where there is one.
type podRunner struct {
	client    client.Client
	config    *rest.Config
	namespace string
	// node is where pods are scheduled to; program is the one that images hold, but for olderImage, which holds older; folder is for logs, tokens
	// and mounts.
	node, program, olderImage, older, folder string
	// certifies is whether there is a service CA.
	certifies bool

	pods map[types.UID]*runningPod
	done sync.WaitGroup
	// troubles are what went wrong last, for messages.
	mutex    sync.Mutex
	troubles string
}

// runningPod is a pod as a process.
type runningPod struct {
	process *process
	probe   string
}

// run looks after the pods until the context ends.
func (r *podRunner) run(ctx context.Context) {
	r.pods = map[types.UID]*runningPod{}
	r.done.Go(func() {
		for ctx.Err() == nil {
			if err := r.once(ctx); err != nil && ctx.Err() == nil {
				r.mutex.Lock()
				r.troubles = err.Error()
				r.mutex.Unlock()
			}
			time.Sleep(podPace)
		}
		for _, pod := range r.pods {
			pod.process.stop()
		}
	})
}

// trouble is what went wrong last.
func (r *podRunner) trouble() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.troubles
}

func (r *podRunner) once(ctx context.Context) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(r.namespace)); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	var failures []error
	if r.certifies {
		failures = append(failures, r.certify(ctx))
	}
	seen := map[types.UID]bool{}
	for i := range pods.Items {
		seen[pods.Items[i].UID] = true
		failures = append(failures, r.attend(ctx, &pods.Items[i]))
	}
	for uid, pod := range r.pods {
		if !seen[uid] {
			pod.process.stop()
			delete(r.pods, uid)
		}
	}
	return errors.Join(failures...)
}

// attend brings one pod a step further.
func (r *podRunner) attend(ctx context.Context, pod *corev1.Pod) error {
	running := r.pods[pod.UID]
	switch {
	case !pod.DeletionTimestamp.IsZero():
		if running != nil {
			running.process.stop()
			delete(r.pods, pod.UID)
		}
		return client.IgnoreNotFound(r.client.Delete(ctx, pod, client.GracePeriodSeconds(0)))
	case pod.Spec.NodeName == "":
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: r.node}}
		return r.client.SubResource("binding").Create(ctx, pod, binding)
	case running == nil || !running.process.running():
		started, err := r.startPod(ctx, pod)
		if err != nil {
			return fmt.Errorf("starting pod %s: %w", pod.Name, err)
		}
		r.pods[pod.UID] = started
		return nil
	}
	return r.report(ctx, pod, isReady(ctx, running.probe))
}

// startPod makes a process of the pod's only container.
func (r *podRunner) startPod(ctx context.Context, pod *corev1.Pod) (*runningPod, error) {
	if len(pod.Spec.Containers) != 1 {
		return nil, fmt.Errorf("it has %d containers", len(pod.Spec.Containers))
	}
	container := &pod.Spec.Containers[0]
	folder := filepath.Join(r.folder, string(pod.UID))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := r.writeToken(ctx, pod, kubeconfig); err != nil {
		return nil, err
	}
	mounts, err := r.mount(ctx, pod, folder)
	if err != nil {
		return nil, err
	}
	arguments, ports, err := localArguments(container.Args, mounts)
	if err != nil {
		return nil, err
	}
	environment := []string{"KUBECONFIG=" + kubeconfig, "PATH=/nowhere"}
	for _, variable := range container.Env {
		environment = append(environment, variable.Name+"="+valueOf(pod, &variable))
	}
	program := r.program
	if container.Image == r.olderImage {
		program = r.older
	}
	p, err := launch(filepath.Join(r.folder, pod.Name+".log"), environment, program, arguments...)
	if err != nil {
		return nil, err
	}
	return &runningPod{process: p, probe: probeOf(container, ports)}, nil
}

// valueOf is the value of an environment variable.
func valueOf(pod *corev1.Pod, variable *corev1.EnvVar) string {
	if variable.ValueFrom == nil || variable.ValueFrom.FieldRef == nil {
		return variable.Value
	}
	switch variable.ValueFrom.FieldRef.FieldPath {
	case "metadata.namespace":
		return pod.Namespace
	case "metadata.name":
		return pod.Name
	case "spec.nodeName":
		return pod.Spec.NodeName
	}
	return ""
}

// localArguments are the arguments with ports that are free on this machine and paths that are there. It returns the ports by those of
// the container.
func localArguments(arguments []string, mounts map[string]string) ([]string, map[string]string, error) {
	ports := map[string]string{}
	local := make([]string, 0, len(arguments))
	for _, argument := range arguments {
		if found := listens.FindStringSubmatch(argument); found != nil {
			free, err := freePort()
			if err != nil {
				return nil, nil, err
			}
			ports[found[1]] = free
			argument = listens.ReplaceAllString(argument, "=127.0.0.1:"+free)
		}
		for inside, outside := range mounts {
			argument = strings.ReplaceAll(argument, "="+inside, "="+outside)
		}
		local = append(local, argument)
	}
	return local, ports, nil
}

// probeOf is the URL of the readiness probe on this machine.
func probeOf(container *corev1.Container, ports map[string]string) string {
	probe := container.ReadinessProbe.HTTPGet
	number := probe.Port.String()
	for _, named := range container.Ports {
		if named.Name == number {
			number = strconv.Itoa(int(named.ContainerPort))
		}
	}
	return "http://127.0.0.1:" + ports[number] + probe.Path
}

func isReady(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}

// writeToken gives the pod the token of its service account, as the kubelet asks for it: bound to the pod, so that it also names the node.
func (r *podRunner) writeToken(ctx context.Context, pod *corev1.Pod, path string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
		Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID,
	}}}
	if err := r.client.SubResource("token").Create(ctx, account, request); err != nil {
		return fmt.Errorf("asking for a token of service account %s: %w", account.Name, err)
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["real"] = &clientcmdapi.Cluster{Server: r.config.Host, CertificateAuthorityData: r.config.CAData}
	file.AuthInfos["real"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	file.Contexts["real"] = &clientcmdapi.Context{Cluster: "real", AuthInfo: "real"}
	file.CurrentContext = "real"
	return clientcmd.WriteToFile(*file, path)
}

// mount writes the secrets that the pod mounts, and returns their folders by those inside.
func (r *podRunner) mount(ctx context.Context, pod *corev1.Pod, folder string) (map[string]string, error) {
	mounts := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		var secret corev1.Secret
		if err := r.client.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: volume.Secret.SecretName}, &secret); err != nil {
			return nil, fmt.Errorf("mounting a secret: %w", err)
		}
		outside := filepath.Join(folder, volume.Name)
		if err := os.MkdirAll(outside, 0o700); err != nil {
			return nil, fmt.Errorf("mounting a secret: %w", err)
		}
		for name, content := range secret.Data {
			if err := os.WriteFile(filepath.Join(outside, name), content, 0o600); err != nil {
				return nil, fmt.Errorf("mounting a secret: %w", err)
			}
		}
		for _, inside := range pod.Spec.Containers[0].VolumeMounts {
			if inside.Name == volume.Name {
				mounts[inside.MountPath] = outside
			}
		}
	}
	return mounts, nil
}

// report writes the status of a pod that runs.
func (r *podRunner) report(ctx context.Context, pod *corev1.Pod, ready bool) error {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == status }) {
		return nil
	}
	before, now := pod.DeepCopy(), metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	pod.Status.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: now})
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, Ready: ready,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
	}}
	return r.client.Status().Patch(ctx, pod, client.MergeFrom(before))
}

// certify makes the certificates that Services ask OpenShift's service CA for.
func (r *podRunner) certify(ctx context.Context) error {
	var services corev1.ServiceList
	if err := r.client.List(ctx, &services, client.InNamespace(r.namespace)); err != nil {
		return fmt.Errorf("listing Services: %w", err)
	}
	for i := range services.Items {
		secret := &corev1.Secret{Type: corev1.SecretTypeTLS}
		secret.Namespace, secret.Name = r.namespace, services.Items[i].Annotations[certificateAnnotation]
		if secret.Name == "" || r.client.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{}) == nil {
			continue
		}
		certificate, key, err := cert.GenerateSelfSignedCertKey(services.Items[i].Name+"."+r.namespace+".svc", nil, nil)
		if err != nil {
			return fmt.Errorf("making a certificate: %w", err)
		}
		secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
		if err := r.client.Create(ctx, secret); err != nil {
			return fmt.Errorf("making a certificate: %w", err)
		}
	}
	return nil
}
