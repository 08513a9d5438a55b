// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// valueTable collects what a plan sets, with where each value comes from.
type valueTable struct {
	view    view.Plan
	palette Palette
	rows    [][]string
}

// values is the table of what a plan sets.
func values(v view.Plan, palette Palette, columns int) string {
	t := &valueTable{view: v, palette: palette}
	subjects := []struct {
		title string
		add   func()
	}{
		{"CPUs", t.cpus},
		{"kernel", t.kernel},
		{"hugepages", t.hugepages},
		{"interrupts", t.interrupts},
		{"power", t.power},
		{"network", t.network},
		{"bypass NIC pools", t.bypassPools},
		{"kernel parameters", func() { t.settings("sysctls", v.Sysctls) }},
		{"sysfs", func() { t.settings("sysfs", v.Sysfs) }},
		{"kubelet", t.kubelet},
		{"container runtime", t.containerRuntime},
		{"files and units", t.files},
		{"services stopped", func() { t.names("stopServices", v.StopServices) }},
		{"modules unloaded", func() { t.names("unloadModules", v.UnloadModules) }},
	}
	parts := make([]section, 0, len(subjects))
	for _, subject := range subjects {
		t.rows = nil
		subject.add()
		parts = append(parts, section{subject.title, t.rows})
	}
	return sections([]string{"VALUE", "FROM"}, parts, palette, columns)
}

// add appends a value; path is its place in the view.
func (t *valueTable) add(path, format string, args ...any) {
	t.rows = append(t.rows, []string{fmt.Sprintf(format, args...), from(t.view.Origins[path])})
}

// from writes an origin: a field by its path, others with what they are.
func from(origin plan.Origin) string {
	switch origin.Source {
	case plan.FromField, plan.FromPool:
		return origin.Detail
	case plan.FromPreset:
		return "preset: " + origin.Detail
	case plan.FromTopology:
		return "topology: " + origin.Detail
	default:
		return "default: " + origin.Detail
	}
}

func (t *valueTable) cpus() {
	v := t.view
	t.add("housekeeping", "housekeeping %s", v.Housekeeping)
	t.add("isolated", "isolated %s", v.Isolated)
	if !v.Offline.IsEmpty() {
		t.add("offline", "offline %s", v.Offline)
	}
	if !v.Shared.IsEmpty() {
		t.add("shared", "shared %s", v.Shared)
	}
	if !v.DataPlane.IsEmpty() {
		t.add("dataPlane", "dataplane %s", v.DataPlane)
		t.add("cpuModes.dataPlaneLoadBalancing", "load balancing of dataplane CPUs %s", v.CPUModes.DataPlaneLoadBalancing)
	}
	t.add("cpuModes.simultaneousMultithreading", "simultaneous multithreading %s", v.CPUModes.SMT)
	t.add("cpuModes.isolation", "isolation %s", v.CPUModes.Isolation)
	t.add("cpuModes.tick", "tick %s", v.CPUModes.Tick)
}

func (t *valueTable) kernel() {
	t.add("kernelType", "kernel type %s", t.view.KernelType)
	t.add("kernelPageSize", "base pages of %s", t.view.KernelPageSize)
	for i, argument := range t.view.KernelArguments {
		t.add(fmt.Sprintf("kernelArguments[%d]", i), "%s", argument)
	}
}

func (t *valueTable) hugepages() {
	for i, pages := range t.view.Hugepages {
		where := "spread over the NUMA nodes"
		if pages.NUMANode != nil {
			where = fmt.Sprintf("on NUMA node %d", *pages.NUMANode)
		}
		how := "by kernel argument"
		if pages.Method == plan.ByUnit {
			how = "by a unit before the kubelet"
		}
		t.add(fmt.Sprintf("hugepages[%d]", i), "%d × %s %s, %s", pages.Count, pages.Size, where, how)
	}
}

func (t *valueTable) interrupts() {
	i := t.view.Interrupts
	t.add("interrupts.placement", "placement %s", i.Placement)
	t.add("interrupts.defaultAffinity", "default affinity %s", i.DefaultAffinity)
	t.add("interrupts.balancer", "irqbalance %s", i.Balancer)
	if !i.Banned.IsEmpty() {
		t.add("interrupts.banned", "irqbalance must not use %s", i.Banned)
	}
}

func (t *valueTable) power() {
	p := t.view.Power
	t.add("power.idleStates", "idle states %s", p.IdleStates)
	t.add("power.frequencyDriver", "frequency driver %s", p.FrequencyDriver)
	t.add("power.governor", "governor %s", p.Governor)
	t.add("power.turbo", "turbo %s", p.Turbo)
	if p.IsolatedMaximumFrequencyKilohertz != nil {
		t.add("power.isolatedMaximumFrequencyKilohertz", "isolated CPUs at most %d kHz", *p.IsolatedMaximumFrequencyKilohertz)
	}
	if p.HousekeepingMaximumFrequencyKilohertz != nil {
		t.add("power.housekeepingMaximumFrequencyKilohertz", "housekeeping CPUs at most %d kHz", *p.HousekeepingMaximumFrequencyKilohertz)
	}
}

func (t *valueTable) network() {
	queues := "left alone"
	if count := t.view.Network.Queues; count != nil {
		queues = strconv.Itoa(*count)
	}
	t.add("network.queues", "NIC queues %s", queues)
	t.add("network.receivePacketSteering", "receive packet steering %s", t.view.Network.ReceivePacketSteering)
}

func (t *valueTable) bypassPools() {
	for i, pool := range t.view.BypassPools {
		for j, nic := range pool.NICs {
			what := ""
			if nic.VirtualFunctions != nil {
				what = fmt.Sprintf("%d virtual functions, ", *nic.VirtualFunctions)
			}
			if nic.Driver != nil {
				what += "driver " + *nic.Driver + ", "
			}
			where := "left alone"
			if !nic.InterruptCPUs.IsEmpty() {
				where = fmt.Sprintf("on %s (%s)", nic.InterruptCPUs, nic.Interrupts)
			}
			t.add(fmt.Sprintf("bypassPools[%d].nics[%d]", i, j), "NIC %s: %sinterrupts %s", nic.PCIAddress, what, where)
		}
	}
}

func (t *valueTable) settings(list string, settings []view.Setting) {
	for i, setting := range settings {
		t.add(fmt.Sprintf("%s[%d]", list, i), "%s = %s", setting.Name, setting.Value)
	}
}

func (t *valueTable) names(list string, names []string) {
	for i, name := range names {
		t.add(fmt.Sprintf("%s[%d]", list, i), "%s", name)
	}
}

// kubelet lists fields of KubeletConfiguration in alphabetical order.
func (t *valueTable) kubelet() {
	for _, name := range slices.Sorted(maps.Keys(t.view.Kubelet)) {
		t.add("kubelet."+name, "%s: %s", name, inline(t.view.Kubelet[name]))
	}
}

func (t *valueTable) containerRuntime() {
	r := t.view.ContainerRuntime
	t.add("containerRuntime.infrastructureCPUs", "infrastructure containers on %s", r.InfrastructureCPUs)
	t.add("containerRuntime.execPlacement", "exec processes on %s", r.ExecPlacement)
	requests := make([]string, 0, len(r.PodRequests))
	for _, request := range r.PodRequests {
		requests = append(requests, string(request))
	}
	t.add("containerRuntime.podRequests", "pods may ask for %s", strings.Join(requests, ", "))
}

func (t *valueTable) files() {
	for i, file := range t.view.Files {
		t.add(fmt.Sprintf("files[%d]", i), "%s (mode %s, %d bytes)", file.Path, file.Mode, len(file.Content))
	}
	for i, unit := range t.view.Units {
		state := ""
		switch {
		case unit.Masked:
			state = " (masked)"
		case unit.Enabled:
			state = " (enabled)"
		case unit.Content == "":
			state = " (drop-in)"
		}
		t.add(fmt.Sprintf("units[%d]", i), "%s%s", unit.Name, state)
	}
}

// inline writes a JSON value in one line, as YAML's flow style does.
func inline(value any) string {
	switch v := value.(type) {
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+": "+inline(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, 0, len(v))
		for _, item := range v {
			parts = append(parts, inline(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}
