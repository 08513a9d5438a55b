// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// planSystem stops services, unloads modules and flushes the packet filter.
func (p *planner) planSystem() {
	p.planServices()
	p.planModules()
	if p.spec.System.PacketFilter == v1alpha1.PacketFilterFlushed {
		p.addUnit(Unit{
			Name:    "lowlatency-flush-packet-filter.service",
			Enabled: true,
			Content: oneshot{
				description: "Delete all rules of nftables",
				commands:    []string{"/usr/sbin/nft flush ruleset"},
				after:       []string{"nftables.service", "iptables.service", "ip6tables.service", "firewalld.service"},
			}.content(),
			Origin: p.origin("spec.system.packetFilter"),
		})
	}
}

// planServices stops and masks units.
func (p *planner) planServices() {
	const field = "spec.system.stopServices"
	for _, name := range sortedSet(p.spec.System.StopServices) {
		p.plan.StopServices = append(p.plan.StopServices, Setting{Name: name, Origin: p.origin(field)})
		if name != irqbalanceUnit || p.spec.Interrupts.Balancer != v1alpha1.BalancerStopped {
			p.maskService(name)
		}
	}
}

// maskService masks a unit. One that is to be stopped cannot have a drop-in at the same time.
func (p *planner) maskService(name string) {
	const field = "spec.system.stopServices"
	if slices.ContainsFunc(p.plan.Units, func(u Unit) bool { return u.Name == name }) {
		p.critical(ruleStopServices, field, "Remove it, or set spec.interrupts.balancer to Stopped.",
			"%s is to be stopped, but spec.interrupts.balancer %s needs it", name, p.spec.Interrupts.Balancer)
		return
	}
	p.addUnit(Unit{Name: name, Masked: true, Origin: p.origin(field)})
}

// planModules keeps modules from loading by any way (man modprobe.d(5): install), and unloads those that
// the initial RAM disk has loaded already.
func (p *planner) planModules() {
	const field = "spec.system.unloadModules"
	names := sortedSet(p.spec.System.UnloadModules)
	if len(names) == 0 {
		return
	}
	origin := p.origin(field)
	var content strings.Builder
	commands := make([]string, 0, len(names))
	for _, name := range names {
		// A module that is not there, or in use, is no reason to keep the node down.
		commands = append(commands, "-/usr/sbin/modprobe --remove --quiet "+name)
		p.plan.UnloadModules = append(p.plan.UnloadModules, Setting{Name: name, Origin: origin})
		fmt.Fprintf(&content, "blacklist %s\ninstall %s /bin/false\n", name, name)
	}
	p.addFile(File{
		Path: "/etc/modprobe.d/lowlatency-" + p.plan.Profile + ".conf", Mode: 0o644,
		Content: content.String(), Origin: origin,
	})
	p.addUnit(Unit{
		Name:    "lowlatency-unload-modules.service",
		Enabled: true,
		Content: oneshot{
			description: "Unload kernel modules",
			commands:    commands,
		}.content(),
		Origin: origin,
	})
}

// sortedSet lists the distinct texts of a list in ascending order.
func sortedSet[T ~string](list []T) []string {
	set := make([]string, len(list))
	for i, text := range list {
		set[i] = string(text)
	}
	slices.Sort(set)
	return slices.Compact(set)
}
