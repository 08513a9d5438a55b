// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// managerPod waits until the managers are ready, as its probes say, and looks at what holds the process of one and who may read its metrics.
func (s *scene) managerPod(t *testing.T) string {
	pod := s.readyPod(t, operatorNamespace, client.MatchingLabels{"control-plane": "controller-manager"})
	held := s.expectHeld(t, pod, nobody)
	s.expectMetrics(t, "https://"+pod.Status.PodIP+":8443/metrics")
	return held + "; metrics by TLS: 401 without a token, 403 for others, 200 for their reader"
}

const (
	// nobody is the user of the image; root is that of agents and device plugins, which read files of the host that are root's.
	nobody = 65532
	root   = 0
)

// expectHeld looks from the node at what holds the first process of a pod, as the kernel says: its user, and for every pod of the operator no
// capability, no way to new ones, a filter of system calls, and a root that cannot be written.
func (s *scene) expectHeld(t *testing.T, pod *corev1.Pod, user int) string {
	t.Helper()
	pid := s.process(t, pod)
	held := s.run(t, "grep -E '^(Uid|CapEff|NoNewPrivs|Seccomp):' /proc/"+pid+"/status | awk '{print $1 $2}'; "+
		"awk '$5 == \"/\" {print \"Root:\" substr($6, 1, 2)}' /proc/"+pid+"/mountinfo")
	want := []string{fmt.Sprintf("Uid:%d", user), "CapEff:0000000000000000", "NoNewPrivs:1", "Seccomp:2", "Root:ro"}
	if diff := cmp.Diff(want, strings.Fields(held)); diff != "" {
		t.Errorf("what holds %s (-want +got):\n%s", pod.Name, diff)
	}
	return strings.Join(want, " ")
}

// expectMetrics asks for the metrics as nobody, as an account without rights, and as one that may read them.
func (s *scene) expectMetrics(t *testing.T, address string) {
	t.Helper()
	for _, name := range []string{"nobody-in-particular", "metrics-reader"} {
		s.create(t, &corev1.ServiceAccount{ObjectMeta: objectName(name)})
	}
	s.create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: objectName("lab-metrics-reader"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lowlatency-operator-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "metrics-reader", Namespace: "default"}},
	})
	for _, c := range []struct{ token, want string }{
		{"", "401"}, {s.token(t, "nobody-in-particular"), "403"}, {s.token(t, "metrics-reader"), "200"},
	} {
		s.wait(t, "metrics to be answered with "+c.want, func(context.Context) (bool, string) {
			said, err := s.machine.Execute(t.Context(), "TOKEN="+c.token+" "+lab.FilesPath+"/bin/workload -get "+address)
			return err == nil && strings.HasPrefix(said.Stdout, c.want+" "), fmt.Sprint(said, err)
		})
	}
}

// token is one of a service account of the default namespace.
func (s *scene) token(t *testing.T, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	must(t, s.api.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: objectName(account)}, request))
	return request.Status.Token
}

// readyPod waits for all pods with the labels to be ready, and returns one.
func (s *scene) readyPod(t *testing.T, namespace string, labels client.MatchingLabels) *corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	s.wait(t, fmt.Sprintf("the pods %v to be ready", labels), func(ctx context.Context) (bool, string) {
		if err := s.api.List(ctx, pods, client.InNamespace(namespace), labels); err != nil || len(pods.Items) == 0 {
			return false, fmt.Sprintf("%d pods, %v", len(pods.Items), err)
		}
		for i := range pods.Items {
			if pod := &pods.Items[i]; !isReady(pod) {
				return false, fmt.Sprint(pod.Name, pod.Status.Conditions, waiting(pod))
			}
		}
		return true, ""
	})
	return &pods.Items[0]
}

// container is the identifier of a pod's only container.
func container(pod *corev1.Pod) string {
	return strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
}

// process is the number of the first process of a pod's only container, as the node numbers it. A container that is started anew meanwhile, as on a busy
// machine when the manager loses its Lease, has another one: then pod is read again.
func (s *scene) process(t *testing.T, pod *corev1.Pod) (pid string) {
	t.Helper()
	s.wait(t, "the process of pod "+pod.Name, func(ctx context.Context) (bool, string) {
		if err := s.api.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || !isReady(pod) {
			return false, fmt.Sprint(waiting(pod), err)
		}
		out, err := s.machine.Run(ctx, lab.FilesPath+"/bin/ctr -n k8s.io tasks list | awk '$1 == \""+container(pod)+"\" {print $2}'")
		pid = strings.TrimSpace(out)
		return pid != "", fmt.Sprint("no task of container ", container(pod), " ", err)
	})
	return pid
}
