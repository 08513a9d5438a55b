// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// ArgumentText is the planned part of the kernel command line.
func (p *NodePlan) ArgumentText() string {
	texts := make([]string, len(p.KernelArguments))
	for i, argument := range p.KernelArguments {
		texts[i] = argument.Text
	}
	return strings.Join(texts, " ")
}

// ArgumentLine is the planned part of the kernel command line as the kernel reads it. A plan that could not be read has
// none: plans are made of arguments without quotes and NUL bytes, and of no more than the kernel takes.
func (p *NodePlan) ArgumentLine() cmdline.Line {
	line, err := cmdline.Parse(p.ArgumentText())
	if err != nil {
		return cmdline.Line{}
	}
	return line
}

// effects are what the planned arguments do on a machine.
func (p *NodePlan) effects(on cmdline.Machine) []cmdline.Effect { return p.ArgumentLine().Effects(on) }

// MachineOf is what the facts of a host say about the machine that reads the plan's arguments. A CPU that is offline, and
// in no set of the plan, changes nothing: no reboot is needed for it.
func MachineOf(f *host.Facts, p *NodePlan) cmdline.Machine {
	on := cmdline.Machine{Architecture: p.Architecture, Possible: f.CPUs.Present.Value}
	if possible, ok := f.CPUs.Possible.Get(); ok {
		on.Possible = possible
	}
	on.Gone = f.CPUs.Offline.Value.Difference(p.CPUs.Housekeeping).Difference(p.CPUs.Isolated)
	for i := range f.NUMANodes {
		if f.NUMANodes[i].HasMemory() {
			on.MemoryNodes = append(on.MemoryNodes, f.NUMANodes[i].ID)
		}
	}
	return on
}

// ArgumentChanges are the differences between the command line of a running kernel and the planned arguments: one for each
// parameter that the plan sets otherwise, and one for each that the plan does without and that would contradict it if it
// stayed. It is what decides, everywhere, whether a node has to reboot for its command line. Whatever means the same to the
// kernel is none.
func ArgumentChanges(running cmdline.Line, on cmdline.Machine, p *NodePlan) []Change {
	var changes []Change
	effects := running.RunningEffects(on)
	planned := map[string]bool{}
	for _, wanted := range p.effects(on) {
		planned[wanted.Parameter] = true
		if found := effects[wanted.Parameter]; !found.Has(wanted) {
			changes = append(changes, argumentItem(wanted).change(found.Text(), wanted.Text()))
		}
	}
	for _, name := range decidingArguments() {
		if found, given := effects[name]; given && !planned[name] {
			changes = append(changes, argumentItem(found).change(found.Text(), ""))
		}
	}
	return changes
}

// decidingArguments contradict a plan when a host has them and the plan has not.
func decidingArguments() []string {
	return []string{"nosmt", "nohz_full", "isolcpus", "irqaffinity", "idle", "nohlt", "maxcpus", "nr_cpus"}
}

func argumentItem(e cmdline.Effect) item {
	return item{kind: kindArgument, name: e.Name(), value: e.Text(), reboot: v1alpha1.RebootRequired, why: whyCommandLine, effect: &e}
}

// RebootOf says whether a kernel has to be booted before the plan is in force, as far as an inventory tells: which kernel
// runs, and with which arguments. It is Unknown where these are not reported, and NotRequired where both are as planned.
// What it finds, DiffRunning finds on the same machine.
func RebootOf(inventory *v1alpha1.Inventory, p *NodePlan) v1alpha1.RebootRequirement {
	if inventory == nil {
		return v1alpha1.RebootUnknown
	}
	if kernel := inventory.KernelType; kernel != "" && p.Kernel.Type != "" && kernel != p.Kernel.Type {
		return v1alpha1.RebootRequired
	}
	running, err := cmdline.Parse(inventory.KernelCommandLine)
	if err != nil || inventory.KernelCommandLine == "" {
		return v1alpha1.RebootUnknown
	}
	// An inventory whose lists cannot be read makes no plan, and without them "all" and "N" are not known to be the same.
	online, _ := cpus.Parse(inventory.OnlineCPUs)
	offline, _ := cpus.Parse(inventory.OfflineCPUs)
	on := cmdline.Machine{Architecture: p.Architecture, Possible: online.Union(offline)}
	if len(ArgumentChanges(running, on, p)) > 0 {
		return v1alpha1.RebootRequired
	}
	return v1alpha1.RebootNotRequired
}

// argumentItems has one item for each parameter; the number of hugepages has one for each size.
func (p *NodePlan) argumentItems() []item {
	effects := p.effects(cmdline.Machine{Architecture: p.Architecture})
	items := make([]item, len(effects))
	named := map[string]bool{}
	for i, e := range effects {
		items[i] = argumentItem(e)
		if named[items[i].name] {
			// One argument may set several parameters: iommu=pt,soft.
			items[i].name = e.Parameter
		}
		named[items[i].name] = true
	}
	return items
}

// runningLine reads the command line of the running kernel, or says why it cannot.
func runningLine(f *host.Facts) (line cmdline.Line, reason string) {
	fact := f.Kernel.CommandLine
	text, ok := fact.Get()
	if !ok {
		return line, missing(fact.Source, fact.Reason)
	}
	line, err := cmdline.Parse(text)
	if err != nil {
		return line, err.Error()
	}
	return line, ""
}
