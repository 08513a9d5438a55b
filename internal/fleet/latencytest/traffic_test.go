// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// newPingPong is a world with a ping-pong from node-1 to the first free one of the servers.
func newPingPong(t *testing.T, servers ...string) *scene {
	t.Helper()
	s := newScene(t, "node-1", "node-2", "node-3")
	s.TrafficImage = "registry.example/lowlatency-traffic:v1"
	s.Test.Spec = v1alpha1.LatencyTestSpec{
		Kind: v1alpha1.LatencyTestPingPong, Nodes: v1alpha1.LatencyTestNodes{Names: []string{"node-1"}},
		Traffic: &v1alpha1.TestTraffic{
			Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: servers},
		},
		PingPong: &v1alpha1.PingPongTest{Sizes: []int32{64, 1024}},
		Budget:   &v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99, Nanoseconds: 20_000}}},
	}
	if len(servers) == 0 {
		s.Test.Spec.Traffic.Server = v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}
	}
	return s
}

// attachedPool is pool x2, whose NICs pods get in a network of their own, with addresses that they say.
func attachedPool() *v1alpha1.BypassNICPool {
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
	pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentMACVLAN, Namespaces: []string{"tests"}}
	return pool
}

// serves is the pod of the server of a node, ready at an address.
func (s *scene) serves(node, address string) *corev1.Pod {
	s.t.Helper()
	result := s.of(node)
	job := s.jobNamed(result.Server.Job)
	if job == nil {
		s.t.Fatalf("node %s has no server: %+v", node, result)
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-pod", Namespace: job.Namespace, Labels: job.Labels}}
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}}
	pod.Spec = *job.Spec.Template.Spec.DeepCopy()
	pod.Spec.NodeName = result.Server.Node
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, address
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.Pods = append(s.Pods, pod)
	return &s.Pods[len(s.Pods)-1]
}

// pingPongRecord is what a client leaves behind that has measured 64 and 1024 bytes, with 99 % of the latter at p99.
func pingPongRecord(t *testing.T, p99 int64, change ...func(*qualification.Record)) string {
	t.Helper()
	size := func(bytes int32, p99 int64) []int64 {
		return qualification.SizeRow(&v1alpha1.SizeMeasurement{
			Bytes: bytes, LatencyFigures: v1alpha1.LatencyFigures{
				Samples: 20_000, MinimumNanoseconds: 5_000, MeanNanoseconds: 6_000, MaximumNanoseconds: 90_000,
				Percentiles: []v1alpha1.LatencyPercentile{{Nanoseconds: 5_500}, {Nanoseconds: 7_000}, {Nanoseconds: p99}},
			},
		})
	}
	r := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestPingPong, Kernel: "6.12", BootID: "b1", CPUs: "2", MaximumNanoseconds: 90_000,
		RepetitionMaximums: []int64{90_000},
		Percentiles: []v1alpha1.LatencyPercentile{
			{Percentile: v1alpha1.P50, Nanoseconds: 5_500}, {Percentile: v1alpha1.P90, Nanoseconds: 7_000}, {Percentile: v1alpha1.P99, Nanoseconds: max(p99, 9_000)},
		},
		Network: &qualification.NetworkRecord{
			Path: v1alpha1.LatencyPathKernel, PathMessage: "the kernel counted 2 for 2 messages", ServerKernel: "6.12",
			Sizes: [][]int64{size(64, 9_000), size(1024, p99)}, Medians: []int64{5_500},
		},
	}
	for _, c := range change {
		c(&r)
	}
	text, err := qualification.Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are those of the Jobs of a decision.
func names(jobs []*batchv1.Job) string {
	all := make([]string, 0, len(jobs))
	for _, job := range jobs {
		all = append(all, job.Annotations[v1alpha1.AnnotationNode]+":"+strings.TrimLeft(strings.TrimPrefix(job.Name, "quiet-"), "0123456789abcdef"))
	}
	return strings.Join(all, " ")
}

func TestServerComesBeforeItsClient(t *testing.T) {
	s := newPingPong(t, "node-9", "node-1", "node-2")
	d := s.step()
	if got, want := names(d.Start), "node-2:-server"; got != want {
		t.Fatalf("Jobs %q are made first, want %q", got, want)
	}
	if d := s.step(); len(d.Start)+len(d.Stop) != 0 {
		t.Fatalf("something is done before the server is ready: %+v", d)
	}
	pod := s.serves("node-1", "10.0.0.7")
	pod.Status.Conditions = nil
	if d := s.step(); len(d.Start) != 0 {
		t.Fatal("a client is made before its server is ready")
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	d = s.step()
	if got, want := names(d.Start), "node-1:"; got != want {
		t.Fatalf("Jobs %q are made next, want %q", got, want)
	}
	want := &v1alpha1.LatencyTestPeer{Node: "node-2", Job: d.Start[0].Name + "-server", Address: "10.0.0.7"}
	if diff := cmp.Diff(want, s.of("node-1").Server); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.ends("node-1", pingPongRecord(t, 20_000))
	if got, want := names(s.step().Stop), "node-2:-server"; got != want {
		t.Errorf("Jobs %q are deleted at the end, want %q", got, want)
	}
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	wantMessage := "within the budget: 64 bytes: median 5.5 µs, longest 90 µs; 1024 bytes: median 5.5 µs, longest 90 µs; to a server on node node-2, path Kernel"
	if got := s.of("node-1").Message; got != wantMessage {
		t.Errorf("message %q, want %q", got, wantMessage)
	}
	s.Pods = nil
	if d := s.step(); d.Again != 0 || len(d.Start)+len(d.Stop) != 0 {
		t.Errorf("something is to be done although nothing happens: %+v", d)
	}
}

func TestJobsOfPingPong(t *testing.T) {
	s := newPingPong(t, "node-2")
	s.Test.Spec.Traffic.Server.TestEnd = v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.31/24"}
	s.Test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.32/24"}
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
	pool.Spec.ResourceName = "lowlatency.dev/x2"
	pool.Spec.Hugepages = []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}}
	pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice, Namespaces: []string{"tests"}}
	s.Pools = append(s.Pools, pool)
	made := s.step().Start
	served := s.serves("node-1", "10.0.0.7")
	served.Annotations = map[string]string{annotationNetworkStatus: `[{"name":"cluster","ips":["10.0.0.7"]},{"name":"tests/x2","ips":["fe80::1","192.0.2.31"]}]`}
	made = append(made, s.step().Start...)
	texts := make([]string, 0, len(made))
	for _, job := range made {
		text, err := yaml.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	golden.Assert(t, strings.Join(texts, "---\n"), "pingpong.yaml")
}

// mishap is what may happen to a measurement between two pods.
type mishap struct {
	happens func(*scene)
	reason  string
	// stopped are the Jobs that are deleted.
	stopped string
}

// mishaps are all that may happen.
func mishaps() map[string]mishap {
	starts := func(s *scene) {
		s.serves("node-1", "10.0.0.7")
		s.step()
	}
	of := mishapsOfServers(starts)
	maps.Copy(of, map[string]mishap{
		"garbage":                  {func(s *scene) { starts(s); s.ends("node-1", "\x1b[2J") }, v1alpha1.TestBadResult, "node-2:-server"},
		"a record of another kind": {func(s *scene) { starts(s); s.ends("node-1", record(s.t, 1)) }, v1alpha1.TestBadResult, "node-2:-server"},
		"another size": {func(s *scene) {
			starts(s)
			s.ends("node-1", pingPongRecord(s.t, 9_000, func(r *qualification.Record) { r.Network.Sizes[0][0] = 65 }))
		}, v1alpha1.TestBadResult, "node-2:-server"},
		"a peer that vanishes": {func(s *scene) {
			starts(s)
			s.ends("node-1", trafficProblem(s.t, v1alpha1.TestPeerVanished))
		}, v1alpha1.TestPeerVanished, "node-2:-server"},
		"a busy machine": {func(s *scene) {
			starts(s)
			s.ends("node-1", trafficProblem(s.t, v1alpha1.TestMachineBusy))
		}, v1alpha1.TestMachineBusy, "node-2:-server"},
		"a client that never starts": {func(s *scene) {
			starts(s)
			_, pod := s.runs("node-1")
			pod.Status.Phase = corev1.PodPending
			s.Now = s.Now.Add(StartTime)
		}, v1alpha1.TestNotStarted, "node-1: node-2:-server"},
	})
	return of
}

func mishapsOfServers(starts func(*scene)) map[string]mishap {
	return map[string]mishap{
		"a server that never starts": {func(s *scene) {
			s.serves("node-1", "").Status.Phase = corev1.PodPending
			s.Now = s.Now.Add(StartTime)
		}, v1alpha1.TestNotStarted, "node-2:-server"},
		"a server without an address of IPv4": {func(s *scene) {
			s.serves("node-1", "fd00::7")
			s.Now = s.Now.Add(StartTime)
		}, v1alpha1.TestNotStarted, "node-2:-server"},
		"a server with an address that is none": {func(s *scene) {
			s.serves("node-1", "10.0.0.7 --role=Server")
			s.Now = s.Now.Add(StartTime)
		}, v1alpha1.TestNotStarted, "node-2:-server"},
		"a server on another node": {func(s *scene) { s.serves("node-1", "10.0.0.7").Spec.NodeName = "node-3" }, v1alpha1.TestForeignPod, "node-2:-server"},
		"two servers": {func(s *scene) {
			s.serves("node-1", "10.0.0.7")
			s.serves("node-1", "10.0.0.8")
		}, v1alpha1.TestForeignPod, "node-2:-server"},
		"a server that cannot serve": {func(s *scene) {
			pod := s.serves("node-1", "10.0.0.7")
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses = ended(trafficProblem(s.t, v1alpha1.TestNotExclusive))
			s.jobNamed(s.of("node-1").Server.Job).Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		}, v1alpha1.TestNotExclusive, ""},
		"a server that ends while it is measured": {func(s *scene) {
			starts(s)
			s.runs("node-1")
			s.Pods[0].Status.Phase = corev1.PodFailed
			s.Pods[0].Status.ContainerStatuses = ended("")
			s.jobNamed(s.of("node-1").Server.Job).Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
		}, v1alpha1.TestPeerFailed, "node-1:"},
		"a server that somebody deletes": {func(s *scene) {
			starts(s)
			s.Jobs = without(s.Jobs, s.of("node-1").Server.Job)
		}, v1alpha1.TestJobGone, "node-1:"},
		"a node of the server that leaves": {func(s *scene) {
			starts(s)
			s.Nodes = append(s.Nodes[:1:1], s.Nodes[2:]...)
		}, v1alpha1.TestPeerVanished, "node-1: node-2:-server"},
	}
}

// TestServerThatKubeletRefuses: no container of such a pod has ever been, and its status alone says why.
func TestServerThatKubeletRefuses(t *testing.T) {
	s := newPingPong(t, "node-2")
	s.step()
	pod := s.serves("node-1", "")
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "UnexpectedAdmissionError"
	pod.Status.Message = "Pod was rejected: Allocate failed due to requested number of devices unavailable"
	pod.Status.Conditions, pod.Status.ContainerStatuses = nil, nil
	s.jobNamed(s.of("node-1").Server.Job).Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"},
	}
	s.step()
	s.expect("node-1", "Idle Inconclusive  "+v1alpha1.TestPeerFailed)
	want := "pod " + pod.Name + " of the server has ended: UnexpectedAdmissionError " + pod.Status.Message
	if got := s.of("node-1").Message; !strings.Contains(got, want) {
		t.Errorf("message %q does not say %q", got, want)
	}
}

func TestPingPongWithoutResult(t *testing.T) {
	for name, tc := range mishaps() {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t, "node-2")
			s.step()
			tc.happens(s)
			d := s.step()
			s.expect("node-1", "Idle Inconclusive  "+tc.reason)
			if got := names(d.Stop); got != tc.stopped || len(d.Start) != 0 {
				t.Errorf("Jobs %q are deleted and %d made, want %q and none", got, len(d.Start), tc.stopped)
			}
			s.Now = s.Now.Add(firstRetry)
			if tc.reason == v1alpha1.TestPeerVanished && len(s.Nodes) < 3 {
				return
			}
			if got, want := names(s.step().Start), "node-2:-server"; got != want {
				t.Errorf("Jobs %q are made later, want %q", got, want)
			}
		})
	}
}

func ended(message string) []corev1.ContainerStatus {
	return []corev1.ContainerStatus{{
		Name: containerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", Message: message}},
	}}
}

func trafficProblem(t *testing.T, reason string) string {
	t.Helper()
	text, err := qualification.Encode(qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestPingPong, Problem: &qualification.Problem{Reason: reason, Message: "it went wrong"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEndsShareNoNode: a node is not measured while it runs a server, for whichever test.
func TestEndsShareNoNode(t *testing.T) {
	s := newPingPong(t, "node-3", "nobody")
	s.Test.Spec.Nodes.Names = []string{"node-1", "node-2", "node-3"}
	s.step()
	s.expect("node-1", "Running   ")
	s.expect("node-2", "Waiting   ")
	s.expect("node-3", "Waiting   ")
	for node, want := range map[string]string{
		"node-2": "waits for node node-3, which is to run the server: the node runs the server of another one, or is measured now",
		"node-3": "the node runs the server of another one, or is measured now",
	} {
		if got := s.of(node).Message; got != want {
			t.Errorf("message of %s %q, want %q", node, got, want)
		}
	}
	other := &v1alpha1.LatencyTest{ObjectMeta: metav1.ObjectMeta{UID: "test-2"}}
	if diff := cmp.Diff(InUse{Nodes: map[string]string{"node-1": "tests/quiet", "node-3": "tests/quiet"}, Groups: map[string]string{}, Addresses: map[string]string{}}, RunningElsewhere([]v1alpha1.LatencyTest{*s.Test}, other)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	before := s.Test.DeepCopy()
	s.serves("node-1", "10.0.0.7")
	s.step()
	s.ends("node-1", pingPongRecord(t, 9_000))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.expect("node-2", "Waiting   ")
	s.step()
	s.expect("node-2", "Running   ")
	if !Freed(before, s.Test) {
		t.Error("who waits for node-1 is not told that it is free")
	}

	// node-3 has no other node for its server than itself, and says so.
	s.serves("node-2", "10.0.0.7")
	s.step()
	s.ends("node-2", pingPongRecord(t, 9_000))
	s.step()
	s.step()
	if got, want := s.of("node-3").Message, "none of the nodes of spec.traffic.server.nodeNames exists beside the measured one"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// TestChangedServers: what changes on the node of the server makes a result stale, and closes no gate; a node that goes away says nothing.
func TestChangedServers(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*scene)
		want    string
		message string
	}{
		"nothing": {func(*scene) {}, "Idle Passed Fresh WithinBudget", ""},
		"another kernel": {func(s *scene) { s.Reports["node-2"].Status.Inventory.KernelRelease = "6.13" }, "Running Passed Stale WithinBudget",
			"stale, since this changed on node node-2, which ran the server, after the measurement: the kernel (6.13, was 6.12); it was: "},
		"a server whose agent has not told yet": {func(s *scene) {
			s.Nodes[1].Labels, s.Profiles[0].Spec.NodeSelector.MatchLabels = map[string]string{"zone": "a"}, v1alpha1.Labels{"zone": "a"}
			delete(s.Reports, "node-2")
		}, "Idle Passed Fresh WithinBudget", ""},
		"a node that is no server":   {func(s *scene) { s.Reports["node-3"].Status.Inventory.KernelRelease = "6.13" }, "Idle Passed Fresh WithinBudget", ""},
		"a server whose node leaves": {func(s *scene) { s.Nodes = append(s.Nodes[:1:1], s.Nodes[2:]...) }, "Idle Passed Fresh WithinBudget", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t, "node-2")
			s.step()
			s.serves("node-1", "10.0.0.7")
			s.step()
			s.ends("node-1", pingPongRecord(t, 9_000))
			s.step()
			s.expect("node-1", "Idle Passed Fresh WithinBudget")
			if got := s.of("node-1").Measured.Network.ServerFingerprint; got == nil || got.Kernel != "6.12" {
				t.Fatalf("the fingerprint of the server is %+v", got)
			}
			tc.change(s)
			s.step()
			s.expect("node-1", tc.want)
			if got := s.of("node-1").Message; !strings.HasPrefix(got, tc.message) {
				t.Errorf("message %q, want %q", got, tc.message)
			}
			profile := s.Profiles[0].DeepCopy()
			profile.Spec.Verification.Qualification = &v1alpha1.Qualification{Tests: []v1alpha1.LatencyTestReference{{Namespace: "tests", Name: "quiet"}}}
			standings := Standings(&Subject{Node: &s.Nodes[0], Report: s.Reports["node-1"], Profile: profile}, []v1alpha1.LatencyTest{*s.Test}, s.Now)
			if len(standings) != 1 || standings[0].State != StatePassed {
				t.Errorf("the gate goes by %+v", standings)
			}
		})
	}
}

func TestServerOnTheSameNode(t *testing.T) {
	s := newPingPong(t)
	if got, want := names(s.step().Start), "node-1:-server"; got != want {
		t.Fatalf("Jobs %q are made first, want %q", got, want)
	}
	s.serves("node-1", "10.0.0.7")
	if got, want := names(s.step().Start), "node-1:"; got != want {
		t.Fatalf("Jobs %q are made next, want %q", got, want)
	}
	s.ends("node-1", pingPongRecord(t, 20_001))
	s.step()
	s.expect("node-1", "Idle Failed Fresh OverBudget")
	if got := s.of("node-1").Measured.Network.ServerFingerprint; got != nil {
		t.Errorf("the node is its own server, and has two fingerprints: %+v", got)
	}
}

func TestWhatPingPongWaitsFor(t *testing.T) {
	attached := func(namespaces ...string) *v1alpha1.BypassNICPool {
		pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
		pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Namespaces: namespaces}
		return pool
	}
	for name, tc := range map[string]struct {
		pool *v1alpha1.BypassNICPool
		want string
	}{
		"no pool":                    {nil, "waits for BypassNICPool x2, which does not exist"},
		"a network of other tenants": {attached("trading"), "spec.networkAttachment.namespaces of BypassNICPool x2 does not have tests, the namespace of the test"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t, "node-2")
			s.Test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2"}
			if tc.pool != nil {
				s.Pools = append(s.Pools, tc.pool)
			}
			s.step()
			s.expect("node-1", "Waiting   ")
			if got := s.of("node-1").Message; got != tc.want {
				t.Errorf("message %q, want %q", got, tc.want)
			}
		})
	}
}

// TestChangedPingPong: what the test asked for before it was changed is not measured to its end.
func TestChangedPingPong(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.LatencyTestSpec){
		"the transport": func(spec *v1alpha1.LatencyTestSpec) { spec.Traffic.Transport = v1alpha1.TransportTCP },
		"the kind": func(spec *v1alpha1.LatencyTestSpec) {
			spec.Kind, spec.Traffic, spec.PingPong = v1alpha1.LatencyTestJitter, nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t, "node-2")
			s.step()
			s.serves("node-1", "10.0.0.7")
			s.step()
			s.runs("node-1")
			change(&s.Test.Spec)
			s.Test.Generation = 2
			d := s.step()
			if len(d.Stop) != 2 {
				t.Errorf("%d Jobs are deleted, want client and server", len(d.Stop))
			}
			s.Now = s.Now.Add(time.Second)
			if d := s.step(); len(d.Start) != 1 {
				t.Errorf("%d Jobs are made after it", len(d.Start))
			}
		})
	}
}

func TestNodeLeavesItsServer(t *testing.T) {
	s := newPingPong(t, "node-2")
	s.step()
	s.serves("node-1", "10.0.0.7")
	s.step()
	s.runs("node-1")
	s.Nodes = s.Nodes[1:]
	if got := len(s.step().Stop); got != 2 {
		t.Errorf("%d Jobs are deleted, want client and server", got)
	}
	s.expect("node-1", "Idle Inconclusive  NodeLeft")
}

func TestNoImageOfTraffic(t *testing.T) {
	s := newPingPong(t, "node-2")
	s.TrafficImage = ""
	s.step()
	s.expectReady(metav1.ConditionFalse, v1alpha1.ReasonImageUnknown)
	if d := Decide(s.World); len(d.Start) != 0 || d.Again != imageLook {
		t.Errorf("%d Jobs are made without an image, again after %s", len(d.Start), d.Again)
	}
}

func TestAddressesOfServers(t *testing.T) {
	pod := func(status string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tests", Annotations: map[string]string{annotationNetworkStatus: status}}}
	}
	for name, tc := range map[string]struct{ status, want string }{
		"no status":           {"", ""},
		"garbage":             {"[{", ""},
		"the network":         {`[{"name":"tests/x2","ips":["192.0.2.31"]}]`, "192.0.2.31"},
		"another namespace's": {`[{"name":"trading/x2","ips":["192.0.2.31"]}]`, ""},
		"another network":     {`[{"name":"tests/x3","ips":["192.0.2.31"]}]`, ""},
		"IPv6 first":          {`[{"name":"x2","ips":["2001:db8::1","192.0.2.31"]}]`, "192.0.2.31"},
		"an option":           {`[{"name":"x2","ips":["--help"]}]`, ""},
		"the loopback":        {`[{"name":"x2","ips":["127.0.0.1"]}]`, ""},
	} {
		if got := attachedAddress(pod(tc.status), "x2"); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestAddressesMeasureOneNodeAtATime(t *testing.T) {
	s := newPingPong(t)
	s.Test.Spec.Nodes.Names = []string{"node-1", "node-2"}
	s.step()
	both := fmt.Sprint(s.of("node-1").Activity, s.of("node-2").Activity)
	s = newPingPong(t)
	s.Test.Spec.Nodes.Names = []string{"node-1", "node-2"}
	s.Test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.1/24"}
	s.Pools = []*v1alpha1.BypassNICPool{attachedPool()}
	s.step()
	one := fmt.Sprint(s.of("node-1").Activity, s.of("node-2").Activity)
	if diff := cmp.Diff([]string{"RunningRunning", "RunningWaiting"}, []string{strings.ReplaceAll(both, " ", ""), strings.ReplaceAll(one, " ", "")}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPoolThatIsChanged: arguments alone do not tell pools, and what was measured on one NIC is no result of another.
func TestPoolThatIsChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*scene)
		stays  bool
	}{
		"another pool":   {func(s *scene) { s.Test.Spec.Traffic.Client = &v1alpha1.TestEnd{BypassNICPool: "x2"} }, false},
		"another server": {func(s *scene) { s.Test.Spec.Traffic.Server.BypassNICPool = "x2" }, false},
		"another budget": {func(s *scene) { s.Test.Spec.Budget.Percentiles[0].Nanoseconds = 1 }, true},
		"an earlier version": {func(s *scene) {
			for i := range s.Jobs {
				delete(s.Jobs[i].Annotations, v1alpha1.AnnotationParameters)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t, "node-2")
			s.Pools = []*v1alpha1.BypassNICPool{{ObjectMeta: metav1.ObjectMeta{Name: "x2"}, Spec: v1alpha1.BypassNICPoolSpec{ResourceName: "lowlatency.dev/x2"}}}
			s.begins()
			before := s.of("node-1").Job
			tc.change(s)
			s.Test.Generation++
			s.step()
			if s.jobNamed(before) != nil != tc.stays {
				t.Errorf("%+v", s.of("node-1"))
			}
		})
	}
}

// TestPoolsOfDRADrivers: the pod of an end asks by the name of the resource, for which the scheduler makes a claim; one that gets none says what that needs.
func TestPoolsOfDRADrivers(t *testing.T) {
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}}
	pool.Spec.ResourceName, pool.Spec.Allocation = "lowlatency.dev/x2", v1alpha1.AllocationDynamic
	const needs = "the pod asks by the name of the resource for a NIC of BypassNICPool x2, which has allocation DynamicResourceAllocation: the scheduler makes its claim from Kubernetes 1.36 on"
	for name, tc := range map[string]struct {
		allocation v1alpha1.AllocationType
		atServer   bool
		told       bool
	}{
		"a client of a DRA driver":    {v1alpha1.AllocationDynamic, false, true},
		"a server of a DRA driver":    {v1alpha1.AllocationDynamic, true, true},
		"a client of a device plugin": {v1alpha1.AllocationDevicePlugin, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t, "node-2")
			own := pool.DeepCopy()
			own.Spec.Allocation = tc.allocation
			s.Pools = append(s.Pools, own)
			end := &v1alpha1.TestEnd{BypassNICPool: "x2"}
			s.Test.Spec.Traffic.Client = end
			if tc.atServer {
				s.Test.Spec.Traffic.Client, s.Test.Spec.Traffic.Server.TestEnd = nil, *end
			}
			asking := s.step().Start
			if tc.atServer {
				s.serves("node-1", "").Status.Phase = corev1.PodPending
			} else {
				s.serves("node-1", "10.0.0.7")
				asking = s.step().Start
				_, pod := s.runs("node-1")
				pod.Status.Phase = corev1.PodPending
			}
			if len(asking) != 1 || asking[0].Spec.Template.Spec.Containers[0].Resources.Limits.Name("lowlatency.dev/x2", resource.DecimalSI).Value() != 1 ||
				len(asking[0].Spec.Template.Spec.ResourceClaims) != 0 {
				t.Fatalf("the pod asks for %+v", asking)
			}
			s.Now = s.Now.Add(StartTime)
			s.step()
			s.expect("node-1", "Idle Inconclusive  NotStarted")
			if got := s.of("node-1").Message; strings.Contains(got, needs) != tc.told {
				t.Errorf("it says %q", got)
			}
		})
	}
}

// TestPoolsOfEnds: what a pool cannot give is said before anything is made.
func TestPoolsOfEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*v1alpha1.BypassNICPool)
		end    v1alpha1.TestEnd
		path   v1alpha1.LatencyPath
		want   string
	}{
		"an address":                  {func(*v1alpha1.BypassNICPool) {}, v1alpha1.TestEnd{Address: "192.0.2.1/24"}, "", ""},
		"no address":                  {func(*v1alpha1.BypassNICPool) {}, v1alpha1.TestEnd{}, "", "spec.networkAttachment.addresses of BypassNICPool x2 is Static, and the end has no address: give it one"},
		"no addresses at all":         {func(p *v1alpha1.BypassNICPool) { p.Spec.NetworkAttachment.Addresses = v1alpha1.AddressesNone }, v1alpha1.TestEnd{}, "", "spec.networkAttachment.addresses of BypassNICPool x2 is None, and messages need an address: name a pool whose addresses are Static"},
		"no network":                  {func(p *v1alpha1.BypassNICPool) { p.Spec.NetworkAttachment = nil }, v1alpha1.TestEnd{}, "", ""},
		"an address of no network":    {func(p *v1alpha1.BypassNICPool) { p.Spec.NetworkAttachment = nil }, v1alpha1.TestEnd{Address: "192.0.2.1/24"}, "", "BypassNICPool x2 has no spec.networkAttachment, which would take address 192.0.2.1/24: leave the address out, and messages go by the pods' own network"},
		"a stack that takes sockets":  {func(p *v1alpha1.BypassNICPool) { p.Spec.Stack.Type = v1alpha1.StackOnload }, v1alpha1.TestEnd{Address: "192.0.2.1/24"}, v1alpha1.LatencyPathAccelerated, ""},
		"a stack that takes none":     {func(p *v1alpha1.BypassNICPool) { p.Spec.Stack.Type = v1alpha1.StackTCPDirect }, v1alpha1.TestEnd{Address: "192.0.2.1/24"}, v1alpha1.LatencyPathAccelerated, "BypassNICPool x2 has stack TCPDirect, which accelerates no sockets, and what is to go by path Accelerated is measured through sockets: its programs, such as zfudppingpong of its vendor, measure it"},
		"the kernel's path all alike": {func(p *v1alpha1.BypassNICPool) { p.Spec.Stack.Type = v1alpha1.StackTCPDirect }, v1alpha1.TestEnd{Address: "192.0.2.1/24"}, v1alpha1.LatencyPathKernel, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPingPong(t)
			pool := attachedPool()
			tc.change(pool)
			s.Pools = []*v1alpha1.BypassNICPool{pool}
			tc.end.BypassNICPool = "x2"
			s.Test.Spec.Traffic.Client, s.Test.Spec.Budget.Path = &tc.end, tc.path
			d := s.step()
			if got := s.of("node-1"); (len(d.Start) == 1) != (tc.want == "") || tc.want != "" && got.Message != tc.want {
				t.Errorf("%d Jobs are made: %s", len(d.Start), got.Message)
			}
		})
	}
}

// TestOnlyServerIsNotMeasured, also where its pool, by which the measured nodes are named, has it, too: otherwise it would wait for ever.
func TestOnlyServerIsNotMeasured(t *testing.T) {
	for servers, want := range map[string]int{"node-2": 2, "node-2,node-3": 3} {
		s := newPingPong(t, strings.Split(servers, ",")...)
		s.Test.Spec.Nodes = v1alpha1.LatencyTestNodes{Profile: "trading"}
		s.step()
		if got := len(s.Test.Status.Results); got != want {
			t.Errorf("servers %s: %d nodes are to be measured, want %d", servers, got, want)
		}
	}
}

// TestWhyAStaleNodeWaits is said by the condition, since the message of the node says why it is stale.
func TestWhyAStaleNodeWaits(t *testing.T) {
	s := newPingPong(t, "node-2")
	s.step()
	s.serves("node-1", "10.0.0.7")
	s.step()
	s.ends("node-1", pingPongRecord(t, 20_000))
	s.step()
	s.expect("node-1", "Idle Passed Fresh WithinBudget")
	s.Reports["node-1"].Status.Inventory.KernelRelease = "6.13"
	s.Elsewhere.Nodes = map[string]string{"node-2": "others/test"}
	s.step()
	s.expect("node-1", "Waiting Passed Stale WithinBudget")
	const want = "0 of 1 nodes passed, 0 are measured, 1 wait; node node-1: waits for node node-2, which is to run the server: LatencyTest others/test measures the node now"
	if got := meta.FindStatusCondition(s.Test.Status.Conditions, v1alpha1.ConditionProgressing); got == nil || got.Message != want {
		t.Errorf("Progressing says %+v, want %q", got, want)
	}
}
