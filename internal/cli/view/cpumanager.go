// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"encoding/json"
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// OfCPUManagerState is the view of the containers with exclusive CPUs in the state file of the kubelet's CPU manager,
// /var/lib/kubelet/cpu_manager_state (kubelet: pkg/kubelet/cm/cpumanager/state, CPUManagerCheckpoint): entries map the
// UID of a pod and the name of a container to a CPU list.
func OfCPUManagerState(text string, t *topology.Topology) ([]NodeContainer, error) {
	var state struct {
		Entries map[string]map[string]string `json:"entries"`
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return nil, fmt.Errorf("reading the state of the CPU manager: %w", err)
	}
	view := []NodeContainer{}
	for uid, containers := range state.Entries {
		for name, list := range containers {
			set, err := cpus.Parse(list)
			if err != nil {
				return nil, fmt.Errorf("CPUs of container %q in the state of the CPU manager: %w", name, err)
			}
			view = append(view, NodeContainer{UID: known(uid), Container: name, CPUs: set, NUMANodes: numaNodesOf(set, t)})
		}
	}
	sortContainers(view)
	return view, nil
}
