// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cgroup"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// owner is a container with CPUs of its own.
type owner struct {
	// name is "container trading/engine-0/engine", or with the pod's UID where only the kubelet's state tells.
	name string
	cpus cpus.Set
	// path is NAMESPACE/POD/CONTAINER, or UID/CONTAINER.
	path string
	// pod is the UID of the pod, as the control groups of its containers name it; "" when the kubelet's state does not tell.
	pod string
	// slice is the control group of an owner that is no container.
	slice string
}

// objects are the container.
func (o owner) objects() finding.Objects {
	if o.path == "" {
		return finding.Objects{}
	}
	return finding.OfContainers(o.path)
}

// owners are the containers with CPUs of their own: those that the kubelet's PodResources service tells, else those in
// the state of its CPU manager.
func (s *state) owners() host.Fact[[]owner] {
	if s.containers != nil && s.containers.Known {
		var all []owner
		for _, container := range s.containers.Value {
			if !container.CPUs.IsEmpty() {
				all = append(all, owner{name: container.String(), cpus: container.CPUs, path: container.Path(), pod: s.podWith(container.CPUs)})
			}
		}
		return host.Known(all, s.containers.Source)
	}
	return ownersIn(s.cpuManagerState())
}

// ownersIn are the containers to which the kubelet's CPU manager has given CPUs.
func ownersIn(state host.Fact[cpuManagerState]) host.Fact[[]owner] {
	if !state.Known {
		return host.Absent[[]owner](state.Source, state.Reason)
	}
	var all []owner
	for _, pod := range slices.Sorted(maps.Keys(state.Value.Entries)) {
		for _, container := range slices.Sorted(maps.Keys(state.Value.Entries[pod])) {
			name := fmt.Sprintf("container %s of pod %s", container, pod)
			// What is no list of CPUs owns none; kubelet.cpu-manager reports it.
			owned, _ := cpus.Parse(state.Value.Entries[pod][container])
			all = append(all, owner{name: name, cpus: owned, path: pod + "/" + container, pod: pod})
		}
	}
	return host.Known(all, state.Source)
}

// podWith is the UID of the pod that owns CPUs by the state of the CPU manager: the kubelet's service names pods by their
// names only. "" when the state does not tell.
func (s *state) podWith(set cpus.Set) string {
	for pod, containers := range s.cpuManagerState().Value.Entries {
		for _, list := range containers {
			if owned, err := cpus.Parse(list); err == nil && owned.Equal(set) {
				return pod
			}
		}
	}
	return ""
}

// ownedCPUs are the CPUs that containers own, as far as the kubelet tells.
func (s *state) ownedCPUs() cpus.Set {
	all := cpus.Set{}
	for _, o := range s.owned() {
		all = all.Union(o.cpus)
	}
	return all
}

// ownerOf finds the container to whose CPUs a thread keeps, and whether the thread belongs there: not where it may run tells
// whose it is, but its control group, which the container runtime puts it into. Absent when that cannot be told.
func (s *state) ownerOf(task *host.Task) (owner, host.Fact[bool]) {
	allowed, ok := task.AllowedCPUs.Get()
	if !ok || allowed.IsEmpty() {
		return owner{}, host.Known(false, task.AllowedCPUs.Source)
	}
	for _, o := range append(slices.Clone(s.owned()), s.hostDataPlane()...) {
		if allowed.IsSubsetOf(o.cpus) {
			return o, o.holds(task.Group)
		}
	}
	return owner{}, host.Known(false, task.Group.Source)
}

// holds reports whether a control group is the owner's.
func (o owner) holds(group host.Fact[string]) host.Fact[bool] {
	path, ok := group.Get()
	switch pod := cgroup.Pod(path); {
	case !ok:
		return host.Absent[bool](group.Source, group.Reason)
	case o.slice != "":
		return host.Known(strings.Contains(path+"/", "/"+o.slice+"/"), group.Source)
	case o.pod != "":
		return host.Known(pod == o.pod, group.Source)
	default:
		return host.Known(pod != "", group.Source)
	}
}

// hostDataPlane is the virtual switch of the host, if the plan has CPUs for it.
func (s *state) hostDataPlane() []owner {
	if s.plan.CPUs.DataPlane.IsEmpty() {
		return nil
	}
	return []owner{{name: "the data plane", cpus: s.plan.CPUs.DataPlane, slice: plan.DataPlaneSlice}}
}
