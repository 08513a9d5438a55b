// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"maps"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// perPod leaves CPUs balanced until a pod owns them.
func perPod(f fixture) { f.plan.CPUs.Isolation = v1alpha1.IsolationPerPod }

// count lets a counter of CPU 3 grow by so much within the 60 seconds between the two readings.
func (f fixture) count(name string, by uint64) {
	for _, table := range []*host.Fact[[]host.InterruptLine]{&f.facts.Interrupts.Lines, &f.facts.Softirqs.Lines} {
		for i := range table.Value {
			if table.Value[i].Name == name {
				table.Value[i].Counts[3] += by
			}
		}
	}
}

// interrupt adds a line to /proc/interrupts of both readings, of which CPU 3 counts so much.
func (f fixture) interrupt(name, description string, by uint64) {
	line := func(count uint64) host.InterruptLine {
		return host.InterruptLine{Name: name, Counts: []uint64{9, 9, 9, 9 + count, 9, 9, 9, 9}, Description: description}
	}
	f.facts.Interrupts.Lines.Value = append(f.facts.Interrupts.Lines.Value, line(by))
	f.before.Interrupts.Lines.Value = append(f.before.Interrupts.Lines.Value, line(0))
}

// turns lets threads get CPU 3, which the engine owns, so many times within the 60 seconds between the readings.
func (f fixture) turns(count uint64) {
	f.before.RunQueues = known(map[int]host.RunQueue{3: {Turns: 1000}})
	f.facts.RunQueues = known(map[int]host.RunQueue{3: {Turns: 1000 + count}})
}

// leave lets the engine have ended since the reading before.
func (f fixture) leave() {
	f.disown()
	f.facts.Kubelet.CPUManagerState = known(`{"policyName":"static","defaultCpuSet":"0-7","entries":{},"checksum":1}`)
}

func rateCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"cpu.tick": tickCases(),
		"irq.ipis": {
			"none":              {want: passes},
			"once a second":     {change: func(f fixture) { f.interrupt("CAL", "Function call interrupts", 60) }, want: passes},
			"twice a second":    {change: func(f fixture) { f.interrupt("TLB", "TLB shootdowns", 120) }, want: fails, wantMessage: "CPU 3: other CPUs interrupt it a few times a second"},
			"of arm64":          {change: func(f fixture) { f.interrupt("IPI1", "Function call interrupts", 1200) }, want: fails, wantMessage: "CPU 3: other CPUs interrupt it tens of times a second"},
			"that stop a CPU":   {change: func(f fixture) { f.interrupt("IPI2", "CPU stop interrupts", 1200) }, want: passes},
			"no pod owns a CPU": {change: func(f fixture) { perPod(f); f.disown(); f.interrupt("RES", "", 6000) }, want: doesNotApply},
			"on CPUs of nobody": {
				change: func(f fixture) {
					perPod(f)
					f.pods.containers.Value[0].CPUs = list("2")
					f.interrupt("RES", "", 6000)
				}, want: passes,
			},
			"of threads of the pod that sleep": {change: func(f fixture) { f.turns(600); f.interrupt("RES", "", 6000) }, want: passes},
			"while one thread keeps it busy":   {change: func(f fixture) { f.turns(120); f.interrupt("RES", "", 6000) }, want: fails, wantMessage: "CPU 3: other CPUs interrupt it hundreds of times a second"},
			"read once":                        {once: true, want: doesNotApply},
			"no table before": {
				change: func(f fixture) { f.before.Interrupts.Lines = absent[[]host.InterruptLine]("/proc/interrupts") }, want: isUnknown, wantMessage: "/proc/interrupts",
			},
		},
		"irq.background-softirqs": {
			"none":                             {want: passes},
			"timers":                           {change: func(f fixture) { f.count("TIMER", 600) }, want: fails, wantMessage: "CPU 3: softirqs for timers, scheduling or RCU run tens of times a second"},
			"of threads of the pod that sleep": {change: func(f fixture) { f.turns(60); f.count("TIMER", 600) }, want: passes},
			"the tick stays":                   {change: func(f fixture) { f.plan.CPUs.Tick = v1alpha1.TickPeriodic; f.count("TIMER", 600) }, want: doesNotApply},
			"not told": {
				change: func(f fixture) { f.facts.Softirqs.Lines = absent[[]host.InterruptLine]("/proc/softirqs") }, want: isUnknown, wantMessage: "/proc/softirqs",
			},
		},
	}
}

func tickCases() checkCases {
	return checkCases{
		"none":             {want: passes},
		"the residual one": {change: func(f fixture) { f.count("LOC", 120) }, want: passes},
		"configured, yet still ticking": {
			change: func(f fixture) { f.count("LOC", 15000) },
			want:   fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second",
		},
		"never configured": {
			change: func(f fixture) { f.count("LOC", 60000); f.facts.CPUs.NoHzFull = known(list("2,6-7")) },
			want:   fails, wantMessage: "CPU 3: its timer interrupts it thousands of times a second: it is not in nohz_full",
		},
		"of arm64": {
			change: func(f fixture) { f.interrupt("11", "GICv3  30 Level     arch_timer", 15000) },
			want:   fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second",
		},
		"the tick is to stay":                 {change: func(f fixture) { f.plan.CPUs.Tick = v1alpha1.TickPeriodic; f.count("LOC", 15000) }, want: doesNotApply},
		"per pod, owned":                      {change: func(f fixture) { perPod(f); f.count("LOC", 15000) }, want: fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second"},
		"one thread of the pod keeps it busy": {change: func(f fixture) { f.turns(120); f.count("LOC", 15000) }, want: fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second"},
		"its thread sleeps":                   {change: func(f fixture) { f.turns(1500); f.count("LOC", 15000) }, want: passes},
		"it ticks, whether its thread sleeps": {change: func(f fixture) { f.turns(1200); f.count("LOC", 15000) }, want: fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second"},
		"the pod has gone since":              {change: func(f fixture) { f.leave(); f.turns(1500); f.count("LOC", 15000) }, want: passes},
		"the pod has come and gone meanwhile": {
			change: func(f fixture) {
				f.pods.meanwhile = []host.Fact[string]{f.facts.Kubelet.CPUManagerState}
				f.leave()
				f.before.Kubelet.CPUManagerState = f.facts.Kubelet.CPUManagerState
				f.turns(1500)
				f.count("LOC", 15000)
			}, want: passes,
		},
		"the pod has come since the last answer": {change: func(f fixture) { f.disown(); f.turns(1500); f.count("LOC", 15000) }, want: passes},
		"threads on a CPU of nobody": {
			change: func(f fixture) {
				f.leave()
				f.before.Kubelet.CPUManagerState = f.facts.Kubelet.CPUManagerState
				f.turns(1500)
				f.count("LOC", 15000)
			}, want: fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second",
		},
		"turns are known of one reading": {
			change: func(f fixture) {
				f.turns(1500)
				f.before.RunQueues = absent[map[int]host.RunQueue](fileRunQueues)
				f.count("LOC", 15000)
			}, want: fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second",
		},
		"turns run backwards": {
			change: func(f fixture) {
				f.turns(1500)
				f.before.RunQueues, f.facts.RunQueues = f.facts.RunQueues, f.before.RunQueues
				f.count("LOC", 15000)
			}, want: fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second",
		},
		"per pod, not owned": {
			change: func(f fixture) { perPod(f); f.disown(); f.count("LOC", 15000) }, want: doesNotApply,
		},
		"per pod, owned as the state of the CPU manager says": {
			change: func(f fixture) { perPod(f); f.pods.containers = nil; f.count("LOC", 15000) },
			want:   fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it hundreds of times a second",
		},
		"read once":       {once: true, want: doesNotApply},
		"no time":         {change: func(f fixture) { f.facts.UptimeSeconds = absent[float64]("/proc/uptime") }, want: isUnknown, wantMessage: "/proc/uptime"},
		"no time before":  {change: func(f fixture) { f.before.UptimeSeconds = absent[float64]("/proc/uptime") }, want: isUnknown, wantMessage: "/proc/uptime"},
		"no time between": {change: func(f fixture) { f.before.UptimeSeconds = f.facts.UptimeSeconds; f.count("LOC", 1) }, want: isUnknown, wantMessage: "less than a second passed"},
		"a second between": {
			change: func(f fixture) { f.before.UptimeSeconds = known(1059.0); f.count("LOC", 3) },
			want:   fails, wantMessage: "CPU 3: configured as tickless, yet its timer interrupts it a few times a second",
		},
		"nothing at all":   {change: func(f fixture) { f.before.UptimeSeconds = f.facts.UptimeSeconds }, want: passes},
		"time goes back":   {change: func(f fixture) { f.before.UptimeSeconds = known(2000.0) }, want: isUnknown, wantMessage: "the time ran backwards"},
		"counters go back": {change: func(f fixture) { f.before.Interrupts.Lines.Value[3].Counts[3] = 1000 }, want: isUnknown, wantMessage: "rebooted between the readings"},
	}
}

func taskCases() map[v1alpha1.CheckID]checkCases {
	unread := func(f fixture) { f.facts.Tasks = absent[[]host.Task]("/proc") }
	return map[v1alpha1.CheckID]checkCases{
		"cpu.foreign-tasks":  foreignTaskCases(unread),
		"cpu.kernel-threads": kernelThreadCases(unread),
		"cpu.rcu-threads": {
			"as planned":    {want: passes},
			"on the CPU":    {change: func(f fixture) { f.start(thread(80, "rcuog/2", 6, "0-7")) }, want: fails, wantMessage: "kernel thread rcuog/2 (80) may run on isolated CPU 6"},
			"other threads": {change: func(f fixture) { f.start(thread(80, "kswapd1", 6, "0-7")) }, want: passes},
			"not read":      {change: unread, want: isUnknown, wantMessage: "/proc cannot be read"},
		},
		"cpu.thread-priorities": threadPriorityCases(),
		"cpu.preemption": {
			"none": {want: passes},
			"lost": {
				change: func(f fixture) { f.facts.Tasks.Value[1].InvoluntarySwitches = known(uint64(4)) },
				want:   fails, wantMessage: "engine (process 4000) of container trading/engine-0/engine lost CPU 2 since the last reading",
			},
			"lost by a thread that sleeps as often": {
				change: func(f fixture) {
					f.facts.Tasks.Value[1].InvoluntarySwitches = known(uint64(6))
					f.facts.Tasks.Value[1].VoluntarySwitches = known(uint64(10))
				}, want: passes,
			},
			"lost more often than it slept": {
				change: func(f fixture) {
					f.facts.Tasks.Value[1].InvoluntarySwitches = known(uint64(6))
					f.facts.Tasks.Value[1].VoluntarySwitches = known(uint64(9))
				},
				want: fails, wantMessage: "engine (process 4000) of container trading/engine-0/engine lost CPU 2 since the last reading",
			},
			"not pinned": {
				change: func(f fixture) {
					f.facts.Tasks.Value[1].InvoluntarySwitches = known(uint64(4))
					f.facts.Tasks.Value[1].AllowedCPUs = known(list("2-3"))
				}, want: passes,
			},
			"a service pinned there": {
				change: func(f fixture) {
					f.before.Tasks.Value = append(f.before.Tasks.Value, program(900, "chronyd", 3, "3"))
					task := program(900, "chronyd", 3, "3")
					task.InvoluntarySwitches = known(uint64(4))
					f.start(task)
				}, want: passes,
			},
			"control group not told": {
				change: func(f fixture) {
					f.facts.Tasks.Value[1].InvoluntarySwitches = known(uint64(4))
					f.facts.Tasks.Value[1].Group = absent[string]("/proc/4000/cgroup")
				}, want: isUnknown, wantMessage: "/proc/4000/cgroup cannot be read",
			},
			"just started":      {change: func(f fixture) { f.start(program(4001, "late", 3, "3")) }, want: passes},
			"no pod owns a CPU": {change: fixture.disown, want: doesNotApply},
			"read once":         {once: true, want: doesNotApply},
			"not read":          {change: unread, want: isUnknown, wantMessage: "/proc cannot be read"},
		},
	}
}

func foreignTaskCases(unread func(fixture)) checkCases {
	const wantKubelet = "kubelet (process 2460) of kubelet.service runs on isolated CPU 6"
	cases := foreignThreadCases(unread)
	maps.Copy(cases, checkCases{
		"as planned":        {want: passes},
		"pinned there":      {change: func(f fixture) { f.start(program(2460, "kubelet", 6, "6")) }, want: fails, wantMessage: wantKubelet},
		"came there":        {change: func(f fixture) { f.start(program(2460, "kubelet", 6, "0-7")) }, want: fails, wantMessage: wantKubelet},
		"read once":         {once: true, change: func(f fixture) { f.start(program(2460, "kubelet", 6, "0-7")) }, want: fails, wantMessage: wantKubelet},
		"on its way back":   {change: func(f fixture) { f.start(program(2460, "kubelet", 6, "0-1")) }, want: passes},
		"on the CPU of pod": {change: func(f fixture) { f.start(program(2460, "kubelet", 3, "0-7")) }, want: fails, wantMessage: "kubelet (process 2460) of kubelet.service runs on the CPU of container trading/engine-0/engine, CPU 3"},
		"another thread of the pod": {
			change: func(f fixture) { f.start(inPod(program(4001, "engine-log", 3, "2-3"), enginePod)) }, want: passes,
		},
		"a service pinned to the CPU of a pod": {
			change: func(f fixture) { f.start(program(900, "chronyd", 3, "3")) },
			want:   fails, wantMessage: "chronyd (process 900) of chronyd.service runs on the CPU of container trading/engine-0/engine, CPU 3",
		},
		"a service there, by the kubelet's state": {
			change: func(f fixture) { f.pods.containers = nil; f.start(program(900, "chronyd", 3, "3")) },
			want:   fails, wantMessage: "chronyd (process 900) of chronyd.service runs on the CPU of container engine of pod " + enginePod + ", CPU 3",
		},
		"another pod pinned to it": {
			change: func(f fixture) { f.start(inPod(program(900, "thief", 3, "3"), strings.Repeat("0", 32))) },
			want:   fails, wantMessage: "thief (process 900) of pod " + strings.Repeat("0", 32) + " runs on the CPU of container trading/engine-0/engine, CPU 3",
		},
		"a pod that the state does not name": {
			change: func(f fixture) {
				f.facts.Kubelet.CPUManagerState = absent[string]("/var/lib/kubelet/cpu_manager_state")
				f.start(inPod(program(4001, "engine-log", 3, "2-3"), enginePod))
			}, want: passes,
		},
		"control group not told": {
			change: func(f fixture) {
				task := program(900, "chronyd", 3, "3")
				task.Group = absent[string]("/proc/900/cgroup")
				f.start(task)
			}, want: isUnknown, wantMessage: "/proc/900/cgroup cannot be read: no such file",
		},
		"a zombie": {
			change: func(f fixture) {
				task := program(900, "chronyd", 3, "3")
				task.State = "Z"
				f.start(task)
			}, want: passes,
		},
		"the host's switch on CPUs of the data plane": {
			change: func(f fixture) {
				f.plan.CPUs.DataPlane = list("6")
				task := program(900, "ovs-vswitchd", 6, "6")
				task.Group = known("/dataplane.slice/ovs-vswitchd.service")
				f.start(task)
			}, want: passes,
		},
		"a service on CPUs of the data plane": {
			change: func(f fixture) { f.plan.CPUs.DataPlane = list("6"); f.start(program(900, "chronyd", 6, "6")) },
			want:   fails, wantMessage: "chronyd (process 900) of chronyd.service runs on the CPU of the data plane, CPU 6",
		},
	})
	return cases
}

func foreignThreadCases(unread func(fixture)) checkCases {
	const wantKubelet = "kubelet (process 2460) of kubelet.service runs on isolated CPU 6"
	running := func(last int, allowed string) host.Task {
		task := program(2460, "kubelet", last, allowed)
		task.State = "R"
		return task
	}
	return checkCases{
		"a thread of a process": {
			change: func(f fixture) {
				task := program(2460, "worker", 6, "6")
				task.TID = 2461
				f.start(task)
			}, want: fails, wantMessage: "worker (thread 2461 of process 2460) of worker.service runs on isolated CPU 6",
		},
		"slept all the time": {
			change: func(f fixture) {
				f.start(program(2460, "kubelet", 6, "0-7"))
				f.before.Tasks.Value = append(f.before.Tasks.Value, program(2460, "kubelet", 6, "0-7"))
			}, want: passes,
		},
		"woke up": {
			change: func(f fixture) {
				task := program(2460, "kubelet", 6, "0-7")
				f.before.Tasks.Value = append(f.before.Tasks.Value, task)
				task.VoluntarySwitches = known(uint64(8))
				f.start(task)
			}, want: fails, wantMessage: wantKubelet,
		},
		"per pod, on a CPU of nobody": {change: func(f fixture) { perPod(f); f.start(running(6, "0-7")) }, want: passes},
		"per pod, asleep and read once": {
			once: true, change: func(f fixture) { perPod(f); f.start(program(2460, "kubelet", 3, "0-7")) }, want: passes,
		},
		"per pod, running on the CPU of a pod": {
			once: true, change: func(f fixture) { perPod(f); f.start(running(3, "0-7")) },
			want: fails, wantMessage: "kubelet (process 2460) of kubelet.service runs on the CPU of container trading/engine-0/engine, CPU 3",
		},
		"TuneD's way, no pod": {change: func(f fixture) { perPod(f); f.disown() }, want: doesNotApply},
		"a kernel thread":     {change: func(f fixture) { f.start(thread(17, "ksoftirqd/6", 6, "6")) }, want: passes},
		"affinity not told": {
			change: func(f fixture) {
				task := program(2460, "kubelet", 6, "0")
				task.AllowedCPUs = absent[cpus.Set]("/proc/2460/status")
				f.start(task)
			}, want: isUnknown, wantMessage: "/proc/2460/status",
		},
		"not read": {change: unread, want: isUnknown, wantMessage: "/proc cannot be read"},
		"not looked at": {
			change: func(f fixture) { f.facts.TaskScope = list("2-3") }, want: isUnknown, wantMessage: "the threads of CPUs 6-7 were not looked at",
		},
	}
}

func kernelThreadCases(unread func(fixture)) checkCases {
	return checkCases{
		"as planned": {want: passes},
		"on the CPU": {change: func(f fixture) { f.start(thread(80, "kswapd1", 6, "4-7")) }, want: fails, wantMessage: "kernel thread kswapd1 (80) may run on isolated CPU 6"},
		"elsewhere":  {change: func(f fixture) { f.start(thread(80, "kswapd1", 5, "4-7")) }, want: passes},
		"balanced": {
			change: func(f fixture) { perPod(f); f.start(thread(80, "kswapd1", 5, "0-7")) },
			want:   fails, wantMessage: "kernel thread kswapd1 (80) may run on isolated CPUs 2-3",
		},
		"an interrupt's": {
			change: func(f fixture) {
				f.facts.Interrupts.Routes[2].EffectiveAffinity = known(list("6"))
				f.start(thread(80, "irq/142-sfc", 6, "6"))
			}, want: passes,
		},
		"a managed queue's of isolated CPUs": {
			change: func(f fixture) {
				f.facts.Interrupts.Routes[2] = host.InterruptRoute{
					Number: 142, Actions: []string{"virtio3-req.3"}, Affinity: known(list("6-7")), EffectiveAffinity: known(list("")),
				}
				f.start(thread(80, "irq/142-virtio3-req.3", 7, "7"))
			}, want: passes,
		},
		"an interrupt's that was moved": {
			change: func(f fixture) { f.start(thread(80, "irq/142-sfc", 6, "6")) }, want: fails, wantMessage: "kernel thread irq/142-sfc (80) may run on isolated CPU 6",
		},
		"an interrupt's that is not listed":    {change: func(f fixture) { f.start(thread(80, "irq/999-x", 6, "6")) }, want: passes},
		"an interrupt's on its way to the CPU": {change: func(f fixture) { f.start(thread(80, "irq/142-sfc", 1, "0-1")) }, want: passes},
		"callbacks of RCU":                     {change: func(f fixture) { f.start(thread(80, "rcuog/2", 6, "6")) }, want: passes},
		"affinity not told": {
			change: func(f fixture) {
				task := thread(80, "kswapd1", 6, "0")
				task.AllowedCPUs = absent[cpus.Set]("/proc/80/status")
				f.start(task)
			}, want: isUnknown, wantMessage: "/proc/80/status",
		},
		"not read": {change: unread, want: isUnknown, wantMessage: "/proc cannot be read"},
	}
}

func threadPriorityCases() checkCases {
	schedule := func(f fixture, name string, scheduling host.Scheduling, ids ...int) {
		for i := range f.facts.CPUThreads.Value {
			if thread := &f.facts.CPUThreads.Value[i]; thread.Name == name && slices.Contains(ids, thread.CPU) {
				thread.Scheduling = known(scheduling)
			}
		}
	}
	return checkCases{
		"as planned":          {want: passes},
		"none is planned":     {change: func(f fixture) { f.plan.KernelThreads = nil; schedule(f, "rcuc", host.Scheduling{}, 3) }, want: doesNotApply},
		"of other names":      {change: func(f fixture) { f.facts.CPUThreads.Value[1].Name = "cpuhp" }, want: passes},
		"higher":              {change: func(f fixture) { schedule(f, "rcuc", host.Scheduling{Policy: host.PolicyFIFO, Priority: 12}, 3) }, want: passes},
		"before all others":   {change: func(f fixture) { schedule(f, "rcuc", host.Scheduling{Policy: host.PolicyDeadline}, 3) }, want: passes},
		"no longer real-time": {change: func(f fixture) { schedule(f, "ksoftirqd", host.Scheduling{}, 2, 3, 4) }, want: fails, wantMessage: "kernel thread ksoftirqd of CPUs 2-4 has no real-time priority, not 11"},
		"of a CPU that is offline": {
			change: func(f fixture) { f.facts.CPUs.Online = known(list("0-6")); schedule(f, "rcuc", host.Scheduling{}, 7) }, want: passes,
		},
		"of a CPU that may be offline": {
			change: func(f fixture) {
				f.facts.CPUs.Online = absent[cpus.Set]("/x")
				schedule(f, "rcuc", host.Scheduling{}, 7)
			},
			want: fails, wantMessage: "kernel thread rcuc of CPU 7 has no real-time priority, not 11",
		},
		"the kernel's own": {
			change: func(f fixture) {
				schedule(f, "rcuc", host.Scheduling{Policy: host.PolicyFIFO, Priority: 1}, 3)
				schedule(f, "rcuc", host.Scheduling{Policy: host.PolicyFIFO, Priority: 10}, 4)
			},
			want: fails, wantMessage: "kernel thread rcuc of CPU 3 has real-time priority 1, not 11; kernel thread rcuc of CPU 4 has real-time priority 10, not 11",
		},
		"not told": {
			change: func(f fixture) { f.facts.CPUThreads.Value[1].Scheduling = absent[host.Scheduling]("/proc/20/stat") }, want: isUnknown, wantMessage: "/proc/20/stat",
		},
		"no such threads": {change: func(f fixture) { f.facts.CPUThreads.Value = nil }, want: isUnknown, wantMessage: "none of the threads"},
		"not read":        {change: func(f fixture) { f.facts.CPUThreads = absent[[]host.CPUThread]("/proc") }, want: isUnknown, wantMessage: "/proc cannot be read"},
	}
}

func disturbanceCases() map[v1alpha1.CheckID]checkCases {
	const queue = workqueueFolder + "nvme-wq/cpumask"
	unit := func(f fixture, name string, installed, masked bool) {
		f.facts.Units[name] = host.Unit{
			Installed: host.Known(installed, "/usr/lib/systemd/system/"+name), Masked: known(masked), Running: absent[bool](name),
		}
	}
	return map[v1alpha1.CheckID]checkCases{
		"kernel.tracing": kernelTracingCases(),
		"kernel.rcu-expedited": {
			"no":       {want: passes},
			"yes":      {change: func(f fixture) { f.set(settingExpedited, "1") }, want: fails, wantMessage: settingExpedited + " is 1, not 0"},
			"not told": {change: func(f fixture) { f.remove(settingExpedited) }, want: isUnknown, wantMessage: settingExpedited},
		},
		"kernel.tainted": {
			"no":              {want: passes},
			"a vendor's":      {change: func(f fixture) { f.set(settingTainted, "12289") }, want: passes},
			"machine checks":  {change: func(f fixture) { f.set(settingTainted, "16400") }, want: fails, wantMessage: "the kernel has seen a machine check and a lockup since it booted"},
			"a machine check": {change: func(f fixture) { f.set(settingTainted, "16") }, want: fails, wantMessage: "the kernel has seen a machine check since it booted"},
			"a lockup":        {change: func(f fixture) { f.set(settingTainted, "16384") }, want: fails, wantMessage: "the kernel has seen a lockup since it booted"},
			"bits beside":     {change: func(f fixture) { f.set(settingTainted, "40968") }, want: passes},
			"nonsense":        {change: func(f fixture) { f.set(settingTainted, "x") }, want: isUnknown, wantMessage: settingTainted},
		},
		"workqueue.others": {
			"bounded by the common mask": {want: passes},
			"none":                       {change: func(f fixture) { delete(f.facts.Settings, queue) }, want: doesNotApply},
			"not bounded": {
				change: func(f fixture) { f.set(settingWorkqueue, "ff") }, want: fails, wantMessage: queue + " holds isolated CPUs 2-3,6-7",
			},
			"of its own": {change: func(f fixture) { f.set(settingWorkqueue, "ff"); f.set(queue, "3") }, want: passes},
			"not told":   {change: func(f fixture) { f.remove(queue) }, want: isUnknown, wantMessage: queue},
			"other files": {
				change: func(f fixture) {
					delete(f.facts.Settings, queue)
					f.set(workqueueFolder+"nvme-wq/affinity_scope", "ff")
					f.set("/sys/devices/elsewhere/nvme-wq/cpumask", "ff")
				}, want: doesNotApply,
			},
		},
		"system.services": {
			"masked and not installed": {want: passes},
			"none planned":             {change: func(f fixture) { f.plan.StopServices = nil }, want: doesNotApply},
			"not masked": {
				change: func(f fixture) { unit(f, "fwupd-refresh.timer", true, false) },
				want:   fails, wantMessage: "fwupd-refresh.timer is not masked: /usr/lib/systemd/system/fwupd-refresh.timer can be started",
			},
			"running": {
				change: func(f fixture) { f.facts.Units["bluetooth.service"] = host.Unit{Running: known(true)} },
				want:   fails, wantMessage: "bluetooth.service runs",
			},
			"not read": {change: func(f fixture) { f.facts.Units = nil }, want: isUnknown, wantMessage: "unit fwupd-refresh.timer"},
			"not told": {
				change: func(f fixture) { f.facts.Units["bluetooth.service"] = host.Unit{Installed: absent[bool]("/etc")} }, want: isUnknown, wantMessage: "/etc",
			},
		},
	}
}

func kernelTracingCases() checkCases {
	return checkCases{
		"idle":      {want: passes},
		"functions": {change: func(f fixture) { f.set(settingTracer, "function") }, want: fails, wantMessage: settingTracer + " is function, not nop"},
		"events":    {change: func(f fixture) { f.set(settingEvents, "sched:sched_switch\nirq:irq_handler_entry") }, want: fails, wantMessage: "sched:sched_switch is traced in /sys/kernel/tracing, and 1 more event"},
		"the stack": {change: func(f fixture) { f.set(settingStackTracer, "1") }, want: fails, wantMessage: "the stack tracer runs at every call of a function"},
		"locked down": {change: func(f fixture) {
			f.facts.Settings[settingTracer] = host.Absent[string](settingTracer, "permission denied")
		}, want: isUnknown, wantMessage: "permission denied"},
		"older kernel": {change: func(f fixture) { f.remove(settingStackTracer) }, want: passes},
		"an instance traces functions": {
			change: func(f fixture) {
				f.set(tracingInstances+"sec/current_tracer", "function_graph")
				f.set(tracingInstances+"sec/set_event", "")
			},
			want: fails, wantMessage: tracingInstances + "sec/current_tracer is function_graph, not nop",
		},
		"an instance traces events": {
			change: func(f fixture) {
				f.set(tracingInstances+"sec/current_tracer", "nop")
				f.set(tracingInstances+"sec/set_event", "sched:sched_switch")
			},
			want: fails, wantMessage: "sched:sched_switch is traced in /sys/kernel/tracing/instances/sec",
		},
		"an idle instance": {
			change: func(f fixture) {
				f.set(tracingInstances+"sec/current_tracer", "nop")
				f.set(tracingInstances+"sec/set_event", "")
			}, want: passes,
		},
		"an instance that is not shown": {
			change: func(f fixture) {
				f.facts.Settings[tracingInstances+"sec/current_tracer"] = absent[string](tracingInstances + "sec/current_tracer")
			},
			want: isUnknown, wantMessage: tracingInstances + "sec/current_tracer",
		},
		"rasdaemon waits for errors": {
			change: func(f fixture) {
				f.set(tracingInstances+"rasdaemon/set_event", "ras:mc_event\nmce:mce_record\nnet:net_dev_xmit_timeout")
			}, want: passes,
		},
		"an agent hooks functions": {
			change: func(f fixture) {
				f.set(settingHookedFunctions, "tcp_connect (1) D   \tdirect-->bpf_trampoline_1\nvfs_read (2) R\n")
			},
			want: fails, wantMessage: "tcp_connect of the kernel is hooked, and 1 more function",
		},
		"systemd restricts file systems": {change: func(f fixture) { f.set(settingHookedFunctions, "bpf_lsm_file_open (1) R   D   M \tdirect\n") }, want: passes},
		"a live patch":                   {change: func(f fixture) { f.set(settingHookedFunctions, "xfrm_lookup (1) R I   \ttramp: 0xffffffffc0\n") }, want: passes},
		"probes": {
			change: func(f fixture) {
				f.set(settingProbes, "ffffffff811ce670  k  do_sys_open+0x0    [FTRACE]\nffffffff811ce680  k  vfs_read+0x0    [DISABLED]\n")
			}, want: fails, wantMessage: "do_sys_open+0x0 of the kernel is probed",
		},
		"a probe by a breakpoint": {
			change: func(f fixture) { f.set(settingProbes, "ffffffff811ce671  r  vfs_write+0x1") },
			want:   fails, wantMessage: "vfs_write+0x1 of the kernel is probed",
		},
		"a probe that is not armed": {change: func(f fixture) { f.set(settingProbes, "ffffffff811ce680  k  vfs_read+0x0    [DISABLED]") }, want: passes},
		"a kernel without tracers": {
			change: func(f fixture) {
				f.facts.Settings[settingTracer] = host.Fact[string]{Source: settingTracer, Reason: "no such file", Missing: true}
			}, want: passes,
		},
	}
}

func qualificationCases() map[v1alpha1.CheckID]checkCases {
	now := func(change func(*v1alpha1.LatencyFingerprint)) func(fixture) {
		return func(f fixture) { change(&f.pods.qualification.Now) }
	}
	return map[v1alpha1.CheckID]checkCases{
		"firmware.smi": {
			"none":          {want: passes},
			"some":          {change: func(f fixture) { f.pods.qualification.ManagementInterrupts = known(uint64(4)) }, want: fails, wantMessage: "the firmware interrupted all CPUs a few times during the qualification run"},
			"not counted":   {change: func(f fixture) { f.pods.qualification.ManagementInterrupts = absent[uint64]("msr/smi/") }, want: doesNotApply},
			"not qualified": {change: func(f fixture) { f.pods.qualification = nil }, want: doesNotApply},
		},
		"firmware.fingerprint": {
			"as qualified": {want: passes},
			"other microcode and firmware": {
				change: now(func(is *v1alpha1.LatencyFingerprint) { is.Microcode, is.BIOSVersion = "0x2", "2.1" }),
				want:   fails, wantMessage: "changed since the qualification run: the microcode (0x2, was 0x1), the firmware (2.1, was 2.0)",
			},
			"other mitigations": {
				change: now(func(is *v1alpha1.LatencyFingerprint) { is.MitigationsHash = "m1" }),
				want:   fails, wantMessage: "changed since the qualification run: the mitigations of CPU vulnerabilities",
			},
			"another stack": {
				change: now(func(is *v1alpha1.LatencyFingerprint) { is.Stacks[0].Versions = "9.2/9.2" }),
				want:   fails, wantMessage: "changed since the qualification run: the stack of BypassNICPool feed (9.2/9.2, was 9.1/9.1)",
			},
			"no longer told": {
				change: now(func(is *v1alpha1.LatencyFingerprint) { is.CommandLineHash = "" }), want: isUnknown, wantMessage: "the kernel's command line",
			},
			"one part changed, another no longer told": {
				change: now(func(is *v1alpha1.LatencyFingerprint) { is.CommandLineHash, is.Kernel = "", "6.13.0" }),
				want:   fails, wantMessage: "changed since the qualification run: the kernel (6.13.0, was 6.12.0)",
			},
			"another plan": {change: now(func(is *v1alpha1.LatencyFingerprint) { is.PlanHash = "p1" }), want: passes},
			"qualified by a version that told less": {
				change: func(f fixture) { f.pods.qualification.Then.MitigationsHash = "" }, want: passes,
			},
			"an agent that tells less": {change: now(func(is *v1alpha1.LatencyFingerprint) { is.MitigationsHash = "" }), want: passes},
			"not qualified":            {change: func(f fixture) { f.pods.qualification = nil }, want: doesNotApply},
		},
	}
}

func platformCases() map[v1alpha1.CheckID]checkCases {
	polling := func(f fixture) { f.plan.Power.IdleStates = v1alpha1.IdlePolling }
	heat := func(f fixture) { f.eachCPU(func(c *host.CPU) { c.CoreThrottles = known(uint64(2)) }, 3) }
	return map[v1alpha1.CheckID]checkCases{
		"power.idle-driver": {
			"not asked for": {want: doesNotApply},
			"none":          {change: func(f fixture) { polling(f); f.set(settingIdleDriver, "none") }, want: passes},
			"one":           {change: polling, want: fails, wantMessage: settingIdleDriver + " is intel_idle, not none"},
			"not told":      {change: func(f fixture) { polling(f); f.remove(settingIdleDriver) }, want: isUnknown, wantMessage: settingIdleDriver},
		},
		"power.uncore": {
			"not asked for":  {want: doesNotApply},
			"fixed":          {change: polling, want: passes},
			"another vendor": {change: func(f fixture) { polling(f); f.plan.Vendor = "AMD" }, want: doesNotApply},
			"free": {
				change: func(f fixture) { polling(f); f.facts.UncoreDomains.Value[0].Minimum = known(int64(800000)) },
				want:   fails, wantMessage: "uncore00 runs at 800000 to 2400000 kHz",
			},
			"a register": {
				change: func(f fixture) { polling(f); f.facts.UncoreDomains.Value[0].Minimum = absent[int64]("min_freq_khz") }, want: isUnknown, wantMessage: "min_freq_khz",
			},
			"no domain": {change: func(f fixture) { polling(f); f.facts.UncoreDomains = known([]host.UncoreDomain{}) }, want: isUnknown, wantMessage: "it lists no domain"},
			"no driver": {
				change: func(f fixture) {
					polling(f)
					f.facts.UncoreDomains = absent[[]host.UncoreDomain]("intel_uncore_frequency")
				}, want: isUnknown, wantMessage: "intel_uncore_frequency",
			},
		},
		"power.thermal": {
			"cool":           {want: passes},
			"a core":         {change: heat, want: fails, wantMessage: "CPU 3: its core was slowed down by heat"},
			"a package":      {change: func(f fixture) { f.eachCPU(func(c *host.CPU) { c.PackageThrottles = known(uint64(2)) }, 2, 3, 6, 7) }, want: fails, wantMessage: "CPUs 2-3,6-7: its package was slowed down by heat"},
			"another vendor": {change: func(f fixture) { f.plan.Vendor = "AMD"; heat(f) }, want: doesNotApply},
			"read once":      {once: true, change: heat, want: doesNotApply},
			"not told": {change: func(f fixture) {
				f.eachCPU(func(c *host.CPU) { c.CoreThrottles = absent[uint64]("core_throttle_count") }, 3)
			}, want: isUnknown, wantMessage: "core_throttle_count"},
			"not told before": {change: func(f fixture) { f.before.CPUs.List[3].CoreThrottles = absent[uint64]("core_throttle_count") }, want: isUnknown, wantMessage: "core_throttle_count"},
			"a new CPU":       {change: func(f fixture) { f.before.CPUs.List = f.before.CPUs.List[:7] }, want: isUnknown, wantMessage: "not read before"},
		},
		"power.platform-profile": {
			"performance":   {want: passes},
			"balanced":      {change: func(f fixture) { f.set(settingPlatformProfile, "balanced") }, want: fails, wantMessage: settingPlatformProfile + " is balanced, not performance"},
			"no profiles":   {change: func(f fixture) { f.remove(settingPlatformProfile) }, want: doesNotApply},
			"not asked for": {change: func(f fixture) { f.plan.Power.Governor = v1alpha1.GovernorKept }, want: doesNotApply},
			"locked":        {change: func(f fixture) { f.deny(settingPlatformProfile) }, want: isUnknown, wantMessage: "permission denied"},
		},
		"cpu.cache-domains": cacheCases(),
	}
}

func cacheCases() checkCases {
	share := func(f fixture, caches ...string) {
		for i := range f.facts.CPUs.List {
			for _, cache := range caches {
				if list(cache).Contains(i) {
					f.facts.CPUs.List[i].Caches[1].SharedCPUs = known(list(cache))
				}
			}
		}
	}
	mixed := func(f fixture) { share(f, "0,2", "1,3") }
	return checkCases{
		"apart":              {want: passes},
		"shared":             {change: mixed, want: fails, wantMessage: "isolated CPU 2 shares a third-level cache with housekeeping CPU 0; isolated CPU 3 shares a third-level cache with housekeeping CPU 1"},
		"shared and allowed": {change: func(f fixture) { mixed(f); f.plan.CPUs.SharedCaches = v1alpha1.CacheSharingAllowed }, want: doesNotApply},
		"one for each node":  {change: func(f fixture) { share(f, "0-3", "4-7") }, want: doesNotApply},
		"not told": {
			change: func(f fixture) {
				f.eachCPU(func(c *host.CPU) { c.Caches[1].SharedCPUs = absent[cpus.Set]("index3/shared_cpu_list") }, 2)
			},
			want: isUnknown, wantMessage: "index3/shared_cpu_list",
		},
	}
}

func networkCases() map[v1alpha1.CheckID]checkCases {
	nic := func(f fixture) *host.NIC { return &f.facts.NICs[0] }
	bond := func(f fixture, masks ...host.Fact[cpus.Set]) {
		f.facts.Interfaces = append(f.facts.Interfaces, host.Interface{Name: "bond0", ReceiveSteering: masks})
	}
	return map[v1alpha1.CheckID]checkCases{
		"nic.receive-steering": {
			"as planned": {want: passes},
			"a queue":    {change: func(f fixture) { nic(f).ReceiveSteering[1] = known(list("0-3")) }, want: fails, wantMessage: "rps_cpus of queue 1 of NIC ens2f0 (0000:3b:00.0) holds isolated CPUs 2-3"},
			"a queue of a bond": {
				change: func(f fixture) { bond(f, known(list("0")), known(list("2-3"))) },
				want:   fails, wantMessage: "rps_cpus of queue 1 of interface bond0 holds isolated CPUs 2-3",
			},
			"a bond that keeps to the housekeeping": {change: func(f fixture) { bond(f, known(list("0"))) }, want: passes},
			"a bond that does not tell":             {change: func(f fixture) { bond(f, absent[cpus.Set]("rps_cpus")) }, want: isUnknown, wantMessage: "rps_cpus"},
			"new interfaces":                        {change: func(f fixture) { f.set(settingSteeringMask, "ff") }, want: fails, wantMessage: settingSteeringMask + " holds isolated CPUs 2-3,6-7"},
			"not the planned mask": {
				change: func(f fixture) {
					f.plan.Sysctls = append(f.plan.Sysctls, settings("net.core.rps_default_mask", "33")...)
				},
				want: fails, wantMessage: settingSteeringMask + " is 0, not 33",
			},
			"not told":      {change: func(f fixture) { nic(f).ReceiveSteering[1] = absent[cpus.Set]("rps_cpus") }, want: isUnknown, wantMessage: "rps_cpus"},
			"older kernel":  {change: func(f fixture) { f.remove(settingSteeringMask) }, want: passes},
			"locked":        {change: func(f fixture) { f.deny(settingSteeringMask) }, want: isUnknown, wantMessage: settingSteeringMask + " cannot be read: permission denied"},
			"nothing there": {change: func(f fixture) { f.remove(settingSteeringMask); f.facts.NICs = nil }, want: isUnknown, wantMessage: "no receive queue is listed"},
		},
		"net.flow-steering": {
			"off": {want: passes},
			"on":  {change: func(f fixture) { f.set(settingFlowEntries, "32768") }, want: fails, wantMessage: settingFlowEntries + " is 32768, not 0"},
			"as planned": {
				change: func(f fixture) {
					f.set(settingFlowEntries, "32768")
					f.plan.Sysctls = append(f.plan.Sysctls, settings("net.core.rps_sock_flow_entries", "32768")...)
				}, want: passes,
			},
			"per pod":  {change: roam, want: doesNotApply},
			"not told": {change: func(f fixture) { f.remove(settingFlowEntries) }, want: isUnknown, wantMessage: settingFlowEntries},
		},
		"net.busy-poll": {
			"as planned":  {want: passes},
			"not planned": {change: func(f fixture) { f.plan.Sysctls = nil }, want: doesNotApply},
			"set back":    {change: func(f fixture) { f.set("/proc/sys/net/core/busy_poll", "0") }, want: fails, wantMessage: "/proc/sys/net/core/busy_poll is 0, not 50"},
			"not told":    {change: func(f fixture) { f.remove("/proc/sys/net/core/busy_poll") }, want: isUnknown, wantMessage: "/proc/sys/net/core/busy_poll"},
		},
		"net.drops": {
			"none":      {want: passes},
			"backlog":   {change: func(f fixture) { f.facts.Traffic.BacklogDrops = known(uint64(3)) }, want: fails, wantMessage: "the backlogs of the host's CPUs overflowed once since the last reading"},
			"datagrams": {change: func(f fixture) { f.facts.Traffic.DatagramDrops = known(uint64(2009)) }, want: fails, wantMessage: "the buffers of the host's UDP sockets overflowed thousands of times since the last reading"},
			"back":      {change: func(f fixture) { f.facts.Traffic.DatagramDrops = known(uint64(1)) }, want: isUnknown, wantMessage: "rebooted"},
			"read once": {once: true, want: doesNotApply},
			"not told":  {change: func(f fixture) { f.facts.Traffic.DatagramDrops = absent[uint64]("/proc/1/net/snmp") }, want: isUnknown, wantMessage: "/proc/1/net/snmp"},
		},
		"nic.drops": {
			"none":         {want: passes},
			"some":         {change: func(f fixture) { nic(f).Drops["rx_missed_errors"] = known(uint64(5)) }, want: fails, wantMessage: "NIC ens2f0 (0000:3b:00.0) lost packets (rx_missed_errors) once since the last reading"},
			"no interface": {change: func(f fixture) { nic(f).Drops = nil }, want: doesNotApply},
			"not told":     {change: func(f fixture) { nic(f).Drops["rx_missed_errors"] = absent[uint64]("rx_missed_errors") }, want: isUnknown, wantMessage: "rx_missed_errors"},
			"a new NIC":    {change: func(f fixture) { f.before.NICs = nil }, want: isUnknown, wantMessage: "the earlier reading does not tell: it has no counters of NIC ens2f0 (0000:3b:00.0)"},
		},
		"nic.queues":     queueCases(nic),
		"nic.link-power": linkCases(nic),
	}
}

func queueCases(nic func(fixture) *host.NIC) checkCases {
	more := func(f fixture) { nic(f).ReceiveSteering = append(nic(f).ReceiveSteering, known(list(""))) }
	return checkCases{
		"as planned":  {want: passes},
		"fewer":       {change: func(f fixture) { nic(f).ReceiveSteering = nic(f).ReceiveSteering[:1] }, want: passes},
		"more":        {change: more, want: fails, wantMessage: "NIC ens2f0 (0000:3b:00.0) has 3 receive queues, planned are 2"},
		"not planned": {change: func(f fixture) { more(f); f.plan.Network.Queues = 0 }, want: doesNotApply},
		"another NIC": {
			change: func(f fixture) {
				more(f)
				f.plan.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"eno*"}}}
			}, want: doesNotApply,
		},
		"this NIC": {
			change: func(f fixture) {
				more(f)
				f.plan.Network.NICs = []v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens*"}}}
			},
			want: fails, wantMessage: "NIC ens2f0 (0000:3b:00.0) has 3 receive queues, planned are 2",
		},
		"not told": {change: func(f fixture) { nic(f).ReceiveSteering = nil }, want: isUnknown, wantMessage: "/sys/class/net/ens2f0/queues"},
	}
}

func linkCases(nic func(fixture) *host.NIC) checkCases {
	saving := func(f fixture) { nic(f).LinkPowerStates = known([]string{"l0s_aspm", "l1_aspm"}) }
	return checkCases{
		"awake":                      {want: passes},
		"saving":                     {change: saving, want: fails, wantMessage: "the PCIe link of NIC ens2f0 (0000:3b:00.0) saves power: l0s_aspm; l1_aspm"},
		"the policy decides":         {change: func(f fixture) { saving(f); f.set(settingASPM, "default [performance] powersave") }, want: passes},
		"a virtual function":         {change: func(f fixture) { saving(f); nic(f).PhysicalFunction = known("0000:3b:00.1") }, want: doesNotApply},
		"the kernel does not report": {change: func(f fixture) { nic(f).LinkPowerStates = absent[[]string]("link") }, want: isUnknown, wantMessage: "link cannot be read"},
	}
}

func quotaCases() checkCases {
	return checkCases{
		"none": {want: passes},
		"of the container": {
			change: func(f fixture) {
				f.facts.Kubelet.PodGroups.Value[0].Quota = host.Known("200000 100000", "engine/cpu.max")
			},
			want: fails, wantMessage: "container trading/engine-0/engine is stopped when it has used up its quota (cpu.max is 200000 100000)",
		},
		"of the pod": {
			change: func(f fixture) {
				f.facts.Kubelet.PodGroups.Value[0].PodQuota = host.Known("200000 100000", "pod/cpu.max")
			},
			want: fails, wantMessage: "the pod of container trading/engine-0/engine is stopped when it has used up its quota (cpu.max is 200000 100000)",
		},
		"of another pod with the same CPUs": {
			change: func(f fixture) {
				other := host.PodGroup{Pod: "another", CPUs: known(list("2-3")), Quota: host.Known("200000 100000", "other/cpu.max"), PodQuota: known("max 100000")}
				f.facts.Kubelet.PodGroups.Value = append([]host.PodGroup{other}, f.facts.Kubelet.PodGroups.Value...)
			}, want: passes,
		},
		"of the container, version 1": {
			change: func(f fixture) {
				f.facts.Kubelet.PodGroups.Value[0].Quota = host.Known("200000", "engine/cpu.cfs_quota_us")
			},
			want: fails, wantMessage: "container trading/engine-0/engine is stopped when it has used up its quota (cpu.cfs_quota_us is 200000)",
		},
		"none, version 1": {change: func(f fixture) {
			f.facts.Kubelet.PodGroups.Value[0].Quota, f.facts.Kubelet.PodGroups.Value[0].PodQuota = known("-1"), known("-1")
		}, want: passes},
		"no pod owns CPUs": {change: fixture.disown, want: doesNotApply},
		"not told":         {change: func(f fixture) { f.facts.Kubelet.PodGroups.Value[0].Quota = absent[string]("cpu.max") }, want: isUnknown, wantMessage: "cpu.max"},
		"shared CPUs besides": {
			change: func(f fixture) {
				f.plan.CPUs.Shared = list("0")
				f.facts.Kubelet.PodGroups.Value[0].CPUs = known(list("0,2-3"))
			}, want: passes,
		},
		"its group is not among those of the pod": {
			change: func(f fixture) { f.facts.Kubelet.PodGroups.Value = f.facts.Kubelet.PodGroups.Value[1:] },
			want:   isUnknown, wantMessage: "the quota of container trading/engine-0/engine cannot be read: no control group of its pod has its CPUs 2-3",
		},
		"the CPUs of its group are not told": {
			change: func(f fixture) { f.facts.Kubelet.PodGroups.Value[0].CPUs = absent[cpus.Set]("cpuset.cpus.effective") },
			want:   isUnknown, wantMessage: "cpuset.cpus.effective",
		},
		"no groups": {change: func(f fixture) { f.facts.Kubelet.PodGroups = absent[[]host.PodGroup]("/sys/fs/cgroup") }, want: isUnknown, wantMessage: "/sys/fs/cgroup"},
	}
}

func ownershipCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"numa.exclusive-pods": exclusivePodCases(),
		"numa.pod-memory": {
			"as planned": {want: passes},
			"of both nodes": {
				change: func(f fixture) { f.facts.Tasks.Value[1].MemoryNodes = known(list("0-1")) },
				want:   fails, wantMessage: "engine (process 4000) of container trading/engine-0/engine may take memory of NUMA node 1, its CPUs 2-3 are on NUMA node 0",
			},
			"of a kernel thread": {
				change: func(f fixture) {
					worker := thread(95, "kworker/2:1", 2, "2")
					worker.MemoryNodes = known(list("0-1"))
					f.start(worker)
				}, want: passes,
			},
			"of a zombie": {
				change: func(f fixture) {
					ended := inPod(program(4001, "engine", 2, "2"), enginePod)
					ended.State, ended.MemoryNodes = "Z", known(list("0-1"))
					f.start(ended)
				}, want: passes,
			},
			"of a program on nobody's CPUs": {
				change: func(f fixture) {
					free := inPod(program(4002, "batch", 6, "6-7"), enginePod)
					free.MemoryNodes = known(list("0-1"))
					f.start(free)
				}, want: passes,
			},
			"of the host's switch": {
				change: func(f fixture) {
					f.plan.CPUs.DataPlane = list("6-7")
					pmd := program(4003, "ovs-vswitchd", 6, "6-7")
					pmd.MemoryNodes, pmd.Group = known(list("0-1")), known("/"+plan.DataPlaneSlice+"/ovs-vswitchd.service")
					f.start(pmd)
				}, want: passes,
			},
			"of a stranger": {
				change: func(f fixture) {
					daemon := program(4004, "rngd", 2, "2")
					daemon.MemoryNodes = known(list("0-1"))
					f.start(daemon)
				}, want: passes,
			},
			"nobody pins memory": {change: func(f fixture) { f.plan.Kubelet.MemoryManagerPolicy = "None" }, want: doesNotApply},
			"no pod owns CPUs":   {change: fixture.disown, want: doesNotApply},
			"not told":           {change: func(f fixture) { f.facts.Tasks.Value[1].MemoryNodes = absent[cpus.Set]("/proc/4000/status") }, want: isUnknown, wantMessage: "/proc/4000/status"},
		},
		"numa.remote-allocations": {
			"none":     {want: passes},
			"few":      {change: func(f fixture) { f.facts.NUMANodes[1].ForeignAllocations = known(uint64(6000)) }, want: passes},
			"many":     {change: func(f fixture) { f.facts.NUMANodes[1].ForeignAllocations = known(uint64(6006)) }, want: fails, wantMessage: "memory that was meant for NUMA node 1 comes from other NUMA nodes"},
			"one node": {change: func(f fixture) { oneNode(f); f.facts.NUMANodes[0].ForeignAllocations = known(uint64(60000)) }, want: doesNotApply},
			"not told": {change: func(f fixture) { f.facts.NUMANodes[1].ForeignAllocations = absent[uint64]("numastat") }, want: isUnknown, wantMessage: "numastat"},
			"no time":  {change: func(f fixture) { f.facts.UptimeSeconds = absent[float64]("/proc/uptime") }, want: isUnknown, wantMessage: "/proc/uptime"},
			"elsewhere": {
				change: func(f fixture) {
					f.plan.CPUs.Isolated = list("2-3")
					f.facts.NUMANodes[1].ForeignAllocations = known(uint64(60000))
				}, want: passes,
			},
		},
		"pod.cpu-quota": quotaCases(),
		"kubelet.allocatable": {
			"as planned":   {want: passes},
			"nobody asked": {change: func(f fixture) { f.pods.allocatable = nil }, want: doesNotApply},
			"other CPUs": {
				change: func(f fixture) { f.pods.allocatable.Value.CPUs = list("1-3,6") },
				want:   fails, wantMessage: "the kubelet does not offer isolated CPU 7; the kubelet offers CPU 1, which is not isolated for pods",
			},
			"a device without place": {
				change: func(f fixture) {
					f.pods.allocatable.Value.Devices = []allocation.HeldDevices{{Resource: "lowlatency.dev/x2", IDs: []string{"0000:3b:00.0", "0000:99:00.0"}}}
				},
				want: fails, wantMessage: "the kubelet does not know that NIC ens2f0 (0000:3b:00.0) of lowlatency.dev/x2 is on NUMA node 0",
			},
			"no answer": {change: func(f fixture) { *f.pods.allocatable = absent[Allocatable](podResources) }, want: isUnknown, wantMessage: podResources},
		},
	}
}

func exclusivePodCases() checkCases {
	container := func(f fixture) *allocation.Container { return &f.pods.containers.Value[0] }
	return checkCases{
		"aligned": {want: passes},
		"CPUs of both": {
			change: func(f fixture) {
				container(f).CPUs = list("3,6")
				container(f).Memory = nil
				container(f).Devices = nil
			},
			want: fails, wantMessage: "container trading/engine-0/engine is spread over NUMA nodes: CPU 3 on NUMA node 0, CPU 6 on NUMA node 1",
		},
		"hugepages elsewhere": {
			change: func(f fixture) {
				container(f).Memory = []allocation.MemoryBlock{{Type: "hugepages-1Gi", NUMANodes: []int{1}}}
			},
			want: fails, wantMessage: "container trading/engine-0/engine is spread over NUMA nodes: CPUs 2-3 on NUMA node 0, hugepages-1Gi on NUMA node 1, lowlatency.dev/x2 on NUMA node 0",
		},
		"a device beside both": {change: func(f fixture) { container(f).Devices[0].NUMANodes = []int{0, 1} }, want: passes},
		"another policy":       {change: func(f fixture) { container(f).CPUs = list("3,6"); f.plan.Kubelet.TopologyManagerPolicy = "restricted" }, want: doesNotApply},
		"nobody asked":         {change: func(f fixture) { f.pods.containers = nil }, want: doesNotApply},
		"no answer":            {change: func(f fixture) { *f.pods.containers = absent[[]allocation.Container](podResources) }, want: isUnknown, wantMessage: podResources},
		"CPUs of no node":      {change: func(f fixture) { container(f).CPUs = list("90") }, want: isUnknown, wantMessage: "the NUMA node of CPU 90"},
	}
}

func moreMemoryCases() map[v1alpha1.CheckID]checkCases {
	return map[v1alpha1.CheckID]checkCases{
		"memory.dirty-pages": {
			"as planned":  {want: passes},
			"not planned": {change: func(f fixture) { f.plan.Sysctls = nil }, want: doesNotApply},
			"set back":    {change: func(f fixture) { f.set("/proc/sys/vm/dirty_ratio", "20") }, want: fails, wantMessage: "/proc/sys/vm/dirty_ratio is 20, not 10"},
			"not told":    {change: func(f fixture) { f.remove("/proc/sys/vm/dirty_ratio") }, want: isUnknown, wantMessage: "/proc/sys/vm/dirty_ratio"},
		},
		"memory.zone-reclaim": {
			"off": {want: passes},
			"on":  {change: func(f fixture) { f.set(settingZoneReclaim, "1") }, want: fails, wantMessage: settingZoneReclaim + " is 1, not 0"},
			"as planned": {
				change: func(f fixture) {
					f.set(settingZoneReclaim, "1")
					f.plan.Sysctls = append(f.plan.Sysctls, settings("vm.zone_reclaim_mode", "1")...)
				}, want: passes,
			},
			"not told": {change: func(f fixture) { f.remove(settingZoneReclaim) }, want: isUnknown, wantMessage: settingZoneReclaim},
		},
	}
}
