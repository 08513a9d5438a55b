// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// fieldValue is one field of the spec and its value as text; "" when the field does not apply.
type fieldValue struct {
	field, value string
}

// Settings lists the settings in force, ascending by field, at most 64. Fields that do not apply, such as
// the CPU lists of a derived partition, are left out.
func (e EffectiveSpec) Settings() []v1alpha1.EffectiveSetting {
	all := slices.Concat(e.cpuSettings(), e.memorySettings(), e.tuningSettings(), e.platformSettings())
	var settings []v1alpha1.EffectiveSetting
	for _, s := range all {
		if s.value == "" {
			continue
		}
		settings = append(settings, v1alpha1.EffectiveSetting{
			Field:  s.field,
			Value:  shorten.Sentence(s.value, v1alpha1.MaxSettingValueLength),
			Origin: settingOrigin(e.Origin(s.field).Source),
		})
	}
	slices.SortFunc(settings, func(a, b v1alpha1.EffectiveSetting) int { return cmp.Compare(a.Field, b.Field) })
	return settings
}

func settingOrigin(source Source) v1alpha1.SettingOrigin {
	switch source {
	case FromField:
		return v1alpha1.OriginProfile
	case FromPreset:
		return v1alpha1.OriginPreset
	default:
		return v1alpha1.OriginDefault
	}
}

func (e EffectiveSpec) cpuSettings() []fieldValue {
	c := e.Spec.CPUs
	settings := []fieldValue{
		{"spec.cpus.partition", string(c.Partition)},
		{"spec.cpus.simultaneousMultithreading", string(c.SimultaneousMultithreading)},
		{"spec.cpus.isolation", string(c.Isolation)},
		{"spec.cpus.tick", string(c.Tick)},
	}
	if d := c.Derived; d != nil {
		settings = append(settings,
			fieldValue{"spec.cpus.derived.housekeepingCores", housekeepingCoresText(d.HousekeepingCores)},
			fieldValue{"spec.cpus.derived.spread", string(d.Spread)},
			fieldValue{"spec.cpus.derived.keepNearBypassNICs", string(d.KeepNearBypassNICs)},
			fieldValue{"spec.cpus.derived.sharedCaches", string(d.SharedCaches)})
	}
	if x := c.Explicit; x != nil {
		settings = append(settings,
			fieldValue{"spec.cpus.explicit.housekeeping", string(x.Housekeeping)},
			fieldValue{"spec.cpus.explicit.isolated", string(x.Isolated)},
			fieldValue{"spec.cpus.explicit.offline", string(x.Offline)},
			fieldValue{"spec.cpus.explicit.shared", string(x.Shared)},
			fieldValue{"spec.cpus.explicit.dataPlane", string(x.DataPlane)},
			fieldValue{"spec.cpus.explicit.dataPlaneLoadBalancing", string(x.DataPlaneLoadBalancing)})
	}
	return settings
}

func housekeepingCoresText(cores int32) string {
	if cores == 0 {
		return "1 per NUMA node, at least 2 in all on nodes with more than 4 cores"
	}
	return strconv.Itoa(int(cores))
}

func (e EffectiveSpec) memorySettings() []fieldValue {
	m, n, i := e.Spec.Memory, e.Spec.NUMA, e.Spec.Interrupts
	return []fieldValue{
		{"spec.memory.defaultHugepageSize", string(m.DefaultHugepageSize)},
		{"spec.memory.hugepages", joined(m.Hugepages, describeReservation)},
		{"spec.memory.kernelPageSize", string(m.KernelPageSize)},
		{"spec.memory.transparentHugepages", string(m.TransparentHugepages)},
		{"spec.memory.samePageMerging", string(m.SamePageMerging)},
		{"spec.interrupts.placement", string(i.Placement)},
		{"spec.interrupts.balancer", string(i.Balancer)},
		{"spec.numa.topologyPolicy", string(n.TopologyPolicy)},
		{"spec.numa.scope", string(n.Scope)},
		{"spec.numa.automaticBalancing", string(n.AutomaticBalancing)},
	}
}

func describeReservation(r v1alpha1.HugepageReservation) string {
	if r.NUMANode != nil {
		return fmt.Sprintf("%d x %s on NUMA node %d", r.Count, r.Size, *r.NUMANode)
	}
	return fmt.Sprintf("%d x %s %s", r.Count, r.Size, r.Placement)
}

func (e EffectiveSpec) tuningSettings() []fieldValue {
	p, k, n := e.Spec.Power, e.Spec.Kernel, e.Spec.Network
	iommu := string(k.IOMMU)
	if iommu == "" {
		iommu = "Passthrough on amd64, Kept on arm64"
	}
	return []fieldValue{
		{"spec.power.preset", string(p.Preset)},
		{"spec.power.idleStates", string(p.IdleStates)},
		{"spec.power.frequencyDriver", string(p.FrequencyDriver)},
		{"spec.power.governor", string(p.Governor)},
		{"spec.power.turbo", string(p.Turbo)},
		{"spec.power.isolatedMaximumFrequencyKilohertz", number(p.IsolatedMaximumFrequencyKilohertz)},
		{"spec.power.housekeepingMaximumFrequencyKilohertz", number(p.HousekeepingMaximumFrequencyKilohertz)},
		{"spec.kernel.type", string(k.Type)},
		{"spec.kernel.machineChecks", string(k.MachineChecks)},
		{"spec.kernel.watchdogs", string(k.Watchdogs)},
		{"spec.kernel.clocksource", string(k.Clocksource)},
		{"spec.kernel.iommu", iommu},
		{"spec.kernel.timerMigration", string(k.TimerMigration)},
		{"spec.kernel.realTimeThrottling", string(k.RealTimeThrottling)},
		{"spec.kernel.additionalArguments", joined(k.AdditionalArguments, text)},
		{"spec.network.nics", joined(n.NICs, describeSelector)},
		{"spec.network.queues", string(n.Queues)},
		{"spec.network.receivePacketSteering", string(n.ReceivePacketSteering)},
	}
}

// describeSelector writes what a selector asks for, such as "ens*f0 1924:0b03 sfc".
func describeSelector(s v1alpha1.NICSelector) string {
	vendor := string(s.Vendor)
	if len(s.Devices) > 0 {
		vendor += ":" + listed(s.Devices, "|")
	}
	parts := []string{listed(s.Interfaces, "|"), vendor, listed(s.Drivers, "|"), listed(s.PCIAddresses, "|")}
	if len(s.NUMANodes) > 0 {
		nodes := make([]string, len(s.NUMANodes))
		for i, node := range s.NUMANodes {
			nodes[i] = strconv.Itoa(int(node))
		}
		parts = append(parts, "NUMA node "+strings.Join(nodes, "|"))
	}
	if s.Role == v1alpha1.RoleVirtualFunction {
		parts = append(parts, "virtual functions")
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " ")
}

func listed[T ~string](list []T, separator string) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = string(item)
	}
	return strings.Join(texts, separator)
}

func (e EffectiveSpec) platformSettings() []fieldValue {
	k, s, v, pools := e.Spec.Kubelet, e.Spec.System, e.Spec.Verification, e.Spec.Pools
	budget := ptr.Deref(v.Budget, v1alpha1.JitterBudget{})
	return []fieldValue{
		{"spec.pools.management", string(pools.Management)},
		{"spec.pools.maximumUnavailableNodes", number(pools.MaximumUnavailableNodes)},
		{"spec.rollout.state", string(e.Spec.Rollout.State)},
		{"spec.rollout.bootFallback", string(e.Spec.Rollout.BootFallback)},
		{"spec.acceptedRisks", joined(e.Spec.AcceptedRisks, func(r v1alpha1.AcceptedRisk) string { return r.Setting })},
		{"spec.kubelet.resourceManagement", string(k.ResourceManagement)},
		{"spec.kubelet.fullCores", string(k.FullCores)},
		{"spec.kubelet.systemReservedMemory", string(k.SystemReservedMemory)},
		{"spec.kubelet.kubeReservedMemory", string(k.KubeReservedMemory)},
		{"spec.kubelet.evictionHardMemory", string(k.EvictionHardMemory)},
		{"spec.kubelet.additionalConfiguration", k.AdditionalConfiguration},
		{"spec.containerRuntime.execPlacement", string(e.Spec.ContainerRuntime.ExecPlacement)},
		{"spec.containerRuntime.runtimeClassName", e.Spec.ContainerRuntime.RuntimeClassName},
		{"spec.system.stopServices", joined(s.StopServices, text)},
		{"spec.system.unloadModules", joined(s.UnloadModules, text)},
		{"spec.system.packetFilter", string(s.PacketFilter)},
		{"spec.system.kernelParameters", joined(s.KernelParameters, func(p v1alpha1.KernelParameter) string {
			return p.Name + "=" + p.Value
		})},
		{"spec.verification.gate", string(v.Gate)},
		{"spec.verification.repair", string(v.Repair)},
		{"spec.verification.failOn", string(v.FailOn)},
		{"spec.verification.waivedChecks", joined(v.WaivedChecks, func(w v1alpha1.WaivedCheck) string {
			return string(w.Check)
		})},
		{"spec.verification.budget.maximumInterruptionMicroseconds", number(budget.MaximumInterruptionMicroseconds)},
		{"spec.verification.budget.stolenPartsPerMillion", number(budget.StolenPartsPerMillion)},
	}
}

func text[T ~string](value T) string { return string(value) }

// number is "" for 0, which stands for an omitted number throughout the API.
func number(value int32) string {
	if value == 0 {
		return ""
	}
	return strconv.Itoa(int(value))
}

func joined[T any](list []T, describe func(T) string) string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = describe(item)
	}
	return strings.Join(texts, ", ")
}
