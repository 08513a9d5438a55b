// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// architectureAMD64 and architectureARM64 are architectures in Go's notation.
const (
	architectureAMD64 = "amd64"
	architectureARM64 = "arm64"
)

// EffectiveSpec is a profile's spec with every field filled in, and where each value came from.
type EffectiveSpec struct {
	// Spec has a value in every field for which the API documents a default or a preset. Two defaults
	// depend on the node and stay empty: spec.cpus.derived.housekeepingCores, whose default depends on the
	// number of cores, and spec.kernel.iommu when Architecture is "".
	Spec v1alpha1.LowLatencyNodeProfileSpec
	// Architecture is what architecture-dependent defaults were chosen for; "" when nodes differ.
	Architecture string

	origins map[string]Origin
}

// Effective fills in every field of the profile's spec: from the field itself, else from the preset that
// decides it, else from the default that the API's documentation states.
func Effective(profile *v1alpha1.LowLatencyNodeProfile, architecture string) EffectiveSpec {
	e := EffectiveSpec{
		Spec:         *profile.Spec.DeepCopy(),
		Architecture: architecture,
		origins:      map[string]Origin{},
	}
	e.fillPools()
	e.fillCPUs()
	e.fillMemory()
	e.fillNUMA()
	e.fillPower()
	e.fillKernel()
	e.fillPlatform()
	return e
}

// Origin says where the value of a field, such as spec.cpus.tick, came from.
func (e EffectiveSpec) Origin(field string) Origin {
	if origin, ok := e.origins[field]; ok {
		return origin
	}
	return Origin{Source: FromDefault, Detail: field}
}

// fill gives a field its default when the profile leaves it out, and notes which of both it was.
func fill[T comparable](e *EffectiveSpec, field string, value *T, fallback T) {
	fillFrom(e, field, value, fallback, Origin{Source: FromDefault, Detail: field})
}

// fillFrom is fill with an origin of its own for the fallback.
func fillFrom[T comparable](e *EffectiveSpec, field string, value *T, fallback T, origin Origin) {
	var unset T
	if *value != unset {
		origin = Origin{Source: FromField, Detail: field}
	} else {
		*value = fallback
	}
	e.origins[field] = origin
}

// note records the origin of a list, which has no default.
func note[T any](e *EffectiveSpec, field string, list []T) {
	if len(list) > 0 {
		e.origins[field] = Origin{Source: FromField, Detail: field}
	}
}

func (e *EffectiveSpec) fillPools() {
	fill(e, "spec.pools.management", &e.Spec.Pools.Management, v1alpha1.PoolsManaged)
	fill(e, "spec.pools.maximumUnavailableNodes", &e.Spec.Pools.MaximumUnavailableNodes, 0)
	fill(e, "spec.rollout.state", &e.Spec.Rollout.State, v1alpha1.RolloutActive)
	fill(e, "spec.rollout.bootFallback", &e.Spec.Rollout.BootFallback, v1alpha1.BootFallbackAutomatic)
	note(e, "spec.acceptedRisks", e.Spec.AcceptedRisks)
}

func (e *EffectiveSpec) fillCPUs() {
	c := &e.Spec.CPUs
	fill(e, "spec.cpus.partition", &c.Partition, v1alpha1.PartitionDerived)
	fill(e, "spec.cpus.simultaneousMultithreading", &c.SimultaneousMultithreading, v1alpha1.SMTKept)
	fill(e, "spec.cpus.isolation", &c.Isolation, v1alpha1.IsolationStatic)
	fill(e, "spec.cpus.tick", &c.Tick, v1alpha1.TickStopped)
	if c.Partition == v1alpha1.PartitionExplicit {
		e.fillExplicit()
		return
	}
	if c.Derived == nil {
		c.Derived = &v1alpha1.DerivedCPUs{}
	}
	d := c.Derived
	fill(e, "spec.cpus.derived.housekeepingCores", &d.HousekeepingCores, 0)
	fill(e, "spec.cpus.derived.spread", &d.Spread, v1alpha1.SpreadPerNUMANode)
	fill(e, "spec.cpus.derived.keepNearBypassNICs", &d.KeepNearBypassNICs, v1alpha1.NearNICNoPreference)
	fill(e, "spec.cpus.derived.sharedCaches", &d.SharedCaches, v1alpha1.CacheSharingAvoided)
}

func (e *EffectiveSpec) fillExplicit() {
	x := e.Spec.CPUs.Explicit
	if x == nil {
		return
	}
	for field, list := range map[string]*v1alpha1.CPUList{
		"housekeeping": &x.Housekeeping, "isolated": &x.Isolated, "offline": &x.Offline,
		"shared": &x.Shared, "dataPlane": &x.DataPlane,
	} {
		fill(e, "spec.cpus.explicit."+field, list, "")
	}
	if x.DataPlane != "" {
		fill(e, "spec.cpus.explicit.dataPlaneLoadBalancing", &x.DataPlaneLoadBalancing, v1alpha1.LoadBalancingKept)
	}
}

func (e *EffectiveSpec) fillMemory() {
	m := &e.Spec.Memory
	fill(e, "spec.memory.defaultHugepageSize", &m.DefaultHugepageSize, "")
	note(e, "spec.memory.hugepages", m.Hugepages)
	for i := range m.Hugepages {
		if m.Hugepages[i].NUMANode == nil && m.Hugepages[i].Placement == "" {
			m.Hugepages[i].Placement = v1alpha1.HugepagesSpread
		}
	}
	fill(e, "spec.memory.kernelPageSize", &m.KernelPageSize, v1alpha1.PageSize4Ki)
	fill(e, "spec.memory.transparentHugepages", &m.TransparentHugepages, v1alpha1.ActivityDisabled)
	fill(e, "spec.memory.samePageMerging", &m.SamePageMerging, v1alpha1.ActivityDisabled)
}

func (e *EffectiveSpec) fillNUMA() {
	i := &e.Spec.Interrupts
	fill(e, "spec.interrupts.placement", &i.Placement, v1alpha1.InterruptsHousekeeping)
	balancer := v1alpha1.BalancerRestricted
	if i.Placement == v1alpha1.InterruptsPerPod {
		balancer = v1alpha1.BalancerKept
	}
	fill(e, "spec.interrupts.balancer", &i.Balancer, balancer)

	n := &e.Spec.NUMA
	fill(e, "spec.numa.topologyPolicy", &n.TopologyPolicy, v1alpha1.TopologySingleNUMANode)
	scope := v1alpha1.TopologyScopeContainer
	if n.TopologyPolicy == v1alpha1.TopologySingleNUMANode {
		scope = v1alpha1.TopologyScopePod
	}
	if n.TopologyPolicy != v1alpha1.TopologyNone {
		fill(e, "spec.numa.scope", &n.Scope, scope)
	}
	fill(e, "spec.numa.automaticBalancing", &n.AutomaticBalancing, v1alpha1.ActivityDisabled)
}

func (e *EffectiveSpec) fillPower() {
	p := &e.Spec.Power
	fill(e, "spec.power.preset", &p.Preset, v1alpha1.PowerLowLatency)
	origin := e.Origin("spec.power.preset")
	if origin.Source == FromField {
		origin.Source = FromPreset
	}
	origin.Detail = "spec.power.preset " + string(p.Preset)
	preset := powerPresets()[p.Preset]
	fillFrom(e, "spec.power.idleStates", &p.IdleStates, preset.idleStates, origin)
	fillFrom(e, "spec.power.frequencyDriver", &p.FrequencyDriver, preset.frequencyDriver, origin)
	fillFrom(e, "spec.power.governor", &p.Governor, preset.governor, origin)
	fillFrom(e, "spec.power.turbo", &p.Turbo, preset.turbo, origin)
	fill(e, "spec.power.isolatedMaximumFrequencyKilohertz", &p.IsolatedMaximumFrequencyKilohertz, 0)
	fill(e, "spec.power.housekeepingMaximumFrequencyKilohertz", &p.HousekeepingMaximumFrequencyKilohertz, 0)
}

func (e *EffectiveSpec) fillKernel() {
	k := &e.Spec.Kernel
	fill(e, "spec.kernel.type", &k.Type, v1alpha1.KernelDefault)
	fill(e, "spec.kernel.machineChecks", &k.MachineChecks, v1alpha1.MachineChecksKept)
	fill(e, "spec.kernel.watchdogs", &k.Watchdogs, v1alpha1.ActivityDisabled)
	fill(e, "spec.kernel.clocksource", &k.Clocksource, v1alpha1.ClocksourceReliableTSC)
	fill(e, "spec.kernel.iommu", &k.IOMMU, defaultIOMMU(e.Architecture))
	fill(e, "spec.kernel.timerMigration", &k.TimerMigration, v1alpha1.TimerMigrationEnabled)
	fill(e, "spec.kernel.realTimeThrottling", &k.RealTimeThrottling, v1alpha1.ActivityDisabled)
	note(e, "spec.kernel.additionalArguments", k.AdditionalArguments)

	n := &e.Spec.Network
	note(e, "spec.network.nics", n.NICs)
	fill(e, "spec.network.queues", &n.Queues, v1alpha1.QueuesKept)
	fill(e, "spec.network.receivePacketSteering", &n.ReceivePacketSteering, v1alpha1.PacketSteeringOff)
}

// defaultIOMMU is Passthrough on amd64, Kept elsewhere, and undecided for nodes that differ.
func defaultIOMMU(architecture string) v1alpha1.IOMMUMode {
	switch architecture {
	case "":
		return ""
	case architectureAMD64:
		return v1alpha1.IOMMUPassthrough
	default:
		return v1alpha1.IOMMUKept
	}
}

func (e *EffectiveSpec) fillPlatform() {
	k := &e.Spec.Kubelet
	fill(e, "spec.kubelet.resourceManagement", &k.ResourceManagement, v1alpha1.ResourceManagementKubelet)
	fullCores := v1alpha1.FullCoresNotRequired
	if e.Spec.NUMA.TopologyPolicy == v1alpha1.TopologySingleNUMANode {
		fullCores = v1alpha1.FullCoresRequired
	}
	if k.ResourceManagement == v1alpha1.ResourceManagementKubelet {
		fill(e, "spec.kubelet.fullCores", &k.FullCores, fullCores)
	}
	fill(e, "spec.kubelet.systemReservedMemory", &k.SystemReservedMemory, "500Mi")
	fill(e, "spec.kubelet.kubeReservedMemory", &k.KubeReservedMemory, "500Mi")
	fill(e, "spec.kubelet.evictionHardMemory", &k.EvictionHardMemory, "100Mi")
	fill(e, "spec.kubelet.additionalConfiguration", &k.AdditionalConfiguration, "")
	fill(e, "spec.containerRuntime.execPlacement", &e.Spec.ContainerRuntime.ExecPlacement, v1alpha1.ExecFirstCPU)
	fill(e, "spec.containerRuntime.runtimeClassName", &e.Spec.ContainerRuntime.RuntimeClassName, "")

	s := &e.Spec.System
	note(e, "spec.system.stopServices", s.StopServices)
	if len(s.StopServices) == 0 {
		s.StopServices = []v1alpha1.UnitName{"fwupd-refresh.timer"}
	}
	note(e, "spec.system.unloadModules", s.UnloadModules)
	note(e, "spec.system.kernelParameters", s.KernelParameters)
	fill(e, "spec.system.packetFilter", &s.PacketFilter, v1alpha1.PacketFilterKept)

	fill(e, "spec.verification.gate", &e.Spec.Verification.Gate, v1alpha1.GateReportOnly)
	fill(e, "spec.verification.repair", &e.Spec.Verification.Repair, v1alpha1.RepairReportOnly)
	fill(e, "spec.verification.failOn", &e.Spec.Verification.FailOn, v1alpha1.FailOnImpact)
	note(e, "spec.verification.waivedChecks", e.Spec.Verification.WaivedChecks)
	if b := e.Spec.Verification.Budget; b != nil {
		fill(e, "spec.verification.budget.maximumInterruptionMicroseconds", &b.MaximumInterruptionMicroseconds, 0)
		fill(e, "spec.verification.budget.stolenPartsPerMillion", &b.StolenPartsPerMillion, 0)
	}
}
