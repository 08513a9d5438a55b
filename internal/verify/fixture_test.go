// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// fixture is a plan and a host that satisfies it in every point: two NUMA nodes of four CPUs, two
// threads to a core, the first core of each NUMA node for housekeeping.
type fixture struct {
	plan          *plan.NodePlan
	facts, before *host.Facts
	pods          *pods
}

// pods are what the kubelet says about the containers of the host; nothing on a host without BypassNICPools.
type pods struct {
	holders       *host.Fact[[]allocation.Holder]
	containers    *host.Fact[[]allocation.Container]
	allocatable   *host.Fact[Allocatable]
	qualification *Qualification
	// meanwhile are states of the CPU manager between the two readings.
	meanwhile []host.Fact[string]
}

func (f fixture) evaluate() Report { return Evaluate(f.input()) }

func (f fixture) input() Input {
	return Input{
		Plan: f.plan, Facts: f.facts, Before: f.before, Meanwhile: f.pods.meanwhile, Holders: f.pods.holders, Containers: f.pods.containers,
		Allocatable: f.pods.allocatable, Qualification: f.pods.qualification,
	}
}

// engine is the container of the sound host that owns CPUs.
func engine() allocation.Container {
	return allocation.Container{
		Namespace: "trading", Pod: "engine-0", Name: "engine", CPUs: list("2-3"),
		Memory:  []allocation.MemoryBlock{{Type: "memory", Bytes: 1 << 30, NUMANodes: []int{0}}},
		Devices: []allocation.HeldDevices{{Resource: "lowlatency.dev/x2", IDs: []string{"0000:3b:00.0"}, NUMANodes: []int{0}}},
	}
}

// soundPods own CPUs 2-3.
func soundPods() *pods {
	containers := known([]allocation.Container{engine(), {Namespace: "kube-system", Pod: "dns", Name: "dns"}})
	allocatable := known(Allocatable{CPUs: list("2-3,6-7"), Devices: engine().Devices})
	return &pods{
		containers: &containers, allocatable: &allocatable,
		qualification: &Qualification{Then: soundFingerprint(), Now: soundFingerprint(), ManagementInterrupts: known(uint64(0))},
	}
}

// soundFingerprint is that of the sound host.
func soundFingerprint() v1alpha1.LatencyFingerprint {
	return v1alpha1.LatencyFingerprint{
		Kernel: "6.12.0", CommandLineHash: "c0", Microcode: "0x1", BIOSVersion: "2.0", PlanHash: "p0", NICsHash: "n0", MitigationsHash: "m0",
		Stacks: []v1alpha1.LatencyFingerprintStack{{Pool: "feed", Versions: "9.1/9.1"}},
	}
}

// soundTasks are threads that are where they belong.
func soundTasks() []host.Task {
	return []host.Task{
		program(1, "systemd", 0, "0-1,4-5"),
		inPod(program(4000, "engine", 2, "2"), enginePod),
		thread(90, "kswapd0", 0, "0-1,4-5"),
		thread(91, "rcuop/2", 1, "0-1,4-5"),
	}
}

// soundThreads are threads of the kernel of each CPU with the planned priority; this kernel has no ktimers.
func soundThreads() []host.CPUThread {
	const cpuCount = 8
	names := []string{"ksoftirqd", "rcuc"}
	threads := make([]host.CPUThread, 0, cpuCount*len(names))
	for id := range cpuCount {
		for _, name := range names {
			threads = append(threads, host.CPUThread{
				PID: 20 + id, Name: name, CPU: id, Scheduling: known(host.Scheduling{Policy: host.PolicyFIFO, Priority: 11}),
			})
		}
	}
	return threads
}

func program(pid int, name string, last int, allowed string) host.Task {
	return host.Task{
		PID: pid, TID: pid, Name: name, State: "S", LastCPU: last, AllowedCPUs: known(list(allowed)), MemoryNodes: known(list("0")),
		VoluntarySwitches: known(uint64(7)), InvoluntarySwitches: known(uint64(3)),
		Group: known("/system.slice/" + name + ".service"),
	}
}

// enginePod is the UID of the pod that owns CPUs 2-3.
const enginePod = "6f1e9a52-0c3b-4d8e-9f00-1234567890ab"

// inPod puts a program into the control group of a pod.
func inPod(task host.Task, pod string) host.Task {
	task.Group = known("/kubepods.slice/kubepods-pod" + strings.ReplaceAll(pod, "-", "_") + ".slice/crio-4a1b2c3d.scope")
	return task
}

func thread(pid int, name string, last int, allowed string) host.Task {
	task := program(pid, name, last, allowed)
	task.Kernel = true
	task.Group = host.Fact[string]{}
	return task
}

// disown takes their CPUs from all pods.
func (f fixture) disown() { *f.pods.containers = known([]allocation.Container{}) }

// start lets a thread run on the host now, and not before.
func (f fixture) start(task host.Task) { f.facts.Tasks.Value = append(f.facts.Tasks.Value, task) }

// set changes a small file of the host.
func (f fixture) set(path, value string) { f.facts.Settings[path] = host.Known(value, path) }

// remove makes a small file absent.
func (f fixture) remove(paths ...string) {
	for _, path := range paths {
		f.facts.Settings[path] = host.Absent[string](path, "no such file")
	}
}

// deny makes a small file unreadable.
func (f fixture) deny(path string) {
	f.facts.Settings[path] = host.Absent[string](path, "permission denied")
}

// unbuild leaves features out of the kernel, with their files.
func (f fixture) unbuild(paths ...string) {
	for _, path := range paths {
		f.facts.Settings[path] = host.Fact[string]{Source: path, Reason: "no such file", Missing: true}
	}
}

// boot replaces the command line of the running kernel.
func (f fixture) boot(commandLine string) {
	f.facts.Kernel.CommandLine = host.Known(commandLine, "/proc/cmdline")
}

// eachCPU changes the listed CPUs.
func (f fixture) eachCPU(change func(*host.CPU), ids ...int) {
	for _, id := range ids {
		change(&f.facts.CPUs.List[id])
	}
}

func absent[T any](source string) host.Fact[T] { return host.Absent[T](source, "no such file") }

func known[T any](value T) host.Fact[T] { return host.Known(value, "test") }

func list(text string) cpus.Set {
	set, err := cpus.Parse(text)
	if err != nil {
		panic(err)
	}
	return set
}

const soundCommandLine = "BOOT_IMAGE=/vmlinuz root=/dev/sda1 isolcpus=managed_irq,domain,2-3,6-7 nohz_full=2-3,6-7 rcu_nocbs=2-3,6-7 " +
	"irqaffinity=0-1,4-5 systemd.cpu_affinity=0,1,4,5 nmi_watchdog=0 nosoftlockup tsc=reliable mce=ignore_ce " +
	"hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=8"

func soundPlan() *plan.NodePlan {
	zero, one := 0, 1
	return &plan.NodePlan{
		Profile: "trading", Architecture: "amd64", Vendor: "Intel",
		CPUs: plan.CPUPlan{
			Housekeeping: list("0-1,4-5"), Isolated: list("2-3,6-7"),
			SMT: v1alpha1.SMTKept, Isolation: v1alpha1.IsolationStatic, Tick: v1alpha1.TickStopped,
		},
		Kernel: plan.KernelPlan{Type: v1alpha1.KernelDefault, PageSize: v1alpha1.PageSize4Ki},
		KernelArguments: arguments("isolcpus=domain,managed_irq,2,3,6,7", "nohz_full=2-3,6-7", "rcu_nocbs=2-3,6-7",
			"irqaffinity=0-1,4-5", "systemd.cpu_affinity=0-1,4-5", "nmi_watchdog=0", "nosoftlockup", "tsc=reliable", "mce=ignore_ce",
			"hugepagesz=1G", "hugepages=2", "hugepagesz=2M", "hugepages=8"),
		Hugepages: []plan.HugepagePlan{
			{Size: "1Gi", SizeKibibytes: 1 << 20, Count: 2, Method: plan.ByKernelArgument},
			{Size: "2Mi", SizeKibibytes: 2 << 10, Count: 8, NUMANode: &one},
		},
		Interrupts: plan.InterruptPlan{
			Placement: v1alpha1.InterruptsHousekeeping, DefaultAffinity: list("0-1,4-5"),
			Balancer: v1alpha1.BalancerRestricted, Banned: list("2-3,6-7"),
		},
		Power: plan.PowerPlan{
			IdleStates: v1alpha1.IdleShallowByQoS, FrequencyDriver: v1alpha1.FrequencyDriverActive,
			Governor: v1alpha1.GovernorPerformance, Turbo: v1alpha1.TurboDisabled,
		},
		Sysctls: settings("kernel.numa_balancing", "0", "kernel.sched_rt_runtime_us", "-1", "kernel.timer_migration", "1",
			"net.core.busy_poll", "50", "net.core.netdev_budget", "50", "vm.dirty_ratio", "10", "vm.compaction_proactiveness", "0", "vm.stat_interval", "10"),
		Sysfs:         settings(settingTHP, "never", settingKSM, "2", settingWorkqueue, "33", "/sys/module/test/parameters/quiet", "Y"),
		KernelThreads: []plan.KernelThreadPlan{{Name: "ksoftirqd", Priority: 11}, {Name: "ktimers", Priority: 11}, {Name: "rcuc", Priority: 11}},
		Kubelet: plan.KubeletPlan{
			CPUManagerPolicy: "static", CPUManagerPolicyOptions: map[string]string{"full-pcpus-only": "true"},
			TopologyManagerPolicy: "single-numa-node", TopologyManagerScope: "pod",
			MemoryManagerPolicy: "Static", ReservedSystemCPUs: "0-1,4-5",
			ReservedMemory: []plan.MemoryReservation{{NUMANode: 0, Limits: map[string]string{"memory": "1100Mi"}}},
		},
		Network:      plan.NetworkPlan{Queues: 2},
		StopServices: settings("fwupd-refresh.timer", "", "bluetooth.service", ""),
		BypassNICs:   []plan.NICPlan{{PCIAddress: "0000:3b:00.0", NUMANode: &zero}},
		Verification: plan.VerificationPlan{
			MultipleNUMANodes: true, NUMANodes: []plan.NUMANodePlan{{ID: 0, CPUs: list("0-3")}, {ID: 1, CPUs: list("4-7")}},
		},
	}
}

func arguments(texts ...string) []plan.Argument {
	list := make([]plan.Argument, 0, len(texts))
	for _, text := range texts {
		list = append(list, plan.Argument{Text: text})
	}
	return list
}

func settings(pairs ...string) []plan.Setting {
	var list []plan.Setting
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, plan.Setting{Name: pairs[i], Value: pairs[i+1]})
	}
	return list
}

func soundFacts() *host.Facts {
	facts := &host.Facts{
		Kernel: host.Kernel{RealTime: known(false), PageSizeBytes: known(int64(4096))},
		Processor: host.Processor{
			Hypervisor: known(""), Flags: known([]string{"fpu", "constant_tsc", "nonstop_tsc"}),
		},
		CPUs: host.CPUs{
			Online: known(list("0-7")), Present: known(list("0-7")), Possible: known(list("0-7")),
			Isolated: known(list("2-3,6-7")), NoHzFull: known(list("2-3,6-7")),
		},
		NUMANodes: []host.NUMANode{
			{ID: 0, CPUs: known(list("0-3")), Hugepages: pools(1, 0), ForeignAllocations: known(uint64(5))},
			{ID: 1, CPUs: known(list("4-7")), Hugepages: pools(1, 8), ForeignAllocations: known(uint64(5))},
		},
		Hugepages: pools(2, 8),
		Processes: known([]host.Process{
			{PID: 400, Name: "tuned"},
			{PID: 700, Name: "irqbalance", Environment: map[string]string{"IRQBALANCE_BANNED_CPULIST": "2-3,6-7"}},
		}),
		NICs: []host.NIC{soundNIC()},
		Kubelet: host.Kubelet{
			Config: known("kind: KubeletConfiguration\ncpuManagerPolicy: static\ncpuManagerPolicyOptions: {full-pcpus-only: \"true\"}\n" +
				"reservedSystemCPUs: 0,1,4,5\ntopologyManagerPolicy: single-numa-node\ntopologyManagerScope: pod\n" +
				"memoryManagerPolicy: Static\nreservedMemory: [{numaNode: 0, limits: {memory: 1153433600}}]\n"),
			CPUManagerState:    known(`{"policyName":"static","defaultCpuSet":"0-1,4-7","entries":{"` + enginePod + `":{"engine":"2-3"}},"checksum":1}`),
			MemoryManagerState: known(`{"policyName":"Static","machineState":{},"checksum":2}`),
			PodGroups: known([]host.PodGroup{
				{Pod: enginePod, CPUs: known(list("2-3")), Quota: known("max 100000"), PodQuota: known("max 100000")},
				{Pod: enginePod, CPUs: known(list("0-1,4-7")), Quota: known("50000 100000"), PodQuota: known("max 100000")},
			}),
		},
		CPUThreads: known(soundThreads()),
		Tasks:      known(soundTasks()), TaskScope: list("0-7"), UptimeSeconds: known(1060.0),
		Traffic:       host.Traffic{BacklogDrops: known(uint64(2)), DatagramDrops: known(uint64(9))},
		UncoreDomains: known([]host.UncoreDomain{{Name: "uncore00", Minimum: known(int64(2400000)), Maximum: known(int64(2400000))}}),
		Units: map[string]host.Unit{
			"fwupd-refresh.timer": {Installed: known(true), Masked: known(true), Running: absent[bool]("fwupd-refresh.timer")},
			"bluetooth.service":   {Installed: known(false), Masked: known(false), Running: known(false)},
		},
		Settings: soundSettings(),
	}
	for id := range 8 {
		facts.CPUs.List = append(facts.CPUs.List, soundCPU(id))
	}
	facts.Interrupts = soundInterrupts()
	facts.Softirqs = host.Softirqs{Columns: []int{0, 1, 2, 3, 4, 5, 6, 7}, Lines: known([]host.InterruptLine{
		{Name: "NET_RX", Counts: []uint64{9, 9, 1, 1, 9, 9, 1, 1}},
		{Name: "TIMER", Counts: []uint64{9, 9, 1, 1, 9, 9, 1, 1}},
	})}
	return facts
}

func soundInterrupts() host.Interrupts {
	return host.Interrupts{
		Columns: []int{0, 1, 2, 3, 4, 5, 6, 7},
		Lines: known([]host.InterruptLine{
			{Name: "8", Counts: []uint64{1, 0, 0, 0, 0, 0, 0, 0}},
			{Name: "142", Counts: []uint64{70, 0, 3, 0, 0, 0, 0, 0}},
			{Name: "NMI", Counts: []uint64{1, 1, 1, 1, 1, 1, 1, 1}},
			{Name: "LOC", Counts: []uint64{5, 5, 5, 5, 5, 5, 5, 5}},
		}),
		DefaultAffinity: known(list("0-1,4-5")),
		Routes: []host.InterruptRoute{
			{Number: 8, Affinity: known(list("0-7")), EffectiveAffinity: known(list("0")), Actions: []string{"rtc0"}},
			// Interrupt 9 has no handler: it is delivered nowhere, whatever its file says.
			{Number: 9, Affinity: known(list("0-7")), EffectiveAffinity: known(list("2"))},
			{Number: 142, Affinity: known(list("0-1")), EffectiveAffinity: known(list("1")), Actions: []string{"sfc-ens2f0-3"}},
		},
	}
}

func pools(gigantic, huge int64) []host.HugepagePool {
	return []host.HugepagePool{
		{SizeKibibytes: 2 << 10, Total: known(huge), Free: known(huge), Surplus: known(int64(0))},
		{SizeKibibytes: 1 << 20, Total: known(gigantic), Free: known(gigantic), Surplus: known(int64(0))},
	}
}

func soundCPU(id int) host.CPU {
	return host.CPU{
		ID: id, Online: known(true), Siblings: known(cpus.Of(id&^1, id|1)),
		IdleStates: []host.IdleState{idleState("POLL", 0), idleState("C1", 2), idleState("C6", 133)},
		Frequency: host.Frequency{
			Driver: known("intel_pstate"), Governor: known("performance"),
			ScalingMaximum: known(int64(3000000)), HardwareMaximum: known(int64(3000000)), EnergyPerformancePreference: known("performance"),
		},
		CoreThrottles: known(uint64(1)), PackageThrottles: known(uint64(1)),
		Caches: []host.Cache{{Level: known(2), SharedCPUs: known(list("0-7"))}, {Level: known(3), SharedCPUs: known(cpus.Of(id&^1, id|1))}},
	}
}

func idleState(name string, latency int64) host.IdleState {
	return host.IdleState{Name: known(name), LatencyMicros: known(latency), Disabled: known(false), Usage: known(uint64(5))}
}

func soundNIC() host.NIC {
	return host.NIC{
		PCIAddress: "0000:3b:00.0", Name: known("ens2f0"), NUMANode: known(0), LocalCPUs: known(list("0-3")),
		PhysicalFunction: host.Absent[string]("physfn", "it is a physical function"),
		LinkSpeed:        known("16.0 GT/s PCIe"), MaximumLinkSpeed: known("16.0 GT/s PCIe"), LinkWidth: known(8), MaximumLinkWidth: known(8),
		PortLinkSpeed: known("16.0 GT/s PCIe"), PortLinkWidth: known(16),
		Interrupts:      []int{142},
		ReceiveSteering: []host.Fact[cpus.Set]{known(list("")), known(list("0-1"))},
		LinkPowerStates: known([]string{}),
		Drops:           map[string]host.Fact[uint64]{"rx_missed_errors": known(uint64(4)), "tx_fifo_errors": known(uint64(0))},
	}
}

const transparentSize = transparentFolder + "/hugepages-2048kB/"

func soundSettings() map[string]host.Fact[string] {
	values := map[string]string{
		settingInitStatus:                       "Name:\tsystemd\nCpus_allowed:\t33\nCpus_allowed_list:\t0-1,4-5\n",
		settingSMTActive:                        "1",
		settingNMIWatchdog:                      "0",
		settingSoftWatchdog:                     "0",
		settingIgnoreCE:                         "1",
		settingTHP:                              "always madvise [never]",
		settingTHPShared:                        "always within_size advise [never] deny force",
		transparentSize + "enabled":             "always [inherit] madvise never",
		transparentSize + "shmem_enabled":       "always [inherit] within_size advise never",
		settingKSM:                              "2",
		settingSwaps:                            "Filename\tType\tSize\tUsed\tPriority",
		settingClocksource:                      "tsc",
		settingIntelStatus:                      "active",
		settingNoTurbo:                          "1",
		settingMaximumPercent:                   "100",
		settingLatencyLimit:                     "2",
		settingWorkqueue:                        "33",
		settingWriteback:                        "ff",
		settingTracer:                           "nop",
		settingEvents:                           "",
		settingStackTracer:                      "0",
		settingExpedited:                        "0",
		settingTainted:                          "0",
		settingZoneReclaim:                      "0",
		settingSteeringMask:                     "0",
		settingFlowEntries:                      "0",
		settingPlatformProfile:                  "performance",
		settingIdleDriver:                       "intel_idle",
		settingASPM:                             "[default] performance powersave powersupersave",
		settingClocksources:                     "tsc hpet acpi_pm",
		settingKSMShared:                        "0",
		workqueueFolder + "nvme-wq/cpumask":     "ff",
		"/proc/sys/vm/dirty_ratio":              "10",
		"/proc/sys/vm/swappiness":               "60",
		"/proc/sys/kernel/numa_balancing":       "0",
		"/proc/sys/kernel/sched_rt_runtime_us":  "-1",
		"/proc/sys/kernel/timer_migration":      "1",
		"/proc/sys/net/core/busy_poll":          "50",
		"/proc/sys/net/core/netdev_budget":      "50",
		"/proc/sys/vm/compaction_proactiveness": "0",
		"/proc/sys/vm/stat_interval":            "10",
		"/sys/module/test/parameters/quiet":     "Y",
	}
	facts := make(map[string]host.Fact[string], len(values))
	for path, value := range values {
		facts[path] = host.Known(value, path)
	}
	for id := range 8 {
		path := fmt.Sprintf("/sys/devices/system/cpu/cpu%d/power/pm_qos_resume_latency_us", id)
		facts[path] = host.Known("0", path)
	}
	return facts
}

// sound is a host that satisfies its plan, read twice with nothing in between.
func sound() fixture {
	f := fixture{plan: soundPlan(), facts: soundFacts(), before: soundFacts()}
	f.before.UptimeSeconds = known(1000.0)
	f.boot(soundCommandLine)
	f.pods = soundPods()
	return f
}
