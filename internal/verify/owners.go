// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// owner is a container with CPUs of its own.
type owner struct {
	// name is "container trading/engine-0/engine", or with the pod's UID where only the kubelet's state tells.
	name string
	cpus cpus.Set
	// path is NAMESPACE/POD/CONTAINER, or UID/CONTAINER.
	path string
}

// objects are the container.
func (o owner) objects() finding.Objects { return finding.OfContainers(o.path) }

// owners are the containers with CPUs of their own: those that the kubelet's PodResources service tells, else those in
// the state of its CPU manager.
func (s *state) owners() host.Fact[[]owner] {
	if s.containers != nil && s.containers.Known {
		var all []owner
		for _, container := range s.containers.Value {
			if !container.CPUs.IsEmpty() {
				all = append(all, owner{container.String(), container.CPUs, container.Path()})
			}
		}
		return host.Known(all, s.containers.Source)
	}
	state := s.cpuManagerState()
	if !state.Known {
		return host.Absent[[]owner](state.Source, state.Reason)
	}
	var all []owner
	for _, pod := range slices.Sorted(maps.Keys(state.Value.Entries)) {
		for _, container := range slices.Sorted(maps.Keys(state.Value.Entries[pod])) {
			name := fmt.Sprintf("container %s of pod %s", container, pod)
			// What is no list of CPUs owns none; kubelet.cpu-manager reports it.
			owned, _ := cpus.Parse(state.Value.Entries[pod][container])
			all = append(all, owner{name, owned, pod + "/" + container})
		}
	}
	return host.Known(all, state.Source)
}

// ownedCPUs are the CPUs that containers own, as far as the kubelet tells.
func (s *state) ownedCPUs() cpus.Set {
	all := cpus.Set{}
	for _, o := range s.owned() {
		all = all.Union(o.cpus)
	}
	return all
}

// ownerOf finds the container to which a thread belongs: nobody else may run on its CPUs alone.
func (s *state) ownerOf(task *host.Task) (owner, bool) {
	allowed, ok := task.AllowedCPUs.Get()
	if !ok || allowed.IsEmpty() {
		return owner{}, false
	}
	for _, o := range s.owned() {
		if allowed.IsSubsetOf(o.cpus) {
			return o, true
		}
	}
	return owner{}, false
}
