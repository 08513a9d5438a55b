// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package tunedprofile writes what a plan sets on the running system as a profile of TuneD, on every platform that has
// TuneD. The profile states every setting itself and has no bootloader section, so that kernel arguments have one writer.
// It is pure.
package tunedprofile

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// transparentHugepagesFile has an option of its own in TuneD.
const transparentHugepagesFile = "/sys/kernel/mm/transparent_hugepage/enabled"

// Text is the TuneD profile of a plan. The parent is the profile that it includes, "" for none. A name or value that TuneD would read
// back as anything but itself is an error.
func Text(p *plan.NodePlan, parent string) (string, error) {
	main := section{name: "main"}
	main.set("summary", "Low-latency node of profile "+p.Profile)
	if parent != "" {
		main.set("include", parent)
	}
	network, err := networkSection(p.Network)
	if err != nil {
		return "", err
	}
	return printProfile([]section{
		main, sysctlSection(p.Sysctls), sysfsSection(p.Sysfs), memorySection(p.Sysfs), cpuSection(p),
		irqbalanceSection(), schedulerSection(p.KernelThreads), timestampSection(), serviceSection(p.Units), network,
	})
}

func sysctlSection(sysctls []plan.Setting) section {
	s := section{name: "sysctl"}
	for _, setting := range sysctls {
		s.set(setting.Name, setting.Value)
	}
	return s
}

func sysfsSection(settings []plan.Setting) section {
	s := section{name: "sysfs"}
	for _, setting := range settings {
		if setting.Name != transparentHugepagesFile {
			s.set(setting.Name, setting.Value)
		}
	}
	return s
}

// memorySection sets transparent hugepages by TuneD's own option, so that a parent profile that does the same has
// one value and not two writers.
func memorySection(settings []plan.Setting) section {
	s := section{name: "vm"}
	for _, setting := range settings {
		if setting.Name == transparentHugepagesFile {
			s.set("transparent_hugepages", setting.Value)
		}
	}
	return s
}

// cpuSection replaces that of the parent profile, which would set the governor even where the plan keeps it.
func cpuSection(p *plan.NodePlan) section {
	s := section{name: "cpu"}
	if p.Power.IdleStates == v1alpha1.IdleShallowByQoS {
		s.set("force_latency", shallowLatency(p.Architecture))
	}
	if p.Power.Governor == v1alpha1.GovernorPerformance {
		s.set("governor", "performance")
	}
	if p.Power.Governor == v1alpha1.GovernorPerformance && p.Vendor == "Intel" {
		s.set("energy_perf_bias", "performance")
		s.set("min_perf_pct", "100")
	}
	if len(s.options) == 0 {
		s.set("enabled", "false")
		return s
	}
	s.set("replace", "true")
	return s
}

// shallowLatency is the latency request that allows the shallowest real idle state, or 3 microseconds where the
// kernel lists none. On x86 state 0 is polling and state 1 is C1; on arm64 state 0 is WFI.
func shallowLatency(architecture string) string {
	if architecture == "arm64" {
		return "cstate.id:0|3"
	}
	return "cstate.id:1|3"
}

// irqbalanceSection switches the plugin off, which a parent profile may switch on. The plan bans CPUs by a drop-in of
// irqbalance.service, while the plugin writes /etc/sysconfig/irqbalance, as container runtimes do for each pod that asks
// for quiet CPUs: with TuneD as a second writer, a restart of it would take back what the runtime wrote.
func irqbalanceSection() section {
	s := section{name: "irqbalance"}
	s.set("enabled", "false")
	return s
}

// schedulerSection keeps the plugin, which the parent profile switches on, from doing what it does by default:
// watching every new process through perf events, which costs CPU time, and writing interrupt affinities. It sets the
// priorities of the kernel's threads once: rule priority, policy, priority, affinity (any), and an expression that matches
// a thread of the kernel, whose name TuneD puts in brackets, and no program with a similar name.
func schedulerSection(threads []plan.KernelThreadPlan) section {
	s := section{name: "scheduler"}
	s.set("runtime", "0")
	s.set("irq_process", "false")
	s.set("default_irq_smp_affinity", "ignore")
	for _, thread := range threads {
		s.set("group."+thread.Name, fmt.Sprintf(`0:f:%d:*:^\[%s/`, thread.Priority, thread.Name))
	}
	return s
}

// timestampSection makes TuneD hold a socket with time stamps open. The first such socket of a host, and the end of the
// last, change code of the kernel, which interrupts every CPU (net_enable_timestamp in net/core/dev.c). The plugin has
// no options.
func timestampSection() section { return section{name: "rtentsk", bare: true} }

// serviceSection stops at once what is masked from the next boot on.
func serviceSection(units []plan.Unit) section {
	s := section{name: "service"}
	for _, unit := range units {
		if unit.Masked {
			s.set("service."+unit.Name, "stop")
		}
	}
	return s
}

// networkSection sets the number of queues in the parent profile's own section, since TuneD gives each NIC to one
// section only.
func networkSection(network plan.NetworkPlan) (section, error) {
	s := section{name: "net"}
	if network.Queues == 0 {
		return s, nil
	}
	if len(network.NICs) > 0 {
		expression, err := udevExpression(network.NICs)
		if err != nil {
			return s, err
		}
		s.set("devices_udev_regex", expression)
	}
	s.set("channels", fmt.Sprintf("combined %d", network.Queues))
	return s, nil
}
