// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubeletconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const memoryResource = "memory"

// checkKubelet repeats those checks of the kubelet that a plan can violate. The kubelet's own code is run on rendered configurations in test/kubelet.
func checkKubelet(configuration *kubeletv1beta1.KubeletConfiguration) error {
	return errors.Join(
		checkPolicies(configuration),
		checkPolicyOptions(configuration),
		checkReservedCPUs(configuration),
		checkReservedMemory(configuration),
	)
}

// checkPolicies compares policy names with those that the kubelet on Linux knows. "" is the kubelet's default.
func checkPolicies(configuration *kubeletv1beta1.KubeletConfiguration) error {
	return errors.Join(
		oneOf("cpuManagerPolicy", configuration.CPUManagerPolicy, "none", "static"),
		oneOf("memoryManagerPolicy", configuration.MemoryManagerPolicy,
			kubeletv1beta1.NoneMemoryManagerPolicy, kubeletv1beta1.StaticMemoryManagerPolicy),
		oneOf("topologyManagerPolicy", configuration.TopologyManagerPolicy,
			kubeletv1beta1.NoneTopologyManagerPolicy, kubeletv1beta1.BestEffortTopologyManagerPolicy,
			kubeletv1beta1.RestrictedTopologyManagerPolicy, kubeletv1beta1.SingleNumaNodeTopologyManagerPolicy),
		oneOf("topologyManagerScope", configuration.TopologyManagerScope,
			kubeletv1beta1.ContainerTopologyManagerScope, kubeletv1beta1.PodTopologyManagerScope),
	)
}

func oneOf(field, value string, known ...string) error {
	if value == "" || slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s.%s is %q; the kubelet knows %s", Kind, field, value, strings.Join(known, ", "))
}

// checkPolicyOptions refuses options without their policy and options that the kubelet's default feature gates do
// not allow (pkg/kubelet/cm/cpumanager and topologymanager, policy_options.go).
func checkPolicyOptions(configuration *kubeletv1beta1.KubeletConfiguration) error {
	problems := []error{
		knownOptions("cpuManagerPolicyOptions", configuration.CPUManagerPolicyOptions,
			"distribute-cpus-across-numa", "full-pcpus-only", "prefer-align-cpus-by-uncorecache", "strict-cpu-reservation"),
		knownOptions("topologyManagerPolicyOptions", configuration.TopologyManagerPolicyOptions,
			"max-allowable-numa-nodes", "prefer-closest-numa-nodes"),
	}
	if len(configuration.CPUManagerPolicyOptions) > 0 && configuration.CPUManagerPolicy != "static" {
		problems = append(problems, fmt.Errorf("%s.cpuManagerPolicyOptions need cpuManagerPolicy static, not %q",
			Kind, configuration.CPUManagerPolicy))
	}
	return errors.Join(problems...)
}

func knownOptions(field string, options map[string]string, known ...string) error {
	problems := make([]error, 0, len(options))
	for _, option := range slices.Sorted(maps.Keys(options)) {
		problems = append(problems, oneOf(field, option, known...))
	}
	return errors.Join(problems...)
}

// checkReservedCPUs makes sure that the static CPU manager has CPUs that it may not give away: without any it
// refuses to start (pkg/kubelet/cm/cpumanager, NewManager).
func checkReservedCPUs(configuration *kubeletv1beta1.KubeletConfiguration) error {
	reserved, err := cpus.Parse(configuration.ReservedSystemCPUs)
	if err != nil {
		return fmt.Errorf("%s.reservedSystemCPUs: %w", Kind, err)
	}
	if configuration.CPUManagerPolicy == "static" && reserved.IsEmpty() {
		return fmt.Errorf("%s.reservedSystemCPUs is empty, but cpuManagerPolicy static needs reserved CPUs", Kind)
	}
	return nil
}

// checkReservedMemory repeats the rule with which the kubelet's memory manager starts or does not start
// (pkg/kubelet/cm/memorymanager, validateReservedMemory): for each type of memory, the reservations of the NUMA
// nodes add up to systemReserved + kubeReserved + evictionHard. systemReserved must be stated, because
// some platforms compute their own when it is not, and nothing adds up then.
func checkReservedMemory(configuration *kubeletv1beta1.KubeletConfiguration) error {
	if configuration.MemoryManagerPolicy != kubeletv1beta1.StaticMemoryManagerPolicy {
		return nil
	}
	want, err := nodeReservation(configuration)
	if err != nil {
		return err
	}
	reserved := map[string]resource.Quantity{}
	for _, reservation := range configuration.ReservedMemory {
		for name, quantity := range reservation.Limits {
			sum := reserved[string(name)]
			sum.Add(quantity)
			reserved[string(name)] = sum
		}
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		if name != memoryResource {
			problems = append(problems, fmt.Errorf("%s.reservedMemory reserves %s, of which nothing is reserved for "+
				"the node", Kind, name))
		}
	}
	if sum := reserved[memoryResource]; !sum.Equal(want) {
		problems = append(problems, fmt.Errorf("%s.reservedMemory adds up to %s over all NUMA nodes, but systemReserved "+
			"+ kubeReserved + evictionHard is %s; the kubelet would not start", Kind, sum.String(), want.String()))
	}
	return errors.Join(problems...)
}

// nodeReservation is the memory that the kubelet keeps from pods.
func nodeReservation(configuration *kubeletv1beta1.KubeletConfiguration) (resource.Quantity, error) {
	parts := []struct {
		field, text string
	}{
		{"systemReserved[memory]", configuration.SystemReserved[memoryResource]},
		{"kubeReserved[memory]", configuration.KubeReserved[memoryResource]},
		{"evictionHard[memory.available]", configuration.EvictionHard["memory.available"]},
	}
	var sum resource.Quantity
	for _, part := range parts {
		quantity, err := resource.ParseQuantity(part.text)
		if err != nil {
			return sum, fmt.Errorf("%s.%s is %q, but memoryManagerPolicy Static needs an amount of memory there: %w",
				Kind, part.field, part.text, err)
		}
		sum.Add(quantity)
	}
	return sum, nil
}
