// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// kubeletSocket is where the kubelet takes registrations.
const kubeletSocket = "/var/lib/kubelet/device-plugins/kubelet.sock"

// plugin returns the running device plugin of a pool.
func (s *scene) plugin(t *testing.T, pool string) *corev1.Pod {
	t.Helper()
	var running *corev1.Pod
	s.wait(t, "the device plugin of "+pool, func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := s.api.List(ctx, pods, client.InNamespace(agentNamespace), client.MatchingLabels{v1alpha1.LabelBypassPool: pool})
		i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return isReady(&p) && p.DeletionTimestamp == nil })
		if i < 0 {
			return false, fmt.Sprint(len(pods.Items), " pods, none ready ", err)
		}
		running = &pods.Items[i]
		return true, ""
	})
	return running
}

// registrations are the times at which a device plugin was registered, by its own log and the machine's clock.
func (s *scene) registrations(t *testing.T, plugin *corev1.Pod) []time.Time {
	t.Helper()
	lines := s.run(t, fmt.Sprintf("cat /var/log/pods/%s_%s_%s/device-plugin/*.log", plugin.Namespace, plugin.Name, plugin.UID))
	var times []time.Time
	for line := range strings.Lines(lines) {
		start := strings.Index(line, "{")
		var entry struct {
			Time time.Time
			Msg  string
		}
		if start >= 0 && json.Unmarshal([]byte(line[start:]), &entry) == nil && entry.Msg == "Registered with the kubelet" {
			times = append(times, entry.Time)
		}
	}
	return times
}

// registered are the ids of the units that the kubelet knows of, from its checkpoint
// (pkg/kubelet/cm/devicemanager/checkpoint of Kubernetes).
func (s *scene) registered(t *testing.T, resource string) []string {
	t.Helper()
	var checkpoint struct {
		Data struct{ RegisteredDevices map[string][]string }
	}
	must(t, json.Unmarshal([]byte(s.run(t, "cat /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint")), &checkpoint))
	ids := checkpoint.Data.RegisteredDevices[resource]
	slices.Sort(ids)
	return ids
}

// held starts a pod that lives through what follows.
func (s *scene) held(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: objectName("held")}
	if err := s.api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err == nil {
		return pod
	}
	pod = s.createPod(t, podSpec("held", whole, 1, 2, 4))
	s.said(t, pod)
	return pod
}

// stillRuns compares the container of a pod with what it was.
func (s *scene) stillRuns(t *testing.T, before *corev1.Pod) {
	t.Helper()
	now := &corev1.Pod{}
	must(t, s.api.Get(t.Context(), client.ObjectKeyFromObject(before), now))
	if now.Status.Phase != corev1.PodRunning || len(now.Status.ContainerStatuses) != 1 ||
		now.Status.ContainerStatuses[0].ContainerID != before.Status.ContainerStatuses[0].ContainerID {
		t.Errorf("pod %s did not live through it: %+v", before.Name, now.Status)
	}
}

// kubeletRestart restarts the kubelet under a running pod and waits for both device plugins.
func (s *scene) kubeletRestart(t *testing.T) string {
	pod := s.held(t)
	plugins := []*corev1.Pod{s.plugin(t, "whole"), s.plugin(t, "functions")}
	before := make([]int, 0, len(plugins))
	for _, plugin := range plugins {
		before = append(before, len(s.registrations(t, plugin)))
	}
	s.run(t, "systemctl restart kubelet")
	took := make([]time.Duration, 0, len(plugins))
	for i, plugin := range plugins {
		s.wait(t, "registration of "+plugin.Name, func(context.Context) (bool, string) {
			times := s.registrations(t, plugin)
			return len(times) > before[i], fmt.Sprint(times)
		})
		times := s.registrations(t, plugin)
		created, err := time.Parse("2006-01-02 15:04:05.999999999 -0700", s.run(t, "stat -c %z "+kubeletSocket))
		must(t, err)
		took = append(took, times[len(times)-1].Sub(created))
	}
	s.waitAllocatable(t, whole, 2)
	s.waitAllocatable(t, functions, 2)
	s.stillRuns(t, pod)
	return fmt.Sprintf("registered %d ms after the new socket; the pod runs on", slices.Max(took).Milliseconds())
}

// pluginRestart takes a device plugin away from under a pod that holds one of its NICs.
func (s *scene) pluginRestart(t *testing.T) string {
	pod := s.held(t)
	old, ids := s.plugin(t, "whole"), s.registered(t, whole)
	s.remove(t, old.DeepCopy())
	next := s.plugin(t, "whole")
	s.wait(t, "registration of "+next.Name, func(context.Context) (bool, string) {
		times := s.registrations(t, next)
		return len(times) > 0, fmt.Sprint(times)
	})
	s.waitAllocatable(t, whole, 2)
	if diff := cmp.Diff(ids, s.registered(t, whole)); diff != "" {
		t.Errorf("ids of units (-before +after):\n%s", diff)
	}
	s.stillRuns(t, pod)
	return strings.Join(ids, " ") + "; the pod runs on"
}

// unplug takes the whole NIC that nobody holds out of its slot and puts it back.
func (s *scene) unplug(t *testing.T) string {
	s.held(t)
	slots := []struct{ id, address string }{{"nic0", "0000:21:00.0"}, {"nic2", "0000:42:00.0"}}
	slot := slots[1-s.numaOf(t, "held", "whole")]
	must(t, s.machine.Unplug(t.Context(), slot.id))
	s.waitAllocatable(t, whole, 1)
	s.view(t, "whole", "the agent to report one NIC", func(v poolView) bool { return len(v.Nodes[0].NICs) == 1 })
	must(t, s.machine.Plug(t.Context(), slot.id))
	// The unit of the plan ran at boot. Whoever plugs a NIC in starts it again, and so does the next boot.
	s.run(t, "systemctl restart lowlatency-bypass-nic-"+strings.ReplaceAll(slot.address, ":", "-")+".service")
	s.waitAllocatable(t, whole, 2)
	return slot.address + " gone: allocatable 1; back and bound by its unit: allocatable 2"
}
