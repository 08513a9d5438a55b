// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"maps"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// object lets interrupts use every CPU but those of a pod that asked for none.
func object(f fixture) {
	f.plan.Interrupts.Placement, f.plan.Interrupts.Balancer = v1alpha1.InterruptsPerPod, v1alpha1.BalancerKept
	f.plan.Interrupts.DefaultAffinity, f.plan.Interrupts.Banned = list("0-7"), cpus.Set{}
	f.facts.Interrupts.DefaultAffinity = known(list("0-1,4-7"))
	f.facts.Processes.Value[1].Environment = map[string]string{"IRQBALANCE_BANNED_CPUS": "0"}
}

// objectNot lets interrupts use every CPU, those of a pod among them.
func objectNot(f fixture) {
	object(f)
	f.facts.Interrupts.DefaultAffinity = known(list("0-7"))
}

// roam lets interrupts use every CPU that no pod owns; no pod runs.
func roam(f fixture) {
	f.plan.Interrupts.Placement = v1alpha1.InterruptsPerPod
	f.disown()
}

func interruptCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"irq.default-affinity": {
			"as planned":                  {want: passes},
			"per pod":                     {change: roam, want: doesNotApply},
			"per pod, and nobody objects": {change: objectNot, want: doesNotApply},
			"per pod, and a pod objects":  {change: object, want: passes},
			"per pod, and an objection is half in force": {
				change: func(f fixture) { object(f); f.facts.Interrupts.DefaultAffinity = known(list("0-2,4-7")) },
				want:   fails, wantMessage: "/proc/irq/default_smp_affinity holds CPU 2 of container trading/engine-0/engine, whose pod asked for no interrupts",
			},
			"per pod, and not told": {
				change: func(f fixture) {
					object(f)
					f.facts.Interrupts.DefaultAffinity = absent[cpus.Set]("/proc/irq/default_smp_affinity")
				},
				want: isUnknown, wantMessage: "/proc/irq/default_smp_affinity",
			},
			"every CPU": {
				change: func(f fixture) { f.facts.Interrupts.DefaultAffinity = known(list("0-7")) },
				want:   fails, wantMessage: "/proc/irq/default_smp_affinity holds isolated CPUs 2-3,6-7",
			},
			"not told": {
				change: func(f fixture) {
					f.facts.Interrupts.DefaultAffinity = absent[cpus.Set]("/proc/irq/default_smp_affinity")
				},
				want: isUnknown, wantMessage: "/proc/irq/default_smp_affinity",
			},
		},
		"irq.effective-affinity": effectiveAffinityCases(),
		"irq.managed": {
			"as planned": {want: passes},
			"per pod":    {change: roam, want: passes},
			"a list without flags": {
				change: func(f fixture) { f.boot("isolcpus=2-3,6-7") },
				want:   fails, wantMessage: "the running kernel may put managed interrupts on isolated CPUs 2-3,6-7: it was booted with isolcpus=2-3,6-7",
			},
			"some CPUs": {
				change: func(f fixture) { f.boot("isolcpus=domain,managed_irq,2-3") },
				want:   fails, wantMessage: "the running kernel may put managed interrupts on isolated CPUs 6-7: it was booted with isolcpus=domain,managed_irq,2-3",
			},
			"none": {
				change: func(f fixture) { f.boot("quiet") },
				want:   fails, wantMessage: "the running kernel may put managed interrupts on isolated CPUs 2-3,6-7: it was booted without isolcpus=",
			},
			"a flag without a list": {
				change: func(f fixture) { f.boot("isolcpus=managed_irq") },
				want:   fails, wantMessage: "the running kernel may put managed interrupts on isolated CPUs 2-3,6-7: it was booted with isolcpus=managed_irq",
			},
			"not told": {
				change: func(f fixture) { f.facts.Kernel.CommandLine = absent[string]("/proc/cmdline") },
				want:   isUnknown, wantMessage: "/proc/cmdline",
			},
		},
		"irq.balancer": balancerCases(),
	}
}

// route is the interrupt of the bypass NIC.
func route(f fixture) *host.InterruptRoute { return &f.facts.Interrupts.Routes[2] }

func effectiveAffinityCases() checkCases {
	cases := specialInterruptCases()
	maps.Copy(cases, roamingCases())
	maps.Copy(cases, checkCases{
		"as planned": {want: passes},
		"moved to an isolated CPU": {
			change: func(f fixture) { route(f).EffectiveAffinity = known(list("3")) },
			want:   fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) is delivered to isolated CPU 3; wanted 0-1,4-5",
		},
		"moved to housekeeping and isolated CPUs": {
			change: func(f fixture) { route(f).EffectiveAffinity = known(list("1,6-7")) },
			want:   fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) is delivered to isolated CPUs 6-7; wanted 0-1,4-5",
		},
		"wanted CPUs follow from the partition": {
			change: func(f fixture) {
				f.plan.Interrupts.DefaultAffinity = cpus.Set{}
				route(f).EffectiveAffinity = known(list("3"))
			},
			want: fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) is delivered to isolated CPU 3; wanted 0-1,4-5",
		},
		"a handler without a name": {
			change: func(f fixture) {
				route(f).Actions = nil
				route(f).EffectiveAffinity = known(list("2"))
			},
			want: fails, wantMessage: "IRQ 142 is delivered to isolated CPU 2; wanted 0-1,4-5",
		},
		"many moved": {
			change: func(f fixture) {
				f.facts.Interrupts.Routes = nil
				for number := range 8 {
					f.facts.Interrupts.Routes = append(f.facts.Interrupts.Routes,
						host.InterruptRoute{Number: number, EffectiveAffinity: known(list("3")), Actions: []string{"nvme"}})
				}
			},
			want: fails, wantMessage: "IRQ 0 (nvme) is delivered to isolated CPU 3; wanted 0-1,4-5; " +
				"IRQ 1 (nvme) is delivered to isolated CPU 3; wanted 0-1,4-5; " +
				"IRQ 2 (nvme) is delivered to isolated CPU 3; wanted 0-1,4-5; " +
				"IRQ 3 (nvme) is delivered to isolated CPU 3; wanted 0-1,4-5; " +
				"IRQ 4 (nvme) is delivered to isolated CPU 3; wanted 0-1,4-5; and 3 more",
		},
		"not told, but not allowed either": {
			change: func(f fixture) {
				route(f).EffectiveAffinity = absent[cpus.Set]("/proc/irq/142/effective_affinity_list")
			},
			want: passes,
		},
		"not told, and allowed": {
			change: func(f fixture) {
				route(f).EffectiveAffinity = absent[cpus.Set]("/proc/irq/142/effective_affinity_list")
				route(f).Affinity = known(list("0-7"))
			},
			want: isUnknown, wantMessage: "/proc/irq/142/effective_affinity_list",
		},
		"without a table every folder counts": {
			change: func(f fixture) { f.facts.Interrupts.Lines = absent[[]host.InterruptLine]("/proc/interrupts") },
			want:   fails, wantMessage: "IRQ 9 is delivered to isolated CPU 2; wanted 0-1,4-5",
		},
		"no interrupts at all": {
			change: func(f fixture) { f.facts.Interrupts.Routes = nil },
			want:   isUnknown, wantMessage: "no interrupt is listed",
		},
	})
	return cases
}

// specialInterruptCases are interrupts that are no device's, or that nobody can move.
func specialInterruptCases() checkCases {
	return checkCases{
		"a private interrupt": {
			change: func(f fixture) {
				f.facts.Interrupts.Lines.Value[1].Description = "GICv3  30 Level     arch_timer"
				route(f).EffectiveAffinity = known(list("2"))
			},
			want: passes,
		},
		"a shared interrupt of the same controller": {
			change: func(f fixture) {
				f.facts.Interrupts.Lines.Value[1].Description = "GICv3  82 Level     sfc-ens2f0-3"
				route(f).EffectiveAffinity = known(list("2"))
			},
			want: fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) is delivered to isolated CPU 2; wanted 0-1,4-5",
		},
		"the timer of the boot CPU": {
			change: func(f fixture) {
				*route(f) = host.InterruptRoute{Number: 0, EffectiveAffinity: known(list("2")), Actions: []string{"timer"}}
			},
			want: passes,
		},
		"a managed queue of isolated CPUs": {
			change: func(f fixture) {
				route(f).Actions = []string{"nvme0q3"}
				route(f).Affinity, route(f).EffectiveAffinity = known(list("2-3")), known(list("2"))
			},
			want: passes,
		},
		"a managed queue that could be elsewhere": {
			change: func(f fixture) {
				route(f).Actions = []string{"virtio1-req.0"}
				route(f).Affinity, route(f).EffectiveAffinity = known(list("1-2")), known(list("2"))
			},
			want: fails, wantMessage: "IRQ 142 (virtio1-req.0) is delivered to isolated CPU 2; wanted 0-1,4-5",
		},
		"an admin queue, which is not managed": {
			change: func(f fixture) {
				route(f).Actions = []string{"nvme0q0"}
				route(f).Affinity, route(f).EffectiveAffinity = known(list("2-3")), known(list("2"))
			},
			want: fails, wantMessage: "IRQ 142 (nvme0q0) is delivered to isolated CPU 2; wanted 0-1,4-5",
		},
	}
}

func balancerCases() checkCases {
	environment := func(f fixture, variables map[string]string) { f.facts.Processes.Value[1].Environment = variables }
	cases := balancerFileCases()
	maps.Copy(cases, checkCases{
		"restricted":  {want: passes},
		"kept":        {change: func(f fixture) { f.plan.Interrupts.Balancer = v1alpha1.BalancerKept }, want: doesNotApply},
		"not running": {change: func(f fixture) { f.facts.Processes.Value = f.facts.Processes.Value[:1] }, want: passes},
		"running though stopped": {
			change: func(f fixture) { f.plan.Interrupts.Balancer = v1alpha1.BalancerStopped },
			want:   fails, wantMessage: "irqbalance runs as process 700",
		},
		"banned from some": {
			change: func(f fixture) { environment(f, map[string]string{"IRQBALANCE_BANNED_CPULIST": "2-3"}) },
			want:   fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 6-7 by /proc/700/environ",
		},
		"a mask of some wins over a good list": {
			change: func(f fixture) {
				environment(f, map[string]string{"IRQBALANCE_BANNED_CPULIST": "2-3,6-7", "IRQBALANCE_BANNED_CPUS": "0c"})
			},
			want: fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 6-7 by /proc/700/environ (IRQBALANCE_BANNED_CPUS=0c)",
		},
		"a good mask wins over a list of some": {
			change: func(f fixture) {
				environment(f, map[string]string{"IRQBALANCE_BANNED_CPULIST": "2", "IRQBALANCE_BANNED_CPUS": "cc"})
			}, want: passes,
		},
		"an empty mask does not count": {
			change: func(f fixture) {
				environment(f, map[string]string{"IRQBALANCE_BANNED_CPULIST": "2-3,6-7", "IRQBALANCE_BANNED_CPUS": ""})
			}, want: passes,
		},
		"a mask of none beside isolcpus": {
			change: func(f fixture) { environment(f, map[string]string{"IRQBALANCE_BANNED_CPUS": "0"}) },
			want:   fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 2-3,6-7 by /proc/700/environ (IRQBALANCE_BANNED_CPUS=0)",
		},
		"the file was changed and irqbalance not restarted": {
			change: func(f fixture) {
				environment(f, map[string]string{})
				f.facts.CPUs.Isolated, f.facts.CPUs.NoHzFull = known(cpus.Set{}), known(cpus.Set{})
				f.set(settingBalancerRedHat, "IRQBALANCE_BANNED_CPULIST=2-3,6-7")
			},
			want: fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 2-3,6-7 by test",
		},
		"the plan's file wins over the distribution's": {
			change: func(f fixture) {
				environment(f, nil)
				f.set(settingBalancerRedHat, "IRQBALANCE_BANNED_CPULIST=2")
				f.set(plan.IRQBalanceEnvironment, "IRQBALANCE_BANNED_CPUS=cc\nIRQBALANCE_BANNED_CPULIST=2-3,6-7\n")
			}, want: passes,
		},
		"the file of Red Hat's family is hidden, and nothing says that the host is none of it": {
			change: func(f fixture) {
				environment(f, nil)
				f.facts.Settings[settingBalancerRedHat] = host.Absent[string](settingBalancerRedHat, host.ReasonNotMounted)
			}, want: isUnknown, wantMessage: host.ReasonNotMounted,
		},
		"the same on a host of Debian's family": {
			change: func(f fixture) {
				environment(f, nil)
				f.facts.Settings[settingBalancerRedHat] = host.Absent[string](settingBalancerRedHat, host.ReasonNotMounted)
				f.set(settingBalancerDebian, "IRQBALANCE_BANNED_CPULIST=2-3,6-7")
			}, want: passes,
		},
		"the file of one distribution names fewer CPUs than isolcpus": {
			change: func(f fixture) {
				environment(f, nil)
				f.set(settingBalancerRedHat, "IRQBALANCE_BANNED_CPULIST=2-3")
			}, want: fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 6-7 by /etc/sysconfig/irqbalance",
		},
		"files of two distributions that differ": {
			change: func(f fixture) {
				environment(f, nil)
				f.set(settingBalancerRedHat, "IRQBALANCE_BANNED_CPULIST=2-3,6-7")
				f.set(settingBalancerDebian, "IRQBALANCE_BANNED_CPULIST=2-3")
			}, want: isUnknown, wantMessage: "it does not say the same as /etc/default/irqbalance",
		},
	})
	return cases
}

func balancerFileCases() checkCases {
	environment := func(f fixture, variables map[string]string) { f.facts.Processes.Value[1].Environment = variables }
	return checkCases{
		"banned by mask": {
			change: func(f fixture) { environment(f, map[string]string{"IRQBALANCE_BANNED_CPUS": "000000cc"}) }, want: passes,
		},
		"a mask that is none": {
			change: func(f fixture) { environment(f, map[string]string{"IRQBALANCE_BANNED_CPUS": "2-3"}) },
			want:   fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 2-3,6-7 by /proc/700/environ (IRQBALANCE_BANNED_CPUS=2-3)",
		},
		"banned by its file": {
			change: func(f fixture) {
				environment(f, nil)
				f.facts.CPUs.Isolated = known(cpus.Set{})
				f.set(settingBalancerRedHat, "# IRQBALANCE_BANNED_CPULIST=0\n\nONESHOT\nIRQBALANCE_BANNED_CPULIST=\"2-3,6-7\"\n")
			},
			want: passes,
		},
		"banned from some by its file": {
			change: func(f fixture) {
				environment(f, nil)
				f.set(settingBalancerDebian, "IRQBALANCE_BANNED_CPUS=0000000c")
			},
			want: fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 6-7 by /etc/default/irqbalance (IRQBALANCE_BANNED_CPUS=0000000c)",
		},
		"avoids isolated and tickless CPUs by itself": {
			change: func(f fixture) {
				environment(f, nil)
				f.facts.CPUs.Isolated = known(list("2-3"))
				f.set(settingBalancerRedHat, "")
			},
			want: passes,
		},
		"nothing to avoid": {
			change: func(f fixture) {
				environment(f, nil)
				f.facts.CPUs.Isolated, f.facts.CPUs.NoHzFull = known(cpus.Set{}), known(cpus.Set{})
			},
			want: fails, wantMessage: "irqbalance (process 700) may use isolated CPUs 2-3,6-7 by test",
		},
		"what it avoids is not told": {
			change: func(f fixture) {
				environment(f, nil)
				f.facts.CPUs.Isolated = absent[cpus.Set]("/sys/devices/system/cpu/isolated")
			},
			want: isUnknown, wantMessage: "/sys/devices/system/cpu/isolated",
		},
		"no process is listed": {
			change: func(f fixture) { f.facts.Processes = absent[[]host.Process]("/proc") }, want: isUnknown, wantMessage: "/proc",
		},
	}
}

func counterCases() map[v1alpha1.CheckID]checkCases {
	noTable := func(f fixture) { f.facts.Interrupts.Lines = absent[[]host.InterruptLine]("/proc/interrupts") }
	return map[v1alpha1.CheckID]checkCases{
		"irq.delivered": irqDeliveredCases(),
		"irq.machine": {
			"nothing": {want: passes},
			"local timer interrupts do not count": {
				change: func(f fixture) { f.facts.Interrupts.Lines.Value[3].Counts[3]++ }, want: passes,
			},
			"watchdog": {
				change: func(f fixture) { f.facts.Interrupts.Lines.Value[2].Counts[3]++ },
				want:   fails, wantMessage: "NMI (a non-maskable interrupt) came once on isolated CPU 3 since the last reading",
			},
			"not told": {change: noTable, want: isUnknown, wantMessage: "/proc/interrupts"},
		},
		"irq.softirqs": {
			"nothing": {want: passes},
			"per pod": {change: roam, want: doesNotApply},
			"timers do not count": {
				change: func(f fixture) { f.facts.Softirqs.Lines.Value[1].Counts[3]++ }, want: passes,
			},
			"packets that the pod on the CPU sends": {
				change: func(f fixture) { f.facts.Softirqs.Lines.Value[0].Counts[3] += 3 }, want: passes,
			},
			"packets that a pod sent that has gone": {
				change: func(f fixture) { f.leave(); f.facts.Softirqs.Lines.Value[0].Counts[3] += 3 }, want: passes,
			},
			"pods own all isolated CPUs": {
				change: func(f fixture) {
					f.pods.containers.Value[0].CPUs = list("2-3,6-7")
					f.facts.Softirqs.Lines.Value[0].Counts[7] += 3
				}, want: doesNotApply,
			},
			"packets": {
				change: func(f fixture) { f.facts.Softirqs.Lines.Value[0].Counts[7] += 3 },
				want:   fails, wantMessage: "NET_RX (packets received) came a few times on isolated CPU 7 since the last reading",
			},
			"not told": {
				change: func(f fixture) { f.facts.Softirqs.Lines = absent[[]host.InterruptLine]("/proc/softirqs") },
				want:   isUnknown, wantMessage: "/proc/softirqs",
			},
		},
	}
}

// diskQueue is a managed interrupt of the given CPUs that came on CPU 3 since the reading before.
func (f fixture) diskQueue(allowed string) {
	f.facts.Interrupts.Lines.Value = append(f.facts.Interrupts.Lines.Value, host.InterruptLine{Name: "77", Counts: []uint64{0, 0, 0, 40, 0, 0, 0, 0}})
	f.facts.Interrupts.Routes = append(f.facts.Interrupts.Routes,
		host.InterruptRoute{Number: 77, Affinity: known(list(allowed)), EffectiveAffinity: known(list("3")), Actions: []string{"nvme0q4"}})
}

func irqDeliveredCases() checkCases {
	noTable := func(f fixture) { f.facts.Interrupts.Lines = absent[[]host.InterruptLine]("/proc/interrupts") }
	once := func(f fixture) { f.facts.Interrupts.Lines.Value[1].Counts[3]++ }
	return checkCases{
		"nothing": {want: passes},
		"per pod": {change: roam, want: doesNotApply},
		"a private one": {
			change: func(f fixture) {
				f.facts.Interrupts.Lines.Value[1].Description = "GICv3  30 Level     arch_timer"
				f.facts.Interrupts.Lines.Value[1].Counts[3] += 100
			},
			want: passes,
		},
		"a CPU without column": {
			change: func(f fixture) {
				f.facts.Interrupts.Columns = f.facts.Interrupts.Columns[:7]
			}, want: isUnknown, wantMessage: "it has no column for CPU 7",
		},
		"an offline CPU without column": {
			change: func(f fixture) {
				f.facts.CPUs.Online = known(list("0-6"))
				f.facts.Interrupts.Columns = f.facts.Interrupts.Columns[:7]
			}, want: passes,
		},
		"on housekeeping CPUs": {
			change: func(f fixture) { f.facts.Interrupts.Lines.Value[1].Counts[0] += 1000 }, want: passes,
		},
		"once": {
			change: once, want: fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) came once on isolated CPU 3 since the last reading",
		},
		"from two devices": {
			change: func(f fixture) {
				f.facts.Interrupts.Lines.Value[0].Counts[2] += 5
				f.facts.Interrupts.Lines.Value[1].Counts[6] += 50
				f.facts.Interrupts.Lines.Value[1].Counts[7] += 5000
			},
			want: fails,
			wantMessage: "IRQ 8 (rtc0) came a few times on isolated CPU 2 since the last reading; " +
				"IRQ 142 (sfc-ens2f0-3) came thousands of times on isolated CPUs 6-7 since the last reading",
		},
		"from a new device": {
			change: func(f fixture) {
				f.facts.Interrupts.Lines.Value = append(f.facts.Interrupts.Lines.Value,
					host.InterruptLine{Name: "200", Counts: []uint64{0, 0, 40}})
			},
			want: fails, wantMessage: "IRQ 200 came tens to hundreds of times on isolated CPU 2 since the last reading",
		},
		"of the disk of the pod on the CPU":  {change: func(f fixture) { f.diskQueue("3") }, want: passes},
		"of the disk of a pod that has gone": {change: func(f fixture) { f.leave(); f.diskQueue("2-3") }, want: passes},
		"of a disk's queue that others have too": {
			change: func(f fixture) { f.diskQueue("3,7") },
			want:   fails, wantMessage: "IRQ 77 (nvme0q4) came tens to hundreds of times on isolated CPU 3 since the last reading",
		},
		"of a disk's queue on a CPU of nobody": {
			change: func(f fixture) {
				f.leave()
				f.before.Kubelet.CPUManagerState = f.facts.Kubelet.CPUManagerState
				f.diskQueue("3")
			},
			want: fails, wantMessage: "IRQ 77 (nvme0q4) came tens to hundreds of times on isolated CPU 3 since the last reading",
		},
		"another boot": {
			change: func(f fixture) { f.before.Interrupts.Lines.Value[1].Counts[2] = 400 },
			want:   isUnknown, wantMessage: "rebooted",
		},
		"not told now":    {change: noTable, want: isUnknown, wantMessage: "/proc/interrupts"},
		"not told before": {change: func(f fixture) { f.before.Interrupts.Lines = absent[[]host.InterruptLine]("/proc/interrupts") }, want: isUnknown, wantMessage: "/proc/interrupts"},
	}
}

func workqueueCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"workqueue.unbound": {
			"as planned": {want: passes},
			"every CPU": {
				change: func(f fixture) { f.set(settingWorkqueue, "ff") },
				want:   fails, wantMessage: settingWorkqueue + " holds isolated CPUs 2-3,6-7",
			},
			"unreadable": {change: func(f fixture) { f.set(settingWorkqueue, "0-3") }, want: isUnknown, wantMessage: settingWorkqueue},
			"missing":    {change: func(f fixture) { f.remove(settingWorkqueue) }, want: isUnknown, wantMessage: settingWorkqueue},
		},
		"workqueue.writeback": {
			"kept off by the global mask": {want: passes},
			"every CPU": {
				change: func(f fixture) { f.set(settingWorkqueue, "37") },
				want:   fails, wantMessage: settingWriteback + " holds isolated CPU 2",
			},
			"only its own mask is told": {
				change: func(f fixture) { f.remove(settingWorkqueue); f.set(settingWriteback, "33") }, want: passes,
			},
			"missing": {change: func(f fixture) { f.remove(settingWriteback) }, want: isUnknown, wantMessage: settingWriteback},
		},
	}
}

// roamingCases are those of irq.effective-affinity where interrupts use every CPU that no pod owns.
func roamingCases() checkCases {
	return checkCases{
		"per pod": {change: roam, want: doesNotApply},
		"per pod, and a pod owns the CPU": {
			change: func(f fixture) {
				object(f)
				route(f).EffectiveAffinity = known(list("3"))
			},
			want: fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) is delivered to CPU 3 of container trading/engine-0/engine, whose pod asked for no interrupts; wanted 0-1,4-7",
		},
		"per pod, and the pod did not ask": {
			change: func(f fixture) {
				objectNot(f)
				route(f).EffectiveAffinity = known(list("3"))
			},
			want: doesNotApply,
		},
		"per pod, and irqbalance is banned": {
			change: func(f fixture) {
				objectNot(f)
				f.facts.Processes.Value[1].Environment = map[string]string{"IRQBALANCE_BANNED_CPUS": "0c"}
				route(f).EffectiveAffinity = known(list("3"))
			},
			want: fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) is delivered to CPU 3 of container trading/engine-0/engine, whose pod asked for no interrupts; wanted 0-1,4-7",
		},
		"per pod, and a pod owns other CPUs": {
			change: func(f fixture) {
				object(f)
				route(f).EffectiveAffinity = known(list("6"))
			},
			want: passes,
		},
		"per pod, but the data plane is quiet": {
			change: func(f fixture) {
				roam(f)
				f.plan.CPUs.DataPlane, f.plan.Interrupts.DefaultAffinity = list("7"), list("0-6")
				route(f).EffectiveAffinity = known(list("3"))
			},
			want: passes,
		},
		"per pod, but on the data plane": {
			change: func(f fixture) {
				roam(f)
				f.plan.CPUs.DataPlane, f.plan.Interrupts.DefaultAffinity = list("7"), list("0-6")
				route(f).EffectiveAffinity = known(list("7"))
			},
			want: fails, wantMessage: "IRQ 142 (sfc-ens2f0-3) is delivered to CPU 7 of the data plane; wanted 0-6",
		},
	}
}
