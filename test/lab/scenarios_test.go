// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The scenarios of make lab. A failed check without an impact is a finding and leaves the conditions True.

const (
	workqueueMask = "/sys/devices/virtual/workqueue/cpumask"
	hugepageMode  = "/sys/kernel/mm/transparent_hugepage/enabled"
	defaultMask   = "/proc/irq/default_smp_affinity"
)

// one is a single outcome that changes.
func one(check, outcome string) map[string]string { return map[string]string{check: outcome} }

// set writes a value to a file.
func set(file, value string) string { return "echo " + value + " >" + file }

// hugepages sets the pools of 2 MiB of NUMA nodes 0, 1 and so on.
func hugepages(counts ...int) string {
	commands := make([]string, len(counts))
	for node, count := range counts {
		commands[node] = set(fmt.Sprintf("/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages", node), strconv.Itoa(count))
	}
	return strings.Join(commands, " && ")
}

func cpuOnline(cpu, value int) string {
	return set(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/online", cpu), strconv.Itoa(value))
}

// moveInterrupt writes the affinity of the first NIC's receive interrupt and waits until it is in force. Without
// interrupt remapping the kernel moves an interrupt when it comes the next time; e1000e makes its own come
// every two seconds while the interface is up.
func moveInterrupt(cpu int) string {
	return fmt.Sprintf(`set -e
irq=/proc/irq/$(awk -F: '/(ens1|enp1s0)-rx-0/ {print $1 + 0}' /proc/interrupts)
echo %d >$irq/smp_affinity_list
for i in $(seq 60); do
  [ "$(cat $irq/effective_affinity_list)" = %d ] && exit 0
  sleep 0.5
done
echo "still on $(cat $irq/effective_affinity_list)" >&2
exit 1`, cpu, cpu)
}

// moveThread lets a thread of the kernel run on some CPUs only. One that sleeps moves when it wakes.
func moveThread(name, cpus string) string {
	return fmt.Sprintf("taskset -pc %s $(pgrep -x %s) && sleep 2", cpus, name)
}

// background starts a command that outlives the shell, and remembers it for stop.
func background(name, command string) string {
	return fmt.Sprintf("systemd-run --quiet --unit=%s %s; sleep 1; systemctl is-active --quiet %s", name, command, name)
}

func stop(name string) string { return "systemctl stop " + name }

// twoNodesScenarios belong to testdata/truth/two-nodes.yaml: housekeeping 0,4; isolated 1-3,5-7; 32 hugepages of
// 2 MiB on NUMA node 0 and 64 on node 1.
func twoNodesScenarios() []scenario {
	return slices.Concat(interruptScenarios(), placeScenarios(), kernelScenarios(), idleScenarios(), []scenario{{
		name:    "booted without nohz_full and rcu_nocbs",
		without: []string{"nohz_full", "rcu_nocbs"},
		want:    verdicts{no, no, yes},
		changes: map[string]string{"kernel.command-line": failed, "cpu.nohz-full": failed, "cpu.rcu-offload": failed},
		says:    one("cpu.nohz-full", "1-3,5-7"),
	}})
}

// interruptScenarios let interrupts reach isolated CPUs, or come near to it.
func interruptScenarios() []scenario {
	return []scenario{
		{
			name:    "a NIC's interrupt is moved to isolated CPU 2",
			disturb: moveInterrupt(2), restore: moveInterrupt(0),
			want: verdicts{yes, no, yes}, changes: one("irq.effective-affinity", failed),
			says: one("irq.effective-affinity", "(ens1-rx-0) is delivered to isolated CPU 2; wanted 0,4"),
		},
		{
			name:    "a NIC's interrupt is handled on the other NUMA node",
			disturb: moveInterrupt(4), restore: moveInterrupt(0),
			want: verdicts{yes, yes, no}, changes: one("numa.nic-interrupts", failed),
			says: one("numa.nic-interrupts", "ens1"),
		},
		{
			name:    "new interrupts may go anywhere",
			disturb: set(defaultMask, "ff"), restore: set(defaultMask, "11"),
			want: verdicts{yes, no, yes}, changes: one("irq.default-affinity", failed),
			says: one("irq.default-affinity", defaultMask+" holds isolated CPUs 1-3,5-7"),
		},
		{
			name:    "irqbalance is started by its unit, which has the plan's ban list",
			disturb: "systemctl start irqbalance; sleep 1; systemctl is-active --quiet irqbalance", restore: stop("irqbalance"),
			want: verdicts{yes, yes, yes}, changes: map[string]string{},
		},
		{
			name:    "irqbalance is started with a ban list of its own",
			disturb: background("balance", "--setenv=IRQBALANCE_BANNED_CPULIST=1 irqbalance --foreground --interval=3600"), restore: stop("balance"),
			want: verdicts{yes, no, yes}, changes: one("irq.balancer", failed),
			says: one("irq.balancer", "may use isolated CPUs 2-3,5-7"),
		},
	}
}

// placeScenarios put memory, NICs, CPUs and threads where they do not belong.
func placeScenarios() []scenario {
	return []scenario{
		{
			name:    "all hugepages are on NUMA node 0",
			disturb: hugepages(96, 0), restore: hugepages(32, 64),
			want: verdicts{no, yes, no}, changes: one("memory.hugepages-numa", failed),
			says: one("memory.hugepages-numa", "NUMA node 1 holds 0 hugepages of 2Mi, planned are 64"),
		},
		{
			name:    "a NIC is on the other NUMA node",
			disturb: set("/sys/bus/pci/devices/0000:41:00.0/numa_node", "0"), restore: set("/sys/bus/pci/devices/0000:41:00.0/numa_node", "1"),
			want: verdicts{yes, yes, no}, changes: map[string]string{"numa.nic-locality": failed, "numa.nic-interrupts": failed},
			says: one("numa.nic-locality", "ens2 (0000:41:00.0) is on NUMA node 0, planned is 1"),
		},
		{
			name:    "isolated CPU 3 is taken offline",
			disturb: cpuOnline(3, 0), restore: cpuOnline(3, 1),
			want: verdicts{yes, no, yes}, changes: one("cpu.online", failed),
			says: one("cpu.online", "CPU 3"),
		},
		{
			name:    "a busy thread is on isolated CPU 6",
			disturb: background("busy", "taskset -c 6 sh -c 'while :; do :; done'"), restore: stop("busy"),
			want: verdicts{yes, no, yes}, changes: one("cpu.foreign-tasks", failed),
			says: one("cpu.foreign-tasks", "runs on isolated CPU 6"),
		},
		{
			name:    "a thread of the kernel is moved to isolated CPU 3",
			disturb: moveThread("rcu_preempt", "3"), restore: moveThread("rcu_preempt", "0,4"),
			want: verdicts{yes, no, yes}, changes: one("cpu.kernel-threads", failed),
			says: one("cpu.kernel-threads", "kernel thread rcu_preempt"),
		},
		{
			name:    "the kubelet runs with another policy",
			disturb: "cp /etc/kubernetes/kubelet.conf /root/; sed -i 's/single-numa-node/best-effort/' /etc/kubernetes/kubelet.conf",
			restore: "mv /root/kubelet.conf /etc/kubernetes/",
			want:    verdicts{no, yes, no}, changes: one("kubelet.topology-manager", failed),
		},
	}
}

// kernelScenarios switch kernel work on that interrupts programs.
func kernelScenarios() []scenario {
	return []scenario{
		{
			name:    "the same, and its handler is seen to run there",
			disturb: moveInterrupt(2), restore: moveInterrupt(0), readings: 2,
			want:    verdicts{yes, no, yes},
			changes: map[string]string{"irq.effective-affinity": failed, "irq.delivered": failed, "irq.softirqs": failed},
			says:    one("irq.delivered", "ens1-rx-0"),
		},
		{
			name:    "transparent hugepages are switched on",
			disturb: set(hugepageMode, "always"), restore: set(hugepageMode, "never"),
			want: verdicts{yes, no, yes}, changes: one("memory.transparent-hugepages", failed),
			says: one("memory.transparent-hugepages", "always"),
		},
		{
			name:    "the mask of unbound kernel work is reset",
			disturb: set(workqueueMask, "ff"), restore: set(workqueueMask, "11"),
			want: verdicts{yes, no, yes}, changes: map[string]string{"workqueue.unbound": failed, "workqueue.others": failed},
			says: one("workqueue.unbound", workqueueMask+" holds isolated CPUs 1-3,5-7"),
		},
		{
			name:    "process 1 may use every CPU",
			disturb: "taskset -pc 0-7 1", restore: "taskset -pc 0,4 1",
			want: verdicts{yes, no, yes}, changes: one("cpu.init-affinity", failed),
			says: one("cpu.init-affinity", "1-3,5-7"),
		},
		{
			name:    "the kernel merges equal pages",
			disturb: set("/sys/kernel/mm/ksm/run", "1"), restore: set("/sys/kernel/mm/ksm/run", "0"),
			want: verdicts{yes, no, yes}, changes: one("memory.ksm", failed),
		},
		{
			name:    "automatic NUMA balancing is switched on",
			disturb: "sysctl -w kernel.numa_balancing=1", restore: "sysctl -w kernel.numa_balancing=0",
			want: verdicts{yes, no, yes}, changes: one("memory.numa-balancing", failed),
		},
		{
			name:    "the soft-lockup watchdog runs everywhere",
			disturb: "sysctl -w kernel.watchdog_cpumask=0-7 kernel.watchdog=1 kernel.soft_watchdog=1", restore: "sysctl -w kernel.watchdog=0 kernel.watchdog_cpumask=0,4",
			want: verdicts{yes, no, yes}, changes: one("kernel.soft-watchdog", failed),
		},
	}
}

// idleScenarios follow each other, from the limit in /dev/cpu_dma_latency that TuneD holds on a tuned machine and back to it:
// a limit lasts as long as somebody holds the device open.
func idleScenarios() []scenario {
	const deep = "CPUs 1-3,5-7: idle state C2, which takes 133 µs to leave, is allowed: no program holds a limit in /dev/cpu_dma_latency"
	const holder = `setsid sh -c 'exec 3>/dev/cpu_dma_latency; printf "\012\0\0\0" >&3; exec sleep infinity' </dev/null >/dev/null 2>&1 &
echo $! >/run/holder
`
	return []scenario{
		{
			name:    "TuneD is killed, and nobody limits how deep CPUs sleep",
			disturb: "kill -KILL $(cat /run/tuned/tuned.pid)\n" + untilLimit(noLimit),
			want:    verdicts{yes, no, yes}, changes: one("power.idle-states", failed),
			says: one("power.idle-states", deep),
		},
		{
			// With 0 µs the emulated processors would poll, which takes this machine's own.
			name:    "a program holds a limit of 10 µs instead",
			disturb: holder + untilLimit(10), restore: "kill $(cat /run/holder)",
			want: verdicts{yes, yes, yes}, changes: map[string]string{},
		},
		{
			name:    "that program has ended",
			disturb: untilLimit(noLimit), restore: "systemctl start tuned.service\n" + untilLimit(shallow),
			want: verdicts{yes, no, yes}, changes: one("power.idle-states", failed),
			says: one("power.idle-states", deep),
		},
	}
}

const (
	// noLimit is what the device says when nobody asks for a limit (PM_QOS_CPU_LATENCY_DEFAULT_VALUE).
	noLimit = 2000000000
	// shallow is how long the shallow idle state of the lab's machines takes to leave, which is what TuneD asks for.
	shallow = 2
)

// untilLimit waits until the limit of all CPUs is this number of microseconds.
func untilLimit(microseconds int) string {
	return fmt.Sprintf(`for i in $(seq 600); do [ $(od -A n -t d4 /dev/cpu_dma_latency) = %d ] && exit 0; sleep 0.5; done
echo "the limit is $(od -A n -t d4 /dev/cpu_dma_latency)" >&2; exit 1`, microseconds)
}

// fourNodesScenarios belong to testdata/truth/four-nodes.yaml, on a real-time kernel.
func fourNodesScenarios() []scenario {
	return []scenario{
		{
			name:    "a NIC's interrupt is moved to isolated CPU 10",
			disturb: moveInterrupt(10), restore: moveInterrupt(8),
			want: verdicts{yes, no, yes}, changes: one("irq.effective-affinity", failed),
			says: one("irq.effective-affinity", "(ens1-rx-0) is delivered to isolated CPU 10"),
		},
		{
			name:    "hugepages of NUMA node 3 are on node 0",
			disturb: hugepages(24, 0, 40, 0), restore: hugepages(0, 0, 40, 24),
			want: verdicts{no, yes, no}, changes: one("memory.hugepages-numa", failed),
			says: one("memory.hugepages-numa", "NUMA node 3"),
		},
		{
			name:    "one thread of an isolated core is taken offline",
			disturb: cpuOnline(7, 0), restore: cpuOnline(7, 1),
			want: verdicts{yes, no, yes}, changes: one("cpu.online", failed),
			says: one("cpu.online", "CPU 7"),
		},
		{
			name:    "real-time throttling is switched on",
			disturb: "sysctl -w kernel.sched_rt_runtime_us=950000", restore: "sysctl -w kernel.sched_rt_runtime_us=-1",
			want: verdicts{yes, no, yes}, changes: one("kernel.rt-throttling", failed),
		},
	}
}

// oneNodeScenarios belong to testdata/truth/one-node.yaml.
func oneNodeScenarios() []scenario {
	return []scenario{
		{
			name:    "a NIC's interrupt is moved to isolated CPU 3",
			disturb: moveInterrupt(3), restore: moveInterrupt(0),
			want: verdicts{yes, no, yes}, changes: one("irq.effective-affinity", failed),
		},
		{
			name:    "half of the hugepages are gone",
			disturb: hugepages(16), restore: hugepages(32),
			want: verdicts{no, yes, no}, changes: one("memory.hugepages-numa", failed),
		},
	}
}
