// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// PowerPreset names a documented table of power settings.
//
// +kubebuilder:validation:Enum=MaximumDeterminism;HighPerformance;LowLatency;PerPod;Kept
type PowerPreset string

const (
	// PowerMaximumDeterminism never lets an idle CPU sleep: it polls. Highest power draw.
	PowerMaximumDeterminism PowerPreset = "MaximumDeterminism"
	// PowerHighPerformance limits idle states to C1 on the kernel command line.
	PowerHighPerformance PowerPreset = "HighPerformance"
	// PowerLowLatency limits idle states through PM QoS while the node runs.
	PowerLowLatency PowerPreset = "LowLatency"
	// PowerPerPod leaves frequency and idle states to pod annotations.
	PowerPerPod PowerPreset = "PerPod"
	// PowerKept changes nothing.
	PowerKept PowerPreset = "Kept"
)

// IdleStates says how deep an idle CPU may sleep.
//
// +kubebuilder:validation:Enum=Polling;ShallowByKernel;ShallowByQoS;Kept
type IdleStates string

const (
	// IdlePolling boots with idle=poll: an idle CPU spins.
	IdlePolling IdleStates = "Polling"
	// IdleShallowByKernel boots with processor.max_cstate=1 and, on Intel, intel_idle.max_cstate=0.
	IdleShallowByKernel IdleStates = "ShallowByKernel"
	// IdleShallowByQoS holds a PM QoS latency request while the node runs.
	IdleShallowByQoS IdleStates = "ShallowByQoS"
	// IdleKept leaves idle states alone.
	IdleKept IdleStates = "Kept"
)

// FrequencyDriverMode is the mode of intel_pstate or amd_pstate.
//
// +kubebuilder:validation:Enum=Recommended;Active;Passive;Guided;Disabled;Kept
type FrequencyDriverMode string

const (
	// FrequencyDriverRecommended is the mode with the least jitter on the node's processor: on Intel Disabled up to Cooper
	// Lake, whose active mode adds jitter, and Active since Ice Lake; Guided on AMD.
	FrequencyDriverRecommended FrequencyDriverMode = "Recommended"
	// FrequencyDriverActive lets the processor choose within the limits given (HWP, CPPC).
	FrequencyDriverActive FrequencyDriverMode = "Active"
	// FrequencyDriverPassive lets a generic governor choose.
	FrequencyDriverPassive FrequencyDriverMode = "Passive"
	// FrequencyDriverGuided lets the governor set limits and the processor choose; AMD only.
	FrequencyDriverGuided FrequencyDriverMode = "Guided"
	// FrequencyDriverDisabled uses the acpi-cpufreq driver or none.
	FrequencyDriverDisabled FrequencyDriverMode = "Disabled"
	// FrequencyDriverKept leaves the kernel's own choice.
	FrequencyDriverKept FrequencyDriverMode = "Kept"
)

// FrequencyGovernor is the cpufreq governor.
//
// +kubebuilder:validation:Enum=Performance;Kept
type FrequencyGovernor string

const (
	// GovernorPerformance asks for the highest frequency, with energy hints to match.
	GovernorPerformance FrequencyGovernor = "Performance"
	// GovernorKept leaves the governor alone.
	GovernorKept FrequencyGovernor = "Kept"
)

// TurboMode says whether CPUs may run above their base frequency.
//
// +kubebuilder:validation:Enum=Enabled;Disabled;Kept
type TurboMode string

const (
	// TurboEnabled allows boost frequencies.
	TurboEnabled TurboMode = "Enabled"
	// TurboDisabled forbids them: lower but steadier frequency.
	TurboDisabled TurboMode = "Disabled"
	// TurboKept leaves what firmware and kernel chose.
	TurboKept TurboMode = "Kept"
)

// PowerSpec sets frequency and idle-state behaviour.
//
// +kubebuilder:validation:XValidation:rule="!has(self.preset) || self.preset != 'PerPod' || !has(self.idleStates) || self.idleStates == 'Kept'",message="spec.power.idleStates cannot be set with spec.power.preset PerPod: pods choose their idle states themselves."
// +kubebuilder:validation:XValidation:rule="has(self.isolatedMaximumFrequencyKilohertz) == has(self.housekeepingMaximumFrequencyKilohertz)",message="spec.power.isolatedMaximumFrequencyKilohertz and spec.power.housekeepingMaximumFrequencyKilohertz must be set together."
type PowerSpec struct {
	// preset is MaximumDeterminism, HighPerformance, LowLatency, PerPod or Kept; a setting below overrides
	// what the preset says. A dash stands for Kept.
	//
	//	preset             | idleStates      | frequencyDriver | governor    | turbo
	//	MaximumDeterminism | Polling         | Recommended     | Performance | -
	//	HighPerformance    | ShallowByKernel | Recommended     | Performance | -
	//	LowLatency         | ShallowByQoS    | Recommended     | Performance | -
	//	PerPod             | -               | Passive         | -           | -
	//	Kept               | -               | -               | -           | -
	//
	// When omitted, this means the user has no opinion and the operator chooses a default, which is
	// subject to change over time. The current default is LowLatency.
	// +optional
	Preset PowerPreset `json:"preset,omitempty"`

	// idleStates is Polling, ShallowByKernel, ShallowByQoS or Kept: how deep an idle CPU may sleep. When
	// omitted, the preset decides.
	// +optional
	IdleStates IdleStates `json:"idleStates,omitempty"`

	// frequencyDriver is Recommended, Active, Passive, Guided, Disabled or Kept: the mode of intel_pstate or amd_pstate.
	// Recommended is what adds the least jitter on the node's processor: on Intel Disabled up to Cooper Lake and Active
	// since Ice Lake, on AMD Guided. Guided exists on AMD only. It has no effect on arm64. When omitted, the preset decides.
	// +optional
	FrequencyDriver FrequencyDriverMode `json:"frequencyDriver,omitempty"`

	// governor is Performance or Kept. Performance also sets the energy hints of the processor to
	// performance. When omitted, the preset decides.
	// +optional
	Governor FrequencyGovernor `json:"governor,omitempty"`

	// turbo is Enabled, Disabled or Kept. When omitted, the preset decides.
	// +optional
	Turbo TurboMode `json:"turbo,omitempty"`

	// isolatedMaximumFrequencyKilohertz caps the frequency of isolated CPUs, in kHz as in sysfs, 100000 to
	// 10000000. A value outside the range of a node's hardware is a finding. When omitted, there is no cap.
	// +kubebuilder:validation:Minimum=100000
	// +kubebuilder:validation:Maximum=10000000
	// +optional
	IsolatedMaximumFrequencyKilohertz int32 `json:"isolatedMaximumFrequencyKilohertz,omitempty"`

	// housekeepingMaximumFrequencyKilohertz caps the frequency of housekeeping CPUs, in kHz as in sysfs,
	// 100000 to 10000000. A value outside the range of a node's hardware is a finding. When omitted, there
	// is no cap.
	// +kubebuilder:validation:Minimum=100000
	// +kubebuilder:validation:Maximum=10000000
	// +optional
	HousekeepingMaximumFrequencyKilohertz int32 `json:"housekeepingMaximumFrequencyKilohertz,omitempty"`
}

// KernelType selects the kernel flavour.
//
// +kubebuilder:validation:Enum=Default;RealTime
type KernelType string

const (
	// KernelDefault is the distribution's ordinary kernel.
	KernelDefault KernelType = "Default"
	// KernelRealTime is the PREEMPT_RT kernel.
	KernelRealTime KernelType = "RealTime"
)

// MachineChecks says what is done about machine-check exceptions.
//
// +kubebuilder:validation:Enum=Kept;CorrectedErrorsIgnored;Off
type MachineChecks string

const (
	// MachineChecksKept leaves polling and reporting of corrected errors on.
	MachineChecksKept MachineChecks = "Kept"
	// MachineChecksCorrectedErrorsIgnored stops polling for corrected errors; fatal errors still stop the machine.
	MachineChecksCorrectedErrorsIgnored MachineChecks = "CorrectedErrorsIgnored"
	// MachineChecksOff switches machine-check handling off altogether; the node may compute wrong results unnoticed.
	MachineChecksOff MachineChecks = "Off"
)

// IOMMUMode says how the IOMMU is used.
//
// +kubebuilder:validation:Enum=Passthrough;Translated;Disabled;Kept
type IOMMUMode string

const (
	// IOMMUPassthrough enables the IOMMU and maps host DMA one to one.
	IOMMUPassthrough IOMMUMode = "Passthrough"
	// IOMMUTranslated enables the IOMMU and translates all DMA.
	IOMMUTranslated IOMMUMode = "Translated"
	// IOMMUDisabled switches the IOMMU off; VFIO and SR-IOV in virtual machines then do not work.
	IOMMUDisabled IOMMUMode = "Disabled"
	// IOMMUKept leaves the kernel's own choice.
	IOMMUKept IOMMUMode = "Kept"
)

// ClocksourceMode says how the time-stamp counter is treated.
//
// +kubebuilder:validation:Enum=ReliableTSC;Kept
type ClocksourceMode string

const (
	// ClocksourceReliableTSC boots with tsc=reliable, which stops the clocksource watchdog.
	ClocksourceReliableTSC ClocksourceMode = "ReliableTSC"
	// ClocksourceKept leaves the watchdog on.
	ClocksourceKept ClocksourceMode = "Kept"
)

// TimerMigration says whether timers move from idle CPUs to busy ones.
//
// +kubebuilder:validation:Enum=Enabled;Disabled;Kept
type TimerMigration string

const (
	// TimerMigrationEnabled moves unpinned timers away from idle CPUs, as OpenShift sets it.
	TimerMigrationEnabled TimerMigration = "Enabled"
	// TimerMigrationDisabled keeps timers where they were armed, as TuneD's network-latency sets it.
	TimerMigrationDisabled TimerMigration = "Disabled"
	// TimerMigrationKept leaves the kernel's own choice.
	TimerMigrationKept TimerMigration = "Kept"
)

// KernelArgument is one argument of the kernel command line.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][A-Za-z0-9_.-]*(=[A-Za-z0-9_.,:;/@+=!&%*~-]*)?$')",message="a kernel argument is a name or name=value of letters, digits and .,:;/@+=!&%*~_- without spaces or quotes."
// +kubebuilder:validation:XValidation:rule="!self.matches('^(init|rdinit|root|rootflags|rootfstype|rootdelay|nfsroot|nfsaddrs|initrd|noinitrd|boot|ostree.*|roothash|usrhash|mount[.]usr.*|systemd[.]verity.*|systemd[.]volatile|rd[.]live[.].*|live[.].*|rd[.]overlay.*|ignition|ignition[.].*|coreos[.].*|rd[.]break|rd[.]emergency|rd[.]rescue|rd[.]systemd[.]unit|rd[.]systemd[.]mask|rd[.]systemd[.]wants|rd[.]cmdline|rd[.]init.*|systemd[.]unit|emergency|rescue|single|s|S|1|2|3|4|5|systemd[.]run.*|systemd[.]mask|systemd[.]hostname|hostname|systemd[.]machine[_-]id|LD[_-].*|SYSTEMD[_-].*|PATH|fips|nomodule)(=.*)?$')",message="arguments that decide what a node boots and starts, such as init, root, ostree, ignition, systemd.unit and rd.break, are refused; docs/dangerous-settings.md lists them with what to use instead."
type KernelArgument string

// KernelSpec selects the kernel and its arguments.
type KernelSpec struct {
	// type is Default or RealTime. RealTime installs the PREEMPT_RT kernel. When omitted, this means the
	// user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is Default.
	// +optional
	Type KernelType `json:"type,omitempty"`

	// machineChecks is Kept, CorrectedErrorsIgnored or Off. CorrectedErrorsIgnored boots with mce=ignore_ce:
	// no CPU is interrupted to poll for corrected memory errors. Off boots with mce=off and hides even
	// fatal errors. It has no effect on arm64. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is Kept.
	// +optional
	MachineChecks MachineChecks `json:"machineChecks,omitempty"`

	// watchdogs is Kept or Disabled. Disabled boots with nmi_watchdog=0 and nosoftlockup: no periodic
	// interrupt looks for hanging CPUs. When omitted, this means the user has no opinion and the operator
	// chooses a default, which is subject to change over time. The current default is Disabled.
	// +optional
	Watchdogs BackgroundActivity `json:"watchdogs,omitempty"`

	// clocksource is ReliableTSC or Kept. It has no effect on arm64. When omitted, this means the user has
	// no opinion and the operator chooses a default, which is subject to change over time. The current
	// default is ReliableTSC.
	// +optional
	Clocksource ClocksourceMode `json:"clocksource,omitempty"`

	// iommu is Passthrough, Translated, Disabled or Kept. When omitted, this means the user has no opinion
	// and the operator chooses a default, which is subject to change over time. The current default is
	// Passthrough on amd64 and Kept on arm64.
	// +optional
	IOMMU IOMMUMode `json:"iommu,omitempty"`

	// timerMigration is Enabled, Disabled or Kept. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is Enabled.
	// +optional
	TimerMigration TimerMigration `json:"timerMigration,omitempty"`

	// realTimeThrottling is Kept or Disabled. Disabled sets kernel.sched_rt_runtime_us to -1, so that a
	// real-time task may use all of a CPU. When omitted, this means the user has no opinion and the
	// operator chooses a default, which is subject to change over time. The current default is Disabled.
	// +optional
	RealTimeThrottling BackgroundActivity `json:"realTimeThrottling,omitempty"`

	// additionalArguments are appended to the kernel command line in this order, at most 64. An argument
	// that contradicts one the operator computes is a finding and the node gets no plan.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	AdditionalArguments []KernelArgument `json:"additionalArguments,omitempty"`
}

// QueueCount says how many queues a NIC gets.
//
// +kubebuilder:validation:Enum=HousekeepingCPUs;Kept
type QueueCount string

const (
	// QueuesHousekeepingCPUs gives each NIC as many combined queues as there are housekeeping CPUs.
	QueuesHousekeepingCPUs QueueCount = "HousekeepingCPUs"
	// QueuesKept leaves queue counts alone.
	QueuesKept QueueCount = "Kept"
)

// PacketSteering says for which devices software receive steering is pinned to housekeeping CPUs.
//
// +kubebuilder:validation:Enum="Off";VirtualDevices;AllDevices
type PacketSteering string

const (
	// PacketSteeringOff leaves RPS off.
	PacketSteeringOff PacketSteering = "Off"
	// PacketSteeringVirtualDevices steers packets of virtual devices to housekeeping CPUs.
	PacketSteeringVirtualDevices PacketSteering = "VirtualDevices"
	// PacketSteeringAllDevices steers packets of physical devices, too.
	PacketSteeringAllDevices PacketSteering = "AllDevices"
)

// NetworkSpec names the NICs that matter to this profile and sets their queues and packet steering.
type NetworkSpec struct {
	// nics select the NICs whose queues are set, at most 32 selectors as in spec.nics of a BypassNICPool; a NIC that
	// matches one of them is selected. Until a BypassNICPool claims NICs on a node, they are also the bypass NICs that BypassNICLocal and
	// keepNearBypassNICs speak of. When omitted, queues are set on every physical NIC and no NIC counts
	// as a bypass NIC.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(nic, !has(nic.link) || nic.link == 'Any')",message="link must be Any or omitted in spec.network.nics: a plan does not change when a cable is pulled."
	// +listType=atomic
	// +optional
	NICs []NICSelector `json:"nics,omitempty"`

	// queues is HousekeepingCPUs or Kept. When omitted, this means the user has no opinion and the operator
	// chooses a default, which is subject to change over time. The current default is Kept.
	// +optional
	Queues QueueCount `json:"queues,omitempty"`

	// receivePacketSteering is Off, VirtualDevices or AllDevices. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current
	// default is Off.
	// +optional
	ReceivePacketSteering PacketSteering `json:"receivePacketSteering,omitempty"`
}
