// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/hack/pictures/latencypicture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/transcript"
)

// The addresses of both ends.
const nearAddress, farAddress = "10.98.1.1", latencypicture.ServerAddress

// podOn comes before the name of a node whose pods have a network namespace of their own.
const podOn = "pod on "

// cluster is two nodes, each a network namespace of this machine, with what the operator has decided so far.
type cluster struct {
	t       *testing.T
	world   *latencytest.World
	program []string
	// spaces are the network namespaces of nodes, and with podOn before their names those of pods on them, where these have their own.
	spaces map[string]string
	// before is what the programs are started by.
	before []string
	// variables are those that a container gets which asks for a NIC of the pool.
	variables []string
}

// resourceOfPool is that of the pool, where there is one.
const resourceOfPool = "lowlatency.dev/standin"

func newCluster(t *testing.T, change func(*v1alpha1.LatencyTestSpec)) *cluster {
	t.Helper()
	prefix := fmt.Sprintf("llt%d", os.Getpid())
	c := &cluster{
		t: t, program: programs(t), spaces: map[string]string{"near": prefix + "n", "far": prefix + "f"},
		// Schedules are to be kept, and ways to be short, beside other work on this machine.
		before: []string{"nice", "-n", "-20"},
	}
	near, far := c.spaces["near"], c.spaces["far"]
	for _, command := range []string{
		"netns add " + near, "netns add " + far, "link add v0 netns " + near + " type veth peer name v1 netns " + far,
		"-n " + near + " addr add " + nearAddress + "/24 dev v0", "-n " + far + " addr add " + farAddress + "/24 dev v1",
		"-n " + near + " link set v0 up", "-n " + far + " link set v1 up",
	} {
		run(t, "ip", strings.Fields(command)...)
		if words := strings.Fields(command); words[0] == "netns" {
			t.Cleanup(func() { run(t, "ip", "netns", "del", words[2]) })
		}
	}
	kernel, boot := read(t, "/proc/sys/kernel/osrelease"), read(t, "/proc/sys/kernel/random/boot_id")
	c.world = &latencytest.World{
		Test: &v1alpha1.LatencyTest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Name: "way", UID: "test-1", Generation: 1},
			Spec: v1alpha1.LatencyTestSpec{
				Kind: v1alpha1.LatencyTestPingPong, Nodes: v1alpha1.LatencyTestNodes{Names: []string{"near"}}, DurationSeconds: 1, Repetitions: 2,
				Traffic: &v1alpha1.TestTraffic{
					Transport: v1alpha1.TransportUDP, Waiting: v1alpha1.WaitingBlock,
					Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{"far"}},
				},
				PingPong: &v1alpha1.PingPongTest{Sizes: []int32{64, 1024}},
				Budget:   &v1alpha1.LatencyBudget{MaximumNanoseconds: 10_000_000_000, Path: v1alpha1.LatencyPathKernel},
			},
		},
		Reports: map[string]*v1alpha1.LowLatencyNode{}, Image: "operator", TrafficImage: "traffic", Now: time.Now(),
	}
	change(&c.world.Test.Spec)
	for _, name := range []string{"near", "far"} {
		node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		node.Status.NodeInfo = corev1.NodeSystemInfo{BootID: boot, KernelVersion: kernel}
		c.world.Nodes = append(c.world.Nodes, node)
	}
	return c
}

// binaryVariable says where the command is built that measures.
const binaryVariable = "LOWLATENCY_KUBECTL"

// TestMain builds the command once. A process of the device plugin needs none.
func TestMain(m *testing.M) {
	if node := os.Getenv(pluginVariable); node != "" {
		os.Exit(plugin(node))
	}
	os.Exit(build(m))
}

func build(m *testing.M) int {
	folder, err := os.MkdirTemp("", "traffic")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "kubectl-lowlatency")
	command := exec.Command("go", "build", "-trimpath", "-o", binary, "../../cmd/kubectl-lowlatency")
	command.Stderr = os.Stderr
	if err := errors.Join(command.Run(), os.Setenv(binaryVariable, binary)); err != nil {
		fmt.Fprintln(os.Stderr, "building kubectl-lowlatency:", err)
		return 1
	}
	return m.Run()
}

// programs are the command that measures, and the option that names the program which sends.
func programs(t *testing.T) []string {
	t.Helper()
	// What a test builds itself, its result depends on.
	const program = "cmd/lowlatency-traffic/"
	for _, source := range []string{"hack/traffic.sh", program + "traffic.c", program + "frames.c", program + "frames.h", program + "stamps.c", program + "stamps.h"} {
		read(t, "../../"+source)
	}
	return []string{os.Getenv(binaryVariable), "--program=" + strings.TrimSpace(run(t, "../../hack/traffic.sh", "release"))}
}

func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	var complaints bytes.Buffer
	command := exec.Command(name, arguments...)
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(arguments, " "), err, complaints.String())
	}
	return string(out)
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(content))
}

// step decides, and lets the API server be what was decided.
func (c *cluster) step() *latencytest.Decision {
	c.t.Helper()
	c.world.Now = time.Now()
	d := latencytest.Decide(c.world)
	c.world.Test.Status = *d.Status.DeepCopy()
	c.world.Test.Status.ObservedGeneration = 1
	for _, job := range d.Start {
		job.UID = types.UID(job.Name)
		c.world.Jobs = append(c.world.Jobs, *job)
	}
	return d
}

func (c *cluster) result() *v1alpha1.LatencyTestResult {
	c.t.Helper()
	if len(c.world.Test.Status.Results) != 1 {
		c.t.Fatalf("%+v", c.world.Test.Status)
	}
	return &c.world.Test.Status.Results[0]
}

// pod plays the kubelet for the pod of the newest Job: it runs the command line of its container, in the namespace of its node. What
// is added are the paths on this machine, and that its CPUs are not its own.
func (c *cluster) pod(more ...string) *process {
	c.t.Helper()
	job := &c.world.Jobs[len(c.world.Jobs)-1]
	node := job.Annotations[v1alpha1.AnnotationNode]
	space := c.spaces[node]
	if own := c.spaces[podOn+node]; own != "" && !job.Spec.Template.Spec.HostNetwork {
		space = own
	}
	p := &process{record: filepath.Join(c.t.TempDir(), "termination-log"), log: &transcript.Transcript{}, ended: make(chan error, 1)}
	if err := os.WriteFile(p.record, nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
	ctx, kill := context.WithCancel(c.t.Context())
	p.kill = kill
	before := c.before
	if asksFor(&job.Spec.Template.Spec.Containers[0]) {
		before = slices.Concat(before, []string{"env"}, c.variables)
	}
	arguments := slices.Concat([]string{"netns", "exec", space}, before, c.program[:1], job.Spec.Template.Spec.Containers[0].Args,
		[]string{c.program[1], "--own=0", "--on-busy=measure", "--record=" + p.record}, more)
	command := exec.CommandContext(ctx, "ip", arguments...)
	command.Stdout, command.Stderr = p.log, p.log
	// As a kubelet stops containers.
	command.Cancel = func() error { return command.Process.Signal(unix.SIGTERM) }
	command.WaitDelay = 10 * time.Second
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() { p.ended <- command.Wait() }()
	c.t.Cleanup(kill)
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace}, Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Spec.NodeName = node
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, map[string]string{"near": nearAddress, "far": farAddress}[node]
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	c.world.Pods = append(c.world.Pods, pod)
	return p
}

// process is what runs in a pod.
type process struct {
	record string
	log    *transcript.Transcript
	ended  chan error
	kill   context.CancelFunc
}

// ends waits for the process of the newest pod, and tells the API server.
func (c *cluster) ends(p *process) {
	c.t.Helper()
	if err := <-p.ended; err != nil {
		c.t.Errorf("the program ended with %v: %s", err, p.log)
	}
	c.stops(corev1.PodSucceeded, batchv1.JobComplete, corev1.ContainerStateTerminated{Message: read(c.t, p.record)})
}

// stops tells the API server what has become of the newest pod and its Job.
func (c *cluster) stops(phase corev1.PodPhase, end batchv1.JobConditionType, how corev1.ContainerStateTerminated) {
	pod, job := &c.world.Pods[len(c.world.Pods)-1], &c.world.Jobs[len(c.world.Jobs)-1]
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "measure", State: corev1.ContainerState{Terminated: &how}}}
	job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
}

// expect compares outcome and reason of the node.
func (c *cluster) expect(outcome v1alpha1.LatencyOutcome, reason string) {
	c.t.Helper()
	if r := c.result(); r.Outcome != outcome || r.Reason != reason {
		c.t.Errorf("%s %s: %s; want %s %s", r.Outcome, r.Reason, r.Message, outcome, reason)
	}
}

func TestPingPongFromApplyToVerdict(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.LatencyTestSpec){
		"UDP":            func(*v1alpha1.LatencyTestSpec) {},
		"TCP":            func(spec *v1alpha1.LatencyTestSpec) { spec.Traffic.Transport = v1alpha1.TransportTCP },
		"multicast":      func(spec *v1alpha1.LatencyTestSpec) { spec.Traffic.Transport = v1alpha1.TransportMulticast },
		"sizes in force": func(spec *v1alpha1.LatencyTestSpec) { spec.PingPong = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, change)
			c.measures()
			c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
			c.expectMeasured()
		})
	}
}

// expectMeasured looks at what stands in the status.
func (c *cluster) expectMeasured() {
	c.t.Helper()
	m := c.result().Measured
	if m == nil || m.Network == nil || len(m.Network.RepetitionMediansNanoseconds) != 2 || m.Histogram == "" {
		c.t.Fatalf("%+v", c.result())
	}
	for _, size := range m.Network.Sizes {
		if size.Samples < 1000 || size.MinimumNanoseconds <= 0 || len(size.Percentiles) < 2 {
			c.t.Errorf("%+v", size)
		}
	}
}

func TestPathThatWasNotAskedFor(t *testing.T) {
	c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) { spec.Budget.Path = v1alpha1.LatencyPathAccelerated })
	c.step()
	c.pod()
	c.step()
	c.ends(c.pod())
	c.step()
	c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestNotAccelerated)
}

func TestHostilePeers(t *testing.T) {
	cases := map[string]struct {
		// peer is in the place of the server.
		peer   func(*cluster)
		reason string
	}{
		"a peer that never comes": {func(*cluster) {}, v1alpha1.TestUnreachable},
		"garbage on the port": {func(c *cluster) {
			c.listens(func(peer net.Conn) { _, _ = peer.Write([]byte("\x00\xff\x1b[2J garbage\n")) })
		}, v1alpha1.TestStranger},
		"a wall of garbage": {func(c *cluster) {
			c.listens(func(peer net.Conn) {
				for _, err := peer.Write(bytes.Repeat([]byte("x"), 4096)); err == nil; {
					_, err = peer.Write(bytes.Repeat([]byte("x"), 4096))
				}
			})
		}, v1alpha1.TestStranger},
		"a peer that hangs up": {func(c *cluster) { c.listens(func(net.Conn) {}) }, v1alpha1.TestPeerVanished},
		"a peer that promises an answer and gives none": {func(c *cluster) {
			c.listens(func(peer net.Conn) {
				_, _ = peer.Write([]byte("ok 9 0 host kernel\nintroduced\nopen\ncounts 0 0 0 0\nready\n"))
				time.Sleep(time.Minute)
			})
		}, v1alpha1.TestNoAnswer},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, func(*v1alpha1.LatencyTestSpec) {})
			c.expectOf(tc.peer, tc.reason)
		})
	}
}

// expectOf measures with another peer in the place of the server, which gives nothing that can be judged.
func (c *cluster) expectOf(peer func(*cluster), reason string) {
	c.t.Helper()
	c.step()
	c.played()
	peer(c)
	c.step()
	c.ends(c.pod("--patience=1s"))
	c.step()
	c.expect(v1alpha1.LatencyInconclusive, reason)
	c.t.Log(c.result().Message)
}

// TestFullDisk: a record for which the node has no space left is no result, and the pod's log says why there is none.
func TestFullDisk(t *testing.T) {
	c := newCluster(t, func(*v1alpha1.LatencyTestSpec) {})
	c.step()
	c.pod()
	c.step()
	client := c.pod("--record=/dev/full")
	if err := <-client.ended; err == nil || !strings.Contains(client.log.String(), "leaving the record: write /dev/full: no space left on device") {
		t.Errorf("the program ended with %v: %s", err, client.log)
	}
	c.stops(corev1.PodFailed, batchv1.JobFailed, corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"})
	c.step()
	c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestPodFailed)
	t.Log(c.result().Message)
}

// TestPeerThatVanishes kills the server while it is measured.
func TestPeerThatVanishes(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.LatencyTestSpec)
		// begun is what the client says when it measures.
		begun string
	}{
		"one at a time": {func(spec *v1alpha1.LatencyTestSpec) { spec.DurationSeconds = 60 }, "bytes:"},
		"on a schedule": {func(spec *v1alpha1.LatencyTestSpec) {
			sweeps(1000)(spec)
			spec.DurationSeconds = 60
		}, "measuring the rates"},
		"in a search": {searches(1000, 1000, 2000, func(l *v1alpha1.LoadSearchTest) { l.TrialSeconds, l.ConfirmSeconds = 60, 60 }), "Low:"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, tc.change)
			c.step()
			server := c.pod()
			c.step()
			client := c.pod()
			for !strings.Contains(client.log.String(), tc.begun) || !strings.Contains(server.log.String(), "measures:") {
				select {
				case err := <-client.ended:
					t.Fatalf("the client ended with %v: %s", err, client.log)
				case <-time.After(10 * time.Millisecond):
				}
			}
			server.kill()
			c.ends(client)
			c.step()
			c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestPeerVanished)
		})
	}
}

// played is the pod of a server in which something else runs.
func (c *cluster) played() {
	job := &c.world.Jobs[len(c.world.Jobs)-1]
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Namespace: job.Namespace}, Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Spec.NodeName, pod.Status.Phase, pod.Status.PodIP = "far", corev1.PodRunning, farAddress
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	c.world.Pods = append(c.world.Pods, pod)
}

// inFar calls something in the network namespace of the server's node. Sockets that it opens stay there.
func (c *cluster) inFar(call func() error) {
	c.t.Helper()
	done := make(chan error)
	go func() {
		// The thread stays in the namespace, and ends with this function.
		runtime.LockOSThread()
		space, err := os.Open("/run/netns/" + c.spaces["far"])
		if err == nil {
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = call()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		c.t.Fatal(err)
	}
}

// listens answers connections on the port of the server.
func (c *cluster) listens(answer func(net.Conn)) {
	c.t.Helper()
	var listener net.Listener
	c.inFar(func() error {
		var err error
		listener, err = net.Listen("tcp4", farAddress+":2048")
		return err
	})
	c.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			peer, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				answer(peer)
				_ = peer.Close()
			}()
		}
	}()
}
