// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

// Reasons why a change does or does not need a reboot.
const (
	whyCommandLine = "the kernel reads its command line at boot only"
	whyKernel      = "another kernel has to be booted"
	whyAtOnce      = "it takes effect at once"
	whyKubelet     = "the kubelet restarts; pods with exclusive CPUs are drained first"
	whyRuntime     = "the container runtime restarts"
	whyHotplug     = "CPUs go offline and come back while the kernel runs"
	whyFragmented  = "free memory in pieces of this size is rarely found after boot"
	whyInUse       = "pods may hold virtual functions and devices; a reboot is what surely frees them"
	whyUnit        = "systemd starts it at the next boot, and what it does can be done now"
)

// items lists everything that a plan decides, in a fixed order. A nil plan decides nothing.
func (p *NodePlan) items() []item {
	if p == nil {
		return nil
	}
	return slices.Concat(p.kernelItems(), p.cpuItems(), p.argumentItems(), p.itemsAfterArguments())
}

func (p *NodePlan) itemsAfterArguments() []item {
	return slices.Concat(p.hugepageItems(), p.runtimeItems(), p.settingItems(), p.kernelThreadItems(), p.kubeletItems(), p.containerRuntimeItems(),
		p.fileItems(), p.poolItems(), p.agentItems())
}

func (p *NodePlan) kernelItems() []item {
	return []item{
		{name: "kernel type", value: string(p.Kernel.Type), reboot: v1alpha1.RebootRequired, why: whyKernel,
			observe: observeKernelType},
		{name: "kernel page size", value: string(p.Kernel.PageSize), reboot: v1alpha1.RebootRequired, why: whyKernel,
			observe: observePageSize},
	}
}

func (p *NodePlan) cpuItems() []item {
	required, not := v1alpha1.RebootRequired, v1alpha1.RebootNotRequired
	return []item{
		{name: "housekeeping CPUs", value: p.CPUs.Housekeeping.String(), reboot: required, why: whyCommandLine},
		{name: "isolated CPUs", value: p.CPUs.Isolated.String(), reboot: required, why: whyCommandLine},
		{name: "shared CPUs", value: p.CPUs.Shared.String(), reboot: not, why: whyRuntime},
		{name: "data plane CPUs", value: p.CPUs.DataPlane.String(), reboot: not, why: whyKubelet},
		{name: "offline CPUs", value: p.CPUs.Offline.String(), reboot: not, why: whyHotplug,
			observe: observeOffline(p.CPUs.Offline)},
	}
}

func (p *NodePlan) hugepageItems() []item {
	var items []item
	for _, pages := range p.Hugepages {
		if pages.NUMANode == nil || pages.Method != ByUnit {
			continue
		}
		i := item{
			name:    fmt.Sprintf("hugepages of %s on NUMA node %d", pages.Size, *pages.NUMANode),
			value:   strconv.FormatInt(pages.Count, 10),
			why:     whyAtOnce,
			observe: observeHugepages(*pages.NUMANode, pages.SizeKibibytes),
		}
		if i.reboot = RebootForHugepages(pages.SizeKibibytes); i.reboot == v1alpha1.RebootRequired {
			i.why = whyFragmented
		}
		items = append(items, i)
	}
	return items
}

// RebootForHugepages says whether more hugepages of a size take a reboot: free memory in pieces of a gibibyte is rarely
// found after boot.
func RebootForHugepages(kibibytes int64) v1alpha1.RebootRequirement {
	if kibibytes >= kibibytesPerGibibyte {
		return v1alpha1.RebootRequired
	}
	return v1alpha1.RebootNotRequired
}

// runtimeItems are what a running system takes on at once, besides sysctl and sysfs.
func (p *NodePlan) runtimeItems() []item {
	queues := "kept"
	if p.Network.Queues > 0 {
		selectors, _ := json.Marshal(p.Network.NICs)
		queues = fmt.Sprintf("%d on %s", p.Network.Queues, selectors)
	}
	items := []item{
		{name: "interrupt placement", value: string(p.Interrupts.Placement)},
		{name: "default interrupt affinity", value: p.Interrupts.DefaultAffinity.String(),
			observe: observeDefaultAffinity},
		{name: "irqbalance", value: fmt.Sprintf("%s, banned CPUs %q", p.Interrupts.Balancer, p.Interrupts.Banned)},
		{name: "idle states", value: string(p.Power.IdleStates)},
		{name: "governor", value: string(p.Power.Governor)},
		{name: "NIC queues", value: queues},
		{name: "receive packet steering", value: string(p.Network.Steering)},
	}
	if p.Power.Governor == v1alpha1.GovernorPerformance {
		items[4].observe = observeGovernor
	}
	for i := range items {
		items[i].reboot, items[i].why = v1alpha1.RebootNotRequired, whyAtOnce
	}
	return items
}

func (p *NodePlan) settingItems() []item {
	items := make([]item, 0, len(p.Sysctls)+len(p.Sysfs))
	for _, s := range p.Sysctls {
		items = append(items, settingItem(kindSysctl, s, host.SysctlPath(s.Name)))
	}
	for _, s := range p.Sysfs {
		items = append(items, settingItem(kindFile, s, s.Name))
	}
	return items
}

func settingItem(kind string, s Setting, path string) item {
	return item{
		kind: kind, name: s.Name, value: s.Value, reboot: v1alpha1.RebootNotRequired, why: whyAtOnce, observe: observeSetting(path, s.Value),
		same: func(a, b string) bool { return setting.Same(path, a, b) },
	}
}

// kubeletItems has one item for each field of KubeletConfiguration, as JSON.
func (p *NodePlan) kubeletItems() []item {
	fields := map[string]any{}
	// Writing and reading back texts and maps of texts cannot fail.
	data, _ := json.Marshal(p.Kubelet)
	_ = json.Unmarshal(data, &fields)
	delete(fields, "origin")
	delete(fields, "additional")
	maps.Copy(fields, p.Kubelet.Additional)
	items := make([]item, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		items = append(items, item{kind: kindKubelet, name: name, value: kubeletValue(fields[name]),
			reboot: v1alpha1.RebootNotRequired, why: whyKubelet, same: sameKubeletValue(name), observe: observeKubelet(name)})
	}
	return items
}

// kubeletValue writes texts as they are and everything else as JSON.
func kubeletValue(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}

// containerRuntimeItems are what the container runtime reads when it starts.
func (p *NodePlan) containerRuntimeItems() []item {
	r := p.ContainerRuntime
	items := []item{
		{name: "container runtime: CPUs of infrastructure containers", value: r.InfrastructureCPUs.String()},
		{name: "container runtime: placement of exec processes", value: string(r.ExecPlacement)},
		{name: "container runtime: CPUs of the platform's pods", value: p.ManagementCPUs().String()},
		{name: "container runtime: requests of pods", value: joined(r.PodRequests, func(r PodRequest) string { return string(r) })},
	}
	for i := range items {
		items[i].reboot, items[i].why = v1alpha1.RebootNotRequired, whyRuntime
	}
	return items
}

func (p *NodePlan) fileItems() []item {
	items := make([]item, 0, len(p.Files)+len(p.Units)+len(p.UnloadModules))
	for _, f := range p.Files {
		i := item{kind: kindFile, name: f.Path, value: fmt.Sprintf("mode %o, %s", f.Mode, digest(f.Content)),
			reboot: v1alpha1.RebootNotRequired, why: whyAtOnce}
		items = append(items, i)
	}
	for _, u := range p.Units {
		items = append(items, item{name: "unit " + u.Name, value: describeUnit(u),
			reboot: v1alpha1.RebootNotRequired, why: whyUnit})
	}
	for _, m := range p.UnloadModules {
		items = append(items, item{name: "kernel module " + m.Name, value: "unloaded",
			reboot: v1alpha1.RebootNotRequired, why: whyAtOnce})
	}
	return items
}

func describeUnit(u Unit) string {
	var parts []string
	if u.Masked {
		parts = append(parts, "masked")
	}
	if u.Enabled {
		parts = append(parts, "enabled")
	}
	if u.Content != "" {
		parts = append(parts, digest(u.Content))
	}
	for _, name := range slices.Sorted(maps.Keys(u.DropIns)) {
		parts = append(parts, name+" "+digest(u.DropIns[name]))
	}
	return strings.Join(parts, ", ")
}

// digest stands for a content in a line of text.
func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256 " + hex.EncodeToString(sum[:6])
}

// poolItems are what becomes of the NICs of pools. Their units, files and hugepages have items of their own.
func (p *NodePlan) poolItems() []item {
	var items []item
	for _, pool := range p.BypassPools {
		items = append(items, item{name: "BypassNICPool " + pool.Name, reboot: v1alpha1.RebootNotRequired, why: whyAtOnce,
			value: joined(pool.NICs, func(n PoolNICPlan) string { return n.PCIAddress })})
		for _, nic := range pool.NICs {
			items = append(items, nic.items()...)
		}
	}
	return items
}

// items of one NIC. What is new is made while the kernel runs; what pods may hold is taken away by a reboot.
func (n PoolNICPlan) items() []item {
	items := []item{{
		name: "interrupts of NIC " + n.PCIAddress, reboot: v1alpha1.RebootNotRequired, why: whyAtOnce,
		value: strings.TrimSpace(string(n.Interrupts) + " " + n.InterruptCPUs.String()),
	}}
	if n.VirtualFunctions > 0 {
		items = append(items, item{
			name: "virtual functions of NIC " + n.PCIAddress, value: strconv.Itoa(n.VirtualFunctions), reboot: v1alpha1.RebootRequired,
			why: whyInUse, none: "0", whenNew: whyUnit, observe: observeFunctions(n.PCIAddress),
		})
	}
	if n.Driver != "" {
		name := "driver of NIC " + n.PCIAddress
		if n.VirtualFunctions > 0 {
			name = "driver of the virtual functions of NIC " + n.PCIAddress
		}
		items = append(items, item{name: name, value: n.Driver, reboot: v1alpha1.RebootRequired, why: whyInUse, whenNew: whyUnit,
			observe: n.observeDriver})
	}
	return items
}

// agentItems are what only the agent goes by.
func (p *NodePlan) agentItems() []item {
	waived := joined(p.Verification.Waived, func(w v1alpha1.WaivedCheck) string { return string(w.Check) })
	nics := joined(p.BypassNICs, func(n NICPlan) string { return n.PCIAddress })
	return []item{
		{name: "bypass NICs", value: nics, reboot: v1alpha1.RebootNotRequired, why: whyAtOnce},
		{name: "verification gate", value: string(p.Verification.Gate), reboot: v1alpha1.RebootNotRequired, why: whyAtOnce},
		{name: "repair of drift", value: string(p.Verification.Repair), reboot: v1alpha1.RebootNotRequired, why: whyAtOnce},
		{name: "failures that count", value: string(cmp.Or(p.Verification.FailOn, v1alpha1.FailOnImpact)), reboot: v1alpha1.RebootNotRequired, why: whyAtOnce},
		{name: "waived checks", value: waived, reboot: v1alpha1.RebootNotRequired, why: whyAtOnce},
	}
}
