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

	"github.com/lowlatency-dev/lowlatency-operator/internal/kubeletfiles"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// checkKubelet repeats those checks of the kubelet that a plan can violate. The kubelet's own code is run on rendered configurations in test/kubelet.
func checkKubelet(configuration *kubeletv1beta1.KubeletConfiguration) error {
	return errors.Join(
		checkPolicies(configuration),
		checkPolicyOptions(configuration),
		checkReservedCPUs(configuration),
		checkReservedMemory(configuration),
	)
}

// checkTogether repeats those that planned values and what others say in their own files can violate only together.
func checkTogether(configuration *kubeletv1beta1.KubeletConfiguration) error {
	return errors.Join(checkReservedCgroups(configuration), checkGates(configuration), checkReservationLimits(configuration))
}

// checkReservedCgroups refuses control groups for what is reserved beside reservedSystemCPUs, which the kubelet does, and the enforcement of
// reservations that needs such a control group (pkg/kubelet/apis/config/validation, ValidateKubeletConfiguration).
func checkReservedCgroups(configuration *kubeletv1beta1.KubeletConfiguration) error {
	var problems []error
	for _, part := range []struct{ field, group, enforcement string }{
		{"systemReservedCgroup", configuration.SystemReservedCgroup, "system-reserved"},
		{"kubeReservedCgroup", configuration.KubeReservedCgroup, "kube-reserved"},
	} {
		if part.group != "" && configuration.ReservedSystemCPUs != "" {
			problems = append(problems, fmt.Errorf("%s.%s is %q, which the kubelet refuses beside reservedSystemCPUs", Kind, part.field, part.group))
		}
		for _, enforced := range configuration.EnforceNodeAllocatable {
			if part.group == "" && (enforced == part.enforcement || enforced == part.enforcement+"-compressible") {
				problems = append(problems, fmt.Errorf("%s.enforceNodeAllocatable has %s, which needs %s, and the kubelet refuses that beside "+
					"reservedSystemCPUs", Kind, enforced, part.field))
			}
		}
	}
	return errors.Join(problems...)
}

// checkGates refuses options whose feature gate is off (cmd/kubelet/app/server.go, run; policy_options.go of the CPU manager). What is said of
// gates that a release has no more is for the kubelet to refuse.
func checkGates(configuration *kubeletv1beta1.KubeletConfiguration) error {
	var problems []error
	refuse := func(field, gate string, isGiven bool) {
		if enabled, set := configuration.FeatureGates[gate]; isGiven && set && !enabled {
			problems = append(problems, fmt.Errorf("%s.%s needs the feature gate %s, which is off", Kind, field, gate))
		}
	}
	_, acrossNUMA := configuration.CPUManagerPolicyOptions["distribute-cpus-across-numa"]
	refuse("cpuManagerPolicyOptions", "CPUManagerPolicyOptions", len(configuration.CPUManagerPolicyOptions) > 0)
	refuse("cpuManagerPolicyOptions[distribute-cpus-across-numa]", "CPUManagerPolicyBetaOptions", acrossNUMA)
	refuse("topologyManagerPolicyOptions", "TopologyManagerPolicyOptions", len(configuration.TopologyManagerPolicyOptions) > 0)
	return errors.Join(problems...)
}

// checkReservationLimits refuses limits of a NUMA node that are nothing, or are there twice (pkg/kubelet/apis/config/validation,
// validateReservedMemoryConfiguration), whatever the policy of the memory manager is.
func checkReservationLimits(configuration *kubeletv1beta1.KubeletConfiguration) error {
	var problems []error
	seen := map[string]bool{}
	for _, reservation := range configuration.ReservedMemory {
		for name, quantity := range reservation.Limits {
			limit := fmt.Sprintf("%s of NUMA node %d", name, reservation.NumaNode)
			switch {
			case seen[limit]:
				problems = append(problems, fmt.Errorf("%s.reservedMemory has %s twice", Kind, limit))
			case quantity.IsZero():
				problems = append(problems, fmt.Errorf("%s.reservedMemory has nothing for %s", Kind, limit))
			}
			seen[limit] = true
		}
	}
	return errors.Join(problems...)
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

// checkReservedMemory holds the memory that is reserved of NUMA nodes against that of the node.
func checkReservedMemory(configuration *kubeletv1beta1.KubeletConfiguration) error {
	memory := kubeletfiles.Memory{
		Policy: configuration.MemoryManagerPolicy, SystemReserved: configuration.SystemReserved, KubeReserved: configuration.KubeReserved,
		EvictionHard: configuration.EvictionHard,
	}
	for _, reservation := range configuration.ReservedMemory {
		limits := make(map[string]resource.Quantity, len(reservation.Limits))
		for name, quantity := range reservation.Limits {
			limits[string(name)] = quantity
		}
		memory.ReservedMemory = append(memory.ReservedMemory, kubeletfiles.Reservation{NUMANode: reservation.NumaNode, Limits: limits})
	}
	return memory.Check()
}
