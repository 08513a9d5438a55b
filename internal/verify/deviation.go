// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Deviation is one file of a running kernel that is otherwise than planned, and that a program can set right
// while the kernel runs.
type Deviation struct {
	// Check that the deviation makes fail.
	Check v1alpha1.CheckID `json:"check"`
	// Object is what the file belongs to, such as "IRQ 142 (sfc-ens2f0-3)"; the path where it belongs to nothing
	// else.
	Object string `json:"object"`
	// Path is the file, as an absolute path of the host.
	Path string `json:"path"`
	// Observed is what the file held, in the notation in which it is written; Planned is what it is to hold.
	Observed string `json:"observed"`
	Planned  string `json:"planned"`
}

// Deviations returns, for the checks of the report that failed, the files that are otherwise than planned, in
// ascending order of their paths. What cannot be read is none, and a check that is waived has none. Of several
// deviations of one file, the one that a BypassNICPool decides counts.
func Deviations(in Input, report Report) []Deviation {
	s := newState(in, Catalogue())
	failed := map[v1alpha1.CheckID]bool{}
	for _, result := range report.Results {
		failed[result.Check.ID] = result.Outcome == v1alpha1.OutcomeFailed
	}
	found := slices.Concat(s.poolInterruptDeviations(), s.interruptDeviations(), s.settingDeviations(), s.transparentDeviations(), s.governorDeviations(), s.steeringDeviations())
	found = slices.DeleteFunc(found, func(d Deviation) bool { return !failed[d.Check] })
	slices.SortStableFunc(found, func(a, b Deviation) int { return cmp.Compare(a.Path, b.Path) })
	return slices.CompactFunc(found, func(a, b Deviation) bool { return a.Path == b.Path })
}

// interruptDeviations are interrupts that are delivered to CPUs that are to be quiet, and the default for new ones.
func (s *state) interruptDeviations() []Deviation {
	quiet := s.quietCPUs()
	if quiet.IsEmpty() {
		return nil
	}
	var found []Deviation
	if standard, ok := s.facts.Interrupts.DefaultAffinity.Get(); ok && standard.Overlaps(quiet) {
		const file = "/proc/irq/default_smp_affinity"
		if wanted := s.leaving(standard, quiet); !wanted.IsEmpty() {
			found = append(found, Deviation{"irq.default-affinity", file, file, standard.Mask(), wanted.Mask()})
		}
	}
	lines := s.interruptLines()
	for i := range s.facts.Interrupts.Routes {
		route := &s.facts.Interrupts.Routes[i]
		if s.routeIsOff(route).outcome != v1alpha1.OutcomeFailed || !s.isDelivered(route, lines) || s.isBound(route) {
			continue
		}
		if wanted := s.leaving(route.Affinity.Value, quiet); !wanted.IsEmpty() {
			found = append(found, affinityDeviation("irq.effective-affinity", route, s.near(route, wanted)))
		}
	}
	return found
}

// leaving is where an interrupt goes that must leave the quiet CPUs: what remains of where it may be, else the
// CPUs that are for interrupts. Where interrupts may use every CPU until a pod objects, what pods have made of
// it is kept.
func (s *state) leaving(allowed, quiet cpus.Set) cpus.Set {
	online := s.facts.CPUs.Online.Value
	wanted := s.wantedForInterrupts().Difference(quiet).Intersection(online)
	if kept := allowed.Difference(quiet).Intersection(wanted); !kept.IsEmpty() {
		return kept
	}
	return wanted
}

// near prefers, for the interrupts of NICs, CPUs beside the NIC.
func (s *state) near(route *host.InterruptRoute, wanted cpus.Set) cpus.Set {
	for i := range s.facts.NICs {
		nic := &s.facts.NICs[i]
		if !slices.Contains(nic.Interrupts, route.Number) {
			continue
		}
		if local := nic.LocalCPUs.Value.Intersection(wanted); !local.IsEmpty() {
			return local
		}
	}
	return wanted
}

// poolInterruptDeviations are the vectors of pool NICs that are elsewhere than their pools want them.
func (s *state) poolInterruptDeviations() []Deviation {
	var found []Deviation
	for _, pool := range s.plan.BypassPools {
		for _, planned := range pool.NICs {
			vectors := s.vectorsOf(planned.PCIAddress)
			wanted := planned.InterruptCPUs.Intersection(s.facts.CPUs.Online.Value)
			for i := range s.facts.Interrupts.Routes {
				route := &s.facts.Interrupts.Routes[i]
				effective, ok := route.EffectiveAffinity.Get()
				if ok && !wanted.IsEmpty() && slices.Contains(vectors, route.Number) && !effective.IsSubsetOf(planned.InterruptCPUs) {
					found = append(found, affinityDeviation("nic.interrupts", route, wanted))
				}
			}
		}
	}
	return found
}

// vectorsOf are the interrupts of a NIC and of its virtual functions.
func (s *state) vectorsOf(address string) []int {
	found, ok := s.nic(address)
	if !ok {
		return nil
	}
	vectors := slices.Clone(found.Interrupts)
	for _, function := range found.VirtualFunctions {
		if f, ok := s.nic(function); ok {
			vectors = append(vectors, f.Interrupts...)
		}
	}
	return vectors
}

// affinityDeviation compares with where the interrupt may be: that is what can be written.
func affinityDeviation(check v1alpha1.CheckID, route *host.InterruptRoute, wanted cpus.Set) Deviation {
	return Deviation{
		Check: check, Object: interruptName(route.Number, route.Actions),
		Path:     fmt.Sprintf("/proc/irq/%d/smp_affinity_list", route.Number),
		Observed: route.Affinity.Value.String(), Planned: wanted.String(),
	}
}

// settingDeviations are the planned kernel parameters and files below /sys that hold something else.
func (s *state) settingDeviations() []Deviation {
	var found []Deviation
	compare := func(fallback v1alpha1.CheckID, planned plan.Setting, file string) {
		if value, ok := s.facts.Setting(file).Get(); ok && !setting.Same(file, value, planned.Value) {
			found = append(found, Deviation{judgeOf(file, fallback), file, file, setting.Selected(value), planned.Value})
		}
	}
	for _, sysctl := range s.plan.Sysctls {
		compare("kernel.sysctls", sysctl, host.SysctlPath(sysctl.Name))
	}
	for _, file := range s.plan.Sysfs {
		compare("kernel.sysfs", file, file.Name)
	}
	return found
}

// judgeOf is the check that judges a setting by itself, else the one that judges what is left.
func judgeOf(file string, fallback v1alpha1.CheckID) v1alpha1.CheckID {
	for _, check := range Catalogue() {
		for _, pattern := range check.owns {
			if matched, err := path.Match(pattern, file); err == nil && matched {
				return check.ID
			}
		}
	}
	return fallback
}

// governorDeviations are isolated CPUs with another frequency governor than the planned one.
func (s *state) governorDeviations() []Deviation {
	if s.plan.Power.Governor != v1alpha1.GovernorPerformance {
		return nil
	}
	const wanted = "performance"
	var found []Deviation
	for _, id := range s.plan.CPUs.Isolated.IDs() {
		cpu, ok := s.cpuByID[id]
		if !ok {
			continue
		}
		if governor, ok := cpu.Frequency.Governor.Get(); ok && governor != wanted {
			found = append(found, Deviation{"power.governor", fmt.Sprintf("CPU %d", id), cpu.Frequency.Governor.Source, governor, wanted})
		}
	}
	return found
}

// steeringDeviations are receive queues whose packets the kernel hands on to isolated CPUs.
func (s *state) steeringDeviations() []Deviation {
	found := make([]Deviation, 0, len(s.facts.NICs)+len(s.facts.Interfaces))
	for i := range s.facts.NICs {
		found = append(found, s.steeringOf("NIC "+s.facts.NICs[i].Name.Value, s.facts.NICs[i].ReceiveSteering)...)
	}
	for _, other := range s.facts.Interfaces {
		found = append(found, s.steeringOf("interface "+other.Name, other.ReceiveSteering)...)
	}
	return found
}

// steeringOf are those of one interface.
func (s *state) steeringOf(name string, masks []host.Fact[cpus.Set]) []Deviation {
	var found []Deviation
	for queue, fact := range masks {
		mask, ok := fact.Get()
		if !ok || !mask.Overlaps(s.plan.CPUs.Isolated) {
			continue
		}
		wanted := mask.Intersection(s.plan.CPUs.Housekeeping)
		if s.plan.Network.Steering == v1alpha1.PacketSteeringOff {
			wanted = cpus.Set{}
		}
		found = append(found, Deviation{steeringCheck, fmt.Sprintf("receive queue %d of %s", queue, name), fact.Source, mask.Mask(), wanted.Mask()})
	}
	return found
}

// steeringCheck is the check of where the kernel hands packets on to.
const steeringCheck v1alpha1.CheckID = "nic.receive-steering"
