// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	// IRQBalanceEnvironment is the file in which irqbalance finds the CPUs that it must not use.
	IRQBalanceEnvironment = "/etc/lowlatency/irqbalance.env"

	irqbalanceUnit = "irqbalance.service"
	dropInName     = "10-lowlatency.conf"
)

// planInterrupts decides where device interrupts go and what becomes of irqbalance.
func (p *planner) planInterrupts() {
	c := p.plan.CPUs
	i := InterruptPlan{
		Placement:       p.spec.Interrupts.Placement,
		DefaultAffinity: c.Housekeeping,
		Balancer:        p.spec.Interrupts.Balancer,
		Origin:          p.origin("spec.interrupts.placement"),
	}
	if i.Placement == v1alpha1.InterruptsPerPod {
		i.DefaultAffinity = c.Housekeeping.Union(c.Isolated).Difference(c.DataPlane)
		i.Banned = c.DataPlane
	}
	switch i.Balancer {
	case v1alpha1.BalancerRestricted:
		i.Banned = c.Isolated
		p.restrictBalancer(c.Isolated)
	case v1alpha1.BalancerStopped:
		i.Banned = cpus.Set{}
		p.addUnit(Unit{Name: irqbalanceUnit, Masked: true, Origin: p.origin("spec.interrupts.balancer")})
	case v1alpha1.BalancerKept:
		if i.Placement == v1alpha1.InterruptsPerPod {
			p.unrestrictBalancer(c.DataPlane)
		}
	}
	p.plan.Interrupts = i
}

// restrictBalancer bans CPUs from irqbalance. Both names of the variable are set, since the older one wins
// where it is still known (setup_banned_cpus in cputree.c of irqbalance). They come from a file of their
// own, read after the distribution's: container runtimes write the distribution's file and take the ban off the CPUs
// of a pod that ends.
func (p *planner) restrictBalancer(banned cpus.Set) {
	origin := p.origin("spec.interrupts.balancer")
	p.addFile(File{
		Path: IRQBalanceEnvironment,
		Mode: 0o644,
		Content: fmt.Sprintf("IRQBALANCE_BANNED_CPUS=%s\nIRQBALANCE_BANNED_CPULIST=%s\n",
			banned.Mask(), banned),
		Origin: origin,
	})
	p.addUnit(Unit{
		Name:    irqbalanceUnit,
		DropIns: map[string]string{dropInName: serialize(option("Service", "EnvironmentFile", IRQBalanceEnvironment))},
		Origin:  origin,
	})
}

// unrestrictBalancer lets irqbalance use all CPUs but those of the data plane: left alone it bans the CPUs
// of isolcpus and nohz_full by itself. The variable gives way to the distribution's file, in which the
// container runtime bans the CPUs of pods.
func (p *planner) unrestrictBalancer(dataPlane cpus.Set) {
	mask := "0"
	if !dataPlane.IsEmpty() {
		mask = dataPlane.Mask()
	}
	p.addUnit(Unit{
		Name:    irqbalanceUnit,
		DropIns: map[string]string{dropInName: serialize(option("Service", "Environment", "IRQBALANCE_BANNED_CPUS="+mask))},
		Origin:  p.origin("spec.interrupts.placement"),
	})
}
