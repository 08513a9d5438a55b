// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// poolChecks ask whether the NICs of BypassNICPools are what their pools make of them.
func poolChecks() []Check {
	return []Check{
		{
			ID: "nic.interrupts", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork,
			Conditions: []string{v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned},
			Title:      "Interrupts of pool NICs are handled by the CPUs that their BypassNICPool chooses",
			Applies:    "spec.interrupts.placement of a BypassNICPool with a NIC on the node is not Kept",
			Why:        "A driver that resets its NIC places the vectors again, on CPUs of programs that must not be disturbed or far from the NIC.",
			Reads:      []string{"/sys/bus/pci/devices/*/msi_irqs", "/proc/irq/*/effective_affinity_list"},
			Fix:        "See the log of lowlatency-nic-interrupts.service, which puts vectors back; a vector that the kernel manages itself cannot be moved.",
			Reboot:     v1alpha1.RebootNotRequired,
			Source:     "kernel: Documentation/core-api/irq/irq-affinity.rst",
			run:        eachPoolNIC((*state).poolInterruptsArePlaced),
		},
		{
			ID: "nic.functions", Severity: v1alpha1.SeverityHigh, Impact: ImpactNone, Conditions: []string{v1alpha1.ConditionApplied},
			Title:   "Pool NICs have the planned virtual functions and drivers",
			Applies: "a BypassNICPool with a NIC on the node has spec.virtualFunctions or stack VFIO",
			Why:     "A missing NIC is not handed out: the pods that request it wait.",
			Reads:   []string{"/sys/bus/pci/devices/*/virtfn*", "/sys/bus/pci/devices/*/driver"},
			Fix:     "See the log of the NIC's lowlatency-bypass-nic unit, which says what it could not do and why; it runs again at boot.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/PCI/pci-iov-howto.rst, Documentation/driver-api/vfio.rst",
			run:     eachPoolNIC((*state).functionsArePlanned),
		},
	}
}

// poolNIC is a NIC of a pool as the host has it.
type poolNIC struct {
	*host.NIC
	planned plan.PoolNICPlan
	// pool is "BypassNICPool x2", name "NIC ens2f0 (0000:3b:00.0)".
	pool, name string
}

// eachPoolNIC judges the NICs of all pools and names those that the host does not have.
func eachPoolNIC(rule func(*state, poolNIC) verdict) func(*state) verdict {
	return func(s *state) verdict {
		var verdicts []verdict
		for _, pool := range s.plan.BypassPools {
			for _, planned := range pool.NICs {
				found, ok := s.nic(planned.PCIAddress)
				if !ok {
					verdicts = append(verdicts, unknown("/sys/bus/pci/devices/"+planned.PCIAddress, "no such network device", "present").
						about(finding.OfNICs(planned.PCIAddress)))
					continue
				}
				verdicts = append(verdicts, rule(s, poolNIC{
					NIC: found, planned: planned, pool: "BypassNICPool " + pool.Name, name: nicName(found),
				}).about(finding.OfNICs(planned.PCIAddress)))
			}
		}
		return worst(verdicts...)
	}
}

// isInPool reports whether a pool of the plan has the NIC.
func (s *state) isInPool(address string) bool {
	return slices.ContainsFunc(s.plan.BypassPools, func(pool plan.PoolPlan) bool {
		return slices.ContainsFunc(pool.NICs, func(n plan.PoolNICPlan) bool { return n.PCIAddress == address })
	})
}

// poolInterruptsArePlaced judges the vectors of the NIC and of its virtual functions by where they are delivered. A
// NIC without vectors has nothing that could be in the wrong place.
func (s *state) poolInterruptsArePlaced(n poolNIC) verdict {
	wanted := n.planned.InterruptCPUs
	if wanted.IsEmpty() {
		return notApplicable()
	}
	vectors := slices.Clone(n.Interrupts)
	for _, address := range n.VirtualFunctions {
		if function, ok := s.nic(address); ok {
			vectors = append(vectors, function.Interrupts...)
		}
	}
	verdicts := []verdict{passed("")}
	for i := range s.facts.Interrupts.Routes {
		route := &s.facts.Interrupts.Routes[i]
		if !slices.Contains(vectors, route.Number) {
			continue
		}
		verdicts = append(verdicts, judge(route.EffectiveAffinity, wanted.String(), func(effective cpus.Set) verdict {
			if wrong := effective.Difference(wanted); !wrong.IsEmpty() {
				return failed(fmt.Sprintf("%s of %s is delivered to %s; %s wants %s", interruptName(route.Number, route.Actions), n.name,
					wrong.Name(), n.pool, wanted), fmt.Sprintf("IRQ %d: %s", route.Number, effective), wanted.String()).
					about(finding.OfCPUs(wrong), s.interrupt(route.Number, route.Actions))
			}
			return passed(n.PCIAddress + ": " + wanted.Name())
		}))
	}
	return worst(verdicts...)
}

// functionsArePlanned judges the number of virtual functions, and the driver of each, or that of the NIC.
func (s *state) functionsArePlanned(n poolNIC) verdict {
	want := n.planned
	if want.VirtualFunctions == 0 {
		return driverIsPlanned(n.NIC, n.name, want.Driver)
	}
	expected := fmt.Sprintf("%s: %d virtual functions", n.PCIAddress, want.VirtualFunctions)
	if have := len(n.VirtualFunctions); have != want.VirtualFunctions {
		return failed(fmt.Sprintf("%s has %d virtual functions, %s wants %d", n.name, have, n.pool, want.VirtualFunctions),
			n.PCIAddress+": "+strconv.Itoa(have)+" virtual functions", expected)
	}
	verdicts := []verdict{passed(expected)}
	for _, address := range n.VirtualFunctions {
		function, ok := s.nic(address)
		if !ok {
			verdicts = append(verdicts, unknown("/sys/bus/pci/devices/"+address, "no such network device", expected))
			continue
		}
		verdicts = append(verdicts, driverIsPlanned(function, "virtual function "+address+" of "+n.name, want.Driver))
	}
	return worst(verdicts...)
}

// driverIsPlanned judges the driver of a PCI function; "" wants none in particular.
func driverIsPlanned(nic *host.NIC, name, want string) verdict {
	if want == "" {
		return notApplicable()
	}
	expected := nic.PCIAddress + ": driver " + want
	return judge(nic.Driver, expected, func(have string) verdict {
		if have == want {
			return passed(expected)
		}
		return failed(fmt.Sprintf("%s is bound to %s, planned is %s", name, have, want), nic.PCIAddress+": driver "+have, expected).
			about(finding.OfNICs(nic.PCIAddress))
	})
}
