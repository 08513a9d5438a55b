// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Plan is what one node is to become. Without a plan only Node, Profile, Reboot and Findings are set, and Changes where the profile is gone.
type Plan struct {
	Node    string `json:"node"`
	Profile string `json:"profile"`
	// PlanHash is null when there is no plan: a finding is Critical, or the profile is gone.
	PlanHash *string `json:"planHash"`
	*Content
	// Reboot says whether the node has to reboot; Against says compared to what.
	Reboot   v1alpha1.RebootRequirement `json:"reboot"`
	Against  string                     `json:"against"`
	Changes  []plan.Change              `json:"changes,omitempty"`
	Findings []plan.Finding             `json:"findings"`
}

// Content is the content of a plan.
type Content struct {
	Architecture     string                 `json:"architecture"`
	Vendor           *string                `json:"vendor"`
	KernelType       v1alpha1.KernelType    `json:"kernelType"`
	KernelPageSize   v1alpha1.PageSize      `json:"kernelPageSize"`
	KernelArguments  []string               `json:"kernelArguments"`
	Housekeeping     cpus.Set               `json:"housekeeping"`
	Isolated         cpus.Set               `json:"isolated"`
	Offline          cpus.Set               `json:"offline"`
	Shared           cpus.Set               `json:"shared"`
	DataPlane        cpus.Set               `json:"dataPlane"`
	CPUModes         CPUModes               `json:"cpuModes"`
	Hugepages        []Hugepages            `json:"hugepages"`
	Interrupts       Interrupts             `json:"interrupts"`
	Power            Power                  `json:"power"`
	Sysctls          []Setting              `json:"sysctls"`
	Sysfs            []Setting              `json:"sysfs"`
	Network          Network                `json:"network"`
	Kubelet          map[string]any         `json:"kubelet"`
	ContainerRuntime ContainerRuntime       `json:"containerRuntime"`
	Files            []File                 `json:"files"`
	Units            []Unit                 `json:"units"`
	StopServices     []string               `json:"stopServices"`
	UnloadModules    []string               `json:"unloadModules"`
	BypassNICs       []plan.NICPlan         `json:"bypassNICs"`
	BypassPools      []BypassPool           `json:"bypassPools,omitempty"`
	Verification     Verification           `json:"verification"`
	Origins          map[string]plan.Origin `json:"origins"`
}

// CPUModes are the modes that go with the CPU sets.
type CPUModes struct {
	SMT                    v1alpha1.SMTMode          `json:"simultaneousMultithreading"`
	Isolation              v1alpha1.CPUIsolation     `json:"isolation"`
	Tick                   v1alpha1.TickMode         `json:"tick"`
	DataPlaneLoadBalancing v1alpha1.CPULoadBalancing `json:"dataPlaneLoadBalancing,omitempty"`
}

// ContainerRuntime is what the container runtime does.
type ContainerRuntime struct {
	InfrastructureCPUs cpus.Set               `json:"infrastructureCPUs"`
	ExecPlacement      v1alpha1.ExecPlacement `json:"execPlacement"`
	PodRequests        []plan.PodRequest      `json:"podRequests"`
}

// Hugepages are a number of hugepages of one size in one place.
type Hugepages struct {
	Size  v1alpha1.HugepageSize `json:"size"`
	Count int64                 `json:"count"`
	// NUMANode is null when the kernel spreads the pages.
	NUMANode *int                `json:"numaNode"`
	Method   plan.HugepageMethod `json:"method"`
}

// Interrupts say where device interrupts are handled.
type Interrupts struct {
	Placement       v1alpha1.InterruptPlacement `json:"placement"`
	DefaultAffinity cpus.Set                    `json:"defaultAffinity"`
	Balancer        v1alpha1.InterruptBalancer  `json:"balancer"`
	Banned          cpus.Set                    `json:"banned"`
}

// Power is the frequency and idle behaviour.
type Power struct {
	IdleStates                            v1alpha1.IdleStates          `json:"idleStates"`
	FrequencyDriver                       v1alpha1.FrequencyDriverMode `json:"frequencyDriver"`
	Governor                              v1alpha1.FrequencyGovernor   `json:"governor"`
	Turbo                                 v1alpha1.TurboMode           `json:"turbo"`
	IsolatedMaximumFrequencyKilohertz     *int32                       `json:"isolatedMaximumFrequencyKilohertz"`
	HousekeepingMaximumFrequencyKilohertz *int32                       `json:"housekeepingMaximumFrequencyKilohertz"`
}

// Setting is one name and its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Network is what is set on NICs.
type Network struct {
	// Queues is null when they are left alone.
	Queues                *int                    `json:"queues"`
	NICs                  []v1alpha1.NICSelector  `json:"nics"`
	ReceivePacketSteering v1alpha1.PacketSteering `json:"receivePacketSteering"`
}

// BypassPool is what becomes of the NICs of a BypassNICPool.
type BypassPool struct {
	Name string          `json:"name"`
	NICs []BypassPoolNIC `json:"nics"`
}

// BypassPoolNIC is what becomes of one NIC of a pool.
type BypassPoolNIC struct {
	PCIAddress string `json:"pciAddress"`
	// VirtualFunctions is null when none are created, Driver when the kernel chooses it.
	VirtualFunctions *int                           `json:"virtualFunctions"`
	Driver           *string                        `json:"driver"`
	Interrupts       v1alpha1.NICInterruptPlacement `json:"interrupts"`
	// InterruptCPUs are empty when interrupts are left alone.
	InterruptCPUs cpus.Set `json:"interruptCPUs"`
}

// File is a file that is put on the host. Mode is octal, such as "0644".
type File struct {
	Path    string `json:"path"`
	Mode    string `json:"mode"`
	Content string `json:"content"`
}

// Unit is a systemd unit.
type Unit struct {
	Name    string            `json:"name"`
	Content string            `json:"content,omitempty"`
	Enabled bool              `json:"enabled"`
	Masked  bool              `json:"masked"`
	DropIns map[string]string `json:"dropIns,omitempty"`
}

// Verification says what the node has to prove.
type Verification struct {
	Gate   v1alpha1.VerificationGate `json:"gate"`
	FailOn v1alpha1.FailureThreshold `json:"failOn"`
	Waived []v1alpha1.WaivedCheck    `json:"waived"`
}

// OfPlan is the view of a node's plan. The plan is nil when a finding is Critical.
func OfPlan(node string, profile *v1alpha1.LowLatencyNodeProfile, p *plan.NodePlan, findings []plan.Finding, against string, changes plan.Changes) (Plan, error) {
	view := Plan{
		Node: node, Profile: profile.Name, Against: against, Reboot: changes.Reboot(),
		Changes: changes.Items, Findings: append([]plan.Finding{}, findings...),
	}
	if p == nil {
		view.Reboot, view.Changes = v1alpha1.RebootUnknown, nil
		return view, nil
	}
	hash := p.Hash()
	content, err := content(p, plan.Effective(profile, p.Architecture))
	if err != nil {
		return Plan{}, fmt.Errorf("node %s: %w", node, err)
	}
	view.PlanHash, view.Content = &hash, content
	return view, nil
}

// OfReturn is the view of a node whose profile is gone: what changes, and no plan.
func OfReturn(node, profile, against string, changes plan.Changes) Plan {
	return Plan{Node: node, Profile: profile, Against: against, Reboot: changes.Reboot(), Changes: changes.Items, Findings: []plan.Finding{}}
}

func content(p *plan.NodePlan, effective plan.EffectiveSpec) (*Content, error) {
	kubelet, err := Kubelet(p.Kubelet)
	if err != nil {
		return nil, err
	}
	return &Content{
		Architecture: p.Architecture, Vendor: known(p.Vendor),
		KernelType: p.Kernel.Type, KernelPageSize: p.Kernel.PageSize,
		KernelArguments: each(p.KernelArguments, func(a plan.Argument) string { return a.Text }),
		Housekeeping:    p.CPUs.Housekeeping, Isolated: p.CPUs.Isolated, Offline: p.CPUs.Offline,
		Shared: p.CPUs.Shared, DataPlane: p.CPUs.DataPlane,
		CPUModes:         CPUModes{p.CPUs.SMT, p.CPUs.Isolation, p.CPUs.Tick, p.CPUs.DataPlaneBalancing},
		Hugepages:        each(p.Hugepages, hugepages),
		Interrupts:       Interrupts{p.Interrupts.Placement, p.Interrupts.DefaultAffinity, p.Interrupts.Balancer, p.Interrupts.Banned},
		Power:            power(p.Power),
		Sysctls:          each(p.Sysctls, setting),
		Sysfs:            each(p.Sysfs, setting),
		Network:          Network{known(p.Network.Queues), append([]v1alpha1.NICSelector{}, p.Network.NICs...), p.Network.Steering},
		Kubelet:          kubelet,
		ContainerRuntime: ContainerRuntime{p.ContainerRuntime.InfrastructureCPUs, p.ContainerRuntime.ExecPlacement, append([]plan.PodRequest{}, p.ContainerRuntime.PodRequests...)},
		Files:            each(p.Files, file),
		Units:            each(p.Units, unit),
		StopServices:     each(p.StopServices, name),
		UnloadModules:    each(p.UnloadModules, name),
		BypassNICs:       append([]plan.NICPlan{}, p.BypassNICs...),
		BypassPools:      bypassPools(p.BypassPools),
		Verification:     Verification{p.Verification.Gate, cmp.Or(p.Verification.FailOn, v1alpha1.FailOnImpact), append([]v1alpha1.WaivedCheck{}, p.Verification.Waived...)},
		Origins:          origins(p, effective),
	}, nil
}

func hugepages(h plan.HugepagePlan) Hugepages {
	return Hugepages{Size: h.Size, Count: h.Count, NUMANode: h.NUMANode, Method: h.Method}
}

func power(p plan.PowerPlan) Power {
	return Power{
		p.IdleStates, p.FrequencyDriver, p.Governor, p.Turbo,
		known(p.IsolatedMaximum), known(p.HousekeepingMaximum),
	}
}

func bypassPools(pools []plan.PoolPlan) []BypassPool {
	return each(pools, func(p plan.PoolPlan) BypassPool {
		return BypassPool{Name: p.Name, NICs: each(p.NICs, func(n plan.PoolNICPlan) BypassPoolNIC {
			return BypassPoolNIC{n.PCIAddress, known(n.VirtualFunctions), known(n.Driver), n.Interrupts, n.InterruptCPUs}
		})}
	})
}

func setting(s plan.Setting) Setting { return Setting{s.Name, s.Value} }

func name(s plan.Setting) string { return s.Name }

func file(f plan.File) File {
	return File{Path: f.Path, Mode: fmt.Sprintf("%04o", f.Mode), Content: f.Content}
}

func unit(u plan.Unit) Unit {
	return Unit{Name: u.Name, Content: u.Content, Enabled: u.Enabled, Masked: u.Masked, DropIns: u.DropIns}
}

// Kubelet is the kubelet part of a plan as fields of KubeletConfiguration.
func Kubelet(p plan.KubeletPlan) (map[string]any, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding kubelet settings: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("decoding kubelet settings: %w", err)
	}
	delete(fields, "origin")
	delete(fields, "additional")
	maps.Copy(fields, p.Additional)
	return fields, nil
}
