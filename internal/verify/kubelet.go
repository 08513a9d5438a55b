// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// kubeletChecks ask whether the kubelet hands out CPUs and memory as planned.
func kubeletChecks() []Check {
	both := []string{v1alpha1.ConditionApplied, v1alpha1.ConditionNUMAAligned}
	return []Check{
		{
			ID: "kubelet.cpu-manager", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement, Conditions: both,
			Title:   "The kubelet gives whole isolated CPUs to pods and keeps housekeeping CPUs to itself",
			Applies: "the plan sets a CPU manager policy",
			Why:     "Without the static policy every pod runs on every CPU.",
			Reads:   []string{"the kubelet's configuration file", fileOwners},
			Fix:     "Drain the node, bring the planned configuration to it (on OpenShift by the KubeletConfig of its machine config pool), remove /var/lib/kubelet/cpu_manager_state and restart the kubelet.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kubernetes: pkg/kubelet/cm/cpumanager (policy_static.go, state/checkpoint.go)",
			run:     cpuManagerIsPlanned,
		},
		{
			ID: "kubelet.topology-manager", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlacement, Conditions: both,
			Title:   "The kubelet aligns CPUs, memory and devices as planned",
			Applies: "the plan sets a topology manager policy",
			Why:     "A pod's CPUs, hugepages and NIC may end up on different NUMA nodes.",
			Reads:   []string{"the kubelet's configuration file"},
			Fix:     "Bring the planned configuration to the node (on OpenShift by the KubeletConfig of its machine config pool) and restart the kubelet.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kubernetes: pkg/kubelet/cm/topologymanager",
			run:     topologyManagerIsPlanned,
		},
		{
			ID: "kubelet.memory-manager", Severity: v1alpha1.SeverityHigh, Impact: ImpactPlacement, Conditions: []string{v1alpha1.ConditionNUMAAligned},
			Title:   "The kubelet reserves memory and hugepages per NUMA node as planned",
			Applies: "the plan sets a memory manager policy",
			Why:     "A pod's memory may come from another NUMA node than its CPUs.",
			Reads:   []string{"the kubelet's configuration file", "/var/lib/kubelet/memory_manager_state"},
			Fix:     "Drain the node, bring the planned configuration to it (on OpenShift by the KubeletConfig of its machine config pool), remove /var/lib/kubelet/memory_manager_state and restart the kubelet.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kubernetes: pkg/kubelet/cm/memorymanager (policy_static.go, state/checkpoint.go)",
			run:     memoryManagerIsPlanned,
		},
	}
}

// kubeletSettings are the fields of KubeletConfiguration (kubelet.config.k8s.io/v1beta1) that are judged. The type of that package
// would link Prometheus' client into every program that judges.
type kubeletSettings struct {
	CPUManagerPolicy             string              `json:"cpuManagerPolicy"`
	CPUManagerPolicyOptions      map[string]string   `json:"cpuManagerPolicyOptions"`
	ReservedSystemCPUs           string              `json:"reservedSystemCPUs"`
	TopologyManagerPolicy        string              `json:"topologyManagerPolicy"`
	TopologyManagerScope         string              `json:"topologyManagerScope"`
	TopologyManagerPolicyOptions map[string]string   `json:"topologyManagerPolicyOptions"`
	MemoryManagerPolicy          string              `json:"memoryManagerPolicy"`
	ReservedMemory               []memoryReservation `json:"reservedMemory"`
}

// memoryReservation is what the kubelet keeps from pods on one NUMA node.
type memoryReservation struct {
	NumaNode int32                        `json:"numaNode"`
	Limits   map[string]resource.Quantity `json:"limits"`
}

// kubeletConfiguration reads the kubelet's configuration file, YAML or JSON.
func (s *state) kubeletConfiguration() host.Fact[*kubeletSettings] {
	return parseSetting(s.facts.Kubelet.Config, func(text string) (*kubeletSettings, error) {
		var config kubeletSettings
		if err := yaml.Unmarshal([]byte(text), &config); err != nil {
			return nil, fmt.Errorf("not a KubeletConfiguration: %w", err)
		}
		return &config, nil
	})
}

// inConfiguration judges the kubelet's configuration.
func (s *state) inConfiguration(expected string, rule func(*kubeletSettings) verdict) verdict {
	return judge(s.kubeletConfiguration(), expected, rule)
}

// field compares one field of the configuration; an empty planned value is not compared.
func field(name, found, want string) verdict {
	if want == "" {
		return notApplicable()
	}
	if strings.EqualFold(found, want) {
		return passed(name + " " + found)
	}
	return failed(fmt.Sprintf("the kubelet's %s is %s, not %s", name, orNone(found), want), name+" "+orNone(found), name+" "+want)
}

// options compares policy options: every planned one must be there with its value.
func options(name string, found, want map[string]string) verdict {
	verdicts := make([]verdict, 0, len(want))
	for _, option := range slices.Sorted(maps.Keys(want)) {
		verdicts = append(verdicts, field(name+"."+option, found[option], want[option]))
	}
	return worst(verdicts...)
}

func cpuManagerIsPlanned(s *state) verdict {
	want := s.plan.Kubelet
	if want.CPUManagerPolicy == "" {
		return notApplicable()
	}
	configured := s.inConfiguration("cpuManagerPolicy "+want.CPUManagerPolicy, func(config *kubeletSettings) verdict {
		return worst(
			field("cpuManagerPolicy", orDefault(config.CPUManagerPolicy, "none"), want.CPUManagerPolicy),
			options("cpuManagerPolicyOptions", config.CPUManagerPolicyOptions, want.CPUManagerPolicyOptions),
			reservedCPUs(config.ReservedSystemCPUs, want.ReservedSystemCPUs),
		)
	})
	if want.CPUManagerPolicy != "static" {
		return configured
	}
	return worst(configured, judge(s.cpuManagerState(), "policy static", s.cpuManagerStateIsPlanned))
}

func orDefault(value, standard string) string {
	if value == "" {
		return standard
	}
	return value
}

// reservedCPUs compares CPU lists by meaning.
func reservedCPUs(found, want string) verdict {
	if want == "" {
		return notApplicable()
	}
	return field("reservedSystemCPUs", cpus.Normal(found), cpus.Normal(want))
}

// cpuManagerState is the checkpoint of the kubelet's CPU manager
// (pkg/kubelet/cm/cpumanager/state/checkpoint.go): exclusive CPUs by pod and container.
type cpuManagerState struct {
	PolicyName    string                       `json:"policyName"`
	DefaultCPUSet string                       `json:"defaultCpuSet"`
	Entries       map[string]map[string]string `json:"entries"`
}

func (s *state) cpuManagerState() host.Fact[cpuManagerState] {
	return cpuManagerStateOf(s.facts.Kubelet.CPUManagerState)
}

func cpuManagerStateOf(text host.Fact[string]) host.Fact[cpuManagerState] {
	return parseSetting(text, parseJSON[cpuManagerState])
}

func parseJSON[T any](text string) (T, error) {
	var value T
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return value, fmt.Errorf("not the kubelet's state: %w", err)
	}
	return value, nil
}

// cpuManagerStateIsPlanned judges what the running kubelet wrote: its policy, and that exclusive CPUs
// are isolated ones.
func (s *state) cpuManagerStateIsPlanned(state cpuManagerState) verdict {
	if v := field("CPU manager state policy", state.PolicyName, "static"); v.outcome != v1alpha1.OutcomePassed {
		return v
	}
	exclusive := s.plan.CPUs.Isolated.Difference(s.plan.CPUs.DataPlane)
	verdicts := []verdict{s.sharedPoolIsPlanned(state)}
	for _, pod := range slices.Sorted(maps.Keys(state.Entries)) {
		for _, container := range slices.Sorted(maps.Keys(state.Entries[pod])) {
			owner := fmt.Sprintf("container %s of pod %s", container, pod)
			verdicts = append(verdicts, ownedCPUs(owner, state.Entries[pod][container], exclusive).about(finding.OfContainers(pod+"/"+container)))
		}
	}
	return worst(verdicts...)
}

// sharedPoolIsPlanned wants the kubelet to know every isolated CPU, as shared or as exclusive: a state
// file of another partition lacks some, or has more.
func (s *state) sharedPoolIsPlanned(state cpuManagerState) verdict {
	shared, err := cpus.Parse(state.DefaultCPUSet)
	if err != nil {
		return unknown(fileOwners, err.Error(), "")
	}
	known := shared
	for _, containers := range state.Entries {
		for _, list := range containers {
			// What is no list of CPUs is reported of the container that has it.
			owned, _ := cpus.Parse(list)
			known = known.Union(owned)
		}
	}
	isolated := s.plan.CPUs.Isolated.Difference(s.plan.CPUs.DataPlane)
	if missing := isolated.Difference(known); !missing.IsEmpty() {
		return failed("the kubelet does not know isolated "+missing.Name(), "default set "+state.DefaultCPUSet, "all of "+isolated.String()).
			about(finding.OfCPUs(missing))
	}
	return passed("default set " + state.DefaultCPUSet)
}

// ownedCPUs judges the exclusive CPUs of one container.
func ownedCPUs(owner, list string, exclusive cpus.Set) verdict {
	owned, err := cpus.Parse(list)
	if err != nil {
		return unknown(fileOwners, err.Error(), "within "+exclusive.String())
	}
	if wrong := owned.Difference(exclusive); !wrong.IsEmpty() {
		return failed(fmt.Sprintf("%s owns %s, which %s not isolated for pods", owner, wrong.Name(), isOrAre(wrong)),
			owned.String(), "within "+exclusive.String()).about(finding.OfCPUs(wrong))
	}
	return passed("")
}

func topologyManagerIsPlanned(s *state) verdict {
	want := s.plan.Kubelet
	if want.TopologyManagerPolicy == "" {
		return notApplicable()
	}
	return s.inConfiguration("topologyManagerPolicy "+want.TopologyManagerPolicy, func(config *kubeletSettings) verdict {
		return worst(
			field("topologyManagerPolicy", orDefault(config.TopologyManagerPolicy, "none"), want.TopologyManagerPolicy),
			field("topologyManagerScope", orDefault(config.TopologyManagerScope, "container"), want.TopologyManagerScope),
			options("topologyManagerPolicyOptions", config.TopologyManagerPolicyOptions, want.TopologyManagerPolicyOptions),
		)
	})
}

func memoryManagerIsPlanned(s *state) verdict {
	want := s.plan.Kubelet
	if want.MemoryManagerPolicy == "" {
		return notApplicable()
	}
	configured := s.inConfiguration("memoryManagerPolicy "+want.MemoryManagerPolicy, func(config *kubeletSettings) verdict {
		return worst(
			field("memoryManagerPolicy", orDefault(config.MemoryManagerPolicy, "None"), want.MemoryManagerPolicy),
			s.memoryIsReserved(config.ReservedMemory),
		)
	})
	if !strings.EqualFold(want.MemoryManagerPolicy, "Static") {
		return configured
	}
	running := parseSetting(s.facts.Kubelet.MemoryManagerState, parseJSON[struct {
		PolicyName string `json:"policyName"`
	}])
	return worst(configured, judge(running, "policy Static", func(state struct {
		PolicyName string `json:"policyName"`
	}) verdict {
		return field("memory manager state policy", state.PolicyName, "Static")
	}))
}

// memoryIsReserved compares the reservations per NUMA node and resource by amount.
func (s *state) memoryIsReserved(reserved []memoryReservation) verdict {
	found := map[string]resource.Quantity{}
	for _, reservation := range reserved {
		for name, amount := range reservation.Limits {
			found[fmt.Sprintf("reservedMemory of NUMA node %d (%s)", reservation.NumaNode, name)] = amount
		}
	}
	var verdicts []verdict
	for _, reservation := range s.plan.Kubelet.ReservedMemory {
		for _, name := range slices.Sorted(maps.Keys(reservation.Limits)) {
			what := fmt.Sprintf("reservedMemory of NUMA node %d (%s)", reservation.NUMANode, name)
			verdicts = append(verdicts, amount(what, found[what], reservation.Limits[name]).about(finding.OfNUMANodes(int(reservation.NUMANode))))
		}
	}
	return worst(append(verdicts, s.otherReservations(reserved)...)...)
}

// otherReservations are what the kubelet reserves and the plan does not know, such as hugepages: pods cannot have them.
func (s *state) otherReservations(reserved []memoryReservation) []verdict {
	planned := map[int32]map[string]string{}
	for _, reservation := range s.plan.Kubelet.ReservedMemory {
		planned[reservation.NUMANode] = reservation.Limits
	}
	var verdicts []verdict
	for _, reservation := range reserved {
		for name, found := range reservation.Limits {
			if _, known := planned[reservation.NumaNode][name]; known || found.IsZero() {
				continue
			}
			verdicts = append(verdicts, failed(
				fmt.Sprintf("the kubelet reserves %s of %s on NUMA node %d, which the plan does without", found.String(), name, reservation.NumaNode),
				found.String(), "none").about(finding.OfNUMANodes(int(reservation.NumaNode))))
		}
	}
	return sorted(verdicts)
}

// amount compares two quantities; an absent one is zero.
func amount(what string, found resource.Quantity, want string) verdict {
	planned, err := resource.ParseQuantity(want)
	if err != nil || found.Cmp(planned) == 0 {
		return passed(what + " " + found.String())
	}
	return failed(fmt.Sprintf("the kubelet's %s is %s, not %s", what, found.String(), want), found.String(), want)
}
