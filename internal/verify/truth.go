// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Truth is, besides CPUs, hugepages and NICs, what decides about the NUMA placement of pods on a host: where interrupts
// are delivered, and what the kubelet reserves and aligns.
type Truth struct {
	// Nodes are the NUMA nodes in ascending order.
	Nodes []NodeTruth
	// Kubelet are the settings of the kubelet that align pods.
	Kubelet []SettingTruth
}

// NodeTruth is the truth about one NUMA node.
type NodeTruth struct {
	ID int
	// Vectors are the device interrupts that are delivered to CPUs of the NUMA node, and IsolatedVectors those of them
	// that are delivered to isolated CPUs. Absent when the host does not report of every interrupt.
	Vectors, IsolatedVectors host.Fact[int]
	// Reserved is what the kubelet reserves of the memory and hugepages of the NUMA node.
	Reserved []SettingTruth
}

// SettingTruth compares what was planned with what the kubelet was configured with. Planned is "" where the plan leaves
// it, Configured is absent when the kubelet's configuration cannot be read.
type SettingTruth struct {
	Name, Planned string
	Configured    host.Fact[string]
}

// TruthOf returns the truth about a host. It judges nothing: the checks do.
func TruthOf(p *plan.NodePlan, facts *host.Facts) Truth {
	s := newState(Input{Plan: p, Facts: facts}, nil)
	config := s.kubeletConfiguration()
	truth := Truth{Kubelet: kubeletTruth(p, config)}
	lines := s.interruptLines()
	for _, node := range facts.NUMANodes {
		local := NodeTruth{ID: node.ID, Reserved: reservedTruth(p, config, node.ID)}
		local.Vectors = s.vectorsOn(node.CPUs, lines)
		local.IsolatedVectors = s.vectorsOn(host.Fact[cpus.Set]{
			Value: node.CPUs.Value.Intersection(p.CPUs.Isolated), Known: node.CPUs.Known, Source: node.CPUs.Source, Reason: node.CPUs.Reason,
		}, lines)
		truth.Nodes = append(truth.Nodes, local)
	}
	return truth
}

// vectorsOn counts the interrupts that are delivered to the CPUs, of those with a line in /proc/interrupts.
func (s *state) vectorsOn(set host.Fact[cpus.Set], lines map[int]*host.InterruptLine) host.Fact[int] {
	if !set.Known {
		return host.Absent[int](set.Source, set.Reason)
	}
	if len(s.facts.Interrupts.Routes) == 0 {
		return host.Absent[int]("/proc/irq", "no interrupt is listed")
	}
	count := 0
	for i := range s.facts.Interrupts.Routes {
		route := &s.facts.Interrupts.Routes[i]
		if !s.isDelivered(route, lines) {
			continue
		}
		effective, ok := route.EffectiveAffinity.Get()
		if !ok {
			return host.Absent[int](route.EffectiveAffinity.Source, route.EffectiveAffinity.Reason)
		}
		if effective.Overlaps(set.Value) {
			count++
		}
	}
	return host.Known(count, "/proc/irq/*/effective_affinity_list")
}

// configuredAs takes a text out of the kubelet's configuration.
func configuredAs(config host.Fact[*kubeletSettings], read func(*kubeletSettings) string) host.Fact[string] {
	if !config.Known {
		return host.Absent[string](config.Source, config.Reason)
	}
	return host.Known(read(config.Value), config.Source)
}

func kubeletTruth(p *plan.NodePlan, config host.Fact[*kubeletSettings]) []SettingTruth {
	want := p.Kubelet
	setting := func(name, planned string, read func(*kubeletSettings) string) SettingTruth {
		return SettingTruth{Name: name, Planned: planned, Configured: configuredAs(config, read)}
	}
	return []SettingTruth{
		setting("cpuManagerPolicy", want.CPUManagerPolicy, func(c *kubeletSettings) string {
			return orDefault(c.CPUManagerPolicy, "none")
		}),
		setting("reservedSystemCPUs", want.ReservedSystemCPUs, func(c *kubeletSettings) string {
			return cpus.Normal(c.ReservedSystemCPUs)
		}),
		setting("memoryManagerPolicy", want.MemoryManagerPolicy, func(c *kubeletSettings) string {
			return orDefault(c.MemoryManagerPolicy, "None")
		}),
		setting("topologyManagerPolicy", want.TopologyManagerPolicy, func(c *kubeletSettings) string {
			return orDefault(c.TopologyManagerPolicy, "none")
		}),
		setting("topologyManagerScope", want.TopologyManagerScope, func(c *kubeletSettings) string {
			return orDefault(c.TopologyManagerScope, "container")
		}),
	}
}

// reservedTruth lists the resources of a NUMA node that the plan or the kubelet reserves.
func reservedTruth(p *plan.NodePlan, config host.Fact[*kubeletSettings], node int) []SettingTruth {
	planned, found := map[string]string{}, map[string]string{}
	for _, reservation := range p.Kubelet.ReservedMemory {
		if int(reservation.NUMANode) == node {
			maps.Copy(planned, reservation.Limits)
		}
	}
	if config.Known {
		for _, reservation := range config.Value.ReservedMemory {
			if int(reservation.NumaNode) != node {
				continue
			}
			for name, amount := range reservation.Limits {
				found[name] = amount.String()
			}
		}
	}
	names := map[string]bool{}
	for name := range planned {
		names[name] = true
	}
	for name := range found {
		names[name] = true
	}
	truths := make([]SettingTruth, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		truths = append(truths, SettingTruth{
			Name: name, Planned: planned[name],
			Configured: configuredAs(config, func(*kubeletSettings) string { return sameAmount(found[name], planned[name]) }),
		})
	}
	return truths
}

// sameAmount writes an amount as it was planned if it is the same: the kubelet's file may have bytes where the plan has
// mebibytes. "" is none.
func sameAmount(found, planned string) string {
	have, err := resource.ParseQuantity(cmp.Or(found, "0"))
	if err != nil {
		return found
	}
	want, err := resource.ParseQuantity(cmp.Or(planned, "0"))
	if err == nil && have.Cmp(want) == 0 {
		return cmp.Or(planned, found)
	}
	return cmp.Or(found, "0")
}

// String is "topologyManagerPolicy single-numa-node", or with the planned value where that is another.
func (t SettingTruth) String() string {
	have, ok := t.Configured.Get()
	switch {
	case !ok:
		return fmt.Sprintf("%s unknown, planned %s", t.Name, orNone(t.Planned))
	case t.Planned == "" || have == t.Planned:
		return t.Name + " " + orNone(have)
	}
	return fmt.Sprintf("%s %s, planned %s", t.Name, orNone(have), t.Planned)
}
