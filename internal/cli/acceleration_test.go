// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gorilla/websocket"
	"gotest.tools/v3/golden"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/stackdump"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// program is what runs in the containers of a cluster: it gets the pod, the container and the command.
type program func(pod, container, command string) (stackdump.Ended, error)

// executing is an API server that runs programs in containers, as the kubelet does.
type executing struct {
	// webSockets reports whether it upgrades to WebSockets, as API servers do since Kubernetes 1.31.
	webSockets bool
	program    program

	mutex   sync.Mutex
	methods []string
}

func (e *executing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mutex.Lock()
	e.methods = append(e.methods, r.Method)
	e.mutex.Unlock()
	query := r.URL.Query()
	if query.Get("stdin") != "" || query.Get("tty") != "" || query.Get("stdout") != "true" || query.Get("stderr") != "true" {
		http.Error(w, "wrong streams", http.StatusBadRequest)
		return
	}
	start := func() (stackdump.Ended, []byte) {
		ended, err := e.program(r.PathValue("pod"), query.Get("container"), strings.Join(query["command"], " "))
		return ended, statusOf(ended.ExitCode, err)
	}
	switch {
	case r.Method == http.MethodPost:
		overSPDY(w, r, start)
	case e.webSockets:
		overWebSocket(w, r, start)
	default:
		http.Error(w, "no WebSockets here", http.StatusBadRequest)
	}
}

// statusOf is how a kubelet says how a program ended, or why there was none.
func statusOf(exitCode int, err error) []byte {
	status := metav1.Status{Status: metav1.StatusSuccess}
	switch {
	case err != nil:
		status = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Message: err.Error()}
	case exitCode != 0:
		status = metav1.Status{
			Status: metav1.StatusFailure, Reason: remotecommand.NonZeroExitCodeReason, Message: fmt.Sprint("command terminated with ", exitCode),
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(exitCode)}}},
		}
	}
	text, _ := json.Marshal(status)
	return text
}

func overWebSocket(w http.ResponseWriter, r *http.Request, start func() (stackdump.Ended, []byte)) {
	upgrader := websocket.Upgrader{Subprotocols: []string{remotecommand.StreamProtocolV5Name}}
	socket, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = socket.Close() }()
	ended, status := start()
	for channel, text := range [][]byte{
		remotecommand.StreamStdOut: []byte(ended.Output), remotecommand.StreamStdErr: []byte(ended.Complaint), remotecommand.StreamErr: status,
	} {
		for piece := range slices.Chunk(text, 16<<10) {
			if socket.WriteMessage(websocket.BinaryMessage, append([]byte{byte(channel)}, piece...)) != nil {
				return
			}
		}
	}
	_ = socket.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
	_, _, _ = socket.ReadMessage()
}

func overSPDY(w http.ResponseWriter, r *http.Request, start func() (stackdump.Ended, []byte)) {
	streams := make(chan httpstream.Stream, 3)
	w.Header().Set(httpstream.HeaderProtocolVersion, remotecommand.StreamProtocolV4Name)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	byKind := map[string]httpstream.Stream{}
	for len(byKind) < 3 {
		stream := <-streams
		byKind[stream.Headers().Get(corev1.StreamType)] = stream
	}
	ended, status := start()
	for kind, text := range map[string][]byte{
		corev1.StreamTypeStdout: []byte(ended.Output), corev1.StreamTypeStderr: []byte(ended.Complaint), corev1.StreamTypeError: status,
	} {
		_, _ = byKind[kind].Write(text)
		_ = byKind[kind].Close()
	}
	<-connection.CloseChan()
}

// stack is what onload_stackdump lots prints about one stack with one socket, which a process has open or not.
func stack(id int, pids string, user, kernel, percent int) string {
	return fmt.Sprintf("ci_netif_dump_to_logger: stack=%d name=feed\n  namespace=net:[4026532001]\n  uk_intf_ver=%032x\npids: %s\n", id, 10, pids) +
		fmt.Sprintf("UDP %d:9 lcl=192.0.2.1:5001 rmt=0.0.0.0:0 UDP\n  rcv: q_pkts=0 reap=0 tot_pkts=%d\n", id, user) +
		fmt.Sprintf("  rcv: os=%d(%d%%) os_slow=0 os_error=0\n----\nul_accepts: 0\n", kernel, percent)
}

// noProgram is what a container runtime says of a program that the image does not have.
func noProgram(name string) error {
	return fmt.Errorf("exec failed: exec: %q: executable file not found in $PATH: unknown", name)
}

func TestContainerOf(t *testing.T) {
	cases := map[string]struct {
		server  *executing
		want    stackdump.Ended
		err     string
		methods string
	}{
		"through a WebSocket": {
			&executing{webSockets: true, program: func(pod, container, command string) (stackdump.Ended, error) {
				return stackdump.Ended{Output: pod + " " + container + " " + command, Complaint: "noise"}, nil
			}}, stackdump.Ended{Output: "feed app env -u X tool", Complaint: "noise"}, "", "GET",
		},
		"through SPDY": {
			&executing{program: func(string, string, string) (stackdump.Ended, error) {
				return stackdump.Ended{ExitCode: 3, Output: "out", Complaint: "noise"}, nil
			}},
			stackdump.Ended{ExitCode: 3, Output: "out", Complaint: "noise"}, "", "GET POST",
		},
		"no program": {
			&executing{webSockets: true, program: func(string, string, string) (stackdump.Ended, error) { return stackdump.Ended{}, noProgram("x") }},
			stackdump.Ended{}, `exec failed: exec: "x": executable file not found in $PATH: unknown`, "GET",
		},
		"too much": {
			&executing{webSockets: true, program: func(string, string, string) (stackdump.Ended, error) {
				return stackdump.Ended{Output: strings.Repeat("x", onload.MaximumBytes+1)}, nil
			}}, stackdump.Ended{}, stackdump.ErrTooMuch.Error(), "GET",
		},
		"too long a complaint": {
			&executing{program: func(string, string, string) (stackdump.Ended, error) {
				return stackdump.Ended{Complaint: strings.Repeat("x", maximumComplaint+1)}, nil
			}}, stackdump.Ended{}, stackdump.ErrTooMuch.Error(), "GET POST",
		},
		"as much as is read": {
			&executing{webSockets: true, program: func(string, string, string) (stackdump.Ended, error) {
				return stackdump.Ended{Complaint: strings.Repeat("x", maximumComplaint)}, nil
			}}, stackdump.Ended{Complaint: strings.Repeat("x", maximumComplaint)}, "", "GET",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle("/api/v1/namespaces/trading/pods/{pod}/exec", tc.server)
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			access := clusterAccess{kubeconfig: kubeconfig(t, server.URL)}
			core, err := access.connectCore()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := containerOf(&rest.Config{Host: server.URL}, core, "trading", "feed", "app")(ctx, []string{"env", "-u", "X", "tool"})
			if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("got %v, want %q", err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if methods := strings.Join(tc.server.methods, " "); methods != tc.methods {
				t.Errorf("asked by %s, want %s", methods, tc.methods)
			}
		})
	}
}

func TestExecuteEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{})
	server := httptest.NewServer(&executing{webSockets: true, program: func(string, string, string) (stackdump.Ended, error) {
		close(started)
		<-ctx.Done()
		return stackdump.Ended{}, nil
	}})
	t.Cleanup(server.Close)
	go func() {
		<-started
		cancel()
	}()
	target, err := url.Parse(server.URL + "/?stdout=true&stderr=true")
	if err != nil {
		t.Fatal(err)
	}
	executor, err := newExecutor(&rest.Config{Host: server.URL}, target)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := execute(ctx, executor); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestAskContainersAFewAtATime counts how many are asked at the same time.
func TestAskContainersAFewAtATime(t *testing.T) {
	containers := map[string]view.PoolUser{}
	for i := range 5 * stacksAtOnce {
		user := view.PoolUser{Namespace: "n", Pod: fmt.Sprint("p", i), Container: "c"}
		containers[user.Name()] = user
	}
	var running, most atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	verdicts := askContainers(t.Context(), containers, func(user view.PoolUser) stackdump.Run {
		return func(context.Context, []string) (stackdump.Ended, error) {
			now := running.Add(1)
			defer running.Add(-1)
			most.Store(max(now, most.Load()))
			if now == stacksAtOnce {
				once.Do(func() { close(full) })
			}
			<-full
			return stackdump.Ended{}, errors.New(user.Pod)
		}
	})
	if most.Load() != stacksAtOnce || len(verdicts) != len(containers) {
		t.Errorf("%d at a time, %d verdicts", most.Load(), len(verdicts))
	}
	if got := verdicts["n/p7/c"]; !strings.Contains(got.Message, "(p7)") {
		t.Errorf("got %+v", got)
	}
}

// traders is a cluster with a pool of Onload, one of ef_vi, and containers that hold their NICs.
func traders(t *testing.T, names ...string) string {
	t.Helper()
	var pool v1alpha1.BypassNICPool
	if err := yaml.UnmarshalStrict([]byte(poolText), &pool); err != nil {
		t.Fatal(err)
	}
	other := *pool.DeepCopy()
	other.Name, other.Spec.Stack.Type = "efvi", v1alpha1.StackEFVI
	zero := int32(0)
	held := v1alpha1.NodeBypassNIC{Pool: "x2", PCIAddress: "0000:3b:00.0", InterfaceName: "ens1", NUMANode: &zero, Health: v1alpha1.NICHealthy, Units: 8}
	for _, name := range names {
		held.Users = append(held.Users, v1alpha1.NICUser{Namespace: "trading", Pod: name, Container: "app", Alignment: v1alpha1.AlignmentAligned})
	}
	second := *held.DeepCopy()
	second.PCIAddress, second.Users = "0000:3b:00.1", shorten.List(held.Users, 1)
	theirs := held
	theirs.Pool, theirs.PCIAddress = "efvi", "0000:81:00.0"
	return cluster(t, []v1alpha1.BypassNICPool{pool, other}, []v1alpha1.LowLatencyNode{reported("a", []string{"x2", "efvi"}, held, second, theirs)},
		func(mux *http.ServeMux) {
			mux.Handle("/api/v1/namespaces/trading/pods/{pod}/exec", &executing{webSockets: true, program: trade})
			mux.HandleFunc("/api/v1/namespaces/trading/pods/secret/exec", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,
					"message":"pods \"secret\" is forbidden: User \"u\" cannot create resource \"pods/exec\""}`)
			})
		})
}

// trade is what runs in the containers of traders, by the names of their pods.
func trade(pod, container, command string) (stackdump.Ended, error) {
	if container != "app" || command != "env LD_PRELOAD= /opt/onload/usr/bin/onload_stackdump lots" {
		return stackdump.Ended{}, fmt.Errorf("%s runs in %s", command, container)
	}
	switch pod {
	case "fast":
		return stackdump.Ended{Output: stack(3, "7,8", 37, 0, 0) + stack(4, "", 0, 99, 100), Complaint: "noise"}, nil
	case "slow":
		return stackdump.Ended{Output: stack(5, "7", 3, 997, 99)}, nil
	case "idle":
		return stackdump.Ended{Output: stack(6, "7", 0, 0, 0)}, nil
	case "old":
		return stackdump.Ended{ExitCode: 255, Complaint: "Could not open /dev/onload (rc=-79) - check Onload driver version matches that of library\n"}, nil
	default:
		return stackdump.Ended{}, nil
	}
}

func TestPoolWithAcceleration(t *testing.T) {
	config := traders(t, "fast", "slow", "idle", "old", "kernel", "secret")
	got := run(t, "", "pool", "x2", "--acceleration", "--kubeconfig", config)
	if got.code != ExitFindings || got.err != "" {
		t.Errorf("exit code %d, standard error %q", got.code, got.err)
	}
	golden.Assert(t, got.out, "acceleration.txt")
	if plain := run(t, "", "pool", "x2", "--kubeconfig", config); plain.code != 0 || strings.Contains(plain.out, "ACCELERATION") {
		t.Errorf("without the flag: %+v", plain)
	}
	if plain := run(t, "", "pool", "x2", "-o", "json", "--kubeconfig", config); plain.code != 0 || strings.Contains(plain.out, "acceleration") {
		t.Errorf("without the flag: %+v", plain)
	}
}

func TestPoolAccelerationExitCodes(t *testing.T) {
	cases := map[string]struct {
		pool string
		pods []string
		code int
		want string
	}{
		"accelerated":        {"x2", []string{"fast"}, 0, "trading/fast/app  Accelerated   3       37                 0                   0\n"},
		"idle":               {"x2", []string{"fast", "idle"}, 0, "Idle · a · trading/idle/app\n    nothing was received by now; "},
		"not known":          {"x2", []string{"fast", "secret"}, ExitUnknown, `cannot create resource "pods/exec"`},
		"through the kernel": {"x2", []string{"fast", "slow"}, ExitFindings, "997 of 1000 datagrams came through the kernel (997 to 192.0.2.1:5001)"},
		"on kernel sockets":  {"x2", []string{"kernel"}, ExitFindings, "NoStack · a · trading/kernel/app\n"},
		"another stack":      {"efvi", []string{"kernel"}, 0, "NotApplicable\n    a program on EFVI has no kernel socket to fall back to: without the NIC it fails at start\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", "pool", tc.pool, "--acceleration", "--kubeconfig", traders(t, tc.pods...))
			if got.code != tc.code || got.err != "" || !strings.Contains(got.out, tc.want) {
				t.Errorf("want %d and %q, got %d, %q and\n%s", tc.code, tc.want, got.code, got.err, got.out)
			}
		})
	}
}

func TestPoolAccelerationWithoutUsers(t *testing.T) {
	got := run(t, "", "pool", "x2", "--acceleration", "--kubeconfig", traders(t))
	if want := "no container holds a NIC of these pools: --acceleration has nothing to ask\n"; got.code != ExitUnknown || got.err != want {
		t.Errorf("exit code %d, standard error %q, want %q", got.code, got.err, want)
	}
}

func TestPoolAccelerationForPrograms(t *testing.T) {
	config := traders(t, "fast", "kernel")
	args := []string{"pool", "--acceleration", "--kubeconfig", config, "-o"}
	var pools, same []view.Pool
	got := run(t, "", append(args, "json")...)
	if err := json.Unmarshal([]byte(got.out), &pools); err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	if err := yaml.Unmarshal([]byte(run(t, "", append(args, "yaml")...).out), &same); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pools, same); diff != "" {
		t.Errorf("YAML and JSON differ:\n%s", diff)
	}
	number := func(n uint64) *uint64 { return &n }
	name, version := "feed", fmt.Sprintf("%032x", 10)
	want := []view.PoolStack{{
		ID: 3, Name: &name, PIDs: []int{7, 8}, NetworkNamespace: number(4026532001), InterfaceVersion: &version,
		UDPReceivedUserLevel: number(37), UDPReceivedKernel: number(0), TCPAcceptedUserLevel: number(0),
		Sockets: []view.PoolSocket{{
			Protocol: "UDP", LocalAddress: "192.0.2.1:5001", ReceivedUserLevel: number(37), ReceivedKernel: number(0), KernelPercent: new(int),
		}},
	}}
	for _, nic := range pools[1].Nodes[0].NICs {
		if diff := cmp.Diff(want, nic.Users[0].Acceleration.Stacks); diff != "" || nic.Users[0].Acceleration.State != onload.Accelerated {
			t.Errorf("NIC %s: %+v\n%s", nic.PCIAddress, nic.Users[0].Acceleration, diff)
		}
	}
	if kernel := pools[1].Nodes[0].NICs[0].Users[1].Acceleration; kernel.State != onload.NoStack || kernel.Stacks == nil || len(kernel.Stacks) > 0 {
		t.Errorf("got %+v", kernel)
	}
	if other := pools[0].Nodes[0].NICs[0].Users[0].Acceleration; other.State != onload.NotApplicable {
		t.Errorf("got %+v", other)
	}
}

func TestAccelerationNeedsACluster(t *testing.T) {
	got := run(t, poolText, "pool", "-f", "-", "--acceleration")
	if want := "error: --acceleration asks containers of a cluster; give the name of the pool in place of -f FILE\n"; got.code != ExitUsage || got.err != want {
		t.Errorf("got %+v", got)
	}
}
