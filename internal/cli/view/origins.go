// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// origins says, for each value of a plan, where it came from. Keys are the paths of the values in the
// view: "isolated", "kernelArguments[3]", "kubelet.topologyManagerPolicy".
func origins(p *plan.NodePlan, effective plan.EffectiveSpec) map[string]plan.Origin {
	all := map[string]plan.Origin{
		"housekeeping": p.CPUs.Origin, "isolated": p.CPUs.Origin, "offline": p.CPUs.Origin,
		"shared": p.CPUs.Origin, "dataPlane": p.CPUs.Origin,
	}
	for path, field := range fieldOf() {
		all[path] = effective.Origin(field)
	}
	all["kubelet.reservedSystemCPUs"] = p.CPUs.Origin
	all["containerRuntime.infrastructureCPUs"] = p.CPUs.Origin
	all["kubelet.reservedMemory"] = plan.Origin{
		Source: plan.FromTopology, Detail: "the sum of systemReserved, kubeReserved and evictionHard, on a NUMA node with housekeeping CPUs",
	}
	for name := range p.Kubelet.Additional {
		all["kubelet."+name] = plan.Origin{Source: plan.FromField, Detail: "spec.kubelet.additionalConfiguration"}
	}
	addEach(all, "kernelArguments", p.KernelArguments, func(a plan.Argument) plan.Origin { return a.Origin })
	addEach(all, "hugepages", p.Hugepages, func(h plan.HugepagePlan) plan.Origin { return h.Origin })
	addEach(all, "sysctls", p.Sysctls, settingOrigin)
	addEach(all, "sysfs", p.Sysfs, settingOrigin)
	addEach(all, "stopServices", p.StopServices, settingOrigin)
	addEach(all, "unloadModules", p.UnloadModules, settingOrigin)
	for i, pool := range p.BypassPools {
		addEach(all, fmt.Sprintf("bypassPools[%d].nics", i), pool.NICs, func(n plan.PoolNICPlan) plan.Origin { return n.Origin })
	}
	addEach(all, "files", p.Files, func(f plan.File) plan.Origin { return f.Origin })
	addEach(all, "units", p.Units, func(u plan.Unit) plan.Origin { return u.Origin })
	return all
}

func settingOrigin(s plan.Setting) plan.Origin { return s.Origin }

func addEach[T any](all map[string]plan.Origin, list string, items []T, origin func(T) plan.Origin) {
	for i, item := range items {
		all[fmt.Sprintf("%s[%d]", list, i)] = origin(item)
	}
}

// fieldOf maps paths of the view to the fields of the profile that decide them.
func fieldOf() map[string]string {
	return map[string]string{
		"cpuModes.simultaneousMultithreading":         "spec.cpus.simultaneousMultithreading",
		"cpuModes.isolation":                          "spec.cpus.isolation",
		"cpuModes.tick":                               "spec.cpus.tick",
		"cpuModes.dataPlaneLoadBalancing":             "spec.cpus.explicit.dataPlaneLoadBalancing",
		"kernelType":                                  "spec.kernel.type",
		"kernelPageSize":                              "spec.memory.kernelPageSize",
		"interrupts.placement":                        "spec.interrupts.placement",
		"interrupts.defaultAffinity":                  "spec.interrupts.placement",
		"interrupts.balancer":                         "spec.interrupts.balancer",
		"interrupts.banned":                           "spec.interrupts.balancer",
		"power.idleStates":                            "spec.power.idleStates",
		"power.frequencyDriver":                       "spec.power.frequencyDriver",
		"power.governor":                              "spec.power.governor",
		"power.turbo":                                 "spec.power.turbo",
		"power.isolatedMaximumFrequencyKilohertz":     "spec.power.isolatedMaximumFrequencyKilohertz",
		"power.housekeepingMaximumFrequencyKilohertz": "spec.power.housekeepingMaximumFrequencyKilohertz",
		"network.queues":                              "spec.network.queues",
		"network.receivePacketSteering":               "spec.network.receivePacketSteering",
		"kubelet.cpuManagerPolicy":                    "spec.kubelet.resourceManagement",
		"kubelet.cpuManagerPolicyOptions":             "spec.kubelet.fullCores",
		"kubelet.cpuManagerReconcilePeriod":           "spec.kubelet.resourceManagement",
		"kubelet.topologyManagerPolicy":               "spec.numa.topologyPolicy",
		"kubelet.topologyManagerPolicyOptions":        "spec.numa.topologyPolicy",
		"kubelet.topologyManagerScope":                "spec.numa.scope",
		"kubelet.memoryManagerPolicy":                 "spec.numa.topologyPolicy",
		"kubelet.systemReserved":                      "spec.kubelet.systemReservedMemory",
		"kubelet.kubeReserved":                        "spec.kubelet.kubeReservedMemory",
		"kubelet.evictionHard":                        "spec.kubelet.evictionHardMemory",
		"containerRuntime.execPlacement":              "spec.containerRuntime.execPlacement",
		"containerRuntime.podRequests":                "spec.interrupts.placement",
		"verification.gate":                           "spec.verification.gate",
	}
}
