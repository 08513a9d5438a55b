// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const podResources = "/var/lib/kubelet/pod-resources/kubelet.sock"

// ownershipChecks ask whether containers with CPUs of their own have what they were promised.
func ownershipChecks() []Check {
	aligned := []string{v1alpha1.ConditionNUMAAligned}
	const whenAsked = "the kubelet's PodResources service was asked"
	return []Check{
		{
			ID: "numa.exclusive-pods", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement, Conditions: aligned,
			Title:   "Every container with CPUs of its own has its CPUs, pinned memory and devices on one NUMA node",
			Applies: "spec.numa.topologyPolicy is SingleNUMANode; " + whenAsked,
			Why:     "Memory and devices of another NUMA node take twice as long to reach.",
			Reads:   []string{podResources},
			Fix:     "Start the pod again: topologyManagerPolicy single-numa-node refuses what cannot be aligned, but leaves pods alone that were there before.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kubernetes: pkg/kubelet/apis/podresources, pkg/kubelet/cm/topologymanager",
			run:     exclusivePodsAreAligned,
		},
		{
			ID: "numa.pod-memory", Severity: v1alpha1.SeverityHigh, Impact: ImpactPlacement, Conditions: aligned,
			Title:   "Programs with CPUs of their own take memory of the NUMA node of these CPUs only",
			Applies: "the plan's memory manager policy is Static, and pods own CPUs",
			Why:     "The kernel may take the program's memory from another NUMA node without a word.",
			Reads:   []string{"/proc/*/status (Mems_allowed_list)", "/proc/*/cgroup", fileOwners},
			Fix:     "Give every container of the pod limits equal to requests for CPU and memory, and start it again.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kubernetes: pkg/kubelet/cm/memorymanager; kernel: Documentation/admin-guide/cgroup-v2.rst (cpuset.mems)",
			run:     podMemoryIsLocal,
		},
		{
			ID: "numa.remote-allocations", Severity: v1alpha1.SeverityMedium, Impact: ImpactPlacement, Conditions: aligned, Window: true,
			Title:   "NUMA nodes with isolated CPUs did not run out of memory since the last reading",
			Applies: "the host has several NUMA nodes",
			Why:     "Memory that was meant for the NUMA node came from another one, and stays there.",
			Reads:   []string{"/sys/devices/system/node/node*/numastat (numa_foreign)", "/proc/uptime"},
			Fix:     "Free memory on the NUMA node: fewer hugepages, or smaller pods there.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/numastat.rst",
			run:     memoryStaysLocal,
		},
		{
			ID: "pod.cpu-quota", Severity: v1alpha1.SeverityHigh, Impact: ImpactSpeed, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:   "No container with CPUs of its own has a quota of CPU time",
			Applies: "pods own CPUs",
			Why:     "A program that spins uses up its quota and is stopped for the rest of each 100 ms.",
			Reads: []string{
				"/sys/fs/cgroup/kubepods*/*pod*/{,*/}cpu.max", "/sys/fs/cgroup/cpu,cpuacct/kubepods*/*pod*/{,*/}cpu.cfs_quota_us (version 1)",
				fileOwners,
			},
			Fix:    "Annotate the pod with cpu-quota.crio.io: disable (CRI-O), or run a kubelet with the feature DisableCPUQuotaWithExclusiveCPUs.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/admin-guide/cgroup-v2.rst (cpu.max), Documentation/scheduler/sched-bwc.rst; kubernetes: pkg/kubelet/cm/internal_container_lifecycle",
			run:    where(func(s *state) bool { return !s.ownedCPUs().IsEmpty() }, podsHaveNoQuota),
		},
		{
			ID: "kubelet.allocatable", Severity: v1alpha1.SeverityHigh, Impact: ImpactPlacement, Conditions: aligned,
			Title:   "The kubelet offers exactly the isolated CPUs, and knows where each bypass device is",
			Applies: "the plan's CPU manager policy is static; " + whenAsked,
			Why:     "The kubelet aligns pods by what it believes: a device without NUMA node is aligned with nothing.",
			Reads:   []string{podResources, "/sys/bus/pci/devices/*/numa_node"},
			Fix:     "Restart the device plugin, then the kubelet; see kubelet.cpu-manager for its CPUs.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kubernetes: pkg/kubelet/apis/podresources (GetAllocatableResources)",
			run:     allocatableIsPlanned,
		},
	}
}

func exclusivePodsAreAligned(s *state) verdict {
	if s.containers == nil || s.plan.Kubelet.TopologyManagerPolicy != "single-numa-node" {
		return notApplicable()
	}
	const expected = "CPUs, memory and devices on one NUMA node"
	return judge(*s.containers, expected, func(containers []allocation.Container) verdict {
		verdicts := []verdict{passed("no container owns CPUs")}
		for _, container := range containers {
			if !container.CPUs.IsEmpty() {
				verdicts = append(verdicts, s.containerIsAligned(container, expected))
			}
		}
		return worst(verdicts...)
	})
}

// containerIsAligned collects the NUMA nodes of all that a container has. What may come from several NUMA nodes, such
// as a device beside both, says nothing.
func (s *state) containerIsAligned(container allocation.Container, expected string) verdict {
	nodes := map[int]bool{}
	var places []string
	for _, node := range s.facts.NUMANodes {
		if part := container.CPUs.Intersection(node.CPUs.Value); !part.IsEmpty() {
			nodes[node.ID] = true
			places = append(places, fmt.Sprintf("%s on NUMA node %d", part.Name(), node.ID))
		}
	}
	if len(nodes) == 0 {
		return unknown("the NUMA node of "+container.CPUs.Name(), "no NUMA node lists them", expected).
			about(finding.Objects{CPUs: container.CPUs, Containers: []string{container.Path()}})
	}
	place := func(what string, on []int) {
		if len(on) == 1 {
			nodes[on[0]] = true
			places = append(places, fmt.Sprintf("%s on NUMA node %d", what, on[0]))
		}
	}
	for _, block := range container.Memory {
		place(block.Type, block.NUMANodes)
	}
	for _, held := range container.Devices {
		place(held.Resource, held.NUMANodes)
	}
	if len(nodes) > 1 {
		text := strings.Join(places, ", ")
		return failed(fmt.Sprintf("%s is spread over NUMA nodes: %s", container, text), text, expected).about(
			finding.Objects{CPUs: container.CPUs, NICs: s.nicsOf(container), Containers: []string{container.Path()}},
			finding.OfNUMANodes(slices.Sorted(maps.Keys(nodes))...))
	}
	return passed(container.String() + " on one NUMA node")
}

// nicsOf are the NICs that a container holds, by PCI address.
func (s *state) nicsOf(container allocation.Container) []string {
	var addresses []string
	for _, held := range container.Devices {
		for _, id := range held.IDs {
			if address := allocation.OfDeviceID(id); s.hasNIC(address) {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

func (s *state) hasNIC(address string) bool {
	_, ok := s.nic(address)
	return ok
}

func podMemoryIsLocal(s *state) verdict {
	owned := s.ownedCPUs().Intersection(s.plan.CPUs.Isolated)
	if !strings.EqualFold(s.plan.Kubelet.MemoryManagerPolicy, "Static") || owned.IsEmpty() {
		return notApplicable()
	}
	const expected = "memory of the NUMA node of the CPUs"
	return judge(s.scopedTasks(owned), expected, func(tasks []host.Task) verdict {
		verdicts := []verdict{passed(expected)}
		for i := range tasks {
			task := &tasks[i]
			o, belongs := s.ownerOf(task)
			if task.Kernel || hasEnded(task) || o.slice != "" {
				continue
			}
			verdicts = append(verdicts, judge(belongs, expected, func(isOwners bool) verdict {
				if !isOwners {
					return notApplicable()
				}
				return s.taskMemoryIsLocal(task, o, expected)
			}))
		}
		return worst(verdicts...)
	})
}

func (s *state) taskMemoryIsLocal(task *host.Task, o owner, expected string) verdict {
	return judge(task.MemoryNodes, expected, func(memory cpus.Set) verdict {
		var near cpus.Set
		for _, node := range s.facts.NUMANodes {
			if node.CPUs.Value.Overlaps(o.cpus) {
				near = near.Union(cpus.Of(node.ID))
			}
		}
		if remote := memory.Difference(near); !remote.IsEmpty() && !near.IsEmpty() {
			return failed(fmt.Sprintf("%s of %s may take memory of NUMA node %s, its %s are on NUMA node %s",
				taskName(task), o.name, remote, o.cpus.Name(), near), "memory of NUMA node "+memory.String(), expected).
				about(taskObjects(task, o.cpus), o.objects(), finding.OfNUMANodes(remote.IDs()...))
		}
		return passed(expected)
	})
}

// foreignPagesPerSecond is how many pages a second may come from elsewhere: single pages do at any time.
const foreignPagesPerSecond = 100

func memoryStaysLocal(s *state) verdict {
	if multiple := s.multipleNUMANodes(); !multiple.Known || !multiple.Value {
		return notApplicable()
	}
	expected := fmt.Sprintf("at most %d pages a second from other NUMA nodes", foreignPagesPerSecond)
	earlier := map[int]host.Fact[uint64]{}
	for _, node := range s.before.NUMANodes {
		earlier[node.ID] = node.ForeignAllocations
	}
	return judge(s.elapsed(), expected, func(seconds float64) verdict {
		verdicts := []verdict{passed(expected)}
		for _, node := range s.facts.NUMANodes {
			if !node.CPUs.Value.Overlaps(s.plan.CPUs.Isolated) {
				continue
			}
			verdicts = append(verdicts, judge(earlier[node.ID], expected, func(was uint64) verdict {
				return judge(node.ForeignAllocations, expected, func(is uint64) verdict {
					if float64(is)-float64(was) <= foreignPagesPerSecond*max(seconds, shortestTime) {
						return passed(expected)
					}
					return failed(fmt.Sprintf("memory that was meant for NUMA node %d comes from other NUMA nodes", node.ID),
						fmt.Sprintf("NUMA node %d: numa_foreign grew", node.ID), expected).about(finding.OfNUMANodes(node.ID))
				})
			}))
		}
		return worst(verdicts...)
	})
}

// podsHaveNoQuota judges the control groups whose CPUs are those of a container that owns them; others of the same pod
// share CPUs and may have a quota.
func podsHaveNoQuota(s *state) verdict {
	const expected = "max"
	return judge(s.facts.Kubelet.PodGroups, expected, func(groups []host.PodGroup) verdict {
		verdicts := append(make([]verdict, 0, 1+len(s.owned())), passed(expected))
		for _, o := range s.owned() {
			if !o.cpus.IsEmpty() {
				verdicts = append(verdicts, s.ownerHasNoQuota(o, groups, expected).about(finding.OfCPUs(o.cpus), o.objects()))
			}
		}
		return worst(verdicts...)
	})
}

// ownerHasNoQuota looks for the control group of a container: that of its pod with its CPUs, shared ones perhaps besides.
func (s *state) ownerHasNoQuota(o owner, groups []host.PodGroup, expected string) verdict {
	for _, group := range groups {
		if o.pod != "" && group.Pod != o.pod {
			continue
		}
		if !group.CPUs.Known {
			return unknown(group.CPUs.Source, group.CPUs.Reason, expected)
		}
		if group.CPUs.Value.Difference(s.plan.CPUs.Shared).Equal(o.cpus.Difference(s.plan.CPUs.Shared)) {
			return worst(quotaIsOff(o.name, group.Quota), quotaIsOff("the pod of "+o.name, group.PodQuota))
		}
	}
	return unknown("the quota of "+o.name, "no control group of its pod has its CPUs "+o.cpus.String(), expected)
}

// quotaIsOff takes max of version 2 of control groups, and -1 of version 1.
func quotaIsOff(name string, quota host.Fact[string]) verdict {
	return judge(quota, "max", func(text string) verdict {
		if limit, _, _ := strings.Cut(text, " "); limit == "max" || limit == "-1" {
			return passed("max")
		}
		return failed(fmt.Sprintf("%s is stopped when it has used up its quota (%s is %s)", name, path.Base(quota.Source), text), text, "max")
	})
}

func allocatableIsPlanned(s *state) verdict {
	if s.allocatable == nil || s.plan.Kubelet.CPUManagerPolicy != "static" {
		return notApplicable()
	}
	want := s.plan.CPUs.Isolated.Difference(s.plan.CPUs.DataPlane)
	return judge(*s.allocatable, want.String(), func(found Allocatable) verdict {
		verdicts := []verdict{passed(found.CPUs.String())}
		if missing := want.Difference(found.CPUs); !missing.IsEmpty() {
			verdicts = append(verdicts, failed("the kubelet does not offer isolated "+missing.Name(), found.CPUs.String(), want.String()).
				about(finding.OfCPUs(missing)))
		}
		if extra := found.CPUs.Difference(want); !extra.IsEmpty() {
			verdicts = append(verdicts, failed("the kubelet offers "+extra.Name()+", which "+isOrAre(extra)+" not isolated for pods", found.CPUs.String(), want.String()).
				about(finding.OfCPUs(extra)))
		}
		return worst(append(verdicts, s.devicesAreKnown(found.Devices)...)...)
	})
}

// devicesAreKnown compares where the kubelet believes bypass NICs to be with where they are.
func (s *state) devicesAreKnown(devices []allocation.HeldDevices) []verdict {
	believed := map[string][]int{}
	resources := map[string]string{}
	for _, held := range devices {
		for _, id := range held.IDs {
			address := allocation.OfDeviceID(id)
			believed[address] = append(believed[address], held.NUMANodes...)
			resources[address] = held.Resource
		}
	}
	var verdicts []verdict
	for _, address := range slices.Sorted(maps.Keys(believed)) {
		nic, ok := s.nic(address)
		if !ok || !nic.NUMANode.Known || slices.Contains(believed[address], nic.NUMANode.Value) {
			continue
		}
		verdicts = append(verdicts, failed(fmt.Sprintf("the kubelet does not know that %s of %s is on NUMA node %d", nicName(nic), resources[address], nic.NUMANode.Value),
			address, fmt.Sprintf("%s: NUMA node %d", address, nic.NUMANode.Value)).
			about(finding.OfNICs(address), finding.OfNUMANodes(nic.NUMANode.Value)))
	}
	return verdicts
}
