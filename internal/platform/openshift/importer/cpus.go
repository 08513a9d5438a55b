// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// cpuField is one CPU list of spec.cpu.
type cpuField struct {
	name string
	set  cpus.Set
}

// cpus converts spec.cpu and the annotation on the balancing of the ovsDpdk CPUs.
func (c *converter) cpus() error {
	source := c.source.Spec.CPU
	if source == nil {
		return invalid("spec.cpu", "a PerformanceProfile names its reserved and isolated CPUs")
	}
	lists, err := c.cpuLists(source)
	if err != nil {
		return err
	}
	housekeeping, shared := lists["reserved"], lists["shared"]
	if _, _, _, mixed := c.source.hints(); !mixed && !shared.IsEmpty() {
		housekeeping, shared = housekeeping.Union(shared), cpus.Set{}
		c.remark("spec.cpu.shared", "without spec.workloadHints.mixedCpus it has no effect; CPUs %s, which are neither reserved nor isolated, became housekeeping.", lists["shared"])
	}
	explicit := &v1alpha1.ExplicitCPUs{
		Housekeeping: cpuList(housekeeping),
		Isolated:     cpuList(lists["isolated"]),
		Offline:      cpuList(lists["offlined"]),
		Shared:       cpuList(shared),
		DataPlane:    cpuList(lists["ovsDpdk"]),
	}
	if explicit.DataPlane != "" {
		explicit.DataPlaneLoadBalancing = c.dataPlaneLoadBalancing()
		c.remark("spec.cpu.ovsDpdk", "a PerformanceProfile gives ovs-vswitchd.service a cgroup with CPUs %s and OVS_DPDK_CPUS in its environment; "+
			"this profile makes dataplane.slice with these CPUs, and the switch enters it by Slice=dataplane.slice in a drop-in of its own.", explicit.DataPlane)
	}
	c.spec.CPUs = v1alpha1.CPUsSpec{
		Partition:                  v1alpha1.PartitionExplicit,
		Explicit:                   explicit,
		SimultaneousMultithreading: v1alpha1.SMTKept,
		Isolation:                  v1alpha1.IsolationPerPod,
		Tick:                       v1alpha1.TickStopped,
	}
	if !isTrue(source.BalanceIsolated, true) {
		c.spec.CPUs.Isolation = v1alpha1.IsolationStatic
	}
	return nil
}

// cpuLists parses the lists of spec.cpu, by name, and refuses what PerformanceProfile's own admission
// refuses: no reserved or isolated CPUs, and lists that overlap.
func (c *converter) cpuLists(source *sourceCPU) (map[string]cpus.Set, error) {
	var fields []cpuField
	for _, list := range []struct {
		name     string
		text     *cpuText
		required bool
	}{
		{"reserved", source.Reserved, true},
		{"isolated", source.Isolated, true},
		{"offlined", source.Offlined, false},
		{"shared", source.Shared, false},
		{"ovsDpdk", source.OvsDpdk, false},
	} {
		set, err := parseCPUs("spec.cpu."+list.name, list.text, list.required)
		if err != nil {
			return nil, err
		}
		fields = append(fields, cpuField{list.name, set})
	}
	lists := map[string]cpus.Set{}
	for i, field := range fields {
		for _, other := range fields[:i] {
			if both := field.set.Intersection(other.set); !both.IsEmpty() {
				return nil, invalid("spec.cpu", "%s and %s both hold the CPUs %s", other.name, field.name, both)
			}
		}
		lists[field.name] = field.set
	}
	return lists, nil
}

func parseCPUs(field string, text *cpuText, required bool) (cpus.Set, error) {
	if text == nil {
		text = new(cpuText)
	}
	set, err := cpus.Parse(string(*text))
	if err != nil {
		return cpus.Set{}, invalid(field, "%w", err)
	}
	if required && set.IsEmpty() {
		return cpus.Set{}, invalid(field, "a PerformanceProfile names at least one CPU here")
	}
	return set, nil
}

func cpuList(set cpus.Set) v1alpha1.CPUList { return v1alpha1.CPUList(set.String()) }

// union puts CPU lists of the profile together.
func union(lists ...v1alpha1.CPUList) string {
	var all cpus.Set
	for _, list := range lists {
		// The lists were written by this package, so they are readable.
		if set, err := cpus.Parse(string(list)); err == nil {
			all = all.Union(set)
		}
	}
	return all.String()
}
