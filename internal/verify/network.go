// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const (
	settingSteeringMask = "/proc/sys/net/core/rps_default_mask"
	settingFlowEntries  = "/proc/sys/net/core/rps_sock_flow_entries"
	settingASPM         = "/sys/module/pcie_aspm/parameters/policy"
)

// networkChecks ask what the kernel's network stack does to isolated CPUs, and what it loses.
func networkChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "nic.receive-steering", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:  "No receive queue hands its packets to isolated CPUs",
			Why:    "Receive packet steering interrupts the chosen CPU, and the whole network stack runs there.",
			Reads:  []string{"/sys/class/net/*/queues/rx-*/rps_cpus", settingSteeringMask},
			Fix:    "Write the mask of the housekeeping CPUs to the queue's rps_cpus and to net.core.rps_default_mask.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/networking/scaling.rst (RPS)",
			owns:   []string{settingSteeringMask},
			run:    receiveSteeringKeepsOff,
		},
		{
			ID: "net.flow-steering", Severity: v1alpha1.SeverityLow, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Packets do not follow programs to isolated CPUs",
			Applies: onHousekeeping,
			Why:     "Receive flow steering moves the network stack's work, and with NIC support the interrupt itself, to the CPU on which the program reads.",
			Reads:   []string{settingFlowEntries},
			Fix:     "Set net.core.rps_sock_flow_entries to 0.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/networking/scaling.rst (RFS, accelerated RFS)",
			owns:    []string{settingFlowEntries},
			run: where(someAreQuiet, func(s *state) verdict {
				want, planned := s.sysctl("net.core.rps_sock_flow_entries")
				if !planned {
					want = "0"
				}
				return s.settingIs(settingFlowEntries, want)
			}),
		},
		{
			ID: "net.busy-poll", Severity: v1alpha1.SeverityLow, Impact: ImpactNone, Conditions: deJittered,
			Title:   "Sockets poll the NIC as planned",
			Applies: "the plan sets net.core.busy_poll or net.core.busy_read",
			Why:     "A socket of the kernel that sleeps wakes up microseconds after its packet came.",
			Reads:   []string{"/proc/sys/net/core/busy_poll", "/proc/sys/net/core/busy_read"},
			Fix:     "Set net.core.busy_poll and net.core.busy_read to the planned values, or take them out of spec.system.kernelParameters.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/networking/napi.rst (busy polling); TuneD network-latency",
			owns:    []string{"/proc/sys/net/core/busy_poll", "/proc/sys/net/core/busy_read"},
			run: func(s *state) verdict {
				return worst(plannedSysctl("net.core.busy_poll")(s), plannedSysctl("net.core.busy_read")(s))
			},
		},
		{
			ID: "net.drops", Severity: v1alpha1.SeverityMedium, Impact: ImpactNone, Conditions: deJittered, Window: true,
			Title:  "The host's network stack dropped no packet for want of room since the last reading",
			Why:    "A lost packet costs its program the time of a retransmission, or a gap that multicast never fills.",
			Reads:  []string{"/proc/1/net/softnet_stat", "/proc/1/net/snmp (Udp RcvbufErrors)"},
			Fix:    "Raise net.core.netdev_max_backlog or net.core.rmem_max, or give the stack more housekeeping CPUs.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/admin-guide/sysctl/net.rst (netdev_max_backlog, rmem_max)",
			run:    stackLosesNothing,
		},
	}
}

// interfaceChecks ask whether NICs are set up as planned and lose nothing.
func interfaceChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	return []Check{
		{
			ID: "nic.drops", Severity: v1alpha1.SeverityHigh, Impact: ImpactNone, Conditions: deJittered, Window: true,
			Title:   "No bypass NIC lost a packet since the last reading",
			Applies: forBypassNICs,
			Why:     "A packet that found no descriptor is gone: the program was too slow, or its ring too small.",
			Reads:   []string{"/sys/class/net/*/statistics/{rx_fifo,rx_missed,rx_over,tx_fifo}_errors"},
			Fix:     "Enlarge the NIC's rings (ethtool -G), and see whether the program's CPU was taken from it.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-class-net-statistics",
			run:     eachBypassNIC((*state).nicLosesNothing),
		},
		{
			ID: "nic.queues", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: deJittered,
			Title:   "NICs have as many queues as planned",
			Applies: "spec.network.queues is Housekeeping",
			Why:     "Each queue has an interrupt: more of them than housekeeping CPUs end up on isolated ones.",
			Reads:   []string{"/sys/class/net/*/queues/rx-*"},
			Fix:     "Run ethtool -L INTERFACE combined with the planned number, and see in TuneD's log why its net plugin did not.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "ethtool(8) (--set-channels); TuneD realtime (combined channels)",
			run:     queuesArePlanned,
		},
		{
			ID: "nic.link-power", Severity: v1alpha1.SeverityMedium, Impact: ImpactSpeed, Conditions: deJittered,
			Title:   "The PCIe links of bypass NICs do not save power",
			Applies: forBypassNICs,
			Why:     "A link in state L1 takes microseconds to carry the next packet.",
			Reads:   []string{settingASPM, "/sys/bus/pci/devices/*/link/l*_aspm"},
			Fix:     "Boot with pcie_aspm.policy=performance, write 0 to the link's files, or switch ASPM off in the firmware.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-bus-pci (link/), Documentation/admin-guide/kernel-parameters.txt (pcie_aspm)",
			run:     eachBypassNIC((*state).linkStaysAwake),
		},
	}
}

// receiveSteeringKeepsOff judges the mask of new interfaces, if the kernel has it (since Linux 6.0), and every queue.
func receiveSteeringKeepsOff(s *state) verdict {
	wanted := s.plan.CPUs.Housekeeping
	var verdicts []verdict
	if mask := s.facts.Setting(settingSteeringMask); mask.Known || mask.Reason != reasonMissing {
		verdicts = append(verdicts, judge(s.maskSetting(settingSteeringMask), "within "+wanted.String(), func(found cpus.Set) verdict {
			return offCPUs(settingSteeringMask, found, s.plan.CPUs.Isolated, wanted).about(finding.OfFiles(settingSteeringMask))
		}))
	}
	if want, planned := s.sysctl("net.core.rps_default_mask"); planned {
		verdicts = append(verdicts, s.settingIs(settingSteeringMask, want))
	}
	for i := range s.facts.NICs {
		nic := &s.facts.NICs[i]
		for _, queue := range s.queuesKeepOff(nicName(nic), nic.ReceiveSteering) {
			verdicts = append(verdicts, queue.about(finding.OfNICs(nic.PCIAddress)))
		}
	}
	for _, other := range s.facts.Interfaces {
		verdicts = append(verdicts, s.queuesKeepOff("interface "+other.Name, other.ReceiveSteering)...)
	}
	if len(verdicts) == 0 {
		return unsaid("/sys/class/net/*/queues", "no receive queue is listed", "within "+wanted.String())
	}
	joined := worst(verdicts...)
	if joined.outcome == v1alpha1.OutcomePassed {
		return passed(strconv.Itoa(len(verdicts)) + " masks")
	}
	return joined
}

// queuesKeepOff judges the masks of an interface's receive queues.
func (s *state) queuesKeepOff(name string, masks []host.Fact[cpus.Set]) []verdict {
	wanted := s.plan.CPUs.Housekeeping
	verdicts := make([]verdict, 0, len(masks))
	for queue, mask := range masks {
		verdicts = append(verdicts, judge(mask, "within "+wanted.String(), func(found cpus.Set) verdict {
			return offCPUs(fmt.Sprintf("rps_cpus of queue %d of %s", queue, name), found, s.plan.CPUs.Isolated, wanted).about(finding.OfFiles(mask.Source))
		}))
	}
	return verdicts
}

func stackLosesNothing(s *state) verdict {
	return worst(
		lossless("the backlogs of the host's CPUs overflowed", s.facts.Traffic.BacklogDrops, s.before.Traffic.BacklogDrops),
		lossless("the buffers of the host's UDP sockets overflowed", s.facts.Traffic.DatagramDrops, s.before.Traffic.DatagramDrops),
	)
}

// lossless judges a counter of lost packets; the sentence says what happened when it grew.
func lossless(sentence string, now, before host.Fact[uint64]) verdict {
	return judge(before, noIncrease, func(was uint64) verdict {
		return judge(now, noIncrease, func(is uint64) verdict {
			switch {
			case is < was:
				return unsaid(now.Source, "the counter ran backwards, so the host was rebooted between the readings", noIncrease)
			case is > was:
				return failed(sentence+" "+times(is-was)+" since the last reading", now.Source+" grew", noIncrease)
			}
			return passed(noIncrease)
		})
	})
}

// nicLosesNothing judges the counters that the NIC's interface has. A NIC without interface is a program's own, whose
// counters no file shows.
func (s *state) nicLosesNothing(n nic) verdict {
	if n.Drops == nil {
		return notApplicable()
	}
	i := slices.IndexFunc(s.before.NICs, func(earlier host.NIC) bool { return earlier.PCIAddress == n.PCIAddress })
	if i < 0 {
		return unsaid("the earlier reading", "it has no counters of "+n.name, noIncrease)
	}
	verdicts := make([]verdict, 0, len(n.Drops))
	for _, name := range slices.Sorted(maps.Keys(n.Drops)) {
		verdicts = append(verdicts, lossless(n.name+" lost packets ("+name+")", n.Drops[name], s.before.NICs[i].Drops[name]))
	}
	return worst(verdicts...)
}

// queuesArePlanned counts the receive queues of the planned interfaces: the kernel shows those that are in use.
func queuesArePlanned(s *state) verdict {
	want := s.plan.Network.Queues
	if want == 0 {
		return notApplicable()
	}
	var verdicts []verdict
	for i := range s.facts.NICs {
		nic := &s.facts.NICs[i]
		if !nic.Name.Known || nic.PhysicalFunction.Known || !s.queuesAreSet(nic) {
			continue
		}
		expected := fmt.Sprintf("%s: at most %d queues", nic.PCIAddress, want)
		have := len(nic.ReceiveSteering)
		switch {
		case have == 0:
			verdicts = append(verdicts, unsaid("/sys/class/net/"+nic.Name.Value+"/queues", "no receive queue is listed", expected))
		case have > want:
			verdicts = append(verdicts, failed(fmt.Sprintf("%s has %d receive queues, planned are %d", nicName(nic), have, want),
				fmt.Sprintf("%s: %d queues", nic.PCIAddress, have), expected).about(finding.OfNICs(nic.PCIAddress)))
		default:
			verdicts = append(verdicts, passed(fmt.Sprintf("%s: %d queues", nic.PCIAddress, have)))
		}
	}
	return worst(verdicts...)
}

// queuesAreSet reports whether the plan sets the queues of the NIC: those of the selected NICs, or of all.
func (s *state) queuesAreSet(nic *host.NIC) bool {
	if len(s.plan.Network.NICs) == 0 {
		return true
	}
	return topology.SelectsNIC(s.plan.Network.NICs, topology.OfHostNIC(nic))
}

// linkStaysAwake accepts the policy of the whole host, else looks at the link. Virtual functions have none.
func (s *state) linkStaysAwake(n nic) verdict {
	if n.PhysicalFunction.Known {
		return notApplicable()
	}
	if policy, ok := s.facts.Setting(settingASPM).Get(); ok && setting.Selected(policy) == "performance" {
		return passed("policy performance")
	}
	expected := n.PCIAddress + ": no power state"
	return judge(n.LinkPowerStates, expected, func(on []string) verdict {
		if len(on) > 0 {
			return failed(fmt.Sprintf("the PCIe link of %s saves power: %s", n.name, enumerate(on)), n.PCIAddress+": "+enumerate(on), expected)
		}
		return passed(expected)
	})
}
