// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// CPUList is a list of logical CPUs in kernel list format, such as "0-3,40-43".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+(-[0-9]+(:[0-9]+/[0-9]+)?)?(,[0-9]+(-[0-9]+(:[0-9]+/[0-9]+)?)?)*$')",message="a CPU list is written as in the kernel, for example 0-3,8 without spaces."
type CPUList string

// CPUPartition says who decides which CPUs are isolated.
//
// +kubebuilder:validation:Enum=Derived;Explicit
type CPUPartition string

const (
	// PartitionDerived derives the CPU sets from each node's topology.
	PartitionDerived CPUPartition = "Derived"
	// PartitionExplicit uses the CPU lists of the profile on every node.
	PartitionExplicit CPUPartition = "Explicit"
)

// SMTMode says what happens to simultaneous multithreading.
//
// +kubebuilder:validation:Enum=Kept;Disabled
type SMTMode string

const (
	// SMTKept leaves sibling threads as the firmware configured them.
	SMTKept SMTMode = "Kept"
	// SMTDisabled takes sibling threads offline at boot (nosmt).
	SMTDisabled SMTMode = "Disabled"
)

// CPUIsolation says who keeps other tasks off isolated CPUs.
//
// +kubebuilder:validation:Enum=Static;PerPod
type CPUIsolation string

const (
	// IsolationStatic removes isolated CPUs from the scheduler's domains at boot.
	IsolationStatic CPUIsolation = "Static"
	// IsolationPerPod leaves them balanced until the container runtime takes a pod's CPUs out.
	IsolationPerPod CPUIsolation = "PerPod"
)

// TickMode says whether the scheduler tick runs on isolated CPUs.
//
// +kubebuilder:validation:Enum=Stopped;Periodic
type TickMode string

const (
	// TickStopped stops the tick on isolated CPUs that run a single task (nohz_full).
	TickStopped TickMode = "Stopped"
	// TickPeriodic keeps the tick.
	TickPeriodic TickMode = "Periodic"
)

// CPUsSpec divides the CPUs of a node into housekeeping, isolated and offline ones.
//
// +kubebuilder:validation:XValidation:rule="(has(self.partition) && self.partition == 'Explicit') == has(self.explicit)",message="spec.cpus.explicit must be set when spec.cpus.partition is Explicit, and only then."
// +kubebuilder:validation:XValidation:rule="!has(self.derived) || !has(self.partition) || self.partition == 'Derived'",message="spec.cpus.derived may be set only when spec.cpus.partition is Derived."
type CPUsSpec struct {
	// partition is Derived or Explicit. Derived: the sets follow from each node's own topology, as
	// spec.cpus.derived says. Explicit: the CPU lists of spec.cpus.explicit are used on every node. When
	// omitted, this means the user has no opinion and the operator chooses a default, which is subject to
	// change over time. The current default is Derived.
	// +optional
	Partition CPUPartition `json:"partition,omitempty"`

	// derived says how the partition follows from the topology:
	//
	//	cpus:
	//	  partition: Derived
	//	  derived: {housekeepingCores: 2, spread: PerNUMANode, keepNearBypassNICs: Isolated}
	//
	// +optional
	Derived *DerivedCPUs `json:"derived,omitempty"`

	// explicit are the CPU lists for every node:
	//
	//	cpus:
	//	  partition: Explicit
	//	  explicit: {housekeeping: "0-1,40-41", isolated: "2-39,42-79"}
	//
	// +optional
	Explicit *ExplicitCPUs `json:"explicit,omitempty"`

	// simultaneousMultithreading is Kept or Disabled. Disabled boots with nosmt: one thread of each core
	// stays online, and its siblings belong to no set. When omitted, this means the user has no opinion
	// and the operator chooses a default, which is subject to change over time. The current default is Kept.
	// +optional
	SimultaneousMultithreading SMTMode `json:"simultaneousMultithreading,omitempty"`

	// isolation is Static or PerPod. Static boots with isolcpus=domain: the scheduler never balances tasks
	// onto isolated CPUs, and a pod with several threads must pin them itself. PerPod leaves isolated CPUs
	// balanced until the container runtime removes those of one pod, asked by the pod's annotation. When
	// omitted, this means the user has no opinion and the operator chooses a default, which is subject to
	// change over time. The current default is Static.
	// +optional
	Isolation CPUIsolation `json:"isolation,omitempty"`

	// tick is Stopped or Periodic. Stopped boots with nohz_full for the isolated CPUs, so that a CPU with
	// one runnable task takes no timer tick. RCU callbacks are offloaded from isolated CPUs either way.
	// When omitted, this means the user has no opinion and the operator chooses a default, which is
	// subject to change over time. The current default is Stopped.
	// +optional
	Tick TickMode `json:"tick,omitempty"`
}

// CoreSpread says from where housekeeping cores are taken.
//
// +kubebuilder:validation:Enum=PerNUMANode;FirstNUMANode
type CoreSpread string

const (
	// SpreadPerNUMANode takes housekeepingCores from every NUMA node that has CPUs.
	SpreadPerNUMANode CoreSpread = "PerNUMANode"
	// SpreadFirstNUMANode takes all housekeeping cores from the lowest NUMA nodes.
	SpreadFirstNUMANode CoreSpread = "FirstNUMANode"
)

// NearNICPreference says what happens to the cores nearest to bypass NICs.
//
// +kubebuilder:validation:Enum=Isolated;NoPreference
type NearNICPreference string

const (
	// NearNICIsolated takes housekeeping cores away from the NUMA nodes of bypass NICs where possible.
	NearNICIsolated NearNICPreference = "Isolated"
	// NearNICNoPreference ignores NICs when choosing housekeeping cores.
	NearNICNoPreference NearNICPreference = "NoPreference"
)

// CacheSharing says whether housekeeping and isolated CPUs may share a last-level cache.
//
// +kubebuilder:validation:Enum=Avoided;Excluded;Allowed
type CacheSharing string

const (
	// CacheSharingAvoided rounds housekeeping up to whole L3 domains on parts with several per NUMA node, as long as
	// that gives it no more than a quarter of the cores.
	CacheSharingAvoided CacheSharing = "Avoided"
	// CacheSharingExcluded rounds up whatever it costs.
	CacheSharingExcluded CacheSharing = "Excluded"
	// CacheSharingAllowed takes exactly the cores asked for.
	CacheSharingAllowed CacheSharing = "Allowed"
)

// DerivedCPUs says how the partition follows from the topology. Housekeeping takes whole physical
// cores: that of the boot CPU, then efficiency cores of hybrid processors, then lowest numbers first; the rest is
// isolated.
type DerivedCPUs struct {
	// housekeepingCores is the number of physical cores for the operating system, the kubelet and
	// ordinary pods, 1 to 128: per NUMA node when spread is PerNUMANode, in total when it is
	// FirstNUMANode. status.shapes[].partition says how many that came to. When omitted, this means the user has no opinion and the operator chooses a default,
	// which is subject to change over time. The current default is 1 per NUMA node, and at least 2 in all
	// on nodes with more than 4 cores.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	// +optional
	HousekeepingCores int32 `json:"housekeepingCores,omitempty"`

	// spread is PerNUMANode or FirstNUMANode. PerNUMANode gives each NUMA node that has isolated CPUs a
	// housekeeping core of its own, as the kernel documents for nohz_full. When omitted, this means the
	// user has no opinion and the operator chooses a default, which is subject to change over time. The
	// current default is PerNUMANode.
	// +optional
	Spread CoreSpread `json:"spread,omitempty"`

	// keepNearBypassNICs is Isolated or NoPreference. Isolated: with spread FirstNUMANode, housekeeping
	// cores come from NUMA nodes without a bypass NIC first. With spread PerNUMANode, a NUMA node that
	// holds a bypass NIC is asked for one core only; whole L3 domains (sharedCaches) count there as elsewhere.
	// When omitted, this means the user has no opinion
	// and the operator chooses a default, which is subject to change over time. The current default is
	// NoPreference.
	// +optional
	KeepNearBypassNICs NearNICPreference `json:"keepNearBypassNICs,omitempty"`

	// sharedCaches is Avoided, Excluded or Allowed. Avoided: where a NUMA node has several L3 domains,
	// housekeeping is rounded up to whole domains so that it shares no cache with isolated CPUs, unless
	// that would leave the NUMA node without isolated CPUs, or give housekeeping more than a quarter of the
	// node's cores; a finding then says what is shared and what the alternatives cost. Excluded rounds up
	// beyond a quarter, too. Allowed takes exactly the cores asked for. When omitted, this means the user has no
	// opinion and the operator chooses a default, which is subject to change over time. The current
	// default is Avoided.
	// +optional
	SharedCaches CacheSharing `json:"sharedCaches,omitempty"`
}

// CPULoadBalancing says whether the scheduler balances a set of CPUs.
//
// +kubebuilder:validation:Enum=Kept;Disabled
type CPULoadBalancing string

const (
	// LoadBalancingKept leaves the CPUs in a balanced scheduler domain.
	LoadBalancingKept CPULoadBalancing = "Kept"
	// LoadBalancingDisabled puts them into an isolated cgroup partition.
	LoadBalancingDisabled CPULoadBalancing = "Disabled"
)

// ExplicitCPUs are CPU lists that are used on every node as they are. Lists must not overlap, must
// exist on the node, and housekeeping and isolated must cover all CPUs that stay online; a node where
// that does not hold gets a finding and no plan.
//
// +kubebuilder:validation:XValidation:rule="!has(self.dataPlaneLoadBalancing) || has(self.dataPlane)",message="spec.cpus.explicit.dataPlaneLoadBalancing may be set only together with spec.cpus.explicit.dataPlane."
type ExplicitCPUs struct {
	// housekeeping are the CPUs for the operating system, the kubelet and ordinary pods.
	// +required
	Housekeeping CPUList `json:"housekeeping"`

	// isolated are the CPUs for latency-critical pods.
	// +required
	Isolated CPUList `json:"isolated"`

	// offline are CPUs that are taken offline at boot.
	// +optional
	Offline CPUList `json:"offline,omitempty"`

	// shared are CPUs that a latency-critical container may use besides its own, for threads that are not
	// latency-critical. They are a part of housekeeping as far as the kernel is concerned.
	// +optional
	Shared CPUList `json:"shared,omitempty"`

	// dataPlane are CPUs for a virtual switch or another dataplane process that the host runs. The kernel
	// isolates them as isolated CPUs; the kubelet gives them to no pod.
	// +optional
	DataPlane CPUList `json:"dataPlane,omitempty"`

	// dataPlaneLoadBalancing is Kept or Disabled. Disabled puts the dataPlane CPUs into an isolated cgroup
	// partition. When omitted, this means the user has no opinion and the operator chooses a default,
	// which is subject to change over time. The current default is Kept.
	// +optional
	DataPlaneLoadBalancing CPULoadBalancing `json:"dataPlaneLoadBalancing,omitempty"`
}
