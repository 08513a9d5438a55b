// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/stackdump"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
)

const clientLine = "kubectl-lowlatency v9 (commit "

// runningPod is a pod with the image that its node pulled, or without while nothing runs.
func runningPod(name, imageID string) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: defaultNamespace}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "reg/op:wanted"}}}}
	if imageID != "" {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "manager", ImageID: imageID}}
	}
	return pod
}

// versionCluster has pods of the operator and of agents; the programs in the former answer as the function says. Agents nil: they may not be listed.
func versionCluster(t *testing.T, managers, agents []corev1.Pod, answer program) string {
	t.Helper()
	mux := http.NewServeMux()
	list := func(namespace, label string, pods []corev1.Pod) {
		mux.HandleFunc("GET /api/v1/namespaces/"+namespace+"/pods", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if pods == nil {
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods is forbidden"}`)
				return
			}
			found := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: pods}
			if r.URL.Query().Get("labelSelector") != label {
				found.Items = nil
			}
			if err := json.NewEncoder(w).Encode(found); err != nil {
				t.Error(err)
			}
		})
	}
	list(defaultNamespace, "control-plane=controller-manager", managers)
	list(heartbeat.DefaultNamespace, "app.kubernetes.io/component=agent", agents)
	mux.Handle("/api/v1/namespaces/"+defaultNamespace+"/pods/{pod}/exec", &executing{webSockets: true, program: func(pod, container, command string) (stackdump.Ended, error) {
		if container != "manager" || command != "/lowlatency-operator --version" {
			t.Errorf("%q runs in container %q", command, container)
		}
		return answer(pod, container, command)
	}})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return kubeconfig(t, server.URL)
}

func TestVersionOfTheCluster(t *testing.T) {
	says := map[string]stackdump.Ended{
		"old":    {Output: "lowlatency-operator version v0.1.0 (commit a)\n"},
		"new":    {Output: "lowlatency-operator version v0.2.0 (commit b)\n"},
		"silent": {},
		"odd":    {ExitCode: 2, Complaint: "unknown flag\n"},
		"harm":   {Output: "lowlatency-operator version v1\x07\n"},
	}
	answer := func(pod, _, _ string) (stackdump.Ended, error) {
		if said, runs := says[pod]; runs {
			return said, nil
		}
		return stackdump.Ended{}, errors.New("container not found")
	}
	going := runningPod("going", "reg/op@sha256:00")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{}, []string{"x/y"}
	*going.DeletionTimestamp = metav1.Now()
	cases := map[string]struct {
		managers, agents []corev1.Pod
		want, err        string
		code             int
	}{
		"an upgrade under way": {
			managers: []corev1.Pod{runningPod("old", "reg/op@sha256:aa"), runningPod("new", "reg/op@sha256:bb"), going},
			agents:   []corev1.Pod{runningPod("a", "reg/op@sha256:bb"), runningPod("b", "reg/op@sha256:aa"), runningPod("c", "reg/op@sha256:aa")},
			want: "lowlatency-operator version v0.2.0 (commit b)\n  pod new, image reg/op@sha256:bb\n" +
				"lowlatency-operator version v0.1.0 (commit a)\n  pod old, image reg/op@sha256:aa\n" +
				"agents in 2 pods\n  image reg/op@sha256:aa\nagents in 1 pod\n  image reg/op@sha256:bb\n",
		},
		"pods that do not say": {
			managers: []corev1.Pod{runningPod("absent", ""), runningPod("odd", "i"), runningPod("silent", "i")},
			agents:   []corev1.Pod{},
			want: "the version of the operator is not known: container not found\n  pod absent, image reg/op:wanted\n" +
				"the version of the operator is not known: /lowlatency-operator --version ended with exit code 2: unknown flag\n  pod odd, image i\n" +
				"the version of the operator is not known: /lowlatency-operator --version printed nothing\n  pod silent, image i\n" +
				"no agent runs: no profile matches a node\n",
		},
		"agents that may not be seen": {
			managers: []corev1.Pod{runningPod("harm", "i")},
			want: "lowlatency-operator version v1�\n  pod harm, image i\n" +
				`which agents run is not known: listing the pods of namespace "lowlatency-operator-agents": pods is forbidden` + "\n",
		},
		"no operator": {
			managers: []corev1.Pod{}, code: ExitUsage,
			err: `error: namespace "lowlatency-operator-system" has no pod of the operator; say with --namespace where it runs` + "\n",
		},
		"an operator that may not be seen": {
			code: ExitUsage, err: `error: listing the pods of namespace "lowlatency-operator-system": pods is forbidden` + "\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", "version", "--kubeconfig", versionCluster(t, tc.managers, tc.agents, answer))
			client, cluster, _ := strings.Cut(got.out, "\n")
			if !strings.HasPrefix(client, clientLine) || got.code != tc.code {
				t.Errorf("exit code %d, want %d; first line %q", got.code, tc.code, client)
			}
			if diff := cmp.Diff(tc.want, cluster) + cmp.Diff(tc.err, got.err); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionInJSON(t *testing.T) {
	cluster := versionCluster(t, []corev1.Pod{runningPod("m", "i")}, []corev1.Pod{runningPod("a", "i")}, func(string, string, string) (stackdump.Ended, error) {
		return stackdump.Ended{Output: "v1"}, nil
	})
	got := run(t, "", "version", "--kubeconfig", cluster, "-o", "json")
	var found versions
	if err := json.Unmarshal([]byte(got.out), &found); err != nil || got.code != ExitOK {
		t.Fatalf("%+v, %v", got, err)
	}
	want := &clusterVersions{Operator: []podVersion{{Pod: "m", Image: "i", Version: "v1"}}, Agents: []imageCount{{"i", 1}}}
	if diff := cmp.Diff(want, found.Cluster); diff != "" || !strings.HasPrefix("kubectl-lowlatency "+found.Client, clientLine) {
		t.Errorf("client %q; cluster (-want +got):\n%s", found.Client, diff)
	}
}

// TestVersionWithoutACluster: what this program is can always be told.
func TestVersionWithoutACluster(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	away := kubeconfig(t, "http://127.0.0.1:1")
	cases := map[string]struct {
		kubeconfig string
		args       []string
		code       int
		err        string
	}{
		"none is configured": {"", nil, ExitOK, "no cluster was asked: neither KUBECONFIG nor ~/.kube/config names a cluster, and this is no pod of one\n"},
		"none is wanted":     {away, []string{"--client"}, ExitOK, ""},
		"a cluster is away":  {away, nil, ExitUsage, "connection refused"},
		"no such file":       {"", []string{"--kubeconfig", "/does/not/exist"}, ExitUsage, "finding the cluster: stat /does/not/exist: no such file or directory; give --kubeconfig"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tc.kubeconfig)
			got := run(t, "", append([]string{"version"}, tc.args...)...)
			if got.code != tc.code || !strings.HasPrefix(got.out, clientLine) || strings.Count(got.out, "\n") != 1 {
				t.Errorf("got %+v, want exit code %d", got, tc.code)
			}
			if !strings.Contains(got.err, tc.err) || (tc.err == "") != (got.err == "") {
				t.Errorf("it says %q, want %q", got.err, tc.err)
			}
		})
	}
}
