// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package coreos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// startKubelet leaves the state files that a kubelet with the host's configuration writes when it
// starts without pods (pkg/kubelet/cm/cpumanager/state and memorymanager/state of kubernetes).
func (h *Host) startKubelet() error {
	text, err := os.ReadFile(filepath.Join(h.Dir, relative(kubeletConfigPath)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the kubelet configuration of host %s: %w", h.Name, err)
	}
	var config kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return fmt.Errorf("the kubelet of host %s refuses its configuration: %w", h.Name, err)
	}
	online, err := os.ReadFile(filepath.Join(h.Dir, "sys/devices/system/cpu/online"))
	if err != nil {
		return fmt.Errorf("reading the online CPUs of host %s: %w", h.Name, err)
	}
	return errors.Join(
		h.writeState("cpu_manager_state", cpuManagerState(config.CPUManagerPolicy, string(online))),
		h.writeState("memory_manager_state", map[string]any{"policyName": orNone(config.MemoryManagerPolicy, "None"), "checksum": 0}),
	)
}

// cpuManagerState is the state of a CPU manager that has assigned nothing yet: the static policy then
// holds all online CPUs in the default set, the none policy holds an empty one.
func cpuManagerState(policy, online string) map[string]any {
	state := map[string]any{"policyName": orNone(policy, "none"), "defaultCpuSet": "", "checksum": 0}
	if policy == "static" {
		state["defaultCpuSet"] = strings.TrimSpace(online)
	}
	return state
}

func orNone(policy, none string) string {
	if policy == "" {
		return none
	}
	return policy
}

func (h *Host) writeState(name string, state map[string]any) error {
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("writing %s of host %s: %w", name, h.Name, err)
	}
	if err := hosttree.WriteSetting(h.Dir, "/var/lib/kubelet/"+name, string(text)); err != nil {
		return fmt.Errorf("writing %s of host %s: %w", name, h.Name, err)
	}
	return nil
}
