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

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// startKubelet leaves the state files that a kubelet with the host's configuration writes when it
// starts without pods (pkg/kubelet/cm/cpumanager/state and memorymanager/state of kubernetes).
func (h *Host) startKubelet() error {
	config, err := h.kubeletConfig()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.WriteKubeletState(config)
}

// WriteKubeletState leaves the state files that a kubelet with this configuration writes when it starts without pods.
func (h *Host) WriteKubeletState(config kubeletv1beta1.KubeletConfiguration) error {
	online, err := h.onlineCPUs()
	if err != nil {
		return err
	}
	return errors.Join(
		h.writeState("cpu_manager_state", cpuManagerState(config.CPUManagerPolicy, online)),
		h.writeState("memory_manager_state", map[string]any{"policyName": orNone(config.MemoryManagerPolicy, "None"), "checksum": 0}),
	)
}

// AllocatableCPUs are those that the host's kubelet may give to one container alone: with the static policy all that are
// online and not reserved, else none (GetAllocatableCPUs in pkg/kubelet/cm/cpumanager of kubernetes).
func (h *Host) AllocatableCPUs() (cpus.Set, error) {
	config, err := h.kubeletConfig()
	if errors.Is(err, fs.ErrNotExist) || err == nil && config.CPUManagerPolicy != "static" {
		return cpus.Set{}, nil
	}
	if err != nil {
		return cpus.Set{}, err
	}
	text, err := h.onlineCPUs()
	if err != nil {
		return cpus.Set{}, err
	}
	online, err := cpus.Parse(text)
	if err != nil {
		return cpus.Set{}, fmt.Errorf("reading the online CPUs of host %s: %w", h.Name, err)
	}
	reserved, err := cpus.Parse(config.ReservedSystemCPUs)
	if err != nil {
		return cpus.Set{}, fmt.Errorf("the kubelet of host %s refuses reservedSystemCPUs: %w", h.Name, err)
	}
	return online.Difference(reserved), nil
}

func (h *Host) kubeletConfig() (kubeletv1beta1.KubeletConfiguration, error) {
	var config kubeletv1beta1.KubeletConfiguration
	text, err := os.ReadFile(filepath.Join(h.Dir, relative(kubeletConfigPath)))
	if err != nil {
		return config, fmt.Errorf("reading the kubelet configuration of host %s: %w", h.Name, err)
	}
	if config, err = ReadKubeletConfiguration(text); err != nil {
		return config, fmt.Errorf("the kubelet of host %s refuses its configuration: %w", h.Name, err)
	}
	return config, nil
}

// ReadKubeletConfiguration reads a configuration as a kubelet does.
func ReadKubeletConfiguration(text []byte) (kubeletv1beta1.KubeletConfiguration, error) {
	var config kubeletv1beta1.KubeletConfiguration
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		return config, fmt.Errorf("reading a KubeletConfiguration: %w", err)
	}
	return config, nil
}

func (h *Host) onlineCPUs() (string, error) {
	online, err := os.ReadFile(filepath.Join(h.Dir, "sys/devices/system/cpu/online"))
	if err != nil {
		return "", fmt.Errorf("reading the online CPUs of host %s: %w", h.Name, err)
	}
	return strings.TrimSpace(string(online)), nil
}

// cpuManagerState is the state of a CPU manager that has assigned nothing yet: the static policy then
// holds all online CPUs in the default set, the none policy holds an empty one.
func cpuManagerState(policy, online string) map[string]any {
	state := map[string]any{"policyName": orNone(policy, "none"), "defaultCpuSet": "", "checksum": 0}
	if policy == "static" {
		state["defaultCpuSet"] = online
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
