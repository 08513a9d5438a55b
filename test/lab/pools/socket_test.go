// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	sockets = "lowlatency.dev/sockets"
	// datagram is sent to socketsPort, to which the pool steers.
	datagram, socketsPort = "an order", 30001
	// sender is the NIC from which it comes, and socketsNIC the one whose queue is handed out. All hang on one hub.
	sender, socketsNIC = "0000:41:00.0", "0000:43:00.0"
)

// socketPod creates a third pool on the running node, and lets a user without rights, in a network namespace without
// the NIC, receive a datagram from the NIC's queue.
//
// The pod maps the rings of a socket that the device plugin has bound, for which the kernel must be Linux 6.4 or newer.
func (s *scene) socketPod(t *testing.T) string {
	// The hub is quiet until now; the interface of a NIC is up before a program may bind to its queues.
	s.run(t, "ip link set "+s.interfaceOf(t, socketsNIC)+" up; ip link set "+s.interfaceOf(t, sender)+" up")
	pool := &v1alpha1.BypassNICPool{}
	must(t, yaml.UnmarshalStrict(readFile(t, "sockets.yaml"), pool))
	s.create(t, pool)
	s.waitAllocatable(t, sockets, 1)
	pod := podSpec("receiver", sockets, 1, 1, 1)
	pod.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(1001)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	pod.Spec.Containers[0].Args = []string{"-queues=AFXDP_QUEUES_SOCKETS"}
	s.said(t, s.createPod(t, pod))
	got := s.received(t, pod)
	if got.Text != datagram || got.Capabilities != "0000000000000000" {
		t.Errorf("the program received %q with capabilities %s", got.Text, got.Capabilities)
	}
	for _, name := range got.Interfaces {
		if name == s.interfaceOf(t, socketsNIC) {
			t.Errorf("the container has interface %s", name)
		}
	}
	s.remove(t, pod)
	return fmt.Sprintf("queue %s, user 1001, capabilities %s: %q received", got.Queue, got.Capabilities, got.Text)
}

// interfaceOf is the name of the network interface of a NIC.
func (s *scene) interfaceOf(t *testing.T, address string) string {
	t.Helper()
	return s.run(t, "basename $(find /sys/bus/pci/devices/"+address+"/ -maxdepth 3 -path '*/net/*' | head -n 1)")
}

// frameSeen is what the program workload prints of a frame.
type frameSeen struct {
	Queue        string   `json:"queue"`
	Text         string   `json:"text"`
	Capabilities string   `json:"capabilities"`
	Interfaces   []string `json:"interfaces"`
}

// received sends datagrams until the program of a pod says that one came.
func (s *scene) received(t *testing.T, pod *corev1.Pod) frameSeen {
	t.Helper()
	from, to := s.interfaceOf(t, sender), s.interfaceOf(t, socketsNIC)
	s.run(t, fmt.Sprintf("ip address replace 10.9.0.1/24 dev %s; ip neighbour replace 10.9.0.2 lladdr $(cat /sys/class/net/%s/address) dev %s",
		from, to, from))
	seen := frameSeen{}
	s.wait(t, "a datagram to be received", func(context.Context) (bool, string) {
		s.run(t, fmt.Sprintf("bash -c 'echo %s > /dev/udp/10.9.0.2/%d'", datagram, socketsPort))
		log := s.run(t, fmt.Sprintf("cat /var/log/pods/%s_%s_%s/main/*.log", pod.Namespace, pod.Name, pod.UID))
		for line := range strings.Lines(log) {
			_, text, _ := strings.Cut(line, " stdout F ")
			if json.Unmarshal([]byte(text), &seen) == nil && seen.Text != "" {
				return true, ""
			}
		}
		return false, log
	})
	return seen
}
