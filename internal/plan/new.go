// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// Input is what a plan is made from.
type Input struct {
	// Profile is the intent.
	Profile *v1alpha1.LowLatencyNodeProfile
	// Topology is the hardware of the node.
	Topology *topology.Topology
	// BypassNICs are further bypass NICs, such as those that a BypassNICPool claims on the node, besides
	// the ones that spec.network.nics select.
	BypassNICs []topology.NIC
	// Pools are the BypassNICPools that select the node, in ascending order of their names. Their hugepages,
	// virtual functions, driver bindings and interrupts become part of the plan.
	Pools []Pool
	// Platform is what the platform keeps to itself.
	Platform PlatformRules
}

// Pool is a BypassNICPool with the NICs that it hands out on the node.
type Pool struct {
	Name string
	Spec *v1alpha1.BypassNICPoolSpec
	// NICs that the pool selects on the node and that no other pool has, but for Shared.
	NICs []topology.NIC
	// Shared are the addresses of those that it has together with other pools, which agreed to it.
	Shared []string
	// Conflicts are NICs that it selects and that other pools have.
	Conflicts []PoolConflict
	// ResourceOwner is another pool that its resource name belongs to, so that it has no NIC; "" for none.
	ResourceOwner string
	// Isolation is how programs are confined that bring drivers of their own: the NICs, or their virtual functions, are
	// bound to DriverVFIO. "" leaves them to the kernel's drivers.
	Isolation v1alpha1.VFIOIsolation
}

// PoolConflict are NICs that a pool selects and that the same other pools have.
type PoolConflict struct {
	NICs []topology.NIC
	// Pools are the others, ascending.
	Pools []string
}

// planner makes one plan. Each step reads what earlier steps decided, decides its own part of the plan
// and reports what cannot be met.
type planner struct {
	input     Input
	effective EffectiveSpec
	spec      v1alpha1.LowLatencyNodeProfileSpec
	topology  *topology.Topology
	machine   machine
	// release of the running kernel; the zero release when unknown.
	release release.Release
	// near are the NUMA nodes that hold a bypass NIC.
	near map[int]bool
	// pools are those of the input with the NICs that they may have.
	pools    []Pool
	plan     *NodePlan
	findings []Finding
}

// New computes the plan of one node. It is nil when a finding is Critical. The same input always makes
// the same plan and the same findings, the most severe first. The exact amount of memory never changes a
// plan; too little of it is a finding.
func New(in Input) (*NodePlan, []Finding) {
	p := newPlanner(in)
	p.run(p.checkProfile, p.refuseHazards, p.checkHost, p.claimNICs, p.planNICs, p.planKernel, p.planPower, p.planCPUs)
	if !p.blocked() {
		p.run(p.planVerification, p.planKubelet, p.planContainerRuntime, p.planHugepages, p.planInterrupts, p.planPools,
			p.planNetwork, p.planKernelArguments, p.planSysctls, p.planSysfs, p.planKernelThreads, p.planSystem, p.planHost)
	}
	sortFindings(p.findings)
	if p.blocked() {
		return nil, p.findings
	}
	return p.plan, p.findings
}

func newPlanner(in Input) *planner {
	effective := Effective(in.Profile, in.Topology.Architecture)
	running, _ := release.Parse(in.Topology.KernelRelease)
	return &planner{
		input:     in,
		effective: effective,
		spec:      effective.Spec,
		topology:  in.Topology,
		machine:   machineOf(in.Topology, effective.Spec.CPUs.SimultaneousMultithreading),
		release:   running,
		near:      map[int]bool{},
		plan: &NodePlan{
			Profile:      in.Profile.Name,
			Architecture: in.Topology.Architecture,
			Vendor:       in.Topology.Vendor,
		},
	}
}

// run takes the steps in order.
func (p *planner) run(steps ...func()) {
	for _, step := range steps {
		step()
	}
}

// origin says where the value of a field came from.
func (p *planner) origin(field string) Origin { return p.effective.Origin(field) }

// by is the origin of a choice of the operator for a reason that no field speaks of.
func by(reason string) Origin { return Origin{Source: FromDefault, Detail: reason} }
