// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// FindingObjects are the parts of a node that a finding is about. A list that is too long holds its first objects;
// counts has the number of all.
type FindingObjects struct {
	// cpus are the CPUs in the kernel's list format, such as 2-39,42. When omitted, the finding names no CPU.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	CPUs string `json:"cpus,omitempty"`

	// interrupts are the interrupts, at most 32. When omitted, the finding names none.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Interrupts []Interrupt `json:"interrupts,omitempty"`

	// nics are the PCI addresses of the NICs, such as 0000:3b:00.0, at most 32. When omitted, the finding names none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=32
	// +listType=atomic
	// +optional
	NICs []string `json:"nics,omitempty"`

	// numaNodes are the numbers of the NUMA nodes, at most 64. When omitted, the finding names none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=1023
	// +listType=atomic
	// +optional
	NUMANodes []int32 `json:"numaNodes,omitempty"`

	// processes are the processes and threads, at most 16. When omitted, the finding names none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Processes []Process `json:"processes,omitempty"`

	// containers are the containers as NAMESPACE/POD/CONTAINER, or with the UID of the pod where only that is known,
	// at most 16. When omitted, the finding names none.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Containers []string `json:"containers,omitempty"`

	// files are the files of the host that hold something else than planned, such as /proc/sys/kernel/numa_balancing,
	// at most 16. When omitted, the finding names none.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Files []string `json:"files,omitempty"`

	// counts are the numbers of all objects, those that are not listed included.
	// +required
	Counts ObjectCounts `json:"counts"`
}

// ObjectCounts are numbers of objects of a finding. A kind that the finding does not name is omitted.
type ObjectCounts struct {
	// cpus is the number of CPUs. When omitted, there is none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	CPUs int32 `json:"cpus,omitempty"`

	// interrupts is the number of interrupts. When omitted, there is none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Interrupts int32 `json:"interrupts,omitempty"`

	// nics is the number of NICs. When omitted, there is none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	NICs int32 `json:"nics,omitempty"`

	// numaNodes is the number of NUMA nodes. When omitted, there is none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	NUMANodes int32 `json:"numaNodes,omitempty"`

	// processes is the number of processes and threads. When omitted, there is none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Processes int32 `json:"processes,omitempty"`

	// containers is the number of containers. When omitted, there is none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Containers int32 `json:"containers,omitempty"`

	// files is the number of files. When omitted, there is none.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Files int32 `json:"files,omitempty"`
}

// Interrupt is a line of /proc/interrupts.
type Interrupt struct {
	// id is the number of the interrupt, such as 142, or the name of its line where it has none, such as NMI.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16
	// +required
	ID string `json:"id"`

	// handlers are the names that drivers gave to their handlers, such as sfc-ens2f0-3. When omitted, none is known.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Handlers string `json:"handlers,omitempty"`
}

// Process is a process or a thread of one.
type Process struct {
	// pid is the number of the process.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4194304
	// +required
	PID int32 `json:"pid"`

	// thread is the number of the thread. When omitted, it is the first one of the process, or all of it.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4194304
	// +optional
	Thread int32 `json:"thread,omitempty"`

	// name is what the process or thread calls itself. When omitted, it is not known.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Name string `json:"name,omitempty"`
}
