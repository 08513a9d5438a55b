// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package nodereport

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Owners are the containers of a node that own CPUs.
type Owners struct {
	// Containers with exclusive CPUs, at most 1024; nil when they are not known.
	Containers []Container `json:"containers"`
	// ContainersProblem says why containers are not known, or that not all are listed; "" when all are.
	ContainersProblem string `json:"containersProblem,omitempty"`
}

// Container is a container with CPUs of its own.
type Container struct {
	// Namespace and Pod are nil where only the state file of the kubelet tells, which knows UID.
	Namespace *string  `json:"namespace"`
	Pod       *string  `json:"pod"`
	UID       *string  `json:"uid"`
	Container string   `json:"container"`
	CPUs      cpus.Set `json:"cpus"`
	// NUMANodes of the CPUs.
	NUMANodes []int `json:"numaNodes"`
}

// Name is NAMESPACE/POD/CONTAINER, or the beginning of the pod's UID instead of its name.
func (c Container) Name() string {
	const enough = 8
	switch {
	case c.Namespace != nil && c.Pod != nil:
		return *c.Namespace + "/" + *c.Pod + "/" + c.Container
	case c.UID != nil:
		return "pod " + (*c.UID)[:min(enough, len(*c.UID))] + "…/" + c.Container
	default:
		return c.Container
	}
}

// OwnersOf are the containers that own CPUs: as the kubelet's PodResources service tells, else as the state file of its
// CPU manager does.
func OwnersOf(containers host.Fact[[]allocation.Container], state host.Fact[string], t *topology.Topology) Owners {
	const unknown = "which container owns which CPU is not known: "
	if containers.Known {
		return bounded(ofContainers(containers.Value, t))
	}
	if !state.Known {
		return Owners{ContainersProblem: unknown + state.Source + " cannot be read: " + state.Reason}
	}
	found, err := ofCPUManagerState(state.Value, t)
	if err != nil {
		return Owners{ContainersProblem: unknown + err.Error()}
	}
	return bounded(found)
}

// bounded lists no more containers than a report may have.
func bounded(all []Container) Owners {
	if len(all) <= maximumContainers {
		return Owners{Containers: all}
	}
	return Owners{
		Containers:        all[:maximumContainers],
		ContainersProblem: fmt.Sprintf("%d containers own CPUs, of which %d are listed", len(all), maximumContainers),
	}
}

// ofContainers are those of the containers that have CPUs of their own, in the order of their CPUs.
func ofContainers(containers []allocation.Container, t *topology.Topology) []Container {
	owners := []Container{}
	for _, container := range containers {
		if !container.CPUs.IsEmpty() {
			owners = append(owners, Container{
				Namespace: &container.Namespace, Pod: &container.Pod, Container: container.Name,
				CPUs: container.CPUs, NUMANodes: numaNodesOf(container.CPUs, t),
			})
		}
	}
	sortContainers(owners)
	return owners
}

// ofCPUManagerState are the containers with exclusive CPUs in the state file of the kubelet's CPU manager,
// /var/lib/kubelet/cpu_manager_state (kubelet: pkg/kubelet/cm/cpumanager/state, CPUManagerCheckpoint): entries map the
// UID of a pod and the name of a container to a CPU list.
func ofCPUManagerState(text string, t *topology.Topology) ([]Container, error) {
	var state struct {
		Entries map[string]map[string]string `json:"entries"`
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return nil, fmt.Errorf("reading the state of the CPU manager: %w", err)
	}
	owners := []Container{}
	for uid, containers := range state.Entries {
		for name, list := range containers {
			set, err := cpus.Parse(list)
			if err != nil {
				return nil, fmt.Errorf("CPUs of container %q in the state of the CPU manager: %w", name, err)
			}
			owners = append(owners, Container{UID: &uid, Container: name, CPUs: set, NUMANodes: numaNodesOf(set, t)})
		}
	}
	sortContainers(owners)
	return owners, nil
}

func sortContainers(owners []Container) {
	slices.SortFunc(owners, func(a, b Container) int {
		return cmp.Or(cmp.Compare(a.CPUs.First(), b.CPUs.First()), cmp.Compare(a.Name(), b.Name()))
	})
}

// numaNodesOf are the numbers of the NUMA nodes of some CPUs, ascending, as far as they are known.
func numaNodesOf(set cpus.Set, t *topology.Topology) []int {
	nodes := []int{}
	for _, cpu := range set.IDs() {
		if node := t.NUMANodeOf(cpu); node >= 0 && !slices.Contains(nodes, node) {
			nodes = append(nodes, node)
		}
	}
	slices.Sort(nodes)
	return nodes
}
