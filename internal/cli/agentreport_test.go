// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
)

// podOfAgent is the pod of an agent that serves at a port.
func podOfAgent(name, node, listen string, ready corev1.ConditionStatus) corev1.Pod {
	pod := corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Args: []string{"agent", "--root=/host"}}}}}
	pod.Name, pod.Namespace, pod.Labels = name, heartbeat.DefaultNamespace, map[string]string{"app.kubernetes.io/component": "agent"}
	if listen != "" {
		pod.Spec.Containers[0].Args = append(pod.Spec.Containers[0].Args, "--listen="+listen)
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	return pod
}

func TestReportPort(t *testing.T) {
	cases := map[string]struct {
		listen string
		want   uint16
		err    string
	}{
		"as installed":    {"127.0.0.1:9470", 9470, ""},
		"another port":    {"[::1]:80", 80, ""},
		"nowhere":         {"", 0, `pod "p" of the agent serves no report: it has no argument --listen=127.0.0.1:9470`},
		"on a local file": {"unix:/run/agent.sock", 0, `pod "p" of the agent serves its report at "unix:/run/agent.sock", which has no port`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOfAgent("p", "a", tc.listen, corev1.ConditionTrue)
			got, err := reportPort(&pod)
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("got %d and %v", got, err)
			}
		})
	}
}

// TestTheInstalledAgentIsFound looks for the agent as config/agent deploys it.
func TestTheInstalledAgentIsFound(t *testing.T) {
	data, err := os.ReadFile("../../config/agent/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var deployed appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(data, &deployed); err != nil {
		t.Fatal(err)
	}
	selector, err := labels.Parse(agentLabel)
	if err != nil {
		t.Fatal(err)
	}
	if deployed.Namespace != heartbeat.DefaultNamespace || !selector.Matches(labels.Set(deployed.Spec.Template.Labels)) {
		t.Errorf("agents are in namespace %q with labels %v", deployed.Namespace, deployed.Spec.Template.Labels)
	}
	if port, err := reportPort(&corev1.Pod{Spec: deployed.Spec.Template.Spec}); err != nil || port != 9470 {
		t.Errorf("the report is at port %d: %v", port, err)
	}
}

func TestOnlyReadyPodsAreAsked(t *testing.T) {
	going := podOfAgent("p", "a", "", corev1.ConditionTrue)
	going.DeletionTimestamp = &metav1.Time{}
	for want, pod := range map[bool]corev1.Pod{true: podOfAgent("p", "a", "", corev1.ConditionTrue), false: podOfAgent("p", "a", "", corev1.ConditionUnknown)} {
		if isReady(pod) != want || isReady(going) {
			t.Errorf("want %v of %+v", want, pod.Status)
		}
	}
}

// agentAt serves like an agent, and returns a connector to it.
func agentAt(t *testing.T, handler http.Handler) (string, connector) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	return address, func(ctx context.Context) (io.ReadWriteCloser, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
}

func answering(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != nodereport.Path || r.Method != http.MethodGet {
			code, text = http.StatusNotFound, r.URL.Path
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func TestAskReport(t *testing.T) {
	cases := map[string]struct {
		handler http.HandlerFunc
		err     string
	}{
		"a report":       {answering(http.StatusOK, `{"node":"a","planHash":"p"}`), ""},
		"a long report":  {answering(http.StatusOK, `{"node":"a","planHash":"p"`+strings.Repeat(" ", 1<<20)+"}"), ""},
		"no report yet":  {answering(http.StatusServiceUnavailable, "nothing is verified yet\n"), "it answers 503 Service Unavailable: nothing is verified yet"},
		"something else": {answering(http.StatusOK, "welcome"), "the answer is no report: invalid character 'w' looking for beginning of value"},
		"too much":       {answering(http.StatusOK, strings.Repeat(" ", nodereport.MaximumBytes+1)), "the report has more than 4194304 bytes"},
		"an endless head": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Long", strings.Repeat("x", nodereport.MaximumBytes+maximumHead))
		}, "reading the answer: unexpected EOF"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, connect := agentAt(t, tc.handler)
			got, err := askReport(t.Context(), connect, "a")
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Fatalf("got %v, want %q", err, tc.err)
			}
			if err == nil && got.PlanHash != "p" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestAskReportIsNotHeldUp asks an agent that takes the connection and says nothing.
func TestAskReportIsNotHeldUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	unresponsive, far := net.Pipe()
	go func() {
		_, _ = far.Read(make([]byte, 1))
		cancel()
	}()
	if _, err := askReport(ctx, func(context.Context) (io.ReadWriteCloser, error) { return unresponsive, nil }, "a"); err == nil {
		t.Error("an agent that says nothing has answered")
	}
	late := make(chan struct{})
	_, err := within(ctx, func() (io.ReadWriteCloser, error) {
		<-late
		return far, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a connection that is not there: %v", err)
	}
	close(late)
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("nobody closed the connection that came too late")
	}
	refused := errors.New("refused")
	if _, err := askReport(t.Context(), func(context.Context) (io.ReadWriteCloser, error) { return nil, refused }, "a"); !errors.Is(err, refused) {
		t.Error(err)
	}
}

// forwarding is an API server that forwards ports of a pod, as the kubelet does: a port is that of this machine.
type forwarding struct {
	// webSockets reports whether it upgrades to WebSockets, as API servers do since Kubernetes 1.31.
	webSockets bool
	// protocol is the one that is agreed on.
	protocol string

	mutex   sync.Mutex
	methods []string
}

func (f *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	f.methods = append(f.methods, r.Method)
	f.mutex.Unlock()
	streams := make(chan httpstream.Stream, 2)
	accept := func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	}
	var connection httpstream.Connection
	switch {
	case r.Method == http.MethodPost:
		w.Header().Set(httpstream.HeaderProtocolVersion, f.protocol)
		connection = spdy.NewResponseUpgrader().UpgradeResponse(w, r, accept)
	case f.webSockets:
		upgrader := websocket.Upgrader{Subprotocols: []string{"SPDY/3.1+" + f.protocol}}
		tunnel, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		connection, err = spdy.NewServerConnection(portforward.NewTunnelingConnection("server", tunnel), accept)
		if err != nil {
			return
		}
	default:
		http.Error(w, "no WebSockets here", http.StatusBadRequest)
	}
	if connection != nil {
		defer func() { _ = connection.Close() }()
		serveStreams(streams, connection.CloseChan())
	}
}

// serveStreams couples the stream of data with the port, or says on the other one why that cannot be done.
func serveStreams(streams <-chan httpstream.Stream, closed <-chan bool) {
	byKind := map[string]httpstream.Stream{}
	for len(byKind) < 2 {
		select {
		case stream := <-streams:
			byKind[stream.Headers().Get(corev1.StreamType)] = stream
		case <-closed:
			return
		}
	}
	data, failures := byKind[corev1.StreamTypeData], byKind[corev1.StreamTypeError]
	port, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", data.Headers().Get(corev1.PortHeader)))
	if err != nil {
		_, _ = fmt.Fprintf(failures, "error forwarding port: %s", err)
	} else {
		go func() { _, _ = io.Copy(port, data) }()
		_, _ = io.Copy(data, port)
		_ = port.Close()
	}
	_, _ = failures.Close(), data.Close()
	<-closed
}

func TestForwardTo(t *testing.T) {
	address, _ := agentAt(t, answering(http.StatusOK, `{"node":"a","planHash":"p"}`))
	_, text, _ := net.SplitHostPort(address)
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	const known = portforward.PortForwardProtocolV1Name
	cases := map[string]struct {
		server  *forwarding
		port    uint16
		methods string
		err     string
	}{
		"through a WebSocket":       {&forwarding{webSockets: true, protocol: known}, uint16(port), "GET", ""},
		"through SPDY":              {&forwarding{protocol: known}, uint16(port), "GET POST", ""},
		"nobody serves at the port": {&forwarding{webSockets: true, protocol: known}, 1, "GET", "error forwarding port: dial tcp 127.0.0.1:1: connect: connection refused"},
		"nor through SPDY":          {&forwarding{protocol: known}, 1, "GET POST", "error forwarding port: dial tcp 127.0.0.1:1: connect: connection refused"},
		"another protocol":          {&forwarding{protocol: "v9"}, 1, "GET POST", `the API server forwards ports by the protocol "v9", which is not known`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			t.Cleanup(server.Close)
			target, err := url.Parse(server.URL + "/portforward")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := askReport(ctx, forwardTo(&rest.Config{Host: server.URL}, target, tc.port), "a")
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasSuffix(err.Error(), tc.err) {
				t.Errorf("got %v, want %q", err, tc.err)
			}
			if err == nil && got.PlanHash != "p" {
				t.Errorf("got %+v", got)
			}
			if methods := strings.Join(tc.server.methods, " "); methods != tc.methods {
				t.Errorf("asked by %s, want %s", methods, tc.methods)
			}
		})
	}
}

// agents adds the pods of agents to a cluster, and the way to them.
func agents(t *testing.T, pods ...corev1.Pod) func(*http.ServeMux) {
	t.Helper()
	return func(mux *http.ServeMux) {
		root := "/api/v1/namespaces/" + heartbeat.DefaultNamespace + "/pods"
		mux.HandleFunc("GET "+root, func(w http.ResponseWriter, r *http.Request) {
			list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
			for _, pod := range pods {
				if r.URL.Query().Get("fieldSelector") == "spec.nodeName="+pod.Spec.NodeName && r.URL.Query().Get("labelSelector") == agentLabel {
					list.Items = append(list.Items, pod)
				}
			}
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
		})
		mux.HandleFunc(root+"/forbidden/portforward", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
				"message":"pods \"forbidden\" is forbidden: User \"u\" cannot create resource \"pods/portforward\""}`)
		})
		mux.Handle(root+"/serving/portforward", &forwarding{webSockets: true, protocol: portforward.PortForwardProtocolV1Name})
	}
}

// fullReport is what the agent of node a serves.
func fullReport(planHash string) *nodereport.Report {
	return &nodereport.Report{
		Node: "a", Time: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC), PlanHash: planHash,
		Results: []nodereport.CheckResult{
			{Finding: finding.Finding{Check: "cpu.online", Severity: v1alpha1.SeverityHigh, Outcome: v1alpha1.OutcomePassed}},
			{Finding: finding.Finding{
				Check: "irq.effective-affinity", Severity: v1alpha1.SeverityCritical, Outcome: v1alpha1.OutcomeFailed,
				Message: "IRQ 49 is delivered to isolated CPU 6", Objects: finding.OfCPUs(cpus.Of(6)),
			}},
		},
		Skipped: []nodereport.SkippedCheck{{Check: "irq.delivered", Reason: "read once"}},
		Owners: nodereport.Owners{Containers: []nodereport.Container{
			{Namespace: new("trading"), Pod: new("engine-0"), Container: "engine", CPUs: cpus.Of(2, 3), NUMANodes: []int{0}},
		}},
		Hugepages: []nodereport.Hugepages{{NUMANode: 1, SizeKibibytes: 1 << 20, Total: 4, Free: 1}},
		NUMANodes: []nodereport.NUMANode{{
			ID: 1, Vectors: new(21), IsolatedVectors: new(3),
			Reserved: []nodereport.Setting{{Name: "memory", Planned: "1100Mi", Configured: new("900Mi")}},
		}},
		Kubelet: []nodereport.Setting{{Name: "cpuManagerPolicy", Planned: "static", Configured: new("none")}},
	}
}

// TestNodeInClusterWithItsAgent draws what the status of a LowLatencyNode does not report.
func TestNodeInClusterWithItsAgent(t *testing.T) {
	object, held := reporting(t, "a")
	object.Spec.BypassPools = nil
	full := fullReport(object.Status.VerifiedPlanHash)
	other := *full
	other.PlanHash, other.ContainersProblem, other.Containers = "feedfeedfeedfeed", "which container owns which CPU is not known: no kubelet", nil
	cases := map[string]struct {
		report *nodereport.Report
		want   []string
	}{
		"as verified": {full, []string{
			"1 passed · 1 failed · 0 unknown · 0 waived · 1 not evaluated", "IRQ 49 is delivered to isolated CPU 6", "trading/engine-0/engine", "P/- 2,10 P/- 3,11", "3 of 4 in use · planned 4",
			"21 (3)", "memory 900Mi, planned 1100Mi", "cpuManagerPolicy static none",
		}},
		"about another plan": {&other, []string{
			"40 passed · 1 failed · 0 unknown · 0 waived", "IRQ 49 (ens1f0np0-0)", other.ContainersProblem, "is about plan feedfeedfeedfeed: the checks that passed are not shown",
			"3 of 4 in use · planned 4", "I/- 2,10 I/- 3,11",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", "node", "a", "--kubeconfig", clusterWithReport(t, tc.report, serving(t, held, object)))
			for _, want := range tc.want {
				if !strings.Contains(unwrapped(got.out), want) {
					t.Errorf("%q is missing in:\n%s", want, got.out)
				}
			}
			if got.code != ExitFindings || got.err != "" || strings.Contains(got.out, "is not known: ") != (tc.report == &other) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestNodeInClusterForPrograms looks at the fields that only the full report fills.
func TestNodeInClusterForPrograms(t *testing.T) {
	object, held := reporting(t, "a")
	object.Spec.BypassPools = nil
	full := fullReport(object.Status.VerifiedPlanHash)
	var drawn view.Node
	got := run(t, "", "node", "a", "-o", "json", "--kubeconfig", clusterWithReport(t, full, serving(t, held, object)))
	if err := json.Unmarshal([]byte(got.out), &drawn); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if diff := cmp.Diff([]v1alpha1.CheckID{"cpu.online"}, drawn.Passed); diff != "" || len(drawn.Skipped) != 1 || len(drawn.Problems) != 0 {
		t.Errorf("passed %v, skipped %v, problems %q", drawn.Passed, drawn.Skipped, drawn.Problems)
	}
	on := drawn.NUMANodes[1]
	if diff := cmp.Diff([]any{new(21), new(3), "memory", new("none")}, []any{on.Vectors, on.IsolatedVectors, on.Reserved[0].Name, drawn.Kubelet[0].Configured}); diff != "" {
		t.Errorf("NUMA node 1 and the kubelet (-want +got):\n%s", diff)
	}
	if drawn.ReportTime == nil || !drawn.ReportTime.Equal(full.Time) || !cmp.Equal(full.Containers, drawn.Containers) {
		t.Errorf("of %v: containers %+v", drawn.ReportTime, drawn.Containers)
	}
}

// TestASilentAgentIsNotAsked has an agent on node b that answers, and has not looked at the host for an hour.
func TestASilentAgentIsNotAsked(t *testing.T) {
	object, held := reporting(t, "b")
	full := fullReport(object.Status.VerifiedPlanHash)
	full.Node = "b"
	text, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	address, _ := agentAt(t, answering(http.StatusOK, string(text)))
	config := cluster(t, nil, nil, serving(t, held, object), leasing(t), agents(t, podOfAgent("serving", "b", address, corev1.ConditionTrue)))
	got := run(t, "", "node", "b", "--kubeconfig", config)
	if want := "which checks passed is not known: the agent does not look at the host"; !strings.Contains(unwrapped(got.out), want) || strings.Contains(got.out, "engine-0") {
		t.Errorf("%q is missing, or its report is drawn: %+v", want, got)
	}
}

// clusterWithReport is a cluster in which the second of two agents on node a serves a report.
func clusterWithReport(t *testing.T, report *nodereport.Report, more func(*http.ServeMux)) string {
	t.Helper()
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	address, _ := agentAt(t, answering(http.StatusOK, string(text)))
	return cluster(t, nil, nil, more, leasing(t), agents(t,
		podOfAgent("starting", "a", "", corev1.ConditionFalse), podOfAgent("serving", "a", address, corev1.ConditionTrue)))
}

// TestNodeInClusterWithoutItsAgent draws the status, and says what is missing.
func TestNodeInClusterWithoutItsAgent(t *testing.T) {
	object, held := reporting(t, "w")
	const unknown = "which containers own CPUs, which hugepages are there and which checks passed is not known: "
	unverified, _ := agentAt(t, answering(http.StatusServiceUnavailable, "nothing is verified yet"))
	cases := map[string]struct {
		pods []corev1.Pod
		args []string
		want string
	}{
		"no agent":        {nil, nil, `namespace "lowlatency-operator-agents" has no agent on node "w"; say with --agent-namespace where the agents run`},
		"on another node": {[]corev1.Pod{podOfAgent("p", "b", "127.0.0.1:1", corev1.ConditionTrue)}, nil, `has no agent on node "w"`},
		"not ready":       {[]corev1.Pod{podOfAgent("p", "w", "127.0.0.1:1", corev1.ConditionFalse)}, nil, `pod "p" of the agent is not ready`},
		"serves nothing":  {[]corev1.Pod{podOfAgent("p", "w", "", corev1.ConditionTrue)}, nil, `pod "p" of the agent serves no report`},
		"no right": {
			[]corev1.Pod{podOfAgent("forbidden", "w", "127.0.0.1:1", corev1.ConditionTrue)}, nil, `User "u" cannot create resource "pods/portforward"`,
		},
		"no answer": {
			[]corev1.Pod{podOfAgent("serving", "w", unverified, corev1.ConditionTrue)}, nil, `asking pod "serving": it answers 503 Service Unavailable: nothing is verified yet`,
		},
		"other namespace": {nil, []string{"--agent-namespace", "n"}, `listing the pods of namespace "n": `},
		"not asked":       {nil, []string{"--report", "never"}, "the agent was not asked"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			config := cluster(t, nil, nil, serving(t, held, object), agents(t, tc.pods...))
			got := run(t, "", append([]string{"node", "w", "--kubeconfig", config}, tc.args...)...)
			text := unwrapped(got.out)
			if got.code != ExitFindings || got.err != "" || !strings.Contains(text, unknown) || !strings.Contains(text, tc.want) {
				t.Errorf("%q is missing: %+v", tc.want, got)
			}
			if !strings.Contains(text, "planned 4 · not reported") || !strings.Contains(text, "40 passed · 1 failed") {
				t.Errorf("the status is not drawn:\n%s", got.out)
			}
		})
	}
}
