// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// newFrames is a ping-pong whose ends have a unit of a pool with stack AFXDP.
func newFrames(t *testing.T) *scene {
	t.Helper()
	s := newPingPong(t, "node-2")
	s.Test.Spec.Traffic.Server.BypassNICPool, s.Test.Spec.Traffic.Client = "e810", &v1alpha1.TestEnd{BypassNICPool: "e810", Address: "192.0.2.32/24"}
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "e810"}}
	pool.Spec.ResourceName = "lowlatency.dev/e810"
	pool.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{
		Queues:   v1alpha1.AFXDPQueuesSpec{First: new(int32(4)), Count: 2},
		Steering: v1alpha1.AFXDPSteeringSpec{Type: v1alpha1.SteeringUDPPorts, UDPPorts: []int32{30002, 30001}},
	}}
	s.Pools = append(s.Pools, pool)
	return s
}

// framesArgsOf are the arguments of a Job that name the socket, and what it asks for of the pool.
func framesArgsOf(job *batchv1.Job) string {
	container := job.Spec.Template.Spec.Containers[0]
	args := slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool { return !strings.HasPrefix(arg, "--afxdp") })
	units := container.Resources.Limits["lowlatency.dev/e810"]
	return strings.Join(append(args, units.String()), " ")
}

// TestJobsOfFrames: both pods learn of the pool what the device plugin cannot tell them, and the client goes to the server by the pods' own network.
func TestJobsOfFrames(t *testing.T) {
	s := newFrames(t)
	made := s.step().Start
	s.serves("node-1", "10.0.0.7")
	made = append(made, s.step().Start...)
	if len(made) != 2 {
		t.Fatalf("%d Jobs are made: %+v", len(made), s.of("node-1"))
	}
	const ofPool = "--afxdp-pool=e810 --afxdp-ports=30001,30002 --afxdp-first-queue=4 "
	if diff := cmp.Diff([]string{ofPool + "1", ofPool + "--afxdp-address=192.0.2.32 1"}, []string{framesArgsOf(made[0]), framesArgsOf(made[1])}); diff != "" {
		t.Error(diff)
	}
	if args := made[1].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--server=10.0.0.7") || len(made[1].Spec.Template.Annotations) != 0 {
		t.Errorf("the client goes elsewhere: %s, %v", args, made[1].Spec.Template.Annotations)
	}
}

func TestFramesThatCannotBe(t *testing.T) {
	first := func(change func(*v1alpha1.BypassNICPool)) func(*scene) {
		return func(s *scene) { change(s.Pools[0]) }
	}
	for name, tc := range map[string]struct {
		change func(*scene)
		// want is a part of the sentence; "" when the test is measured.
		want string
	}{
		"as it should be": {func(*scene) {}, ""},
		"full frames":     {func(s *scene) { s.Test.Spec.PingPong.Sizes = []int32{64, 1472} }, ""},
		"sizes in force":  {func(s *scene) { s.Test.Spec.PingPong = nil }, ""},
		"on a schedule": {func(s *scene) {
			s.Test.Spec.Kind, s.Test.Spec.PingPong, s.Test.Spec.RateSweep = v1alpha1.LatencyTestRateSweep, nil, &v1alpha1.RateSweepTest{Bytes: 256}
		}, ""},
		"larger on a schedule": {func(s *scene) {
			s.Test.Spec.Kind, s.Test.Spec.PingPong, s.Test.Spec.RateSweep = v1alpha1.LatencyTestRateSweep, nil, &v1alpha1.RateSweepTest{Bytes: 1473}
		}, "a message of 1473 bytes is larger than a frame of AF_XDP"},
		"TCP":             {func(s *scene) { s.Test.Spec.Traffic.Transport = v1alpha1.TransportTCP }, "spec.traffic.transport is TCP"},
		"multicast":       {func(s *scene) { s.Test.Spec.Traffic.Transport = v1alpha1.TransportMulticast }, "spec.traffic.transport is Multicast"},
		"a large message": {func(s *scene) { s.Test.Spec.PingPong.Sizes = []int32{4096, 64} }, "a message of 4096 bytes is larger than a frame of AF_XDP"},
		"the kernel's sockets": {func(s *scene) {
			s.Test.Spec.Traffic.Transport = v1alpha1.TransportTCP
			s.Test.Spec.Traffic.Server.Sockets, s.Test.Spec.Traffic.Client.Sockets = v1alpha1.TestSocketsKernel, v1alpha1.TestSocketsKernel
			s.Test.Spec.Traffic.Server.Address, s.Test.Spec.Traffic.Client.Address = "", ""
		}, ""},
		"an address of the kernel's sockets": {func(s *scene) {
			s.Test.Spec.Traffic.Server.Sockets, s.Test.Spec.Traffic.Client.Sockets = v1alpha1.TestSocketsKernel, v1alpha1.TestSocketsKernel
		}, "BypassNICPool e810 has no spec.networkAttachment, which would take address"},
		"path Kernel":                     {func(s *scene) { s.Test.Spec.Budget.Path = v1alpha1.LatencyPathKernel }, "whose frames go past the kernel, and path Kernel is asked for"},
		"path Accelerated":                {func(s *scene) { s.Test.Spec.Budget.Path = v1alpha1.LatencyPathAccelerated }, ""},
		"the kernel's sockets at one end": {func(s *scene) { s.Test.Spec.Traffic.Client.Sockets = v1alpha1.TestSocketsKernel }, "only one of the client and the server has a pool"},
		"no pool of client":               {func(s *scene) { s.Test.Spec.Traffic.Client = nil }, "only one of the client and the server has a pool"},
		"no pool of server":               {func(s *scene) { s.Test.Spec.Traffic.Server.BypassNICPool = "" }, "only one of the client and the server has a pool"},
		"another stack of the server": {func(s *scene) {
			s.Pools = append(s.Pools, &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}})
			s.Test.Spec.Traffic.Server.BypassNICPool = "x2"
		}, "only one of the client and the server has a pool"},
		"every frame": {first(func(p *v1alpha1.BypassNICPool) {
			p.Spec.Stack.AFXDP.Steering = v1alpha1.AFXDPSteeringSpec{}
		}), "spec.stack.afxdp.steering.type of BypassNICPool e810 has to be UDPPorts"},
		"a NIC that moves into pods": {first(func(p *v1alpha1.BypassNICPool) {
			p.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice, Namespaces: []string{"tests"}}
		}), "BypassNICPool e810 has spec.networkAttachment"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFrames(t)
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
