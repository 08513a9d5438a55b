// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package kubelet puts rendered kubelet configurations before the kubelet's own code: its strict decoder, its
// validation, and its topology, CPU and memory managers as they are made for a given machine when a kubelet starts. A
// configuration that passes is one with which a kubelet of this version comes up there.
package kubelet

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/go-logr/logr"
	cadvisorapi "github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	cputopology "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/utils/cpuset"
)

// Judge lets the kubelet's code take the configuration on the machine, step by step as a starting kubelet does, and
// returns the CPUs that its CPU manager gives to pods: all of them when the manager's policy is none. The error is the
// kubelet's own. The directory holds the managers' state files.
func Judge(configuration []byte, machine *cadvisorapi.MachineInfo, directory string) (cpuset.CPUSet, error) {
	decoded, err := decode(configuration)
	if err != nil {
		return cpuset.CPUSet{}, err
	}
	// The validation also looks at the cgroups of the machine that it runs on, which is not the node.
	decoded.FailCgroupV1 = false
	if err := validation.ValidateKubeletConfiguration(decoded, utilfeature.DefaultFeatureGate); err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("validating: %w", err)
	}
	reservation, reserved, err := reservations(decoded, machine)
	if err != nil {
		return cpuset.CPUSet{}, err
	}
	logger := logr.Discard()
	affinity, err := topologymanager.NewManager(logger, machine.Topology, decoded.TopologyManagerPolicy,
		decoded.TopologyManagerScope, decoded.TopologyManagerPolicyOptions)
	if err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("creating the topology manager: %w", err)
	}
	if _, err := cpumanager.NewManager(logger, decoded.CPUManagerPolicy, decoded.CPUManagerPolicyOptions,
		decoded.CPUManagerReconcilePeriod.Duration, machine, reserved, reservation, directory, affinity); err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("creating the CPU manager: %w", err)
	}
	if _, err := memorymanager.NewManager(logger, decoded.MemoryManagerPolicy, machine, reservation,
		decoded.ReservedMemory, directory, affinity); err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("creating the memory manager: %w", err)
	}
	return allocatable(decoded, machine, reserved, affinity)
}

// decode is strict. The kubelet itself only warns of unknown fields in v1beta1.
func decode(configuration []byte) (*kubeletconfig.KubeletConfiguration, error) {
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return nil, fmt.Errorf("making the kubelet's codecs: %w", err)
	}
	object, kind, err := codecs.UniversalDecoder().Decode(configuration, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	decoded, ok := object.(*kubeletconfig.KubeletConfiguration)
	if !ok {
		return nil, fmt.Errorf("decoding: %s is no KubeletConfiguration", kind)
	}
	return decoded, nil
}

// reservations are what the kubelet keeps from pods, and the CPUs among it, computed as it does on start
// (cmd/kubelet/app, run; pkg/kubelet/cm, GetNodeAllocatableReservation): reservedSystemCPUs replaces any other
// reservation of CPUs and must be online.
func reservations(c *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo) (corev1.ResourceList, cpuset.CPUSet, error) {
	reserved, err := cpuset.Parse(c.ReservedSystemCPUs)
	if err != nil {
		return nil, reserved, fmt.Errorf("reservedSystemCPUs: %w", err)
	}
	if online := onlineCPUs(machine); !reserved.IsSubsetOf(online) {
		return nil, reserved, fmt.Errorf("reservedSystemCPUs %s is not a subset of the online CPUs %s", reserved, online)
	}
	cpus, err := sum(c.SystemReserved["cpu"], c.KubeReserved["cpu"])
	if reserved.Size() > 0 {
		cpus, err = sum(strconv.Itoa(reserved.Size()))
	}
	if err != nil {
		return nil, reserved, fmt.Errorf("reserved CPUs: %w", err)
	}
	memory, err := sum(c.SystemReserved["memory"], c.KubeReserved["memory"])
	if err != nil {
		return nil, reserved, fmt.Errorf("reserved memory: %w", err)
	}
	threshold, err := memoryThreshold(c, machine)
	if err != nil {
		return nil, reserved, err
	}
	memory.Add(threshold)
	return corev1.ResourceList{corev1.ResourceCPU: cpus, corev1.ResourceMemory: memory}, reserved, nil
}

func sum(texts ...string) (resource.Quantity, error) {
	var total resource.Quantity
	for _, text := range texts {
		if text == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return total, fmt.Errorf("%q: %w", text, err)
		}
		total.Add(quantity)
	}
	return total, nil
}

// memoryThreshold is the free memory below which the kubelet evicts.
func memoryThreshold(c *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo) (resource.Quantity, error) {
	thresholds, err := eviction.ParseThresholdConfig(nil, c.EvictionHard, nil, nil, nil)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("evictionHard: %w", err)
	}
	capacity := resource.NewQuantity(int64(machine.MemoryCapacity), resource.BinarySI)
	for _, threshold := range thresholds {
		if threshold.Signal == evictionapi.SignalMemoryAvailable {
			return *evictionapi.GetThresholdQuantity(threshold.Value, capacity), nil
		}
	}
	return resource.Quantity{}, nil
}

// allocatable starts the CPU manager's static policy on an empty state and asks it what it has to give.
func allocatable(
	c *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo, reserved cpuset.CPUSet, affinity topologymanager.Store,
) (cpuset.CPUSet, error) {
	if c.CPUManagerPolicy != string(cpumanager.PolicyStatic) {
		return onlineCPUs(machine), nil
	}
	logger := logr.Discard()
	topology, err := cputopology.Discover(logger, machine)
	if err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("discovering the CPU topology: %w", err)
	}
	policy, err := cpumanager.NewStaticPolicy(logger, topology, reserved.Size(), reserved, affinity, c.CPUManagerPolicyOptions)
	if err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("creating the static policy: %w", err)
	}
	memory := state.NewMemoryState(logger)
	if err := policy.Start(logger, memory); err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("starting the static policy: %w", err)
	}
	cpus := policy.GetAllocatableCPUs(memory)
	if cpus.IsEmpty() {
		return cpus, errors.New("the static policy has no CPU for pods")
	}
	return cpus, nil
}

func onlineCPUs(machine *cadvisorapi.MachineInfo) cpuset.CPUSet {
	var ids []int
	for _, node := range machine.Topology {
		for _, core := range node.Cores {
			ids = append(ids, core.Threads...)
		}
	}
	return cpuset.New(ids...)
}
