// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// writeProcess writes the files of /proc that describe the kernel and the machine.
func (k *kernel) writeProcess(t *tree) {
	t.file("/proc/cmdline", k.options.CommandLine)
	t.text("/proc/cpuinfo", k.cpuInformation())
	t.text("/proc/meminfo", k.memoryInformation())
	preemption, pageKiB := "PREEMPT_DYNAMIC", 4
	if k.realTime() {
		preemption = "PREEMPT_RT"
	}
	if k.largePages() {
		pageKiB = 64
	}
	t.file("/proc/version", fmt.Sprintf("Linux version %s (mockbuild@example.com) (gcc (GCC) 11.5.0) #1 SMP %s Mon Sep 1 00:00:00 UTC 2026", k.release(), preemption))
	t.text("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n")
	t.text("/proc/self/smaps", fmt.Sprintf("00400000-00500000 r-xp 00000000 fd:00 1 /usr/bin/cat\nSize: 1024 kB\nKernelPageSize: %[1]d kB\nMMUPageSize: %[1]d kB\n", pageKiB))
	t.text("/proc/uptime", "0.00 0.00\n")
	t.text(schedstatFile, schedstat(k.online, nil))
	t.text("/proc/1/net/softnet_stat", strings.Repeat("00000000 00000000 00000000\n", k.online.Len()))
	t.text("/proc/1/net/snmp", "Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors\nUdp: 0 0 0 0 0 0\n")
	t.text("/proc/self/mounts", "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\n")
}

// writeSysctls writes /proc/sys with the kernel's defaults (Documentation/admin-guide/sysctl), as far as
// plans and checks ask for them, and what the command line changes.
func (k *kernel) writeSysctls(t *tree) {
	soft, hard := k.watchdogs()
	balancing := 0
	if k.numaNodes() > 1 {
		// check_numabalancing_enable of mm/mempolicy.c switches it on where there are several NUMA nodes.
		balancing = 1
	}
	values := map[string]any{
		"kernel/hostname": k.Hostname, "kernel/ostype": "Linux", "kernel/osrelease": k.release(),
		"kernel/random/boot_id": k.identifier,
		"kernel/nmi_watchdog":   hard, "kernel/soft_watchdog": soft, "kernel/watchdog": max(soft, hard),
		// lockup_detector_init of kernel/watchdog.c leaves CPUs without tick out.
		"kernel/watchdog_cpumask": k.all.Difference(k.isolation.Noise), "kernel/watchdog_thresh": 10,
		"kernel/numa_balancing":     balancing,
		"kernel/sched_rt_period_us": 1000000, "kernel/sched_rt_runtime_us": 950000,
		"kernel/timer_migration": 1, "kernel/hung_task_timeout_secs": 120, "kernel/sched_schedstats": 0,
		"kernel/softlockup_panic": 0, "kernel/tainted": 0, "kernel/stack_tracer_enabled": 0,
		"net/core/rps_sock_flow_entries": 0,
		"vm/stat_interval":               1, "vm/swappiness": 60, "vm/compaction_proactiveness": 20, "vm/zone_reclaim_mode": 0,
		"vm/dirty_ratio": 20, "vm/dirty_background_ratio": 10, "vm/dirty_bytes": 0, "vm/dirty_background_bytes": 0,
		"vm/dirty_writeback_centisecs": 500, "vm/dirty_expire_centisecs": 3000, "vm/overcommit_memory": 0,
		"vm/nr_hugepages":    k.hugepages.total(k.hugepages.defaultSize),
		"net/core/busy_poll": 0, "net/core/busy_read": 0, "net/core/rps_default_mask": cpus.Set{}.Mask(),
		"net/core/netdev_budget": 300, "net/core/netdev_budget_usecs": 2000, "net/ipv4/tcp_fastopen": 1,
	}
	if k.realTime() {
		// NUMA_BALANCING in init/Kconfig and NET_RX_BUSY_POLL in net/Kconfig depend on !PREEMPT_RT.
		for _, name := range []string{"kernel/numa_balancing", "net/core/busy_poll", "net/core/busy_read"} {
			delete(values, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t.file("/proc/sys/"+name, values[name])
	}
}

// watchdogs follows kernel/watchdog.c: nmi_watchdog=0 stops the hard-lockup detector, nosoftlockup the
// other, nowatchdog both. arm64 kernels have no hard-lockup detector by default.
func (k *kernel) watchdogs() (soft, hard int) {
	soft, hard = 1, 1
	if _, given := k.line.Get("nosoftlockup"); given {
		soft = 0
	}
	value, given := k.line.Get("nmi_watchdog")
	if given && strings.HasPrefix(value, "0") || k.Architecture == "arm64" {
		hard = 0
	}
	if _, given := k.line.Get("nowatchdog"); given {
		soft, hard = 0, 0
	}
	return soft, hard
}

// Process is a process of a host tree.
type Process struct {
	PID  int
	Name string
	// AllowedCPUs is Cpus_allowed_list; the process runs on the first of them.
	AllowedCPUs cpus.Set
	// Busy processes run all the time, others sleep.
	Busy bool
	// Ended processes wait for their parent to ask how they ended.
	Ended bool
	// Group is the path of the control group; that of a service of its name if empty.
	Group string
	// Kind is that of a program unless it says otherwise.
	Kind ProcessKind
	// Priority is the real-time priority under the policy FIFO; 0 is the policy of most.
	Priority int
	// Environment is what /proc/PID/environ holds.
	Environment map[string]string
}

// ProcessKind tells programs from threads of the kernel.
type ProcessKind string

const (
	// KernelThread is a thread of the kernel that may be moved to other CPUs.
	KernelThread ProcessKind = "KernelThread"
	// BoundKernelThread is one that belongs to its CPU.
	BoundKernelThread ProcessKind = "BoundKernelThread"
)

// taskFlags are PF_KTHREAD, PF_NO_SETAFFINITY and, for programs, what most have (include/linux/sched.h).
func (k ProcessKind) taskFlags() int {
	return map[ProcessKind]int{KernelThread: 0x00208040, BoundKernelThread: 0x04208040, "": 0x00400100}[k]
}

// group is where systemd puts a process, and the kernel its threads.
func (p Process) group() string {
	switch {
	case p.Group != "":
		return p.Group
	case p.Kind != "":
		return "/"
	case p.PID == 1:
		return "/init.scope"
	default:
		return "/system.slice/" + p.Name + ".service"
	}
}

func (p Process) write(t *tree) {
	folder := fmt.Sprint("/proc/", p.PID)
	parent, state, word := 1, "S", "sleeping"
	if p.Kind != "" {
		parent = 2
	}
	switch {
	case p.Busy:
		state, word = "R", "running"
	case p.Ended:
		state, word = "Z", "zombie"
	}
	t.file(folder+"/comm", p.Name)
	t.file(folder+"/cgroup", "0::"+p.group())
	t.text(folder+"/status", fmt.Sprintf("Name:\t%s\nState:\t%s (%s)\nTgid:\t%[4]d\nPid:\t%[4]d\nPPid:\t%d\nCpus_allowed:\t%s\nCpus_allowed_list:\t%s\n"+
		"Mems_allowed_list:\t0\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n",
		p.Name, state, word, p.PID, parent, p.AllowedCPUs.Mask(), p.AllowedCPUs))
	// The fields of proc_pid_stat(5) that nobody reads are 0; the policy FIFO is 1.
	t.file(folder+"/stat", fmt.Sprintf("%d (%s) %s %d 0 0 0 0 %d%s 1%s %d %d %d%s", p.PID, p.Name, state, parent, p.Kind.taskFlags(),
		strings.Repeat(" 0", 10), strings.Repeat(" 0", 18), p.AllowedCPUs.First(), p.Priority, min(p.Priority, 1), strings.Repeat(" 0", 11)))
	if p.Kind != "" {
		return // Threads of the kernel have no environment.
	}
	var environment strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Environment)) {
		fmt.Fprintf(&environment, "%s=%s\x00", name, p.Environment[name])
	}
	t.text(folder+"/environ", environment.String())
}

// services is what the files of the host say about services that start at boot.
type services struct {
	// balancerMasked tells that irqbalance does not start.
	balancerMasked bool
	// balancerEnvironment are its variables.
	balancerEnvironment map[string]string
}

// irqbalancePID is the process of irqbalance in every tree.
const irqbalancePID = 812

// readServices reads how irqbalance is started: masked by a link to /dev/null, with the variables of
// /etc/sysconfig/irqbalance and of files that drop-ins of its unit name (EnvironmentFile= of systemd.exec(5)).
func readServices(dir string) services {
	const unit = "etc/systemd/system/irqbalance.service"
	s := services{balancerEnvironment: map[string]string{}}
	target, err := os.Readlink(filepath.Join(dir, unit))
	s.balancerMasked = err == nil && target == "/dev/null"
	files := []string{"/etc/sysconfig/irqbalance"}
	// The pattern has no syntax error, the only failure of Glob.
	dropIns, _ := filepath.Glob(filepath.Join(dir, unit+".d", "*.conf"))
	for _, dropIn := range dropIns {
		for name, value := range assignments(dropIn) {
			if name == "EnvironmentFile" {
				files = append(files, strings.TrimPrefix(value, "-"))
			}
		}
	}
	for _, file := range files {
		for name, value := range assignments(filepath.Join(dir, file)) {
			if strings.HasPrefix(name, "IRQBALANCE_") {
				s.balancerEnvironment[name] = value
			}
		}
	}
	return s
}

// assignments reads lines of the form NAME=value; a file that does not exist has none.
func assignments(path string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	values := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if found && !strings.HasPrefix(name, "#") {
			values[name] = strings.Trim(value, `"`)
		}
	}
	return values
}

// writeServices starts process 1 and what it starts.
func (k *kernel) writeServices(t *tree, s services) {
	processes := []Process{
		{PID: 1, Name: "systemd"}, {PID: irqbalancePID, Name: "irqbalance", Environment: s.balancerEnvironment},
		{PID: 845, Name: "chronyd"}, {PID: 2213, Name: "crio"}, {PID: 2460, Name: "kubelet"},
	}
	for _, process := range processes {
		if process.PID == irqbalancePID && s.balancerMasked {
			continue
		}
		process.AllowedCPUs = k.initial
		process.write(t)
	}
	for _, process := range k.threads() {
		process.write(t)
	}
}

// threads are some of the kernel's: those that work for all stay off CPUs without tick (kthread.c takes the CPUs of
// HK_TYPE_KTHREAD), and so do those that run the callbacks of such CPUs (rcu_nocb).
func (k *kernel) threads() []Process {
	housekeeping := k.online.Difference(k.isolation.Noise)
	threads := []Process{
		{PID: 2, Name: "kthreadd", Kind: KernelThread, AllowedCPUs: housekeeping},
		{PID: 16, Name: "migration/0", Kind: BoundKernelThread, AllowedCPUs: cpus.Of(k.online.First()), Priority: 99},
		{PID: 120, Name: "kswapd0", Kind: KernelThread, AllowedCPUs: housekeeping},
		{PID: 121, Name: "khugepaged", Kind: KernelThread, AllowedCPUs: housekeeping},
	}
	for _, id := range k.online.IDs() {
		threads = append(threads, k.threadsOf(id)...)
	}
	if offloaded, err := cpus.Parse(k.offloaded()); err == nil && !offloaded.IsEmpty() {
		threads = append(threads,
			Process{PID: 17, Name: fmt.Sprint("rcuog/", offloaded.First()), Kind: KernelThread, AllowedCPUs: housekeeping},
			Process{PID: 18, Name: fmt.Sprint("rcuop/", offloaded.First()), Kind: KernelThread, AllowedCPUs: housekeeping})
	}
	return threads
}

// threadsOf are threads that the kernel has for a CPU. With PREEMPT_RT, timers and callbacks of RCU run in threads of their
// own (ktimers of kernel/softirq.c, rcuc of kernel/rcu/tree.c), which start with the lowest real-time priority or that of
// rcutree.kthread_prio.
func (k *kernel) threadsOf(id int) []Process {
	thread := func(at int, name string, priority int) Process {
		return Process{PID: ThreadPID(id) + at, Name: fmt.Sprintf("%s/%d", name, id), Kind: BoundKernelThread, AllowedCPUs: cpus.Of(id), Priority: priority}
	}
	if !k.realTime() {
		return []Process{thread(0, "ksoftirqd", 0)}
	}
	callbacks := 1
	if value, given := k.line.Get("rcutree.kthread_prio"); given {
		if priority, err := strconv.Atoi(value); err == nil {
			callbacks = priority
		}
	}
	return []Process{thread(0, "ksoftirqd", 0), thread(1, "ktimers", 1), thread(2, "rcuc", callbacks)}
}

// ThreadPID is the process of ksoftirqd of a CPU; those of ktimers and rcuc of a real-time kernel follow.
func ThreadPID(id int) int { return 20000 + 10*id }

// offloaded are the CPUs of rcu_nocbs=, or of nohz_full=, which implies it.
func (k *kernel) offloaded() string {
	if list, given := k.line.Get("rcu_nocbs"); given {
		return list
	}
	return k.isolation.Noise.String()
}

// writeDistribution writes the files of /etc and /var that survive a boot.
func (m Machine) writeDistribution(t *tree) {
	t.text("/etc/os-release", `NAME="Red Hat Enterprise Linux CoreOS"
ID="rhcos"
ID_LIKE="rhel fedora"
VERSION="9.6.20260901-0 (Plow)"
VERSION_ID="9.6"
OPENSHIFT_VERSION="4.20"
RHEL_VERSION=9.6
`)
	t.file("/etc/hostname", m.Hostname)
	if m.WorkloadPartitioning {
		// What the installation brings: the kubelet knows the platform's pods, and they have no CPUs of their own.
		t.text("/etc/kubernetes/openshift-workload-pinning", "\n{\n  \"management\": {\n    \"cpuset\": \"\"\n  }\n}\n")
		t.text("/etc/crio/crio.conf.d/01-workload-pinning-default.conf", "\n[crio.runtime.workloads.management]\n"+
			"activation_annotation = \"target.workload.openshift.io/management\"\nannotation_prefix = \"resources.workload.openshift.io\"\n"+
			"resources = { \"cpushares\" = 0, \"cpuset\" = \"\" }\n")
	}
	t.text("/etc/sysconfig/irqbalance", "# irqbalance is a daemon process that distributes interrupts across\n# CPUs on SMP systems.\n#IRQBALANCE_BANNED_CPUS=\n#IRQBALANCE_BANNED_CPULIST=\nIRQBALANCE_ARGS=\n")
	t.text("/usr/lib/systemd/system/fwupd-refresh.timer", "[Timer]\nOnUnitActiveSec=1d\n")
	t.text("/etc/kubernetes/kubelet.conf", `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
cgroupRoot: /
cpuManagerPolicy: none
memoryManagerPolicy: None
topologyManagerPolicy: none
maxPods: 250
systemReserved:
  cpu: 500m
  memory: 1Gi
`)
	t.text("/var/lib/kubelet/cpu_manager_state", `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}`)
	t.text("/var/lib/kubelet/memory_manager_state", `{"policyName":"None","machineState":{},"checksum":4236770233}`)
}
