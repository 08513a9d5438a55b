// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package host reads one Linux host below a root path ("/", "/host", an unpacked snapshot, a test
// tree) into Facts. It reads files and interprets their notation; it judges nothing. A fact that the
// host does not give stays absent, with the reason.
package host

import (
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Fact is one value read from a host. The zero Fact is absent.
type Fact[T any] struct {
	// Value is meaningful only when Known.
	Value T `json:"value,omitzero"`
	// Known reports whether the host gave the value.
	Known bool `json:"known"`
	// Source is the file that was read, as an absolute path of the host, such as
	// /sys/devices/system/cpu/isolated.
	Source string `json:"source,omitempty"`
	// Reason says why the value is absent: "no such file", "permission denied", "not a number: …".
	Reason string `json:"reason,omitempty"`
	// Missing reports that the value is absent because the host has no such file: its kernel was built without what the
	// file is about. It is told of settings only, and never where a copy of a host may lack the file.
	Missing bool `json:"missing,omitempty"`
}

// Get returns the value and whether the host gave it.
func (f Fact[T]) Get() (T, bool) { return f.Value, f.Known }

// Pointer returns a pointer to a copy of the value, nil when the host did not give it: for values in which nil stands
// for what is not known.
func (f Fact[T]) Pointer() *T {
	if !f.Known {
		return nil
	}
	return &f.Value
}

// Known returns a fact that was read from source.
func Known[T any](value T, source string) Fact[T] {
	return Fact[T]{Value: value, Known: true, Source: source}
}

// Absent returns a fact that source does not give, for the reason.
func Absent[T any](source, reason string) Fact[T] {
	return Fact[T]{Source: source, Reason: reason}
}

// Facts are what one host says about itself at one moment. They are not to be changed in place: those of one Host share
// what has not changed between two readings.
type Facts struct {
	// Name is the host's name, from /proc/sys/kernel/hostname; commands may override it.
	Name Fact[string]
	// Architecture is the machine in Go's notation (amd64, arm64), from /proc/sys/kernel/arch or, in
	// older kernels and snapshots, from the shape of /proc/cpuinfo.
	Architecture Fact[string]
	// Kernel is the running kernel.
	Kernel Kernel
	// Processor describes the processors; hosts with different processors in one machine do not exist.
	Processor Processor
	// Firmware is what DMI says.
	Firmware Firmware
	// CPUs are the logical CPUs.
	CPUs CPUs
	// NUMANodes are the NUMA nodes in ascending order; empty when the kernel was built without NUMA.
	NUMANodes []NUMANode
	// Hugepages are the pools of the whole host in ascending order of size.
	Hugepages []HugepagePool
	// MemoryTotalBytes is MemTotal of /proc/meminfo.
	MemoryTotalBytes Fact[int64]
	// Interrupts are the counters of /proc/interrupts.
	Interrupts Interrupts
	// Softirqs are the counters of /proc/softirqs.
	Softirqs Softirqs
	// RunQueues are what the scheduler has counted on each CPU, from /proc/schedstat.
	RunQueues Fact[map[int]RunQueue]
	// NICs are the network devices on PCI, in ascending order of PCI address.
	NICs []NIC
	// Interfaces are those of the host's network namespace that are not the interface of one of NICs, such as bonds, VLANs and the host's
	// ends of pods' networks, in ascending order of name.
	Interfaces []Interface
	// Processes are the processes of interest that run (by /proc/*/comm): irqbalance, tuned, stalld, the
	// control plane of Onload. Known
	// and empty when none of them runs; absent when /proc shows no processes.
	Processes Fact[[]Process]
	// Tasks are the threads that could disturb the CPUs of TaskScope: those of the kernel that may be moved, and
	// those of programs that last ran on one of these CPUs. Absent when nobody asked for them (Request.Tasks).
	Tasks Fact[[]Task]
	// CPUThreads are the threads of CPUThreadNames, which the kernel has for each CPU, whatever the scope; known when Tasks is.
	CPUThreads Fact[[]CPUThread]
	// TaskScope are the CPUs whose threads Tasks lists.
	TaskScope cpus.Set
	// LatencyHolders are the processes that hold /dev/cpu_dma_latency open. Absent when nobody asked for them
	// (Request.LatencyHolders), and when the limit itself could be read.
	LatencyHolders Fact[[]Process]
	// UptimeSeconds is the time since boot, from /proc/uptime: the distance of two readings in time.
	UptimeSeconds Fact[float64]
	// Traffic counts what the network stack of the host lost.
	Traffic Traffic
	// UncoreDomains are the parts of the processors whose frequency is set apart from that of the cores, in
	// ascending order of their names. Absent when the kernel has no driver for them.
	UncoreDomains Fact[[]UncoreDomain]
	// Units are systemd units by name: those of Request.Units and of watchedUnits.
	Units map[string]Unit
	// Kubelet is the state of the kubelet on this host.
	Kubelet Kubelet
	// ManagementCPUs are the CPUs on which CRI-O keeps the pods of the platform, "" for all of them; absent where it does not
	// tell these from others, as anywhere but in a cluster of OpenShift that was installed with CPU partitioning.
	ManagementCPUs Fact[string]
	// PlatformPods reports whether the kubelet tells these pods from others (PlatformPodsFile).
	PlatformPods Fact[bool]
	// Bypass is what the host says about kernel-bypass stacks.
	Bypass Bypass
	// Software decides how a plan is written on the host. It is read by ReadInstallation alone.
	Software Software
	// Settings are small files of /proc/sys, /sys and /etc, by absolute path; see SettingPaths for which.
	// Use Setting to look one up.
	Settings map[string]Fact[string]
}

// Setting returns the content of a small file, without surrounding white space. A path that was not
// read is absent.
func (f *Facts) Setting(path string) Fact[string] {
	if fact, ok := f.Settings[path]; ok {
		return fact
	}
	return Absent[string](path, "not read")
}

// Kernel is the running kernel.
type Kernel struct {
	// Release is uname -r, from /proc/sys/kernel/osrelease or /proc/version.
	Release Fact[string]
	// RealTime reports whether the kernel is PREEMPT_RT: /sys/kernel/realtime is 1, or, where that file is
	// missing, /proc/version names PREEMPT_RT (or PREEMPT RT).
	RealTime Fact[bool]
	// CommandLine is /proc/cmdline in one line.
	CommandLine Fact[string]
	// PageSizeBytes is the base page size, from KernelPageSize of /proc/self/smaps or the hugepage sizes.
	PageSizeBytes Fact[int64]
}

// Processor describes the processors.
type Processor struct {
	// Vendor is "Intel", "AMD", "ARM" or the processor's own word (vendor_id or CPU implementer).
	Vendor Fact[string]
	// Model is the model name.
	Model Fact[string]
	// Family and ModelNumber are the numbers by which x86 processors tell their generation (CPUID); absent elsewhere.
	Family, ModelNumber Fact[int]
	// Microcode is the revision of the loaded microcode.
	Microcode Fact[string]
	// Flags are the feature flags of the first processor ("constant_tsc", "hypervisor", …).
	Flags Fact[[]string]
	// Hypervisor names the virtual machine monitor; "" on hardware; absent where the host does not report.
	Hypervisor Fact[string]
}

// Firmware is what DMI says.
type Firmware struct {
	Vendor      Fact[string]
	Product     Fact[string]
	BIOSVersion Fact[string]
}

// CPUs are the logical CPUs of a host.
type CPUs struct {
	Online   Fact[cpus.Set]
	Offline  Fact[cpus.Set]
	Present  Fact[cpus.Set]
	Possible Fact[cpus.Set]
	// Isolated is /sys/devices/system/cpu/isolated (isolcpus=domain).
	Isolated Fact[cpus.Set]
	// NoHzFull is /sys/devices/system/cpu/nohz_full.
	NoHzFull Fact[cpus.Set]
	// Efficiency are the CPUs of the slower cores of a hybrid processor; the empty set where all cores are alike. It is
	// absent where the kernel tells no difference.
	Efficiency Fact[cpus.Set]
	// List are the present CPUs in ascending order.
	List []CPU
}

// CPU is one logical CPU.
type CPU struct {
	ID int
	// Online reports whether the CPU runs. The boot CPU may have no "online" file; it is online.
	Online Fact[bool]
	// Package, Die and Core are the identifiers in topology/; negative ones are absent.
	Package, Die, Core Fact[int]
	// Siblings are the CPUs of the same core, itself included. Offline CPUs list none.
	Siblings Fact[cpus.Set]
	// PackageCPUs are the online CPUs of the same package, itself included: package_cpus_list, or
	// core_siblings_list on older kernels. Where Package is absent (-1) or repeats, as on some arm64 boards
	// and machines with books of sockets, only this tells packages apart.
	PackageCPUs Fact[cpus.Set]
	// Caches in the order of their index folders.
	Caches []Cache
	// IdleStates in the order of their folders.
	IdleStates []IdleState
	// Frequency is what cpufreq says about the CPU.
	Frequency Frequency
	// CoreThrottles and PackageThrottles count how often heat slowed the core or the package down; they are
	// numbers in memory (arch/x86: drivers/thermal/intel/therm_throt.c).
	CoreThrottles, PackageThrottles Fact[uint64]
}

// Cache is one cache as one CPU sees it.
type Cache struct {
	Level      Fact[int]
	Type       Fact[string]
	SharedCPUs Fact[cpus.Set]
}

// IdleState is one idle state of one CPU.
type IdleState struct {
	Name          Fact[string]
	LatencyMicros Fact[int64]
	Disabled      Fact[bool]
	Usage         Fact[uint64]
}

// Frequency is what cpufreq says about one CPU, in kHz. It never comes from scaling_cur_freq or
// cpuinfo_cur_freq, whose reading makes the CPU run code.
type Frequency struct {
	Driver, Governor                 Fact[string]
	HardwareMinimum, HardwareMaximum Fact[int64]
	ScalingMaximum                   Fact[int64]
	// TableMaximum is the highest frequency that a driver with a table of them can be told (scaling_available_frequencies):
	// acpi-cpufreq reaches HardwareMaximum by turbo only. It is read where ScalingMaximum is below HardwareMaximum.
	TableMaximum                Fact[int64]
	EnergyPerformancePreference Fact[string]
}

// NUMANode is one NUMA node.
type NUMANode struct {
	ID int
	// CPUs are the online CPUs of the NUMA node; the empty set for memory-only nodes.
	CPUs Fact[cpus.Set]
	// Distances to the NUMA nodes in ascending order of their numbers.
	Distances Fact[[]int]
	// MemoryTotalBytes comes from the node's meminfo.
	MemoryTotalBytes Fact[int64]
	// Hugepages in ascending order of size.
	Hugepages []HugepagePool
	// ForeignAllocations is numa_foreign: pages that were meant for this node and had to come from another
	// (Documentation/admin-guide/numastat.rst).
	ForeignAllocations Fact[uint64]
}

// HasMemory reports whether the NUMA node has memory; one that does not say how much has some if it has pools of hugepages.
func (n *NUMANode) HasMemory() bool {
	if memory, ok := n.MemoryTotalBytes.Get(); ok {
		return memory > 0
	}
	return len(n.Hugepages) > 0
}

// HugepagePool is the pool of hugepages of one size.
type HugepagePool struct {
	SizeKibibytes        int64
	Total, Free, Surplus Fact[int64]
}

// Interrupts are the counters of /proc/interrupts and the routing of /proc/irq.
type Interrupts struct {
	// Columns are the CPUs of the counter columns.
	Columns []int
	// Lines in the order of the file. Absent when the file is missing.
	Lines Fact[[]InterruptLine]
	// DefaultAffinity is /proc/irq/default_smp_affinity.
	DefaultAffinity Fact[cpus.Set]
	// Routes are the folders of /proc/irq in ascending order.
	Routes []InterruptRoute
}

// InterruptLine is one line of /proc/interrupts.
type InterruptLine struct {
	// Name is the number of the IRQ or a name such as LOC.
	Name string
	// Counts are one per column; fewer for lines such as ERR, which count for the machine.
	Counts []uint64
	// Description is the rest of the line: controller, trigger and actions.
	Description string
}

// InterruptRoute is where one IRQ may be and is delivered.
type InterruptRoute struct {
	Number int
	// Affinity is smp_affinity_list: where the IRQ may be delivered.
	Affinity Fact[cpus.Set]
	// EffectiveAffinity is effective_affinity_list: where it is delivered.
	EffectiveAffinity Fact[cpus.Set]
	// Actions are the names of the handlers (subdirectories, or the description of /proc/interrupts).
	Actions []string
}

// Softirqs are the counters of /proc/softirqs.
type Softirqs struct {
	Columns []int
	Lines   Fact[[]InterruptLine]
}

// NIC is a network device on PCI.
type NIC struct {
	// PCIAddress such as 0000:3b:00.0.
	PCIAddress string
	// PCIeRoot is the root complex that the device hangs on, such as pci0000:3a: the first element of its path
	// below /sys/devices.
	PCIeRoot Fact[string]
	// Name of the interface; absent when no driver made one or /sys/class/net is missing.
	Name Fact[string]
	// Vendor and Device are PCI identifiers such as 0x8086.
	Vendor, Device Fact[string]
	// Driver is the name of the bound kernel driver.
	Driver Fact[string]
	// DriverVersion is that of the driver's module; absent when its source states none.
	DriverVersion Fact[string]
	// FirmwareVersion is fw_ver of its RDMA device; absent when it has none. What ethtool and devlink tell belongs to the network
	// namespace of the interface.
	FirmwareVersion Fact[string]
	// NUMANode of the device; absent with the reason "the firmware reports -1" when unknown.
	NUMANode Fact[int]
	// LocalCPUs is local_cpulist.
	LocalCPUs Fact[cpus.Set]
	// PhysicalFunction is the PCI address of the physical function; absent when this is one.
	PhysicalFunction Fact[string]
	// VirtualFunctions are the PCI addresses of the enabled virtual functions.
	VirtualFunctions []string
	// MaximumVirtualFunctions is sriov_totalvfs.
	MaximumVirtualFunctions Fact[int]
	// Carrier reports whether the link is up.
	Carrier Fact[bool]
	// SpeedMegabits is the link speed in Mbit/s; absent when the link is down.
	SpeedMegabits Fact[int64]
	// ReceiveQueues is the number of receive queues in use (real_num_rx_queues), the rx-N folders of the interface's
	// queues; absent without an interface.
	ReceiveQueues Fact[int]
	// LinkSpeed, LinkWidth, MaximumLinkSpeed and MaximumLinkWidth describe the PCIe link.
	LinkSpeed, MaximumLinkSpeed Fact[string]
	LinkWidth, MaximumLinkWidth Fact[int]
	// PortLinkSpeed and PortLinkWidth are the most that the other end of the link can do: the port of the root complex or
	// switch that the device is plugged into. They are "" and 0 where the device is on the root bus, as in virtual machines,
	// and absent for virtual functions.
	PortLinkSpeed Fact[string]
	PortLinkWidth Fact[int]
	// Interrupts are the numbers of its MSI vectors (msi_irqs).
	Interrupts []int
	// ReceiveSteering is rps_cpus of each receive queue of the interface, in their order.
	ReceiveSteering []Fact[cpus.Set]
	// LinkPowerStates are the power-saving states of the PCIe link (l0s_aspm, l1_aspm, …) that are switched on;
	// absent when the kernel offers none for the link.
	LinkPowerStates Fact[[]string]
	// Drops are counters of lost packets by name (rx_missed_errors, …), from statistics/; nil without an
	// interface.
	Drops map[string]Fact[uint64]
}

// Interface is a network interface that is not that of a NIC.
type Interface struct {
	Name string
	// ReceiveSteering is rps_cpus of each receive queue, in their order.
	ReceiveSteering []Fact[cpus.Set]
}

// Process is a running process.
type Process struct {
	PID  int
	Name string
	// Environment holds IRQBALANCE_BANNED_* variables of irqbalance; empty for others.
	Environment map[string]string
}

// Kubelet is the state of the kubelet on a host.
type Kubelet struct {
	// Config is the text of its KubeletConfiguration as the kubelet has it: that of File, or the merged text of File and
	// DropIns. It does not say what Flags say instead.
	Config Fact[string]
	// File is the text of its configuration file, as /etc/kubernetes/kubelet.conf or /var/lib/kubelet/config.yaml has it;
	// Source says which.
	File Fact[string]
	// Flags are those of the running kubelet that bear on its configuration, each as --name=value. Absent when no process
	// of a kubelet is to be seen.
	Flags Fact[[]string]
	// DropInFolder is the folder whose files the kubelet merges over File; "" when it runs without one.
	DropInFolder Fact[string]
	// DropIns are the files in that folder, in the order in which they are merged.
	DropIns Fact[[]KubeletDropIn]
	// CPUManagerState is /var/lib/kubelet/cpu_manager_state.
	CPUManagerState Fact[string]
	// MemoryManagerState is /var/lib/kubelet/memory_manager_state.
	MemoryManagerState Fact[string]
	// PodGroups are the containers of the pods to which CPUManagerState gives exclusive CPUs. Absent when the
	// state or the control groups cannot be read.
	PodGroups Fact[[]PodGroup]
}

// KubeletDropIn is a file that the kubelet merges over its configuration.
type KubeletDropIn struct {
	Path    string
	Content Fact[string]
}

// Task is one thread.
type Task struct {
	// PID is the process, TID the thread.
	PID, TID int
	// Name is the thread's own name (comm), never its command line.
	Name string
	// State is one letter: R runs or waits to run, S sleeps, Z has ended and waits for its parent (proc_pid_stat(5)).
	State string
	// LastCPU is the CPU on which it runs or ran last.
	LastCPU int
	// Kernel tells a thread of the kernel from one of a program.
	Kernel bool
	// AllowedCPUs and MemoryNodes are Cpus_allowed_list and Mems_allowed_list of its status.
	AllowedCPUs, MemoryNodes Fact[cpus.Set]
	// Group is the path of the process's control group, which tells whose it is (cgroup.Path); absent for threads of the
	// kernel. Seen from a control group namespace, it begins with /.. for what is outside of it.
	Group Fact[string]
	// VoluntarySwitches counts how often it gave its CPU up, InvoluntarySwitches how often it had to.
	VoluntarySwitches, InvoluntarySwitches Fact[uint64]
}

// CPUThread is a thread of the kernel that belongs to one CPU, such as rcuc/3.
type CPUThread struct {
	PID int
	// Name is the part before the number of the CPU.
	Name string
	CPU  int
	// Scheduling is how the scheduler treats it.
	Scheduling Fact[Scheduling]
}

// Scheduling policies (include/uapi/linux/sched.h, sched(7)).
const (
	PolicyFIFO     = 1
	PolicyDeadline = 6
)

// Scheduling is how the scheduler treats a thread.
type Scheduling struct {
	// Policy is the kernel's number of the policy.
	Policy int
	// Priority is the real-time priority from 1, the lowest, to 99; 0 under policies that have none.
	Priority int
}

// Traffic counts what the network stack of a host lost.
type Traffic struct {
	// BacklogDrops are packets that were dropped because the backlog of a CPU was full, added up over the CPUs
	// (/proc/net/softnet_stat, second column).
	BacklogDrops Fact[uint64]
	// DatagramDrops are UDP datagrams that were dropped because the buffer of a socket was full, in the network
	// namespace of the host (RcvbufErrors of /proc/1/net/snmp).
	DatagramDrops Fact[uint64]
}

// UncoreDomain is a part of a processor with a frequency of its own, such as the mesh. Frequencies are in kHz.
type UncoreDomain struct {
	Name             string
	Minimum, Maximum Fact[int64]
}

// Unit is what the files of a host say about a systemd unit.
type Unit struct {
	// Installed reports whether there is a file for the unit.
	Installed Fact[bool]
	// Masked reports whether the administrator has replaced it by a link to /dev/null, so that nothing starts it.
	Masked Fact[bool]
	// Running reports whether the unit has a control group, which services have while they run; absent for other
	// units, such as timers.
	Running Fact[bool]
}

// PodGroup is the control group of a container of a pod.
type PodGroup struct {
	// Pod is the UID of the pod.
	Pod string
	// CPUs is cpuset.cpus.effective, or cpuset.effective_cpus of version 1.
	CPUs Fact[cpus.Set]
	// Quota is cpu.max: "max 100000" or the microseconds of CPU time in each period; or cpu.cfs_quota_us of version 1: -1
	// or the microseconds.
	Quota Fact[string]
	// PodQuota is that of the pod as a whole.
	PodQuota Fact[string]
}
