// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// ContainerRuntimePlan is what the container runtime does, whichever the host has.
type ContainerRuntimePlan struct {
	// InfrastructureCPUs run the containers that only hold the namespaces of pods.
	InfrastructureCPUs cpus.Set `json:"infrastructureCPUs"`
	// ExecPlacement is where exec processes of latency-critical containers start.
	ExecPlacement v1alpha1.ExecPlacement `json:"execPlacement"`
	// PodRequests are what latency-critical pods may ask of the runtime, in the order of PodRequests.
	PodRequests []PodRequest `json:"podRequests"`
	// RuntimeClassName is the name of the RuntimeClass; "" for the platform's own choice.
	RuntimeClassName string `json:"runtimeClassName,omitempty"`
	// WorkloadPartitioning is Enabled where the pods of the platform are kept on housekeeping CPUs, else "".
	WorkloadPartitioning v1alpha1.WorkloadPartitioning `json:"workloadPartitioning,omitempty"`
	Origin               Origin                        `json:"origin"`
}

// ManagementCPUs run the pods of the platform; the empty set where nobody tells these from others.
func (p *NodePlan) ManagementCPUs() cpus.Set {
	if p.ContainerRuntime.WorkloadPartitioning != v1alpha1.WorkloadPartitioningEnabled {
		return cpus.Set{}
	}
	return p.CPUs.Housekeeping
}

// PodRequest is something that a latency-critical pod may ask of the container runtime.
type PodRequest string

const (
	// RequestIdleStates asks for certain idle states on the pod's exclusive CPUs.
	RequestIdleStates PodRequest = "IdleStates"
	// RequestFrequencyGovernor asks for a frequency governor on them.
	RequestFrequencyGovernor PodRequest = "FrequencyGovernor"
	// RequestLoadBalancing asks the scheduler not to balance load over them.
	RequestLoadBalancing PodRequest = "LoadBalancing"
	// RequestCPUQuota asks for containers without a CPU quota.
	RequestCPUQuota PodRequest = "CPUQuota"
	// RequestSharedCPUs asks for the shared CPUs besides the exclusive ones.
	RequestSharedCPUs PodRequest = "SharedCPUs"
	// RequestInterrupts asks for exclusive CPUs that handle no device interrupts.
	RequestInterrupts PodRequest = "Interrupts"
)

// planContainerRuntime decides what the container runtime does. Pods may ask about interrupts only where these follow
// pods: at the end of such a pod the runtime puts its CPUs back into the default interrupt affinity and into
// irqbalance's reach, wherever they came from.
func (p *planner) planContainerRuntime() {
	requests := []PodRequest{RequestIdleStates, RequestFrequencyGovernor, RequestLoadBalancing, RequestCPUQuota}
	if !p.plan.CPUs.Shared.IsEmpty() {
		requests = append(requests, RequestSharedCPUs)
	}
	if p.spec.Interrupts.Placement == v1alpha1.InterruptsPerPod {
		requests = append(requests, RequestInterrupts)
	}
	p.plan.ContainerRuntime = ContainerRuntimePlan{
		InfrastructureCPUs: p.plan.CPUs.Housekeeping,
		ExecPlacement:      p.spec.ContainerRuntime.ExecPlacement,
		PodRequests:        requests,
		RuntimeClassName:   p.spec.ContainerRuntime.RuntimeClassName,
		Origin:             p.origin("spec.containerRuntime.execPlacement"),

		WorkloadPartitioning: p.topology.WorkloadPartitioning,
	}
}
