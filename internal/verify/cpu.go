// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"errors"
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

const (
	settingSMTActive      = "/sys/devices/system/cpu/smt/active"
	settingInitStatus     = "/proc/1/status"
	settingCgroupIsolated = "/sys/fs/cgroup/cpuset.cpus.isolated"
	settingDataPlane      = "/sys/fs/cgroup/" + plan.DataPlaneSlice + "/cpuset.cpus.partition"
)

// partitionChecks ask whether the CPUs are divided as planned.
func partitionChecks() []Check {
	return []Check{
		{
			ID: "cpu.partition", Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:  "Housekeeping and isolated CPUs are exactly the online CPUs",
			Why:    "A CPU that belongs to no set runs whatever the scheduler puts there, and a housekeeping CPU that is missing leaves its work to isolated ones.",
			Reads:  []string{"/sys/devices/system/cpu/online"},
			Fix:    "Bring the CPUs online or offline as planned (/sys/devices/system/cpu/cpuN/online), or change spec.cpus.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/timers/no_hz.rst (at least one housekeeping CPU)",
			run:    partitionIsSound,
		},
		{
			ID: "cpu.online", Severity: v1alpha1.SeverityCritical, Impact: ImpactPlan, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:  "Every isolated CPU is online",
			Why:    "Pods that need the CPU cannot start.",
			Reads:  []string{"/sys/devices/system/cpu/cpu*/online", "/sys/devices/system/cpu/{offline,isolated,nohz_full}"},
			Fix:    "Write 1 to /sys/devices/system/cpu/cpuN/online.",
			Reboot: v1alpha1.RebootNotRequired,
			Source: "kernel: Documentation/core-api/cpu_hotplug.rst",
			run:    isolatedAreOnline,
		},
		{
			ID: "cpu.siblings", Severity: v1alpha1.SeverityCritical, Impact: ImpactSpeed, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:  "No isolated CPU shares its core with a CPU that is not isolated",
			Why:    "Sibling threads share execution units and the first two cache levels: work on one slows the other down unpredictably.",
			Reads:  []string{"/sys/devices/system/cpu/cpu*/topology/thread_siblings_list"},
			Fix:    "Give both threads of a core to one set in spec.cpus, or set spec.cpus.simultaneousMultithreading to Disabled.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/admin-guide/cputopology.rst",
			run:    siblingsAreTogether,
		},
		{
			ID: "cpu.smt", Severity: v1alpha1.SeverityHigh, Impact: ImpactSpeed, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:   "Simultaneous multithreading is off",
			Applies: "spec.cpus.simultaneousMultithreading is Disabled",
			Why:     "A sibling thread that runs takes execution units and cache from an isolated CPU.",
			Reads:   []string{settingSMTActive},
			Fix:     "Boot with nosmt, or write off to /sys/devices/system/cpu/smt/control.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/ABI/testing/sysfs-devices-system-cpu (smt)",
			owns:    []string{"/sys/devices/system/cpu/smt/*"},
			run: func(s *state) verdict {
				if s.plan.CPUs.SMT != v1alpha1.SMTDisabled {
					return notApplicable()
				}
				return s.settingIs(settingSMTActive, "0")
			},
		},
	}
}

// isolationChecks ask whether the scheduler, the tick and RCU leave isolated CPUs alone.
func isolationChecks() []Check {
	return []Check{
		{
			ID: "cpu.isolated", Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:  "The scheduler balances no task onto an isolated CPU",
			Why:    "Any task of the system may be moved onto the CPU and run there for milliseconds.",
			Reads:  []string{"/sys/devices/system/cpu/isolated", settingCgroupIsolated, settingDataPlane, "/proc/cmdline (tuned.non_isolcpus)"},
			Fix:    "Boot with isolcpus=domain,managed_irq, as the plan's kernel arguments say.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/admin-guide/kernel-parameters.txt (isolcpus=), cgroup-v2.rst (cpuset.cpus.isolated); TuneD cpu-partitioning",
			run:    schedulerIsolates,
		},
		{
			ID: "cpu.nohz-full", Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:   "Isolated CPUs run without the scheduler tick",
			Applies: "spec.cpus.tick is Stopped",
			Why:     "The tick interrupts a spinning program 100 to 1000 times a second for one to several microseconds.",
			Reads:   []string{"/sys/devices/system/cpu/nohz_full"},
			Fix:     "Boot with nohz_full= for the isolated CPUs on a kernel built with CONFIG_NO_HZ_FULL.",
			Reboot:  v1alpha1.RebootRequired,
			Source:  "kernel: Documentation/timers/no_hz.rst",
			run:     tickIsStopped,
		},
		{
			ID: "cpu.rcu-offload", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:  "RCU callbacks of isolated CPUs run elsewhere",
			Why:    "RCU frees memory in softirq context on the CPU that asked for it: bursts of tens of microseconds.",
			Reads:  []string{"/proc/cmdline (rcu_nocbs, nohz_full)", "/sys/devices/system/cpu/nohz_full"},
			Fix:    "Boot with rcu_nocbs= for the isolated CPUs.",
			Reboot: v1alpha1.RebootRequired,
			Source: "kernel: Documentation/admin-guide/kernel-parameters.txt (rcu_nocbs=, nohz_full= implies it)",
			run:    rcuIsOffloaded,
		},
		{
			ID: "cpu.init-affinity", Severity: v1alpha1.SeverityMedium, Impact: ImpactWork, Conditions: []string{v1alpha1.ConditionDeJittered},
			Title:  "Process 1, from which services inherit, keeps to housekeeping CPUs",
			Why:    "Services inherit the CPUs of the process that starts them.",
			Reads:  []string{settingInitStatus + " (Cpus_allowed_list)"},
			Fix:    "Boot with systemd.cpu_affinity= for the housekeeping CPUs, or set CPUAffinity= in /etc/systemd/system.conf.",
			Reboot: v1alpha1.RebootRequired,
			Source: "systemd: systemd-system.conf(5) (CPUAffinity=)",
			run:    initKeepsToHousekeeping,
		},
	}
}

func partitionIsSound(s *state) verdict {
	housekeeping, isolated := s.plan.CPUs.Housekeeping, s.plan.CPUs.Isolated
	expected := fmt.Sprintf("housekeeping %s, isolated %s, nothing else online", housekeeping, isolated)
	if both := housekeeping.Intersection(isolated); !both.IsEmpty() {
		return failed(both.Name()+" "+isOrAre(both)+" planned as housekeeping and as isolated", both.String(), expected).about(finding.OfCPUs(both))
	}
	if housekeeping.IsEmpty() {
		return failed("the plan has no housekeeping CPU", "", expected)
	}
	return judge(s.onlineCPUs(), expected, func(online cpus.Set) verdict {
		if stray := online.Difference(housekeeping.Union(isolated)); !stray.IsEmpty() {
			return failed(fmt.Sprintf("%s %s online and neither housekeeping nor isolated", stray.Name(), isOrAre(stray)), online.String(), expected).
				about(finding.OfCPUs(stray))
		}
		if gone := housekeeping.Difference(online); !gone.IsEmpty() {
			return failed(fmt.Sprintf("housekeeping %s %s not online", gone.Name(), isOrAre(gone)), online.String(), expected).about(finding.OfCPUs(gone))
		}
		return passed(online.String())
	})
}

// isolatedAreOnline asks those that the plan isolates, and those that the running kernel was booted to isolate and that no plan
// that was made since can know, because they are offline. With simultaneous multithreading off, siblings are offline on
// purpose, whatever list they are in.
func isolatedAreOnline(s *state) verdict {
	wanted := s.plan.CPUs.Isolated
	if s.plan.CPUs.SMT != v1alpha1.SMTDisabled && !s.running.Value.Contains("nosmt") && !s.running.Value.Contains("nosmt=force") {
		planned := s.plan.CPUs.Housekeeping.Union(s.plan.CPUs.Offline)
		wanted = wanted.Union(s.facts.CPUs.Isolated.Value.Union(s.facts.CPUs.NoHzFull.Value).Intersection(s.facts.CPUs.Offline.Value).Difference(planned))
	}
	return s.surveyAll(wanted, "online", func(cpu *host.CPU) answer {
		return about(cpu.Online, func(online bool) string {
			if online {
				return ""
			}
			return "offline"
		})
	})
}

// onlineCPUs is the kernel's own list, and where that is missing, as in many snapshots, what the CPUs say
// one by one.
func (s *state) onlineCPUs() host.Fact[cpus.Set] {
	if s.facts.CPUs.Online.Known || len(s.facts.CPUs.List) == 0 {
		return s.facts.CPUs.Online
	}
	var ids []int
	for _, cpu := range s.facts.CPUs.List {
		online, ok := cpu.Online.Get()
		if !ok {
			return host.Absent[cpus.Set](cpu.Online.Source, cpu.Online.Reason)
		}
		if online {
			ids = append(ids, cpu.ID)
		}
	}
	return host.Known(cpus.Of(ids...), "/sys/devices/system/cpu/cpu*/online")
}

// siblingsAreTogether asks the CPUs that are online. The others share nothing, and the kernel says nothing about their
// cores (drivers/base/topology.c removes the folder); that they are missed is another check.
func siblingsAreTogether(s *state) verdict {
	isolated := s.plan.CPUs.Isolated
	asked, others := isolated, s.plan.CPUs.Housekeeping
	if online, ok := s.onlineCPUs().Get(); ok {
		asked, others = isolated.Intersection(online), others.Union(online)
	}
	return s.surveyCPUs(asked, "whole cores isolated", func(cpu *host.CPU) answer {
		return about(cpu.Siblings, func(siblings cpus.Set) string {
			foreign := siblings.Difference(isolated).Intersection(others).Filter(func(id int) bool { return s.shareCore(cpu, id) })
			if foreign.IsEmpty() {
				return ""
			}
			return fmt.Sprintf("its core is shared with %s, which %s not isolated", foreign.Name(), isOrAre(foreign))
		})
	})
}

// shareCore tells siblings that the firmware numbers as cores of their own, as on some Arm servers, virtual machines and AMD's
// compute units: topology.FromFacts, by which plans are made, takes them for cores.
func (s *state) shareCore(cpu *host.CPU, sibling int) bool {
	other, listed := s.cpuByID[sibling]
	return !listed || !cpu.Core.Known || !other.Core.Known || cpu.Core.Value == other.Core.Value
}

// schedulerIsolates judges isolated CPUs, and the partition of the data plane.
func schedulerIsolates(s *state) verdict { return worst(s.balancesNone(), s.dataPlaneIsApart()) }

// dataPlaneIsApart judges the control group that the plan makes a partition of its own. The kernel takes the word back where
// it cannot be one, and says why: "isolated invalid (…)" (Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition).
func (s *state) dataPlaneIsApart() verdict {
	if s.plan.CPUs.DataPlane.IsEmpty() || s.plan.CPUs.DataPlaneBalancing != v1alpha1.LoadBalancingDisabled {
		return notApplicable()
	}
	return judge(s.facts.Setting(settingDataPlane), "isolated", func(found string) verdict {
		if found == "isolated" {
			return passed(settingDataPlane + " is isolated")
		}
		return failed(fmt.Sprintf("the scheduler balances tasks onto the data plane's %s: %s is %s", s.plan.CPUs.DataPlane.Name(), settingDataPlane, orNone(found)),
			found, "isolated").about(finding.OfCPUs(s.plan.CPUs.DataPlane), finding.OfFiles(settingDataPlane))
	})
}

// balancesNone accepts both ways of taking CPUs out of the scheduler's domains: isolcpus=domain and
// isolated cgroup partitions. With isolation PerPod the CPUs stay balanced; TuneD's cpu-partitioning
// profile then moves tasks away, which its marker on the command line shows.
func (s *state) balancesNone() verdict {
	isolated := s.plan.CPUs.Isolated
	if s.plan.CPUs.Isolation == v1alpha1.IsolationPerPod {
		return s.tunedPartitions(isolated)
	}
	dynamic := s.cpuListSetting(settingCgroupIsolated)
	if dynamic.Known && isolated.IsSubsetOf(dynamic.Value) {
		return passed(dynamic.Value.String())
	}
	return judge(s.facts.CPUs.Isolated, isolated.String(), func(static cpus.Set) verdict {
		found := static.Union(dynamic.Value)
		return s.lacks(isolated.Difference(found), found, "in the scheduler's domains: %s not in /sys/devices/system/cpu/isolated")
	})
}

// tunedPartitions judges TuneD's own marker; without it, the container runtime isolates pod by pod and
// there is nothing to see on the host.
func (s *state) tunedPartitions(isolated cpus.Set) verdict {
	line, ok := s.running.Get()
	if !ok {
		return notApplicable()
	}
	mask, ok := line.Get("tuned.non_isolcpus")
	if !ok {
		return notApplicable()
	}
	balanced, err := cpus.ParseMask(mask)
	if err != nil {
		return unknown("/proc/cmdline", "tuned.non_isolcpus: "+err.Error(), isolated.String())
	}
	return s.lacks(isolated.Intersection(balanced), balanced, "left to all tasks by TuneD: %s in tuned.non_isolcpus")
}

// lacks fails when CPUs remain for which something does not hold. The phrase takes "it is" or "they are".
func (s *state) lacks(remaining, found cpus.Set, phrase string) verdict {
	if remaining.IsEmpty() {
		return passed(found.String())
	}
	they := "they are"
	if remaining.Len() == 1 {
		they = "it is"
	}
	message := fmt.Sprintf("isolated %s %s "+phrase, remaining.Name(), isOrAre(remaining), they)
	return failed(message, orNone(found.String()), s.plan.CPUs.Isolated.String()).about(finding.OfCPUs(remaining))
}

func tickIsStopped(s *state) verdict {
	if s.plan.CPUs.Tick != v1alpha1.TickStopped {
		return notApplicable()
	}
	isolated := s.plan.CPUs.Isolated
	return judge(s.facts.CPUs.NoHzFull, isolated.String(), func(stopped cpus.Set) verdict {
		return s.lacks(isolated.Difference(stopped), stopped, "interrupted by the scheduler tick: %s not in /sys/devices/system/cpu/nohz_full")
	})
}

func rcuIsOffloaded(s *state) verdict {
	isolated := s.plan.CPUs.Isolated
	tickless := s.facts.CPUs.NoHzFull
	if tickless.Known && isolated.IsSubsetOf(tickless.Value) {
		return passed("nohz_full " + tickless.Value.String())
	}
	return judge(s.running, isolated.String(), func(line cmdline.Line) verdict {
		offloaded := argumentCPUs(line, "rcu_nocbs", s.machine().Possible).Union(tickless.Value)
		if !tickless.Known {
			offloaded = offloaded.Union(line.Isolation(s.machine()).Noise)
		}
		return s.lacks(isolated.Difference(offloaded), offloaded, "left to run RCU callbacks: %s neither in rcu_nocbs= nor in nohz_full=")
	})
}

func initKeepsToHousekeeping(s *state) verdict {
	if _, planned := s.planned.Get("systemd.cpu_affinity"); !planned && s.plan.CPUs.Isolation == v1alpha1.IsolationPerPod {
		return notApplicable()
	}
	expected := "within " + s.plan.CPUs.Housekeeping.String()
	return judge(parseSetting(s.facts.Setting(settingInitStatus), allowedCPUs), expected, func(allowed cpus.Set) verdict {
		found := s.lacks(allowed.Intersection(s.plan.CPUs.Isolated), allowed, "open to process 1: %s in its Cpus_allowed_list")
		found.expected = expected
		return found
	})
}

// allowedCPUs finds Cpus_allowed_list in the status of a process (proc_pid_status(5)).
func allowedCPUs(status string) (cpus.Set, error) {
	for line := range strings.Lines(status) {
		if list, found := strings.CutPrefix(line, "Cpus_allowed_list:"); found {
			return cpus.Parse(list)
		}
	}
	return cpus.Set{}, errors.New("it has no Cpus_allowed_list")
}
