// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// The resources of the pools of testdata.
const (
	whole     = "lowlatency.dev/whole"
	functions = "lowlatency.dev/functions"
)

// TestPools runs the scenarios one after the other on one machine, because a boot takes longer than all of them.
func TestPools(t *testing.T) {
	s := newScene(t)
	s.handsOut = true
	if !s.raise(t) {
		return
	}
	s.step(t, "allocatable appears", s.allocatable)
	s.step(t, "network policies are in force", s.policies)
	s.step(t, "who has taken over a pod gets nothing more", s.takenOver)
	s.step(t, "who has stolen a pod's token is refused by the admission policies", s.stolen)
	s.step(t, "a pod that cannot be aligned is foreseen and refused", s.refused)
	s.step(t, "a Guaranteed pod gets NIC, CPUs and hugepages on one NUMA node", s.firstPod)
	s.step(t, "the second pod lands on the other NUMA node", s.secondPod)
	s.step(t, "a virtual function and its VFIO group in a container", s.functionPod)
	s.step(t, "kubelet restart: registered again", s.kubeletRestart)
	s.step(t, "device plugin restart: same ids", s.pluginRestart)
	s.step(t, "NIC unplugged and back", s.unplug)
	s.step(t, "versions that differ (stand-ins for Onload)", s.versions)
	s.step(t, "an AF_XDP socket in a pod without privileges", s.socketPod)
	s.claims(t)
}

// newScene is one whose table is printed, and what runs of it ended, when the test ends.
func newScene(t *testing.T) *scene {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	// What runs ends with stop, which still looks at it when this test has failed.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	s := &scene{ctx: ctx, table: &outcomes{}, built: t.TempDir()}
	t.Cleanup(func() {
		s.stop(t)
		cancel()
	})
	return s
}

// raise brings up the cluster and its node.
func (s *scene) raise(t *testing.T) bool {
	t.Helper()
	var err error
	s.programs, err = lab.OpenPrograms(t.Context(), os.Stderr, "kubectl")
	must(t, err)
	s.deployment, err = s.programs.Deployment(t.Context())
	must(t, err)
	s.build(t)
	files := s.nodeFiles(t)
	var planned *plan.NodePlan
	return s.step(t, "control plane and operator", func(t *testing.T) string {
		s.startCluster(t)
		s.install(t)
		return "etcd, kube-apiserver, controller manager, scheduler; what make deploy applies"
	}) && s.step(t, "boot with PREEMPT_RT, 2 NUMA nodes", func(t *testing.T) string {
		s.start(t, files)
		return s.run(t, "uname -rv")
	}) && s.step(t, "plan, apply, reboot", func(t *testing.T) string {
		planned = s.planPools(t)
		s.apply(t, planned)
		return fmt.Sprintf("arguments, and hugepages and drivers for %d pools by the plan's own units", len(s.pools(t)))
	}) && s.step(t, "kernel is as planned", func(t *testing.T) string {
		s.compare(t, s.kernelFacts())
		return fmt.Sprintf("%d facts", len(s.kernelFacts()))
	}) && s.step(t, "node joins", func(t *testing.T) string {
		s.join(t, planned)
		seen := s.ready(t)
		s.compare(t, s.hugepageFacts())
		return seen
	}) && s.step(t, "something enforces network policies", s.enforce) && s.step(t, "the manager runs as a pod of the image", s.managerPod) &&
		s.step(t, "operator deploys device plugins", s.deploy)
}

// compare looks at the machine for facts.
func (s *scene) compare(t *testing.T, facts []fact) {
	t.Helper()
	for _, fact := range facts {
		if got := s.run(t, fact.command); got != fact.want {
			t.Errorf("%s: got %q, want %q", fact.name, got, fact.want)
		}
	}
}

// ready waits for the node and gives it the label of the profile.
func (s *scene) ready(t *testing.T) string {
	t.Helper()
	node := &corev1.Node{}
	s.wait(t, "the node to be ready", func(ctx context.Context) (bool, string) {
		if err := s.api.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
			return false, err.Error()
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue, condition.Message
			}
		}
		return false, "no condition yet"
	})
	must(t, s.api.Patch(t.Context(), node, client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"node-role.kubernetes.io/lab":""}}}`))))
	return "Ready, kubelet " + node.Status.NodeInfo.KubeletVersion + ", " + node.Status.NodeInfo.ContainerRuntimeVersion
}

// deploy creates the profile and the pools, waits until the pods run that come of them, and looks at what holds each.
func (s *scene) deploy(t *testing.T) string {
	s.create(t, readProfile(t))
	pools := s.pools(t)
	for _, pool := range pools {
		s.create(t, pool)
	}
	var names []string
	pods := &corev1.PodList{}
	s.wait(t, fmt.Sprintf("the agent and %d device plugins to run", len(pools)), func(ctx context.Context) (bool, string) {
		err := s.api.List(ctx, pods, client.InNamespace(agentNamespace))
		names = make([]string, 0, len(pods.Items))
		running := 0
		for i := range pods.Items {
			pod := &pods.Items[i]
			names = append(names, fmt.Sprintf("%s %s %s", pod.Name, pod.Status.Phase, waiting(pod)))
			if isReady(pod) {
				running++
			}
		}
		return running == 1+len(pools), fmt.Sprint(names, err)
	})
	var held string
	for i := range pods.Items {
		held = s.expectHeld(t, &pods.Items[i], root)
	}
	return fmt.Sprintf("agent and %d device plugins run, each with %s", len(names)-1, held)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// waiting says what a pod's containers wait for.
func waiting(pod *corev1.Pod) string {
	var reasons []string
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Waiting != nil {
			reasons = append(reasons, status.State.Waiting.Reason+" "+status.State.Waiting.Message)
		}
		if status.State.Terminated != nil {
			reasons = append(reasons, status.State.Terminated.Reason+" "+status.State.Terminated.Message)
		}
	}
	return strings.Join(reasons, "; ")
}

// waitAllocatable waits until the kubelet has told the API server this many units.
func (s *scene) waitAllocatable(t *testing.T, resource string, want int64) {
	t.Helper()
	s.wait(t, fmt.Sprintf("%d allocatable units of %s", want, resource), func(ctx context.Context) (bool, string) {
		node := &corev1.Node{}
		if err := s.api.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
			return false, err.Error()
		}
		got := node.Status.Allocatable[corev1.ResourceName(resource)]
		return got.Value() == want, fmt.Sprint(node.Status.Allocatable)
	})
}

func (s *scene) allocatable(t *testing.T) string {
	s.waitAllocatable(t, whole, 2)
	s.waitAllocatable(t, functions, 2)
	s.waitAllocatable(t, "hugepages-2Mi", 48<<21)
	return "2 whole, 2 functions, 96Mi of hugepages"
}

// poolView is the part of "kubectl-lowlatency pool -o json" that is of interest.
type poolView struct {
	Pool  string
	Nodes []struct {
		NICs []struct {
			PCIAddress string
			NUMANode   *int
			Health     v1alpha1.NICHealth
			Reasons    []string
			Users      []struct{ Pod, Alignment, Message string }
		}
		NUMANodes []struct{ ID, Free *int }
	}
}

// view asks the command line for a pool as soon as the agent has reported.
func (s *scene) view(t *testing.T, name, what string, done func(poolView) bool) poolView {
	t.Helper()
	var views []poolView
	s.wait(t, what, func(context.Context) (bool, string) {
		out := s.pool(t, name, "-o", "json")
		views = nil
		if err := json.Unmarshal([]byte(out), &views); err != nil {
			return false, err.Error()
		}
		return len(views) == 1 && len(views[0].Nodes) == 1 && done(views[0]), out
	})
	return views[0]
}

// most is the most units that one pod can have of a pool.
func (v poolView) most() int {
	most := -1
	for _, numa := range v.Nodes[0].NUMANodes {
		if numa.Free != nil {
			most = max(most, *numa.Free)
		}
	}
	return most
}

// refused asks for both whole NICs, which are on two NUMA nodes. The pool says before that one is the most.
func (s *scene) refused(t *testing.T) string {
	before := s.view(t, "whole", "the agent to report both whole NICs", func(v poolView) bool {
		return len(v.Nodes[0].NICs) == 2 && v.most() >= 0
	})
	if before.most() != 1 {
		t.Errorf("the pool says that a pod can have %d units, want 1", before.most())
	}
	pod := s.createPod(t, podSpec("split", whole, 2, 2, 4))
	s.wait(t, "the pod to be refused", func(ctx context.Context) (bool, string) {
		err := s.api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Status.Phase == corev1.PodFailed, fmt.Sprint(pod.Status, err)
	})
	reason := pod.Status.Reason
	if reason != "TopologyAffinityError" {
		t.Errorf("the pod failed with %s (%s), want TopologyAffinityError", reason, pod.Status.Message)
	}
	s.remove(t, pod)
	return "pool shows 1 free per NUMA node; a pod with 2: " + reason
}

func (s *scene) firstPod(t *testing.T) string { return s.alignedPod(t, "first", "whole", whole) }

func (s *scene) secondPod(t *testing.T) string {
	before := s.numaOf(t, "first", "whole")
	seen := s.alignedPod(t, "second", "whole", whole)
	if s.numaOf(t, "second", "whole") == before {
		t.Errorf("both pods are on NUMA node %d", before)
	}
	return seen
}

// numaOf is the NUMA node of the NIC that a pod holds, as the agent reports it; -1 for a pod that holds none.
func (s *scene) numaOf(t *testing.T, pod, pool string) int {
	t.Helper()
	numa := -1
	s.view(t, pool, "the agent to report "+pod, func(v poolView) bool {
		for _, nic := range v.Nodes[0].NICs {
			for _, user := range nic.Users {
				if user.Pod == pod && nic.NUMANode != nil {
					numa = *nic.NUMANode
				}
			}
		}
		return numa >= 0
	})
	return numa
}

// alignedPod starts a pod with 2 CPUs, 4 hugepages and a NIC, and compares what its kernel gave it with the NIC.
func (s *scene) alignedPod(t *testing.T, name, pool, resource string) string {
	t.Helper()
	pod := s.createPod(t, podSpec(name, resource, 1, 2, 4))
	got := s.said(t, pod)
	address := got.variable("PCIDEVICE_" + strings.ToUpper(strings.NewReplacer(".", "_", "/", "_").Replace(resource)))
	numa := s.run(t, "cat /sys/bus/pci/devices/"+address+"/numa_node")
	group := s.run(t, "basename $(readlink /sys/bus/pci/devices/"+address+"/iommu_group)")
	for _, cpu := range expand(t, got.CPUs) {
		if node := s.run(t, fmt.Sprintf("basename /sys/devices/system/cpu/cpu%d/node*", cpu)); node != "node"+numa {
			t.Errorf("CPU %d is on %s, and the NIC on node%s", cpu, node, numa)
		}
	}
	if len(expand(t, got.CPUs)) != 2 {
		t.Errorf("the container has CPUs %s, want 2", got.CPUs)
	}
	// What its control group allows is what its program sees, as the kernel on the host tells.
	scope := "/sys/fs/cgroup/kubepods.slice/kubepods-pod" + strings.ReplaceAll(string(pod.UID), "-", "_") + ".slice/cri-containerd-" +
		strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://") + ".scope"
	allowed := s.run(t, "cat "+scope+"/cpuset.cpus.effective "+scope+"/cpuset.mems.effective")
	if diff := cmp.Diff([]string{got.CPUs, got.MemoryNodes}, strings.Fields(allowed)); diff != "" {
		t.Errorf("program and control group (-program +control group):\n%s", diff)
	}
	if got.MemoryNodes != numa {
		t.Errorf("memory from NUMA nodes %s, want %s", got.MemoryNodes, numa)
	}
	if diff := cmp.Diff([]string{"N" + numa + "=4"}, got.HugepageNodes); diff != "" {
		t.Errorf("hugepages by NUMA node (-want +got):\n%s", diff)
	}
	want := map[string]string{"/dev/vfio/" + group: "open, viable", "/dev/vfio/vfio": "open"}
	if diff := cmp.Diff(want, got.Devices); diff != "" {
		t.Errorf("device files of the container (-want +got):\n%s", diff)
	}
	if reported := s.numaOf(t, name, pool); strconv.Itoa(reported) != numa {
		t.Errorf("the agent reports NUMA node %d, want %s", reported, numa)
	}
	s.view(t, pool, "the agent to call "+name+" aligned", func(v poolView) bool {
		return v.alignment(name) == string(v1alpha1.AlignmentAligned)
	})
	return fmt.Sprintf("NIC %s, CPUs %s, hugepages %s, /dev/vfio/%s viable; agent: Aligned", address, got.CPUs,
		strings.Join(got.HugepageNodes, " "), group)
}

func (v poolView) alignment(pod string) string {
	for _, nic := range v.Nodes[0].NICs {
		for _, user := range nic.Users {
			if user.Pod == pod {
				return user.Alignment
			}
		}
	}
	return ""
}

func (s *scene) functionPod(t *testing.T) string {
	// The CPUs of the NIC's NUMA node belong to one of the two pods with whole NICs, which made its point.
	for _, name := range []string{"first", "second"} {
		s.remove(t, &corev1.Pod{ObjectMeta: objectName(name)})
	}
	seen := s.alignedPod(t, "function", "functions", functions)
	s.remove(t, &corev1.Pod{ObjectMeta: objectName("function")})
	return seen
}
