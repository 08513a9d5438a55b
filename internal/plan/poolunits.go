// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// interruptPeriod is the number of seconds between two looks at the interrupts of pool NICs: how long vectors may
// stay where a driver put them after a reset. One look reads a small file for each vector, on a housekeeping CPU.
const interruptPeriod = 5

const nicInterruptsUnit = "lowlatency-nic-interrupts.service"

// poolUnits carry out what is planned for the NICs of pools.
func (p *planner) poolUnits() {
	for _, pool := range p.pools {
		planned, _ := p.plan.BypassPool(pool.Name)
		for _, nic := range planned.NICs {
			p.bypassNICUnit(nic, pool.Isolation)
		}
	}
	p.vfioFiles()
	p.interruptUnit()
}

// bypassNICUnit makes the virtual functions of a NIC and binds them, or the NIC. The kubelet waits for it and does
// not need it: a NIC that could not be prepared is advertised to nobody, and no reason to lose the node.
func (p *planner) bypassNICUnit(nic PoolNICPlan, isolation v1alpha1.VFIOIsolation) {
	if nic.VirtualFunctions == 0 && nic.Driver == "" {
		return
	}
	script := p.addScriptOnce("lowlatency-bypass-nic", bypassNICScript, nic.Origin)
	driver, needs := "kept", "none"
	description := fmt.Sprintf("Create %d virtual functions on NIC %s", nic.VirtualFunctions, nic.PCIAddress)
	switch {
	case nic.Driver != "" && nic.VirtualFunctions > 0:
		description += " and bind them to " + nic.Driver
	case nic.Driver != "":
		description = fmt.Sprintf("Bind NIC %s to %s", nic.PCIAddress, nic.Driver)
	}
	if nic.Driver != "" {
		driver, needs = nic.Driver, string(isolation)
	}
	p.addUnit(Unit{
		Name:    bypassNICUnitName(nic.PCIAddress),
		Enabled: true,
		Content: oneshot{
			description: description,
			commands:    []string{fmt.Sprintf("%s %s %d %s %s", script, nic.PCIAddress, nic.VirtualFunctions, driver, needs)},
			after:       []string{"systemd-modules-load.service"},
		}.content(),
		Origin: nic.Origin,
	})
}

// bypassNICUnitName has no colons, which file names of some archives cannot have.
func bypassNICUnitName(address string) string {
	return "lowlatency-bypass-nic-" + strings.ReplaceAll(address, ":", "-") + ".service"
}

// vfioFiles load vfio-pci at boot, and let it work without an IOMMU where a pool says so (man modules-load.d(5),
// modprobe.d(5)).
func (p *planner) vfioFiles() {
	bound, unsafe := Origin{}, Origin{}
	for _, pool := range p.pools {
		planned, _ := p.plan.BypassPool(pool.Name)
		for _, nic := range planned.NICs {
			if nic.Driver != DriverVFIO {
				continue
			}
			if bound.Detail == "" {
				bound = Origin{Source: FromPool, Detail: poolField(pool.Name, "spec.stack.type")}
			}
			if unsafe.Detail == "" && pool.Isolation == v1alpha1.VFIOIsolationNoIOMMU {
				unsafe = Origin{Source: FromPool, Detail: poolField(pool.Name, "spec.stack.vfio.isolation")}
			}
		}
	}
	if bound.Detail != "" {
		p.addFile(File{Path: "/etc/modules-load.d/10-lowlatency-vfio.conf", Mode: 0o644, Content: DriverVFIO + "\n", Origin: bound})
	}
	if unsafe.Detail != "" {
		p.addFile(File{Path: "/etc/modprobe.d/10-lowlatency-vfio.conf", Mode: 0o644,
			Content: "options vfio enable_unsafe_noiommu_mode=1\n", Origin: unsafe})
	}
}

// interruptUnit keeps interrupts on their CPUs for as long as the host runs: once before the kubelet starts, and
// then again and again, because drivers choose new CPUs when they reset their NIC and no event of the kernel says
// so. irqbalance does not work against it where it is restricted: it places a vector among the CPUs of the NIC's own
// NUMA node that it may use (place_irq_in_node in placement.c of irqbalance), which are the planned ones.
func (p *planner) interruptUnit() {
	var words []string
	origin := Origin{}
	for _, pool := range p.plan.BypassPools {
		for _, nic := range pool.NICs {
			if nic.InterruptCPUs.IsEmpty() {
				continue
			}
			if word := nic.PCIAddress + "=" + nic.InterruptCPUs.String(); !slices.Contains(words, word) {
				words = append(words, word)
			}
			origin = both(origin, Origin{Source: FromPool, Detail: poolField(pool.Name, "spec.interrupts.placement")})
		}
	}
	if len(words) == 0 {
		return
	}
	p.checkBalancer()
	script := p.addScriptOnce("lowlatency-nic-interrupts", nicInterruptsScript, origin)
	pairs := strings.Join(words, " ")
	p.addUnit(Unit{
		Name:    nicInterruptsUnit,
		Enabled: true,
		Content: serialize(
			option("Unit", "Description", "Keep the interrupts of bypass NICs on their CPUs"),
			option("Unit", "Before", strings.Join(beforePods(), " ")),
			option("Service", "ExecStartPre", fmt.Sprintf("%s 0 %s", script, pairs)),
			option("Service", "ExecStart", fmt.Sprintf("%s %d %s", script, interruptPeriod, pairs)),
			option("Service", "Restart", "on-failure"),
			option("Service", "RestartSec", "10"),
			option("Install", "WantedBy", "multi-user.target")),
		Origin: origin,
	})
}

// checkBalancer: an irqbalance that may use all CPUs moves what the unit places.
func (p *planner) checkBalancer() {
	if p.spec.Interrupts.Balancer != v1alpha1.BalancerKept {
		return
	}
	p.report(v1alpha1.SeverityMedium, rulePoolInterrupts, "spec.interrupts.balancer",
		"Set it to Restricted or Stopped, or spec.interrupts.placement of the BypassNICPools to Kept.",
		"with Kept irqbalance may move the interrupts of bypass NICs to any CPU, from where they are put back within %d seconds only",
		interruptPeriod)
}

// addScriptOnce is addScript for a script that several units run.
func (p *planner) addScriptOnce(name, content string, origin Origin) string {
	for i, f := range p.plan.Files {
		if f.Path == scriptFolder+name {
			p.plan.Files[i].Origin = both(f.Origin, origin)
			return f.Path
		}
	}
	return p.addScript(name, content, origin)
}

// BypassPool returns the part of the plan about a pool, and whether there is one.
func (p *NodePlan) BypassPool(name string) (PoolPlan, bool) {
	for _, pool := range p.BypassPools {
		if pool.Name == name {
			return pool, true
		}
	}
	return PoolPlan{}, false
}
