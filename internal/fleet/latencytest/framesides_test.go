// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// newFrameStacks is a world in which frames of AF_XDP are compared with the kernel's sockets on the same NIC, which stays in the network of the node.
func newFrameStacks(t *testing.T) *scene {
	t.Helper()
	s := newComparison(t)
	s.Pools = newFrames(t).Pools
	kernel := v1alpha1.TestEnd{BypassNICPool: "e810", Sockets: v1alpha1.TestSocketsKernel}
	server := kernel
	server.Address = "192.0.2.2/24"
	frames := v1alpha1.TestEnd{BypassNICPool: "e810"}
	s.Test.Spec.Kind, s.Test.Spec.Traffic.Transport, s.Test.Spec.PingPong = v1alpha1.LatencyTestStackComparison, v1alpha1.TransportUDP, &v1alpha1.PingPongTest{Sizes: []int32{64}}
	s.Test.Spec.StackComparison = &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
		{
			Name: "kernel", Path: v1alpha1.LatencyPathKernel, Client: v1alpha1.StackClient{TestEnd: kernel, Network: v1alpha1.TestNetworkHost},
			Server: v1alpha1.StackServer{TestEnd: server, Network: v1alpha1.TestNetworkHost},
		},
		{Name: "frames", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: frames}, Server: v1alpha1.StackServer{TestEnd: frames}},
	}}
	return s
}

// wayOf are the arguments of a Job by which its messages go, after the network of its pod.
func wayOf(job *batchv1.Job) string {
	words := []string{"Pod"}
	if job.Spec.Template.Spec.HostNetwork {
		words[0] = "Host"
	}
	for _, arg := range job.Spec.Template.Spec.Containers[0].Args {
		for _, prefix := range []string{"--server=", "--listen=", "--sockets=", "--nic-of-pool=", "--afxdp-pool="} {
			if strings.HasPrefix(arg, prefix) {
				words = append(words, strings.TrimPrefix(arg, "--"))
			}
		}
	}
	return strings.Join(words, " ")
}

// TestFramesBesideTheKernel from the first server to the verdict: each side has its own servers, and the ratio is told.
func TestFramesBesideTheKernel(t *testing.T) {
	s := newFrameStacks(t)
	ways := map[v1alpha1.LatencySide][2]string{}
	for s.step(); s.of("node-1").Activity == v1alpha1.LatencyRunning; s.step() {
		s.answers()
		side, result := s.side(), s.of("node-1")
		ways[side.Name] = [2]string{wayOf(s.jobNamed(result.Job)), wayOf(s.jobNamed(result.Server.Job))}
		s.measures(map[v1alpha1.LatencySide]int64{"kernel": 10_000, "frames": 4_000}[side.Name])
	}
	for name, want := range map[v1alpha1.LatencySide][2]string{
		"kernel": {"Host server=192.0.2.2 nic-of-pool=e810 sockets=Kernel", "Host listen=192.0.2.2 nic-of-pool=e810 sockets=Kernel"},
		"frames": {"Pod server=" + ways["frames"][0][len("Pod server="):len("Pod server=")+len("10.0.0.10")] + " afxdp-pool=e810", "Pod afxdp-pool=e810"},
	} {
		if diff := cmp.Diff(want, ways[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	measured := s.of("node-1").Measured
	if measured == nil {
		t.Fatalf("%+v", s.of("node-1"))
	}
	at := slices.IndexFunc(measured.Network.Comparison.Sides, func(s v1alpha1.SideMeasurement) bool { return s.Side == "frames" })
	if ratio := qualification.RatioOf(&measured.Network.Comparison.Sides[at], 64, v1alpha1.P99); ratio == nil || ratio.PartsPerThousand != 400 {
		t.Errorf("%+v", ratio)
	}
}

func TestSidesOfFramesThatCannotBe(t *testing.T) {
	kernel := func(change func(*v1alpha1.StackSide)) func(*scene) {
		return func(s *scene) { change(&s.Test.Spec.StackComparison.Sides[0]) }
	}
	for name, tc := range map[string]struct {
		change func(*scene)
		// want is a part of the sentence; "" when the test is measured.
		want string
	}{
		"as it should be": {func(*scene) {}, ""},
		"the pods' own network": {kernel(func(s *v1alpha1.StackSide) {
			s.Client, s.Server = v1alpha1.StackClient{}, v1alpha1.StackServer{}
		}), ""},
		"a client in a pod": {kernel(func(s *v1alpha1.StackSide) { s.Client.Network = "" }), "side kernel has the kernel's sockets and BypassNICPool e810, whose NICs stay in the network of the node"},
		"a server in a pod": {kernel(func(s *v1alpha1.StackSide) { s.Server.Network = v1alpha1.TestNetworkPod }), "side kernel has the kernel's sockets and BypassNICPool e810, whose NICs stay"},
		"one end of frames": {func(s *scene) {
			s.Pools = append(s.Pools, newStacks(s.t).Pools...)
			s.Test.Spec.StackComparison.Sides[1].Server.BypassNICPool = "x2"
		}, "only one of the client and the server has a pool with stack AFXDP"},
		"a large message": {func(s *scene) { s.Test.Spec.PingPong.Sizes = []int32{1473} }, "a message of 1473 bytes is larger than a frame of AF_XDP"},
		"TCP":             {func(s *scene) { s.Test.Spec.Traffic.Transport = v1alpha1.TransportTCP }, "spec.traffic.transport is TCP"},
		"a stack without sockets": {func(s *scene) {
			s.Pools[0].Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO}
		}, "BypassNICPool e810 has stack VFIO, which accelerates no sockets"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFrameStacks(t)
			tc.change(s)
			s.step()
			if tc.want == "" {
				s.expect("node-1", "Running   ")
				return
			}
			s.expect("node-1", "Waiting   ")
			if got := s.of("node-1").Message; !strings.Contains(got, tc.want) || len(got) > v1alpha1.MaxTestMessageLength {
				t.Errorf("message %q, want %q", got, tc.want)
			}
		})
	}
}
