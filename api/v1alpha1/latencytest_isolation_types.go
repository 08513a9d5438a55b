// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// LatencyIsolation is what the scheduler and the idle governor of the kernel counted on the measured CPUs, or on the CPU of an end of a
// measurement over the network. Of several CPUs and repetitions it is the CPU with the most.
type LatencyIsolation struct {
	// runQueue is for how long threads waited for a CPU.
	// +required
	RunQueue LatencyRunQueue `json:"runQueue"`

	// idleStates is which idle state a CPU entered, and how often.
	// +required
	IdleStates LatencyIdleStates `json:"idleStates"`

	// busy is for how much of the time a CPU was at work, that of the measurement included. When omitted, the measurement was made by a version of the
	// operator that did not ask.
	// +optional
	Busy *LatencyBusy `json:"busy,omitempty"`
}

// ServerCounts are what the kernel counted on the CPU of the server of a measurement over the network, from when the client came until it had measured.
type ServerCounts struct {
	// serverCPUs are the CPUs to which the server was kept. When omitted, it was kept to none, each side of a comparison has its own, or the measurement was
	// made by a version of the operator that did not ask.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ServerCPUs string `json:"serverCPUs,omitempty"`

	// serverCauses are what causes are of the client: what the kernel counted there, with the rate of each, in the same order, at
	// most 4. When omitted, nothing was counted, which serverCountedInterrupts None and serverIsolation tell from a CPU that was quiet, or there was no room.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=96
	// +listType=atomic
	// +optional
	ServerCauses []string `json:"serverCauses,omitempty"`

	// serverCountedInterrupts is All, Devices or None: which interrupts serverCauses can name. None also where the server could not count in a part of the
	// measurement. When omitted, the server was not asked, or each side of a comparison has its own.
	// +optional
	ServerCountedInterrupts CountedInterrupts `json:"serverCountedInterrupts,omitempty"`

	// serverIsolation is what the scheduler and the idle governor counted there; Unknown with the reason where the server has not counted. When omitted, they were
	// not asked, each side of a comparison has its own, or there was no room.
	// +optional
	ServerIsolation *LatencyIsolation `json:"serverIsolation,omitempty"`
}

// LatencyBusy is for how much of the time a CPU was at work, by /proc/stat: for programs, the kernel, interrupts, or what the hypervisor took.
type LatencyBusy struct {
	// state is Counted or Unknown.
	// +required
	State CountedState `json:"state"`

	// unknownReason says why the state is Unknown.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	UnknownReason string `json:"unknownReason,omitempty"`

	// cpu is the CPU that was at work most. When omitted, nobody knows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	CPU *int32 `json:"cpu,omitempty"`

	// percent of the time, over all repetitions. When omitted, nobody knows. A client that spins is at work all the time itself.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percent *int32 `json:"percent,omitempty"`
}

// CountedState says whether the kernel told what it has counted.
//
// +kubebuilder:validation:Enum=Counted;Unknown
type CountedState string

const (
	// StateCounted means that it did; a number that is then omitted is 0.
	StateCounted CountedState = "Counted"
	// StateUnknown means that it did not on one of the CPUs or in one of the repetitions at least.
	StateUnknown CountedState = "Unknown"
)

// LatencyManagementInterrupts is how often the firmware took a measured CPU away from the kernel (system management interrupt, SMI): by the perf event
// msr/smi/ of the kernel (arch/x86/events/msr.c) or by MSR 0x34, MSR_SMI_COUNT, of processors of Intel. Repetitions add up. Of several CPUs it is the
// one with the most, since such an interrupt stops them all.
type LatencyManagementInterrupts struct {
	// state is Counted or Unknown. What one CPU did not tell in one repetition makes it Unknown, unless another one has counted some: these are then
	// the least that there were. A virtual machine that counted none does not know.
	// +required
	State CountedState `json:"state"`

	// unknownReason says why the state is Unknown.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	UnknownReason string `json:"unknownReason,omitempty"`

	// cpu is the CPU that was interrupted most often. When omitted, none was, or nobody knows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	CPU *int32 `json:"cpu,omitempty"`

	// count is how often it was. When omitted, nobody knows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Count *int64 `json:"count,omitempty"`
}

// LatencyRunQueue is for how long threads waited in the run queue of a CPU, by /proc/schedstat.
type LatencyRunQueue struct {
	// state is Counted or Unknown.
	// +required
	State CountedState `json:"state"`

	// unknownReason says why the state is Unknown.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	UnknownReason string `json:"unknownReason,omitempty"`

	// cpu is the CPU on which threads waited longest. When omitted, none has waited, or nobody knows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	CPU *int32 `json:"cpu,omitempty"`

	// waitedNanoseconds is for how long threads waited there, all of them together. When omitted, none has waited, or nobody knows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	WaitedNanoseconds int64 `json:"waitedNanoseconds,omitempty"`

	// countedNanoseconds is over which time that was counted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	CountedNanoseconds int64 `json:"countedNanoseconds,omitempty"`
}

// LatencyIdleStates is the idle state with the longest latency that a CPU entered, by cpuidle in sysfs.
type LatencyIdleStates struct {
	// state is Counted or Unknown.
	// +required
	State CountedState `json:"state"`

	// unknownReason says why the state is Unknown.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	UnknownReason string `json:"unknownReason,omitempty"`

	// cpu is the CPU that entered it; of several, the one that did so most often. When omitted, none has entered any, or nobody knows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	// +optional
	CPU *int32 `json:"cpu,omitempty"`

	// name is the kernel's name of the idle state, such as C6.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Name string `json:"name,omitempty"`

	// latencyMicroseconds is how long the CPU takes to leave it at most. When omitted, it is 0, or the kernel does not say it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	LatencyMicroseconds int64 `json:"latencyMicroseconds,omitempty"`

	// entries is how often the CPU entered it. When omitted, none has entered any, or nobody knows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	Entries int64 `json:"entries,omitempty"`

	// countedNanoseconds is over which time that was counted.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	// +optional
	CountedNanoseconds int64 `json:"countedNanoseconds,omitempty"`
}
